"""What decoding can be asked for, and what it refuses before anything is read."""

from collections.abc import Sequence

import torch

from slp_transformer._internal.argument_checks import check_ids
from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.language_model import TransformerLM
from slp_transformer.sampling import Generators

Model = TransformerLM | EncoderDecoder
TokenIds = Sequence[int] | Int[Tensor, "_"]


def parse_prompt(model: Model, prompt: TokenIds) -> list[int]:
    """The ids of a prompt that the model can go on from.

    Raises:
        ValueError: if it has no ids, leaves no room in the window, or has an id outside the
            vocabulary.
    """
    ids = torch.as_tensor(prompt, device="cpu")
    if ids.dim() != 1:
        raise ValueError(
            "prompts is a batch: a list of prompts, each a list of ids; for one prompt write "
            "[prompt]."
        )
    if len(ids) == 0:
        raise ValueError("The prompt is empty: give at least one token to go on from.")
    check_ids(ids, model.config.vocab_size)
    if len(ids) >= model.config.context_length:
        raise ValueError(
            f"The prompt has {len(ids)} tokens and the model's window {model.config.context_length}"
            ", so that there is no room for a new one: give the end of the prompt only."
        )
    return ids.tolist()


def check_sources(model: Model, num_prompts: int, sources: Sequence | Tensor | None) -> None:
    """Refuse sources that the model cannot read, or a lack of them.

    Raises:
        ValueError: saying what the model needs.
    """
    if not hasattr(model, "encode"):
        if sources is not None:
            raise ValueError("A language model reads no sources: leave them out.")
        return
    if sources is None or len(sources) != num_prompts:
        number = "none" if sources is None else len(sources)
        raise ValueError(
            f"An encoder-decoder needs one source for each of the {num_prompts} prompts, but there "
            f"are {number}."
        )
    if any(len(source) == 0 for source in sources):
        raise ValueError("A source is empty: give at least one token to each.")


def check_options(num_beams, temperature, top_k, top_p, max_new_tokens, on_token) -> None:
    """Refuse numbers of nothing, and what beam search has no use for.

    Raises:
        ValueError: naming the option.
    """
    if max_new_tokens is not None:
        check_size(max_new_tokens=max_new_tokens)
    if num_beams is None:
        return
    check_size(num_beams=num_beams)
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
    each = isinstance(generator, Sequence)
    if each and len(generator) != num_prompts:
        raise ValueError(
            f"A list of generators must have one for each of the {num_prompts} prompts, but "
            f"there are "
            f"{len(generator)}."
        )
    for one in generator if each else [generator]:
        if one.device.type != device.type:
            raise ValueError(
                f"The generator lives on {one.device}, but the model on {device}: make it there, "
                f'torch.Generator("{device.type}").'
            )
