"""Refusals of tensors that do not fit a model or each other, in one sentence each."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import torch
from torch import nn

from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Tensor, format_shape

P = ParamSpec("P")
T = TypeVar("T")
HIDDEN = -torch.finfo(torch.float16).max  # from here on down a mask's number stands for -inf


def is_all_finite(tensor: Tensor) -> bool:
    """Return whether no element is NaN or infinite, without a copy of the tensor."""
    if not tensor.numel() or not tensor.is_floating_point():
        return True
    return bool(torch.stack(tensor.aminmax()).isfinite().all())


def check_feature_axis(name: str, X: Tensor, model_dim: int) -> None:
    """Refuse an input with fewer than two axes, or whose rows are not of size `model_dim`.

    Raises:
        ValueError: naming the input, its shape and the shape it should have.
    """
    if X.dim() < 2 or X.shape[-1] != model_dim:
        raise ValueError(
            f"{name} has shape {format_shape(X)}, but must be [... × tokens × {model_dim}]: "
            f"model_dim is {model_dim} here."
        )


def refuse_other_device(name: str, X: Tensor, module: nn.Module) -> None:
    """Refuse an input on another device than a module's weights, once PyTorch has.

    Raises:
        ValueError: naming both devices.
    """
    W = next(module.parameters(), X)
    if X.device != W.device:
        raise ValueError(
            f"{name} must be where the weights are, on {W.device}, not on {X.device}: write "
            f'.to("{W.device}"), or move the model.'
        )


def refuse_unfit_rows(name: str, X: Tensor, module: nn.Module) -> None:
    """Refuse rows that do not fit a module's weights, once PyTorch has: that is never too strict.

    Raises:
        ValueError: naming both devices, types or sizes.
    """
    refuse_other_device(name, X, module)
    W = next(module.parameters(), X)
    if X.dtype != W.dtype and not torch.is_autocast_enabled(X.device.type):
        raise ValueError(
            f"{name} must have the type of the weights, {W.dtype}, not {X.dtype}: write "
            f".to({W.dtype}), or give the model the other type."
        )
    for part in module.children():  # the widths of attention are those of the whole block
        if isinstance(width := getattr(part, "model_dim", None), int):
            check_feature_axis(name, X, width)


def check_attention_inputs(model_dim: int, X: Tensor, H_enc: Tensor | None, causal: bool) -> None:
    """Refuse inputs of attention that do not fit its matrices, or each other.

    Raises:
        ValueError: naming the input, or the two that disagree.
    """
    check_feature_axis("X", X, model_dim)
    if H_enc is None:
        return
    check_feature_axis("H_enc", H_enc, model_dim)
    if H_enc.shape[:-2] != X.shape[:-2]:
        raise ValueError(
            "X and H_enc must have the same axes before the last two, one source for each "
            f"target, but have shapes {format_shape(X)} and {format_shape(H_enc)}."
        )
    if causal:
        raise ValueError(
            "Cross-attention has no future to hide, since the source is all there: "
            "leave out causal=True, or leave out H_enc."
        )


def check_qkv(Q: Tensor, K: Tensor, V: Tensor) -> None:
    """Refuse queries, keys and values that do not fit together.

    Raises:
        ValueError: naming the two shapes that disagree.
    """
    batch = Q.shape[:-2]
    fits = batch == K.shape[:-2] == V.shape[:-2] and min(Q.dim(), K.dim(), V.dim()) > 1
    if not fits or Q.shape[-1] != K.shape[-1] or K.shape[-2] != V.shape[-2]:
        raise ValueError(
            "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
            "the same axes before the last two, the same d_k and a value for each key, but have "
            f"shapes {format_shape(Q)}, {format_shape(K)} and {format_shape(V)}."
        )


MODEL_HINTS = {
    "attention_mask": "a mask is additive, and the second argument: padding_mask(ids, pad_id)",
    "labels": "the loss is next_token_loss(model(ids[:, :-1]), ids[:, 1:])",
    "input_ids": "the ids are its first argument",
    "past_key_values": "keys and values are kept by cache=KVCache()",
    "use_cache": "keys and values are kept by cache=KVCache()",
    "output_hidden_states": "interpret.patch_activations(model, ['*.H']) reads them",
    "output_attentions": "interpret.patch_activations(model, ['*.alpha']) reads them",
    "token_type_ids": "only BERT has segments",
    "return_dict": "what it returns are the logits",
}
"""What Hugging Face's arguments of a model's call are here."""

BLOCK_HINTS = {
    "is_causal": "write causal=True",
    **dict.fromkeys(
        ("attn_mask", "src_mask", "tgt_mask", "attention_mask"),
        "a mask is additive, and the second argument",
    ),
    **dict.fromkeys(
        ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask"),
        "padding is hidden by a mask too: mask=padding_mask(ids, pad_id)",
    ),
    "memory": "the encoder's output is H_enc",
    "memory_mask": "the mask of H_enc is enc_mask",
    "need_weights": "attention alone returns them, by return_weights=True",
}
"""What PyTorch's arguments of a block's call are here."""


def refuse_unknown_arguments(whose: str, names: Iterable[str], hints: Mapping[str, str]) -> None:
    """Refuse arguments that a function does not have, if there are any.

    Args:
        whose: the function.
        names: the arguments.
        hints: for those that others' functions have, what does the same.

    Raises:
        TypeError: naming the first.
    """
    for name in names:
        hint = f": {hints[name]}" if name in hints else ""
        raise TypeError(f"{whose} has no argument {name}{hint}.")


def refuse_foreign_arguments(
    hints: Mapping[str, str],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function refuse arguments that others' functions have with what does the same here.

    Args:
        hints: what does the same, by the argument's name.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            refuse_unknown_arguments(function.__name__, kwargs.keys() & hints.keys(), hints)
            return function(*args, **kwargs)

        return call

    return decorate


def check_mask(mask: Tensor, shape: Sequence[int]) -> None:
    """Refuse a mask that is not additive or cannot be broadcast to `shape`, [... × N × M].

    Raises:
        ValueError: if the mask is boolean or of whole numbers, or its axes do not fit.
    """
    if not mask.is_floating_point():
        raise ValueError(
            f"The mask has type {mask.dtype}, but masks here are additive: a floating-point "
            "tensor that is 0 where attention is allowed and -inf where it is not, as made by "
            "causal_mask or padding_mask. From a boolean `allowed`, write "
            "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)." + see("conventions")
        )
    if is_keep_mask(mask):
        raise ValueError(
            "The mask has ones and zeros, but masks here are additive: 0 where attention is "
            "allowed and -inf where it is not, as made by causal_mask or padding_mask. From `keep` "
            "with 1 where attention is allowed, write "
            "torch.zeros(keep.shape).masked_fill(keep == 0, -torch.inf)." + see("conventions")
        )
    axes = zip(reversed(mask.shape), reversed(shape), strict=False)
    if not 2 <= mask.dim() <= len(shape) or any(size not in (1, axis) for size, axis in axes):
        raise ValueError(
            f"The mask has shape {format_shape(mask)}, but the scores have shape "
            f"{format_shape(shape)} ({shape[-2]} queries by {shape[-1]} keys): its axes must match "
            "theirs or be 1, and those before the last two may be left out."
        )


def is_keep_mask(mask: Tensor) -> bool:
    """Tell if a floating-point mask is of ones and zeros, as others' masks are where 1 is "keep".

    On an accelerator the values are not looked at, since that would make it wait at every layer.
    """
    if mask.device.type != "cpu" or is_traced(mask) or not mask.numel():
        return False
    if mask.max() != 1:  # one pass tells nearly every additive mask apart
        return False
    return bool(((mask == 0) | (mask == 1)).all())


def check_no_left_padding(mask: Tensor) -> None:
    """Refuse a mask of texts padded on the left, for a model that counts positions from the left.

    On an accelerator the values are not looked at, since that would make it wait.

    Raises:
        ValueError: saying which positions to pass.
    """
    if mask.device.type != "cpu" or is_traced(mask) or mask.dim() < 2 or not mask.numel():
        return
    if not (mask[..., 0] <= HIDDEN).all(dim=-1).any():  # one column tells nearly all others apart
        return
    columns = (mask <= HIDDEN).all(dim=-2)
    if (columns[..., 0] & ~columns.all(dim=-1)).any():  # a text that is padding alone has no words
        raise ValueError(
            "The mask hides the first tokens from all others, as padding on the left does, but "
            "positions would be counted from them: pass position_ids=((ids != pad_id)"
            ".cumsum(-1) - 1).clamp(min=0), or torch.arange(N) if they are to be counted so."
            + see("padding")
        )


def check_token_axis(ids: Any) -> None:
    """Refuse what is no tensor with an axis of tokens.

    Raises:
        ValueError: saying what it is.
    """
    if not isinstance(ids, Tensor):
        how = "encode the text first" if isinstance(ids, str) else "write torch.tensor(ids)"
        raise ValueError(f"Token ids must be a tensor, not a {type(ids).__name__}: {how}.")
    if ids.dim() < 1:
        raise ValueError(
            f"Token ids must be a sequence [... × N], but have shape {format_shape(ids)}."
        )


def check_ids(ids: Tensor, vocab_size: int) -> None:
    """Refuse ids that are not 32- or 64-bit whole numbers from 0 to `vocab_size` − 1.

    On an accelerator the values are not looked at, since that would make it wait at every step;
    there PyTorch's own assertion speaks.

    Raises:
        ValueError: naming the type, or the first id that is out of range and where it stands.
    """
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            "Token ids must be whole numbers of type torch.int64 or torch.int32, but these are of "
            f"type {ids.dtype}."
        )
    if ids.device.type != "cpu" or is_traced(ids):
        return
    outside = (ids < 0) | (ids >= vocab_size)
    if outside.any():
        where = tuple(outside.nonzero()[0].tolist())
        raise ValueError(
            f"Token id {ids[where].item()} at position {list(where)} is outside the vocabulary: "
            f"ids go from 0 to {vocab_size - 1}."
        )


def check_position_ids(position_ids: Tensor, N: int, context_length: int) -> None:
    """Refuse positions that are none of a table's, or not one for each token.

    Raises:
        ValueError: naming their number, or the first that is out of range.
    """
    if position_ids.dim() < 1 or position_ids.shape[-1] != N:
        raise ValueError(
            f"position_ids {format_shape(position_ids)} must have one position for each of the "
            f"{N} tokens."
        )
    if position_ids.device.type != "cpu" or is_traced(position_ids):
        return
    outside = (position_ids < 0) | (position_ids >= context_length)
    if outside.any():
        raise ValueError(
            f"position_ids has {position_ids[outside][0].item()}, but positions go from 0 to "
            f"{context_length - 1}."
        )


def check_positions(start: int, N: int, context_length: int) -> None:
    """Refuse a sequence that begins before the first position or ends after the last one.

    Raises:
        ValueError: naming where it begins or ends and how many positions there are.
    """
    if not 0 <= start <= start + N <= context_length:
        raise ValueError(
            f"The sequence has {start + N} tokens, but there are positions for {context_length}, "
            f"counted from 0 (this part has {N} and begins at {start}): shorten it, or make the "
            "model with a larger context_length."
        )
