"""Plug-ins: ours with and without its folder, those of others, and broken ones."""

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from own_process import python

import slp_transformer
from slp_transformer._internal.plugins import PACKAGES

for needed in ("safetensors", "tomli_w", "tyro", "pydantic"):
    pytest.importorskip(needed, reason="commands need the text extra")

ROOT = Path(slp_transformer.__file__).parents[1]
PAGE = (Path(__file__).parents[2] / "docs" / "own-task.md").read_text(encoding="utf-8")
RUN = """
import json, sys
# An editable installation would find what the copy of the package lacks.
sys.meta_path[:] = [found for found in sys.meta_path if "editable" not in found.__module__]
from slp_transformer.cli import main
sys.stderr = sys.stdout
for words in json.loads(sys.argv[1]):
    print(main(words), end="\\0")
import slp_transformer, slp_transformer.check
print(slp_transformer.__file__, *slp_transformer.check.CHECKS)
"""
SMALL = "--model-dim 8 --num-heads 2 --num-blocks 1 --context-length 13 --steps 2 --eval-interval 2"
SMALL += " --batch-size 3 --device cpu --quiet"


def run(folder, path, *commands):
    """What commands say, with their exit codes, and at last which package and checks there were."""
    words = json.dumps([command.split() for command in commands])
    done = python("-c", RUN, words, cwd=folder, PYTHONPATH=os.pathsep.join(map(str, path)))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("\0")


def install(folder, name, entries, **modules):
    """Write modules, and the metadata of a package of them as pip would."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(entries, "utf-8")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, "utf-8")


@pytest.mark.slow
def test_without_the_guitars_package_everything_else_works(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "slp_transformer", tmp_path / "copy" / "slp_transformer", ignore=ignored)
    (tmp_path / "fox.txt").write_text(
        "The quick brown fox jumps over the lazy dog.\n" * 20, "utf-8"
    )
    *said, about = run(
        tmp_path, [tmp_path / "copy"],
        "--help",
        f"train text fox.txt --out-dir text {SMALL}",
        "generate text --max-new-tokens 3",
        "evaluate text",
        f"train pairs --out-dir pairs {SMALL} --context-length 99 --val-split 0.02",
        "translate pairs five",
        "info",
        "train tabs --out-dir tabs", "tab song.mid", "generate text --tuning drop-D",
    )  # fmt: skip
    *fine, task, command, flag = said
    assert [text[-1] for text in fine] == ["0"] * 7, fine
    assert "train pairs" in fine[0] and "tab" not in fine[0]
    assert "shakespeare" in fine[6] and "guitar" not in fine[6]
    assert "There is no task tabs: slp-transformer train text|pairs (see" in task
    assert 'There is no command "tab"' in command and "There is no option --tuning" in flag
    place, *checks = about.split()
    assert place.startswith(str(tmp_path / "copy"))
    assert "attention" in checks and not {"is_playable_grip", "only_allowed"} & {*checks}


@pytest.mark.slow
def test_in_a_zip_file_the_guitar_is_there_with_its_presets(tmp_path):
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for path in [p for name in PACKAGES for p in (ROOT / name).rglob("*")]:
            if path.suffix in (".py", ".toml", ".txt"):
                archive.write(path, path.relative_to(ROOT))
    *said, about = run(
        tmp_path, [tmp_path / "package.zip"],
        "--help", "train tabs --config guitar --print-config", "info", "tab --help",
    )  # fmt: skip
    assert [text[-1] for text in said] == ["0"] * 4, said
    assert "tab song.mid" in said[0] and "guitar tabs" in said[0]
    assert 'positions = "rotary"' in said[1] and "A larger model of guitar tablature" in said[2]
    assert str(tmp_path / "package.zip") in about


OTHERS = """
from dataclasses import dataclass
from slp_transformer.tasks.base import Command, Options, Plugin, TaskEntry

@dataclass(frozen=True)
class Hello(Options):
    '''Greet.

    Attributes:
        loud: in capitals.
    '''
    loud: bool = False

    def check(self):
        if self.loud:
            raise ValueError("--loud is too loud.")

def execute(options):
    print("hello")

