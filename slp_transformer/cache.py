"""The key-value cache: what attention has computed of earlier tokens, kept for those to come."""

from collections.abc import Iterator

import torch

from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.shape_types import Float, Int, Tensor, format_shape


class LayerCache:
    """One attention layer's keys and values.

    Rows that `update` writes count from the next `commit` on. So a forward pass that breaks off
    half-way leaves the cache as it was.

    Attributes:
        capacity: tokens there is room for; None makes more room whenever it is needed.
        length: tokens of which the keys and values are kept.
        K: the keys [... × A × room × d_k]; None before the first.
        V: the values [... × A × room × d_v].
    """

    def __init__(self, capacity: int | None = None):
        """Make an empty cache."""
        self.capacity: int | None = capacity
        self.length: int = 0
        self._uncommitted_length = 0
        self.K: Tensor | None = None
        self.V: Tensor | None = None

    def update(
        self, K: Float[Tensor, "*batch A N d_k"], V: Float[Tensor, "*batch A N d_v"]
    ) -> tuple[Float[Tensor, "*batch A T d_k"], Float[Tensor, "*batch A T d_v"]]:
        """Write the keys and values of the next N tokens, and read those of all T so far.

        Args:
            K: the new keys, head by head.
            V: the new values.

        Returns:
            All keys and all values; views of the cache, not copies.

        Raises:
            ValueError: if there is no room, the batch is not the one that the cache was begun
                with, or gradients are being recorded.
        """
        T = self.length + K.shape[-2]
        self.K, self.V = self._make_room(K, V, T)
        self.K[..., self.length : T, :] = K
        self.V[..., self.length : T, :] = V
        self._uncommitted_length = T
        return self.K[..., :T, :], self.V[..., :T, :]

    def commit(self) -> None:
        """Count the rows written since the last commit."""
        self.length = self._uncommitted_length

    def reorder(self, rows: Int[Tensor, "sequences"]) -> None:
        """Make sequence b of the batch continue sequence `rows[b]`.

        While their number stays the same, only those that move are copied.

        Raises:
            IndexError: if there is no such sequence.
        """
        if self.K is None or self.V is None:
            return
        # On the CPU, where beam search chose the rows: to count those that move on a GPU would make
        # the CPU wait for it at every token.
        rows, device = rows.cpu(), self.K.device
        if len(rows) != len(self.K):
            self.K, self.V = self.K[rows.to(device)], self.V[rows.to(device)]
            return
        moved = (rows != torch.arange(len(rows), device="cpu")).nonzero().squeeze(-1)
        if not len(moved):
            return
        begun, moved = rows[moved].to(device), moved.to(device)
        for Z in (self.K, self.V):
            used = Z[..., : self.length, :]
            used.index_copy_(0, moved, used.index_select(0, begun))

    def _make_room(self, K: Tensor, V: Tensor, T: int) -> tuple[Tensor, Tensor]:
        """Return rows for T tokens, the first of them as they were."""
        self._check(K, T)
        if self.K is not None and self.V is not None and T <= self.K.shape[-2]:
            return self.K, self.V
        # Twice the room each time: so on average a token is copied once, however long the text.
        rows = self.capacity or max(T, 2 * self.length)
        new_K = _reallocate(K, self.K, rows, self.length)
        return new_K, _reallocate(V, self.V, rows, self.length)

    def _check(self, K: Tensor, T: int) -> None:
        """Refuse keys that make T tokens.

        Raises:
            ValueError: if there may not be so many, or these are not the cache's sequences.
        """
        if K.requires_grad:
            raise ValueError(
                "A cache is written in place, so no gradient can flow through it: call the model "
                "under torch.no_grad()."
            )
        if self.K is not None and K.shape[:-2] != self.K.shape[:-2]:
            raise ValueError(
                f"The cache was begun with [... × heads] of {format_shape(self.K.shape[:-2])}, but "
                f"these keys have {format_shape(K.shape[:-2])}: one cache serves one batch."
            )
        if self.capacity is not None and T > self.capacity:
            raise ValueError(
                f"The cache has room for {self.capacity} tokens and holds {self.length}: "
                f"{K.shape[-2]} more do not fit."
            )


def _reallocate(Z: Tensor, old: Tensor | None, allocated: int, length: int) -> Tensor:
    """Return so many rows like those of Z, the first of them as they were."""
    new = Z.new_empty(*Z.shape[:-2], allocated, Z.shape[-1])
    if old is not None:
        new[..., :length, :] = old[..., :length, :]
    return new


class KVCache:
    r"""The keys and values of all tokens so far, so that a new token computes only its own.

    $$\mathbf A=\mathrm{softmax}\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V$$

    with Q the new tokens' rows alone, and K and V the rows of every token so far. That changes
    nothing: the key and the value of a token depend on it and on earlier ones only, so they are
    the same whatever comes later.

    Source: `kv-attn`.

    One cache serves a whole model: `cache[l]` is that of the stack's block l, counted from 0. Rows
    are set aside once, at the first tokens, then written in place and read as a slice; nothing is
    ever concatenated.

        cache = KVCache(model.config.context_length)
        with torch.no_grad():
            U = model(prompt, cache=cache)         # the prompt in one pass
            U = model(next_token, cache=cache)     # then only what is new

    Attributes:
        capacity: tokens there is room for; None makes more room whenever it is needed.
    """

    def __init__(self, capacity: int | None = None):
        """Make an empty cache.

        Args:
            capacity: tokens to make room for.

        Raises:
            ValueError: if the capacity is not a positive whole number.
        """
        if capacity is not None:
            check_positive_sizes(capacity=capacity)
        self.capacity = capacity
        self._blocks: list[BlockCache] = []

    @property
    def length(self) -> int:
        """Tokens that the whole model has read: the position of the next one, counted from 0."""
        return self._blocks[0].self_attention.length if self._blocks else 0

    def __getitem__(self, l: int) -> "BlockCache":
        """Return the cache of block l."""
        while len(self._blocks) <= l:
            self._blocks.append(BlockCache(self.capacity))
        return self._blocks[l]

    def __iter__(self) -> Iterator["BlockCache"]:
        """Return those that there are, the lowest block's first."""
        return iter(self._blocks)

    def commit(self) -> None:
        """Count the rows that the blocks have written; the stack calls this after the last one."""
        for block in self._blocks:
            block.self_attention.commit()
            block.cross_attention.commit()

    def truncate(self, length: int) -> None:
        """Forget all tokens after the first `length`, as where a guess was wrong."""
        for block in self._blocks:  # not of cross-attention, whose rows are the source's
            block.self_attention.length = min(length, block.self_attention.length)

    def reorder(self, rows: Int[Tensor, "sequences"], *, include_sources: bool = True) -> None:
        """Make sequence b of the batch continue sequence `rows[b]`, as beams do.

        Args:
            rows: old places in the batch; there may be more or fewer than before.
            include_sources: whether the rows of sources move as well. They need not where every
                sequence goes on from one with the same source.

        Raises:
            IndexError: if there is no such sequence.
        """
        for block in self._blocks:
            block.self_attention.reorder(rows)
            if include_sources:
                block.cross_attention.reorder(rows)


class BlockCache:
    """The cached keys and values of one block's attention layers.

    Attributes:
        self_attention: of self-attention, as many rows as there are tokens.
        cross_attention: of cross-attention: the source's rows, made once and for all.
    """

    def __init__(self, capacity: int | None = None):
        """Make empty caches."""
        self.self_attention: LayerCache = LayerCache(capacity)
        self.cross_attention: LayerCache = LayerCache()  # a source has a length of its own
