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

from slp_transformer._internal.eval_mode import eval_mode, has_no_hooks
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache
from slp_transformer.generation.batch_state import BatchState
from slp_transformer.generation.beam_search import Hypothesis, beam_search
from slp_transformer.generation.cuda_graphs import CudaGraphStep, supports_cuda_graph
from slp_transformer.generation.encoder_cache import EncoderOutputs
from slp_transformer.generation.request_checks import (
    Model,
    TokenIds,
    check_generator,
    check_options,
    check_sources,
    parse_prompt,
)
from slp_transformer.generation.sharded_weights import with_sharded_weights
from slp_transformer.sampling import AllowedTokens, Generators, filter_logits, greedy, sample


@dataclass(frozen=True)
class GenerationResult:
    """The continuation of one prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        prompt_length: tokens of the prompt.
        finish_reason: why it ends: "stop" after a stop token, "length" after `max_new_tokens`,
            "window"
            where the model has no more positions. To go on from there, begin anew with the end of
            the text as the prompt.
        score: of a beam search, see `generation.beam_search.normalized`; None otherwise.
        other_beams: of a beam search, the other hypotheses that it found, best first.
    """

    ids: list[int]
    prompt_length: int
    finish_reason: Literal["stop", "length", "window"]
    score: float | None = None
    other_beams: tuple[Hypothesis, ...] = ()

    @property
    def new_ids(self) -> list[int]:
        """Return the new text, without the prompt."""
        return self.ids[self.prompt_length :]


def generate(
    model: Model,
    prompts: Sequence[TokenIds] | Int[Tensor, "batch N"],
    max_new_tokens: int | None = None,
    *,
    sources: Sequence[TokenIds] | Int[Tensor, "batch M"] | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    num_beams: int | None = None,
    length_penalty: float = 1.0,
    stop: int | Collection[int] = (),
    allowed: AllowedTokens | None = None,
    generator: Generators = None,
    on_token: Callable[[int, int], None] | None = None,
    cached: bool = True,
) -> list[GenerationResult]:
    """Write on after each prompt.

    Prompts may have different lengths. All stand at the same position at every step: where a short
    prompt's next word is chosen, a longer one's is given. So nothing is padded, masked or shifted,
    and each prompt gets the words that it would get alone.

    Nothing is written past the model's window of `context_length` positions: there the writing
    ends, and `GenerationResult.ended` says so.

    Args:
        model: a language model, or an encoder-decoder.
        prompts: ids to go on from, at least one in each; for an encoder-decoder the beginning of
            the target.
        max_new_tokens: how many to write at the most; None for as many as the window holds.
        sources: for an encoder-decoder, one source for each prompt, without padding.
        temperature: τ of the softmax (`temperature`); 0 takes the most probable word (`greedy`).
        top_k: draw from the k most probable words only.
        top_p: draw from the fewest words that together have this probability (`top-p`).
        repetition_penalty: θ of Keskar et al. 2019; above 1 disfavors what has been said.
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
    texts = [parse_prompt(model, prompt) for prompt in prompts]
    check_sources(model, len(texts), sources)
    check_options(num_beams, temperature, top_k, top_p, max_new_tokens, on_token)
    device, window = model_device(model), model.config.context_length
    check_generator(device, len(texts), generator)
    ends = [min(len(text) + (max_new_tokens or window), window) for text in texts]
    stops = {stop} if isinstance(stop, int) else set(stop)
    options = {"theta": repetition_penalty, "allowed": allowed}

    def choose(u: Tensor, ids: Tensor, rows: list[int]) -> Tensor:
        if temperature == 0:
            return greedy(filter_logits(u, ids, **options))
        u = filter_logits(u, ids, tau=temperature, k=top_k, p=top_p, **options)
        each = isinstance(generator, Sequence)
        return sample(u, [generator[row] for row in rows] if each else generator)

    def result(text: list[int], ids: list[int], stopped: bool, *found: Any) -> GenerationResult:
        cut = "length" if len(ids) - len(text) == max_new_tokens else "window"
        return GenerationResult(ids, len(text), "stop" if stopped else cut, *found)

    if not texts:
        return []
    with inference_context(model):
        reader = DecoderSession(model, sources, max(ends) if cached else None)
        if num_beams is None:
            written = decode_loop(reader, choose, texts, ends, stops, on_token)
            reader.check_no_nan()
            return [result(t, *w) for t, w in zip(texts, written, strict=True)]

        def look(ids: Tensor, rows: list[int]) -> Tensor:
            ids = ids.to(device)
            u = reader(ids)
            if len(rows) < len(ids):
                u, ids = u[rows], ids[rows]
            return filter_logits(u, ids, **options)

        prompts = [torch.tensor(text, device="cpu") for text in texts]
        beams = {"width": num_beams, "alpha": length_penalty, "stop": stops}
        found = beam_search(look, reader.reorder, prompts, ends, **beams)
        return [
            result(t, h.ids, h.hit_stop_token, h.score, tuple(others))
            for t, (h, *others) in zip(texts, found, strict=True)
        ]


# --- Reading: ids in, the logits of the next word out -------------------------------------------


class DecoderSession:
    """A model at work on a batch: gives the logits of the next word, reading only what is new.

    Attributes:
        model: the model.
        cache: what it has computed of the tokens it has read; None to read all of them each time.
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
        self.model = model
        self.cache = None if cache_capacity is None else KVCache(cache_capacity)
        self.single_token_model: Model | None = None
        self.has_nan = torch.zeros((), dtype=torch.bool, device=model_device(model))
        self.cuda_graph: CudaGraphStep | None = None
        cached = self.cache is not None
        self.sources = None if sources is None else EncoderOutputs(model, sources, cached)

    def __call__(self, ids: Int[Tensor, "rows T"]) -> Float[Tensor, "rows V"]:
        """Logits of the word after `ids`, which begin with the ids of the call before."""
        new = ids if self.cache is None else ids[:, self.cache.length :]
        model = (
            self.model
            if self.cache is None or new.shape[1] > 1
            else self._build_single_token_model(len(new))
        )
        if self._use_cuda_graph(new):
            U = self.cuda_graph(new)
        elif self.sources is None:
            U = model(new, cache=self.cache)
        else:
            U = self.sources.decode(model, new, self.cache)
        u = U[:, -1].to(torch.promote_types(U.dtype, torch.float32))
        if u.device.type != "cpu":  # which would be waited for at each word
            self.has_nan = self.has_nan | u.isnan().any()
        elif not u.sum().isfinite():  # a sum is quick, and tells whether to look
            self.has_nan = u.isnan().any()
            self.check_no_nan()
        return u

    def _build_single_token_model(self, rows: int) -> Model:
        """Return the reader of single tokens, made at the first of them."""
        if self.single_token_model is None:
            to_come = self.cache.capacity - self.cache.length
            self.single_token_model = with_sharded_weights(self.model, rows, to_come)
        return self.single_token_model

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

    def _use_cuda_graph(self, new: Int[Tensor, "rows N"]) -> bool:
        """Tell if a recording of this step can be replayed; record one if it pays."""
        if self.cache is None or new.shape[1] != 1:
            return False
        if self.cuda_graph is None or not self.cuda_graph.matches(new):
            pays = supports_cuda_graph(self.model, self.cache)
            self.cuda_graph = CudaGraphStep(self.model, self.cache, len(new)) if pays else None
        return self.cuda_graph is not None

    def reorder(self, rows: list[int]) -> None:
        """Go on with other rows of the batch, or with some of them more than once."""
        across = self.sources is not None and self.sources.reorder(rows, self.cache)
        if self.cache is not None:
            self.cache.reorder(torch.tensor(rows, device="cpu"), include_sources=across)


