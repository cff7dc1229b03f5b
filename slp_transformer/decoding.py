"""Decoding: word after word, with any model of the package.

`generate` is what most readers want; `Reader` and `write` are what it is made of. How one word is
chosen is in `sampling`, beam search in `beam`, what can be asked for in `decoding_request`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer.beam import beam_search
from slp_transformer.cache import KVCache
from slp_transformer.decoding_request import (
    Ids,
    Model,
    check_generator,
    check_options,
    check_prompt,
    check_sources,
)
from slp_transformer.one_token import WORTH, OneToken, can_be_laid_out
from slp_transformer.sampling import Allowed, Generators, draw, filtered, greedy
from slp_transformer.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Generated:
    """What a model wrote after one prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        prompt_length: tokens of the prompt.
        ended: why it ends: "stop" after a stop token, "length" after `max_new_tokens`, "window"
            where the model has no more positions. To go on from there, begin anew with the end of
            the text as the prompt.
        score: of a beam search, see `slp_transformer.beam.normalised`; None otherwise.
    """

    ids: list[int]
    prompt_length: int
    ended: Literal["stop", "length", "window"]
    score: float | None = None

    @property
    def new(self) -> list[int]:
        """What was written, without the prompt."""
        return self.ids[self.prompt_length :]


def generate(
    model: Model,
    prompts: Sequence[Ids] | Int[Tensor, "batch N"],
    max_new_tokens: int | None = None,
    *,
    sources: Sequence[Ids] | Int[Tensor, "batch M"] | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    num_beams: int | None = None,
    length_penalty: float = 1.0,
    stop: int | Collection[int] = (),
    allowed: Allowed | None = None,
    generator: Generators = None,
    on_token: Callable[[int, int], None] | None = None,
    cached: bool = True,
) -> list[Generated]:
    """Write on after each prompt.

    Prompts may have different lengths. All stand at the same position at every step: where a short
    prompt's next word is chosen, a longer one's is given. So nothing is padded, masked or shifted,
    and each prompt gets the words that it would get alone.

    Nothing is written past the model's window of `context_length` positions: there the writing
    ends, and `Generated.ended` says so.

    Args:
        model: a language model, or an encoder-decoder.
        prompts: ids to go on from, at least one in each; for an encoder-decoder the beginning of
            the target.
        max_new_tokens: how many to write at the most; None for as many as the window holds.
        sources: for an encoder-decoder, one source for each prompt, without padding.
        temperature: τ of the softmax (7.50, 7.51); 0 takes the most probable word (7.49).
        top_k: draw from the k most probable words only.
        top_p: draw from the fewest words that together have this probability (8.48, 7.52).
        repetition_penalty: θ of Keskar et al. 2019; above 1 disfavours what has been said.
        num_beams: hypotheses of a beam search, which draws nothing; None for no beam search.
        length_penalty: α of a beam search, the power of the length that a log probability is
            divided by: 1 (13.16 in the Aug 2026 draft) or 0 (13.15), or what else works.
        stop: an id, or ids, after which to stop.
        allowed: called with the ids so far at each step; returns the ids that may come next (or
            booleans, one for each word), or None for any.
        generator: where random numbers come from, on the model's device; a list of them gives each
            prompt its own, so that its draws do not depend on the other prompts.
        on_token: called with a prompt's place in the batch and its new id, as soon as there is one.
        cached: use a key-value cache. Without one the words are the same, and come later.

    Returns:
        What was written after each prompt, in their order.

    Raises:
        ValueError: if a prompt is empty or leaves no room in the window, an id is outside the
            vocabulary, an option is out of range or does not go with another, or `allowed` allows
            nothing.
    """
    texts = [check_prompt(model, prompt) for prompt in prompts]
    check_sources(model, len(texts), sources)
    check_options(num_beams, temperature, top_k, top_p, max_new_tokens, on_token)
    device, window = device_of(model), model.config.context_length
    check_generator(device, len(texts), generator)
    ends = [min(len(text) + (max_new_tokens or window), window) for text in texts]
    stops = {stop} if isinstance(stop, int) else set(stop)
    options = {"theta": repetition_penalty, "allowed": allowed}

    def choose(u: Tensor, ids: Tensor, rows: list[int]) -> Tensor:
        if temperature == 0:
            return greedy(filtered(u, ids, **options))
        u = filtered(u, ids, tau=temperature, k=top_k, p=top_p, **options)
        each = isinstance(generator, Sequence)
        return draw(u, [generator[row] for row in rows] if each else generator)

    def result(text: list[int], ids: list[int], stopped: bool, score: float | None) -> Generated:
        cut = "length" if len(ids) - len(text) == max_new_tokens else "window"
        return Generated(ids, len(text), "stop" if stopped else cut, score)

    if not texts:
        return []
    with reading(model):
        reader = Reader(model, sources, max(ends) if cached else None)
        if num_beams is None:
            written = write(reader, choose, texts, ends, stops, on_token)
            return [result(t, *w, None) for t, w in zip(texts, written, strict=True)]

        def look(ids: Tensor, rows: list[int]) -> Tensor:
            u = reader(ids)
            if len(rows) < len(ids):
                u, ids = u[rows], ids[rows]
            return filtered(u, ids, **options)

        prompts = [torch.tensor(text, device=device) for text in texts]
        beams = {"width": num_beams, "alpha": length_penalty, "stop": stops}
        found = beam_search(look, reader.reorder, prompts, ends, **beams)
        return [
            result(t, h.ids, h.stopped, h.score) for t, (h, *_) in zip(texts, found, strict=True)
        ]


# --- Reading: ids in, the logits of the next word out -------------------------------------------


class Reader:
    """A model at work on a batch: gives the logits of the next word, reading only what is new.

    Attributes:
        model: the model.
        cache: what it has computed of the tokens it has read; None to read all of them each time.
    """

    def __init__(self, model: Model, sources: Sequence[Ids] | Tensor | None, room: int | None):
        """Begin, with an encoder-decoder by reading the sources.

        Args:
            model: the model.
            sources: what an encoder-decoder is to translate, one source for each row.
            room: tokens that the cache needs room for; None for no cache.

        Raises:
            ValueError: if a source is empty or too long, or has ids outside the vocabulary.
        """
        self.model, self.H_enc, self.source_mask = model, None, None
        self.cache = None if room is None else KVCache(room)
        self.one_token = None
        if sources is not None:
            source, self.source_mask = pad(sources, device_of(model))
            self.H_enc = model.encode(source, self.source_mask)

    def __call__(self, ids: Int[Tensor, "rows T"]) -> Float[Tensor, "rows V"]:
        """Logits of the word after `ids`, which begin with the ids of the call before."""
        new = ids if self.cache is None else ids[:, self.cache.length :]
        if self.cache is not None and new.shape[1] == 1 and self._laid_out():
            U = self.one_token(new, self.cache, self.H_enc, self.source_mask)[:, None]
        elif self.H_enc is None:
            U = self.model(new, cache=self.cache)
        else:
            U = self.model.decode(new, self.H_enc, self.source_mask, cache=self.cache)
        return U[:, -1].to(torch.promote_types(U.dtype, torch.float32))

    def _laid_out(self) -> bool:
        """Whether to read a single token in the way that is faster for it; makes ready to."""
        to_come = self.cache.capacity - self.cache.length
        if self.one_token is None and to_come >= WORTH and can_be_laid_out(self.model):
            self.one_token = OneToken(self.model)
        return self.one_token is not None

    def reorder(self, rows: list[int]) -> None:
        """Go on with other rows of the batch, or with some of them more than once."""
        rows = torch.tensor(rows, device=device_of(self.model))
        if self.cache is not None:
            self.cache.reorder(rows)
        if self.H_enc is not None:
            self.H_enc = self.H_enc[rows]
        if self.source_mask is not None:
            self.source_mask = self.source_mask[rows]


def pad(
    rows: Sequence[Ids] | Tensor, device: torch.device | str
) -> tuple[Int[Tensor, "batch M"], Float[Tensor, "batch 1 M"] | None]:
    """Sequences of any lengths as one batch, and the mask that hides what fills it up on the right.

    The mask goes by the lengths, so no id has to stand for padding. It is None where there is none.
    """
    lengths = [len(row) for row in rows]
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    mask = torch.zeros(len(lengths), 1, max(lengths))
    for b, row in enumerate(rows):
        ids[b, : lengths[b]] = torch.as_tensor(row)
        mask[b, :, lengths[b] :] = -math.inf
    return ids.to(device), None if min(lengths) == max(lengths) else mask.to(device)


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters live."""
    return next(model.parameters()).device


