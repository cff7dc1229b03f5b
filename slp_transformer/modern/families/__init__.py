"""The published models that are loaded and written, a record for each family."""

from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.families.bert import BERT
from slp_transformer.modern.families.family import HFFamily
from slp_transformer.modern.families.gpt2 import GPT2
from slp_transformer.modern.families.gpt_neox import GPT_NEOX
from slp_transformer.modern.families.llama import LLAMA, MISTRAL, OLMO2, PHI3, QWEN2, QWEN3, SMOLLM3

RECORDS = (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, SMOLLM3, OLMO2, PHI3, GPT_NEOX, BERT)
HF_FAMILIES: dict[str, HFFamily] = {family.model_type: family for family in RECORDS}
"""Each family by its `model_type`; the first that has all parts of a model of ours is written."""


def choose_family(config: ModernConfig) -> HFFamily:
    """Return the first family that has the parts of a model of ours; else one that lacks fewest."""
    missing = {
        family: len([*HF_FAMILIES[family].iter_missing_parts(config)]) for family in HF_FAMILIES
    }
    return HF_FAMILIES[min(missing, key=missing.__getitem__)]
