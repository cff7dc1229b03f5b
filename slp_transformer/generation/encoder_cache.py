"""What the rows of a batch look across at: every source once, however many rows read it.

The beams of a sentence ask the same keys and values. So they are laid out as its queries, [sources
× queries × d], and nothing of a source is repeated, moved or made anew.
"""

import copy
from collections.abc import Sequence

import torch
from torch import nn

from slp_transformer._internal.eval_mode import keeps_nothing
from slp_transformer._internal.reference_mode import switched_on
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache, LayerCache
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.batch_state import dropping_pays, pad
from slp_transformer.generation.request_checks import Ids
from slp_transformer.multi_head import MultiHeadAttention, join_heads, split_heads


class Sources:
    """The sources of a batch, and which row reads which.

    Attributes:
        H_enc: what the encoder made of each.
        mask: the mask that hides their padding; None if there is none.
        reads: for each row the source that it reads.
        shared: whether `H_enc` has each source once, rather than once for each row.
    """

    def __init__(self, model: EncoderDecoder, sources: Sequence[Ids] | Tensor, cached: bool):
        """Have the encoder read them, each for one row at first.

        Raises:
            ValueError: if a source is too long, or has ids outside the vocabulary.
        """
        source, self.mask = pad(sources, next(model.parameters()).device)
        self.H_enc = model.encode(source, self.mask)
        self.reads = list(range(len(source)))
        self.shared = cached and can_share(model)
        self._twins: dict[nn.Module, nn.Module] = {}
        self._lay_out()

    def decode(
        self, model: EncoderDecoder, new: Int[Tensor, "rows N"], cache: KVCache | None
    ) -> Float[Tensor, "rows N V"]:
        """What `model.decode` gives for rows that read these sources."""
        if not self.shared or cache.length == 0:
            return model.decode(new, self.H_enc, self.mask, cache=cache)
        if model not in self._twins:
            self._twins[model] = looking_across(model, self)
        never_read = self.H_enc[:1].expand(len(new), -1, -1)  # the cache has its keys and values
        return self._twins[model].decode(new, never_read, cache=cache)

    def reorder(self, rows: list[int], cache: KVCache | None) -> bool:
        """Go on with other rows, or with some of them more than once.

        Returns:
            Whether what the cache holds of the sources has to be reordered likewise.
        """
        before, self.reads = self.reads, [self.reads[row] for row in rows]
        if self.reads == before:
            return False
        kept = sorted(set(self.reads))
        if not self.shared:
            self._keep(rows)
        elif dropping_pays(len(kept), len(self.H_enc)):
            self._keep(kept)
            cache.reorder_sources(torch.tensor(kept, device="cpu"))
            self.reads = [kept.index(source) for source in self.reads]
        self._lay_out()
        return not self.shared

    def _keep(self, kept: list[int]) -> None:
        self.H_enc = self.H_enc[kept]
        self.mask = None if self.mask is None else self.mask[kept]

    # --- Rows as queries ----------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Give each row a place: beside the others that read its source, as many for each."""
        taken, places = [0] * len(self.H_enc), []
        for source in self.reads if self.shared else ():
            places.append((source, taken[source]))
            taken[source] += 1
        self._width = max(taken)
        flat = [source * self._width + place for source, place in places]
        every = flat == list(range(len(taken) * self._width))
        self._places = None if every else torch.tensor(flat, device=self.H_enc.device)

    def gather(self, Z: Float[Tensor, "rows N k"]) -> Float[Tensor, "sources queries k"]:
        """Put rows together that read the same source; zeros where it has fewer than others."""
        if self._places is not None:
            rows, Z = Z, Z.new_zeros(len(self.H_enc) * self._width, *Z.shape[1:])
            Z[self._places] = rows
        return Z.reshape(len(self.H_enc), -1, Z.shape[-1])

    def scatter(self, Z: Float[Tensor, "sources queries k"]) -> Float[Tensor, "rows N k"]:
        """What was gathered, in rows again."""
        Z = Z.reshape(len(self.H_enc) * self._width, -1, Z.shape[-1])
        return Z if self._places is None else Z[self._places]


class Across(nn.Module):
    """Cross-attention whose keys and values are all in the cache, one for each source."""

    def __init__(self, mha: MultiHeadAttention, sources: Sources):
        """Look at sources by another's matrices."""
        super().__init__()
        self.mha, self.sources, self.W_Q = mha, sources, mha.W_Q

    def forward(
        self, X: Float[Tensor, "rows N d"], *, cache: LayerCache, **never_read
    ) -> Float[Tensor, "rows N d"]:
        """Attend from each row to its source."""
        Q = split_heads(self.sources.gather(X @ self.W_Q), self.mha.num_heads)
        head, _ = self.mha._attend(Q, cache.K, cache.V, self.sources.mask, False)
        return self.sources.scatter(join_heads(head)) @ self.mha.W_O


def looking_across(model: EncoderDecoder, sources: Sources) -> EncoderDecoder:
    """The same model, but for its cross-attention, which reads sources in the cache."""
    blocks = [
        with_parts(block, cross_attention=Across(block.cross_attention, sources))
        for block in model.decoder.blocks
    ]
    return with_parts(model, decoder=with_parts(model.decoder, blocks=nn.ModuleList(blocks)))


def with_parts(module: nn.Module, **parts: nn.Module) -> nn.Module:
    """A module with other parts; what is not named is the same."""
    other = copy.copy(module)
    other._modules = module._modules | parts
    return other


def can_share(model: nn.Module) -> bool:
    """Whether the rows of a source can be its queries: in the book's own model, if nobody looks."""
    if not switched_on() or type(model) is not EncoderDecoder or "decode" in vars(model):
        return False
    own = all(type(block.cross_attention) is MultiHeadAttention for block in model.decoder.blocks)
    return own and all(map(keeps_nothing, model.modules()))
