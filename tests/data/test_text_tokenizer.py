"""Tokenizers: what is encoded comes back, whole or one token at a time, here or from a file."""

import re

import pytest
import torch
from whole import whole

from slp_transformer.data import load_moby_dick, train_tokenizer
from slp_transformer.data.text_tokenizer import (
    END_TOKEN,
    UNKNOWN_TOKEN,
    TextTokenizer,
    byte_by_character,
    cut_long_words,
)

KINDS = ("characters", "words", "bpe")
TEXTS = [
    "One fish, two fish.\n\nRed fish; blue fish!\n",
    "  two  spaces, \ta tab, \r\nWindows' line ends\r\n and an o'clock can't\n \n",
    "Ça coûte 3,50 € — naïve 日本語 🎸🎸 👩‍👩‍👧 e\u0301 \u00a0\u2028x\x00\ufeff",
    "<|end|> <unk> <|end|>",
    "a",
    "\n",
]


@pytest.fixture(params=KINDS)
def tokenizer(request):
    return train_tokenizer(iter(TEXTS), request.param)


@pytest.mark.parametrize("text", TEXTS)
def test_known_text_comes_back_to_the_last_character(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.decode(torch.tensor(ids)) == text
    assert all(type(i) is int and 0 <= i < tokenizer.vocab_size for i in ids)


@pytest.mark.parametrize("text", ["never seen: ЖŁ½ 🦑", "\x7f\x80ÿĀ\U0010ffff", "\r\r\n\t\t \t"])
def test_bpe_takes_any_text(text):
    tokenizer = train_tokenizer(["abc abd"], "bpe", 260)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_characters_are_numbered_as_they_are_sorted():
    tokenizer = train_tokenizer(["bcab", "da"])
    assert tokenizer.token_type == "characters" and tokenizer.vocabulary == ["a", "b", "c", "d"]
    assert tokenizer.encode("dab") == [3, 0, 1] and tokenizer.vocab_size == 4
    assert tokenizer.end_id is None


def test_words_take_the_space_before_them():
    tokenizer = train_tokenizer(["the cat, the  cat's hat\n"], "words")
    pieces = [tokenizer.decode([i]) for i in tokenizer.encode("the cat, the  cat's hat\n")]
    assert pieces == ["the", " cat", ",", " the", " ", " cat's", " hat", "\n"]


def test_the_most_frequent_words_are_kept_and_the_others_unknown():
    tokenizer = train_tokenizer(["b b b b a a c"], "words", 3)
    assert tokenizer.vocabulary == [UNKNOWN_TOKEN, " b", " a"]
    assert tokenizer.vocab_size == 3
    assert tokenizer.decode(tokenizer.encode("z b a q")) == "<unk> b a<unk>"


def test_bpe_learns_no_longer_from_a_text_without_spaces_and_the_same_from_words():
    """Learning pairs of a word takes the square of its length."""
    long = "a " + "b" * 5000 + "\n" * 3000 + "c"
    pieces = list(cut_long_words([long, "d"]))
    assert "".join(pieces) == long + "d" and len(pieces) > 7
    assert all(len(run) < 2048 for piece in pieces for run in re.findall(r"\S+|\s+", piece))
    assert len(train_tokenizer(long, "bpe").ids) > 256, "it learns from long words, too"
    assert list(cut_long_words([load_moby_dick()])) == [load_moby_dick()]


def test_bpe_merges_the_most_frequent_pair_first():
    tokenizer = train_tokenizer(["ab ab ab abc bc"], "bpe", 258)
    assert tokenizer.vocabulary[256:] == ["ab", "Ġab"]
    assert train_tokenizer(["ab"], "bpe", 500).vocab_size == 257  # the text has no more
    assert [tokenizer.decode([i]) for i in tokenizer.encode("ab abc")] == ["ab", " ab", "c"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_can_write_the_end_token(kind):
    tokenizer = train_tokenizer(["<|end|>" * 50, "<|end|> end"], kind, end_token=True)
    assert tokenizer.end_id == 0 and tokenizer.vocabulary[0] == END_TOKEN
    for text in ("<|end|>", "<|end|> end<|end|>"):
        assert 0 not in tokenizer.encode(text) and tokenizer.decode(tokenizer.encode(text)) == text
    ids = tokenizer.encode("end")
    assert tokenizer.decode([*ids, 0, *ids]) == "endend"


@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_gives_the_same_text_in_whole_characters(tokenizer, text):
    stream = tokenizer.stream_decoder()
    parts = [stream.decode_next(i) for i in tokenizer.encode(text)]
    assert "".join(parts) + stream.flush() == text
    assert all("\ufffd" not in part for part in parts)


def test_half_a_character_is_held_back():
    tokenizer = train_tokenizer(["abc"], "bpe", 257)
    stream, ids = tokenizer.stream_decoder(), tokenizer.encode("é🎸")
    assert len(ids) == 6
    assert [stream.decode_next(i) for i in ids] == ["", "é", "", "", "", "🎸"]
    assert stream.flush() == ""
    assert stream.decode_next(ids[0]) == "" and stream.flush() == "\ufffd"  # it never ends


@pytest.mark.parametrize("length", [1, 2, 7, 1000])
def test_the_size_of_a_text_is_the_same_in_pieces(tokenizer, length):
    ids = tokenizer.encode("".join(TEXTS))[:-1]
    said = tokenizer.decode(ids)
    pieces = (ids[i : i + length] for i in range(0, len(ids), length))
    assert tokenizer.measure_text(pieces) == (len(said), len(said.encode()), 0)


def test_unknown_words_and_half_characters_are_counted():
    words, bpe = train_tokenizer(["b b"], "words", 2), train_tokenizer(["abc"], "bpe", 257)
    assert words.measure_text([words.encode(" b z q"), words.encode(" b x")]).unknown == 3
    assert bpe.measure_text([bpe.encode("aé")[:-1]]) == (2, 2, 0)  # as "a\ufffd" is decoded


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("characters", ["a", "b", "a"]), "has a token twice: every token needs one id."),
        (("characters", []), "is empty: a tokenizer needs a token."),
        (("characters", ["a", "bc" * 20]), f"has {'bc' * 15!r}, which is no single character."),
        (("bpe", ["a", "a b" * 20]), f"has {'a b' * 10!r}, which is no row of bytes."),
        (("words", ["a"]), "lacks <unk>, which stands for every other word."),
    ],
)
def test_a_vocabulary_that_no_training_gave_is_refused(given, message):
    with pytest.raises(ValueError, match=whole(f"The vocabulary {message}")):
        TextTokenizer(*given)
    with pytest.raises(ValueError, match=whole("The merge of 'a' and 'b' has no token.")):
        TextTokenizer("bpe", ["a", "b"], [("a", "b")])


