"""LoRA on the command line: what learns, what is kept, what is refused, and what merging gives."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch
from commands import SMALL, fine, refused, weights

from slp_transformer.cli import main
from slp_transformer.cli import train as train_command
from slp_transformer.data.batches import TokenWindows
from slp_transformer.lora import lora_state_dict, merge_lora, remove_lora
from slp_transformer.tasks.text import TextTask
from slp_transformer.training.checkpoint_files import (
    checkpoint_folder,
    load_lora_base,
    load_trainer_state,
)
from slp_transformer.training.checkpoints import load_model

FROM = ["train", "text", "wolf.txt", "--init-from", "a", "--learning-rate", "0.3", *SMALL[-9:]]
IDS = torch.arange(13).remainder(11)[None]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run a, and b, which is fine-tuned from it by LoRA."""
    folder = tmp_path_factory.mktemp("lora")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in (("fox", "The quick brown fox. "), ("wolf", "The brown queer ox. ")):
            Path(f"{name}.txt").write_text(text * 60, encoding="utf-8")
        fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
        fine(*FROM, "--lora-rank", "2", "--out-dir", "b")
    return folder


@pytest.fixture
def at(runs, tmp_path, monkeypatch):
    """A folder with copies of both runs, not where b says that a is."""
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def adapters(run: str) -> bytes:
    return (checkpoint_folder(run) / "lora.safetensors").read_bytes()


def moved(run: str, to: Path) -> None:
    """Have a run name its base somewhere else."""
    path = checkpoint_folder(run) / "base.json"
    text = json.dumps(json.loads(path.read_text()) | {"checkpoint": str(to)})
    path.write_text(text)
    manifest = path.with_name("checkpoint.json")
    told = json.loads(manifest.read_text())
    told["files"][path.name] = len(text)
    manifest.write_text(json.dumps(told))


def test_a_and_b_alone_learn_and_are_kept(at, monkeypatch):
    seen, train = [], train_command.train

    def watched(model, *args, **options):
        seen.append(model)
        return train(model, *args, **options)

    monkeypatch.setattr(train_command, "train", watched)
    before = weights("a")
    fine(*FROM, "--lora-rank", "2", "--out-dir", "c")
    assert weights("a") == before and adapters("c") == adapters("b"), "the same run, twice"
    B = [W for name, W in lora_state_dict(seen[0]).items() if name.endswith(".B")]
    assert len(B) == 4 and all((W != 0).any() for W in B)
    remove_lora(seen[0])
    base, trained = load_model("a").state_dict(), seen[0].state_dict()
    assert base.keys() == trained.keys()
    assert all(torch.equal(trained[name], W) for name, W in base.items())
    folder = checkpoint_folder("b")
    assert not (folder / "model.safetensors").exists()
    numbers = 2 * 4 * (8 + 8)  # r (k + d) for each of four matrices [8×8]
    assert sum(W.numel() for W in lora_state_dict(load_model("b")).values()) == numbers
    assert len(adapters("b")) < len(before) / 3


def test_a_lora_run_writes_is_measured_and_told_of(at, capsys):
    said = {}
    for run in "ab":
        fine("evaluate", run, "wolf.txt", "--json")
        said[run] = json.loads(capsys.readouterr().out)["loss"]
    assert said["b"] < said["a"] - 1e-3, "it has learned from the other text"
    fine("evaluate", "b", "--json")
    best = min(
        record.val_loss for record in load_trainer_state(checkpoint_folder("b")).eval_history
    )
    assert json.loads(capsys.readouterr().out)["loss"] == pytest.approx(best, rel=1e-6)
    fine("generate", "b", "--prompt", "The", "--max-new-tokens", "7")
    assert capsys.readouterr().out.startswith("The")
    fine("info", "b", "--json")
    told = json.loads(capsys.readouterr().out)["lora"]
    assert told["rank"] == 2 and Path(told["base"]).parent.name == "a"


def test_merged_it_is_a_run_of_its_own_that_writes_the_same(at, capsys):
    unmerged = load_model("b")(IDS)
    fine("merge", "b", "--out-dir", "m")
    shutil.rmtree("a")
    moved("b", at / "nowhere")
    shutil.move("b", "elsewhere")
    merged = load_model("m")
    assert not lora_state_dict(merged) and load_lora_base(checkpoint_folder("m")) is None
    torch.testing.assert_close(merged(IDS), unmerged)
    capsys.readouterr()
    fine("evaluate", "m")  # on what b held out
    assert "nats per token" in capsys.readouterr().out
    assert "is not a LoRA run" in refused(capsys, "merge", "m", "--out-dir", "n")
    further = ["train", "--out-dir", "m", "--resume", "--steps", "9"]
    assert "m is not a LoRA run: start a new one with --init-from" in refused(capsys, *further)
    fine("train", "text", "wolf.txt", "--init-from", "m", "--out-dir", "n", *SMALL[-9:])


