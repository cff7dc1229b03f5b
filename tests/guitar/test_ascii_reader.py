"""The reader of ASCII tablature: what a file says is what the tab holds, and the rest is reported.

Every tab text in here was written for these tests; `web_tabs.txt` has more.
"""

import os

import pytest

from slp_guitar import bounds
from slp_guitar.ascii.reader import parse_ascii_tabs, read_tab_file
from slp_guitar.ascii.repair import realign_bar_rows
from slp_guitar.formats.safe_read import decode_text
from slp_guitar.fretboard import DROP_D, STANDARD, Note
from slp_guitar.tab import Technique
from slp_guitar.tab_dataset import read_tab_folder

PLAIN = """\
e|-0---3---|-------5-|
B|-1-------|---------|
G|-----0---|-2-------|
D|---------|---------|
A|-3-------|---------|
E|-----3---|-----0---|
"""


def system(*rows: str) -> str:
    """Six string lines: the rows that are given, highest first, and empty strings below them."""
    empty = "".join("|" if mark == "|" else "-" for mark in rows[0])
    return "\n".join([*rows, *[empty] * (6 - len(rows))]) + "\n"


def only(text: str):
    """The one tab that a text without problems holds."""
    (tab,), problems = parse_ascii_tabs(text)
    assert problems == []
    return tab


def frets(text: str) -> list[list[tuple[int, int]]]:
    """Events of the one tab in a text, as lists of (string, fret)."""
    return [[tuple(note) for note in event.notes] for event in only(text).iter_events()]


def test_strings_bars_and_steps():
    tab = only(PLAIN)
    first, second = tab.bars
    # A step is two columns: all frets stand an even number of columns from the first.
    assert [(e.step, e.notes) for e in first.events] == [
        (0, (Note(5, 3), Note(2, 1), Note(1, 0))),  # the lowest string first
        (2, (Note(6, 3), Note(3, 0), Note(1, 3))),
    ]
    assert [(e.step, e.notes) for e in second.events] == [
        (0, (Note(3, 2),)),
        (2, (Note(6, 0),)),
        (3, (Note(1, 5),)),
    ]
    assert [bar.steps for bar in tab.bars] == [4, 4]
    assert tab.tuning == STANDARD


def test_steps_are_columns_over_their_common_divisor():
    # One free column after the bar line; frets at columns 1, 5, 7 and 3: a step is two columns.
    tab = only(system("|-0---2-3-|---1-----|"))
    assert [[event.step for event in bar.events] for bar in tab.bars] == [[0, 2, 3], [1]]
    assert [bar.steps for bar in tab.bars] == [4, 4]
    # A note one column further on: no common divisor, so steps are columns.
    tab = only(system("|-0---2--3|---1-----|"))
    assert [[event.step for event in bar.events] for bar in tab.bars] == [[0, 4, 7], [2]]
    assert [bar.steps for bar in tab.bars] == [8, 8]


@pytest.mark.parametrize(
    "labels",
    [
        *([name + end for name in "EBGDAE"] for end in ("|", "||", "-|", " |", ":")),
        *([name + end for name in names] for names, end in (("eBGDAE", "|"), ("ebgdae", " "))),
        *([edge] * 6 for edge in ("", "|", "|-", "[")),
        ["||", "||", "||*", "||*", "||", "||"],
        ["     e||", "     B||", "17   G||", "17   D||", "     A||", "     E||"],
        ["12 |", "   |", "   |", "   |", "   |", "   |"],
    ],
)
def test_labels_and_left_edges_are_not_notes(labels):
    width = max(map(len, labels))
    rows = [label.ljust(width, "-" if "*" in label else " ") for label in labels]
    body = ["-0---2--|", "--------|", "---10---|", "--------|", "--------|", "-3------|"]
    if labels[2] == "||*":
        rows = ["||-", "||-", "||*", "||*", "||-", "||-"]
    text = "\n".join(a + b for a, b in zip(rows, body, strict=True))
    assert frets(text) == [[(6, 3), (1, 0)], [(3, 10)], [(1, 2)]]


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
    tab = only(system(f"|{bar}|"))
    assert [event.notes[0].fret for event in tab.iter_events()] == frets
    said = [event.techniques for event in tab.iter_events()]
    assert said == [((Technique("bend", size),),), ()]


