"""Sentences for what Python or PyTorch refuses anyway; they cost nothing until then."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import nn

from slp_transformer._internal.argument_checks import check_feature_axis, check_ids
from slp_transformer._internal.shape_types import Tensor

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


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


def refuse_unfit_ids(ids: Tensor, embedding: Any) -> None:
    """Refuse ids that are outside the vocabulary or on another device, once PyTorch has.

    Raises:
        ValueError: naming the id, or both devices.
    """
    check_ids(ids, len(embedding.E))
    refuse_other_device("Token ids", ids, embedding)


def refuse_unfit_rows(X: Tensor, module: nn.Module) -> None:
    """Refuse rows that do not fit a module's weights, once PyTorch has: that is never too strict.

    Raises:
        ValueError: naming both devices, types or sizes.
    """
    refuse_other_device("X", X, module)
    W = next(module.parameters(), X)
    if X.dtype != W.dtype and not torch.is_autocast_enabled(X.device.type):
        raise ValueError(
            f"X must have the type of the weights, {W.dtype}, not {X.dtype}: write "
            f".to({W.dtype}), or give the model the other type."
        )
    for part in (module, *module.children()):  # the width of attention is that of the whole block
        if isinstance(width := getattr(part, "model_dim", None), int):
            check_feature_axis("X", X, width)


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


def explain_refusals(
    explain: Callable[[Any, nn.Module], None] | None = None, hints: Mapping[str, str] | None = None
) -> Callable[[F], F]:
    """Let a module's `forward` refuse in a sentence what Python or PyTorch refuses anyway.

    What these would swallow is checked where it is used, before they see it; the rest costs nothing
    until it is refused.

    Args:
        explain: is called with the first argument and the module when PyTorch could not compute,
            and raises the sentence if it finds the cause.
        hints: for arguments that others' modules have, what does the same here.
    """

    def decorate(forward: F) -> F:
        @functools.wraps(forward)
        def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            try:
                return forward(self, *args, **kwargs)
            except TypeError:
                foreign = kwargs.keys() & (hints or {}).keys()
                refuse_unknown_arguments(type(self).__name__, foreign, hints or {})
                raise
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, IndexError):
                first = args[0] if args else kwargs.get("X", kwargs.get("ids"))
                if explain is not None and isinstance(first, Tensor):
                    explain(first, self)
                raise

        return cast(F, call)

    return decorate
