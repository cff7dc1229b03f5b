"""Which folders hold a model that others have published. Nothing here needs PyTorch."""

from pathlib import Path, PureWindowsPath

from slp_transformer._internal.json_files import read_json

CONFIG_FILE = "config.json"
ADAPTER_CONFIG_FILE = "adapter_config.json"  # of an adapter in the layout of peft
SINGLE_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"


def is_pretrained_folder(folder: str | Path) -> bool:
    """Tell if a folder holds a published model, as `from_pretrained` reads it."""
    path = Path(folder) / CONFIG_FILE
    if not path.is_file():
        return False
    content = read_json(path)
    return isinstance(content, dict) and "model_type" in content


def map_tensors_to_files(folder: Path) -> dict[str, Path]:
    """Return the file of each tensor by the index of several files; empty if there is one file.

    Where a folder has both, the one file counts, as it does for transformers.

    Raises:
        ValueError: if there are no weights, or the index names files elsewhere.
    """
    path = folder / INDEX_FILE
    if (folder / SINGLE_FILE).exists():
        return {}
    if not path.exists():
        pickled = sorted(folder.glob("*.bin")) + sorted(folder.glob("*.pt*"))
        why = f": {pickled[0].name} is a pickle, which could run code" if pickled else ""
        raise ValueError(
            f"{folder} has no {SINGLE_FILE} and no {INDEX_FILE}{why}. Weights are read "
            "from safetensors alone."
        )
    index = read_json(path)
    listed = index.get("weight_map") if isinstance(index, dict) else None
    plain = isinstance(listed, dict) and all(
        isinstance(name, str) and PureWindowsPath(name).name == name for name in listed.values()
    )
    if not plain or not listed:
        raise ValueError(f"{path} must have a weight_map, from names of tensors to files here.")
    return {name: folder / file for name, file in listed.items()}


def find_weight_files(folder: Path) -> list[Path]:
    """Return the files that hold the weights of a published model, in order.

    Raises:
        ValueError: if there are none.
    """
    return sorted(set(map_tensors_to_files(folder).values())) or [folder / SINGLE_FILE]
