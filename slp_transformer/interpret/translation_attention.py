"""Attention weights of an encoder-decoder that reads one sentence and writes another."""

import torch

from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.interpret.activations import patch_activations

HOOK_POINT_FORMATS = {"encoder": "encoder.{}.alpha", "decoder": "decoder.{}.alpha"}
HOOK_POINT_FORMATS |= {"cross": "decoder.{}.alpha_cross"}


@torch.no_grad()
def translation_attention_weights(
    model: EncoderDecoder, source: Int[Tensor, "M"], target: Int[Tensor, "N"]
) -> dict[str, Float[Tensor, "L A rows columns"]]:
    """The weights of all attention in every block, lowest first, for one pair of sentences.

    Args:
        model: whose.
        source: what the encoder reads.
        target: what the decoder reads: with a start token, and without the last word, since that
            is only written.

    Returns:
        "encoder" [L×A×M×M], "decoder" [L×A×N×N] and "cross" [L×A×N×M]: rows look, columns are
        looked at.

    Raises:
        ValueError: if an id is outside its vocabulary, or a sentence is too long or empty.
    """
    if not len(source) or not len(target):
        raise ValueError("There is nothing to look at: source and target need a token each.")
    names = {
        part: [point.format(l) for l in range(len(stack.blocks))]
        for part, point in HOOK_POINT_FORMATS.items()
        for stack in [model.encoder if part == "encoder" else model.decoder]
    }
    with (
        eval_mode(model),
        patch_activations(model, [n for part in names.values() for n in part]) as seen,
    ):
        model(source, target)
    return {part: torch.stack([seen[name] for name in found]) for part, found in names.items()}