@contextmanager
def reading(model: nn.Module) -> Iterator[None]:
    """Without gradients and without dropout; afterwards every module is as it was.

    Inference mode is faster than no gradients, but a tensor made in it can never be learned from:
    parts of the reader's own that keep one would be spoilt.
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.inference_mode() if can_be_laid_out(model) else torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


# --- Writing ------------------------------------------------------------------------------------


def write(
    reader: Reader,
    choose: Callable[[Tensor, Tensor, list[int]], Tensor],
    texts: Sequence[list[int]],
    ends: Sequence[int],
    stops: Collection[int] = (),
    on_token: Callable[[int, int], None] | None = None,
) -> list[tuple[list[int], bool]]:
    """Read, choose the next word of every text that has been read to its end, and so on.

    Args:
        reader: gives logits of the word after the ids so far.
        choose: gives a word for each row of logits [rows × V], told also the ids so far [rows × T]
            and which texts these are.
        texts: what to go on from.
        ends: how long each text may become.
        stops: ids after which a text ends.
        on_token: told of each new word: its text, its id.

    Returns:
        Each text with what was written, and whether a stop token ended it.
    """
    ends, stopped, written = list(ends), [False] * len(texts), {}
    ids, _ = pad(texts, device_of(reader.model))
    ids = F.pad(ids, (0, max(ends) - ids.shape[1]))  # room for what is to be written
    growing, known = list(range(len(texts))), min(map(len, texts))
    row_of = {text: row for row, text in enumerate(growing)}  # those that are read
    while growing:
        u = reader(ids[:, :known])
        ready = [text for text in growing if len(texts[text]) <= known]
        here = slice(None) if len(ready) == len(row_of) else [row_of[text] for text in ready]
        words = choose(u[here], ids[here, :known], ready)
        ids[here, known] = words
        known += 1
        if stops or on_token is not None:  # else nobody makes the CPU wait for the words
            for text, word in zip(ready, words.tolist(), strict=True):
                if word in stops:
                    ends[text], stopped[text] = known, True
                if on_token is not None:
                    on_token(text, word)
        growing = [text for text in growing if known < ends[text]]
        known = max(known, min((len(texts[text]) for text in growing), default=known))
        if dropping_pays(len(growing), len(row_of)):
            written |= zip(row_of, ids.tolist(), strict=True)
            kept = [row_of[text] for text in growing]
            ids, row_of = ids[kept], {text: row for row, text in enumerate(growing)}
            reader.reorder(kept)
    written |= zip(row_of, ids.tolist(), strict=True)
    return [(written[text][:end], stopped[text]) for text, end in enumerate(ends)]


def dropping_pays(growing: int, read: int) -> bool:
    """Whether to read the growing rows alone from now on, and no longer those that have ended.

    That copies what the cache holds of the growing rows. Done whenever half of the rows have ended,
    it comes to less than one copy of the whole batch by the end, and what is copied is no more than
    what is no longer read at each step.
    """
    return 0 < growing <= read / 2
