"""Pairs of sentences: read from files, made tokens of, and put into batches."""

import gzip
import json
import time
from pathlib import Path

import pytest
import torch
from whole import whole

pytest.importorskip("tokenizers", reason="words and BPE need the text extra")

from slp_transformer.data import (
    PairTokenizer,
    prepare_pair_corpus,
    read_pairs,
    train_pair_tokenizer,
)
from slp_transformer.data.pair_corpus import EncodedPairs, load_pair_corpus, read_lines
from slp_transformer.data.text_tokenizer import train_tokenizer

ENGLISH = ["A man, a dog.", "Two dogs run", "the Dog\x0bruns", "A cat sleeps."]
THAI = ["ชายกับสุนัข", "สุนัขสองตัววิ่ง", "สุนัขวิ่ง", "แมวนอน"]
PAIRS = list(zip(ENGLISH, THAI, strict=True))


def written(path: Path, lines: list[str], end: str = "\n") -> str:
    text = "".join(line + end for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_aligned_files_plain_or_gzip_give_their_lines_in_order(tmp_path, end):
    """A vertical tab, at which str.splitlines would cut, is a character like any other."""
    source = written(tmp_path / "train.en.gz", ENGLISH, end)
    target = written(tmp_path / "train.th", THAI, end)
    assert read_pairs(source, target) == (PAIRS, ("en", "th"))
    assert read_pairs(source, target, ("English", None))[1] == ("English", "th")


TABLE = '\ufeffid,English,Thai\r\n1,"A man, a dog.",ชายกับสุนัข\r\n2,"say ""so""",แมวนอน\r\n\r\n'


def test_a_table_has_quoted_commas_a_byte_order_mark_and_columns_by_name(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(TABLE.encode())
    wanted = [("A man, a dog.", "ชายกับสุนัข"), ('say "so"', "แมวนอน")]
    assert read_pairs(str(path), None, ("english", "THAI")) == (wanted, ("English", "Thai"))
    swapped = read_pairs(str(path), None, ("thai", "english"))
    assert swapped == ([(b, a) for a, b in wanted], ("Thai", "English"))


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.tsv.gz", "\t")]
)
def test_the_separator_of_a_table_is_found(tmp_path, name, separator):
    path = tmp_path / name
    text = f"en{separator}es\nYes, sir.{separator}Sí, señor.\n".encode()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_pairs(str(path)) == ([("Yes, sir.", "Sí, señor.")], ("en", "es"))
    with pytest.raises(ValueError, match="(semicolon|tab)-separated. has the columns en, es: name"):
        read_pairs(str(path), None, ("en", "de"))


def test_little_that_is_packed_does_not_become_much(tmp_path, monkeypatch):
    monkeypatch.setattr("slp_transformer.data.text_files.MAX_GZIP_BYTES", 9)
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"a\n" * 50_000))
    with pytest.raises(
        ValueError,
        match=whole(
            "…a.en.gz unpacks to more than 0 MiB, 50 times its size: unpack it, if you "
            "know what is in it."
        ),
    ):
        read_pairs(str(tmp_path / "a.en.gz"), str(tmp_path / "a.en.gz.de"))
    monkeypatch.undo()
    assert len(read_lines(tmp_path / "a.en.gz")) == 50_000


def test_a_short_row_of_a_wide_table_is_not_made_as_wide(tmp_path):
    """That would be 3.6 billion cells here, for half a minute."""
    path, size = tmp_path / "a.csv", 60_000
    path.write_text("a,b" + ",c" * size + "\n" + "1,2\n" * size, encoding="utf-8")
    begun = time.process_time()
    assert read_pairs(str(path), None, ("a", "b"))[0] == [("1", "2")] * size
    assert time.process_time() - begun < 8  # against that half minute, not a measure
    with pytest.raises(
        ValueError,
        match=whole(
            "…a.csv (comma-separated) has the columns a, b, c, c, c, c, c, c, c, c, c, c "
            "and 59,990 more: name two of them by --source-language and "
            "--target-language.…"
        ),
    ):
        read_pairs(str(path))


