"""Ways to stretch rotary angles. An entry needs a function of angles, and published names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class RopeScalingChoice:
    """A way to stretch rotary angles to a longer context.

    Attributes:
        summary: for the docs.
        stretch: a function of the angles a position, a `RopeScaling` and the base of frequencies.
        published: by fields of `RopeScaling` that it needs, their names in a published config.json.
        optional: those of these fields that a config.json may leave out.
        amplitude: a function of a `RopeScaling`: what rotated rows are multiplied by; None for 1.
    """

    summary: str
    stretch: str
    published: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    amplitude: str | None = None


ROPE_SCALINGS = Choices(
    "rope_type",
    {
        "linear": RopeScalingChoice(
            "all pairs turn slower, Chen et al. 2023",
            "slp_transformer.modern.rotary:stretch_all",
            {"factor": "factor"},
        ),
        "llama3": RopeScalingChoice(
            "pairs that turn little in the old context turn slower, those that turn much do not",
            "slp_transformer.modern.rotary:stretch_slow_pairs",
            {name: name for name in ("factor", "low_freq_factor", "high_freq_factor")}
            | {"original_context_length": "original_max_position_embeddings"},
        ),
        "yarn": RopeScalingChoice(
            "as llama3, in a ramp over the pairs, and all scores grow: YaRN, Peng et al. 2023",
            "slp_transformer.modern.rotary:stretch_by_yarn",
            {name: name for name in ("factor", "beta_fast", "beta_slow", "attention_factor")}
            | {"original_context_length": "original_max_position_embeddings"},
            optional=("beta_fast", "beta_slow", "attention_factor"),
            amplitude="slp_transformer.modern.rotary:yarn_amplitude",
        ),
    },
)

RopeType: TypeAlias = Annotated[str, ROPE_SCALINGS]
