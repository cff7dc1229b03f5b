"""From the book's block to today's: the few steps in between, and the models of others.

RMSNorm, rotary positions, shared keys and values, the gated feedforward layer without biases; and
GPT-2, BERT, Llama and its relatives, loaded from the files that others publish and written to
them.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.modern.adapters import load_adapter as load_adapter
    from slp_transformer.modern.adapters import save_adapter as save_adapter
    from slp_transformer.modern.attention import GroupedQueryAttention as GroupedQueryAttention
    from slp_transformer.modern.attention import repeat_kv as repeat_kv
    from slp_transformer.modern.bert import Bert as Bert
    from slp_transformer.modern.bert import BertClassifier as BertClassifier
    from slp_transformer.modern.bert import BertConfig as BertConfig
    from slp_transformer.modern.bert import BertEncoder as BertEncoder
    from slp_transformer.modern.config import ModernConfig as ModernConfig
    from slp_transformer.modern.config import RopeScaling as RopeScaling
    from slp_transformer.modern.encoders import ModernClassifier as ModernClassifier
    from slp_transformer.modern.encoders import ModernEncoder as ModernEncoder
    from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer as PretrainedTokenizer
    from slp_transformer.modern.hf_tokenizer import load_tokenizer as load_tokenizer
    from slp_transformer.modern.language_model import ModernBlock as ModernBlock
    from slp_transformer.modern.language_model import ModernLM as ModernLM
    from slp_transformer.modern.pretrained import from_pretrained as from_pretrained
    from slp_transformer.modern.pretrained import save_pretrained as save_pretrained
    from slp_transformer.modern.rms_norm import RMSNorm as RMSNorm
    from slp_transformer.modern.rotary import RotaryPositions as RotaryPositions
    from slp_transformer.modern.rotary import apply_rotary as apply_rotary

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
