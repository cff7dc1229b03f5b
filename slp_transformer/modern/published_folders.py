"""Which folders hold a model that others have published. Nothing here needs PyTorch."""

from pathlib import Path

from slp_transformer._internal.json_files import read_json

CONFIG_FILE = "config.json"


def is_pretrained_folder(folder: str | Path) -> bool:
    """Tell if a folder holds a published model, as `from_pretrained` reads it."""
    path = Path(folder) / CONFIG_FILE
    if not path.is_file():
        return False
    content = read_json(path)
    return isinstance(content, dict) and "model_type" in content
