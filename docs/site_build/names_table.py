"""The tables of the page Reuse: published families, parts of a model, and names in four places.

Hugging Face's are read from the tables that `from_pretrained` and `save_pretrained` read, and
nanoGPT's parameters are GPT-2's. The others are written down here.
"""

import contextlib
import re
from dataclasses import fields, replace
from functools import cache
from typing import Any

from slp_transformer._internal.parts import MODEL_TABLES
from slp_transformer._internal.setting_names import SETTINGS_ELSEWHERE
from slp_transformer._internal.settings import settings_of
from slp_transformer.modern import ModernConfig
from slp_transformer.modern.families import HF_FAMILIES
from slp_transformer.modern.pretrained import build_on_meta

BIASES: dict[str, Any] = {"attention_bias": True, "ffn_bias": True, "tied": False}
LLAMA = ModernConfig(11, num_kv_heads=2, key_dim=6, value_dim=6, hidden_dim=50, **BIASES)
BOOK: dict[str, Any] = {"positions": "learned", "normalization": "layer", "activation": "relu"}
GPT2 = ModernConfig(11, **BOOK, **BIASES)

BLOCK = ("stack.blocks.0.", "layers.0.", "transformer.h.0.", "model.layers.0.", "blocks.0.")
PARAMETERS = {  # ours: PyTorch's and TransformerLens's
    "embedding.tokens.E": ("", "embed.W_E"),
    "embedding.positions.P": ("", "pos_embed.W_pos"),
    "stack.final_norm.gamma": ("norm.weight", "ln_final.w"),
    "stack.final_norm.beta": ("norm.bias", "ln_final.b"),
    "E_out": ("", "unembed.W_U"),
    "stack.blocks.0.norm_1.gamma": ("norm1.weight", "ln1.w"),
    "stack.blocks.0.norm_1.beta": ("norm1.bias", "ln1.b"),
    "stack.blocks.0.attention.W_QKV": (
        "self_attn.in_proj_weight",
        "attn.W_Q, attn.W_K, attn.W_V",
    ),
    "stack.blocks.0.attention.b_QKV": ("self_attn.in_proj_bias", "attn.b_Q, attn.b_K, attn.b_V"),
    "stack.blocks.0.attention.W_O": ("self_attn.out_proj.weight", "attn.W_O"),
    "stack.blocks.0.attention.b_O": ("self_attn.out_proj.bias", "attn.b_O"),
    "stack.blocks.0.norm_cross.gamma": ("norm2.weight", ""),
    "stack.blocks.0.cross_attention.W_QKV": ("multihead_attn.in_proj_weight", ""),
    "stack.blocks.0.cross_attention.W_O": ("multihead_attn.out_proj.weight", ""),
    "stack.blocks.0.norm_2.gamma": ("`norm2.weight`, or `norm3.weight`", "ln2.w"),
    "stack.blocks.0.norm_2.beta": ("`norm2.bias`, or `norm3.bias`", "ln2.b"),
    "stack.blocks.0.ffn.W_1": ("linear1.weight", "`mlp.W_in`, or gated `mlp.W_gate`"),
    "stack.blocks.0.ffn.b_1": ("linear1.bias", "mlp.b_in"),
    "stack.blocks.0.ffn.W_2": ("linear2.weight", "`mlp.W_out`, or gated `mlp.W_in`"),
    "stack.blocks.0.ffn.b_2": ("linear2.bias", "`mlp.b_out`, or gated `mlp.b_in`"),
    "stack.blocks.0.ffn.W_3": ("", "mlp.W_out"),
    "stack.blocks.0.ffn.b_3": ("", "mlp.b_out"),
}

HOOKS = {  # ours, of block 0: Hugging Face's and TransformerLens's
    "0.X": ("hidden_states[0]", "hook_resid_pre"),
    "0.T1": ("", "ln1.hook_normalized"),
    "0.Q": ("", "`attn.hook_q`, or rotary `attn.hook_rot_q`"),
    "0.K": ("", "`attn.hook_k`, or rotary `attn.hook_rot_k`"),
    "0.V": ("", "attn.hook_v"),
    "0.scores": ("", "`attn.hook_attn_scores`, mask added"),
    "0.alpha": ("attentions[0]", "attn.hook_pattern"),
    "0.head": ("", "attn.hook_z"),
    "0.T2": ("", "hook_attn_out"),
    "0.T3": ("", "hook_resid_mid"),
    "0.T4": ("", "ln2.hook_normalized"),
    "0.T5": ("", "hook_mlp_out"),
    "0.H": ("hidden_states[1]", "hook_resid_post"),
}


