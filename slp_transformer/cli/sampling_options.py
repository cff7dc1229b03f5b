"""The flags of `generate` that decide how the next token is drawn."""

from dataclasses import dataclass

from slp_transformer._internal.config_checks import Range, check_ranges

RANGES: dict[str, Range] = {
    "temperature": ((lambda x: x >= 0), "0 or more"),
    "top_p": ((lambda x: 0 < x <= 1), "above 0 and at most 1"),
}


@dataclass(frozen=True)
class SamplingOptions:
    """How the next token is drawn: the options of `slp_transformer.generation.generate`.

    Attributes:
        temperature: below 1 the model keeps to what is likely, above 1 it varies more; 0 always
            takes the most probable token.
        top_k: sample from the k most probable tokens alone.
        top_p: sample from the most probable tokens that together have this probability.
        repetition_penalty: above 1, tokens that are there already become less likely.
    """

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers that no distribution can be drawn with.

        Raises:
            ValueError: naming the flag.
        """
        check_ranges(self, RANGES, flags=True)
