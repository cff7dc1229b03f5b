"""Evaluation mode for a while: without dropout, and afterwards every module is as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from slp_transformer._internal.plugins import PACKAGES


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Read a model in evaluation mode; parts that were in it before stay in it."""
    trained = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in trained:
            module.training = True


def has_no_hooks(part: nn.Module) -> bool:
    """Tell if no tensor of a pass can outlive it: a module of ours or PyTorch's, without hooks."""
    hooks = part._forward_hooks or part._forward_pre_hooks or getattr(part, "hook", None)
    return type(part).__module__.partition(".")[0] in (*PACKAGES, "torch") and not hooks
