"""Downloads from a server of our own: checked, resumed, placed by hand or refused."""

import contextlib
import functools
import gzip
import hashlib
import http.server
import re
import threading

import pytest

from slp_transformer.data import (
    CORPORA,
    corpus_names,
    downloads,
    fetch,
    find_texts,
    moby_dick,
    prepare,
)
from slp_transformer.data.downloads import PublishedFile, data_folder, fetch_file

CONTENT = bytes(range(256)) * 4001  # pooch writes whole KiB, so connections drop after some


class Server(http.server.BaseHTTPRequestHandler):
    """Sends CONTENT, with what a test sets in `behaviour`; `asked` are the ranges asked for."""

    def __init__(self, behaviour, asked, *args):
        self.behaviour, self.asked = behaviour, asked
        super().__init__(*args)

    def do_GET(self):
        content = self.behaviour.get("content", CONTENT)
        wanted = self.headers.get("Range")
        self.asked.append(wanted)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/file")
            self.end_headers()
            return
        if self.behaviour.get("status"):
            self.send_error(self.behaviour["status"])
            return
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        content = gzip.compress(content) if packed else content
        start = 0
        if wanted and self.behaviour.get("ranges", True):
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            said = self.behaviour.get("said", start)
            self.send_header("Content-Range", f"bytes {said}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        drops = self.behaviour.get("drops", [])
        sent = drops.pop(0) if drops else len(content)
        self.wfile.write(content[start : start + sent])
        self.close_connection = True

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server(monkeypatch, tmp_path):
    """What a server does, which ranges it was asked for, and the file that it publishes."""
    pytest.importorskip("pooch")
    monkeypatch.setenv("SLP_TRANSFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("SLP_TRANSFORMER_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    behaviour, asked = {}, []
    handler = functools.partial(Server, behaviour, asked)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=[0.01], daemon=True).start()
        yield behaviour, asked, published(f"http://127.0.0.1:{running.server_port}/file")
        running.shutdown()


def published(url: str, content: bytes = CONTENT) -> PublishedFile:
    sha256 = hashlib.sha256(content).hexdigest()
    return PublishedFile("numbers.txt", url, sha256, len(content), "All bytes, many times.")


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- Downloading -------------------------------------------------------------------------------


def test_a_file_is_downloaded_once(server, tmp_path):
    _, asked, file = server
    path = fetch_file(file)
    assert path == tmp_path / "data" / "numbers.txt" and path.read_bytes() == CONTENT
    assert fetch_file(file) == path
    assert asked == [None] and names(tmp_path / "data") == {"numbers.txt"}


def test_a_download_that_breaks_off_goes_on_from_there(server, tmp_path):
    behaviour, asked, file = server
    behaviour["drops"] = [409_600, 307_200]
    assert fetch_file(file).read_bytes() == CONTENT
    assert asked == [None, "bytes=409600-", "bytes=716800-"]
    assert names(tmp_path / "data") == {"numbers.txt"}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("before", [0, 204_800])
def test_the_bar_knows_what_is_there(ranges, before, server, tmp_path, monkeypatch):
    behaviour, _, file = server
    behaviour.update(ranges=ranges, drops=[409_600])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt.part").write_bytes(CONTENT[:before])
    told = []

    @contextlib.contextmanager
    def noted(work, total, unit="B", done=0):
        told.append(done)
        yield told.append
        assert total == len(CONTENT)

    monkeypatch.setattr(downloads, "work_bar", noted)
    fetch_file(file)
    assert told[0] == before and sum(told) == len(CONTENT)
    assert (min(told) < 0) is not ranges and max(told[1:]) < 100_000


def test_and_so_it_does_in_another_process_later(server, tmp_path):
    behaviour, asked, file = server
    behaviour["drops"] = [409_600, 0]
    with pytest.raises(ValueError, match="could not be downloaded .*it goes on from what came"):
        fetch_file(file)
    part = tmp_path / "data" / "numbers.txt.part"
    assert part.read_bytes() == CONTENT[:409_600] and names(part.parent) == {part.name}
    assert fetch_file(file).read_bytes() == CONTENT
    assert asked == [None, "bytes=409600-", "bytes=409600-"] and not part.exists()


def test_a_server_that_cannot_begin_in_the_middle_sends_all_again(server):
    behaviour, asked, file = server
    behaviour.update(ranges=False, drops=[409_600])
    assert fetch_file(file).read_bytes() == CONTENT
    assert asked == [None, "bytes=409600-"]


def test_a_server_that_always_breaks_off_at_the_same_place_is_given_up(server):
    behaviour, asked, file = server
    behaviour.update(ranges=False, drops=[409_600] * 9)
    with pytest.raises(ValueError, match="could not be downloaded"):
        fetch_file(file)
    assert asked == [None, "bytes=409600-"]


def test_a_moved_file_is_followed_and_what_came_is_kept(server, tmp_path):
    behaviour, asked, file = server
    file = published(file.url.replace("/file", "/moved"))
    behaviour["drops"] = [409_600]
    assert fetch_file(file).read_bytes() == CONTENT
    assert asked == [None, None, "bytes=409600-", "bytes=409600-"]


def test_another_part_than_asked_for_is_not_taken(server, tmp_path):
    behaviour, _, file = server
    behaviour.update(drops=[409_600], said=7)
    with pytest.raises(ValueError, match="asked for the file from byte 409600 on.*sent 'bytes 7-"):
        fetch_file(file)
    assert (tmp_path / "data" / "numbers.txt.part").read_bytes() == CONTENT[:409_600]


def test_a_complete_part_is_just_checked(server, tmp_path):
    """The process was killed between the last byte and the checksum."""
    _, asked, file = server
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt.part").write_bytes(CONTENT)
    assert fetch_file(file).read_bytes() == CONTENT and asked == []


# --- Another file than published ---------------------------------------------------------------


@pytest.mark.parametrize("content", [b"\x01" + CONTENT[1:], CONTENT + b"more"])
def test_a_changed_file_is_deleted_and_said_so(content, server, tmp_path):
    behaviour, _, file = server
    behaviour["content"] = content
    with pytest.raises(ValueError, match=f"was deleted, since its SHA-256 is not {file.sha256}"):
        fetch_file(file)
    assert names(tmp_path / "data") == set()


def test_a_file_that_became_shorter_does_not_stop_later_downloads(server, tmp_path):
    behaviour, asked, file = server
    behaviour["content"] = CONTENT[:-7]
    with pytest.raises(ValueError, match="could not be downloaded .416"):
        fetch_file(file)
    assert (tmp_path / "data" / "numbers.txt.part").read_bytes() == b""
    del behaviour["content"]
    assert fetch_file(file).read_bytes() == CONTENT


def test_a_wrong_file_in_its_place_is_left_alone(server, tmp_path):
    """Someone may have put it there by hand."""
    _, asked, file = server
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_bytes(b"mine")
    with pytest.raises(
        ValueError, match="numbers.txt is not the file that .*Delete it to download"
    ):
        fetch_file(file)
    assert (tmp_path / "data" / "numbers.txt").read_bytes() == b"mine" and asked == []


# --- No network --------------------------------------------------------------------------------


def test_what_a_server_refuses_is_one_sentence(server, tmp_path):
    behaviour, _, file = server
    behaviour["status"] = 404
    with pytest.raises(ValueError, match=r"/file could not be downloaded \(404 .*\): try again"):
        fetch_file(file)


def test_without_a_network_it_says_where_from_and_where_to(server, tmp_path):
    file = published("http://127.0.0.1:9/file")  # nobody listens there
    with pytest.raises(ValueError) as error:
        fetch_file(file)
    message = str(error.value)
    assert "http://127.0.0.1:9/file could not be downloaded" in message
    assert message.endswith(f"copy it to {tmp_path / 'data' / 'numbers.txt'}.")
    assert "HTTPConnection" not in message  # the gist, not the chain of what failed around it


@pytest.mark.parametrize("switch", ["1", "true", "yes"])
def test_offline_nothing_is_asked_for(switch, server, tmp_path, monkeypatch):
    _, asked, file = server
    monkeypatch.setenv("SLP_TRANSFORMER_OFFLINE", switch)
    path = tmp_path / "data" / "numbers.txt"
    with pytest.raises(ValueError, match="SLP_TRANSFORMER_OFFLINE forbids") as error:
        fetch_file(file)
    assert str(path) in str(error.value) and file.url in str(error.value)
    assert asked == [] and not path.parent.exists()
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert fetch_file(file) == path


@pytest.mark.parametrize("switch", ["", "0", "false"])
def test_the_switch_may_be_off(switch, server, monkeypatch):
    monkeypatch.setenv("SLP_TRANSFORMER_OFFLINE", switch)
    assert fetch_file(server[2]).exists()


def test_a_data_directory_that_cannot_be_made_is_named(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SLP_TRANSFORMER_DATA", str(tmp_path / "file" / "below"))
    with pytest.raises(ValueError, match="could not be downloaded .*below"):
        fetch_file(server[2])


def test_the_data_directory_is_the_systems_unless_named(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("SLP_TRANSFORMER_DATA", raising=False)
    assert data_folder() == downloads.Path(pooch.os_cache("slp-transformer"))
    monkeypatch.setenv("SLP_TRANSFORMER_DATA", "~/data")
    assert data_folder() == downloads.Path.home() / "data"


# --- Named corpora -----------------------------------------------------------------------------


def test_every_corpus_says_where_it_is_from():
    for name, file in CORPORA.items():
        assert name in corpus_names() and file.url.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", file.sha256) and file.size > 0
        assert file.origin.endswith(".") and file.name.startswith(name)


def test_a_named_corpus_is_fetched_checked_and_prepared(server, tmp_path, monkeypatch):
    behaviour, asked, file = server
    behaviour["content"] = moby_dick()[:9999].encode()
    monkeypatch.setitem(CORPORA, "little-whale", published(file.url, behaviour["content"]))
    corpus = prepare("little-whale")
    assert corpus.tokenizer.decode(corpus.learned) == moby_dick()[: 9999 * 9 // 10]
    assert find_texts("little-whale") == [fetch("little-whale")] and len(asked) == 1


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match="called 'moby'; there are moby-dick, tiny-shakespeare"):
        fetch("moby")
    assert fetch("moby-dick").read_text(encoding="utf-8") == moby_dick()
