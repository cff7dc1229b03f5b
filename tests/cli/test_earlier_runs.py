"""Runs that version 0.3.0 wrote: every command opens their folders, and training goes on.

`tests/helpers/earlier_runs.zip` has five of them, of four steps each, as the commands left them:
`text`, `modern` (byte pairs, rotary positions, Muon), `pairs`, `lora` (on `text`) and `tabs`. They
are never written anew: what was trained before keeps opening, whatever is renamed here.
"""

import json
import zipfile
from pathlib import Path

import pytest
from commands import fine, output, result

from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.run_folder import checkpoint_folder, load_trainer_state

ARCHIVE = Path(__file__).parents[1] / "helpers" / "earlier_runs.zip"
RUNS = ("text", "modern", "pairs", "lora", "tabs")


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A folder to work in, with the runs; the texts they were trained on are no longer there."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_before_is_described_evaluated_and_used(run, earlier, capsys):
    assert result(capsys, "info", run, "--verify")["files"]["unverified"] == []
    (record,) = load_trainer_state(checkpoint_folder(run)).eval_history
    assert result(capsys, "evaluate", run)["loss"] == pytest.approx(record.val_loss, abs=1e-4)
    if run == "pairs":
        fine("translate", run, "one two")
    else:
        fine("generate", run, "--max-new-tokens", "5")
    assert load_model(run).config.num_blocks == 1


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_before_is_trained_further(run, earlier):
    fine("train", "--out-dir", run, "--resume", "--steps", "6", "--quiet")
    state = load_trainer_state(checkpoint_folder(run))
    assert [record.step for record in state.eval_history] == [4, 6]


def test_a_config_file_of_before_repeats_its_run(earlier, capsys):
    """Its settings are those that it names, and none is unknown."""
    for run in ("text", "modern", "pairs"):
        printed = output(capsys, "train", "--config", f"{run}/config.toml", "--print-config")
        settings = Path(run, "config.toml").read_text("utf-8").partition("[model]")[2]
        assert settings.strip() and settings in printed


def test_an_adapter_of_before_is_merged_and_a_model_exported(earlier):
    fine("merge", "lora", "--out-dir", "merged")
    fine("export", "modern", "exported")
    assert json.loads(Path("exported/config.json").read_text("utf-8"))["vocab_size"] == 257
