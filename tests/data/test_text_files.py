"""Reading text: files, folders, standard input and names, and what is said about bad ones."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import SENTENCE, SMALL, fine, refused, result, weights
from whole import whole

from slp_guitar import make_practice_corpus, read_tab_folder, write_tab
from slp_transformer.data import (
    iter_documents,
    list_corpora,
    load_corpus,
    load_moby_dick,
    prepare_corpus,
    resolve_text_source,
)
from slp_transformer.data import text_files as reading_module
from slp_transformer.data.pair_corpus import read_lines
from slp_transformer.data.text_files import (
    TEXT_FORMATS,
    TEXT_SUFFIXES,
    iter_file_text,
    save_stdin,
)


def standard_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.fixture
def folder(tmp_path):
    for name, content in {
        "b.txt": "bee",
        "a/z.TXT": "zed",
        "a-1.txt": "dash",
        "a/notes.md": "# notes",
        "a/paper.pdf": "%PDF",
        "LICENSE": "no corpus",
        "empty.txt": "",
        ".hidden.txt": "no",
        ".git/x.txt": "no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def test_a_folder_is_read_in_the_same_order_everywhere(folder):
    """Sorted by the folders' names, not by the paths' characters: "/" and "\\" sort differently."""
    found = [path.relative_to(folder).as_posix() for path in resolve_text_source(folder)]
    assert found == ["a/notes.md", "a/z.TXT", "a-1.txt", "b.txt"]
    assert list(iter_documents(str(folder))) == ["# notes", "zed", "dash", "bee"]


RECORDS = [{"text": "Ça va\n", "n": 1}, {"text": ""}, {"n": 2, "text": "a \u2028 b"}]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_each_kind_of_text_is_read_and_each_may_be_packed(
    name, packed, block, tmp_path, monkeypatch
):
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", block)
    content = (LINES if TEXT_FORMATS[name].has_records else "Ça va\n").encode()
    path = tmp_path / f"a{name}{'.GZ' if packed else ''}"
    path.write_bytes(gzip.compress(content) if packed else content)
    texts = [record["text"] for record in RECORDS]
    expected = texts if TEXT_FORMATS[name].has_records else ["Ça va\n"]
    assert list(iter_documents(path)) == list(iter_documents(tmp_path)) == expected


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_summary_names_each_suffix(name):
    """The docs show the entry's name and its summary, and no other suffix is known to a reader."""
    said = {name, *re.findall(r"\B\.[a-z]+", TEXT_FORMATS[name].summary)}
    assert said == {suffix for suffix in TEXT_FORMATS[name].suffixes if suffix}


def test_json_lines_are_trained_as_the_strings_of_one_field(at, capsys):
    Path("a.jsonl").write_text(f'{{"body": "{SENTENCE[:-1]}"}}\n' * 20, encoding="utf-8")
    assert 'no string "text" among its fields (body)' in refused(
        capsys, "train", "text", "a.jsonl", "--out-dir", "a", *SMALL
    )
    fine("train", "text", "a.jsonl", "--text-field", "body", "--out-dir", "a", *SMALL)
    tokens = load_corpus("a/tokens")
    assert tokens.tokenizer.decode(tokens.train[:20].tolist()) == SENTENCE[:20]
    about = [result(capsys, "evaluate", "a", *more)["tokens"] for more in ([], ["a.jsonl"])]
    assert about[1] > about[0]
    how = ("fox.txt", "--text-field", "body", "--out-dir", "new")
    assert "has no effect: no file here is of JSON lines" in refused(capsys, "train", "text", *how)
    Path("b.jsonl").write_text('{"body": "a"}\n["b"]\n', encoding="utf-8")
    said = refused(capsys, "evaluate", "a", "b.jsonl")
    assert "b.jsonl, line 2: an object is needed" in said


def test_what_is_no_file_of_text_is_refused_by_name_and_in_a_folder_counted(
    folder, capsys, caplog, monkeypatch
):
    monkeypatch.chdir(folder)
    resolve_text_source(folder)
    assert caplog.messages == [
        f"Left out of {folder}, as they end in none of .txt, .md, .jsonl or one of these and .gz: "
        "2 files (LICENSE, paper.pdf)."
    ]
    for n in range(4):
        Path(f"more-{n}.csv").touch()
    caplog.clear()
    resolve_text_source(folder)
    assert "6 files (LICENSE, paper.pdf, more-0.csv and 3 more)" in caplog.text
    Path("weights.gz").write_bytes(gzip.compress(b"\xff"))  # of what, nobody says
    caplog.clear()
    assert resolve_text_source(folder) and "7 files" in caplog.text
    said = refused(capsys, "train", "text", "a/paper.pdf", "--out-dir", "new")
    assert "paper.pdf is no file of text" in said and TEXT_SUFFIXES in said
    assert list(iter_documents(Path("LICENSE"))) == ["no corpus"]  # named, it is meant