def model_device(model: nn.Module) -> torch.device:
    """Return the device of the model's parameters."""
    return next(model.parameters()).device


@contextmanager
def inference_context(model: nn.Module) -> Iterator[None]:
    """Without gradients and without dropout; afterwards every module is as it was.

    Inference mode is faster than no gradients, but a tensor made in it can never be learned from:
    parts of the reader's own that keep one would be spoilt.
    """
    ours = all(map(has_no_hooks, model.modules()))
    with eval_mode(model), torch.inference_mode() if ours else torch.no_grad():
        yield


# --- Writing ------------------------------------------------------------------------------------


def decode_loop(
    session: DecoderSession,
    choose: Callable[[Tensor, Tensor, list[int]], Tensor],
    prompts: Sequence[list[int]],
    max_lengths: Sequence[int],
    stop_ids: Collection[int] = (),
    on_token: Callable[[int, int], None] | None = None,
) -> list[tuple[list[int], bool]]:
    """Read, choose the next word of every text that has been read to its end, and so on.

    Args:
        session: gives logits of the word after the ids so far.
        choose: gives a word for each row of logits [rows × V], told also the ids so far [rows × T]
            and which texts these are.
        prompts: what to go on from.
        max_lengths: how long each text may become.
        stop_ids: ids after which a text ends.
        on_token: told of each new word: its text, its id.

    Returns:
        Each text with what was written, and whether a stop token ended it.
    """
    drafts = BatchState(prompts, max_lengths, model_device(session.model))
    while drafts.unfinished:
        u = session(drafts.read_ids)
        here, ready = drafts.rows_to_extend()
        words = choose(u[here], drafts.read_ids[here], ready)
        drafts.append_tokens(here, words)
        if stop_ids or on_token is not None:  # else nobody makes the CPU wait for the words
            for text, word in zip(ready, words.tolist(), strict=True):
                if word in stop_ids:
                    drafts.finish(text)
                if on_token is not None:
                    on_token(text, word)
        if (kept := drafts.drop_finished()) is not None:
            session.reorder(kept)
    return drafts.results()
