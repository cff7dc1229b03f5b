"""Small tabs as people put them on the web, each with what it says: `web_tabs.txt`."""

import re
from pathlib import Path

import pytest

from slp_transformer.guitar.ascii_reader import parse_ascii_tabs
from slp_transformer.guitar.fretboard import STANDARD

DATA = Path(__file__).with_name("web_tabs.txt").read_text(encoding="utf-8")


def entries():
    """Name, what is said, and the text of each."""
    for entry in DATA.split("\n=== ")[1:]:
        head, _, text = entry.partition("\n---\n")
        name, *lines = head.splitlines()
        said = dict(line.split(": ", 1) for line in lines)
        yield pytest.param(said, text.rstrip("\n") + "\n", id=name)


def as_said(tab):
    """A tab as the data file writes it: bars of notes as string.fret, the lowest first."""
    return " | ".join(
        " ".join("+".join(f"{note.string}.{note.fret}" for note in e.notes) for e in bar.events)
        for bar in tab.bars
    )


@pytest.mark.parametrize(("said", "text"), list(entries()))
def test_a_tab_is_read_as_it_is_meant(said, text):
    if "crlf" in said:
        text = text.replace("\n", "\r\n")
    (tab,), problems = parse_ascii_tabs(text)
    assert problems == [] and as_said(tab) == said["reads"]
    techniques = [t.kind for event in tab.iter_events() for each in event.techniques for t in each]
    assert techniques == said.get("marks", "").split()
    pitches = tuple(map(int, said["tuning"].split())) if "tuning" in said else STANDARD.open_pitches
    assert tab.tuning.open_pitches == pitches
    assert tab.tuning.capo == int(said.get("capo", 0))
    assert "title" not in said or tab.title == said["title"]


def test_there_are_many_and_no_two_alike():
    texts = [re.sub(r"\s+", " ", entry.values[1]) for entry in entries()]
    assert len(texts) >= 59
    names = [entry.id for entry in entries()]
    assert len(set(names)) == len(names)
