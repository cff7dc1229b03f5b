"""How a model knows where tokens stand. An entry needs rows to add, or a part of attention."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class PositionsChoice:
    """How a model knows where its tokens stand.

    Attributes:
        summary: for `--help` and the docs.
        rows: makes, from N and d, the rows that are added to those of the tokens; None if only
            attention knows.
        learned: whether these rows are weights.
        attention: makes, from a `ModernConfig`, what its attention layers share; None for nothing.
        settings: settings that only models with these positions have.
        check: refuses sizes that these positions cannot have.
    """

    summary: str
    rows: str | None = None
    learned: bool = False
    attention: str | None = None
    settings: tuple[str, ...] = ()
    check: Callable[[Any], None] = lambda config: None


def check_rotary_pairs(config: Any) -> None:
    """Refuse heads whose rows cannot be turned pair by pair.

    Raises:
        ValueError: naming their size.
    """
    key_dim = config.key_dim or config.model_dim // config.num_heads
    if not 0 < config.rotary_share <= 1:
        raise ValueError(f"rotary_share is above 0 and at most 1, not {config.rotary_share!r}.")
    turned = int(key_dim * config.rotary_share)
    if turned % 2 or not turned:
        what = "key_dim" if turned == key_dim else "key_dim · rotary_share"
        raise ValueError(f"Rotary positions turn pairs, so {what} must be even: not {turned}.")


BOOK_POSITIONS = Choices(
    "positions",
    {
        "learned": PositionsChoice(
            "a row for each, the book's", "slp_transformer.embedding:LearnedPositions", learned=True
        ),
        "sinusoidal": PositionsChoice(
            "sines and cosines, Vaswani et al. 2017",
            "slp_transformer.embedding:SinusoidalPositions",
        ),
    },
)
POSITIONS = Choices(
    "positions",
    {
        "rotary": PositionsChoice(
            "queries and keys are rotated, Su et al. 2021",
            attention="slp_transformer.modern.rotary:RotaryPositions.from_config",
            settings=("rope_base", "rope_scaling", "rotary_share"),
            check=check_rotary_pairs,
        ),
    },
    base=BOOK_POSITIONS,
)

BookPositions: TypeAlias = Annotated[str, BOOK_POSITIONS]
Positions: TypeAlias = Annotated[str, POSITIONS]
