"""A trained model of the hand in a folder: its weights, and what they are of."""

import dataclasses
from pathlib import Path

from slp_transformer._internal.atomic_write import from_text_extra, whole_file, write_json
from slp_transformer._internal.json_schema import read_as
from slp_transformer.guitar.fingering.hand_inference import Hand
from slp_transformer.guitar.fingering.hand_model import HandConfig, HandModel

WEIGHTS, ABOUT = "hand.safetensors", "hand.json"
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class About:
    """What a folder says of its model.

    Attributes:
        config: what it is made from.
        steps: how long it was trained.
        learned: pieces that it learned from.
        strings: share of the held-out notes on the right string, if any were held out.
        format: of the folder.
    """

    config: HandConfig
    steps: int
    learned: int
    strings: float | None = None
    format: int = FORMAT


def save_hand(folder: Path, model: HandModel, about: About) -> None:
    """Write a model, the weights first.

    Args:
        folder: where to.
        model: the model.
        about: what is said of it.

    Raises:
        OSError: if it cannot be written.
        ImportError: if safetensors is not installed.
    """
    safetensors = from_text_extra("safetensors.torch", "Models of the hand")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {key: W.detach().contiguous() for key, W in model.state_dict().items()}
    with whole_file(folder / WEIGHTS) as unfinished:
        safetensors.save_file(weights, unfinished)
    write_json(folder / ABOUT, dataclasses.asdict(about))


def load_hand(*folders: str | Path) -> Hand:
    """Read models that `save_hand` has written, to be asked together.

    Raises:
        ValueError: if there is none, or it is damaged; the sentence names the file.
        ImportError: if safetensors or pydantic is not installed.
    """
    return Hand([_load(Path(folder)) for folder in folders])


def _load(folder: Path) -> HandModel:
    """The model of one folder."""
    for name in (ABOUT, WEIGHTS):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder} holds no model of the hand: there is no {name}. `python -m "
                "slp_transformer.guitar.fingering.hand_training` trains one."
            )
    about = read_as(About, folder / ABOUT)
    if about.format != FORMAT:
        raise ValueError(f"{folder / ABOUT} is of another version of this package.")
    if not 1 <= about.config.move_dim <= 1024:
        raise ValueError(f"{folder / ABOUT}: move_dim must be from 1 to 1024.")
    model = HandModel(about.config)
    safetensors = from_text_extra("safetensors.torch", "Models of the hand")
    try:
        model.load_state_dict(safetensors.load_file(folder / WEIGHTS))
    except Exception as error:  # safetensors has an error of its own, PyTorch another
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{folder / WEIGHTS} does not fit {ABOUT}: {reason}") from None
    return model
