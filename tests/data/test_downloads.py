"""Downloads from a server of our own: checked, placed by hand or refused."""

import functools
import hashlib
import http.server
import tempfile
import threading
from pathlib import Path

import pytest
from whole import whole

from slp_transformer.data import (
    CORPORA,
    fetch_corpus,
    load_moby_dick,
    prepare_corpus,
    resolve_text_source,
)
from slp_transformer.data.text_files import PublishedFile, data_dir, fetch_file

CONTENT = bytes(range(256)) * 4001


class Server(http.server.SimpleHTTPRequestHandler):
    """Sends what is in a folder; `asked` are the paths asked for."""

    def __init__(self, asked, *args, **options):
        self.asked = asked
        super().__init__(*args, **options)

    def log_message(self, *_):
        self.asked.append(self.path)


@pytest.fixture
def server(monkeypatch, tmp_path):
    """The file that a server sends, what it was asked for, and the file that it publishes."""
    pytest.importorskip("pooch")
    monkeypatch.setenv("SLP_TRANSFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("SLP_TRANSFORMER_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sent, asked = tmp_path / "served" / "file", []
    sent.parent.mkdir()
    sent.write_bytes(CONTENT)
    handler = functools.partial(Server, asked, directory=sent.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=[0.01], daemon=True).start()
        yield sent, asked, published(f"http://127.0.0.1:{running.server_port}/file")
        running.shutdown()


def published(url: str, content: bytes = CONTENT) -> PublishedFile:
    sha256 = hashlib.sha256(content).hexdigest()
    return PublishedFile("numbers.txt", url, sha256)


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_downloaded_once(server, tmp_path):
    _, asked, file = server
    path = fetch_file(file)
    assert path == tmp_path / "data" / "numbers.txt" and path.read_bytes() == CONTENT
    assert fetch_file(file) == path
    assert asked == ["/file"] and names(tmp_path / "data") == {"numbers.txt"}


@pytest.mark.parametrize("content", [b"\x01" + CONTENT[1:], CONTENT + b"more", CONTENT[:-7]])
def test_a_changed_file_is_deleted_and_said_so(content, server, tmp_path):
    sent, _, file = server
    sent.write_bytes(content)
    with pytest.raises(ValueError, match=f"was deleted, since its SHA-256 is not {file.sha256}"):
        fetch_file(file)
    assert names(tmp_path / "data") == set()


def test_a_wrong_file_in_its_place_is_left_alone(server, tmp_path):
    """Someone may have put it there by hand."""
    _, asked, file = server
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_bytes(b"mine")
    with pytest.raises(
        ValueError,
        match=whole(
            "…numbers.txt is not the file that …/file should have: "
            "its SHA-256 is "
            "3fd30542fe3f61b14bd4a4b2dc0b6fb30fa6f63ebce52dd1778aaa8c4dc02cff, not "
            "1ac300f994eab6746d03661584fc7716b679c79c3d037dd83bdb56900a0b73f8. Delete it "
            "to download it anew."
        ),
    ):
        fetch_file(file)
    assert (tmp_path / "data" / "numbers.txt").read_bytes() == b"mine" and asked == []


def test_without_a_network_it_says_where_from_and_where_to(server, tmp_path):
    file = published("http://127.0.0.1:9/file")  # nobody listens there
    with pytest.raises(ValueError) as error:
        fetch_file(file)
    message = str(error.value)
    assert "http://127.0.0.1:9/file could not be downloaded" in message
    assert message.endswith(f"copy it to {tmp_path / 'data' / 'numbers.txt'}.")
    assert "HTTPConnection" not in message  # the gist, not the chain of what failed around it


def test_offline_nothing_is_asked_for(server, tmp_path, monkeypatch):
    _, asked, file = server
    monkeypatch.setenv("SLP_TRANSFORMER_OFFLINE", "1")
    path = tmp_path / "data" / "numbers.txt"
    with pytest.raises(
        ValueError,
        match=whole(
            "…numbers.txt does not exist, and SLP_TRANSFORMER_OFFLINE forbids downloading"
            " it from …/file: unset that variable. Or get it in "
            "another way, and copy it to …numbers.txt."
        ),
    ) as error:
        fetch_file(file)
    assert str(path) in str(error.value) and file.url in str(error.value)
    assert asked == [] and not path.parent.exists()
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert fetch_file(file) == path
    for count, no in enumerate(["0", "false", "No ", ""], 1):
        path.unlink()
        monkeypatch.setenv("SLP_TRANSFORMER_OFFLINE", no)
        assert fetch_file(file) == path and asked == ["/file"] * count


def test_a_data_directory_that_may_not_be_written_is_named(server, tmp_path, monkeypatch):
    """The server is fine, and trying again would not help."""
    (tmp_path / "data").mkdir()

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    with pytest.raises(
        ValueError, match=whole("…numbers.txt cannot be read or written: Permission denied.")
    ):
        fetch_file(server[2])


def test_the_data_directory_is_the_systems_unless_named(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("SLP_TRANSFORMER_DATA", raising=False)
    assert data_dir() == Path(pooch.os_cache("slp-transformer"))
    monkeypatch.setenv("SLP_TRANSFORMER_DATA", "~/data")
    assert data_dir() == Path.home() / "data"


def test_a_named_corpus_is_fetched_checked_and_prepared(server, tmp_path, monkeypatch):
    sent, asked, file = server
    sent.write_bytes(load_moby_dick()[:9999].encode())
    monkeypatch.setitem(CORPORA, "little-whale", published(file.url, sent.read_bytes()))
    corpus = prepare_corpus("little-whale")
    assert corpus.tokenizer.decode(corpus.train) == load_moby_dick()[: 9999 * 9 // 10]
    assert resolve_text_source("little-whale") == [fetch_corpus("little-whale")] and len(asked) == 1


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(
        ValueError,
        match=whole("No corpus is called 'moby'; there are moby-dick, tiny-shakespeare."),
    ):
        fetch_corpus("moby")
    assert fetch_corpus("moby-dick").read_text(encoding="utf-8") == load_moby_dick()
