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

MIXED = "a choice of feedforward layers for each token"
GEMMA = "a gate of GELU, gains stored less 1, an embedding multiplied by √d"
TWO_MORE_NORMS = "norms before and after each sublayer"
MISSING_PARTS: dict[str, str] = {
    "gemma": GEMMA,
    "gemma2": f"{GEMMA}, {TWO_MORE_NORMS}, soft caps of scores and logits",
    "gemma3": f"{GEMMA}, {TWO_MORE_NORMS}, pictures",
    "gemma3_text": f"{GEMMA}, {TWO_MORE_NORMS}, two bases of rotations",
    "gpt_neo": "scores that are not divided by √d_k",
    "opt": "positions whose rows begin with the third",
    "distilbert": "a BERT without segments",
    "roberta": "positions counted from the id of padding",
    "mixtral": MIXED,
    "qwen2_moe": MIXED,
    "qwen3_moe": MIXED,
    "t5": "biases of scores that depend on distance",
}
"""Well-known families that cannot be loaded, by `model_type`: the parts that nothing here has."""


def choose_family(config: ModernConfig) -> HFFamily:
    """Return the first family that has the parts of a model of ours; else one that lacks fewest."""
    missing = {
        family: len([*HF_FAMILIES[family].iter_missing_parts(config)]) for family in HF_FAMILIES
    }
    return HF_FAMILIES[min(missing, key=missing.__getitem__)]
