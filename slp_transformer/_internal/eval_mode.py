"""Evaluation mode for a while: without dropout, and afterwards every module is as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules import module as torch_module

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
    """Tell if a pass through a part is what its class says, and no tensor of it can outlive it.

    That is a module of ours or PyTorch's with its own `forward`, without hooks, of its own or of
    all modules.
    """
    hooks = part._forward_hooks or part._forward_pre_hooks or getattr(part, "hook", None)
    own = (type(part).__module__, type(part).forward.__module__)
    known = all(module.partition(".")[0] in (*PACKAGES, "torch") for module in own)
    return known and not (hooks or "forward" in vars(part) or torch_module._has_any_global_hook())
