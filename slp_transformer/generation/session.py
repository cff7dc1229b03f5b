"""Reading with a model, step by step: ids in, the logits of the next word out."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer._internal.shape_types import Float, Int, Tensor, TokenIds
from slp_transformer.cache import KVCache
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.recorded_steps import record_if_faster
from slp_transformer.generation.sharded_weights import shard_weights_if_faster
from slp_transformer.hooks import has_no_hooks
from slp_transformer.language_model import TransformerLM

Model = TransformerLM | EncoderDecoder
OnToken = Callable[[int, int], bool | None]
"""Called with the place of a text and the id of its new word; True ends the text."""


def pad_right(
    rows: Sequence[TokenIds] | Tensor, device: torch.device | str
) -> tuple[Int[Tensor, "batch M"], Float[Tensor, "batch 1 M"] | None]:
    """Return sequences of any lengths as one batch, and the mask that hides the padding.

    The mask goes by the lengths, so no id has to stand for padding. It is None where there is none.
    """
    lengths = [len(row) for row in rows]
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long, device="cpu")
    mask = torch.zeros(len(lengths), 1, max(lengths), device="cpu")
    for b, row in enumerate(rows):
        ids[b, : lengths[b]] = torch.as_tensor(row, device="cpu")
        mask[b, :, lengths[b] :] = -math.inf
    return ids.to(device), None if min(lengths) == max(lengths) else mask.to(device)


class DecoderSession:
    """A model at work on a batch: gives the logits of the next word, reading only what is new.

    Attributes:
        model: the model.
        cache: the keys and values of the tokens it has read; None to read all of them each time.
        single_token_model: what reads single tokens, a model or a step that is recorded; None
            before the first.
        has_nan: whether there was a NaN among the logits.
        H_enc: with an encoder-decoder, its encoder's output [rows × M × d]; empty without one.
        source_mask: hides the padding of sources; None where there is none.
        source_of_row: with an encoder-decoder, for each row the source that it reads.
    """

    def __init__(
        self, model: Model, sources: Sequence[TokenIds] | Tensor | None, cache_capacity: int | None
    ):
        """Begin, with an encoder-decoder by reading the sources.

        Args:
            model: the model.
            sources: what an encoder-decoder is to translate, one source for each row.
            cache_capacity: tokens that the cache needs room for; None for no cache.

        Raises:
            ValueError: if a source is empty or too long, or has ids outside the vocabulary.
        """
        self.model: Model = model
        device = model_device(model)
        self.cache: KVCache | None = None if cache_capacity is None else KVCache(cache_capacity)
        self.single_token_model: Any = None
        self.has_nan: Tensor = torch.zeros((), dtype=torch.bool, device=device)
        self.H_enc: Tensor = torch.empty(0, device=device)
        self.source_mask: Tensor | None = None
        self.source_of_row: list[int] = []
        if isinstance(model, EncoderDecoder) and sources is not None:
            source, self.source_mask = pad_right(sources, device)
            self.H_enc = model.encode(source, self.source_mask)
            self.source_of_row = list(range(len(source)))

    def __call__(self, ids: Int[Tensor, "rows T"]) -> Float[Tensor, "rows V"]:
        """Return the logits of the word after `ids`, which begin with the ids of the last call."""
        return self.last_logits(ids, 1)[:, 0]

    def last_logits(self, ids: Int[Tensor, "rows T"], count: int) -> Float[Tensor, "rows count V"]:
        """Return the logits of the words after each of the last few of `ids`."""
        cache, model = self.cache, self.model
        new = ids if cache is None else ids[:, cache.length :]
        if cache is not None and new.shape[1] == 1:
            if self.single_token_model is None:
                new_tokens = (cache.capacity or 0) - cache.length
                recorded = record_if_faster(model, cache, new_tokens)
                self.single_token_model = recorded or shard_weights_if_faster(
                    model, len(new), new_tokens
                )
            model = self.single_token_model
        if isinstance(model, EncoderDecoder):
            U = model.decode(new, self.H_enc, self.source_mask, cache=cache)
        else:
            U = model(new, cache=cache)
        # In bfloat16 neighbors among likely words would have equal probabilities.
        u = U[:, -count:].to(torch.promote_types(U.dtype, torch.float32))
        self.has_nan = self.has_nan | u.isnan().any()
        if u.device.type == "cpu":  # elsewhere every word would wait for the device
            self.check_no_nan()
        return u

    def check_no_nan(self) -> None:
        """Refuse a model whose logits were not numbers.

        Raises:
            ValueError: if there was a NaN among those given so far.
        """
        if self.has_nan:
            raise ValueError(
                "The model's logits are not numbers (NaN), so no word can follow: its weights are "
                "not sound."
            )

    def truncate(self, length: int) -> None:
        """Go on from the first `length` ids alone."""
        if self.cache is not None:
            self.cache.truncate(length)

    def reorder(self, rows: list[int]) -> None:
        """Go on with other rows of the batch, or with some of them more than once."""
        moved = False
        if isinstance(self.model, EncoderDecoder):
            sources = [self.source_of_row[row] for row in rows]
            moved = sources != self.source_of_row
            if moved:
                self.source_of_row, self.H_enc = sources, self.H_enc[rows]
                self.source_mask = None if self.source_mask is None else self.source_mask[rows]
        if self.cache is not None:
            self.cache.reorder(torch.tensor(rows, device="cpu"), include_sources=moved)


def model_device(model: nn.Module) -> torch.device:
    """Return the device that the model's parameters are on."""
    return next(model.parameters()).device


@contextmanager
def inference_context(model: nn.Module) -> Iterator[None]:
    """Turn gradients and dropout off; afterwards every module is as it was.

    Inference mode is faster than no gradients, but a tensor made in it can never be learned from:
    parts of the reader's own that keep one would be spoilt.
    """
    # Tensors of the inference mode cannot be used in a graph later, as a hook's owner may want to.
    ours = all(map(has_no_hooks, model.modules()))
    with eval_mode(model), torch.inference_mode() if ours else torch.no_grad():
        yield
