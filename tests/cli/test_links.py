"""A run folder of a stranger: through links in it nothing is written, whatever their names."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from commands import SENTENCE, SMALL, fine

from slp_transformer.cli import main

needs_links = pytest.mark.skipif(os.name == "nt", reason="Windows lets administrators make links")
TRAIN = ["train", "text", "own.txt", "--out-dir", "run", "--tensorboard", *SMALL]
RESUME = ["train", "--out-dir", "run", "--resume", "--steps", "6", "--tensorboard", "--quiet"]
VICTIM = "PRECIOUS"


@pytest.fixture
def at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text(SENTENCE * 40, encoding="utf-8")
    Path("outside").mkdir()
    Path("outside/victim").write_text(VICTIM, encoding="utf-8")
    return tmp_path


def names_in_a_run() -> list[str]:
    """What a run writes, by name; two links for each: to a file and to nothing, or to a folder."""
    fixed = ["config.toml", "metrics.json", ".lock", ".writing", ".config.toml.writing"]
    fixed += ["tensorboard", "tokens", "step-00000000", "step-00000004", "step-00000006"]
    fixed += [f"tokens/{name}" for name in ("train.npy", "val.npy", "held-out.json")]
    fixed += [
        "tokens/tokenizer.json",
        "tokens/checksums.json",
        "tokens/.preparing",
        "tokens/.train.npy.writing",
    ]
    files = "model.safetensors config.json training.json state.safetensors checkpoint.json"
    return fixed + [f"step-00000006/{name}" for name in files.split()]


def untouched() -> bool:
    """Whether the folder outside is as it was."""
    (victim,) = Path("outside").iterdir()
    return victim.read_text(encoding="utf-8") == VICTIM


@needs_links
@pytest.mark.parametrize(
    ("targets", "commands"),
    [
        (["outside/victim", "outside"], [RESUME]),
        *(
            pytest.param([target], [TRAIN, RESUME], marks=pytest.mark.slow)
            for target in ("outside/victim", "outside/nothing", "outside")
        ),
    ],
)
def test_nothing_is_written_through_a_link_in_a_run_of_a_stranger(at, targets, commands, capsys):
    """Each name in turn, in a run that is begun, and in one that is resumed."""
    fine(*TRAIN)
    names = names_in_a_run()
    seen = {str(path.relative_to("run")) for path in Path("run").rglob("*")}
    own = {name for name in seen if not name.startswith("tensorboard/")}
    steps = {name for name in own if name.startswith(("step-00000002", "step-00000004/"))}
    assert own - steps <= set(names), "a name that no link is planted under"
    shutil.move("run", "whole")
    few = len(targets) > 1
    for n, name in enumerate(names[: names.index("step-00000000")] if few else names):
        for words in commands:
            if words is RESUME:
                shutil.copytree("whole", "run")
            link = Path("run", name)
            link.parent.mkdir(parents=True, exist_ok=True)
            if link.is_dir():
                shutil.rmtree(link)
            link.unlink(missing_ok=True)
            link.symlink_to(Path(targets[n % len(targets)]).resolve())
            code = main(words)
            said = capsys.readouterr().err
            assert untouched(), (name, words)
            assert code in (0, 2) and "Traceback" not in said, (name, said)
            assert link.parent.is_symlink() is False
            shutil.rmtree("run")


WATCHED: list[str] = []
"""A folder whose files are opened as the test below wants; nothing while it is empty."""
FOLLOWED: list[str] = []


def watch(event: str, arguments: tuple) -> None:
    """Note each file in the watched folder that is opened for writing and may be a link."""
    if event == "open" and WATCHED and isinstance(arguments[0], str | bytes | os.PathLike):
        path, _, flags = arguments
        path = os.path.abspath(os.fsdecode(path))
        writes = flags & (os.O_WRONLY | os.O_RDWR) and not flags & (os.O_EXCL | os.O_NOFOLLOW)
        if writes and path.startswith(WATCHED[0]):
            FOLLOWED.append(path)


@needs_links
@pytest.mark.usefixtures("at")
def test_a_run_opens_no_file_that_could_be_a_link():
    """But for flushing what it has just made in a folder of a random name."""
    sys.addaudithook(watch)
    WATCHED.append(os.path.abspath("run"))
    try:
        fine(*TRAIN)
    finally:
        WATCHED.clear()
    followed = [Path(path).relative_to(Path("run").resolve()) for path in FOLLOWED]
    assert all(
        path.parts[0].endswith(".writing") for path in followed if "tfevents" not in path.name
    )


@needs_links
@pytest.mark.usefixtures("at")
def test_a_file_in_a_shared_folder_and_a_run_on_another_disk(capfd):
    """A planted link is neither followed nor in the way; links that a user names are."""
    Path("disk/run").mkdir(parents=True)
    Path("run").symlink_to("disk/run")
    Path("own").symlink_to("own.txt")
    fine("train", "text", "own", *TRAIN[3:])
    assert Path("run").is_symlink() and Path("disk/run/step-00000004").is_dir()
    Path("shared").mkdir()
    for name in (".x.txt.writing", "x.txt"):
        Path("shared", name).symlink_to("../outside/victim")
    fine("generate", "run", "--output", "shared/x.txt", "--max-new-tokens", "3")
    assert untouched() and Path("shared/x.txt").is_file()
    capfd.readouterr()
    fine("generate", "run", "--output", "/dev/stdout", "--max-new-tokens", "3", "--prompt", "The q")
    assert capfd.readouterr().out.startswith("The q") and Path("/dev/stdout").exists()


@needs_links
@pytest.mark.usefixtures("at")
def test_leftovers_of_killed_processes_go_when_a_run_is_locked(capsys):
    fine(*TRAIN)
    Path("run/.0123456789abcdef.writing").mkdir()
    Path("run/.0123456789abcdef.writing/model.safetensors").write_bytes(b"half")
    Path("run/.fedcba9876543210.writing").write_bytes(b"half")
    Path("run/.fedcba9876543211.writing").symlink_to("../outside")
    fine(*RESUME)
    assert untouched() and not list(Path("run").glob(".*"))


@needs_links
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_what_is_written_may_be_read_by_whom_the_umask_lets(at, umask):
    from tiny_training import language_model

    from slp_transformer.modern import save_pretrained

    before = os.umask(umask)
    try:
        fine(*TRAIN)
        save_pretrained(language_model(), "published")
    finally:
        os.umask(before)
    for folder in ("run", "published"):
        for path in Path(folder).rglob("*"):
            if "tfevents" not in path.name:
                wanted = (0o777 if path.is_dir() else 0o666) & ~umask
                assert path.stat().st_mode & 0o777 == wanted, path
