"""Where norms stand in a block. An entry needs a function that runs the block's two halves."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class NormOrderChoice:
    """Where the norms stand in a block.

    Attributes:
        summary: for `--help` and the docs.
        steps: a function of the block, X, and the arguments of self- and cross-attention.
        final_norm: whether a stack ends in one more norm.
    """

    summary: str
    steps: str
    final_norm: bool


BOOK_NORM_ORDERS = Choices(
    "norm",
    {
        "pre": NormOrderChoice(
            "before each sublayer, the book's",
            "slp_transformer.block:ResidualBlock._forward_pre_norm",
            final_norm=True,
        ),
        "post": NormOrderChoice(
            "after each addition, Vaswani et al. 2017",
            "slp_transformer.block:ResidualBlock._forward_post_norm",
            final_norm=False,
        ),
    },
)
NORM_ORDERS = Choices(
    "norm",
    {
        "output": NormOrderChoice(
            "of what each sublayer adds, OLMo 2",
            "slp_transformer.modern.norm_orders:forward_output_norm",
            final_norm=True,
        ),
        "parallel": NormOrderChoice(
            "before both sublayers at once, GPT-NeoX",
            "slp_transformer.modern.norm_orders:forward_parallel",
            final_norm=True,
        ),
    },
    base=BOOK_NORM_ORDERS,
)

BookNormOrder: TypeAlias = Annotated[str, BOOK_NORM_ORDERS]
NormOrder: TypeAlias = Annotated[str, NORM_ORDERS]
