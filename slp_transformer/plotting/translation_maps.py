"""Attention as pictures, for a pair of sentences of the reader's choice."""

from collections.abc import Sequence

import torch

from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.interpret.translation_attention import attention_weights
from slp_transformer.plotting.attention_maps import AttentionFigure, AttentionMaps, attention_figure


def translation_attention_figure(
    model: EncoderDecoder,
    source: Sequence[int],
    target: Sequence[int],
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> AttentionFigure:
    """All three attentions of an encoder-decoder, every layer and head.

    A notebook shows them, and `save("attention.html")` or `save("attention.svg")` keeps them.

    Args:
        model: whose.
        source: ids that the encoder reads.
        target: ids of a whole translation, from its start token to its last, which is only written.
        source_words: what the ids of the source say.
        target_words: what those of the target say, the start token included.

    Raises:
        ValueError: if the target is not a start token and more, a sentence is too long, an id is
            outside its vocabulary, or there is not one word for each id.
    """
    if len(target) < 2:
        raise ValueError("A translation has a start token and one word more, or there is no look.")
    device = next(model.parameters()).device
    source, target = (torch.as_tensor(ids, device=device) for ids in (source, target))
    weights = attention_weights(model, source, target[:-1])
    read, written = list(target_words[:-1]), list(target_words[1:])
    if len(target_words) != len(target):
        raise ValueError(
            f"There are {len(target)} ids of the target and {len(target_words)} words."
        )
    return attention_figure(
        AttentionMaps(
            "Cross-attention",
            weights["cross"],
            written,
            source_words,
            "A row for each word as it is written: where in the source the decoder looks.",
        ),
        AttentionMaps(
            "Encoder self-attention",
            weights["encoder"],
            source_words,
            source_words,
            "A row for each word of the source: it looks both ways.",
        ),
        AttentionMaps(
            "Decoder self-attention",
            weights["decoder"],
            read,
            read,
            "A row for each word as it is read: it looks at itself and back.",
        ),
        title="Attention of every layer and head",
    )
