"""Files are renamed at last, on Windows too, where others look into new ones for a moment."""

import os

import pytest

from slp_transformer._internal import atomic_write


@pytest.mark.parametrize("name", ["a file", "a folder"])
def test_on_windows_a_rename_waits_for_who_has_the_file_open(tmp_path, monkeypatch, name):
    source, target = tmp_path / "new", tmp_path / name
    source.mkdir() if name == "a folder" else source.write_bytes(b"it")
    own, refusals, waited = os.replace, [], []

    def replace(*paths):
        if len(refusals) < 3:
            refusals.append(paths)
            raise PermissionError(13, "Access is denied")
        own(*paths)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError):  # for good, elsewhere
        atomic_write.rename_path(source, target)
    monkeypatch.setattr(atomic_write.time, "sleep", waited.append)
    monkeypatch.setattr(os, "name", "nt")
    atomic_write.rename_path(source, target)
    assert len(refusals) == 3 and waited == list(atomic_write.WINDOWS_RETRIES[:2])
    monkeypatch.setattr(os, "name", "posix")
    assert target.exists() and not source.exists()
