"""Other places for the norms of a block than the book's two."""

from typing import Any

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.block import Sublayer


def forward_output_norm(
    block: Any, X: Float[Tensor, "*batch N d"], mha: Sublayer, mha_across: Sublayer | None
) -> Float[Tensor, "*batch N d"]:
    """Normalize what each sublayer adds to the stream (OLMo 2, arXiv 2501.00656, section 3.1).

    Raises:
        ValueError: if the block has cross-attention.
    """
    refuse_cross_attention(block.norm, mha_across)
    point = block.hook_point
    T1 = point("T1", block.drop(mha(X)))
    T2 = point("T2", block.norm_1(T1))
    T3 = point("T3", T2 + X)
    T4 = point("T4", block.drop(block.ffn(T3)))
    T5 = point("T5", block.norm_2(T4))
    return T5 + T3


def forward_parallel(
    block: Any, X: Float[Tensor, "*batch N d"], mha: Sublayer, mha_across: Sublayer | None
) -> Float[Tensor, "*batch N d"]:
    """Let both sublayers read the stream that comes in (GPT-J; GPT-NeoX, arXiv 2204.06745).

    Raises:
        ValueError: if the block has cross-attention.
    """
    refuse_cross_attention(block.norm, mha_across)
    point = block.hook_point
    T1 = point("T1", block.norm_1(X))
    T2 = point("T2", block.drop(mha(T1)))
    T3 = point("T3", T2 + X)
    T4 = point("T4", block.norm_2(X))
    T5 = point("T5", block.drop(block.ffn(T4)))
    return T5 + T3


def refuse_cross_attention(norm: str, mha_across: Sublayer | None) -> None:
    """Refuse a block that reads an encoder, for which no such order was ever described.

    Raises:
        ValueError: if it does.
    """
    if mha_across is not None:
        raise ValueError(f'A block with cross-attention has norm "pre" or "post", not "{norm}".')
