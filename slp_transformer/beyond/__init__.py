"""From the book's block to today's: the few steps in between, and the models of others.

RMSNorm, rotary positions, shared keys and values, the gated feedforward layer without biases; and
GPT-2, Llama, Qwen3 and BERT, loaded from the files that others publish and written to them.
"""

from typing import TYPE_CHECKING

from slp_transformer.offers import offered

if TYPE_CHECKING:
    from slp_transformer.beyond.attention import TodaysAttention, shared
    from slp_transformer.beyond.bert import Bert, BertConfig
    from slp_transformer.beyond.config import TodaysConfig
    from slp_transformer.beyond.language_model import TodaysBlock, TodaysLM
    from slp_transformer.beyond.pretrained import from_pretrained, save_pretrained
    from slp_transformer.beyond.rms_norm import RMSNorm
    from slp_transformer.beyond.rotary import LongContext, RotaryPositions, rotate
    from slp_transformer.beyond.tokenizer import PretrainedTokenizer, load_tokenizer

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

__getattr__, __dir__ = offered(__name__)
