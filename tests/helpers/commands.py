"""Calling the command line in this process; tests that import this need the text extra."""

import json
import re
from pathlib import Path

import pytest
from checkpoint_folders import checkpoint_folder

from slp_transformer.cli import main
from slp_transformer.data import make_number_pairs

for needed in ("safetensors", "tomli_w"):
    pytest.importorskip(needed, reason="keeping a run needs the text extra")

SENTENCE = "The quick brown fox jumps over the lazy dog, and so do I.\n"
SIZES = ["--model-dim", "8", "--num-heads", "2", "--num-blocks", "1", "--context-length", "13"]
SMALL = [*SIZES, "--steps", "4", "--eval-interval", "2", "--batch-size", "3"]
SMALL += ["--device", "cpu", "--quiet"]

PAIRS = make_number_pairs(60)
PAIR_SIZES = [*SIZES[:-1], "29"]
TRAIN_PAIRS = ["train", "pairs", "pairs.csv", *PAIR_SIZES, "--tokenizer", "words"]
TRAIN_PAIRS += ["--vocab-size", "90", "--batch-tokens", "100", "--steps", "6", "--device", "cpu"]
TRAIN_PAIRS += ["--eval-interval", "2", "--keep-last", "2", "--quiet"]
TRAIN_PAIRS += ["--learning-rate", "0.05"]  # so that it learns where sentences end


def write_pairs() -> None:
    lines = [f'"{source}","{target}"\n' for source, target in PAIRS]
    Path("pairs.csv").write_text("\ufeffEnglish,Spanish\n" + "".join(lines), encoding="utf-8")


def weights(run: str) -> bytes:
    return (checkpoint_folder(run) / "model.safetensors").read_bytes()


def fine(*words: str) -> None:
    assert main([*words]) == 0


def output(capsys, *words: str) -> str:
    """What a command prints to stdout."""
    capsys.readouterr()
    fine(*words)
    return capsys.readouterr().out


def result(capsys, *words: str):
    """What a command prints with --json."""
    return json.loads(output(capsys, *words, "--json"))


def refused(capsys, *words: str) -> str:
    """The sentence with which a command is refused; nothing may be on stdout."""
    capsys.readouterr()
    assert main([*words]) == 2
    printed = capsys.readouterr()
    message = " ".join(re.sub(r"[─│╭╮╰╯]", " ", printed.err).split())
    assert printed.out == "" and message and "Traceback" not in message, printed
    return message
