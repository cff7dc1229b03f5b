"""Decoding: word after word, with any model of the package.

`generate` is what most readers want; `Reader` and `write` are what it is made of. How one word is
chosen is in `slp_transformer.sampling`, beam search in `beams`, what can be asked for in
`requests`, the texts being written in `drafts`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from slp_transformer._internal.eval_mode import evaluating, keeps_nothing
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache
from slp_transformer.generation.batch_state import Drafts
from slp_transformer.generation.beam_search import Hypothesis, beam_search
from slp_transformer.generation.cuda_graphs import CudaGraphStep, can_be_recorded
from slp_transformer.generation.encoder_cache import Sources
from slp_transformer.generation.request_checks import (
    Ids,
    Model,
    check_generator,
    check_options,
    check_prompt,
    check_sources,
)
from slp_transformer.generation.sharded_weights import with_sharded_weights
from slp_transformer.sampling import Allowed, Generators, draw, filtered, greedy


@dataclass(frozen=True)
class Generated:
    """What a model wrote after one prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        prompt_length: tokens of the prompt.
        ended: why it ends: "stop" after a stop token, "length" after `max_new_tokens`, "window"
            where the model has no more positions. To go on from there, begin anew with the end of
            the text as the prompt.
        score: of a beam search, see `generation.beam_search.normalised`; None otherwise.
        others: of a beam search, the other hypotheses that it found, best first.
    """

    ids: list[int]
    prompt_length: int
    ended: Literal["stop", "length", "window"]
    score: float | None = None
    others: tuple[Hypothesis, ...] = ()

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
        temperature: τ of the softmax (`temperature`); 0 takes the most probable word (`greedy`).
        top_k: draw from the k most probable words only.
        top_p: draw from the fewest words that together have this probability (`top-p`).
        repetition_penalty: θ of Keskar et al. 2019; above 1 disfavours what has been said.
        num_beams: hypotheses of a beam search, which draws nothing; None for no beam search.
        length_penalty: α of a beam search, the power of the length that a log probability is
            divided by: 1 (`beam-norm`) or 0 (`beam-score`), or what else works.
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

    def result(text: list[int], ids: list[int], stopped: bool, *found: Any) -> Generated:
        cut = "length" if len(ids) - len(text) == max_new_tokens else "window"
        return Generated(ids, len(text), "stop" if stopped else cut, *found)

    if not texts:
        return []
    with reading(model):
        reader = Reader(model, sources, max(ends) if cached else None)
        if num_beams is None:
            written = write(reader, choose, texts, ends, stops, on_token)
            reader.check_sound()
            return [result(t, *w) for t, w in zip(texts, written, strict=True)]

        def look(ids: Tensor, rows: list[int]) -> Tensor:
            ids = ids.to(device)
            u = reader(ids)
            if len(rows) < len(ids):
                u, ids = u[rows], ids[rows]
            return filtered(u, ids, **options)

        prompts = [torch.tensor(text, device="cpu") for text in texts]
        beams = {"width": num_beams, "alpha": length_penalty, "stop": stops}
        found = beam_search(look, reader.reorder, prompts, ends, **beams)
        return [
            result(t, h.ids, h.stopped, h.score, tuple(others))
            for t, (h, *others) in zip(texts, found, strict=True)
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
        self.model = model
        self.cache = None if room is None else KVCache(room)
        self.single: Model | None = None
        self.unsound = torch.zeros((), dtype=torch.bool, device=device_of(model))
        self.recording: CudaGraphStep | None = None
        cached = self.cache is not None
        self.sources = None if sources is None else Sources(model, sources, cached)

    def __call__(self, ids: Int[Tensor, "rows T"]) -> Float[Tensor, "rows V"]:
        """Logits of the word after `ids`, which begin with the ids of the call before."""
        new = ids if self.cache is None else ids[:, self.cache.length :]
        model = self.model if self.cache is None or new.shape[1] > 1 else self._one_token(len(new))
        if self._recorded(new):
            U = self.recording(new)
        elif self.sources is None:
            U = model(new, cache=self.cache)
        else:
            U = self.sources.decode(model, new, self.cache)
        u = U[:, -1].to(torch.promote_types(U.dtype, torch.float32))
        if u.device.type != "cpu":  # which would be waited for at each word
            self.unsound = self.unsound | u.isnan().any()
        elif not u.sum().isfinite():  # a sum is quick, and tells whether to look
            self.unsound = u.isnan().any()
            self.check_sound()
        return u

    def _one_token(self, rows: int) -> Model:
        """What to read single tokens with; made at the first of them."""
        if self.single is None:
            to_come = self.cache.capacity - self.cache.length
            self.single = with_sharded_weights(self.model, rows, to_come)
        return self.single

    def check_sound(self) -> None:
        """Refuse a model whose logits were not numbers.

        Raises:
            ValueError: if there was a NaN among those given so far.
        """
        if self.unsound:
            raise ValueError(
                "The model's logits are not numbers (NaN), so no word can follow: its weights are "
                "not sound."
            )

    def _recorded(self, new: Int[Tensor, "rows N"]) -> bool:
        """Whether there is a recording of the step that reads these; makes one if it pays."""
        if self.cache is None or new.shape[1] != 1:
            return False
        if self.recording is None or not self.recording.fits(new):
            pays = can_be_recorded(self.model, self.cache)
            self.recording = CudaGraphStep(self.model, self.cache, len(new)) if pays else None
        return self.recording is not None

    def reorder(self, rows: list[int]) -> None:
        """Go on with other rows of the batch, or with some of them more than once."""
        across = self.sources is not None and self.sources.reorder(rows, self.cache)
        if self.cache is not None:
            self.cache.reorder(torch.tensor(rows, device="cpu"), sources=across)


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters live."""
    return next(model.parameters()).device


@contextmanager
def reading(model: nn.Module) -> Iterator[None]:
    """Without gradients and without dropout; afterwards every module is as it was.

    Inference mode is faster than no gradients, but a tensor made in it can never be learned from:
    parts of the reader's own that keep one would be spoilt.
    """
    ours = all(map(keeps_nothing, model.modules()))
    with evaluating(model), torch.inference_mode() if ours else torch.no_grad():
        yield


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
    drafts = Drafts(texts, ends, device_of(reader.model))
    while drafts.growing:
        u = reader(drafts.read)
        here, ready = drafts.ready()
        words = choose(u[here], drafts.read[here], ready)
        drafts.put(here, words)
        if stops or on_token is not None:  # else nobody makes the CPU wait for the words
            for text, word in zip(ready, words.tolist(), strict=True):
                if word in stops:
                    drafts.stop(text)
                if on_token is not None:
                    on_token(text, word)
        if (kept := drafts.go_on()) is not None:
            reader.reorder(kept)
    return drafts.results()