def test_a_line_of_json_has_a_bound_and_so_has_what_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_module, "MAX_JSON_BYTES", 100)
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "' + "a" * 200 + '"}', encoding="utf-8")
    with pytest.raises(
        ValueError,
        match=whole(
            "…a.jsonl, line 1: it has more than 100 bytes, so a line break may be missing."
        ),
    ):
        list(iter_documents(path))
    monkeypatch.setattr(reading_module, "MAX_GZIP_BYTES", 1000)
    path.write_text('{"text": "a"}\n{"text": "a\\ud800"}', encoding="utf-8")
    with pytest.raises(
        ValueError,
        match=whole('…a.jsonl, line 2: "text" has half a character, \\ud800 to \\udfff.'),
    ):
        list(iter_documents(path))
    (packed := tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"a\n" * 50_000))
    with pytest.raises(
        ValueError,
        match=whole(
            "…b.txt.gz unpacks to more than 0 MiB, 50 times its size: unpack it, if you "
            "know what is in it."
        ),
    ):
        list(iter_documents(packed))
    packed.write_bytes(gzip.compress(b"a\n")[:-6])
    with pytest.raises(
        ValueError,
        match=whole(
            "…b.txt.gz is damaged: Compressed file ended before the end-of-stream marker "
            "was reached. Get it anew."
        ),
    ):
        list(iter_documents(packed))


def test_standard_input_is_one_document(monkeypatch):
    standard_input(monkeypatch, "Ça\r\nva".encode())
    assert list(iter_documents("-")) == ["Ça\nva"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
def test_a_pipe_is_read_as_standard_input_is(at):
    os.mkfifo("pipe")
    writing = "open('pipe', 'w').write(open('fox.txt').read())"
    with subprocess.Popen([sys.executable, "-c", writing]):
        fine("train", "text", "pipe", "--out-dir", "piped", *SMALL)
    Path("pipe").unlink()
    fine("train", "text", "fox.txt", "--out-dir", "file", *SMALL)
    assert weights("piped") == weights("file")
    fine("train", "--out-dir", "piped", "--resume", "--quiet")  # nothing is read again


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="devices with names are POSIX's")
def test_a_device_that_may_never_end_is_no_text(tmp_path):
    for read in (
        lambda device: save_stdin(tmp_path / "kept", device),
        lambda device: next(iter_file_text(device)),
        read_lines,
    ):
        with pytest.raises(
            ValueError, match=whole("/dev/null is a device: name a file or a pipe.")
        ):
            read(Path("/dev/null"))
    assert not any(tmp_path.iterdir())


def test_standard_input_from_a_terminal_says_that_it_waits(monkeypatch, caplog):
    standard_input(monkeypatch, b"some text\n")
    monkeypatch.setattr(sys.stdin.buffer, "isatty", lambda: True, raising=False)
    assert len(prepare_corpus("-", val_split=0.0).train) == 10
    assert caplog.messages == [
        "Waiting for text on standard input; Ctrl-D ends it (Windows: Ctrl-Z)."
    ]


