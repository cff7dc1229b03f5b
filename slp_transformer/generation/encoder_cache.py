"""The encoder's output for cross-attention: each source once, however many rows read it.

The beams of a sentence ask the same keys and values. So they are arranged as its queries, [sources
× queries × d], and nothing of a source is repeated, moved or made anew.
"""

import copy
from collections.abc import Sequence

import torch
from torch import nn

from slp_transformer._internal.eval_mode import has_no_hooks
from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache, LayerCache
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.batch_state import pad_right, should_drop_rows
from slp_transformer.generation.request_checks import TokenIds
from slp_transformer.multi_head import MultiHeadAttention, join_heads, split_heads


class EncoderOutputs:
    """The sources of a batch, and which row reads which.

    Attributes:
        H_enc: what the encoder made of each.
        mask: the mask that hides their padding; None if there is none.
        source_of_row: for each row the source that it reads.
        shared: whether `H_enc` has each source once, rather than once for each row.
    """

    def __init__(self, model: EncoderDecoder, sources: Sequence[TokenIds] | Tensor, cached: bool):
        """Have the encoder read them, each for one row at first.

        Raises:
            ValueError: if a source is too long, or has ids outside the vocabulary.
        """
        source, self.mask = pad_right(sources, next(model.parameters()).device)
        self.H_enc = model.encode(source, self.mask)
        self.source_of_row = list(range(len(source)))
        self.shared = cached and supports_shared_cross_attention(model)
        self._twins: dict[nn.Module, nn.Module] = {}
        self._assign_slots()

    def decode(
        self, model: EncoderDecoder, new: Int[Tensor, "rows N"], cache: KVCache | None
    ) -> Float[Tensor, "rows N V"]:
        """Return the result of `model.decode` for rows that read these sources."""
        if not self.shared or cache.length == 0:
            return model.decode(new, self.H_enc, self.mask, cache=cache)
        if model not in self._twins:
            self._twins[model] = with_shared_cross_attention(model, self)
        never_read = self.H_enc[:1].expand(len(new), -1, -1)  # the cache has its keys and values
        return self._twins[model].decode(new, never_read, cache=cache)

    def reorder(self, rows: list[int], cache: KVCache | None) -> bool:
        """Go on with other rows, or with some of them more than once.

        Returns:
            Whether what the cache holds of the sources has to be reordered likewise.
        """
        before, self.source_of_row = self.source_of_row, [self.source_of_row[row] for row in rows]
        if self.source_of_row == before:
            return False
        kept = sorted(set(self.source_of_row))
        if not self.shared:
            self._keep_sources(rows)
        elif should_drop_rows(len(kept), len(self.H_enc)):
            self._keep_sources(kept)
            cache.reorder_sources(torch.tensor(kept, device="cpu"))
            self.source_of_row = [kept.index(source) for source in self.source_of_row]
        self._assign_slots()
        return not self.shared

    def _keep_sources(self, kept: list[int]) -> None:
        self.H_enc = self.H_enc[kept]
        self.mask = None if self.mask is None else self.mask[kept]

    # --- Rows as queries ----------------------------------------------------------------------

    def _assign_slots(self) -> None:
        """Give each row a place next to the others that read its source, as many for each."""
        taken, places = [0] * len(self.H_enc), []
        for source in self.source_of_row if self.shared else ():
            places.append((source, taken[source]))
            taken[source] += 1
        self._width = max(taken)
        flat = [source * self._width + place for source, place in places]
        every = flat == list(range(len(taken) * self._width))
        self._slots = None if every else torch.tensor(flat, device=self.H_enc.device)

    def group_rows(self, Z: Float[Tensor, "rows N k"]) -> Float[Tensor, "sources queries k"]:
        """Put rows together that read the same source; zeros where it has fewer than others."""
        if self._slots is not None:
            rows, Z = Z, Z.new_zeros(len(self.H_enc) * self._width, *Z.shape[1:])
            Z[self._slots] = rows
        return Z.reshape(len(self.H_enc), -1, Z.shape[-1])

    def ungroup_rows(self, Z: Float[Tensor, "sources queries k"]) -> Float[Tensor, "rows N k"]:
        """Return the gathered values, one row per query again."""
        Z = Z.reshape(len(self.H_enc) * self._width, -1, Z.shape[-1])
        return Z if self._slots is None else Z[self._slots]


class SharedCrossAttention(nn.Module):
    """Cross-attention whose keys and values are all in the cache, one for each source."""

    def __init__(self, mha: MultiHeadAttention, sources: EncoderOutputs):
        """Look at sources by another's matrices."""
        super().__init__()
        self.mha, self.sources, self.W_Q = mha, sources, mha.W_Q

    def forward(
        self, X: Float[Tensor, "rows N d"], *, cache: LayerCache, **unused_inputs
    ) -> Float[Tensor, "rows N d"]:
        """Attend from each row to its source."""
        Q = split_heads(self.sources.group_rows(X @ self.W_Q), self.mha.num_heads)
        head, _ = self.mha._attend(Q, cache.K, cache.V, self.sources.mask, False)
        return self.sources.ungroup_rows(join_heads(head)) @ self.mha.W_O


def with_shared_cross_attention(model: EncoderDecoder, sources: EncoderOutputs) -> EncoderDecoder:
    """The same model, but for its cross-attention, which reads sources in the cache."""
    blocks = [
        with_submodules(block, cross_attention=SharedCrossAttention(block.cross_attention, sources))
        for block in model.decoder.blocks
    ]
    return with_submodules(
        model, decoder=with_submodules(model.decoder, blocks=nn.ModuleList(blocks))
    )


def with_submodules(module: nn.Module, **parts: nn.Module) -> nn.Module:
    """A module with other parts; what is not named is the same."""
    other = copy.copy(module)
    other._modules = module._modules | parts
    return other


def supports_shared_cross_attention(model: nn.Module) -> bool:
    """Tell if rows can share a source as its queries: in the book's model, without hooks."""
    if not fast_paths_enabled() or type(model) is not EncoderDecoder or "decode" in vars(model):
        return False
    own = all(type(block.cross_attention) is MultiHeadAttention for block in model.decoder.blocks)
    return own and all(map(has_no_hooks, model.modules()))
