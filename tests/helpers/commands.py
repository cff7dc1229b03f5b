"""Calling the command line in this process; tests that import this need the text extra."""

import re

import pytest

from slp_transformer.cli import main
from slp_transformer.training.run_folder import checkpoint_folder

for needed in ("safetensors", "tomli_w"):
    pytest.importorskip(needed, reason="keeping a run needs the text extra")

SENTENCE = "The quick brown fox jumps over the lazy dog, and so do I.\n"
SIZES = ["--model-dim", "8", "--num-heads", "2", "--num-blocks", "1", "--context-length", "13"]
SMALL = [*SIZES, "--steps", "4", "--eval-interval", "2", "--batch-size", "3"]
SMALL += ["--device", "cpu", "--quiet"]


def weights(run: str) -> bytes:
    return (checkpoint_folder(run) / "model.safetensors").read_bytes()


def fine(*words: str) -> None:
    assert main([*words]) == 0


def refused(capsys, *words: str) -> str:
    """The sentence with which a command is refused; nothing may be on stdout."""
    capsys.readouterr()
    assert main([*words]) == 2
    printed = capsys.readouterr()
    message = " ".join(re.sub(r"[─│╭╮╰╯]", " ", printed.err).split())
    assert printed.out == "" and message and "Traceback" not in message, printed
    return message
