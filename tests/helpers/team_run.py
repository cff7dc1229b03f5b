"""Runs for test_distributed.py, the same by one process and by two that torchrun started.

    torchrun --standalone --nproc-per-node=2 team_run.py together FOLDER

What comes of each is left in the folder, by each process under its number.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
from tiny_training import stop_at

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM
from slp_transformer.data.batches import TokenWindowSource
from slp_transformer.data.pair_batches import PaddedPairSource
from slp_transformer.training import train

RANK = int(os.environ.get("RANK", "0"))
STREAM = torch.randint(7, (83,), generator=torch.Generator().manual_seed(0))
PAIRS = [(torch.arange(3, 4 + i), torch.arange(3, 8 - i)) for i in range(5)]
SIZES = {"model_dim": 6, "num_heads": 2, "num_blocks": 2}
QUIET = {"progress": False}


def language_model(dropout: float = 0.0) -> TransformerLM:
    torch.manual_seed(RANK)  # the first process's weights are meant to count
    return TransformerLM(TransformerConfig(7, 5, **SIZES, dropout=dropout))


def encoder_decoder() -> EncoderDecoder:
    torch.manual_seed(RANK)
    return EncoderDecoder(TransformerConfig(11, 13, **SIZES, positions="sinusoidal"))


def windows(**settings):
    """Fifteen sequences a step, clipped, and an odd number of windows held out."""
    model = language_model()
    options = {
        "steps": 6,
        "eval_interval": 2,
        "batch_size": 5,
        "gradient_accumulation_steps": 3,
        "max_grad_norm": 0.1,
    }
    records = train(model, STREAM, STREAM.flip(0), **options | QUIET | settings)
    return model, records


def pairs(**settings):
    """Pairs of uneven lengths, whose padding is spread unevenly among the processes."""
    model = encoder_decoder()
    source = PaddedPairSource(PAIRS, pad_id=0, begin_id=1, end_id=2)
    options = {"steps": 4, "eval_interval": 2, "batch_size": 3, "label_smoothing": 0.1}
    return model, train(model, source, source, **options | QUIET | settings)


def lone(**settings):
    """One sequence a step: the second process has nothing to do."""
    model = language_model()
    options = {"steps": 3, "eval_interval": 1, "batch_size": 1}
    return model, train(model, STREAM, STREAM[:6], **options | QUIET | settings)


class WithIdlePart(TransformerLM):
    """A model with a parameter that has no part in the loss."""

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.idle = torch.nn.Parameter(torch.arange(3.0))


def idle(**settings):
    """A parameter gets no gradient: one process leaves it as it is, and so do two."""
    torch.manual_seed(RANK)
    model = WithIdlePart(TransformerConfig(7, 5, **SIZES))
    options = {"steps": 3, "eval_interval": 1, "batch_size": 4, "gradient_accumulation_steps": 2}
    return model, train(model, STREAM, STREAM, **options | QUIET | settings)


def muon(**settings):
    """Matrices orthogonalized; with DDP alone."""
    return windows(optimizer="muon", **settings)


CASES = {case.__name__: case for case in (windows, pairs, lone, idle)}


def dropping(out_dir, **changes):
    """A run with dropout, kept in a folder."""
    model = language_model(dropout=0.3)
    options = {"steps": 4, "eval_interval": 2, "batch_size": 4, "out_dir": out_dir, "resume": True}
    train(model, STREAM, STREAM, **options | QUIET | changes)
    return model


class Pressed(TokenWindowSource):
    """Ctrl-C is pressed in the second process, at the third batch."""

    draws = 0

    def draw(self, batch_size, generator):
        self.draws += 1
        if RANK == 1 and self.draws == 3:
            signal.raise_signal(signal.SIGINT)
        return super().draw(batch_size, generator)


def said(do, *arguments, **options) -> list[str]:
    """The kind and the words of the error that something ends in."""
    try:
        do(*arguments, **options)
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


def unwritable(folder):
    """The disk of the first process, which alone writes, is full."""
    fsync = os.fsync

    def full(*_):
        raise OSError(28, "No space left on device")

    os.fsync = full if RANK == 0 else fsync
    try:
        windows(out_dir=folder)
    finally:
        os.fsync = fsync


def together(folder: Path) -> None:
    """All that two processes do in one launch; `folder` has a run that one process began."""
    results, terminate = {}, signal.getsignal(signal.SIGTERM)
    for how in ("ddp", "fsdp"):
        for name, case in CASES.items():
            kept = folder / f"{name}-{how}" if name == "windows" else None
            model, records = case(parallel=how, out_dir=kept)
            results[f"{name}-{how}"] = [vars(r) for r in records]
            torch.save(model.state_dict(), folder / f"{name}-{how}-{RANK}.pt")
        begun = {"out_dir": folder / f"begun-{how}", "resume": True, "parallel": how}
        results[f"stopped-{how}"] = said(windows, **begun, report=stop_at(4))
        whole = dropping(folder / f"whole-{how}", parallel=how)
        cut = {"out_dir": folder / f"cut-{how}", "parallel": how}
        said(dropping, **cut, report=stop_at(2))
        again = dropping(**cut).state_dict()
        results[f"drawn-{how}"] = torch.rand(()).item()  # by what dropout draws from too
        same = all(torch.equal(again[name], W) for name, W in whole.state_dict().items())
        results[f"exact-{how}"] = same
        press = {
            "steps": 9,
            "eval_interval": 9,
            "out_dir": folder / f"pressed-{how}",
            "parallel": how,
        }
        source = Pressed(STREAM, 5)
        results[f"pressed-{how}"] = said(train, language_model(), source, STREAM, **press | QUIET)
    model, records = muon()
    results["muon-ddp"] = [vars(r) for r in records]
    torch.save(model.state_dict(), folder / f"muon-ddp-{RANK}.pt")
    results["full"] = said(unwritable, folder / "full")
    results["unlike"] = said(windows, seed=RANK)
    others = {"steps": 2, "eval_interval": 1} | QUIET
    results["unlike models"] = said(train, language_model(RANK / 10), STREAM, STREAM, **others)
    results["SIGTERM again"] = signal.getsignal(signal.SIGTERM) == terminate
    (folder / f"{RANK}.json").write_text(json.dumps(results), encoding="utf-8")


class Troubled(TokenWindowSource):
    """Batches that take a while; at the fifth, something happens to the second process."""

    draws = 0

    def __init__(self, stream, N, trouble):
        super().__init__(stream, N)
        self.trouble = trouble

    def draw(self, batch_size, generator):
        self.draws += 1
        time.sleep(0.02)
        if RANK == 1 and self.draws == 5:
            self.trouble()
        return super().draw(batch_size, generator)


def in_trouble(folder: Path, trouble, steps: int) -> None:
    """A run that meets with trouble."""
    options = {"steps": steps, "eval_interval": 2, "out_dir": folder, "resume": True}
    train(language_model(), Troubled(STREAM, 5, trouble), STREAM[:6], **options | QUIET)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


TROUBLES = {
    "killed": (die, 9_999),
    "interrupted": (lambda: os.kill(os.getppid(), signal.SIGINT), 9_999),
    "restarted": (die, 8),  # the second time, fewer than five steps are left
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "together":
        together(where)
    else:
        in_trouble(where, *TROUBLES[what])
