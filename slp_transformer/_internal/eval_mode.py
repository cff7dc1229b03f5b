"""Evaluation mode for a while: without dropout, and afterwards every module is as it was."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from torch import nn

LOCK = threading.Lock()
# For each model that is being read: how many read it, and its modules that were being trained.
ACTIVE_READERS: WeakKeyDictionary[nn.Module, tuple[int, list[nn.Module]]] = WeakKeyDictionary()


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Read a model in evaluation mode.

    Parts that were in evaluation mode before stay in it. Several threads may read one model: it is
    put back when the last of them is done.
    """
    with LOCK:
        readers, trained = ACTIVE_READERS.get(model, (0, []))
        if not readers:
            trained = [module for module in model.modules() if module.training]
        ACTIVE_READERS[model] = readers + 1, trained
        model.eval()
    try:
        yield
    finally:
        with LOCK:
            readers, trained = ACTIVE_READERS.pop(model)
            if readers > 1:
                ACTIVE_READERS[model] = readers - 1, trained
            else:
                for module in trained:
                    module.training = True


def has_no_hooks(part: nn.Module) -> bool:
    """Return whether no tensor of a pass can outlive it: a part of this package, without hooks."""
    hooks = part._forward_hooks or part._forward_pre_hooks or getattr(part, "hook", None)
    return type(part).__module__.partition(".")[0] in ("slp_transformer", "torch") and not hooks
