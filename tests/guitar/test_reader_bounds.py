"""The reader of ASCII tablature reads long and hostile texts."""

import random

import pytest

from slp_guitar.ascii.frets import find_cheapest_reading
from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.ascii.repair import realign_bar_rows
from slp_guitar.ascii.systems import split_group_into_systems
from slp_guitar.tab_header import parse_capo


def all_readings(digits):
    """Every way to read digits as frets from 0 to 24 without leading zeros."""
    ways = [()] if not digits else []
    for width in (1, 2)[: len(digits)]:
        if width == 1 or "10" <= digits[:2] <= "24":
            ways += [(int(digits[:width]), *rest) for rest in all_readings(digits[width:])]
    return ways


@pytest.mark.parametrize("digit", ["1", "5"])
def test_a_row_of_one_digit_is_read(digit):
    row = "|--" + digit * 1500 + "--|"
    tabs, problems = parse_ascii_tabs("\n".join([row, *["|" + "-" * 1504 + "|"] * 5]))
    assert problems == []
    read = "".join(str(note.fret) for event in tabs[0].iter_events() for note in event.notes)
    assert read == digit * 1500


def test_the_cheapest_reading_is_the_first_of_the_cheapest_of_all_readings():
    rng = random.Random(0)
    for _ in range(300):
        digits = "".join(rng.choice("0112234579") for _ in range(rng.randint(1, 9)))
        costs = [rng.randint(0, 4) for _ in range(25)]
        leaps = [[rng.randint(0, 3) for _ in range(25)] for _ in range(25)]

        def whole(frets, costs=costs, leaps=leaps):
            steps = sum(leaps[a][b] for a, b in zip(frets, frets[1:], strict=False))
            return sum(costs[fret] for fret in frets) + steps

        found = find_cheapest_reading(digits, costs.__getitem__, lambda a, b, t=leaps: t[a][b])
        assert found == min(all_readings(digits), key=whole)


@pytest.mark.parametrize("unit", ["----|A|", "  ", "x 2", "|  a", "a"])
def test_a_row_of_ninety_thousand_letters_is_read_in_one_pass(unit):
    """Patterns that try each place anew would take hours over one."""
    for end in ("", "|", "--|  hammer on"):
        rows = ["e|" + unit * (90_000 // len(unit)) + end, "|-1-", "E|" + "-" * 90_000]
        tabs, problems = parse_ascii_tabs("\n".join(rows * 6))
        assert problems and tabs == []


def test_what_is_far_too_long_has_not_slipped():
    wide, narrow = "12-11-10" * 900, "-" * 50
    assert realign_bar_rows((wide, *[narrow] * 5)) == (wide, *[narrow] * 5)
    tabs, problems = parse_ascii_tabs(
        "\n".join("|" + ("-" * i + "12-11-10" * 4) * 99 + "|" for i in range(6))
    )
    assert problems


def test_slipped_long_bars_are_lined_up():
    row = "-1-3" * 300
    assert realign_bar_rows((row, row + "--", row, row, row, row)) == (row,) * 6


def test_columns_are_not_taken_out_where_two_frets_would_become_one():
    rows = ("-12--", "-1-2--", *["-----"] * 4)
    assert realign_bar_rows(rows)[1] == "-1-2-"


def test_many_rows_without_blanks_are_systems():
    found = split_group_into_systems(["|-1-2-3-|"] * 600, list(range(600)))
    assert [six[0] for six in found] == list(range(0, 600, 6))


def hostile(size):
    """Texts of about `size` bytes, each of a shape that a reader may take too long over."""
    row = size // 6
    slipped = ["|" + "-1-3" * (row // 4) + "|", *["|" + "-1-3" * (row // 4) + "--|"] * 5]
    return {
        "frets of two digits, no bar line": "\n".join(["-12" * (row // 3)] * 6),
        "frets and pairs, no bar line": "\n".join(["-12-34" * (row // 6)] * 6),
        "one run of digits": "\n".join(["|" + "-" * (row // 2) + "1" * (row // 2)] * 6),
        "runs of forty digits": "\n".join(["|" + ("-" + "1" * 40) * (row // 41)] * 6),
        "runs of five digits": "\n".join(["|" + "-55555" * (row // 6)] * 6),
        "long bars that slipped": "\n".join(slipped),
        "rows without blanks": "|-1-2-3-\n" * (size // 9),
        "seven rows": ("|-1-2-3-\n" * 7 + "\n") * (size // 64),
        "blanks": "\n".join([" " * size + "---", "a" + " " * size + "b"]),
        "bar lines": "\n".join(["|" * row + "---"] * 6),
        "tuning after tuning": (
            "tuning: DADGBE\n" + "|-1-2-\n" * 6 + "tuning: EADGBE\n" + "|-1-2-\n" * 6
        )
        * (size // 114),
    }


@pytest.mark.parametrize("shape", hostile(6))
def test_small_hostile_texts_are_read(shape):
    tabs, problems = parse_ascii_tabs(hostile(1000)[shape])
    assert tabs or problems


def test_a_sentence_of_blanks_states_no_capo():
    assert parse_capo("a" + " " * 20_000 + "b") is None
    assert parse_capo("key of G   capo 2") == 2
