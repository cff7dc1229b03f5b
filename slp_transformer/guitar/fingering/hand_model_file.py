"""A trained model of the hand in a folder: its weights, and what they are of."""

import dataclasses
from pathlib import Path

from slp_transformer._internal.atomic_write import atomic_write, require_extra, write_json
from slp_transformer._internal.json_schema import load_validated
from slp_transformer.guitar.fingering.hand_inference import HandEnsemble
from slp_transformer.guitar.fingering.hand_model import HandModel, HandModelConfig

WEIGHTS_FILE, METADATA_FILE = "hand.safetensors", "hand.json"
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class HandModelMetadata:
    """The metadata in the folder of a model.

    Attributes:
        config: what it is made from.
        steps: how long it was trained.
        learned: pieces that it learned from.
        strings: share of the held-out notes on the right string, if any were held out.
        format: of the folder.
    """

    config: HandModelConfig
    steps: int
    learned: int
    strings: float | None = None
    format: int = FORMAT_VERSION


def save_hand_model(model_dir: Path, model: HandModel, metadata: HandModelMetadata) -> None:
    """Write a model, the weights first.

    Args:
        model_dir: where to.
        model: the model.
        metadata: its metadata.

    Raises:
        OSError: if it cannot be written.
        ImportError: if safetensors is not installed.
    """
    safetensors = require_extra("safetensors.torch", "Models of the hand")
    model_dir.mkdir(parents=True, exist_ok=True)
    weights = {key: W.detach().contiguous() for key, W in model.state_dict().items()}
    with atomic_write(model_dir / WEIGHTS_FILE) as unfinished:
        safetensors.save_file(weights, unfinished)
    write_json(model_dir / METADATA_FILE, dataclasses.asdict(metadata))


def load_hand_ensemble(*model_dirs: str | Path) -> HandEnsemble:
    """Read models that `save_hand_model` has written, to be asked together.

    Raises:
        ValueError: if there is none, or it is damaged; the sentence names the file.
        ImportError: if safetensors or pydantic is not installed.
    """
    return HandEnsemble([_load_hand_model(Path(folder)) for folder in model_dirs])


def _load_hand_model(model_dir: Path) -> HandModel:
    """The model of one folder."""
    for name in (METADATA_FILE, WEIGHTS_FILE):
        if not (model_dir / name).is_file():
            raise ValueError(
                f"{model_dir} holds no model of the hand: there is no {name}. `python -m "
                "slp_transformer.guitar.fingering.hand_training` trains one."
            )
    about = load_validated(HandModelMetadata, model_dir / METADATA_FILE)
    if about.format != FORMAT_VERSION:
        raise ValueError(f"{model_dir / METADATA_FILE} is of another version of this package.")
    if not 1 <= about.config.move_dim <= 1024:
        raise ValueError(f"{model_dir / METADATA_FILE}: move_dim must be from 1 to 1024.")
    model = HandModel(about.config)
    safetensors = require_extra("safetensors.torch", "Models of the hand")
    try:
        model.load_state_dict(safetensors.load_file(model_dir / WEIGHTS_FILE))
    except Exception as error:  # safetensors has an error of its own, PyTorch another
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{model_dir / WEIGHTS_FILE} does not fit {METADATA_FILE}: {reason}"
        ) from None
    return model
