"""Train a model of the hand on tab that people have written.

    python -m slp_transformer.guitar.fingering.hand_training TABS --run RUN --held-out OTHER-TABS

TABS is a folder of ASCII tabs, or a file of JSON Lines (see `passages.read_passages_jsonl`). What
is kept in RUN is used by `slp-transformer tab SONG --model RUN`.
`benchmarks/pitch_to_tab.py` measures it.
"""

import argparse
import dataclasses
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from slp_transformer.guitar.ascii_reader import read_tab_folder
from slp_transformer.guitar.fingering.fingering_metrics import compare_fingerings, sum_metrics
from slp_transformer.guitar.fingering.hand_features import PassageWindows
from slp_transformer.guitar.fingering.hand_inference import HandEnsemble
from slp_transformer.guitar.fingering.hand_model import HandModel, HandModelConfig, hand_model_loss
from slp_transformer.guitar.fingering.hand_model_file import HandModelMetadata, save_hand_model
from slp_transformer.guitar.fingering.passages import Passage, passage_from_tab, read_passages_jsonl


@dataclasses.dataclass(frozen=True)
class HandTrainingSettings:
    """Settings for training a fingering model.

    Attributes:
        num_steps: changes of the weights.
        batch_size: windows a step.
        window_moments: moments in a window.
        learning_rate: at its highest, after a hundred steps; it falls to a fiftieth along a cosine.
        weight_decay: of AdamW.
        ema_decay: how slowly the mean of the weights, which is what is kept, follows them.
        seed: of weights and windows.
    """

    num_steps: int = 600
    batch_size: int = 24
    window_moments: int = 96
    learning_rate: float = 3e-3
    weight_decay: float = 0.5
    ema_decay: float = 0.995
    seed: int = 0

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        cosine = 0.5 * (1 + math.cos(math.pi * step / self.num_steps))
        return self.learning_rate * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * cosine)


def train_hand_model(
    passages: Sequence[Passage],
    settings: HandTrainingSettings | None = None,
    on_step: Callable[[int, float], None] | None = None,
) -> HandModel:
    """Train a model of the hand.

    Args:
        passages: pieces with the grips that people wrote.
        settings: how.
        on_step: called after every step with its number and its loss in nats a moment.

    Returns:
        The model, with the mean of its weights.

    Raises:
        ValueError: if there is nothing to learn from.
    """
    settings = settings or HandTrainingSettings()
    if not any(passage.grips for passage in passages):
        raise ValueError("There is no fingered piece to learn from.")
    reader = PassageWindows([passage for passage in passages if passage.grips])
    chance = random.Random(settings.seed)
    torch.manual_seed(settings.seed)
    model = HandModel(HandModelConfig())
    rates = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), **rates)
    mean = {name: W.clone() for name, W in model.state_dict().items()}
    lengths = [len(ids) for ids in reader.moment_type_ids]
    weights = [length**0.75 for length in lengths]  # long pieces more often, but not in proportion
    for step in range(settings.num_steps):
        optimizer.param_groups[0]["lr"] = settings.learning_rate_at(step)
        cuts = []
        for n in chance.choices(range(len(lengths)), weights, k=settings.batch_size):
            start = chance.randrange(max(1, lengths[n] - settings.window_moments + 1))
            cuts.append((n, start, min(lengths[n], start + settings.window_moments)))
        model.train()
        surprised = hand_model_loss(model, reader.build_batch(cuts))
        optimizer.zero_grad()
        surprised.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        update_ema(mean, model, min(settings.ema_decay, (step + 1) / (step + 10)))
        if on_step is not None:
            on_step(step + 1, surprised.item())
    model.load_state_dict(mean)
    return model.eval()


@torch.no_grad()
def update_ema(ema_weights: dict[str, torch.Tensor], model: HandModel, decay: float) -> None:
    """Let a mean of weights follow them."""
    for name, W in model.state_dict().items():
        ema_weights[name].mul_(decay).add_(W, alpha=1 - decay)


def load_passages(path: Path) -> list[Passage]:
    """Fingered pieces from a folder of tabs, or from a file of JSON Lines.

    Raises:
        ValueError: if there are none.
    """
    if path.suffix.lower() == ".jsonl":
        return read_passages_jsonl(path)
    return [
        passage_from_tab(tab)
        for tab in read_tab_folder(path)[0]
        if len(tab.tuning.open_pitches) <= 6
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Train as a command line says; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m slp_transformer.guitar.fingering.hand_training",
        description="Train a model of the hand on tab that people have written.",
    )
    parser.add_argument("tabs", type=Path, help="a folder of ASCII tabs, or a .jsonl file")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder of the model")
    parser.add_argument("--val-data", type=Path, help="tabs to validate on [a tenth of the pieces]")
    parser.add_argument("--steps", type=int, default=HandTrainingSettings.num_steps)
    parser.add_argument("--seed", type=int, default=0)
    known = parser.parse_args(argv)
    if known.steps < 1:
        parser.error(f"--steps must be 1 or more, not {known.steps}.")
    try:
        run_training(known)
    except (ValueError, OSError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


def run_training(args: argparse.Namespace) -> None:
    """Read the pieces, train a model, evaluate it, and save it.

    Raises:
        ValueError: if there is nothing to train on, or nothing to evaluate on.
    """
    train_pieces = load_passages(args.tabs)
    if args.val_data is None:
        random.Random(0).shuffle(train_pieces)  # always the same pieces
        count = max(1, len(train_pieces) // 10)
        train_pieces, val_pieces = train_pieces[count:], train_pieces[:count]
    else:
        val_pieces = load_passages(args.val_data)
    training = HandTrainingSettings(num_steps=args.steps, seed=args.seed)
    print(
        f"{len(train_pieces)} training pieces, {len(val_pieces)} validation pieces", file=sys.stderr
    )
    begun, losses = time.perf_counter(), []

    def report(step: int, surprised: float) -> None:
        losses.append(surprised)
        if step % 100 == 0 or step == training.num_steps:
            mean = sum(losses[-100:]) / len(losses[-100:])
            took = time.perf_counter() - begun
            print(f"step {step}: {mean:.4f} nats a moment, {took:.0f} s", file=sys.stderr)

    model = train_hand_model(train_pieces, training, report)
    hand = HandEnsemble([model])
    found = sum_metrics(
        [compare_fingerings(p.grips, hand.predict_grips(p), p.tuning) for p in val_pieces]
    )
    shares = found.to_shares()
    save_hand_model(
        args.out_dir,
        model,
        HandModelMetadata(model.config, training.num_steps, len(train_pieces), shares["strings"]),
    )
    print("validation: " + ", ".join(f"{name} {share:.4f}" for name, share in shares.items()))


if __name__ == "__main__":
    sys.exit(main())
