"""LoRA adapters in the layout of the library peft, in and out.

There a product is x W + (α/r) x A B; here α/r is a part of B. So an adapter that was loaded
computes the same, but learns on at another rate: a step of B changes the product r/α times as much.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from slp_transformer._internal.argument_checks import check_finite_weights
from slp_transformer._internal.json_files import read_settings, write_json
from slp_transformer._internal.shape_types import Tensor, format_shape
from slp_transformer._internal.tensor_files import open_tensors, write_tensors
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import LoRA, add_lora, iter_lora
from slp_transformer.modern.bert import Bert
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.families import HF_FAMILIES, choose_family
from slp_transformer.modern.families.family import HFFamily, HFTensor
from slp_transformer.modern.hf_config import HFConfigReader
from slp_transformer.modern.pretrained import (
    read_published,
    to_modern_config,
    write_folder_atomically,
)
from slp_transformer.modern.published_folders import ADAPTER_CONFIG_FILE, is_pretrained_folder

ADAPTER_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."
# Settings of peft that change nothing here: of training, of names, or of which modules have A and
# B, which the file itself says. Every other one that is not read is refused unless it is empty.
WITHOUT_EFFECT = {
    *("task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision"),
    *("inference_mode", "lora_dropout", "fan_in_fan_out", "target_modules", "exclude_modules"),
    *("layers_to_transform", "layers_pattern", "megatron_core", "qalora_group_size"),
    *("runtime_config", "ensure_weight_tying", "loftq_config"),
}


class AdapterPlace(NamedTuple):
    """A matrix of a published model that can have A and B, and ours that it holds side by side.

    Attributes:
        theirs: the name of its module there.
        owner: the path of our module.
        widths: the columns of each of our matrices in it, by name.
        tensor: the matrix there.
    """

    theirs: str
    owner: str
    widths: dict[str, int]
    tensor: HFTensor


def find_adapter_places(model: Any, names: Iterable[str]) -> list[AdapterPlace]:
    """Return the places in which a model of ours can have A and B, by the names of some family.

    Several families may have its parts, under different names: the first that has all of the names
    asked for is taken, or else the first.

    Args:
        model: a language model, or a `Bert`.
        names: modules that should be among them.

    Raises:
        ValueError: if no family has the parts of the model.
    """
    config = read_adapted_config(model)
    families = [f for f in HF_FAMILIES.values() if not any(f.iter_missing_parts(config))]
    found = [list(iter_adapter_places(model, family)) for family in families]
    for places in found:
        if set(names) <= {place.theirs for place in places}:
            return places
    choose_family(config).to_hf_config(config)  # or it refuses
    return found[0]


def read_adapted_config(model: Any) -> ModernConfig:
    """Return the configuration of a model that can have an adapter.

    Raises:
        ValueError: if it is no model of words, whose modules peft calls by the names given here.
    """
    if not isinstance(model, TransformerLM | Bert):
        raise ValueError(
            "Adapters are read and written for models of words, not for class "
            f"{type(model).__name__}."
        )
    return to_modern_config(model)


def iter_adapter_places(model: Any, family: HFFamily) -> Iterator[AdapterPlace]:
    """Yield the places in which a model of ours can have A and B, by the names of a family."""
    config = to_modern_config(model)
    places: dict[str, AdapterPlace] = {}
    for owner, module in model.stack.named_modules(prefix="stack"):
        if ".parametrizations" in owner:
            continue
        adapted = getattr(module, "parametrizations", {})
        own = (name for name, _ in module.named_parameters(recurse=False))
        for leaf in sorted([*adapted, *own]):  # parts of one tensor of theirs come in order
            if not leaf.startswith("W_"):
                continue
            widths = {leaf: getattr(module, leaf).shape[-1]}
            widths = getattr(module, "fused_layout", {}).get(leaf, widths)
            found = family.find_published_tensors(f"{owner}.{leaf}", config)
            groups = [widths] if len(found) == 1 else [{n: w} for n, w in widths.items()]
            for place, group in zip(found, groups, strict=True):
                theirs = place.name.removesuffix(".weight")
                # Several of ours may be parts of one of theirs, as in Phi-3's gate_up_proj.
                places.setdefault(theirs, AdapterPlace(theirs, owner, {}, place)).widths.update(
                    group
                )
    yield from places.values()


@torch.no_grad()
def load_adapter(model: nn.Module, folder: str | Path) -> None:
    """Add the A and B of an adapter in peft's layout to a model, and freeze everything else.

    Args:
        model: the model that it was trained on, changed in place.
        folder: the adapter's, with adapter_config.json and adapter_model.safetensors.

    Raises:
        ValueError: naming what is missing, damaged, or of a kind that there is none of here. The
            model is untouched.
        ImportError: if safetensors is not installed.
    """
    path, file = Path(folder) / ADAPTER_CONFIG_FILE, Path(folder) / ADAPTER_FILE
    content = read_settings(path)
    settings = HFConfigReader(content, str(path))
    settings.check_usual_values(bias="none", peft_type="LORA")
    read = {"r", "lora_alpha", "init_lora_weights", "bias", "peft_type"}
    settings.check_usual_values(**dict.fromkeys(content.keys() - read - WITHOUT_EFFECT, False))
    rank = settings.get("r", int)
    scale = settings.get("lora_alpha", float) / rank
    if (start := content.get("init_lora_weights")) not in (None, True, False, "gaussian"):
        settings.refuse("init_lora_weights", start, "its base is not the published model")
    pairs = _read_lora_matrices(file, scale)
    all_places = find_adapter_places(model, pairs)
    places = [place for place in all_places if place.theirs in pairs]
    if unknown := sorted(pairs.keys() - {place.theirs for place in places}):
        raise ValueError(f"{file}: there is no matrix here as {unknown[0]}.")
    targets = sorted({name for place in places for name in place.widths})
    for place in all_places:
        if place.theirs not in pairs and place.widths.keys() & set(targets):
            raise ValueError(
                f"{file} has no A and B for {place.theirs}: here all blocks have them, or none."
            )
    for place in places:
        first = getattr(model.get_submodule(place.owner), next(iter(place.widths)))
        wanted = [rank, len(first)], [sum(place.widths.values()), rank]
        for M, shape, letter in zip(pairs[place.theirs], wanted, "AB", strict=True):
            if list(M.shape) != shape:
                raise ValueError(
                    f"{file}: lora_{letter} of {place.theirs} is {format_shape(M)}, not "
                    f"{format_shape(shape)}."
                )
            if not M.isfinite().all():
                raise ValueError(
                    f"{file}: {place.theirs} has NaN or infinite numbers, or by lora_alpha."
                )
    add_lora(model, rank, targets)
    factors = dict(iter_lora(model))
    for place in places:
        A, B = (M.T for M in pairs[place.theirs])
        parts = place.tensor.to_ours(B).split(list(place.widths.values()), dim=1)
        for name, part in zip(place.widths, parts, strict=True):
            factors[f"{place.owner}.{name}"].A.copy_(A)
            factors[f"{place.owner}.{name}"].B.copy_(part)


def _read_lora_matrices(path: Path, scale: float) -> dict[str, list[Tensor]]:
    """Return A and B times α/r of each module by its name, as they lie in peft's file.

    Raises:
        ValueError: if it holds something else.
    """
    found: dict[str, dict[str, Tensor]] = {}
    with open_tensors(path) as file:
        for name in file.keys():  # noqa: SIM118
            module, _, end = name.removeprefix(PREFIX).partition(".lora_")
            if not name.startswith(PREFIX) or end not in ("A.weight", "B.weight"):
                raise ValueError(f"{path} has {name}, and there is no such part of LoRA here.")
            found.setdefault(module, {})[end[0]] = file.get_tensor(name).float()
    if halves := sorted(name for name, pair in found.items() if len(pair) < 2):
        raise ValueError(f"{path} lacks A or B of {halves[0]}.")
    return {name: [pair["A"], scale * pair["B"]] for name, pair in found.items()}


@torch.no_grad()
def save_adapter(model: TransformerLM | Bert, folder: str | Path, base: str | None = None) -> Path:
    """Write a model's A and B as an adapter in peft's layout.

    Where a published model has one matrix for several of ours, as GPT-2 for queries, keys and
    values, its A holds theirs side by side: r is then the sum, and zeros fill the others up.

    Args:
        model: a model with LoRA.
        folder: a new folder, or an empty one; written whole or not at all.
        base: the folder or the name of the model that the adapter is for.

    Returns:
        The folder.

    Raises:
        ValueError: if the model has no LoRA or numbers that are none, no family has its parts, or
            the folder is not empty.
        ImportError: if safetensors is not installed.
    """
    factors = dict(iter_lora(model))
    if not factors:
        raise ValueError("The model has no LoRA matrices: add_lora makes some.")
    check_finite_weights(model)
    config = read_adapted_config(model)
    family = choose_family(config)
    family.to_hf_config(config)  # or it refuses
    if base is not None and is_pretrained_folder(base):
        family = read_published(base).family
    pairs = {
        place.theirs: _join_lora_factors(place, factors)
        for place in iter_adapter_places(model, family)
        if any(f"{place.owner}.{name}" in factors for name in place.widths)
    }
    rank = max(len(A) for A, _ in pairs.values())
    tensors = {}
    for name, (A, B) in pairs.items():
        zeros = rank - len(A)
        filled = nn.functional.pad(A, (0, 0, 0, zeros)), nn.functional.pad(B, (0, zeros))
        for letter, M in zip("AB", filled, strict=True):
            tensors[f"{PREFIX}{name}.lora_{letter}.weight"] = M.cpu().contiguous()
    settings: dict[str, Any] = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,  # so that α/r is 1
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": not family.transposed,
        "inference_mode": True,
        "target_modules": sorted({".".join(name.split(".")[-2:]) for name in pairs}),
    }
    with write_folder_atomically(Path(folder)) as unfinished:
        write_tensors(unfinished / ADAPTER_FILE, tensors, "Adapters", {"format": "pt"})
        write_json(unfinished / ADAPTER_CONFIG_FILE, settings)
    return Path(folder)


def _join_lora_factors(place: AdapterPlace, factors: dict[str, LoRA]) -> tuple[Tensor, Tensor]:
    """Return the A and B of one matrix there for those of ours that lie in it side by side."""
    pairs = {name: factors.get(f"{place.owner}.{name}") for name in place.widths}
    found = [pair for pair in pairs.values() if pair is not None]
    blocks = [
        found[0].B.new_zeros(width, 0) if (pair := pairs[name]) is None else pair.B.T
        for name, width in place.widths.items()
    ]
    B = place.tensor.to_theirs(torch.block_diag(*blocks).T).T
    return torch.cat([pair.A.T for pair in found]), B
