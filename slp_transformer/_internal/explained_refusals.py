"""Sentences for what PyTorch refuses anyway; they cost nothing until then."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import nn

from slp_transformer._internal.argument_checks import check_feature_axis, check_ids
from slp_transformer._internal.shape_types import Tensor

F = TypeVar("F", bound=Callable[..., Any])


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


def explain_refusals(explain: Callable[[Any, nn.Module], None]) -> Callable[[F], F]:
    """Let a module's `forward` refuse in a sentence what PyTorch refuses anyway.

    What these would swallow is checked where it is used, before they see it; the rest costs nothing
    until it is refused.

    Args:
        explain: is called with the first argument and the module when PyTorch could not compute,
            and raises the sentence if it finds the cause.
    """

    def decorate(forward: F) -> F:
        @functools.wraps(forward)
        def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            try:
                return forward(self, *args, **kwargs)
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, IndexError):
                first = args[0] if args else kwargs.get("X", kwargs.get("ids"))
                if isinstance(first, Tensor):
                    explain(first, self)
                raise

        return cast(F, call)

    return decorate
