"""The key-value cache: what attention has computed of earlier tokens, kept for those to come."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from slp_transformer.shapes import Float, Int, Tensor, shape_of


@dataclass
class _Room:
    """One attention layer's keys and values, and how many of the rows are taken."""

    K: Tensor
    V: Tensor
    taken: int = 0


class KVCache:
    r"""The keys and values of all tokens so far, so that a new token computes only its own.

    $$\mathbf A=\mathrm{softmax}\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V$$

    with Q the new tokens' rows alone, and K and V the rows of every token so far. That changes
    nothing: the key and the value of a token depend on it and on earlier ones only, so they are
    the same whatever comes later.

    Source: `kv-attn` (8.53, 7.59).

    One cache serves a whole model: each attention layer has rows of its own in it. They are set
    aside once, at the layer's first tokens, then written in place and read as a slice; nothing is
    ever concatenated.

        cache = KVCache(model.config.context_length)
        with torch.no_grad():
            U = model(prompt, cache=cache)         # the prompt in one pass
            U = model(next_token, cache=cache)     # then only what is new

    Attributes:
        capacity: tokens there is room for; None makes room for the first tokens written and no
            more.
    """

    def __init__(self, capacity: int | None = None):
        """Make an empty cache.

        Args:
            capacity: tokens to make room for.

        Raises:
            ValueError: if the capacity is not a positive whole number.
        """
        whole = isinstance(capacity, int) and not isinstance(capacity, bool)
        if capacity is not None and not (whole and capacity >= 1):
            raise ValueError(
                f"capacity is the number of tokens to make room for, 1 or more, not {capacity!r}."
            )
        self.capacity = capacity
        self._rooms: dict[nn.Module, _Room] = {}

    @property
    def length(self) -> int:
        """Tokens that the whole model has read: the position of the next one, counted from 0."""
        return min((room.taken for room in self._rooms.values()), default=0)

    @cached_property
    def source(self) -> "KVCache":
        """The keys and values that cross-attention made of the source, once and for all."""
        return KVCache()

    def held(self, layer: nn.Module) -> int:
        """Tokens of which this attention layer has the keys and values."""
        room = self._rooms.get(layer)
        return 0 if room is None else room.taken

    def extend(
        self,
        layer: nn.Module,
        K: Float[Tensor, "*batch A N d_k"],
        V: Float[Tensor, "*batch A N d_v"],
    ) -> tuple[Float[Tensor, "*batch A T d_k"], Float[Tensor, "*batch A T d_v"]]:
        """Write the keys and values of the next N tokens, and read those of all T so far.

        Args:
            layer: the attention layer that they belong to.
            K: the new keys, head by head.
            V: the new values.

        Returns:
            All keys and all values; views of the cache, not copies.

        Raises:
            ValueError: if there is no room, the batch is not the one that the cache was begun
                with, or gradients are being recorded.
        """
        if K.requires_grad:
            raise ValueError(
                "A cache is written in place, so no gradient can flow through it: call the model "
                "under torch.no_grad()."
            )
        room = self._rooms.get(layer) or self._set_aside(layer, K, V)
        end = room.taken + K.shape[-2]
        if end > room.K.shape[-2] or K.shape[:-2] != room.K.shape[:-2]:
            raise ValueError(_refusal(room, K))
        room.K[..., room.taken : end, :] = K
        room.V[..., room.taken : end, :] = V
        room.taken = end
        return room.K[..., :end, :], room.V[..., :end, :]

    def _set_aside(self, layer: nn.Module, K: Tensor, V: Tensor) -> _Room:
        capacity = self.capacity or K.shape[-2]
        room = _Room(*(Z.new_empty(*Z.shape[:-2], capacity, Z.shape[-1]) for Z in (K, V)))
        self._rooms[layer] = room
        return room

    def reorder(self, rows: Int[Tensor, "sequences"]) -> None:
        """Let sequence b of the batch go on from what sequence `rows[b]` has read, as beams do.

        While their number stays the same, only those that move are copied.

        Args:
            rows: old places in the batch; there may be more or fewer than before.

        Raises:
            IndexError: if there is no such sequence.
        """
        moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(-1)
        for room in [*self._rooms.values(), *self.source._rooms.values()]:
            if len(rows) != len(room.K):
                room.K, room.V = room.K[rows], room.V[rows]
                continue
            for Z in (room.K, room.V):
                used = Z[..., : room.taken, :]
                used[moved] = used[rows[moved]]


def _refusal(room: _Room, K: Tensor) -> str:
    batch, capacity = room.K.shape[:-2], room.K.shape[-2]
    if K.shape[:-2] != batch:
        return (
            f"The cache was begun with [... × heads] of {shape_of(batch)}, but these keys have "
            f"{shape_of(K.shape[:-2])}: one cache serves one batch."
        )
    return (
        f"The cache has room for {capacity} tokens and holds {room.taken}: {K.shape[-2]} more do "
        "not fit."
    )
