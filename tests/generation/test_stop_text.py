"""Strings that end a text: found across any borders of pieces, and never shown."""

import itertools
import random

import pytest
from writers import PROMPTS, make

from slp_transformer import generate
from slp_transformer.generation import StopText


def cut(text: str, strings) -> str:
    """Where the first of the strings begins, of all that have ended by then."""
    for end in range(len(text) + 1):
        if found := [text[:end].find(string) for string in strings if text[:end].endswith(string)]:
            return text[: min(found)]
    return text


def test_any_division_into_pieces_gives_the_same_text():
    draw = random.Random(0)
    for _ in range(300):
        text = "".join(draw.choices("ab\n", k=12))
        strings = ["".join(draw.choices("ab\n", k=draw.randint(1, 4))) for _ in range(3)]
        stop, shown = StopText(strings), ""
        borders = sorted(draw.sample(range(13), draw.randint(0, 12)))
        for a, b in itertools.pairwise([0, *borders, 12]):
            shown += stop.feed(text[a:b])
            assert cut(text, strings).startswith(shown)  # nothing is shown that must go
        shown += stop.finish()
        assert shown == stop.text == cut(text, strings)
        assert (stop.found is None) == (stop.text == text and not any(s in text for s in strings))


@pytest.mark.parametrize("pieces", [["abcd"], ["abc", "d"], ["ab", "cd"], [*"abcd"]])
def test_of_strings_in_each_other_the_one_that_is_whole_first_ends_the_text(pieces):
    stop = StopText(["abcd", "bc", "c"])
    assert "".join(map(stop.feed, pieces)) + stop.finish() == "a" and stop.found == "bc"


@pytest.mark.parametrize("borders", [*itertools.combinations(range(1, 9), 3)])
def test_a_string_over_the_borders_of_tokens(borders):
    text, (a, b, c) = "so: <end>!", borders
    stop = StopText(["<end>"])
    shown = [stop.feed(piece) for piece in (text[:a], text[a:b], text[b:c], text[c:])]
    assert "".join(shown) + stop.finish() == stop.text == "so: " and stop.found == "<end>"


def test_what_only_began_like_a_string_comes_back():
    stop = StopText(["\n\n", "User:"])
    assert [stop.feed(piece) for piece in ("one\n", "Us", "ual\n")] == ["one", "\n", "Usual"]
    assert stop.finish() == "\n" and stop.text == "one\nUsual\n" and stop.found is None


def test_without_strings_everything_is_shown_at_once():
    stop = StopText(())
    assert stop.feed("abc") == "abc" and stop.finish() == "" and stop.found is None


@pytest.mark.parametrize("strings", ["ab", [""], ["a", ""]])
def test_what_is_no_list_of_strings_is_refused(strings, unchecked):
    with pytest.raises(ValueError, match="What ends a text is a list of strings"):
        StopText(strings)


@pytest.mark.parametrize("draft", [False, True])
def test_a_text_ends_where_on_token_says_so(draft):
    """Others in the batch go on; a draft model's accepted words end there, too."""
    model = make()
    prompts = PROMPTS[:1] if draft else PROMPTS
    more = {"draft_model": make(seed=0)} if draft else {}
    whole = generate(model, prompts, 8, temperature=0, **more)
    heard = [[] for _ in prompts]

    def on_token(row, word):
        heard[row].append(word)
        return row == 0 and len(heard[0]) == 3

    results = generate(model, prompts, 8, temperature=0, on_token=on_token, **more)
    assert results[0].new_ids == whole[0].new_ids[:3] == heard[0]
    assert results[0].finish_reason == "stop"
    assert results[1:] == whole[1:]
