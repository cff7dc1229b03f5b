"""Decoding: word after word, with any model of the package.

`generate` is what most readers want; `decode_loop` and a `DecoderSession` are what it is made of.
How one word is chosen is in `slp_transformer.sampling`, beam search in
`slp_transformer.generation.beam_search`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F

from slp_transformer._internal.sampling_table import (
    SAMPLING,
    find_greedy_option,
    validate_sampling_options,
)
from slp_transformer._internal.shape_types import Int, Tensor, TokenIds
from slp_transformer.generation.beam_search import Hypothesis, beam_search
from slp_transformer.generation.generate_arguments import (
    check_decoding_options,
    check_draft_model,
    check_generator,
    check_sources,
    parse_prompt,
    parse_stop_ids,
)
from slp_transformer.generation.session import (
    DecoderSession,
    Model,
    OnToken,
    inference_context,
    model_device,
    pad_right,
)
from slp_transformer.generation.speculative import speculative_loop
from slp_transformer.sampling import AllowedTokens, Generators, filter_logits, greedy, sample

FinishReason = Literal["stop", "length", "window"]


@dataclass(frozen=True)
class GeneratedSequence:
    """The text that a model wrote after one prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        prompt_length: tokens of the prompt.
        finish_reason: why it ends: "stop" after a stop token or where `on_token` ended it, "length"
            after `max_new_tokens`, "window" where the model has no more positions. To continue from
            there, begin anew with the end of the text as the prompt.
        score: of a beam search, see `length_normalized_score`; None otherwise.
        other_beams: of a beam search, the other texts that it found, best first.
    """

    ids: list[int]
    prompt_length: int
    finish_reason: FinishReason
    score: float | None = None
    other_beams: "tuple[GeneratedSequence, ...]" = ()

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
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    num_beams: int | None = None,
    length_penalty: float = 1.0,
    stop: int | Collection[int] = (),
    allowed: AllowedTokens | None = None,
    generator: Generators = None,
    on_token: OnToken | None = None,
    cached: bool = True,
    draft_model: Model | None = None,
    num_draft_tokens: int = 4,
    **others: Any,
) -> list[GeneratedSequence]:
    """Write on after each prompt.

    Prompts may have different lengths. All stand at the same position at every step: where a short
    prompt's next word is chosen, a longer one's is given. So nothing is padded, masked or shifted,
    and each prompt gets the words that it would get alone.

    Nothing is written past the model's window of `context_length` positions: there the writing
    ends, and `GeneratedSequence.finish_reason` says so.

    Args:
        model: a language model, or an encoder-decoder.
        prompts: ids to go on from, at least one in each; for an encoder-decoder the beginning of
            the target.
        max_new_tokens: how many to write at the most; None for as many as the window holds.
        sources: for an encoder-decoder, one source for each prompt, without padding.
        temperature: τ of the softmax (`temperature`); 0 takes the most probable word (`greedy`).
        top_k: draw from the k most probable words only.
        top_p: draw from the fewest words that together have this probability (`top-p`).
        min_p: draw from the words with at least this share of the largest probability (`min_p`).
        repetition_penalty: θ of Keskar et al. 2019; above 1 disfavors words that the text has.
        num_beams: hypotheses of a beam search, which draws nothing; None for no beam search.
        length_penalty: α of a beam search, the power of the length that a log probability is
            divided by: 1 (`beam-norm`) or 0 (`beam-score`), or what else works.
        stop: an id, or ids, after which to stop.
        allowed: called with the ids so far at each step; returns the ids that may come next (or
            booleans, one for each word), or None for any.
        generator: where random numbers come from, on the model's device; a list of them gives each
            prompt its own, so that its draws do not depend on the other prompts.
        on_token: called with a prompt's place in the batch and its new id, as soon as there is one;
            the text ends where it returns True.
        cached: use a key-value cache. Without one the words are the same, and come later.
        draft_model: for a single prompt, a smaller model of the same vocabulary. It proposes words,
            which `model` reads at once and accepts or replaces: each comes as often as without it,
            and sooner if most are accepted.
        num_draft_tokens: how many words it proposes at a time.
        **others: sampling options that another package has added to `SAMPLING`.

    Returns:
        The texts, in the order of their prompts.

    Raises:
        TypeError: if there is no such option.
        ValueError: if a prompt is empty or leaves no room in the window, an id is outside the
            vocabulary, an option is out of range or does not go with another, or `allowed` allows
            nothing.
    """
    sampling = {name: value for name, value in locals().items() if name in SAMPLING}
    given = [prompts] if isinstance(prompts, str) else prompts  # to be refused whole
    texts = [parse_prompt(model, prompt) for prompt in given]
    device, window = model_device(model), model.config.context_length
    check_sources(model, len(texts), sources)
    sampling = validate_sampling_options(sampling | others)
    check_decoding_options(num_beams, length_penalty, max_new_tokens, sampling, on_token)
    check_generator(device, len(texts), generator)
    if draft_model is not None:
        check_draft_model(model, draft_model, len(texts), num_beams, num_draft_tokens)
    stops = parse_stop_ids(stop)
    if not texts:
        return []
    ends = [min(len(text) + (max_new_tokens or window), window) for text in texts]
    greedy_by = find_greedy_option(sampling)
    filters = {name: value for name, value in sampling.items() if name != greedy_by}

    def filtered(u: Tensor, ids: Tensor) -> Tensor:
        return filter_logits(u, ids, allowed=allowed, **filters)

    def choose(u: Tensor, ids: Tensor, rows: list[int]) -> Tensor:
        u = filtered(u, ids)
        if greedy_by:
            return greedy(u)
        if isinstance(generator, Sequence):
            return sample(u, [generator[row] for row in rows])
        return sample(u, generator)

    with inference_context(model), inference_context(draft_model or model):
        session = DecoderSession(model, sources, max(ends) if cached else None)
        if num_beams is not None:

            def next_logits(ids: Tensor, rows: list[int]) -> Tensor:
                ids = ids.to(device)
                return filtered(session(ids)[rows], ids[rows])

            found = beam_search(
                next_logits,
                session.reorder,
                [torch.tensor(text, device="cpu") for text in texts],
                ends,
                width=num_beams,
                alpha=length_penalty,
                stop=stops,
            )
        elif draft_model is None:
            written = decode_loop(session, choose, texts, ends, stops, on_token)
            found = [[Hypothesis(ids, None, stopped)] for ids, stopped in written]
        else:

            def probabilities(u: Tensor, ids: Tensor) -> Tensor:
                u = filtered(u, ids)
                if greedy_by:
                    return F.one_hot(greedy(u), u.shape[-1]).to(u.dtype)
                return torch.softmax(u, dim=-1)

            draft = DecoderSession(draft_model, sources, max(ends) if cached else None)
            own = generator[0] if isinstance(generator, Sequence) else generator
            how = num_draft_tokens, own, stops, on_token
            ids, stopped = speculative_loop(session, draft, probabilities, texts[0], ends[0], *how)
            found = [[Hypothesis(ids, None, stopped)]]
        session.check_no_nan()
    return to_sequences(texts, found, max_new_tokens)


def to_sequences(
    texts: Sequence[list[int]],
    found: Sequence[Sequence[Hypothesis]],
    max_new_tokens: int | None,
) -> list[GeneratedSequence]:
    """Return what was found for each text, the best first, with the reason why it ended."""
    results = []
    for text, hypotheses in zip(texts, found, strict=True):
        beams = []
        for ids, score, stopped in hypotheses:
            full = len(ids) - len(text) == max_new_tokens
            reason: FinishReason = "stop" if stopped else "length" if full else "window"
            beams.append(GeneratedSequence(ids, len(text), reason, score))
        results.append(replace(beams[0], other_beams=tuple(beams[1:])))
    return results


def decode_loop(
    session: DecoderSession,
    choose: Callable[[Tensor, Tensor, list[int]], Tensor],
    prompts: Sequence[list[int]],
    max_lengths: Sequence[int],
    stop_ids: Collection[int] = (),
    on_token: OnToken | None = None,
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
        on_token: called with the text and the id of each new word; if it returns True, the text
            ends.

    Returns:
        The ids of each text, and whether a stop token or `on_token` ended it.
    """
    ids, _ = pad_right(prompts, model_device(session.model))
    ids = F.pad(ids, (0, max(max_lengths) - ids.shape[1]))
    ends, stopped = list(max_lengths), [False] * len(prompts)
    rows, T = list(range(len(prompts))), 0  # the text in each row, and how many ids were read
    written: dict[int, list[int]] = {}
    while growing := [row for row, text in enumerate(rows) if T < ends[text]]:
        # Rows that have ended compute in vain, but leaving them out copies the cache: at half.
        if len(growing) <= len(rows) / 2:
            written |= zip(rows, ids.tolist(), strict=True)
            ids, rows = ids[growing], [rows[row] for row in growing]
            session.reorder(growing)
        # What all prompts have is read in one pass; longer ones then go on word by word, as given.
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
                ended = on_token is not None and on_token(text, word)
                if ended or word in stop_ids:
                    ends[text], stopped[text] = T, True
    written |= zip(rows, ids.tolist(), strict=True)
    return [(written[text][:end], stopped[text]) for text, end in enumerate(ends)]
