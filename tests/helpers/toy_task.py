"""A task from outside the package: sequences of chess moves.

python toy_task.py ARGUMENTS calls the command line with this task.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from slp_transformer._internal.atomic_write import read_json, write_json
from slp_transformer.tasks.base import TASKS, Dataset, DataSettings, LoadedRun, Report, Task
from slp_transformer.tasks.generation_session import GenerationSession

MOVES = ["e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "#"]


class MoveTokenizer:
    """Moves as tokens."""

    vocab_size, stop = len(MOVES), 6

    def to_json(self) -> Any:
        return {"moves": MOVES}


@dataclass(frozen=True)
class MoveData(DataSettings):
    """The games to train on.

    Attributes:
        games: number of games.
    """

    task: ClassVar[str] = "moves"

    games: int = 40


class MoveSession(GenerationSession):
    """Games: the token # ends one, and no move comes twice in a row."""

    stop = MoveTokenizer.stop

    def allowed(self, ids):
        return set(range(len(MOVES))) - set(ids[-1:])

    def begin(self, prompt):
        return [MOVES.index(move) for move in (prompt or "e4").split()]

    def render(self, ids):
        return " ".join(MOVES[i] for i in ids)


class MoveTask(Task):
    """Chess openings."""

    name, Data, unit = "moves", MoveData, "moves"

    def check(self, config):
        if config.data.games < 10:
            raise ValueError(f"games must be 10 or more, not {config.data.games}.")

    def prepare(self, config, folder):
        games = list(range(len(MOVES))) * config.data.games
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / "games.json", games)
        return self.split(games)

    def split(self, games):
        ids, cut = torch.tensor(games), len(games) * 9 // 10
        return Dataset(MoveTokenizer(), ids[:cut], ids[cut:], val_names=["the last games"])

    def open(self, config, folder):
        return self.split(read_json(folder / "games.json"))

    def load_tokenizer(self, content):
        if content != {"moves": MOVES}:
            raise ValueError("these are no moves.")
        return MoveTokenizer()

    def session(self, run, options):
        return MoveSession()

    def evaluate(self, run: LoadedRun, options: Any) -> Report:
        from slp_transformer.tasks.evaluation import loss_rows, mean_window_loss, with_samples

        values = mean_window_loss(run, self.open(run.config, Path(run.folder) / "tokens").val)
        return with_samples(self, run, options, values, loss_rows(values))


if __name__ == "__main__":
    from slp_transformer.cli import main

    TASKS["moves"] = "toy_task:MoveTask"
    sys.exit(main())