def test_each_byte_has_the_character_that_gpt2_gives_it():
    alphabet = pytest.importorskip("tokenizers").pre_tokenizers.ByteLevel.alphabet()
    table = byte_by_character()
    assert {*table} == {*alphabet} and sorted(table.values()) == [*range(256)]
    assert [table[sign] for sign in "!~¡¬®ÿĀĠġŃ"] == [33, 126, 161, 172, 174, 255, 0, 32, 127, 173]


def test_an_unknown_character_is_named_with_its_place():
    tokenizer = train_tokenizer(["abc \n"])
    with pytest.raises(
        ValueError,
        match=whole(
            "Line 2, column 3 has 'é' (U+00E9), a character that the tokenizer was not "
            "trained on: leave it out, or use a BPE tokenizer, which takes any."
        ),
    ):
        tokenizer.encode("abc\nabécé")


@pytest.mark.parametrize("i", [-1, 257, 1000])
def test_an_unknown_id_is_named(i):
    tokenizer = train_tokenizer(["ab"], "bpe")
    for decode in (tokenizer.decode, lambda ids: tokenizer.stream_decoder().decode_next(ids[0])):
        with pytest.raises(ValueError, match=f"Token {i} is unknown: ids go from 0 to 256"):
            decode([i])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", [[], [""], ""])
def test_no_text_no_tokenizer(kind, nothing):
    with pytest.raises(
        ValueError, match=whole("There is no text to learn a vocabulary from: give some.")
    ):
        train_tokenizer(nothing, kind)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (["char"], 'token_type must be "characters" or "words" or "bpe", not \'char\'.'),
        (
            ["characters", 5],
            "vocab_size is for words and BPE: every character of the text is kept.",
        ),
        (["bpe", 255], "vocab_size must be at least 256 (a token for each byte), not 255."),
        (["words", 1], "vocab_size must be at least 2 (a word, <unk>), not 1."),
    ],
)
def test_a_wrong_kind_or_size_is_explained(how, sentence):
    with pytest.raises(ValueError, match=whole(sentence)):
        train_tokenizer(["a"], *how)


def test_moby_dick_begins_and_ends_as_it_should():
    text = load_moby_dick()
    assert text.startswith("CHAPTER 1. Loomings.\n\nCall me Ishmael.")
    assert text.endswith("herds of walruses and whales.\n")
    assert text.isascii() and "\r" not in text
    assert 100_000 < len(text) < 150_000 and len(set(text)) == 74
    tokenizer = train_tokenizer([text])
    assert tokenizer.decode(tokenizer.encode(text)) == text
