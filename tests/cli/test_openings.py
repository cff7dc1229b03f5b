"""A command opens its run once, and what it then reads is of one state."""

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from slp_transformer.cli import generate
from tests.helpers.checkpoint_folders import checkpoint_folder
from tests.helpers.commands import SMALL, fine, output

OPENED: Counter[str] = Counter()


def count_openings(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and isinstance(args[0], str | os.PathLike):
        OPENED[str(Path(args[0]))] += 1


sys.addaudithook(count_openings)  # one that stays: nothing removes a hook
JSON_FILES = ("checkpoint.json", "config.json", "tokenizer.json", "training.json")


@pytest.mark.parametrize(
    "words",
    [
        ("generate", "a", "--max-new-tokens", "2"),
        ("generate", "a", "--checkpoint", "last", "--max-new-tokens", "2"),
        ("evaluate", "a"),
        ("export", "a", "exported"),
        ("info", "a"),
        ("train", "text", "fox.txt", "--init-from", "a", "--out-dir", "b", "--steps", "1"),
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_each_file_of_a_run_is_opened_once(text_run, words):
    best = checkpoint_folder("a", "best")
    for folder in Path("a").glob("step-*"):  # so that the best is the last
        if folder != best:
            shutil.rmtree(folder)
    OPENED.clear()
    fine(*words)
    of_run = {name: n for name, n in OPENED.items() if Path(name).parent in (Path("a"), best)}
    assert of_run == {str(Path("a/config.toml")): 1, **{str(best / n): 1 for n in JSON_FILES}}


def test_a_run_is_opened_before_its_lock_and_under_it_when_it_is_resumed(text_run):
    last = checkpoint_folder("a")
    OPENED.clear()
    fine("train", "--out-dir", "a", "--resume", "--steps", "6", "--quiet")
    assert OPENED[str(Path("a/config.toml"))] == 2  # the second time for its comments
    # By the parser and under the lock; checksums read all but checkpoint.json once more, and
    # what is deleted rests on training.json.
    counts = {name: OPENED[str(last / name)] for name in JSON_FILES}
    assert counts == {
        **{"checkpoint.json": 2, "config.json": 3, "tokenizer.json": 2, "training.json": 4}
    }


def test_generate_sees_one_state_beside_a_run_that_replaces_its_checkpoint(
    text_run, capsys, monkeypatch
):
    """The checkpoint goes after the options were parsed, and the next has another vocabulary."""
    Path("other.txt").write_text("Zu Wasser und zu Lande fuhren wir.\n" * 20, encoding="utf-8")
    fine("train", "text", "other.txt", "--out-dir", "b", *SMALL, "--steps", "6")
    words = ("--max-new-tokens", "9", "--temperature", "0")
    load, expected = generate.load_run, output(capsys, "generate", "b", *words)

    def replace_and_load(opened, *args):
        for folder in Path("a").glob("step-*"):
            shutil.rmtree(folder)
        shutil.copytree(checkpoint_folder("b", "best"), Path("a", checkpoint_folder("b").name))
        return load(opened, *args)

    assert output(capsys, "generate", "a", *words) != expected
    monkeypatch.setattr(generate, "load_run", replace_and_load)
    assert output(capsys, "generate", "a", *words) == expected
