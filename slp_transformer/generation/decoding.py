"""Decoding: word after word, with any model of the package.

`generate` is what most readers want; `DecoderSession` and `decode_loop` are what it is made of. How
one word is chosen is in `slp_transformer.sampling`, beam search in
`slp_transformer.generation.beam_search`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.argument_checks import check_ids
from slp_transformer._internal.config_checks import check_size, is_integer
from slp_transformer._internal.eval_mode import eval_mode, has_no_hooks
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.beam_search import Hypothesis, beam_search
from slp_transformer.generation.sharded_weights import with_sharded_weights
from slp_transformer.language_model import TransformerLM
from slp_transformer.sampling import AllowedTokens, Generators, filter_logits, greedy, sample

Model = TransformerLM | EncoderDecoder
TokenIds = Sequence[int] | Int[Tensor, "_"]
FinishReason = Literal["stop", "length", "window"]


@dataclass(frozen=True)
class GenerationResult:
    """The text that a model wrote after one prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        prompt_length: tokens of the prompt.
        finish_reason: why it ends: "stop" after a stop token, "length" after `max_new_tokens`,
            "window" where the model has no more positions. To continue from there, begin anew with
            the end of the text as the prompt.
        score: of a beam search, see `length_normalized_score`; None otherwise.
        other_beams: of a beam search, the other texts that it found, best first.
    """

    ids: list[int]
    prompt_length: int
    finish_reason: FinishReason
    score: float | None = None
    other_beams: "tuple[GenerationResult, ...]" = ()

    @property
    def new_ids(self) -> list[int]:
        """The ids that were written, without the prompt."""
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
    draft_model: Model | None = None,
    num_draft_tokens: int = 4,
) -> list[GenerationResult]:
    """Write on after each prompt.

    Prompts may have different lengths. All stand at the same position at every step: where a short
    prompt's next word is chosen, a longer one's is given. So nothing is padded, masked or shifted,
    and each prompt gets the words that it would get alone.

    Nothing is written past the model's window of `context_length` positions: there the writing
    ends, and `GenerationResult.finish_reason` says so.

    Args:
        model: a language model, or an encoder-decoder.
        prompts: ids to go on from, at least one in each; for an encoder-decoder the beginning of
            the target.
        max_new_tokens: how many to write at the most; None for as many as the window holds.
        sources: for an encoder-decoder, one source for each prompt, without padding.
        temperature: τ of the softmax (`temperature`); 0 takes the most probable word (`greedy`).
        top_k: draw from the k most probable words only.
        top_p: draw from the fewest words that together have this probability (`top-p`).
        repetition_penalty: θ of Keskar et al. 2019; above 1 disfavors words that the text has.
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
        draft_model: for a single prompt, a smaller model of the same vocabulary. It proposes words,
            which `model` reads at once and accepts or replaces: each comes as often as without it,
            and sooner if most are accepted.
        num_draft_tokens: how many words it proposes at a time.

    Returns:
        The texts, in the order of their prompts.

    Raises:
        ValueError: if a prompt is empty or leaves no room in the window, an id is outside the
            vocabulary, an option is out of range or does not go with another, or `allowed` allows
            nothing.
    """
    texts = [parse_prompt(model, prompt) for prompt in prompts]
    device, window = model_device(model), model.config.context_length
    check_sources(model, len(texts), sources)
    check_options(num_beams, temperature, top_k, top_p, max_new_tokens, on_token)
    check_generator(device, len(texts), generator)
    if draft_model is not None:
        check_draft_model(model, draft_model, len(texts), num_beams, num_draft_tokens)
    stops = parse_stop_ids(stop)
    ends = [min(len(text) + (max_new_tokens or window), window) for text in texts]
    penalize = partial(filter_logits, theta=repetition_penalty, allowed=allowed)

    def choose(u: Tensor, ids: Tensor, rows: list[int]) -> Tensor:
        if temperature == 0:
            return greedy(penalize(u, ids))
        u = penalize(u, ids, tau=temperature, k=top_k, p=top_p)
        if isinstance(generator, Sequence):
            return sample(u, [generator[row] for row in rows])
        return sample(u, generator)

    def probabilities(u: Tensor, ids: Tensor) -> Tensor:
        if temperature == 0:
            return F.one_hot(greedy(penalize(u, ids)), u.shape[-1]).to(u.dtype)
        return torch.softmax(penalize(u, ids, tau=temperature, k=top_k, p=top_p), dim=-1)

    def next_logits(ids: Tensor, rows: list[int]) -> Tensor:
        ids = ids.to(device)
        return penalize(session(ids)[rows], ids[rows])

    if not texts:
        return []
    with inference_context(model), inference_context(draft_model or model):
        session = DecoderSession(model, sources, max(ends) if cached else None)
        if num_beams is not None:
            found = beam_search(
                next_logits,
                session.reorder,
                [torch.tensor(text, device="cpu") for text in texts],
                ends,
                width=num_beams,
                alpha=length_penalty,
                stop=stops,
            )
        else:
            if draft_model is None:
                written = decode_loop(session, choose, texts, ends, stops, on_token)
            else:
                draft = DecoderSession(draft_model, sources, max(ends) if cached else None)
                own = generator[0] if isinstance(generator, Sequence) else generator
                how = num_draft_tokens, own, stops, on_token
                written = [speculative_loop(session, draft, probabilities, texts[0], ends[0], *how)]
            found = [[Hypothesis(ids, None, stopped)] for ids, stopped in written]
        session.check_no_nan()
    results = []
    for text, hypotheses in zip(texts, found, strict=True):
        beams = []
        for ids, score, stopped in hypotheses:
            full = len(ids) - len(text) == max_new_tokens
            reason: FinishReason = "stop" if stopped else "length" if full else "window"
            beams.append(GenerationResult(ids, len(text), reason, score))
        results.append(replace(beams[0], other_beams=tuple(beams[1:])))
    return results


# --- What is refused ----------------------------------------------------------------------------


def parse_prompt(model: Model, prompt: TokenIds) -> list[int]:
    """Return the ids of a prompt that the model can go on from.

    Raises:
        ValueError: if it has no ids, leaves no room in the window, or has an id outside the
            vocabulary.
    """
    ids, window = torch.as_tensor(prompt, device="cpu"), model.config.context_length
    if ids.dim() != 1:
        raise ValueError(
            "prompts is a batch: a list of prompts, each a list of ids; for one prompt write "
            "[prompt]."
        )
    if len(ids) == 0:
        raise ValueError("The prompt is empty: give at least one token to go on from.")
    check_ids(ids, model.config.vocab_size)
    if len(ids) >= window:
        raise ValueError(
            f"The prompt has {len(ids)} tokens and the model's window {window}, so that there is "
            "no room for a new one: give the end of the prompt only."
        )
    return ids.tolist()


def parse_stop_ids(stop: int | Collection[int]) -> set[int]:
    """Return the ids after which to stop.

    Raises:
        ValueError: if they are not ids.
    """
    ids = list(stop) if isinstance(stop, Collection) else [stop]
    if not all(map(is_integer, ids)):
        raise ValueError(f"stop must be a token id, or several of them, not {stop!r}.")
    return set(map(int, ids))


def check_sources(model: Model, num_prompts: int, sources: Sequence[Any] | Tensor | None) -> None:
    """Refuse sources that the model cannot read, or a lack of them.

    Raises:
        ValueError: saying what the model needs.
    """
    if not isinstance(model, EncoderDecoder):
        if sources is not None:
            raise ValueError("A language model reads no sources: leave them out.")
    elif sources is None or len(sources) != num_prompts:
        number = "none" if sources is None else len(sources)
        raise ValueError(
            f"An encoder-decoder needs one source for each of the {num_prompts} prompts, but there "
            f"are {number}."
        )
    elif any(len(source) == 0 for source in sources):
        raise ValueError("A source is empty: give at least one token to each.")


def check_options(
    num_beams: int | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    max_new_tokens: int | None,
    on_token: Callable[[int, int], None] | None,
) -> None:
    """Refuse sizes below 1, and what beam search has no use for.

    Raises:
        ValueError: naming the option.
    """
    sizes = {"max_new_tokens": max_new_tokens, "num_beams": num_beams}
    check_size(**{name: size for name, size in sizes.items() if size is not None})
    if num_beams is None:
        return
    if temperature != 1 or top_k is not None or top_p is not None:
        raise ValueError(
            "Beam search draws nothing, so it has no use for temperature, top_k or top_p: leave "
            "them out, or leave out num_beams."
        )
    if on_token is not None:
        raise ValueError(
            "Beam search knows its words only at the end, so it cannot hand them out one by one: "
            "leave out on_token, or num_beams."
        )


def check_generator(device: torch.device, num_prompts: int, generator: Generators) -> None:
    """Refuse generators of another device, or a list of them that is not one for each prompt.

    Raises:
        ValueError: saying which are needed.
    """
    if generator is None:
        return
    each = generator if isinstance(generator, Sequence) else [generator] * num_prompts
    if len(each) != num_prompts:
        raise ValueError(
            f"A list of generators must have one for each of the {num_prompts} prompts, but there "
            f"are {len(each)}."
        )
    for one in each:
        if not isinstance(one, torch.Generator):
            raise ValueError(
                f"generator must be a torch.Generator, or a list of them, not {generator!r}: write "
                "torch.Generator().manual_seed(0)."
            )
        if one.device.type != device.type:
            raise ValueError(
                f"The generator lives on {one.device}, but the model on {device}: make it there, "
                f'torch.Generator("{device.type}").'
            )


def check_draft_model(
    model: Model,
    draft_model: Model,
    num_prompts: int,
    num_beams: int | None,
    num_draft_tokens: int,
) -> None:
    """Refuse a draft model that does not belong to a model, or has nothing to do.

    Raises:
        ValueError: saying what is wrong.
    """
    check_size(num_draft_tokens=num_draft_tokens)
    if num_beams is not None or num_prompts > 1:
        raise ValueError(
            "A draft model is for one prompt, and for no beam search: give prompts one by one, or "
            "leave out draft_model."
        )
    ours, theirs = model.config, draft_model.config
    known = ours.vocab_size == theirs.vocab_size and ours.context_length <= theirs.context_length
    if not known or isinstance(model, EncoderDecoder) != isinstance(draft_model, EncoderDecoder):
        raise ValueError(
            "A draft model must be of the model's kind, with the same vocabulary and no smaller "
            f"window: it has {theirs.vocab_size} tokens and {theirs.context_length} positions, the "
            f"model {ours.vocab_size} and {ours.context_length}."
        )


# --- Reading: ids in, the logits of the next word out -------------------------------------------


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
        self.single_token_model: Model | None = None
        self.has_nan: Tensor = torch.zeros((), dtype=torch.bool, device=device)
        if isinstance(model, EncoderDecoder) and sources is not None:
            source, self.source_mask = pad_right(sources, device)
            self.H_enc: Tensor = model.encode(source, self.source_mask)
            self.source_of_row: list[int] = list(range(len(source)))

    def __call__(self, ids: Int[Tensor, "rows T"]) -> Float[Tensor, "rows V"]:
        """Return the logits of the word after `ids`, which begin with the ids of the last call."""
        return self.read_last(ids, 1)[:, 0]

    def read_last(self, ids: Int[Tensor, "rows T"], count: int) -> Float[Tensor, "rows count V"]:
        """Return the logits of the words after each of the last few of `ids`."""
        cache, model = self.cache, self.model
        new = ids if cache is None else ids[:, cache.length :]
        if cache is not None and new.shape[1] == 1:
            if self.single_token_model is None:
                new_tokens = (cache.capacity or 0) - cache.length
                self.single_token_model = with_sharded_weights(model, len(new), new_tokens)
            model = self.single_token_model
        if isinstance(model, EncoderDecoder):
            U = model.decode(new, self.H_enc, self.source_mask, cache=cache)
        else:
            U = model(new, cache=cache)
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

    Once half of the rows have ended they are no longer read. That copies the cache of the others,
    by the end less than one copy of the whole batch.

    Args:
        session: gives logits of the word after the ids so far.
        choose: called with logits [rows × V], the ids so far [rows × T] and the texts that these
            are; gives a word for each row.
        prompts: the beginnings of the texts.
        max_lengths: how long each text may become.
        stop_ids: ids after which a text ends.
        on_token: called with the text and the id of each new word.

    Returns:
        The ids of each text, and whether a stop token ended it.
    """
    ids, _ = pad_right(prompts, model_device(session.model))
    ids = F.pad(ids, (0, max(max_lengths) - ids.shape[1]))
    ends, stopped = list(max_lengths), [False] * len(prompts)
    rows, T = list(range(len(prompts))), 0  # the text in each row, and how many ids were read
    written: dict[int, list[int]] = {}
    while growing := [row for row, text in enumerate(rows) if T < ends[text]]:
        if len(growing) <= len(rows) / 2:
            written |= zip(rows, ids.tolist(), strict=True)
            ids, rows = ids[growing], [rows[row] for row in growing]
            session.reorder(growing)
        T = max(T, min(len(prompts[text]) for text in rows if T < ends[text]))
        u = session(ids[:, :T])
        chosen = [row for row, text in enumerate(rows) if len(prompts[text]) <= T < ends[text]]
        texts = [rows[row] for row in chosen]
        here = slice(None) if len(chosen) == len(rows) else chosen
        words = choose(u[here], ids[here, :T], texts)
        ids[here, T] = words
        T += 1
        if stop_ids or on_token is not None:  # else nobody makes the CPU wait for the words
            for text, word in zip(texts, words.tolist(), strict=True):
                if word in stop_ids:
                    ends[text], stopped[text] = T, True
                if on_token is not None:
                    on_token(text, word)
    written |= zip(rows, ids.tolist(), strict=True)
    return [(written[text][:end], stopped[text]) for text, end in enumerate(ends)]


