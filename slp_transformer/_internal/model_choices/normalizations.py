"""The norms of the stream. An entry needs a layer that is made from d and an epsilon."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class NormalizationChoice:
    """A norm of the stream.

    Attributes:
        summary: for `--help` and the docs.
        layer: makes it from d and an epsilon; it maps [… × d] to [… × d], row by row, and may be
            compiled.
    """

    summary: str
    layer: str


NORMALIZATIONS = Choices(
    "normalization",
    {
        "layer": NormalizationChoice("the book's", "slp_transformer.layer_norm:LayerNorm"),
        "rms": NormalizationChoice(
            "RMSNorm, Zhang and Sennrich 2019", "slp_transformer.modern.rms_norm:RMSNorm"
        ),
    },
)

Normalization: TypeAlias = Annotated[str, NORMALIZATIONS]