hello = Command("others:Hello", "others:execute", ("hello", "greets"), loads_torch=False)
PLUGIN = Plugin(
    commands={
        "hello": hello, "train": hello, "tab": hello,
        "gone": Command("no_such_module:Gone", "no_such_module:execute", ("gone", "is gone")),
    },
    tasks={
        "text": TaskEntry("others:Nothing", ("train text", "another")),
        "alone": TaskEntry("others:Nothing", ("train alone", "is gone too")),
    },
    checks=("others_checks", "no_such_checks"),
    presets="no_such_package",
)
"""
ENTRIES = """
[slp_transformer.plugins]
others = others:PLUGIN
broken = broken:PLUGIN
wrong = others:Hello
"""


@pytest.mark.slow
def test_a_plug_in_of_another_package_adds_what_has_no_name_yet_and_a_broken_one_is_named(tmp_path):
    check = "from slp_transformer.check import CHECKS\nCHECKS['mine'] = CHECKS['softmax']"
    modules = {"others": OTHERS, "others_checks": check, "broken": "1 / 0"}
    install(tmp_path / "site", "others", ENTRIES, **modules)
    usage, *said, about = run(
        tmp_path, [ROOT, tmp_path / "site"],
        "--help", "hello", "hello --loud", "hello --lound", "hello --help", "train --help", "info",
        "gone", "train alone a.txt --out-dir a",
    )  # fmt: skip
    for sentence in (
        "The plug-in broken is left out, for it cannot be loaded (ZeroDivisionError: division by ",
        "The plug-in wrong is left out, for it cannot be loaded (TypeError: others:Hello is a type",
        'Two plug-ins have commands named "train": that of this package is taken, and that of the',
        'Two plug-ins have commands named "tab": that of the plug-in slp_guitar is taken, and',
        'Two plug-ins have tasks named "text": that of this package is taken, and that of the plug',
    ):
        assert usage.count(sentence) == 1 and not any(sentence in text for text in said), sentence
    assert re.search(r"hello +greets\n", usage) and "is gone too" in usage and "tab " in usage
    assert said[0].endswith("hello\n0") and "--loud is too loud." in said[1] and said[1][-1] == "2"
    assert "There is no option --lound: did you mean --loud?" in said[2]
    assert "in capitals" in said[3] and "a file of text" in said[4]
    presets = "The presets of the plug-in others cannot be read: No module named"
    assert sum(text.count(presets) for text in said) == 1
    assert "The command gone cannot be loaded from no_such_module:Gone (ModuleNotFoundE" in said[6]
    assert "The task alone cannot be loaded from others:Nothing (AttributeError: " in said[7]
    assert (
        said[6][-1] == said[7][-1] == "2" and "guitar-gpu" in said[5] and about.endswith("mine\n")
    )


@pytest.mark.slow
def test_the_task_of_the_page_is_complete_short_and_runs_as_shown(tmp_path):
    blocks = {kind: re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1] for kind in
              ("python", "toml", "sh")}  # fmt: skip
    assert len(blocks["python"].splitlines()) <= 60
    entries = re.search(r'\[project.entry-points."(.*?)"\]\n(.*?)\n', blocks["toml"])
    entry = f"[{entries[1]}]\n{entries[2].replace(chr(34), '')}\n"
    install(tmp_path / "site", "slp-dna", entry, dna=blocks["python"])
    (tmp_path / "sequences.txt").write_text("ACGTTGCAAC\nGATTACA\n" * 40, "utf-8")
    tests = PAGE.rpartition("```python\n")[2].partition("```")[0]
    (tmp_path / "test_dna.py").write_text(tests, "utf-8")
    site = os.pathsep.join(map(str, (ROOT, tmp_path / "site")))
    done = python("-m", "pytest", "-q", "test_dna.py", cwd=tmp_path, PYTHONPATH=site)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    commands = [line.removeprefix("slp-transformer ") for line in blocks["sh"].splitlines()]
    small = SMALL.replace("--steps 2 ", "")
    train, generate, evaluate = (
        commands[0].replace("--steps 200", f"--steps 2 {small}"),
        f"{commands[1]} --max-new-tokens 40",
        f"{commands[2]} --max-new-tokens 9",
    )  # fmt: skip
    usage, *said, _ = run(
        tmp_path, [ROOT, tmp_path / "site"],
        "--help", train, generate, evaluate, "generate --avoid T runs/dna --avoid A --help",
        "generate runs/dna --avoit T", "evaluate runs/dna --avoid T", "train dna --help",
        "generate --help",
    )  # fmt: skip
    assert [text[-1] for text in said] == list("00002200"), said
    assert re.search(r"train dna sequences.txt --out-dir runs/dna +DNA\n", usage)
    written = said[1].partition("The model's window")[0]
    assert {*written} == {*"\nACG"}
    assert "loss" in said[2] and "=== 2 of 2 ===" in said[2]
    assert "--avoid STR" in said[3] and "did you mean --avoid?" in said[4]
    assert "There is no option --avoid" in said[5] and "a sequence in each line" in said[6]
    assert "--avoid" not in said[7] and "generate RUN --help" in said[7]