def speculative_loop(
    session: DecoderSession,
    draft: DecoderSession,
    probabilities: Callable[[Tensor, Tensor], Tensor],
    prompt: list[int],
    max_length: int,
    num_draft_tokens: int = 4,
    generator: torch.Generator | None = None,
    stop_ids: Collection[int] = (),
    on_token: Callable[[int, int], None] | None = None,
) -> tuple[list[int], bool]:
    """Write on after a prompt, with words distributed exactly as by the large model alone.

    Source: Leviathan et al. 2023 (arXiv 2211.17192), algorithm 1. A word x is accepted with
    probability min(1, p(x)/q(x)), where p is the large model's distribution and q the draft's. The
    first that is not is replaced by one drawn from max(0, p − q), which makes up the difference.

    Args:
        session: the large model.
        draft: the small one.
        probabilities: called with logits [1 × V] and the ids so far [1 × T]; gives a distribution.
        prompt: the beginning of the text.
        max_length: how long the text may become.
        num_draft_tokens: how many words are proposed at a time.
        generator: where random numbers come from.
        stop_ids: ids after which the text ends.
        on_token: called with 0 and the id of each new word.

    Returns:
        The ids of the text, and whether a stop token ended it.
    """
    device = model_device(session.model)
    ids = torch.tensor([prompt], device=device)
    while (T := ids.shape[1]) < max_length:
        proposed: list[Tensor] = []
        for _ in range(min(num_draft_tokens, max_length - T - 1)):
            proposed.append(probabilities(draft(ids), ids))
            ids = torch.cat([ids, sample(proposed[-1].log(), generator)[:, None]], dim=1)
        for i, u in enumerate(session.read_last(ids, len(proposed) + 1).unbind(1)):
            p = probabilities(u, ids[:, : T + i])
            if i < len(proposed):
                q, x = proposed[i], ids[0, T + i]
                if torch.rand((), generator=generator, device=device) * q[0, x] < p[0, x]:
                    continue
                rest = (p - q).clamp(min=0)
                p = rest if rest.any() else p
            ids = torch.cat([ids[:, : T + i], sample(p.log(), generator)[:, None]], dim=1)
            break
        for length, word in enumerate(ids[0, T:].tolist(), T + 1):
            if on_token is not None:
                on_token(0, word)
            if word in stop_ids:
                return ids[0, :length].tolist(), True
        session.truncate(ids.shape[1] - 1)
        draft.truncate(ids.shape[1] - 1)
    return ids[0].tolist(), False
