"""Decoding: word after word, with any model of the package.

`generate` is what most readers want; `Reader` and `write` are what it is made of. How one word is
chosen is in `sampling`, beam search in `beam`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer.beam import Hypothesis, beam_search
from slp_transformer.cache import KVCache
from slp_transformer.embedding import check_ids
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.language_model import TransformerLM
from slp_transformer.sampling import Allowed, Generators, draw, filtered, greedy
from slp_transformer.shapes import Float, Int, Tensor

Model = TransformerLM | EncoderDecoder
Ids = Sequence[int] | Int[Tensor, "_"]


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
        num_beams: hypotheses of a beam search, which draws nothing and takes the prompts one by
            one; None for no beam search.
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
    check_generator(model, len(texts), generator)
    window = model.config.context_length
    ends = [min(len(text) + (max_new_tokens or window), window) for text in texts]
    stops = {stop} if isinstance(stop, int) else set(stop)
    options = {"theta": repetition_penalty, "allowed": allowed}

    def choose(u: Tensor, ids: Tensor, rows: list[int]) -> Tensor:
        if temperature == 0:
            return greedy(filtered(u, ids, **options))
        u = filtered(u, ids, tau=temperature, k=top_k, p=top_p, **options)
        each = isinstance(generator, Sequence)
        return draw(u, [generator[row] for row in rows] if each else generator)

    def search(text: list[int], end: int, source: Ids | None) -> Hypothesis:
        reader = Reader(model, None if source is None else [source], end if cached else None)
        prompt = torch.tensor(text, device=device_of(model))
        return beam_search(
            lambda ids: filtered(reader(ids), ids, **options),
            reader.reorder,
            prompt,
            end,
            width=num_beams,
            alpha=length_penalty,
            stop=stops,
        )[0]

    def result(text: list[int], ids: list[int], stopped: bool, score: float | None) -> Generated:
        cut = "length" if len(ids) - len(text) == max_new_tokens else "window"
        return Generated(ids, len(text), "stop" if stopped else cut, score)

    if not texts:
        return []
    with reading(model):
        if num_beams is not None:
            found = map(search, texts, ends, sources or [None] * len(texts))
            return [result(t, h.ids, h.stopped, h.score) for t, h in zip(texts, found, strict=True)]
        reader = Reader(model, sources, max(ends) if cached else None)
        written = write(reader, choose, texts, ends, stops, on_token, device_of(model))
        return [result(t, *w, None) for t, w in zip(texts, written, strict=True)]


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
        if sources is not None:
            source, self.source_mask = pad(sources, device_of(model))
            self.H_enc = model.encode(source, self.source_mask)

    def __call__(self, ids: Int[Tensor, "rows T"]) -> Float[Tensor, "rows V"]:
        """Logits of the word after `ids`, which begin with the ids of the call before."""
        new = ids if self.cache is None else ids[:, self.cache.length :]
        if self.H_enc is None:
            U = self.model(new, cache=self.cache)
        else:
            U = self.model.decode(new, self.H_enc, self.source_mask, cache=self.cache)
        return U[:, -1].to(torch.promote_types(U.dtype, torch.float32))

    def reorder(self, rows: Int[Tensor, "rows"]) -> None:
        """Go on with other rows of the batch, or with some of them more than once."""
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
    """Without gradients and without dropout; afterwards every module is as it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


# --- Writing ------------------------------------------------------------------------------------


