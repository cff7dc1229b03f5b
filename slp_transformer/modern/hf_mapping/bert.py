"""BERT (Devlin et al. 2019): post-norm, bidirectional, with a row for each segment."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from slp_transformer.modern.bert import BertConfig
from slp_transformer.modern.hf_mapping.config_reader import HFConfigReader
from slp_transformer.modern.hf_mapping.param_map import (
    ParamMap,
    check_only,
    map_linear,
    map_norm,
    map_qkv,
    map_tensor,
)

PREFIX = "bert."
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu"}
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")  # one here for both: the first
IGNORED_BUFFERS = ("embeddings.position_ids",)
# The head's matrix is E, and its bias stands under two names.
TIED_KEYS = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
NEXT_SENTENCE_KEY = "cls.seq_relationship.weight"


def from_hf_config(settings: HFConfigReader) -> BertConfig:
    """Our configuration of such a model.

    Raises:
        ValueError: if it has a part that we don't have.
    """
    settings.require_value("position_embedding_type", "absolute")
    settings.require_value("tie_word_embeddings", True)
    settings.refuse_keys(("is_decoder", "add_cross_attention"))
    return BertConfig(
        vocab_size=settings.get("vocab_size", int, 30522),
        context_length=settings.get("max_position_embeddings", int, 512),
        model_dim=settings.get("hidden_size", int, 768),
        num_heads=settings.get("num_attention_heads", int, 12),
        num_blocks=settings.get("num_hidden_layers", int, 12),
        hidden_dim=settings.get("intermediate_size", int, 3072),
        activation=settings.get_choice("hidden_act", ACTIVATIONS, "gelu"),
        dropout=settings.get(DROPOUTS[0], float, 0.1),
        eps=settings.get("layer_norm_eps", float, 1e-12),
        num_segments=settings.get("type_vocab_size", int, 2),
        next_sentence="BertForPreTraining" in settings.get_list("architectures"),
    )


def detect_heads(config: BertConfig, names: Collection[str]) -> BertConfig:
    """The configuration, with a sentence head if the files have one that config.json is silent of.

    Those of the first BERTs do: they name BertForMaskedLM and hold all that was trained.
    """
    return replace(config, next_sentence=config.next_sentence or NEXT_SENTENCE_KEY in names)


def to_hf_config(config: BertConfig) -> dict[str, Any]:
    """Return the settings of their config.json for a model of ours.

    Raises:
        ValueError: if BERT has no such part.
    """
    names = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    fixed = ("norm", "positions", "normalization", "qk_norm", "attention_bias", "ffn_bias")
    check_only("BERT", config, **{name: getattr(BertConfig(1), name) for name in fixed})
    return {
        "architectures": ["BertForPreTraining" if config.next_sentence else "BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "hidden_size": config.model_dim,
        "intermediate_size": config.hidden_dim or 4 * config.model_dim,
        "num_hidden_layers": config.num_blocks,
        "num_attention_heads": config.num_heads,
        "hidden_act": names[config.activation],
        "layer_norm_eps": config.eps,
        **dict.fromkeys(DROPOUTS, config.dropout),
        "type_vocab_size": config.num_segments,
        "tie_word_embeddings": True,
    }


def param_maps(config: BertConfig) -> Iterator[ParamMap]:
    """Return the places of our tensors in their files, block by block."""
    E = f"{PREFIX}embeddings"
    yield map_tensor("embedding.tokens.E", f"{E}.word_embeddings.weight")
    yield map_tensor("embedding.positions.P", f"{E}.position_embeddings.weight")
    yield map_tensor("S", f"{E}.token_type_embeddings.weight")
    yield map_norm("norm_0", f"{E}.LayerNorm", offset=True)
    for i in range(config.num_blocks):
        ours, theirs = f"stack.blocks.{i}", f"{PREFIX}encoder.layer.{i}"
        attention, ffn = f"{ours}.attention", f"{ours}.ffn"
        block = map_norm(f"{ours}.norm_1", f"{theirs}.attention.output.LayerNorm", offset=True)
        block |= map_norm(f"{ours}.norm_2", f"{theirs}.output.LayerNorm", offset=True)
        names = tuple(f"{theirs}.attention.self.{name}" for name in ("query", "key", "value"))
        block |= map_qkv(attention, names, config)
        block |= map_linear(
            f"{attention}.W_O", f"{attention}.b_O", f"{theirs}.attention.output.dense"
        )
        block |= map_linear(f"{ffn}.W_1", f"{ffn}.b_1", f"{theirs}.intermediate.dense")
        yield block | map_linear(f"{ffn}.W_2", f"{ffn}.b_2", f"{theirs}.output.dense")
    head = map_linear("W_head", "b_head", "cls.predictions.transform.dense")
    head |= map_norm("norm_head", "cls.predictions.transform.LayerNorm", offset=True)
    yield head | map_tensor("b_words", "cls.predictions.bias")
    if config.next_sentence:
        yield map_linear("W_pool", "b_pool", f"{PREFIX}pooler.dense")
        yield map_linear("W_next", "b_next", "cls.seq_relationship")
