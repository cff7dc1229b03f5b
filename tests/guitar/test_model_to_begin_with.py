"""The model of guitar tab that the package brings: `generate` takes it by its name."""

import tomllib
from pathlib import Path

import pytest
from checkpoint_folders import checkpoint_folder
from commands import fine, refused

from slp_guitar import read_tab_file
from slp_guitar.fretboard import is_playable_grip
from slp_transformer.tasks.saved_runs import resolve_run
from slp_transformer.training.run_folder import verify_checkpoint_checksums

pytest.importorskip("safetensors")
FOLDER = resolve_run(Path("guitar"))


def test_a_piece_is_written_without_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fine("generate", "guitar", "--output", "piece.txt", "--max-new-tokens", "90", "--key", "Am")
    (tab,), problems = read_tab_file("piece.txt")
    assert not problems and len(tab.bars) >= 2 and tab.is_fingered
    assert all(is_playable_grip(event.notes) for event in tab.iter_events())


def test_its_files_are_those_that_were_written_and_its_pieces_are_named():
    folder = checkpoint_folder(FOLDER)
    assert verify_checkpoint_checksums(folder) and folder.parent == FOLDER
    config = tomllib.loads((FOLDER / "config.toml").read_text(encoding="utf-8"))
    assert config["task"] == "tabs" and config["model"]["num_blocks"] == 3
    licenses = (FOLDER / "LICENSE.txt").read_text(encoding="utf-8")
    assert licenses.count("typeset by") == 111


def test_a_folder_of_that_name_comes_first(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guitar").mkdir()
    assert "There is no checkpoint in guitar" in refused(capsys, "generate", "guitar")
    assert "There is no folder gutiar" in refused(capsys, "generate", "gutiar")
