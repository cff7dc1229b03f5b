"""One way to look and to touch: named points, read or changed for as long as a context lasts.

    with torch.no_grad(), watching(model) as seen:
        model(ids)
    seen["0.alpha"]                                    # the weights of block 0, counted from 0

    with watching(model, ["1.T5"], {"0.head": zeroed(2)}) as seen:
        model(ids)                                     # without what head 2 of block 0 gathers

A point is named by its block and by the book's letter: "0.T1" to "0.T5", "0.X" for what comes in
and "0.H" for what goes out; in attention "0.Q", "0.K", "0.V", "0.alpha" and "0.head", each with an
axis for the heads before its last two; where there is cross-attention, "0.C1" to "0.C3",
"0.Q_cross" and so on. The points of an encoder-decoder begin with "encoder." or "decoder.".

Attention that is watched computes its weights, which the fused kernel never does; that of blocks
where nobody asks goes on with the kernel, and outside of the context nothing is left of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor, shape_of
from slp_transformer.block import BlockStack, ResidualBlock
from slp_transformer.hooks import Hook, HookedModule

Change = Callable[[Tensor], Tensor] | Tensor
Place = tuple[HookedModule, str]

OF_BLOCKS = ("X", "T1", "T2", "T3", "C1", "C2", "C3", "T4", "T5", "H")
OF_ATTENTION = ("Q", "K", "V", "alpha", "head")


@contextmanager
def watching(
    model: nn.Module,
    names: Iterable[str] | None = None,
    changes: Mapping[str, Change] | None = None,
) -> Iterator[dict[str, Tensor]]:
    """Keep what passes named points of a model, and change it, as long as the context lasts.

    Args:
        model: a model, or a stack.
        names: points to keep; all of them if neither names nor changes are given.
        changes: for the points to be changed, a tensor to put there, or a function from what
            passes to what passes on.

    Yields:
        A dict that each forward pass fills: what passed last at each point, changes included.

    Raises:
        ValueError: if there is no such point, or what is put there has another shape than what was.
    """
    places, changes = points(model), dict(changes or {})
    kept = set(places if names is None and not changes else names or ())
    if unknown := sorted((kept | changes.keys()) - places.keys()):
        raise ValueError(f'There is no point "{unknown[0]}": there are {", ".join(places)}.')
    seen: dict[str, Tensor] = {}
    wanted: dict[HookedModule, dict[str, str]] = {}
    for name in kept | changes.keys():
        part, letter = places[name]
        wanted.setdefault(part, {})[letter] = name

    def watcher(full: dict[str, str], before: Hook | None) -> Hook:
        def watch(letter: str, X: Tensor) -> Tensor:
            X = X if before is None else before(letter, X)
            name = full.get(letter)
            if name in changes:
                X = _changed(name, changes[name], X)
            if name in kept:
                seen[name] = X
            return X

        return watch

    with ExitStack() as undo:
        for part, full in wanted.items():
            undo.callback(setattr, part, "hook", part.hook)
            part.hook = watcher(full, part.hook)
        yield seen


def points(model: nn.Module) -> dict[str, Place]:
    """All points of a model by name, lowest block first, each with the part that passes it."""
    stacks = {n: m for n, m in model.named_modules() if isinstance(m, BlockStack)}
    found: dict[str, Place] = {}
    for name, stack in stacks.items():
        stem = f"{name}." if len(stacks) > 1 else ""
        for l, block in enumerate(stack.blocks):
            found |= {f"{stem}{l}.{point}": place for point, place in _of_block(block).items()}
    return found


def _of_block(block: ResidualBlock) -> dict[str, Place]:
    across = block.cross_attention
    steps = [s for s in OF_BLOCKS if across is not None or not s.startswith("C")]
    found = {step: (block, step) for step in steps}
    found |= {step: (block.attention, step) for step in OF_ATTENTION}
    if across is not None:
        found |= {f"{step}_cross": (across, step) for step in OF_ATTENTION}
    return found


def _changed(name: str, change: Change, X: Tensor) -> Tensor:
    new = change if isinstance(change, Tensor) else change(X)
    if not isinstance(new, Tensor) or new.shape != X.shape:
        given = shape_of(new) if isinstance(new, Tensor) else repr(new)
        raise ValueError(
            f'At the point "{name}" passes a tensor of {shape_of(X)}, but what was to be put there '
            f"is {given}."
        )
    return new.to(X)


def zeroed(*heads: int) -> Callable[[Tensor], Tensor]:
    """A change that puts 0 in the place of everything, or of some heads' shares.

    Args:
        heads: which, counted from 0, at a point with an axis for heads; none for all that passes.

    Returns:
        A function for `watching`.

    Raises:
        ValueError: when the model runs, if there is no such head.
    """

    def change(X: Tensor) -> Tensor:
        if not heads:
            return torch.zeros_like(X)
        if missing := [c for c in heads if not 0 <= c < X.shape[-3]]:
            raise ValueError(f"There is no head {missing[0]}: there are {X.shape[-3]}, from 0 on.")
        return X.index_fill(-3, torch.tensor(heads, device=X.device), 0.0)

    return change