def test_how_notes_are_played_is_read_from_their_marks():
    tab = only(system("|-2h3p2-5/7\\5-<12>-3~~-10h12-|"))
    played = [(event.notes[0].fret, event.techniques) for event in tab.iter_events()]
    kinds = [(fret, [t.kind for each in said for t in each]) for fret, said in played]
    assert kinds == [
        (2, ["hammer"]), (3, ["pull"]), (2, []), (5, ["slide"]), (7, ["slide"]), (5, []),
        (12, ["harmonic"]), (3, ["vibrato"]), (10, ["hammer"]), (12, []),
    ]  # fmt: skip


def test_dashes_of_windows_and_underscores():
    text = PLAIN.replace("-", "\u2013")
    assert only(decode_text(text.encode("cp1252"))).bars == only(PLAIN).bars
    assert only(PLAIN.replace("-", "_")).bars == only(PLAIN).bars


# Text around --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meter", "tempo"),
    [
        ("Second guitar comes in here, original at 120 bpm, I play 96", None, None),
        ("I only had time 3/4 of the way, then stop", None, None),
        ("Tempo 90 until the solo, then let it ring", None, None),
        ("  time: 3/4", (3, 4), None),
        ("  tempo: 90", None, 90),
    ],
)
def test_between_systems_a_line_states_a_meter_or_tempo_alone(line, meter, tempo):
    bars = only(f"{PLAIN.strip()}\n\n{line}\n{PLAIN.strip()}\n").bars
    second = bars[len(bars) // 2]
    assert (second.time_signature, second.tempo_bpm) == (meter, tempo)


def test_text_around_and_between_is_left_out():
    text = f"""\
Title: The 3 Ravens
tuning: EADGBE    time: 3/4    tempo: 120

   C7              G          CII------------
1  | . . . | 2-1 3 4
{PLAIN.strip()}   x2
    1 2 3   4---4   2
   There were three ra-vens sat on a tree (12 verses)

Duration Legend
---------------
S - 16th note
more tabs on page 12
"""
    tab = only(text)
    assert list(tab.iter_events()) == list(only(PLAIN).iter_events())
    assert [bar.num_plays for bar in tab.bars][-1] == 2  # x2
    assert tab.title == "The 3 Ravens"


def test_a_barre_mark_right_above_is_not_a_string():
    text = "   CVII-----------   \n" + PLAIN
    assert only(text).bars == only(PLAIN).bars
    bare = "\n".join(row[2:] for row in PLAIN.splitlines())
    assert only("CVII--------------\n" + bare).bars == only(PLAIN).bars
    text = "   |   |  /~~3~~\\\n" + PLAIN
    assert only(text).bars == only(PLAIN).bars


def test_text_behind_the_last_bar_line():
    rows = PLAIN.splitlines()
    rows[0] += "  D.C. 2nd time to 9"
    assert only("\n".join(rows)).bars == only(PLAIN).bars


def test_systems_without_a_gap_and_with_gaps():
    assert len(list(only(PLAIN + PLAIN).bars)) == 4
    spaced = "\n\n".join(PLAIN.splitlines())
    assert only(spaced).bars == only(PLAIN).bars


def test_a_bar_that_breaks_over_two_systems_is_one_bar():
    whole = "\n".join(["|-0---2-|-3---5-|-7---9-|"] + ["|-------|-------|-------|"] * 5)
    first = "\n".join(["|-0---2-|-3-"] + ["|-------|---"] * 5)
    rest = "\n".join(["--5-|-7---9-|"] + ["----|-------|"] * 5)
    assert only(f"{first}\n\n{rest}\n").bars == only(whole).bars


def test_lines_that_slipped_are_lined_up_bar_by_bar():
    rows = ["|-0---2-|-3---5-|", "|-1----|-1-----|", *["|-------|-------|"] * 4]
    tab = only("\n".join(rows))
    assert [[e.notes for e in bar.events] for bar in tab.bars] == [
        [(Note(2, 1), Note(1, 0)), (Note(1, 2),)],
        [(Note(2, 1), Note(1, 3)), (Note(1, 5),)],
    ]


def test_line_up_puts_the_missing_dash_where_frets_then_agree():
    assert realign_bar_rows(("-0--2--3-", "-1-2--3-", *["---------"] * 4))[1] == "-1--2--3-"
    assert realign_bar_rows(("-0--2--3-", "-1---2--3-", *["---------"] * 4))[1] == "-1--2--3-"


# Tunings, capo, title -------------------------------------------------------------------------


def test_each_tab_of_a_file_has_its_style_or_the_first():
    text = f"style: Rock\ntuning: DADGBE\n\n{PLAIN}\n{{}}tuning: EADGBE\n\n{PLAIN}"
    for line, styles in (("style: Jazz\n", ["Rock", "Jazz"]), ("", ["Rock", "Rock"])):
        tabs, _ = parse_ascii_tabs(text.format(line))
        assert [tab.style for tab in tabs] == styles


def test_labels_state_a_tuning():
    text = PLAIN.replace("E|", "D|").replace("G|", "F#|").replace("e|", "E|")
    rows = [row if row.startswith("F#") else " " + row for row in text.splitlines()]
    assert only("\n".join(rows)).tuning.open_pitches == (64, 59, 54, 50, 45, 38)
    # Labels as in standard tuning do not overrule the text.
    assert only("Drop D\n" + PLAIN).tuning == DROP_D


def test_another_tuning_begins_another_tab():
    text = f"First\ntuning: DADGBE\n\n{PLAIN}\nSecond\ntuning: EADGBE\n\n{PLAIN}\n{PLAIN}"
    tabs, problems = parse_ascii_tabs(text, "two.txt")
    assert problems == []
    assert [tab.tuning for tab in tabs] == [DROP_D, STANDARD]
    assert [tab.title for tab in tabs] == ["First", "Second"]
    assert [len(tab.bars) for tab in tabs] == [2, 4]
    assert {tab.source for tab in tabs} == {"two.txt"}


# Bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"], ids=lambda name: name
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_encodings_and_line_ends(tmp_path, encoding, newline):
    path = tmp_path / "estudio.txt"
    text = ("Canción del niño\n\n" + PLAIN).replace("\n", newline)
    path.write_bytes(text.encode(encoding))
    tabs, problems = read_tab_file(path)
    assert problems == [] and tabs[0].bars == only(PLAIN).bars
    assert (tabs[0].title, tabs[0].source) == ("Canción del niño", "estudio.txt")


def test_bytes_without_a_meaning_in_windows_are_latin_1():
    assert decode_text(b"ni\xf1o \x81") == "ni\xf1o \x81"


# Problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "text", "bars", "line", "problem"),
    [
        (5, None, 2, 3, "5 string lines where a system has six; they are left out"),
        (4, "A|-3-------|---", 1, 5, "this string ends before its bar does; the bar is left"),
        (3, "D|---|-----|---------|", 2, 4, "the bar lines of this string are not below"),
    ],
)
def test_what_is_wrong_with_a_system_is_reported_with_its_line(row, text, bars, line, problem):
    rows = PLAIN.splitlines()
    if text is None:  # a row is missing, and a good system follows
        written = "Lark\n\n" + "\n".join(rows[:row]) + "\n\n" + PLAIN
    else:
        written = "\n".join([*rows[:row], text, *rows[row + 1 :]])
    (tab,), (found,) = parse_ascii_tabs(written, "lark.txt")
    assert str(found).startswith(f"lark.txt:{line}: {problem}")
    events = [[e.notes for e in bar.events] for bar in tab.bars]
    assert events == [[e.notes for e in bar.events] for bar in only(PLAIN).bars[:bars]]


