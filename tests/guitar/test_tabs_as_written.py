"""Tabs as people write them: what can be read is read right, what cannot is reported in a sentence.

Every tab text in here was written for these tests.
"""

import pytest

from slp_transformer.guitar.ascii_reader import parse_ascii_tabs
from slp_transformer.guitar.tab import Technique

EMPTY = ["D|-----------|-----|", "A|-----------|-----|", "E|-3---------|-----|"]


def on_string(text, string):
    """The frets on one string of the tabs in a text, and the problems."""
    tabs, problems = parse_ascii_tabs(text)
    notes = [note for tab in tabs for event in tab.iter_events() for note in event.notes]
    return [note.fret for note in notes if note.string == string], [str(p) for p in problems]


def page(third, first="e|-----3-----|-3---|"):
    return "\n".join([first, "B|---1-------|-----|", third, *EMPTY])


@pytest.mark.parametrize(
    ("row", "frets"),
    [
        ("G|-0---------10-|-----|", [0, 10]),
        ("G|-0---10---12--|--5--|", [0, 10, 12, 5]),
        ("G|-0-12--14-12-|--5--|", [0, 12, 14, 12, 5]),
        ("G|-0-12------12-|--10--|", [0, 12, 12, 10]),
    ],
)
def test_a_row_that_is_too_long_keeps_its_frets_whole(row, frets):
    assert on_string(page(row), 3) == (frets, [])


def test_a_fret_under_a_bar_line_is_not_cut_in_two():
    frets, problems = on_string(page("G|-0-12--14-12---5--|"), 3)
    assert frets == []
    assert problems == [
        ":3: a fret of this string is where the others have a bar line; the bars on both sides "
        "are left out"
    ]


def test_a_bar_without_room_is_left_out_and_reported():
    frets, problems = on_string(page("G|0123456789012|-7---|"), 3)
    assert frets == [7]
    assert problems == [":3: this string is too long for its bar; the bar is left out"]


def test_a_string_that_goes_on_where_the_others_end_is_read():
    rows = ["e-----3----", "B---1------", "G-0-------12", "D----------", "A----------"]
    rows.append("E-3--------")
    assert on_string("\n".join(rows), 3)[0] == [0, 12]
    frets, problems = on_string("\n".join([rows[0], rows[1], rows[2] + "-14", *rows[3:]]), 3)
    assert frets == [0, 12, 14]
    assert problems == [":3: this string is longer than the others; it is read as it is"]


def test_the_low_row_of_a_strange_seven_is_reported():
    low = "F|-3---------|--0--|"
    frets, problems = on_string(page("G|-0---------|-----|") + "\n" + low, 6)
    assert frets == [3]
    assert problems == [":7: a string line too many for six strings, with frets; it is left out"]


@pytest.mark.parametrize(
    ("labels", "pitches"),
    [
        ("GDAE", (43, 38, 33, 28)),
        ("AECG", (69, 64, 60, 67)),
        ("GDAEB", (43, 38, 33, 28, 23)),
        ("eBGDAEB", (64, 59, 55, 50, 45, 40, 35)),
        (["e", "B", "G", "D", "A", "E", "B", "F#"], (64, 59, 55, 50, 45, 40, 35, 30)),
    ],
)
def test_other_instruments_are_read_by_their_labels(labels, pitches):
    width = max(map(len, labels))
    rows = [f"{label:<{width}}|-{i}-----|" for i, label in enumerate(labels)]
    (tab,), problems = parse_ascii_tabs("Groove\n\n" + "\n".join(rows) + "\n\n" + "\n".join(rows))
    assert problems == [] and tab.tuning.open_pitches == pitches and len(tab.bars) == 2
    (first, _) = tab.iter_events()
    assert [tuple(note) for note in first.notes] == [
        (string, string - 1) for string in range(len(pitches), 0, -1)
    ]


def test_a_stated_tuning_of_other_than_six_strings_is_read():
    rows = "\n".join(f"{label}|-2--|" for label in ("G", "D", "A", "D"))
    (tab,), _ = parse_ascii_tabs(f"tuning: D1 A1 D2 G2\n\n{rows}")
    assert tab.tuning.open_pitches == (43, 38, 33, 26)


def test_two_guitars_one_above_the_other_are_two_tabs():
    def system(fret):
        return "\n".join(f"{label}|-{fret}--{fret}--|" for label in "eBGDAE")

    text = "\n\n".join(
        f"Gtr {name}\n{system(fret)}" for name, fret in (("1", 1), ("2", 5), ("1", 2), ("2", 6))
    )
    for written in (text, text.replace("Gtr 1", "Guitar I:").replace("Gtr 2", "Guitar II:")):
        tabs, problems = parse_ascii_tabs("Duet\n\n" + written)
        assert problems == []
        frets = [[event.notes[0].fret for event in tab.iter_events()] for tab in tabs]
        assert frets == [[1, 1, 2, 2], [5, 5, 6, 6]]


