"""Refusals of tensors that do not fit a model or each other, before PyTorch swallows them."""

from collections.abc import Sequence
from typing import Any, Literal

import torch

from slp_transformer._internal.choices import check_in_choices
from slp_transformer._internal.config_checks import DROPOUT, check_range
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Tensor, format_shape

HIDDEN = -torch.finfo(torch.float16).max  # from here on down a mask's number stands for -inf


def is_all_finite(tensor: Tensor) -> bool:
    """Return whether no element is NaN or infinite, without a copy of the tensor."""
    if not tensor.numel() or not tensor.is_floating_point():
        return True
    return bool(torch.stack(tensor.aminmax()).isfinite().all())


def check_finite_weights(model: Any) -> None:
    """Refuse weights with which no model could be loaded again.

    Raises:
        ValueError: naming the first.
    """
    for name, W in model.state_dict().items():
        if not is_all_finite(W):
            raise ValueError(
                f"{name} has NaN or infinite numbers as {str(W.dtype).removeprefix('torch.')}, so "
                "nothing is written: where they are too large for float16, choose bfloat16."
            )


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


def check_row_size(X: Tensor, model_dim: int) -> None:
    """Refuse rows of another size than a norm has, of which rows of one number would broadcast.

    Raises:
        ValueError: naming both sizes.
    """
    if X.shape[-1:] != (model_dim,):
        raise ValueError(
            f"X has shape {format_shape(X)}, but must be [... × {model_dim}]: model_dim is "
            f"{model_dim} here."
        )


def check_source(model_dim: int, X: Tensor, H_enc: Tensor | None, causal: bool) -> None:
    """Refuse an encoder's output that does not fit attention's matrices, or its other input.

    Raises:
        ValueError: naming the input, or the two that disagree.
    """
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


def check_attention(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, dropout: float) -> None:
    """Refuse what no attention can be computed from.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, or dropout is no
            share below 1.
    """
    batch = Q.shape[:-2]
    fits = batch == K.shape[:-2] == V.shape[:-2] and min(Q.dim(), K.dim(), V.dim()) > 1
    if not fits or Q.shape[-1] != K.shape[-1] or K.shape[-2] != V.shape[-2]:
        raise ValueError(
            "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
            "the same axes before the last two, the same d_k and a value for each key, but have "
            f"shapes {format_shape(Q)}, {format_shape(K)} and {format_shape(V)}."
        )
    check_range(DROPOUT, dropout=dropout)
    if mask is not None:
        check_mask(mask, (*Q.shape[:-1], K.shape[-2]))


def check_same_rows(H: Tensor, E: Tensor) -> None:
    """Refuse outputs and embeddings that cannot be compared.

    Raises:
        ValueError: if their rows have different sizes.
    """
    if H.shape[-1] != E.shape[-1]:
        raise ValueError(
            f"Rows of H {format_shape(H)} and E {format_shape(E)} must have the same size d "
            "to be compared."
        )


def check_token_counts(whose: str, *counts: int) -> None:
    """Refuse negative numbers of tokens.

    Raises:
        ValueError: naming the least.
    """
    if min(counts) < 0:
        raise ValueError(f"{whose} needs numbers of tokens of 0 or more, not {min(counts)}.")


def check_causal_lengths(Q: Tensor, K: Tensor) -> None:
    """Refuse more queries than keys where the future is hidden.

    Raises:
        ValueError: naming both numbers.
    """
    N, M = Q.shape[-2], K.shape[-2]
    if N > M:
        raise ValueError(
            f"A causal mask needs a key for each query, but there are {N} queries and {M} keys."
        )


def check_encoder_output(block: Any, H_enc: Tensor | None, enc_mask: Tensor | None) -> None:
    """Refuse an encoder's output that a block cannot read, or that it is missing.

    Raises:
        ValueError: if `H_enc` is missing or not wanted.
    """
    if block.cross_attention is not None and H_enc is None:
        raise ValueError(
            "This block has cross-attention and needs the encoder's output: pass H_enc."
        )
    if block.cross_attention is None and (H_enc is not None or enc_mask is not None):
        raise ValueError(
            "This block has no cross-attention, so it cannot read H_enc or enc_mask: build it "
            "with cross_attention=True, or leave them out."
        )


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


def check_no_left_padding(mask: Tensor | None, position_ids: Tensor | None) -> None:
    """Refuse a mask of texts padded on the left where positions are counted from the left.

    On an accelerator the values are not looked at, since that would make it wait.

    Raises:
        ValueError: saying which positions to pass.
    """
    if mask is None or position_ids is not None:
        return
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


def check_position_ids(position_ids: Tensor, start: int, N: int, context_length: int) -> None:
    """Refuse positions that are none of a table's, or not one for each token.

    Where a batch is padded on the left, positions are lower than the cache counts; what the window
    limits is the count, for this batch as for any other.

    Raises:
        ValueError: naming their number, or the first that is out of range.
    """
    check_positions(start, N, context_length)
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


def check_loss_arguments(
    U: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float, reduction: str
) -> None:
    """Refuse targets that are no ids of the vocabulary, and what no loss can be computed with.

    On an accelerator the targets' values are not looked at; see `check_ids`.

    Raises:
        ValueError: naming the argument and what it can be.
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is a share from 0 to 1, not {label_smoothing!r}.")
    check_in_choices(Literal["mean", "sum"], reduction=reduction)
    if targets.is_floating_point() or targets.dtype == torch.bool:
        raise ValueError(
            f"Targets are the ids of words, so they must be whole numbers, not {targets.dtype}: "
            "write targets.long() if they are ids."
        )
    if U.shape[:-1] != targets.shape:
        raise ValueError(
            f"Each position needs one target, but the logits are {format_shape(U)} and the targets "
            f"{format_shape(targets)}."
        )
    if targets.device.type != "cpu" or is_traced(targets):
        return
    outside = ((targets < 0) & (targets != ignore_index)) | (targets >= U.shape[-1])
    if outside.any():
        where = tuple(outside.nonzero()[0].tolist())
        raise ValueError(
            f"Target {targets[where].item()} at position {list(where)} is outside the vocabulary: "
            f"ids go from 0 to {U.shape[-1] - 1}, and {ignore_index} is not counted."
        )
