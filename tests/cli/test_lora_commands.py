"""LoRA on the command line: what learns, what is kept, what is refused, and what merging gives."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
import torch
from checkpoint_folders import checkpoint_folder
from commands import SMALL, fine, output, refused, result

from slp_transformer.lora import lora_state_dict, merge_lora
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.lora_base import make_lora_base
from slp_transformer.training.run_folder import load_lora_base, load_trainer_state

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


def rewrite_base(run: str, **changes: str | int) -> None:
    """Have a run say something else of its base."""
    path = checkpoint_folder(run) / "base.json"
    text = json.dumps(json.loads(path.read_text()) | changes)
    path.write_text(text)
    manifest = path.with_name("checkpoint.json")
    told = json.loads(manifest.read_text())
    told["files"][path.name] = len(text)
    manifest.write_text(json.dumps(told))


def test_a_lora_run_writes_is_measured_and_told_of(at, capsys):
    loss = {run: result(capsys, "evaluate", run, "wolf.txt")["loss"] for run in "ab"}
    assert loss["b"] < loss["a"] - 1e-3, "it has learned from the other text"
    best = min(
        record.val_loss for record in load_trainer_state(checkpoint_folder("b")).eval_history
    )
    assert result(capsys, "evaluate", "b")["loss"] == pytest.approx(best, rel=1e-6)
    assert output(capsys, "generate", "b", "--prompt", "The").startswith("The")
    with pytest.raises(ValueError, match="b is a LoRA adapter already: merge it into its base"):
        make_lora_base("b", 2)
    told = result(capsys, "info", "b")["lora"]
    assert told["rank"] == 2 and Path(told["base"]).parent.name == "a"


def test_merged_it_is_a_run_of_its_own_that_writes_the_same(at, capsys):
    how = ["--prompt", "The", "--max-new-tokens", "9", "--seed", "3"]
    model, written = load_model("b"), output(capsys, "generate", "b", *how)
    unmerged = model(IDS)
    fine("merge", "b", "--out-dir", "m")
    merge_lora(model)
    shutil.rmtree("a")
    rewrite_base("b", checkpoint=str(at / "nowhere"))
    shutil.move("b", "elsewhere")
    merged = load_model("m")
    assert not lora_state_dict(merged) and load_lora_base(checkpoint_folder("m")) is None
    torch.testing.assert_close(merged(IDS), unmerged)
    assert output(capsys, "generate", "m", *how) == written
    assert all(torch.equal(W, merged.state_dict()[n]) for n, W in model.state_dict().items())
    assert "nats per token" in output(capsys, "evaluate", "m")  # on what b held out
    further = ["train", "--out-dir", "m", "--resume", "--steps", "9"]
    assert "m is not a LoRA run: start a new one with --init-from" in refused(capsys, *further)
    fine("train", "text", "wolf.txt", "--init-from", "m", "--out-dir", "n", *SMALL[-9:])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "folder of links"])
def test_merging_copies_no_pipe_and_nothing_that_a_link_leads_to(kind, at, capsys):
    """A run may be a stranger's, and what is merged be given away."""
    tokens, elsewhere = Path("b/tokens"), at / "elsewhere"
    if kind == "pipe":
        os.mkfifo(tokens / "more")
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind("b/tokens/more")
    elif kind == "link":
        elsewhere.write_text("precious", encoding="utf-8")
        (tokens / "more").symlink_to(elsewhere)
    else:
        tokens.rename(elsewhere)
        tokens.symlink_to(elsewhere)
    said = refused(capsys, "merge", "b", "--out-dir", "m")
    assert "it is no file" in said or "is a link, which is not followed" in said
    assert not Path("m").exists()


def test_a_base_that_learns_on_keeps_what_its_lora_run_needs(at, capsys):
    base = checkpoint_folder("a").name
    rewrite_base("b", checkpoint=str(at / "a" / base))
    said = output(capsys, "evaluate", "b")
    fine("train", "--out-dir", "a", "--resume", "--steps", "20", "--quiet")
    assert base not in {checkpoint_folder("a", which).name for which in ("best", "last")}
    assert output(capsys, "evaluate", "b") == said


def test_a_base_that_is_gone_or_another_is_refused(at, capsys):
    rewrite_base("b", checkpoint=str(at / "nowhere" / "a" / checkpoint_folder("a").name))
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
    rewrite_base("b", rank=0)
    for words in commands:
        assert "rank must be a whole number of 1 or more, not 0" in refused(capsys, *words)
    assert not Path("m").exists()
