"""PyTorch's own layers with the package's weights in them.

PyTorch keeps a weight as [out, in]; the book writes [in, out]. Both libraries keep W^Q, W^K and
W^V in one matrix, PyTorch one below the other, ours side by side. A `Pair` says which parameters of
ours and theirs are the same, for copying weights one way and for comparing gradients the other.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from comparing import assert_same, gradients
from torch import Tensor, nn


class Pair(NamedTuple):
    ours: nn.Parameter
    theirs: nn.Parameter

    def in_our_orientation(self, theirs: Tensor) -> Tensor:
        return theirs.T if theirs.dim() == 2 else theirs


def attention_pairs(ours, theirs: nn.MultiheadAttention) -> Iterator[Pair]:
    yield Pair(ours.W_QKV, theirs.in_proj_weight)
    yield Pair(ours.W_O, theirs.out_proj.weight)


def norm_pairs(ours, theirs: nn.LayerNorm) -> Iterator[Pair]:
    yield Pair(ours.gamma, theirs.weight)
    yield Pair(ours.beta, theirs.bias)


def block_pairs(ours, theirs) -> Iterator[Pair]:
    """A block and a `TransformerEncoderLayer`; a `TransformerDecoderLayer` if it looks across."""
    yield from attention_pairs(ours.attention, theirs.self_attn)
    yield from norm_pairs(ours.norm_1, theirs.norm1)
    if ours.cross_attention is None:
        yield from norm_pairs(ours.norm_2, theirs.norm2)
    else:
        yield from attention_pairs(ours.cross_attention, theirs.multihead_attn)
        yield from norm_pairs(ours.norm_cross, theirs.norm2)
        yield from norm_pairs(ours.norm_2, theirs.norm3)
    yield Pair(ours.ffn.W_1, theirs.linear1.weight)
    yield Pair(ours.ffn.b_1, theirs.linear1.bias)
    yield Pair(ours.ffn.W_2, theirs.linear2.weight)
    yield Pair(ours.ffn.b_2, theirs.linear2.bias)


def stack_pairs(ours, theirs) -> Iterator[Pair]:
    for block, layer in zip(ours.blocks, theirs.layers, strict=True):
        yield from block_pairs(block, layer)
    if ours.final_norm is not None:
        yield from norm_pairs(ours.final_norm, theirs.norm)


class Twin:
    """One of PyTorch's layers, made equal to one of ours."""

    def __init__(self, ours: nn.Module, theirs: nn.Module, pairs: Callable):
        self.ours, self.theirs = ours, theirs.double().train()
        self.pairs = list(pairs(ours, theirs))
        assert {id(pair.ours) for pair in self.pairs} == {id(p) for p in ours.parameters()}
        with torch.no_grad():
            for layer in theirs.modules():
                if isinstance(layer, nn.MultiheadAttention) and layer.in_proj_bias is not None:
                    layer.in_proj_bias.zero_()  # the book's attention has no biases
                    layer.out_proj.bias.zero_()
            for pair in self.pairs:
                pair.in_our_orientation(pair.theirs).copy_(pair.ours)

    def assert_agrees(self, ours: Tensor, theirs: Tensor, inputs: Iterable[Tensor]) -> None:
        """Same output, same gradient of every input and of every one of our parameters."""
        assert_same(ours, theirs)
        inputs = list(inputs)
        parameters = list({id(pair.theirs): pair.theirs for pair in self.pairs}.values())
        mine = gradients(ours, inputs + [pair.ours for pair in self.pairs])
        yours = gradients(theirs, inputs + parameters)
        by_parameter = dict(zip(map(id, parameters), yours[len(inputs) :], strict=True))
        expected = [*yours[: len(inputs)]]
        expected += [pair.in_our_orientation(by_parameter[id(pair.theirs)]) for pair in self.pairs]
        for gradient, other in zip(mine, expected, strict=True):
            assert gradient.abs().max() > 1e-9, "a gradient of zero compares nothing"
            assert_same(gradient, other)


def twin_attention(ours) -> Twin:
    theirs = nn.MultiheadAttention(ours.model_dim, ours.num_heads, bias=False, batch_first=True)
    return Twin(ours, theirs, attention_pairs)


def twin_layer(ours, activation: str = "relu") -> nn.Module:
    """A layer of PyTorch's with the sizes and choices of our block, its weights still its own."""
    kind = (
        nn.TransformerEncoderLayer if ours.cross_attention is None else nn.TransformerDecoderLayer
    )
    return kind(
        ours.attention.model_dim,
        ours.attention.num_heads,
        ours.ffn.W_1.shape[1],
        dropout=0.0,
        activation=activation,
        layer_norm_eps=ours.norm_1.eps,
        batch_first=True,
        norm_first=ours.norm == "pre",
    )


def twin_stack(ours, activation: str = "relu") -> Twin:
    layer = twin_layer(ours.blocks[0], activation)
    norm = ours.final_norm
    norm = None if norm is None else nn.LayerNorm(norm.model_dim, norm.eps)
    if isinstance(layer, nn.TransformerEncoderLayer):
        theirs = nn.TransformerEncoder(layer, len(ours.blocks), norm, enable_nested_tensor=False)
    else:
        theirs = nn.TransformerDecoder(layer, len(ours.blocks), norm)
    return Twin(ours, theirs, stack_pairs)