def test_a_folder_is_read_in_order_and_problems_name_the_file(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "c.txt").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "b" / "z.TAB").write_text("Zed\n" + PLAIN, encoding="utf-8")
    (tmp_path / "a.txt").write_text("only words\n", encoding="utf-8")
    (tmp_path / "image.txt").write_bytes(b"\x89PNG\r\n\0\0\0")
    (tmp_path / "notes.md").write_text(PLAIN, encoding="utf-8")
    tabs, problems = read_tab_folder(tmp_path)
    assert [tab.source for tab in tabs] == ["b/z.TAB", "c.txt"]
    assert [str(problem) for problem in problems] == [
        "a.txt:1: no tablature: no six string lines one under the other",
        "image.txt:1: this is not a text file",
    ]


def test_nothing_readable_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="No tablature in .* has no such file"):
        read_tab_folder(tmp_path)
    (tmp_path / "a.txt").write_text("only words\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"No tablature in .*First problem: a\.txt:1: "):
        read_tab_folder(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"")
    with pytest.raises(ValueError, match=r"First problem: a\.txt: .*a\.txt is empty\.$"):
        read_tab_folder(tmp_path)
    with pytest.raises(ValueError, match="There is no folder"):
        read_tab_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="There is no file"):
        read_tab_file(tmp_path / "nothing.txt")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.txt")
        with pytest.raises(ValueError, match=r"pipe\.txt is no ordinary file"):
            read_tab_file(tmp_path / "pipe.txt")


