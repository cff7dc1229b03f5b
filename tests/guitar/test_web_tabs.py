"""Small tabs as people put them on the web, each with what it says: `web_tabs.txt`.

None of them is read wrong in silence: what is not kept is said.
"""

import operator
import re
from pathlib import Path

import pytest

from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.fretboard import STANDARD
from slp_guitar.playing_order import expand_repeats

DATA = Path(__file__).with_name("web_tabs.txt").read_text(encoding="utf-8")
PLAIN = "e|-----0-|\nB|---1---|\nG|-0-----|\nD|-------|\nA|-------|\nE|-3-----|"


def entries():
    """Name, what is said, and the text of each."""
    for entry in DATA.split("\n=== ")[1:]:
        head, _, text = entry.partition("\n---\n")
        name, *lines = head.splitlines()
        said = {}
        for key, value in (line.split(": ", 1) for line in lines):
            said.setdefault(key, []).append(value)
        text = re.sub("(?m)^@$", PLAIN, text.rstrip("\n")) + "\n"
        yield pytest.param(said, text.replace("\n", "\r\n") if "crlf" in said else text, id=name)


def as_said(tab):
    """A tab as the data file writes it."""
    return " | ".join(
        " ".join("+".join(f"{note.string}.{note.fret}" for note in e.notes) for e in bar.events)
        for bar in tab.bars
    )


def changes(bar):
    """The time signature and the tempo that begin with a bar, as the data file writes them."""
    signature = bar.time_signature and "{}/{}".format(*bar.time_signature)
    return [signature, bar.tempo_bpm and str(bar.tempo_bpm)]


@pytest.mark.parametrize(("said", "text"), list(entries()))
def test_a_tab_is_read_as_it_is_meant_or_what_is_wrong_is_said(said, text):
    tabs, problems = parse_ascii_tabs(text)
    assert len(problems) == len(said.get("refused", []))
    assert all(map(operator.contains, map(str, problems), said.get("refused", [])))
    every = [str(each) for each in parse_ascii_tabs(text, names_unread=True)[1]]
    assert all(any(unread in each for each in every) for unread in said.get("unread", []))
    if problems and "reads" not in said:
        return
    assert [as_said(tab) for tab in tabs] == said.get("reads", ["6.3+3.0 2.1 1.0"])
    events = [event for tab in tabs for event in tab.iter_events()]
    kinds = [mark.kind for event in events for each in event.techniques for mark in each]
    assert kinds == " ".join(said.get("marks", [])).split()
    tab = tabs[-1]
    strings = said.get("tuning", [" ".join(map(str, STANDARD.open_pitches))])
    assert " ".join(map(str, tab.tuning.open_pitches)) in strings
    assert tab.tuning.capo == int(said.get("capo", "0")[0])
    assert changes(tab.bars[0]) == [said.get(key, [None])[0] for key in ("time", "tempo")]
    played = [bar.events for bar in expand_repeats(tab).bars]
    written = [bar.events for bar in tab.bars]
    usual = " ".join(map(str, range(1, len(written) + 1)))
    order = [int(number) - 1 for number in said.get("order", [usual])[0].split()]
    assert played == [written[number] for number in order]
    tracks = said.get("tracks", ["; " * (len(tabs) - 1)])[0].split("; ")
    assert [tab.track for tab in tabs] == tracks
    assert "title" not in said or [tab.title] == said["title"]


def test_there_are_many_and_no_two_alike():
    texts = [entry.values[1] for entry in entries()]
    assert len(texts) >= 230
    assert len({entry.id for entry in entries()}) == len(set(texts)) == len(texts)


STUDY = """e|-0---------|
B|---1-3-----|
G|-------2-0-|
D|-----------|
A|-----------|
E|-3---------|
"""


def first_notes(text):
    (tab,), problems = parse_ascii_tabs(text)
    return [tuple(map(tuple, e.notes)) for e in tab.iter_events()], problems


@pytest.mark.parametrize("before", ["", "<pre>", "Intro: ", "<code class='x'>"])
def test_what_stands_before_the_first_row_does_not_shift_it(before):
    notes, problems = first_notes(before + STUDY)
    assert notes[0] == ((6, 3), (1, 0)) and problems == []


def test_names_of_two_letters_do_not_shift_a_row_without_bar_lines():
    rows = "e-0---0-----\nB---1---1---\nG-----------\nD-----------\nA-----------\nF#-3---3-----\n"
    notes, _ = first_notes(rows)
    assert notes == [((6, 3), (1, 0)), ((2, 1),), ((6, 3), (1, 0)), ((2, 1),)]


@pytest.mark.parametrize(
    "line",
    [
        "Kapo: 2. Bund", "Kapodaster 2. Bund", "Cejilla en el 2º traste", "Cejilla 2", "w/ capo 2",
        "Capodastre à la case 2", "Capotasto al 2 tasto", "Capotraste na 2ª casa", "with capo 2",
    ],
)  # fmt: skip
def test_capos_are_read_in_six_languages(line):
    (tab,), problems = parse_ascii_tabs(f"{line}\n\n{STUDY}")
    assert tab.tuning.capo == 2 and problems == []


@pytest.mark.parametrize("line", ["Stimmung: wie immer", "Tuning: as usual", "Kapo zu 1"])
def test_what_looks_like_a_statement_and_is_not_understood_is_named_with_its_line(line):
    _, problems = parse_ascii_tabs(f"A title\n{line}\n\n{STUDY}")
    assert [problem.line_number for problem in problems] == [2]


def test_a_mark_above_seven_strings_is_no_string():
    rows = ["e|-----|", "B|-----|", "G|-----|", "D|-----|", "A|---2-|", "E|-0---|", "B|-0-3-|"]
    notes, problems = first_notes("\n".join(["  PM----|", *rows]))
    assert notes == [((7, 0), (6, 0)), ((7, 3), (5, 2))] and problems == []


@pytest.mark.parametrize("word", ["Titel:", "Titre :", "T\u00edtulo:", "Titolo:"])
def test_titles_are_found_in_other_languages(word):
    (tab,), _ = parse_ascii_tabs(f"by somebody\n{word} La pluie\n\n{STUDY}")
    assert tab.title == "La pluie"
