"""Named points: places in a forward pass where what passes can be read, or replaced.

The names are the book's: T1 to T5 and H in a block, Q, K, V, scores, alpha and head in attention.
Normally nobody watches, and a point is nothing at all. `record_activations` reads the points of
every block.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

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
            None, as it is normally, lets everything pass.
    """

    hook: Hook | None = None

    def hook_point(self, name: str, X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Pass a named point."""
        return X if self.hook is None else self.hook(name, X)


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
