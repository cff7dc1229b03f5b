"""Run folders that an earlier version wrote open as ever: their files are no import names.

`runs_of_0.3.0.zip` has five, of four steps each, by the commands of 0.3.0 when the guitar was a
part of `slp_transformer`: `text`, `modern` (byte pairs, rotary positions, Muon), `pairs`, `lora`
(on `text`) and `tabs`. They are never written anew.
"""

import json
import zipfile
from pathlib import Path

import pytest
from checkpoint_folders import checkpoint_folder
from commands import fine, output, result

from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.run_folder import load_trainer_state

ZIP = Path(__file__).with_name("runs_of_0.3.0.zip")
RUNS = ("text", "modern", "pairs", "lora", "tabs")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder to work in, with the runs; the texts they were trained on are no longer there."""
    with zipfile.ZipFile(ZIP) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_before_is_described_evaluated_and_used(run, runs, capsys):
    assert result(capsys, "info", run, "--verify")["files"]["unverified"] == []
    (record,) = load_trainer_state(checkpoint_folder(run)).eval_history
    assert result(capsys, "evaluate", run)["loss"] == pytest.approx(record.val_loss, abs=1e-4)
    if run == "pairs":
        assert output(capsys, "translate", run, "one two")
    else:
        written = output(capsys, "generate", run, "--temperature", "0", "--max-new-tokens", "12")
        assert ("tuning: E A D G B E" in written) == (run == "tabs")
    assert load_model(run).config.num_blocks == 1


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_before_is_trained_further(run, runs):
    fine("train", "--out-dir", run, "--resume", "--steps", "6", "--quiet")
    state = load_trainer_state(checkpoint_folder(run))
    assert [record.step for record in state.eval_history] == [4, 6]


def test_a_config_file_of_before_repeats_its_run(runs, capsys):
    """Its settings are those that it names, and none is unknown."""
    for run in ("text", "modern", "pairs"):
        printed = output(capsys, "train", "--config", f"{run}/config.toml", "--print-config")
        settings = Path(run, "config.toml").read_text("utf-8").partition("[model]")[2]
        assert settings.strip() and settings in printed


def test_an_adapter_of_before_is_merged_and_a_model_exported(runs):
    fine("merge", "lora", "--out-dir", "merged")
    fine("export", "modern", "exported")
    assert json.loads(Path("exported/config.json").read_text("utf-8"))["vocab_size"] == 257
