"""Named points: places in a forward pass where what passes can be read, or replaced.

The names are the book's: T1 to T5 and H in a block, Q, K, V, scores, alpha and head in attention.
Normally nobody watches, and a point is nothing at all. `record_activations` reads the points of
every block.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules import module as torch_module

from slp_transformer._internal.plugins import PACKAGES
from slp_transformer._internal.shape_types import Float, ShapedModule, Tensor

Hook = Callable[[str, Tensor], Tensor]
BlockActivations = dict[str, Tensor]


def pass_on(name: str, X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Pass a point that nobody watches."""
    return X


class HookedModule(ShapedModule):
    """A part of a model with named points.

    Attributes:
        hook: called at each point with its name and what passes there; returns what passes on.
            Normally it is `pass_on`: nobody watches.
    """

    hook: Hook = staticmethod(pass_on)

    def hook_point(self, name: str, X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Pass a named point."""
        return self.hook(name, X)


def has_no_hooks(part: nn.Module) -> bool:
    """Tell if a pass through a part is what its class says, and no tensor of it can outlive it.

    That is a module of ours or PyTorch's with its own `forward`, without hooks, of its own or of
    all modules.
    """
    hooks = part._forward_hooks or part._forward_pre_hooks
    watched = getattr(part, "hook", pass_on) is not pass_on
    own = (type(part).__module__, type(part).forward.__module__)
    known = all(module.partition(".")[0] in (*PACKAGES, "torch") for module in own)
    changed = watched or "forward" in vars(part) or torch_module._has_any_global_hook()
    return known and not (hooks or changed)


@contextmanager
def record_activations(model: nn.Module) -> Iterator[list[BlockActivations]]:
    """Keep what passes the points of every block of a model, as long as the context lasts.

    Where attention is watched it computes its weights, which the fused kernel does not.

        with record_activations(model) as trace:
            U = model(ids)
        trace[0]["alpha"]  # the weights of the lowest block

    Args:
        model: a model, a stack, or one block.

    Yields:
        A list to which each pass through a block appends its steps by name: "X" for what comes in,
        "T1" to "T5" as the book names them (in post-norm as its draft of February 2024 does), "H"
        for what goes out; of its attention "Q", "K", "V", "scores" (before the mask), "alpha" and
        "head". Of cross-attention, between T3 and T4, "C1", "C2", "C3", and "Q_cross" and so on.
    """
    trace: list[BlockActivations] = []

    def recorder(suffix: str) -> Hook:
        def record(name: str, X: Tensor) -> Tensor:
            if name == "X":  # the first point of a block
                trace.append({})
            trace[-1][name + suffix] = X
            return X

        return record

    before = {part: part.hook for part in model.modules() if isinstance(part, HookedModule)}
    across = {getattr(part, "cross_attention", None) for part in before}
    for part in before:
        part.hook = recorder("_cross" if part in across else "")
    try:
        yield trace
    finally:
        for part, hook in before.items():
            part.hook = hook