def test_readers_leave_hidden_files_and_folders_out_and_name_closed_ones(tmp_path, monkeypatch):
    (tab,) = make_practice_corpus(seed=0, num_pieces=1)
    for place in (".hidden", "open/.hidden", "open", "closed"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        for name in (".secret.txt", "seen.txt") if place != "closed" else ():
            write_tab(tab, tmp_path / place / name)
    assert resolve_text_source(tmp_path) == [tmp_path / "open/seen.txt"]
    tabs, problems = read_tab_folder(tmp_path)
    assert [each.source for each in tabs] == ["open/seen.txt"] and not problems
    real = os.scandir

    def closed(path):  # for the administrator too
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", closed)
    for read in (resolve_text_source, read_tab_folder):
        with pytest.raises(
            ValueError, match=whole("The folder …closed cannot be read: Permission denied.")
        ):
            read(tmp_path)


def test_a_name_always_means_the_corpus(tmp_path, monkeypatch):
    """Whatever the working directory has; a path of that name is given with a slash, or as one."""
    (tmp_path / "moby-dick").write_text("another whale", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert list(iter_documents("moby-dick")) == [load_moby_dick()]
    assert list(iter_documents("./moby-dick")) == ["another whale"]
    assert list(iter_documents(Path("moby-dick"))) == ["another whale"]
    assert all(not set("./\\") & set(name) for name in list_corpora())


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_progress_adds_up_to_the_bytes_of_the_file(packed, tmp_path, monkeypatch):
    content = "".join(f'{{"text": "line {n}"}}\n' for n in range(3000)).encode()
    (path := tmp_path / "a.jsonl").write_bytes(gzip.compress(content) if packed else content)
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", 1000)
    for read in (iter_file_text, reading_module.iter_json_lines):
        steps: list[int] = []
        for _ in read(path, steps.append):
            pass
        assert sum(steps) == path.stat().st_size and min(steps) >= 0 and len(steps) > 50


def test_a_piece_ends_before_the_spaces_that_follow_a_word_or_where_none_is_in_a_block(monkeypatch):
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", 4)
    cuts = {"a b c": 3, "a b ": 3, "ab  \n": 2, " ab": 0, "abc": 0, "abcd": 4, "a": 0, " abc": 4}
    assert {text: reading_module.last_safe_split_index(text) for text in cuts} == cuts


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_pieces_make_up_the_text(block, tmp_path, monkeypatch):
    """A byte order mark, the line ends of three systems, and characters of 1 to 4 bytes."""
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", block)
    (tmp_path / "a").write_bytes("\ufeffone\r\ntwo\rthree\n\n\n é🎸日\n\tend\r".encode())
    assert "".join(iter_file_text(tmp_path / "a")) == "one\ntwo\nthree\n\n\n é🎸日\n\tend\n"


@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [
        (b"one\ntwo\nca\xf1a\n", 3, "F1"),
        ("Windows' own\n".encode("utf-16"), 1, "FF"),
        (b"a\n" * 100 + b"\xe2\x82", 101, "E2"),
        (b"\xc3\nx", 1, "C3"),
        (b"\n\xff", 2, "FF"),
    ],
    ids=["Latin-1", "UTF-16", "cut short", "half a character", "after an empty line"],
)
@pytest.mark.parametrize("block", [1, 5, 1000])
def test_what_is_not_utf8_is_named_with_its_line(content, line, byte, block, tmp_path, monkeypatch):
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", block)
    (tmp_path / "bad.txt").write_bytes(content)
    told = f"is not UTF-8: line {line} has the byte 0x{byte}, which cannot stand there. "
    told += "Save the text with the encoding UTF-8."
    with pytest.raises(ValueError, match=whole(f"{tmp_path / 'bad.txt'} {told}")):
        list(iter_documents(tmp_path))
    standard_input(monkeypatch, content)
    with pytest.raises(ValueError, match=whole(f"Standard input {told}")):
        list(iter_documents("-"))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "gone.txt",
            (
                "There is no file or folder gone.txt, nor a corpus of that name: give the "
                "path of a UTF-8 text file or of a folder of them, - for standard input, or "
                "one of moby-dick, tiny-shakespeare."
            ),
        ),
        (
            "moby-duck",
            (
                "There is no file or folder moby-duck, nor a corpus of that name: give the "
                "path of a UTF-8 text file or of a folder of them, - for standard input, or "
                "one of moby-dick, tiny-shakespeare."
            ),
        ),
        ("empty.txt", "empty.txt is empty: give a file with text in it."),
        (
            ".git",
            (
                ".git has no text: there is no file ending in .txt, .md, .jsonl or one of "
                "these and .gz with anything in it, there or in a folder below."
            ),
        ),
    ],
)
def test_a_source_without_text_is_named(source, sentence, folder, monkeypatch):
    monkeypatch.chdir(folder)
    Path(".git/x.txt").unlink()
    with pytest.raises(ValueError, match=whole(sentence)):
        resolve_text_source(source)


def test_a_line_of_just_the_bytes_that_it_may_have_is_read():
    for content in (b"abcd\nef", b"ef\nabcd"):
        assert sorted(reading_module.iter_whole_lines(io.BytesIO(content).read, "It", 4))
        with pytest.raises(ValueError, match="it has more than 3 bytes"):
            list(reading_module.iter_whole_lines(io.BytesIO(content).read, "It", 3))
