"""Named points of a model, read or changed for as long as a context lasts.

    with torch.no_grad(), patch_activations(model) as seen:
        model(ids)
    seen["0.alpha"]                                    # the weights of block 0, counted from 0

    with patch_activations(model, ["1.T5"], {"0.head": zero_ablate(2)}) as seen:
        model(ids)                                     # without what head 2 of block 0 gathers

    with patch_activations(model, ["*.alpha"]) as seen:  # of every block
        model(ids)

A point is named by its block and by the book's letter: "0.T1" to "0.T5", "0.X" for what comes in
and "0.H" for what goes out; in attention "0.Q", "0.K", "0.V", "0.scores" (before the mask),
"0.alpha" and "0.head", each with an axis for the heads before its last two; where there is
cross-attention, "0.C1" to "0.C3", "0.Q_cross" and so on. The points of an encoder-decoder begin
with "encoder." or "decoder.". `*`, `?` and `[01]` in a name stand for what they do in names of
files.

Attention that has hooks computes its weights, which the fused kernel never does; that of blocks
where nobody asks goes on with the kernel, and outside of the context nothing is left of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor, format_shape
from slp_transformer.block import BlockStack, ResidualBlock
from slp_transformer.hooks import Hook, HookedModule

Patch = Callable[[Tensor], Tensor] | Tensor
HookLocation = tuple[HookedModule, str]

BLOCK_HOOK_POINTS = ("X", "T1", "T2", "T3", "C1", "C2", "C3", "T4", "T5", "H")
ATTENTION_HOOK_POINTS = ("Q", "K", "V", "scores", "alpha", "head")


@contextmanager
def patch_activations(
    model: nn.Module,
    names: Iterable[str] | Mapping[str, Patch] | None = None,
    patches: Mapping[str, Patch] | None = None,
) -> Iterator[dict[str, Tensor]]:
    """Keep what passes named points of a model, and change it, as long as the context lasts.

    Args:
        model: a model, or a stack.
        names: points to keep, or patterns of their names; all of them if neither names nor changes
            are given. A mapping is taken for `patches`.
        patches: for the points to be changed, a tensor to put there, or a function from what
            passes to what passes on.

    Yields:
        A dict that each forward pass fills: what passed last at each point, changes included.

    Raises:
        ValueError: if there is no such point, two mappings are given, or what is put there has
            another shape than what was.
    """
    if isinstance(names, Mapping):
        if patches is not None:
            raise ValueError("patch_activations takes one mapping of patches, not two: merge them.")
        names, patches = None, names
    places, given = find_hook_points(model), patches or {}

    def find(pattern: str) -> list[str]:
        if found := [name for name in places if fnmatchcase(name, pattern)]:
            return found
        raise ValueError(f'There is no point "{pattern}": there are {", ".join(places)}.')

    wished = ["*"] if names is None and not given else names or ()
    kept = {name for pattern in wished for name in find(pattern)}
    patches = {name: patch for pattern, patch in given.items() for name in find(pattern)}
    seen: dict[str, Tensor] = {}
    wanted: dict[HookedModule, dict[str, str]] = {}
    for name in kept | patches.keys():
        part, letter = places[name]
        wanted.setdefault(part, {})[letter] = name

    def make_hook(full: dict[str, str], before: Hook) -> Hook:
        def hook(letter: str, X: Tensor) -> Tensor:
            X = before(letter, X)
            name = full.get(letter, "")
            if name in patches:
                X = _apply_patch(name, patches[name], X)
            if name in kept:
                seen[name] = X
            return X

        return hook

    with ExitStack() as undo:
        for part, full in wanted.items():
            undo.callback(setattr, part, "hook", part.hook)
            part.hook = make_hook(full, part.hook)
        yield seen


def find_hook_points(model: nn.Module) -> dict[str, HookLocation]:
    """Return all points of a model by name, lowest block first, each with its module."""
    stacks = {n: m for n, m in model.named_modules() if isinstance(m, BlockStack)}
    found: dict[str, HookLocation] = {}
    for name, stack in stacks.items():
        for l, block in enumerate(stack.blocks):
            stem = f"{name}.{l}." if len(stacks) > 1 else f"{l}."
            if isinstance(block, ResidualBlock):
                found |= {stem + point: place for point, place in _iter_block_hook_points(block)}
    return found


def _iter_block_hook_points(block: ResidualBlock) -> Iterator[tuple[str, HookLocation]]:
    across = block.cross_attention
    for step in BLOCK_HOOK_POINTS:
        if across is not None or not step.startswith("C"):
            yield step, (block, step)
    for suffix, attention in (("", block.attention), ("_cross", across)):
        if isinstance(attention, HookedModule):
            yield from ((step + suffix, (attention, step)) for step in ATTENTION_HOOK_POINTS)


def _apply_patch(name: str, patch: Patch, X: Tensor) -> Tensor:
    new = patch if isinstance(patch, Tensor) else patch(X)
    if not isinstance(new, Tensor) or new.shape != X.shape:
        given = format_shape(new) if isinstance(new, Tensor) else repr(new)
        raise ValueError(
            f'At the point "{name}" passes a tensor of {format_shape(X)}, but what was to be put '
            f"there is {given}."
        )
    return new.to(X)  # one computed elsewhere may have another type or device


def zero_ablate(*heads: int) -> Callable[[Tensor], Tensor]:
    """A change that puts 0 in the place of everything, or of some heads' shares.

    Args:
        heads: which, counted from 0, at a point with an axis for heads; none for all that passes.

    Returns:
        A function for `patch_activations`.

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
