"""From the book's block to today's: the few steps in between, and the models of others.

RMSNorm, rotary positions, shared keys and values, the gated feedforward layer without biases; and
GPT-2, BERT, Llama and its relatives, loaded from the files that others publish and written to
them.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.modern.adapters import load_adapter, save_adapter
    from slp_transformer.modern.attention import GroupedQueryAttention, repeat_kv
    from slp_transformer.modern.bert import Bert, BertClassifier, BertConfig, BertEncoder
    from slp_transformer.modern.config import ModernConfig, RopeScaling
    from slp_transformer.modern.encoders import ModernClassifier, ModernEncoder
    from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer, load_tokenizer
    from slp_transformer.modern.language_model import ModernBlock, ModernLM
    from slp_transformer.modern.pretrained import from_pretrained, save_pretrained
    from slp_transformer.modern.rms_norm import RMSNorm
    from slp_transformer.modern.rotary import RotaryPositions, apply_rotary

__all__ = [
    "Bert",
    "BertClassifier",
    "BertConfig",
    "BertEncoder",
    "PretrainedTokenizer",
    "RMSNorm",
    "RopeScaling",
    "RotaryPositions",
    "GroupedQueryAttention",
    "ModernBlock",
    "ModernClassifier",
    "ModernConfig",
    "ModernEncoder",
    "ModernLM",
    "from_pretrained",
    "load_adapter",
    "load_tokenizer",
    "apply_rotary",
    "save_adapter",
    "save_pretrained",
    "repeat_kv",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
