"""Files are renamed at last, on Windows too, where others look into new ones for a moment."""

import os

import own_process
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


@pytest.mark.skipif(os.name == "nt", reason="Windows locks otherwise")
@pytest.mark.skipif(os.name == "nt", reason="Windows opens no folder, and leaves these")
def test_what_a_killed_export_left_goes_and_one_that_is_going_on_stays(tmp_path):
    left, mine = tmp_path / f".{'a' * 16}.exporting", tmp_path / f".{'b' * 16}.other"
    for folder in (left, mine):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
    with atomic_write.make_locked_folder(tmp_path) as first:
        for path in (left, mine, first):
            os.utime(path, (1, 1))
        with atomic_write.make_locked_folder(tmp_path) as second:
            assert not left.exists() and {*tmp_path.iterdir()} == {mine, first, second}


def test_what_a_killed_process_was_writing_goes_at_the_next_write_beside_it(tmp_path, monkeypatch):
    """Not what others write at the moment, nor anything that is young, a link or a folder."""
    dies = (
        "import os, sys, pathlib; from slp_transformer._internal.atomic_write import atomic_write\n"
    )
    dies += "with atomic_write(pathlib.Path(sys.argv[1])) as file: file.write(b'x'); os._exit(9)"
    own_process.python("-c", dies, tmp_path / "x.tab")
    (left,) = tmp_path.glob(".*.writing")
    monkeypatch.setattr(atomic_write, "SWEPT", set())
    atomic_write.write_file(tmp_path / "y.tab", "y")
    assert left.exists()  # it is young
    link, folder = tmp_path / f".{'a' * 16}.writing", tmp_path / f".{'b' * 16}.writing"
    link.symlink_to(tmp_path / "y.tab")
    folder.mkdir()
    with atomic_write.atomic_write(tmp_path / "z.tab") as file:
        (mine,) = {*tmp_path.glob(".*.writing")} - {left, link, folder}
        for path in (left, mine):
            os.utime(path, (1, 1))
        monkeypatch.setattr(atomic_write, "SWEPT", set())
        atomic_write.write_file(tmp_path / "y.tab", "again")
        assert not left.exists() and mine.exists() and link.is_symlink() and folder.is_dir()
        file.write(b"z")
    assert (tmp_path / "z.tab").read_bytes() == b"z"
