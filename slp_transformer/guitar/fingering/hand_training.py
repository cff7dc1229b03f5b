"""Train a model of the hand on tab that people have written.

    python -m slp_transformer.guitar.fingering.hand_training TABS --run RUN --held-out OTHER-TABS

TABS is a folder of ASCII tabs, or a file of JSON Lines (see `passages.read_keys`). What is kept in
RUN is used by `slp-transformer tab SONG --model RUN`.
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

from slp_transformer.guitar.ascii_reader import read_tabs
from slp_transformer.guitar.fingering.fingering_metrics import agreement, total_of
from slp_transformer.guitar.fingering.hand_features import Reader
from slp_transformer.guitar.fingering.hand_inference import Hand
from slp_transformer.guitar.fingering.hand_model import HandConfig, HandModel, loss
from slp_transformer.guitar.fingering.hand_model_file import About, save_hand
from slp_transformer.guitar.fingering.passages import Passage, passage_of, read_keys


@dataclasses.dataclass(frozen=True)
class HandTraining:
    """How a model of the hand is trained.

    Attributes:
        steps: changes of the weights.
        batch_size: windows a step.
        window: moments in a window.
        learning_rate: at its highest, after a hundred steps; it falls to a fiftieth along a cosine.
        weight_decay: of AdamW.
        averaging: how slowly the mean of the weights, which is what is kept, follows them.
        seed: of weights and windows.
    """

    steps: int = 600
    batch_size: int = 24
    window: int = 96
    learning_rate: float = 3e-3
    weight_decay: float = 0.5
    averaging: float = 0.995
    seed: int = 0

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        cosine = 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return self.learning_rate * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * cosine)


def train_hand(
    passages: Sequence[Passage],
    training: HandTraining | None = None,
    report: Callable[[int, float], None] | None = None,
) -> HandModel:
    """Train a model of the hand.

    Args:
        passages: pieces with the grips that people wrote.
        training: how.
        report: called after every step with its number and its loss in nats a moment.

    Returns:
        The model, with the mean of its weights.

    Raises:
        ValueError: if there is nothing to learn from.
    """
    training = training or HandTraining()
    if not any(passage.grips for passage in passages):
        raise ValueError("There is no fingered piece to learn from.")
    reader = Reader([passage for passage in passages if passage.grips])
    chance = random.Random(training.seed)
    torch.manual_seed(training.seed)
    model = HandModel(HandConfig())
    rates = {"lr": training.learning_rate, "weight_decay": training.weight_decay}
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), **rates)
    mean = {name: W.clone() for name, W in model.state_dict().items()}
    lengths = [len(ids) for ids in reader.ids]
    weights = [length**0.75 for length in lengths]  # long pieces more often, but not in proportion
    for step in range(training.steps):
        optimiser.param_groups[0]["lr"] = training.rate(step)
        cuts = []
        for n in chance.choices(range(len(lengths)), weights, k=training.batch_size):
            start = chance.randrange(max(1, lengths[n] - training.window + 1))
            cuts.append((n, start, min(lengths[n], start + training.window)))
        model.train()
        surprised = loss(model, reader.windows(cuts))
        optimiser.zero_grad()
        surprised.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        follow(mean, model, min(training.averaging, (step + 1) / (step + 10)))
        if report is not None:
            report(step + 1, surprised.item())
    model.load_state_dict(mean)
    return model.eval()


@torch.no_grad()
def follow(mean: dict[str, torch.Tensor], model: HandModel, keep: float) -> None:
    """Let a mean of weights follow them."""
    for name, W in model.state_dict().items():
        mean[name].mul_(keep).add_(W, alpha=1 - keep)


def read_passages(source: Path) -> list[Passage]:
    """Fingered pieces from a folder of tabs, or from a file of JSON Lines.

    Raises:
        ValueError: if there are none.
    """
    if source.suffix.lower() == ".jsonl":
        return read_keys(source)
    return [passage_of(tab) for tab in read_tabs(source)[0] if len(tab.tuning.open_pitches) <= 6]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as a command line says; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m slp_transformer.guitar.fingering.hand_training",
        description="Train a model of the hand on tab that people have written.",
    )
    parser.add_argument("tabs", type=Path, help="a folder of ASCII tabs, or a .jsonl file")
    parser.add_argument("--run", type=Path, required=True, help="where the model is kept")
    parser.add_argument("--held-out", type=Path, help="tabs to measure on [a tenth of the pieces]")
    parser.add_argument("--steps", type=int, default=HandTraining.steps)
    parser.add_argument("--seed", type=int, default=0)
    known = parser.parse_args(arguments)
    if known.steps < 1:
        parser.error(f"--steps must be 1 or more, not {known.steps}.")
    try:
        learn(known)
    except (ValueError, OSError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


def learn(known: argparse.Namespace) -> None:
    """Read, train, measure and keep.

    Raises:
        ValueError: if there is nothing to learn from, or nothing to measure on.
    """
    learned = read_passages(known.tabs)
    if known.held_out is None:
        random.Random(0).shuffle(learned)  # always the same pieces
        count = max(1, len(learned) // 10)
        learned, held_out = learned[count:], learned[:count]
    else:
        held_out = read_passages(known.held_out)
    training = HandTraining(steps=known.steps, seed=known.seed)
    print(f"{len(learned)} pieces to learn from, {len(held_out)} held out", file=sys.stderr)
    begun, losses = time.perf_counter(), []

    def report(step: int, surprised: float) -> None:
        losses.append(surprised)
        if step % 100 == 0 or step == training.steps:
            mean = sum(losses[-100:]) / len(losses[-100:])
            took = time.perf_counter() - begun
            print(f"step {step}: {mean:.4f} nats a moment, {took:.0f} s", file=sys.stderr)

    model = train_hand(learned, training, report)
    hand = Hand([model])
    found = total_of([agreement(p.grips, hand.finger(p), p.tuning) for p in held_out])
    shares = found.shares()
    save_hand(
        known.run, model, About(model.config, training.steps, len(learned), shares["strings"])
    )
    print("held out: " + ", ".join(f"{name} {share:.4f}" for name, share in shares.items()))


if __name__ == "__main__":
    sys.exit(main())
