"""What `generate` is given: parsed, or refused with a sentence."""

from collections.abc import Collection, Sequence
from typing import Any

import torch

from slp_transformer._internal.argument_checks import check_ids
from slp_transformer._internal.config_checks import (
    LENGTH_PENALTY,
    NUM_BEAMS,
    check_positive_sizes,
    check_range,
    is_integer,
)
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.shape_types import Tensor, TokenIds
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.session import Model, OnToken
from slp_transformer.sampling import SAMPLING, Generators


def parse_prompt(model: Model, prompt: TokenIds) -> list[int]:
    """Return the ids of a prompt that the model can go on from.

    Raises:
        ValueError: if it has no ids, leaves no room in the window, or has an id outside the
            vocabulary, or padding.
    """
    if isinstance(prompt, str):
        raise ValueError(
            f"prompts are token ids, not text such as {prompt[:20]!r}: encode the text with the "
            "model's tokenizer, and write [tokenizer.encode(text)]."
        )
    ids, window = torch.as_tensor(prompt, device="cpu"), model.config.context_length
    if ids.dim() != 1:
        raise ValueError(
            "prompts is a batch: a list of prompts, each a list of ids; for one prompt write "
            "[prompt]."
        )
    if len(ids) == 0:
        raise ValueError("The prompt is empty: give at least one token to go on from.")
    check_ids(ids, model.config.vocab_size)
    check_no_padding(ids, model.config)
    if len(ids) >= window:
        raise ValueError(
            f"The prompt has {len(ids)} tokens and the model's window {window}, so that there is "
            "no room for a new one: give the end of the prompt only."
        )
    return ids.tolist()


def check_no_padding(ids: Tensor, config: Any) -> None:
    """Refuse ids that are filled up with the model's padding, which would be read as text.

    Where padding is also the token that begins or ends a text, it is text.

    Raises:
        ValueError: saying how to write them.
    """
    pad_id = getattr(config, "pad_id", None)
    if pad_id is None or pad_id in (config.begin_id, *config.end_ids):
        return
    if pad_id in (ids[0], ids[-1]):
        raise ValueError(
            f"A prompt is filled up with padding (id {pad_id}), which would be read as text: "
            "prompts of different lengths need none, so give a list of ids for each."
            + see("padding")
        )


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


def check_decoding_options(
    num_beams: int | None,
    length_penalty: float,
    max_new_tokens: int | None,
    sampling: Collection[str],
    on_token: OnToken | None,
) -> None:
    """Refuse sizes out of their ranges, and what beam search has no use for.

    Args:
        num_beams: hypotheses of a beam search; None for no beam search.
        length_penalty: the power of the length in a hypothesis's score.
        max_new_tokens: how many to write at the most.
        sampling: names of the sampling options that were given.
        on_token: called with each word.

    Raises:
        ValueError: naming the option.
    """
    if max_new_tokens is not None:
        check_positive_sizes(max_new_tokens=max_new_tokens)
    check_range(LENGTH_PENALTY, length_penalty=length_penalty)
    if num_beams is None:
        return
    check_range(NUM_BEAMS, num_beams=num_beams)
    if useless := [name for name in sampling if SAMPLING[name].only_drawing]:
        raise ValueError(
            f"Beam search draws nothing, so it has no use for {' or '.join(useless)}: leave it "
            "out, or leave out num_beams."
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
    check_positive_sizes(num_draft_tokens=num_draft_tokens)
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