@cache  # the package is imported once; a server asks at every build
def parameter_rows() -> list[list[str]]:
    """Return ours, PyTorch's, GPT-2's and nanoGPT's, Llama's and TransformerLens's."""
    rows = []
    for ours, (pytorch, lens) in PARAMETERS.items():
        found = [find_parameters(kind, ours) for kind in ("gpt2", "llama")]
        row = [ours, pytorch, *found, lens]
        rows.append([name.replace(begin, "") for name, begin in zip(row, BLOCK, strict=True)])
        if ours == "E_out":
            rows.append([f"`{begin}` …" for begin in BLOCK])  # so begin those that follow
    return rows


@cache
def our_parameters(config: ModernConfig) -> frozenset[str]:
    """Return the names of a model's parameters."""
    return frozenset(build_on_meta(config).state_dict())


def find_parameters(kind: str, ours: str) -> str:
    """Return the tensors of a published model that one of ours is made of, if there are any."""
    config = {"gpt2": GPT2, "llama": LLAMA}[kind]
    if ours not in our_parameters(config):
        return ""
    return ", ".join(place.name for place in HF_FAMILIES[kind].find_published_tensors(ours, config))


def setting_rows() -> list[list[str]]:
    """Return ours, PyTorch's, nanoGPT's, GPT-2's, Llama's and TransformerLens's names, if any."""
    known = ", ".join(SETTINGS_ELSEWHERE).split(", ")
    others = {name: ("",) * 4 for name in settings_of(ModernConfig) if name not in known}
    rows = [
        [ours, pytorch, nano, *(find_settings(kind, ours) for kind in ("gpt2", "llama")), lens]
        for ours, (pytorch, nano, lens, _) in (SETTINGS_ELSEWHERE | others).items()
    ]
    return [row for row in rows if any(row[1:])]


def find_settings(kind: str, ours: str) -> str:
    """Return the keys of config.json that are other ones after a change of ours."""
    config, family = {"gpt2": GPT2, "llama": LLAMA}[kind], HF_FAMILIES[kind]
    before = family.to_hf_config(config)
    defaults = {each.name: each.default for each in fields(ModernConfig)}
    names = ours.split(", ")
    examples = {name: settings_of(ModernConfig)[name].example for name in names}
    # An example may be what the model has already, or what no such model can have.
    plain = {name: defaults[name] for name in names}
    for change in (examples, plain, dict.fromkeys(names, 3), dict.fromkeys(names, (3,))):
        with contextlib.suppress(ValueError, TypeError):
            after = family.to_hf_config(replace(config, **change))
            if found := [name for name in after if after[name] != before.get(name)]:
                return ", ".join(found)
    return ""


def choice_rows() -> list[list[str]]:
    """Return the setting, the choice, and what it does, for each part of a model."""
    return [
        [table.name, choice, entry.summary]
        for table in MODEL_TABLES
        for choice, entry in table.items()
    ]


def family_rows() -> list[list[str]]:
    """Return of each published family how it is recognized, its class, and what is refused."""
    return [
        [
            family.title,
            f"`{family.model_type}`",
            f"`{family.architecture}`",
            ", ".join(f"`{name}`" for name in family.required),
        ]
        for family in HF_FAMILIES.values()
    ]


def fill(markdown: str) -> str:
    """Put the tables where the page has their marks."""
    heads = {
        "names of parameters": ["here", "PyTorch", "GPT-2, nanoGPT", "Llama", "TransformerLens"],
        "names of settings": ["here", "PyTorch", "nanoGPT", "GPT-2", "Llama", "TransformerLens"],
        "names of hooks": ["here", "Hugging Face", "TransformerLens"],
    }
    rows = {"names of parameters": parameter_rows(), "names of settings": setting_rows()}
    rows["names of hooks"] = [[ours, *others] for ours, others in HOOKS.items()]
    for mark, head in heads.items():
        text = format_rows(head, [list(map(as_code, row)) for row in rows[mark]])
        text = re.sub("`(.+?)`", breaking_at_dots, text)
        box = f'<div class="slp-wide slp-names" tabindex="0" markdown="1">\n\n{text}\n\n</div>'
        markdown = markdown.replace(f"<!-- {mark} -->", box)
    choices = [[as_code(setting), as_code(name), what] for setting, name, what in choice_rows()]
    parts = format_rows(["setting", "choice", "what it is"], choices)
    parts = re.sub("`(.+?)`", breaking_at_dots, parts)
    markdown = markdown.replace("<!-- choices of parts -->", parts)
    head = ["family", "`model_type`", "class in transformers", "settings with one value here"]
    return markdown.replace("<!-- families -->", format_rows(head, family_rows()))


def format_rows(head: list[str], rows: list[list[str]]) -> str:
    """Return a table as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def breaking_at_dots(match: re.Match[str]) -> str:
    """Return a name as code that a narrow column breaks after a dot, and nowhere else."""
    return f"<code>{match[1].replace('.', '.<wbr>')}</code>"


def as_code(cell: str) -> str:
    """Return names as code, unless some of a cell's words are code already."""
    return cell if "`" in cell or not cell else f"`{cell.replace(', ', '`, `')}`"
