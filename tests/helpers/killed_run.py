"""A training run that is killed at many moments, for test_checkpoints.py; needs fork, not Windows.

    python killed_run.py FOLDER

Each run is a child process of its own. The first is left in peace; the others kill themselves, with
SIGKILL, at an operation on a file of the run or in the middle of writing one. Each is then resumed
by another child, and its weights must be the first one's, bit for bit.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

import safetensors.torch
import torch
import torch._dynamo  # or every child would import it for itself

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training.run_folder import checkpoint_folder, find_checkpoints
from slp_transformer.training.trainer import train

WATCHED = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")


def run(folder: Path, weights: Path, how_to_die=None) -> int:
    """Train in a child process, resuming what there is; its exit status as `waitpid` has it."""
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    try:
        if how_to_die is not None:
            how_to_die(folder)
        torch.manual_seed(1)
        config = TransformerConfig(7, 5, model_dim=6, num_heads=2, num_blocks=1, dropout=0.2)
        model = TransformerLM(config)
        stream = torch.arange(7).repeat(5)
        settings = {
            "steps": 6,
            "eval_interval": 2,
            "batch_size": 2,
            "gradient_accumulation_steps": 2,
            "seed": 3,
        }
        records = train(
            model, stream, stream, **settings, out_dir=folder, resume=True, progress=False
        )
        torch.save([records_of(records), model.state_dict()], weights)
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)


def records_of(records):
    return [[r.step, r.train_loss, r.val_loss] for r in records]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_operation(number: int):
    """Die just before the operation of that number on a file of the run."""

    def prepare(folder: Path) -> None:
        seen = iter(range(number))

        def watch(event: str, arguments: tuple) -> None:
            if event in WATCHED and str(folder) in str(arguments[0]) and next(seen, None) is None:
                die()

        sys.addaudithook(watch)

    return prepare


def while_writing(module, function: str, number: int):
    """Die in the middle of a file: half of it is written, the other half will never be."""

    def prepare(folder: Path) -> None:
        write, seen = getattr(module, function), iter(range(number))

        def half(*arguments, **options):
            write(*arguments, **options)
            if next(seen, None) is None:
                path = next(each for each in arguments if isinstance(each, Path))
                os.truncate(path, path.stat().st_size // 2)
                die()

        setattr(module, function, half)

    return prepare


def after_step(number: int):
    """Die between two checkpoints."""

    def prepare(folder: Path) -> None:
        step, seen = torch.optim.AdamW.step, iter(range(number))

        def last_step(self, *args):
            if next(seen, None) is None:
                die()
            return step(self, *args)

        torch.optim.AdamW.step = last_step

    return prepare


def main(base: Path) -> None:
    torch.set_num_threads(1)
    weights = base / "weights.pt"
    assert run(base / "whole", weights) == 0
    expected = weights.read_bytes()
    ways = [at_operation(n) for n in (0, 1, 7, 19, *range(30, 90, 11))]
    ways += [while_writing(torch, "save", n) for n in (0, 2)]
    ways += [while_writing(safetensors.torch, "save_file", n) for n in (1,)]
    ways += [while_writing(Path, "write_text", n) for n in (3, 4, 5, 8)]  # 3, 8: the index
    ways += [after_step(n) for n in (1, 4)]
    killed = 0
    for number, way in enumerate(ways):
        folder = base / f"run{number}"
        weights.unlink(missing_ok=True)
        status = run(folder, weights, way)
        killed += status == signal.SIGKILL
        assert status in (0, signal.SIGKILL), (number, status)
        if find_checkpoints(folder):
            checkpoint_folder(folder, "last"), checkpoint_folder(folder, "best")
        assert run(folder, weights) == 0, number
        assert weights.read_bytes() == expected, f"way {number} ends in other weights"
        kept = {path.name for path in folder.iterdir()}
        files = {"metrics.json"}
        assert kept <= files | {"step-00000006", "step-00000004"}, kept
        shutil.rmtree(folder)
    print(killed, "of", len(ways))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