def test_merged_it_writes_the_same_words(at, capsys):
    fine("merge", "b", "--out-dir", "m")
    written = []
    for run in "bm":
        capsys.readouterr()
        fine("generate", run, "--prompt", "The", "--max-new-tokens", "9", "--seed", "3")
        written.append(capsys.readouterr().out)
    assert written[0] == written[1]
    model = load_model("b")
    merge_lora(model)
    whole = load_model("m").state_dict()
    assert all(torch.equal(W, whole[name]) for name, W in model.state_dict().items())


def test_resumed_it_ends_as_one_that_was_never_stopped(at, monkeypatch):
    """Stopped after step 5, between two measurements."""
    more, draw, drawn = ["--steps", "7", "--dropout", "0.2"], TokenWindows.draw, []

    def stop_at_the_fifth(*args):
        drawn.append(1)
        if len(drawn) == 5:
            signal.raise_signal(signal.SIGINT)
        return draw(*args)

    with monkeypatch.context() as patch:
        patch.setattr(TokenWindows, "draw", stop_at_the_fifth)
        assert main([*FROM, "--lora-rank", "2", "--out-dir", "c", *more]) == 130
    assert load_trainer_state(checkpoint_folder("c")).step == 5
    fine("train", "--out-dir", "c", "--resume", "--quiet")
    fine(*FROM, "--lora-rank", "2", "--out-dir", "d", *more)
    once, again = (load_trainer_state(checkpoint_folder(run)) for run in "dc")
    assert once == again and once.step == 7
    assert adapters("c") == adapters("d") != adapters("b")


START = ["--init-from", "a", "--lora-rank"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*START, "0"], "lora_rank must be a whole number of 1 or more, not 0"),
        ([*START, "-3"], "lora_rank must be a whole number of 1 or more, not -3"),
        ([*START, "two"], "Error parsing --lora-rank"),
        (["--lora-rank", "2"], "lora_rank fine-tunes the model of another run"),
        ([*START, "9"], "rank must be at most 8 for a matrix of [8×8], not 9"),
        (["--init-from", "b", "--lora-rank", "2"], "merge it with its base first"),
        (["--init-from", "b"], "(`slp-transformer merge`)"),
    ],
)
def test_what_lora_cannot_do_is_refused_before_the_data(at, capsys, monkeypatch, words, sentence):
    monkeypatch.delattr(TextTask, "prepare")
    assert sentence in refused(
        capsys, "train", "text", "wolf.txt", *words, "--out-dir", "n", *SMALL[-9:]
    )
    assert not Path("n").exists()


def test_another_rank_is_another_run(at, capsys):
    said = refused(capsys, "train", "--out-dir", "b", "--resume", "--lora-rank", "3")
    assert "started with lora_rank 2, not 3" in said


def test_a_base_that_is_gone_or_another_is_refused(at, capsys):
    moved("b", at / "nowhere" / "a" / checkpoint_folder("a").name)
    fine("evaluate", "b")  # it is found beside b
    commands = (
        ["generate", "b"],
        ["evaluate", "b"],
        ["merge", "b", "--out-dir", "m"],
        ["train", "--out-dir", "b", "--resume", "--steps", "9", "--quiet"],
    )
    path = checkpoint_folder("a") / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    for words in commands:
        assert f"{path.name} has changed since" in refused(capsys, *words)
    shutil.rmtree("a")
    for words in commands:
        assert "is a LoRA adapter, and its base checkpoint" in refused(capsys, *words)
    assert not Path("m").exists()


def test_merging_needs_a_free_folder(at, capsys):
    assert "--out-dir" in refused(capsys, "merge", "b")
    assert "a holds a run already" in refused(capsys, "merge", "b", "--out-dir", "a")
    assert "a is not a LoRA run" in refused(capsys, "merge", "a", "--out-dir", "m")
    assert "There is no folder x" in refused(capsys, "merge", "x", "--out-dir", "m")
    assert not Path("m").exists()


def test_a_damaged_base_file_is_refused_by_name(at, capsys):
    path = checkpoint_folder("b") / "base.json"
    path.write_text(path.read_text().replace('"rank": 2', '"rank": 0'))
    assert "base.json: rank must be a whole number of 1 or more, not 0" in refused(
        capsys, "generate", "b"
    )
