"""Timing for the benchmarks: contenders in turn, a machine quiet or busy, and the table."""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from slp_transformer._internal.json_files import write_json
from slp_transformer.training.devices import synchronize

CPU = torch.device("cpu")


def interleaved(
    work: dict[str, Callable[[], Any]], rounds: int, warm_up: int = 1, device: torch.device = CPU
) -> dict[str, list[float]]:
    """Seconds that each took in each round, in an order that rotates; the first do not count."""
    names, seconds = list(work), {name: [] for name in work}
    for number in range(warm_up + rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            synchronize(device)
            start = time.perf_counter()
            work[name]()
            synchronize(device)
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return seconds


@contextlib.contextmanager
def one_core_busy() -> Iterator[None]:
    """Another process that computes without pause, as a reader's browser may."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def compare(seconds: dict[str, list[float]], unit: float = 1.0, what: str = "s") -> dict:
    """Print each contender's median and its ratio to ours, and return both."""
    mine, table = seconds["slp_transformer"], {}
    for name, took in seconds.items():
        ratio = statistics.median(t / m for t, m in zip(took, mine, strict=True))
        median = statistics.median(took)
        table[name] = {"median": median * unit, "unit": what, "ratio": ratio}
        print(f"{name:16} {median * unit:10.1f} {what}   {ratio:5.2f} × ours", flush=True)
    return table


def describe() -> dict:
    """Describe the machine of a run."""
    peers = ("torch", "transformers", "x-transformers", "litgpt")
    versions = {name: importlib.metadata.version(name) for name in peers if is_there(name)}
    return {
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
    } | versions


def is_there(peer: str) -> bool:
    """Tell if a library is installed."""
    return importlib.util.find_spec(peer.replace("-", "_")) is not None


def keep(settings: argparse.Namespace, table: dict, /, **more: Any) -> None:
    """Write a table to the file that was asked for, with what was asked and what it ran on."""
    if settings.save is not None:
        asked = {k: v for k, v in vars(settings).items() if k not in ("save", "folder")}
        write_json(settings.save, {"asked": asked} | more | {"on": describe(), "table": table})
