"""Train a model of the hand on tab that people have written.

    python -m slp_guitar.fingering.hand_training TABS --out-dir RUN --val-data OTHERS

TABS is a folder of ASCII tabs, or a file of JSON Lines (see `passages.read_passages_jsonl`). RUN is
a run like any other: it can be killed and resumed, and `slp-transformer tab SONG --model RUN` uses
it. `benchmarks/pitch_to_tab.py` measures it.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from slp_guitar.ascii_reader import read_tab_folder
from slp_guitar.fingering.hand_lattice import NUM_STRINGS, PassageWindows
from slp_guitar.fingering.hand_model import (
    HandModel,
    hand_model_loss,
    load_hand_ensemble,
)
from slp_guitar.fingering.passages import (
    Passage,
    compare_fingerings,
    list_window_starts,
    passage_from_tab,
    read_passages_jsonl,
    sum_metrics,
)
from slp_guitar.tab_dataset import split_train_val
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer._internal.terminal import escape_controls
from slp_transformer.data.batches import Batch, values_crc32
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.training import TrainConfig, Trainer
from slp_transformer.training.callbacks import MetricsFileWriter, ProgressBar

WINDOW_MOMENTS = 96


class HandWindowSource:
    """Windows of passages, for the trainer: a passage's number, and where each begins and ends."""

    def __init__(self, passages: Sequence[Passage], first_number: int, window_moments: int):
        """Take passages, which are numbered from the first number on.

        Raises:
            ValueError: if there are none.
        """
        if not passages:
            raise ValueError("There is no fingered piece to learn from.")
        self.passages: Sequence[Passage] = passages
        self.first_number: int = first_number
        self.window: int = window_moments
        self.lengths: Tensor = torch.tensor([len(passage.moments) for passage in passages])

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return random windows, long passages more often, but not in proportion."""
        weights = self.lengths**0.75
        drawn = torch.multinomial(weights, batch_size, replacement=True, generator=generator)
        rooms = (self.lengths[drawn] - self.window + 1).clamp(min=1)
        starts = (torch.rand(batch_size, generator=generator) * rooms).long()
        return self.make_batch(drawn, starts)

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield all windows that do not overlap."""
        windows = torch.tensor(list_window_starts(self.lengths.tolist(), self.window))
        for part in windows.split(batch_size):
            yield self.make_batch(*part.unbind(1))

    def make_batch(self, numbers: Tensor, starts: Tensor) -> Batch:
        """Return windows as inputs; targets are 0 where there is a moment."""
        ends = torch.minimum(starts + self.window, self.lengths[numbers])
        moments = [torch.zeros(count, dtype=torch.long) for count in (ends - starts).tolist()]
        windows = torch.stack([self.first_number + numbers, starts, ends], 1)
        return Batch((windows,), pad_sequence(moments, True, IGNORE_INDEX))

    def fingerprint(self) -> dict[str, Any]:
        """Return the number of passages, and a checksum of them."""
        notes = [(passage.moments, passage.grips) for passage in self.passages]
        return {"pieces": len(notes), "window": self.window, "checksum": values_crc32(notes)}


def make_hand_trainer(
    train_passages: Sequence[Passage],
    val_passages: Sequence[Passage],
    out_dir: Path | None = None,
    window_moments: int = WINDOW_MOMENTS,
    **settings: Any,
) -> Trainer:
    """Return a trainer of a model of the hand.

    Args:
        train_passages: pieces with the grips that people wrote; those without are left out.
        val_passages: other such pieces.
        out_dir: the run's folder; None to save nothing.
        window_moments: moments in a window.
        settings: as in `TrainConfig`, where they are to be others than these.

    Raises:
        ValueError: if there is nothing to learn from.
    """
    train, val = ([p for p in part if p.grips] for part in (train_passages, val_passages))
    config = TrainConfig(**{
        "steps": 600, "batch_size": 24, "learning_rate": 3e-3, "warmup_steps": 100,
        "weight_decay": 0.5, "adam_beta2": 0.98, "bf16": False, "device": "cpu", **settings,
    })  # fmt: skip
    reader = PassageWindows([*train, *val])

    def loss(model: nn.Module, batch: Batch, *, label_smoothing: float = 0) -> Float[Tensor, ""]:
        return hand_model_loss(model, reader.build_batch(batch.inputs[0].tolist()))

    torch.manual_seed(config.seed)
    return Trainer(
        HandModel(),
        HandWindowSource(train, 0, window_moments),
        HandWindowSource(val, len(train), window_moments),
        config,
        loss=loss,
        out_dir=out_dir,
        callbacks=[ProgressBar(), MetricsFileWriter()] if out_dir else [],
    )


def load_passages(path: Path) -> list[Passage]:
    """Fingered pieces from a folder of tabs, or from a file of JSON Lines.

    Raises:
        ValueError: if there are none.
    """
    if path.suffix.lower() == ".jsonl":
        return read_passages_jsonl(path)
    tabs, _ = read_tab_folder(path)
    return [passage_from_tab(tab) for tab in tabs if len(tab.tuning.open_pitches) <= NUM_STRINGS]


def main(argv: Sequence[str] | None = None) -> int:
    """Train a model and evaluate it, as a command line says; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m slp_guitar.fingering.hand_training",
        description="Train a model of the hand on tab that people have written.",
    )
    parser.add_argument("tabs", type=Path, help="a folder of ASCII tabs, or a .jsonl file")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder of the run")
    parser.add_argument("--val-data", type=Path, help="tabs to validate on [a tenth of the pieces]")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="continue the run of the folder")
    args = parser.parse_args(argv)
    try:
        train = load_passages(args.tabs)
        if args.val_data is None:
            train, val = split_train_val(train, 0.1)
        else:
            val = load_passages(args.val_data)
        print(f"{len(train)} training pieces, {len(val)} validation pieces", file=sys.stderr)
        trainer = make_hand_trainer(train, val, args.out_dir, steps=args.steps, seed=args.seed)
        trainer.fit(resume=args.resume)
        hand = load_hand_ensemble(args.out_dir)
        found = [compare_fingerings(p.grips, hand.predict_grips(p), p.tuning) for p in val]
        shares = sum_metrics(found).to_shares()
        print("validation: " + ", ".join(f"{name} {share:.4f}" for name, share in shares.items()))
    except (ValueError, OSError, ImportError) as error:
        said = escape_controls(str(error)).replace("pass resume=True", "pass --resume")
        print(f"{parser.prog}: {said}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:  # while training, it says where the run was saved
        said = str(stopped).replace("resume=True", "--resume") or "Stopped."
        print(f"{parser.prog}: {said}", file=sys.stderr)
        return 128 + getattr(stopped, "signal_number", signal.SIGINT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