def write(
    read: Callable[[Tensor], Tensor],
    choose: Callable[[Tensor, Tensor, list[int]], Tensor],
    texts: Sequence[list[int]],
    ends: Sequence[int],
    stops: Collection[int] = (),
    on_token: Callable[[int, int], None] | None = None,
    device: torch.device | str = "cpu",
) -> list[tuple[list[int], bool]]:
    """Read, choose the next word of every text that has been read to its end, and so on.

    Args:
        read: gives logits [batch × V] of the word after ids [batch × T], as `Reader` does.
        choose: gives a word for each row of logits [rows × V], told also the ids so far [rows × T]
            and which rows of the batch these are.
        texts: what to go on from.
        ends: how long each text may become.
        stops: ids after which a text ends.
        on_token: told of each new word: its row, its id.
        device: where the model is.

    Returns:
        Each text with what was written, and whether a stop token ended it.
    """
    ends, stopped, growing = list(ends), [False] * len(texts), list(range(len(texts)))
    ids, _ = pad(texts, device)
    ids = F.pad(ids, (0, max(ends) - ids.shape[1]))  # room for what is to be written
    known, everyone = min(map(len, texts)), growing
    while growing:
        u = read(ids[:, :known])
        rows = [row for row in growing if len(texts[row]) <= known]
        here = slice(None) if rows == everyone else rows
        words = choose(u[here], ids[here, :known], rows)
        ids[here, known] = words
        known += 1
        if stops or on_token is not None:  # else nobody makes the CPU wait for the words
            for row, word in zip(rows, words.tolist(), strict=True):
                if word in stops:
                    ends[row], stopped[row] = known, True
                if on_token is not None:
                    on_token(row, word)
        growing = [row for row in growing if known < ends[row]]
        known = max(known, min((len(texts[row]) for row in growing), default=known))
    ids = ids.tolist()
    return [(ids[row][:end], stopped[row]) for row, end in enumerate(ends)]


# --- What can be asked for -----------------------------------------------------------------------


def check_prompt(model: Model, prompt: Ids) -> list[int]:
    """The ids of a prompt that the model can go on from.

    Raises:
        ValueError: if it has no ids, leaves no room in the window, or has an id outside the
            vocabulary.
    """
    ids = torch.as_tensor(prompt)
    if ids.dim() != 1:
        raise ValueError(
            "prompts is a batch: a list of prompts, each a list of ids; for one prompt write "
            "[prompt]."
        )
    if len(ids) == 0:
        raise ValueError("The prompt is empty: give at least one token to go on from.")
    check_ids(ids.cpu(), model.config.vocab_size)
    if len(ids) >= model.config.context_length:
        raise ValueError(
            f"The prompt has {len(ids)} tokens and the model's window {model.config.context_length}"
            ", so that there is no room for a new one: give the end of the prompt only."
        )
    return ids.tolist()


def check_sources(model: Model, prompts: int, sources: Sequence | Tensor | None) -> None:
    """Refuse sources that the model cannot read, or a lack of them.

    Raises:
        ValueError: saying what the model needs.
    """
    if not hasattr(model, "encode"):
        if sources is not None:
            raise ValueError("A language model reads no sources: leave them out.")
        return
    if sources is None or len(sources) != prompts:
        number = "none" if sources is None else len(sources)
        raise ValueError(
            f"An encoder-decoder needs one source for each of the {prompts} prompts, but there "
            f"are {number}."
        )
    if any(len(source) == 0 for source in sources):
        raise ValueError("A source is empty: give at least one token to each.")


def check_options(num_beams, temperature, top_k, top_p, max_new_tokens, on_token) -> None:
    """Refuse numbers of nothing, and what beam search has no use for.

    Raises:
        ValueError: naming the option.
    """
    for name, number in (("num_beams", num_beams), ("max_new_tokens", max_new_tokens)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} must be a whole number of 1 or more, not {number!r}.")
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


def check_generator(model: Model, prompts: int, generator: Generators) -> None:
    """Refuse generators of another device, or a list of them that is not one for each prompt.

    Raises:
        ValueError: saying which are needed.
    """
    if generator is None:
        return
    each = isinstance(generator, Sequence)
    if each and len(generator) != prompts:
        raise ValueError(
            f"A list of generators must have one for each of the {prompts} prompts, but there are "
            f"{len(generator)}."
        )
    device = device_of(model)
    for one in generator if each else [generator]:
        if one.device.type != device.type:
            raise ValueError(
                f"The generator lives on {one.device}, but the model on {device}: make it there, "
                f'torch.Generator("{device.type}").'
            )
