"""A decoder alone, on the tokens of the encoder-decoder: it reads all notes, then writes places.

What the encoder would read comes first in the row, what the decoder would read comes after it, and
one causal stack reads both (as the GPT-2 beside the Fretting-Transformer: Hamberger et al. 2025).
It is there to be compared with.
"""

from collections.abc import Sequence

import torch
from torch import nn

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache
from slp_transformer.data.batches import Batch
from slp_transformer.guitar.fingering.translating import PAD, FingeringPairs
from slp_transformer.language_model import TransformerLM
from slp_transformer.loss import IGNORED
from slp_transformer.masks import padding_mask


class OneRow(FingeringPairs):
    """Windows of notes with their places, as rows for a language model."""

    def batch(
        self, cuts: Sequence[tuple[int, int]], generator: torch.Generator | None = None
    ) -> Batch:
        """Windows that begin at a note of a piece; only places are to be foretold."""
        pairs = super().batch(cuts, generator)
        source, reads, _ = pairs.inputs
        ids, mask = one_row(source, reads, self.window)
        nothing = torch.full((len(ids), self.window), IGNORED)
        return Batch((ids, mask), torch.cat([nothing, pairs.targets], dim=1))


def one_row(
    source: Int[Tensor, "batch M"], reads: Int[Tensor, "batch N"], window: int
) -> tuple[Int[Tensor, "batch T"], Float[Tensor, "batch 1 T"]]:
    """Notes, filled up to the window, then what a decoder reads; and the mask that hides padding.

    Args:
        source: notes as tokens, padded.
        reads: notes and places in turn.
        window: notes of a full window, M or more.
    """
    source = nn.functional.pad(source, (0, window - source.shape[1]), value=PAD)
    mask = nn.functional.pad(padding_mask(source, PAD), (0, reads.shape[1]))
    return torch.cat([source, reads], dim=1), mask


class DecoderAlone(nn.Module):
    """A language model in the place of an encoder-decoder, for `writing.translate_all`.

    Attributes:
        model: the language model; its window has room for three tokens a note.
        window: notes in a window.
    """

    def __init__(self, model: TransformerLM):
        """Take a model that has learned from `OneRow`."""
        super().__init__()
        self.model, self.window = model, model.config.context_length // 3

    def encode(
        self, source: Int[Tensor, "batch M"], mask: Float[Tensor, "..."] | None = None
    ) -> Int[Tensor, "batch M"]:
        """The notes as they are: they are read together with the first places."""
        return source

    def decode(
        self,
        reads: Int[Tensor, "batch N"],
        source: Int[Tensor, "batch M"],
        source_mask: Float[Tensor, "..."] | None = None,
        *,
        cache: KVCache,
    ) -> Float[Tensor, "batch N V"]:
        """Logits for the token after each of what is read; with it, at first, all notes."""
        before = max(0, cache.length - self.window)
        seen = reads.new_zeros(len(reads), before + reads.shape[1])
        ids, mask = one_row(source, torch.cat([seen[:, :before], reads], dim=1), self.window)
        U = self.model(ids[:, cache.length :], mask, cache=cache)
        return U[:, -reads.shape[1] :]
