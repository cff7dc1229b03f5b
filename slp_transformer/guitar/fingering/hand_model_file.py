"""A trained model of the hand in a folder: its weights, and what they are of."""

import dataclasses
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from slp_transformer._internal.atomic_write import from_text_extra, whole_file, write_json
from slp_transformer._internal.json_schema import read_as
from slp_transformer.guitar.fingering.hand_inference import Hand
from slp_transformer.guitar.fingering.hand_model import HandConfig, HandModel
from slp_transformer.guitar.fingering.second_look import SecondLook

WEIGHTS, ABOUT, SECOND = "hand.safetensors", "hand.json", "second.safetensors"
FORMAT = 1
Part = TypeVar("Part", bound=nn.Module)


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


def save_hand(
    folder: Path, model: HandModel, about: About, second: SecondLook | None = None
) -> None:
    """Write a model, the weights first.

    Args:
        folder: where to.
        model: the model.
        about: what is said of it.
        second: its second look, if it has one.

    Raises:
        OSError: if it cannot be written.
        ImportError: if safetensors is not installed.
    """
    safetensors = from_text_extra("safetensors.torch", "Models of the hand")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SECOND).unlink(missing_ok=True)
    for name, part in ((WEIGHTS, model), (SECOND, second)):
        if part is not None:
            weights = {key: W.detach().contiguous() for key, W in part.state_dict().items()}
            with whole_file(folder / name) as unfinished:
                safetensors.save_file(weights, unfinished)
    write_json(folder / ABOUT, dataclasses.asdict(about))


def load_hand(*folders: str | Path) -> Hand:
    """Read models that `save_hand` has written, to be asked together.

    They look twice if one of them has learned to; where several have, by their mean.

    Raises:
        ValueError: if there is none, or it is damaged; the sentence names the file.
        ImportError: if safetensors or pydantic is not installed.
    """
    models = [_load(Path(folder)) for folder in folders]
    kept = [Path(folder) / SECOND for folder in folders]
    looks = [_filled(SecondLook(), path) for path in kept if path.is_file()]
    if not looks:
        return Hand(models)
    second = SecondLook()
    second.weights.data = torch.stack([look.weights.data for look in looks]).mean(0)
    return Hand(models, second=second.requires_grad_(False))


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
    try:
        check_sizes(about.config)
        model = HandModel(about.config)
    except ValueError as error:
        raise ValueError(f"{folder / ABOUT}: {error}") from None
    return _filled(model, folder / WEIGHTS)


def _filled(part: Part, path: Path) -> Part:
    """A model, or a second look, with the weights of a file.

    Raises:
        ValueError: if they do not fit.
    """
    safetensors = from_text_extra("safetensors.torch", "Models of the hand")
    try:
        part.load_state_dict(safetensors.load_file(path))
    except Exception as error:  # safetensors has an error of its own, PyTorch another
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} does not fit {ABOUT}: {reason}") from None
    return part


def check_sizes(config: HandConfig) -> None:
    """Refuse a model that is too large to be one of these, before it is built.

    Raises:
        ValueError: naming the setting.
    """
    bounds = {"model_dim": 1024, "num_heads": 64, "num_blocks": 24, "state_dim": 1024}
    for name, most in (bounds | {"move_dim": 1024, "reach": 16}).items():
        least = 0 if name in ("num_blocks", "reach") else 1
        if not least <= getattr(config, name) <= most:
            raise ValueError(f"{name} must be from {least} to {most}.")