def test_a_quotation_mark_in_tab_separated_text_is_one(tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = [('"I saw a bird.', "«Vi."), ("It flew.", "Voló."), ('I was glad."', "Feliz».")]
    rows += [('"Go," he said.', '"Ve"'), ("y", '5" de largo')]
    path.write_text("en\tes\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    assert read_pairs(str(path))[0] == rows
    path.write_text('en\tes\n"Go ""now""."\t"Ve."\nplain\tllano\n', encoding="utf-8")
    assert read_pairs(str(path))[0] == [('Go "now".', "Ve."), ("plain", "llano")]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "a.tsv",
            "en\tes\na\tb\tc\n",
            (
                "…a.tsv: line 2 has 3 cells, but there are 2 columns: no cell of "
                "tab-separated text has a tab in it."
            ),
        ),
        (
            "a.csv",
            "en,es\na,b,c\n",
            (
                "…a.csv: line 2 has 3 cells, but there are 2 columns: a cell with the "
                'separator or a quotation mark in it is written as "She said ""no"".".'
            ),
        ),
        (
            "a.csv",
            'en,es\na,"b\nc"\n',
            (
                "…a.csv: line 3 ends a cell that has a line break in it: each side of a pair "
                "stands on one line."
            ),
        ),
        (
            "a.csv",
            'en,es\na,"b" c\n',
            (
                "…a.csv: line 2 is no row of a table: ',' expected after '\"'; a cell with the"
                ' separator or a quotation mark in it is written as "She said ""no"".".'
            ),
        ),
    ],
)
def test_a_cell_that_is_no_sentence_is_refused_with_its_line(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=whole(sentence)):
        read_pairs(str(tmp_path / name))


def wrong_tables() -> dict[str, tuple[bytes, str]]:
    utf16 = "a,b\nx,y\n".encode("utf-16")
    return {
        "column": (b'a,b,c\n1,"2', "has the columns a, b, c: name two of them by --source-lang"),
        "cell": (b"a,thai\nx,y\nx\n", "line 3 is empty"),
        "empty": (b"a,thai\nx,y\nx,  \n", "line 3 is empty"),
        "blank": (b"a,thai\nx,y\n\nx,y\n", "line 3 is empty"),
        "quote": (b'a,thai\nx,"y\n', "line 2 is no row of a table"),
        "nothing": (b"", "has the columns (none): name two of them"),
        "header": (b"a,thai\n", "has no pairs"),
        "latin": ("a,thai\nx,é\n".encode("latin-1"), "line 2 has the byte 0xE9"),
        "utf16": (utf16, "line 1 has the byte 0xFF"),
    }


@pytest.mark.parametrize("content, told", wrong_tables().values(), ids=wrong_tables())
def test_a_wrong_table_is_refused_by_file_and_line(tmp_path, content, told):
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        read_pairs(str(path), None, ("a", "thai"))
    assert told in str(error.value) and "pairs.csv" in str(error.value)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (
            THAI[:3],
            ("…b.th has 3 lines and …a.en 4: line 4 of …a.en has nothing that it translates."),
        ),
        ([*THAI[:2], " ", THAI[3]], "…b.th: line 3 is empty, so that there is no pair."),
        (
            None,
            (
                "…a.en has sentences of one language: name the file of their translations "
                "too, by --target, or give a table (.csv or .tsv).…"
            ),
        ),
    ],
)
def test_two_files_that_do_not_align_are_refused_by_file_and_line(target, sentence, tmp_path):
    source = written(tmp_path / "a.en", ENGLISH)
    with pytest.raises(ValueError, match=whole(sentence)):
        read_pairs(source, target and written(tmp_path / "b.th", target))


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
@pytest.mark.parametrize("shared", [True, False])
def test_sentences_come_back_from_their_tokens(kind, shared):
    tokenizer = train_pair_tokenizer(PAIRS, ("en", "th"), kind, shared_vocabulary=shared)
    assert (tokenizer.source is tokenizer.target) == shared
    for source, target in PAIRS:
        assert tokenizer.decode_target(tokenizer.encode_target(target)) == target
        ids = tokenizer.encode_source(source)
        assert ids[-1] == tokenizer.end_id and 3 not in ids[:-1] and 0 not in ids
    again = PairTokenizer.from_json(json.loads(json.dumps(tokenizer.to_json())))
    assert again == tokenizer
    assert again.encode_source("A dog") == tokenizer.encode_source("A dog")
    assert (again.source is again.target) == shared


def test_the_first_ids_are_the_special_ones():
    tokenizer = train_pair_tokenizer(PAIRS, ("en", "th"), "words")
    assert tokenizer.target.vocabulary[:4] == ["[PAD]", "[UNK]", "[SOS]", "[EOS]"]
    assert (tokenizer.pad_id, tokenizer.begin_id, tokenizer.end_id) == (0, 2, 3)
    assert tokenizer.decode_target([2, 3, 0, 0]) == ""
    with pytest.raises(
        ValueError,
        match=whole(
            "The vocabulary must begin with [PAD], [UNK], [SOS], [EOS]: train it with "
            "special_tokens=SENTENCE_TOKENS."
        ),
    ):
        plain = train_tokenizer(ENGLISH, "words")
        PairTokenizer(("a", "b"), plain, plain)


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_what_was_never_seen_is_unknown_and_never_refused(kind):
    tokenizer = train_pair_tokenizer(PAIRS, ("en", "th"), kind)
    ids = tokenizer.encode_source("\x00\x1b[31m 日本 \ud7ff")
    assert tokenizer.source.unknown_id == 1 and 1 in ids