def one_above_the_other(gap, widths=((5, 9), (7, 6), (8, 5))):
    """Two guitars without a name, three systems each; guitar 1 at frets below 5."""
    systems = []
    for number, widths_here in enumerate(widths):
        for fret in (number + 1, number + 5):
            bars = "|".join(f"-{fret}".ljust(width, "-") for width in widths_here)
            systems.append("\n".join(f"{label}|{bars}|" for label in "eBGDAE"))
    pairs = [("\n" * (gap + 1)).join(systems[i : i + 2]) for i in (0, 2, 4)]
    return "Duet\n\n" + "\n\n\n".join(pairs)


@pytest.mark.parametrize("gap", [0, 1])
def test_two_guitars_without_a_name_are_told_by_their_bars(gap):
    tabs, problems = parse_ascii_tabs(one_above_the_other(gap))
    assert problems == []
    frets = [[event.notes[0].fret for event in tab.iter_events()] for tab in tabs]
    assert frets == [[1, 1, 2, 2, 3, 3], [5, 5, 6, 6, 7, 7]]


def test_systems_that_only_look_so_go_on_as_one_guitar():
    """Bars of one width throughout, equal gaps, or bars that end elsewhere tell nothing."""
    regular = one_above_the_other(1, widths=((7, 7), (7, 7), (7, 7)))
    evenly = one_above_the_other(1).replace("\n\n\n", "\n\n")
    for text in (regular, evenly):
        (tab,), _ = parse_ascii_tabs(text)
        assert [event.notes[0].fret for event in tab.iter_events()][::2] == [1, 5, 2, 6, 3, 7]
    one = one_above_the_other(1).replace("|-7------|-7---|", "|-7---|-7------|")
    assert len(parse_ascii_tabs(one)[0]) == 1


@pytest.mark.parametrize(
    ("bar", "frets", "size"),
    [
        ("-7b9------5-", [7, 5], 4),
        ("-7b(9)----5-", [7, 5], 4),
        ("-7b9r7----5-", [7, 5], 4),
        ("-7b1/2----5-", [7, 5], 2),
        ("-7b(1/4)--5-", [7, 5], 1),
        ("-15b16r15-5-", [15, 5], 2),
        ("-7b-------5-", [7, 5], 4),
    ],
)
def test_a_bend_is_one_note_that_says_how_far_it_goes(bar, frets, size):
    rest = "\n".join(["|------------|"] * 5)
    (tab,), problems = parse_ascii_tabs(f"|{bar}|\n{rest}")
    assert problems == []
    assert [event.notes[0].fret for event in tab.iter_events()] == frets
    said = [event.techniques for event in tab.iter_events()]
    assert said == [((Technique("bend", size),),), ()]


def test_how_notes_are_played_is_read_from_their_marks():
    row = "|-2h3p2-5/7\\5-<12>-3~~-10h12-|"
    empty = "|" + "-" * (len(row) - 2) + "|"
    (tab,), problems = parse_ascii_tabs("\n".join([row, *[empty] * 5]))
    assert problems == []
    played = [(event.notes[0].fret, event.techniques) for event in tab.iter_events()]
    kinds = [(fret, [t.kind for each in said for t in each]) for fret, said in played]
    assert kinds == [
        (2, ["hammer"]), (3, ["pull"]), (2, []), (5, ["slide"]), (7, ["slide"]), (5, []),
        (12, ["harmonic"]), (3, ["vibrato"]), (10, ["hammer"]), (12, []),
    ]  # fmt: skip


def test_an_x_at_the_bar_line_is_a_dead_note_where_others_are():
    rest = "\n".join(["|--------|"] * 5)
    assert on_string(f"|x--3-x--|\n{rest}", 1) == ([0, 3, 0], [])
    frets, problems = on_string(f"|x--3----|\n{rest}", 1)
    assert frets == [3]
    assert problems == [":1: an x at a bar line is left out: it may be a dead note or a sign"]


def test_a_time_signature_in_a_bar_line_is_no_chord():
    rows = ["||-0--|", "||----|", "|3----|", "|4-2--|", "||----|", "||-3--|"]
    tabs, problems = parse_ascii_tabs("\n".join(rows))
    assert problems == []
    assert [[tuple(n) for n in e.notes] for e in tabs[0].iter_events()] == [
        [(6, 3), (4, 2), (1, 0)]
    ]


@pytest.mark.parametrize("mark", ["|", " |", ")-", ":"])
@pytest.mark.parametrize("numbers", ["123456", "654321"])
def test_numbers_of_strings_are_no_frets(numbers, mark):
    rows = {number: "-------|" for number in numbers} | {"1": "-0---2-|", "6": "-3-----|"}
    text = "\n".join(f"{number}{mark}{rows[number]}" for number in numbers)
    (tab,), problems = parse_ascii_tabs(text)
    read = [[tuple(n) for n in e.notes] for e in tab.iter_events()]
    assert read == [[(6, 3), (1, 0)], [(1, 2)]] and problems == []


def test_a_harmonic_between_frets_is_one_note():
    frets, problems = on_string(page("G|-<3.2>-<12>|-----|", "e|-----------|-3---|"), 3)
    assert (frets, problems) == ([3, 12], [])
    (tab,), _ = parse_ascii_tabs(page("G|-<3.2>-<12>|-----|"))
    marks = [t.kind for e in tab.iter_events() for each in e.techniques for t in each]
    assert marks == ["harmonic", "harmonic"]
