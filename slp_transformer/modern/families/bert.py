"""BERT (Devlin et al. 2019): post-norm, bidirectional, with a row for each segment."""

from typing import Any

from slp_transformer.modern.bert import BertConfig
from slp_transformer.modern.families.family import HFFamily, HFForm
from slp_transformer.modern.families.gpt2 import LAYER_NORMS


def bert_extras_to_hf(config: BertConfig) -> dict[str, Any]:
    """Return the settings of BERT that are not in its table."""
    return {"attention_probs_dropout_prob": config.dropout, "tie_word_embeddings": True}


BERT = HFFamily(
    "bert",
    title="BERT",
    architecture="BertForMaskedLM",
    settings={
        "vocab_size": ("vocab_size", 30522),
        "context_length": ("max_position_embeddings", 512),
        "model_dim": ("hidden_size", 768),
        "num_heads": ("num_attention_heads", 12),
        "num_blocks": ("num_hidden_layers", 12),
        "hidden_dim": ("intermediate_size", 3072),
        "dropout": ("hidden_dropout_prob", 0.1),  # of two shares, which are one here
        "eps": ("layer_norm_eps", 1e-12),
        "num_segments": ("type_vocab_size", 2),
    },
    activations=("hidden_act", {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu"}),
    fixed={"norm": "post", "positions": "learned", **LAYER_NORMS},
    required={
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
        "is_decoder": False,
        "add_cross_attention": False,
    },
    write=bert_extras_to_hf,
    params={
        "embedding.tokens.E": "bert.embeddings.word_embeddings",
        "embedding.positions.P": "bert.embeddings.position_embeddings",
        "S": "bert.embeddings.token_type_embeddings",
        "norm_0": "bert.embeddings.LayerNorm",
        "stack.blocks.#.norm_1": "bert.encoder.layer.#.attention.output.LayerNorm",
        "stack.blocks.#.norm_2": "bert.encoder.layer.#.output.LayerNorm",
        "stack.blocks.#.attention.QKV": (
            "bert.encoder.layer.#.attention.self.query",
            "bert.encoder.layer.#.attention.self.key",
            "bert.encoder.layer.#.attention.self.value",
        ),
        "stack.blocks.#.attention.O": "bert.encoder.layer.#.attention.output.dense",
        "stack.blocks.#.ffn.1": "bert.encoder.layer.#.intermediate.dense",
        "stack.blocks.#.ffn.2": "bert.encoder.layer.#.output.dense",
        "head": "cls.predictions.transform.dense",
        "norm_head": "cls.predictions.transform.LayerNorm",
        "words": "cls.predictions",
    },
    prefix="bert.",
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored=(
        "embeddings.position_ids",
        # The head for the next sentence, which the first BERTs hold too.
        *("pooler.dense.weight", "pooler.dense.bias"),
        *("seq_relationship.weight", "seq_relationship.bias"),
    ),
    config_class=BertConfig,
    model="slp_transformer.modern.bert:Bert",
    forms=(
        HFForm("Model", "slp_transformer.modern.bert:BertEncoder"),
        HFForm(
            "ForSequenceClassification",
            "slp_transformer.modern.bert:BertClassifier",
            {"pool": "bert.pooler.dense", "classes": "classifier"},
            has_classes=True,
        ),
    ),
)
