"""The campaigns, in small: whatever is damaged or interrupted, nothing is lost."""

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from own_process import python

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.slow
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaign forks")


@pytest.mark.parametrize(
    ("script", "count", "seed", "tried"),
    [
        pytest.param("mutations.py", 120, 2, 120, marks=FORKS),
        pytest.param("published_folders.py", 30, 7, 30, marks=FORKS),
        pytest.param("hostile.py", 30, 2, 30, marks=FORKS),
        ("guitar_files.py", 10, 7, None),  # of each kind; Guitar Pro 7 if there is Node.js
    ],
)
def test_damaged_files_are_worked_with_or_refused(script, count, seed, tried):
    for needed in ("mido", "guitarpro", "safetensors", "tomli_w"):
        pytest.importorskip(needed)
    ended = python(FOLDER / script, "--count", count, "--seed", seed)
    *rows, last = ended.stdout.splitlines()
    assert ended.returncode == 0 and last.endswith("lost 0"), ended.stdout + ended.stderr
    assert tried is None or f"tried {tried}, kept {tried}," in last
    if tried is None:
        assert len(rows) >= 9 and all(f"tried {count}, lost 0" in row for row in rows)
        told = [re.findall(r"(?:refused|read in part) (\d+)", row) for row in rows]
        assert all(sum(map(int, numbers)) > 2 for numbers in told), rows


def sentence(number: int) -> int:
    print("slp-transformer: a sentence.\n" * number)
    return 2


PLANTED = {
    "nothing": (lambda: 0, ""),
    "a refusal": (lambda: sentence(1), ""),
    "memory": (lambda: len(b"x" * (200 << 20)) and 0, "(199|20.) MiB"),
    "time": (lambda: 0 * sum(range(10**7)), "too slow"),
    "no end": (lambda: time.sleep(99), "too slow"),
    "a traceback": (lambda: {}["a key"], "ended with 1"),
    "a crash": (lambda: os.kill(os.getpid(), signal.SIGSEGV), "ended with -11"),
    "an exit code": (lambda: 3, "ended with 3"),
    "silence": (lambda: 2, "not one sentence"),
    "two sentences": (lambda: sentence(2), "not one sentence"),
    "a panic": (lambda: print("thread panicked") or 0, "a panic is shown"),
    "a changed file": (lambda: Path("trial/a").write_text("b") and sentence(1), "files were"),
}


@FORKS
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a fork's peak of memory")
@pytest.mark.parametrize("name", PLANTED)
def test_what_a_command_does_wrong_in_a_fork_is_told(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("safetensors")
    import mutations

    does, told = PLANTED[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mutations, "command_line", lambda words: does())
    monkeypatch.setattr(mutations, "BYTES", 100 << 20)
    monkeypatch.setattr(mutations, "SECONDS", 0.05 if name == "time" else 5.0)
    monkeypatch.setattr(mutations, "HANGS", 0.3 if name == "no end" else 60.0)
    folder = tmp_path / "trial"
    folder.mkdir()
    with capsys.disabled():  # what the fork prints goes to the file that it is judged by
        trial = mutations.give([], tmp_path, "kind", "damage", folder, mutations.contents(folder))
    assert re.match(told, trial.problem) and bool(trial.problem) == bool(told), trial


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has all that guards a grader")
def test_hostile_files_of_a_class_change_nobody_s_row():
    ended = python(FOLDER / "class_folders.py", "--count", 1, "--seed", 15)
    assert ended.stdout == "class folders: tried 1, kept 1, lost 0\n", ended.stdout + ended.stderr


class Greatest(random.Random):
    """Draws what is largest wherever there is a choice, and does all that is rarely done."""

    def choice(self, options):
        return max(options, key=lambda one: one if isinstance(one, int) else len(str(one)))

    def random(self):
        return 0.0


@FORKS
@pytest.mark.parametrize("make", ["part", "make_gpif", "make_text"])
def test_what_is_made_to_be_hostile_does_not_outgrow_the_campaign(make):
    pytest.importorskip("safetensors")
    import hostile
    import hostile_sources

    given = (Greatest(), "normalizers") if make == "part" else (Greatest(),)
    made = getattr(hostile, make)(*given)
    size = len(json.dumps(made)) if make == "part" else len(made)
    assert hostile_sources.MAX_MADE_BYTES / 2 < size < hostile_sources.MAX_MADE_BYTES * 1.2


@FORKS
def test_interrupted_runs_resume_to_the_same_weights():
    counts = ["--kills", "4", "--signals", "3", "--races", "2", "--full-disks", "2"]
    ended = python(FOLDER / "interruptions.py", *counts)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-4:] == [
        "kills: tried 4, kept 4, lost 0",
        "signals: tried 3, kept 3, lost 0",
        "races: tried 2, kept 2, lost 0",
        "full disks: tried 2, kept 2, lost 0",
    ]


@FORKS
def test_failing_calls_power_cuts_flipped_bits_and_readers_lose_nothing():
    counts = ["--faults", "8", "--power-cuts", "8", "--flips", "12", "--readers", "2"]
    ended = python(FOLDER / "faults.py", *counts)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[-2:] == ["flips: tried 12, kept 12, lost 0", "readers: tried 2, kept 2, lost 0"]
    if "There is no C compiler here" in ended.stdout:
        pytest.skip("without a C compiler calls do not fail: faults and power cuts were left out")
    assert lines[-4:-2] == [
        "faults: tried 8, kept 8, lost 0",
        "power cuts: tried 8, kept 8, lost 0",
    ]
