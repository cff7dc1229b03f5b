"""From text to token ids: both routes agree, little is held in memory, nothing half-done stays."""

import io
import itertools
import math
import os
import sys
import tracemalloc
from types import SimpleNamespace

import pytest
import torch
from whole import whole

from slp_transformer.data import (
    TextTokenizer,
    iter_documents,
    load_corpus,
    load_moby_dick,
    prepare_corpus,
    train_tokenizer,
)
from slp_transformer.data import text_corpus as preparing_module
from slp_transformer.data import text_files as reading_module
from slp_transformer.data.batches import TokenWindowSource
from slp_transformer.data.text_corpus import (
    Document,
    choose_val_ranges,
    describe_ranges,
    gaps_between,
    temporary_working_dir,
)
from slp_transformer.data.token_file import TokenStore

KINDS = ("characters", "words", "bpe")
TEXT = load_moby_dick()[:5000]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "whale.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def library(tmp_path):
    """A folder of three documents."""
    folder = tmp_path / "library"
    folder.mkdir()
    for name, text in zip("cab", ("See the sea.\n", "A whale!", "Be\n\nbold?\n"), strict=True):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def standard_input(monkeypatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


def all_of(corpus) -> list[int]:
    return corpus.train[:].tolist() + corpus.val[:].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_becomes_its_tokens_and_the_last_tenth_is_held_out(kind, file):
    corpus = prepare_corpus(file, kind, None if kind == "characters" else 300)
    assert corpus.tokenizer == train_tokenizer([TEXT], kind, None if kind == "characters" else 300)
    assert all_of(corpus) == corpus.tokenizer.encode(TEXT)
    count = len(corpus.train) + len(corpus.val)
    assert len(corpus.train) == count * 9 // 10
    assert corpus.train.dtype == corpus.val.dtype == torch.int64


@pytest.mark.parametrize("block", [50, 1000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", ["file", "library", "-"])
def test_in_memory_and_on_disk_are_the_same(kind, source, block, request, tmp_path, monkeypatch):
    """And however the text is cut into pieces."""
    monkeypatch.setattr(preparing_module, "CHUNK_TOKENS", 101)
    origin = "-" if source == "-" else request.getfixturevalue(source)
    standard_input(monkeypatch, TEXT)
    memory = prepare_corpus(origin, kind, val_split=0.25)
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", block)
    standard_input(monkeypatch, TEXT)
    disk = prepare_corpus(origin, kind, val_split=0.25, output_dir=tmp_path / "run")
    for corpus in (disk, load_corpus(tmp_path / "run")):
        assert isinstance(corpus.train, TokenStore)
        assert corpus.tokenizer == memory.tokenizer
        assert corpus.train[:].equal(memory.train) and len(memory.train)
        assert corpus.val[:].equal(memory.val) and len(memory.val)
        assert corpus.train.vocab_size == memory.tokenizer.vocab_size
    assert (
        TokenWindowSource(disk.train, 3).fingerprint()
        == TokenWindowSource(memory.train, 3).fingerprint()
    )
    names = {"train.npy", "val.npy", "held-out.json", "tokenizer.json", "checksums.json"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names


@pytest.mark.parametrize("kind", KINDS)
def test_each_of_several_documents_is_followed_by_the_end_token(kind, library):
    corpus = prepare_corpus(library, kind, val_split=0)
    end = corpus.tokenizer.end_id
    texts = list(iter_documents(library))
    assert texts == ["A whale!", "Be\n\nbold?\n", "See the sea.\n"] and end == 0
    ids = [i for text in texts for i in [*corpus.tokenizer.encode(text), end]]
    assert corpus.train.tolist() == ids


@pytest.mark.parametrize("on_disk", [False, True])
def test_documents_of_no_token_are_an_empty_corpus_of_ids(on_disk, tmp_path):
    (tmp_path / "none.jsonl").write_text('{"text": ""}\n', encoding="utf-8")
    where = {"output_dir": tmp_path / "run"} if on_disk else {}
    corpus = prepare_corpus(tmp_path / "none.jsonl", tokenizer=train_tokenizer(["abc"]), **where)
    assert [(ids[:].tolist(), ids[:].dtype) for ids in (corpus.train, corpus.val)] == [
        ([], torch.int64),
        ([], torch.int64),
    ]


def test_a_single_document_has_no_end_token(file):
    """So that Tiny Shakespeare has its 65 characters and no more."""
    assert prepare_corpus(file).tokenizer.end_id is None
    assert prepare_corpus(file).tokenizer.vocab_size == len(set(TEXT))


def test_a_tokenizer_of_ones_own_is_used(file, library):
    own = TextTokenizer.from_json(train_tokenizer([TEXT], "bpe", 300, end_token=True).to_json())
    corpus = prepare_corpus(file, tokenizer=own)
    assert corpus.tokenizer is own and all_of(corpus) == [*own.encode(TEXT), own.end_id]
    without = train_tokenizer([TEXT], "bpe", 300)
    texts = "".join(iter_documents(library))
    assert without.decode(prepare_corpus(library, val_split=0, tokenizer=without).train) == texts


def documents(*sizes: int) -> list[Document]:
    ends = list(itertools.accumulate(sizes, initial=0))
    places = itertools.starmap(range, itertools.pairwise(ends))
    return [Document(f"{n}.txt", tokens) for n, tokens in enumerate(places)]


@pytest.mark.parametrize("sizes", [[20_011, 30_011, 70_001], [97] * 501, [100_003, 31], [3, 5, 2]])
@pytest.mark.parametrize("share", [0.1, 0.25])
def test_pieces_come_from_all_over_and_are_as_many_tokens_as_asked_for(sizes, share):
    every = documents(*sizes)
    pieces, count = choose_val_ranges(every, share), sum(sizes)
    assert choose_val_ranges([Document("a", range(97))], 0.1) == [range(87, 97)]
    held_out = [place for piece in pieces for place in piece]
    learned = [place for piece in gaps_between(pieces, count) for place in piece]
    assert len(learned) == int(count * (1 - share)) and held_out == sorted(held_out)
    assert sorted(held_out + learned) == list(range(count))
    assert pieces == choose_val_ranges(every, share)
    if count > 1000:
        assert len(pieces) >= 5
        # Whatever is at the end is no more of what is held out than of the rest, by and large.
        assert sum(place > 0.9 * count for place in held_out) < 0.4 * len(held_out)


def test_small_documents_stay_whole_and_each_piece_is_named():
    every = documents(*[97] * 501)
    pieces = choose_val_ranges(every, 0.1)
    whole = [document.token_range for document in every]
    assert sum(piece not in whole for piece in pieces) <= 1  # the one that makes up the share
    told = describe_ranges(pieces, every)
    assert len(told) == len(pieces) and told[0].endswith(".txt")
    assert describe_ranges([range(97, 194), range(200, 202)], every) == [
        "1.txt", "2.txt, tokens 7 to 8 of 97",
    ]  # fmt: skip


def test_as_many_documents_as_lines_are_described_in_one_pass():
    """Each line of a .jsonl is one; anew from the first for each range, this would not end."""
    every = documents(*[2] * 50_000)
    told = describe_ranges([document.token_range for document in every], every)
    assert told == [document.name for document in every]


def test_preparing_a_file_holds_far_less_than_the_file(tmp_path):
    with open(tmp_path / "a.txt", "w", encoding="utf-8", newline="\n") as file:
        for _ in range(10):
            file.write(load_moby_dick())
    prepare_corpus("moby-dick", output_dir=tmp_path / "run")  # what is loaded once is loaded now
    tracemalloc.start()
    try:
        corpus = prepare_corpus(tmp_path / "a.txt", output_dir=tmp_path / "run")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A list of the tokens alone would take eight bytes for each.
    assert len(corpus.train) > 1_000_000 and most < 3_000_000


@pytest.mark.parametrize("replaced", [0, 1, 2])
def test_what_a_killed_process_left_is_no_corpus(replaced, file, tmp_path, monkeypatch):
    """Killed while the new files take the place of the old: none belongs to another."""
    run, done = tmp_path / "run", []
    prepare_corpus(file, output_dir=run)

    def killed(old, new):
        if new.parent == run:
            if len(done) == replaced:
                raise KeyboardInterrupt
            done.append(new.name)
        replace(old, new)

    replace = os.replace
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", killed)
        prepare_corpus("moby-dick", output_dir=run)
    with pytest.raises(ValueError, match=whole("…run holds no complete corpus: prepare it anew.")):
        load_corpus(run)
    left = run / ".0123456789abcdef.writing"  # of a process that was killed
    left.mkdir()
    (left / "standard-input.txt").write_text("old", encoding="utf-8")
    prepare_corpus(file, output_dir=run)
    assert len(load_corpus(run).train) == 4500 and not left.exists()


@pytest.mark.parametrize("own", [None, train_tokenizer([TEXT])])
def test_a_bad_source_leaves_nothing_and_an_old_corpus_stands(own, file, tmp_path):
    """Whether it is bad in the first pass or in the second."""
    (tmp_path / "bad.txt").write_bytes(TEXT.encode() * 40 + b"\xff")
    new, old, empty = (tmp_path / name for name in ("new", "old", "empty"))
    prepare_corpus(file, output_dir=old)
    empty.mkdir()
    for bad in (tmp_path / "bad.txt", tmp_path / "gone.txt"):
        for folder in (new, old, empty):
            with pytest.raises(ValueError, match=r"bad.txt is not UTF-8|no file or folder"):
                prepare_corpus(bad, output_dir=folder, tokenizer=own)
    assert not new.exists() and list(empty.iterdir()) == []
    with pytest.raises(OSError, match=whole("[Errno 17] File exists: '…whale.txt'")):
        prepare_corpus(file, output_dir=file)
    assert all_of(load_corpus(old)) == train_tokenizer([TEXT]).encode(TEXT)
    assert not list(old.glob(".*"))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        *(({"val_split": x}, "a share from 0 to less than 1, not") for x in (-0.1, 1, math.nan)),
        ({"token_type": "syllables"}, "token_type must be"),
        ({"vocab_size": 100}, "every character of the text is kept"),
    ],
)
def test_what_cannot_be_is_said_before_text_is_read(how, sentence):
    with pytest.raises(ValueError, match=sentence):
        prepare_corpus("-", **how)


def test_an_unknown_character_is_named_with_its_file_and_line(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", 10)
    (tmp_path / "new.txt").write_text("abc\n" * 20 + "ab\nab$\n", encoding="utf-8")
    with pytest.raises(
        ValueError,
        match=whole(
            "…new.txt: Line 22, column 3 has '$' (U+0024), a character that the tokenizer"
            " was not trained on: leave it out, or use a BPE tokenizer, which takes any."
        ),
    ):
        prepare_corpus(tmp_path / "new.txt", tokenizer=train_tokenizer(["abc\n"]))


def test_empty_standard_input_is_an_error(monkeypatch, tmp_path):
    for folder in (None, tmp_path / "run"):
        standard_input(monkeypatch, "")
        with pytest.raises(
            ValueError, match=whole("Standard input is empty: pipe text into the command.")
        ):
            prepare_corpus("-", output_dir=folder)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_named_by_the_folder_and_not_by_a_random_name(tmp_path):
    folder = tmp_path / "tokens"
    with pytest.raises(FileNotFoundError) as caught, temporary_working_dir(folder) as work:
        (work / "none" / "all.npy").write_bytes(b"")
    assert caught.value.filename == str(folder) and not folder.exists()


def test_the_same_chunks_are_held_out_in_every_version():
    """A run that is resumed or evaluated later is compared on the same tokens."""
    ends = [0, 3000, 3500, 9000, 12000]
    documents = [
        preparing_module.Document(f"{n}.txt", range(*both))
        for n, both in enumerate(itertools.pairwise(ends))
    ]
    held_out = preparing_module.choose_val_ranges(documents, 0.2)
    assert sum(map(len, held_out)) == 2400
    assert [(r.start, r.stop) for r in held_out] == [(1024, 2048), (8648, 9000), (9000, 10024)]
