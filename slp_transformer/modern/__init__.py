"""From the book's block to today's: the few steps in between, and the models of others.

RMSNorm, rotary positions, shared keys and values, the gated feedforward layer without biases; and
GPT-2, Llama, Qwen3 and BERT, loaded from the files that others publish and written to them.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.modern.attention import TodaysAttention, shared
    from slp_transformer.modern.bert import Bert, BertConfig
    from slp_transformer.modern.config import TodaysConfig
    from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer, load_tokenizer
    from slp_transformer.modern.language_model import TodaysBlock, TodaysLM
    from slp_transformer.modern.pretrained import from_pretrained, save_pretrained
    from slp_transformer.modern.rms_norm import RMSNorm
    from slp_transformer.modern.rotary import LongContext, RotaryPositions, rotate

__all__ = [
    "Bert",
    "BertConfig",
    "LongContext",
    "PretrainedTokenizer",
    "RMSNorm",
    "RotaryPositions",
    "TodaysAttention",
    "TodaysBlock",
    "TodaysConfig",
    "TodaysLM",
    "from_pretrained",
    "load_tokenizer",
    "rotate",
    "save_pretrained",
    "shared",
]

__getattr__, __dir__ = attach(__name__)