def test_marks_stay_with_their_letters():
    """Telugu and Thai write vowels and tones as marks, at which GPT-2's pattern cuts."""
    words = ["ที่นี่", "కాళ్ళు"]
    tokenizer = train_tokenizer(words * 9, "bpe", 400)
    assert [len(tokenizer.encode(word)) for word in words] == [1, 1]
    assert [tokenizer.decode(tokenizer.encode(word)) for word in words] == words


def numbered(count: int) -> list[tuple[str, str]]:
    return [(f"w{i} is here", f"v{i}") for i in range(count)]


def test_a_share_from_all_over_is_held_out_and_never_learned():
    pairs = numbered(20) + numbered(20)
    corpus = prepare_pair_corpus(pairs, ("a", "b"), 31, val_split=0.1, token_type="words")
    assert corpus.val_texts == [pairs[0], pairs[10], pairs[20], pairs[30]]
    assert len(corpus.train) == 40 - 4 and len(corpus.val) == 4
    assert not corpus.warnings
    doubled = prepare_pair_corpus([*pairs, *pairs[:12]], ("a", "b"), 31, val_split=pairs[:10])
    assert len(doubled.train) == 20 + 2
    assert doubled.warnings == ["Of 52 pairs, 30 were dropped, since the same are held out."]
    source, target = corpus.val[1]
    assert target.tolist() == corpus.tokenizer.encode_target("v10") == [1]
    assert source.tolist() == corpus.tokenizer.encode_source("w10 is here")
    with pytest.raises(IndexError):
        corpus.train[36]


def test_pairs_that_are_too_long_are_counted_and_dropped_or_cut():
    """Four tokens: a source of three characters and [EOS]; a target of three after [SOS]."""
    pairs = [("abc", "xyz"), ("abcd", "x"), ("a", "wxyz"), ("ab", "x")]
    held_out = [("abc", "xyz"), ("abcde", "wxyzv")]
    how = {"val_split": held_out, "token_type": "characters", "shared_vocabulary": False}
    dropped = prepare_pair_corpus(pairs, ("a", "b"), 4, **how)
    assert len(dropped.train) == 1 and dropped.val_texts == [("abc", "xyz")]
    assert dropped.warnings == [
        "Of 4 pairs, 1 were dropped, since the same are held out.",
        "Of 3 pairs learned from, 2 of more than 4 tokens were dropped.",
        "Of 2 pairs held out, 1 of more than 4 tokens were dropped.",
    ]
    cut = prepare_pair_corpus(pairs, ("a", "b"), 4, overlong="truncate", **how)
    assert [len(side) for side in cut.train[0]] == [4, 1]
    assert cut.train[0][0][-1] == cut.tokenizer.end_id
    assert [len(side) for side in cut.train[1]] == [2, 3]
    assert "were cut" in cut.warnings[1] and len(cut.val_texts) == 2
    with pytest.raises(
        ValueError,
        match=whole(
            "None of the 3 pairs learned from fits a window of 1 tokens: choose a longer "
            "context_length, or --overlong truncate."
        ),
    ):
        prepare_pair_corpus(pairs, ("a", "b"), 1, **how)


def test_kept_pairs_are_opened_again_without_their_source(tmp_path):
    corpus = prepare_pair_corpus(
        PAIRS * 3 + numbered(9), ("en", "th"), 40, output_dir=tmp_path / "tokens"
    )
    again = load_pair_corpus(tmp_path / "tokens")
    memory = prepare_pair_corpus(PAIRS * 3 + numbered(9), ("en", "th"), 40)
    for kept in (corpus, again):
        assert kept.tokenizer == memory.tokenizer and kept.val_texts == memory.val_texts
        parts = (kept.train, memory.train), (kept.val, memory.val)
        for mine, theirs in parts:
            assert len(mine) == len(theirs)
            for i in range(len(mine)):
                assert all(torch.equal(*sides) for sides in zip(mine[i], theirs[i], strict=True))
    (tmp_path / "tokens" / "held-out.json").write_text("[[1, 2]]", encoding="utf-8")
    with pytest.raises(
        ValueError, match=whole("…held-out.json: 0.0: Input should be a valid string (found 1).")
    ):
        load_pair_corpus(tmp_path / "tokens")
    (tmp_path / "tokens" / "held-out.json").write_text('[["a", "b"]]', encoding="utf-8")
    with pytest.raises(
        ValueError, match=whole("…held-out.json is damaged: it should have 2 pairs.")
    ):
        load_pair_corpus(tmp_path / "tokens")


def test_a_stream_that_ends_within_a_pair_is_refused():
    assert len(EncodedPairs(torch.tensor([5, 3, 6, 3]), 3)) == 1
    for ids in ([5, 3, 6], [5, 3], [5, 3, 6, 3, 7]):
        with pytest.raises(
            ValueError, match=whole("These tokens are no pairs: they end in the middle of one.")
        ):
            EncodedPairs(torch.tensor(ids), 3)