def test_a_file_too_large_or_empty_is_refused_and_left_out_of_a_folder(tmp_path, monkeypatch):
    for name, text in (("a.txt", ""), ("b.txt", PLAIN + "-"), ("c.txt", PLAIN)):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    monkeypatch.setitem(bounds.MAX_FILE_BYTES, "ASCII tab", len(PLAIN))
    with pytest.raises(ValueError, match=r"b\.txt is too large for an ASCII tab"):
        read_tab_file(tmp_path / "b.txt")
    tabs, problems = read_tab_folder(tmp_path)
    assert [tab.source for tab in tabs] == ["c.txt"]
    assert [problem.source for problem in problems] == ["a.txt", "b.txt"]


def test_a_file_of_too_many_notes_is_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("slp_guitar.ascii.reader.MAX_NOTES", 2)
    rows = ["e|-12-|", "B|----|", "G|-x--|", "D|----|", "A|----|", "E|----|"]
    (tmp_path / "a.txt").write_text("\n".join(rows), encoding="utf-8")
    assert len(read_tab_file(tmp_path / "a.txt")[0]) == 1
    (tmp_path / "b.txt").write_text("\n".join([*rows[:5], "E|-0--|"]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"b\.txt has more than 2 notes"):
        read_tab_file(tmp_path / "b.txt")
    monkeypatch.setattr("slp_guitar.ascii.reader.MAX_TEXT_LINES", 6)
    assert len(read_tab_file(tmp_path / "a.txt")[0]) == 1
    (tmp_path / "a.txt").write_text("\r".join([*rows, ""]), encoding="utf-8")
    assert len(read_tab_file(tmp_path / "a.txt")[0]) == 1
    (tmp_path / "a.txt").write_text("\r".join([*rows, "", "x"]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.txt has more than 6 lines"):
        read_tab_file(tmp_path / "a.txt")


def test_empty_strings_are_no_tab():
    tabs, problems = parse_ascii_tabs("\n".join(["|--------|"] * 6), "rests.txt")
    assert tabs == []
    assert [problem.line_number for problem in problems] == [1]
