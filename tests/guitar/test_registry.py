"""The tables of file formats and of techniques: every entry is acted on, also one from outside."""

import re
from dataclasses import replace
from pathlib import Path

import choice_tables
import pytest
from guitar_pieces import event, timed
from sampled import mostly_slow

from slp_guitar.formats import registry
from slp_guitar.formats.registry import FORMATS, TabFormat
from slp_guitar.fretboard import Tuning
from slp_guitar.tab import Bar, Technique, check_tab
from slp_guitar.techniques import TECHNIQUES, TechniqueSigns
from slp_transformer.cli import main

DOCS = Path(__file__).parents[2] / "docs"
BOTH_WAYS = [name for name, each in FORMATS.items() if each.reader and each.writer]


def played(kind):
    """A piece of two notes on one string, the first of them played so."""
    techniques = (Technique(kind, kind == "bend"),) if kind else ()
    first = replace(event(0, (2, 3), durations=(2,)), techniques=(techniques,))
    return timed(Bar(4, (first, event(2, (2, 5), durations=(2,))), (4, 4), 90), unit=1)


def written(tab, folder, name):
    path = folder / f"piece{FORMATS[name].suffixes[0]}"
    registry.write_tab(tab, path)
    return path


@pytest.fixture
def outsider():
    """A format from outside that is only written, and loses bends."""
    added = TabFormat((".fiddle",), writer=lambda *tabs: "X:1\n", cannot_hold=("bends", "slides"))
    FORMATS.add("fiddle tab", added)
    yield
    FORMATS.remove("fiddle tab")


def test_a_format_says_what_it_cannot_hold():
    """Without a word it would claim to lose nothing, and one that is only written be believed."""
    with pytest.raises(TypeError, match="cannot_hold"):
        TabFormat((".abc",), writer=lambda *tabs: "X:1\n")


@pytest.mark.parametrize("word", ["the key", "the bars", "the tempo_bpm"])
def test_a_format_says_it_in_words_that_are_found_in_tabs(word):
    """Others would never be told as lost."""
    with pytest.raises(ValueError, match=f'.abc: cannot_hold has "{word}"'):
        TabFormat((".abc",), writer=lambda *tabs: "X:1\n", cannot_hold=("slides", word))
    with pytest.raises(ValueError, match='.abc: cannot_hold has "bend": did you mean "bends"'):
        TabFormat((".abc",), writer=lambda *tabs: "X:1\n", cannot_hold=("slides", "bend"))


LONG = timed(Bar(4, (event(0, (2, 3), durations=(2,)), event(2, (2, 5), durations=(2,)))), unit=1)
DETAILS = {  # a thing in a tab: a piece with it, and one without
    "the title": (replace(LONG, title="A"), replace(LONG, title="")),
    "the capo": (replace(LONG, tuning=Tuning(capo=2)), LONG),
    "tempos": (replace(LONG, bars=(replace(LONG.bars[0], tempo_bpm=200),)), LONG),
    "keys": (replace(LONG, bars=(replace(LONG.bars[0], key="D"),)), LONG),
    "time signatures": (
        replace(LONG, bars=(replace(LONG.bars[0], time_signature=(2, 2)),)),
        replace(LONG, bars=(replace(LONG.bars[0], time_signature=(4, 4)),)),
    ),
    "the tuning": (replace(LONG, tuning=Tuning((64, 59, 55, 50, 45, 38))), LONG),
    "marks of repeats": (
        replace(LONG, bars=(replace(LONG.bars[0], starts_repeat=True, num_plays=2),)),
        LONG,
    ),
    "marks of a second voice": (
        replace(LONG, bars=(Bar(4, tuple(replace(e, voices=(2,)) for e in LONG.bars[0].events)),)),
        LONG,
    ),
    "lengths of notes": (
        replace(LONG, bars=(Bar(4, (event(0, (2, 3), durations=(1,)), LONG.bars[0].events[1])),)),
        LONG,
    ),
    **{signs.plural: (played(kind), played(None)) for kind, signs in TECHNIQUES.items()},
}


@pytest.mark.parametrize("what", DETAILS)
def test_what_makes_no_difference_to_a_file_is_what_it_cannot_hold(what):
    """Also where the file is only written, and no reader can tell."""
    one, other = DETAILS[what]
    assert what in {name for name, _, _ in registry._iter_details(one, True, 1)}
    for name, each in FORMATS.items():
        if each.writer and each.writer(one) == each.writer(other):
            assert what in each.cannot_hold, name


def test_every_format_does_something_and_is_found_by_each_suffix():
    suffixes = [suffix for each in FORMATS.values() for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for name, each in FORMATS.items():
        assert each.reader or each.writer, name
        for suffix in each.suffixes:
            assert registry.find_format(f"A.B{suffix.upper()}") is each
            assert (suffix in registry.readable_suffixes()) == (each.reader is not None)


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("kind", mostly_slow(TECHNIQUES, *[*TECHNIQUES][::3]))
def test_a_technique_is_in_a_file_or_the_table_says_that_it_is_not(tmp_path, name, kind):
    tab = played(kind)
    lost = registry.find_losses([tab], written(tab, tmp_path, name))
    plain = replace(
        tab,
        bars=(
            replace(
                tab.bars[0],
                events=tuple(replace(each, techniques=()) for each in tab.bars[0].events),
            ),
        ),
    )
    always = registry.find_losses([plain], written(plain, tmp_path, name))
    said = {re.sub(r"^[\d,]+ | \(.*", "", each) for each in set(lost) - set(always)}
    assert said <= set(FORMATS[name].cannot_hold) | {"lengths of notes"}
    assert (TECHNIQUES[kind].plural in said) == (
        TECHNIQUES[kind].plural in FORMATS[name].cannot_hold
    )


def test_a_format_from_outside_is_written_listed_and_judged(tmp_path, capsys, outsider):
    source = tmp_path / "piece.atex"
    registry.write_tab(played("bend"), source)
    assert main(["convert", str(source), "-o", str(tmp_path / "piece.fiddle")]) == 0
    said = capsys.readouterr()
    assert "piece.fiddle does not hold bends (the first in bar 1)." in said.err + said.out
    assert (tmp_path / "piece.fiddle").read_text(encoding="utf-8") == "X:1\n"
    with pytest.raises(ValueError, match="piece.xyz does not say what to write: .*[.]fiddle"):
        registry.check_writable_suffix("piece.xyz")
    with pytest.raises(ValueError, match="unsupported file type; supported are (?!.*fiddle)"):
        registry.read_any_tab_file(tmp_path / "piece.fiddle")
    assert "| `fiddle tab` | `.fiddle`: written; without bends, slides |" in FORMATS.to_markdown()


@pytest.mark.parametrize(
    ("what", "piece"),
    [("the strings", LONG), ("the repeats, which are played out", DETAILS["marks of repeats"][0])],
)
def test_what_no_single_note_shows_is_told_of_a_format_that_is_only_written(tmp_path, what, piece):
    added = TabFormat((".fiddle",), writer=lambda *tabs: "X:1\n", cannot_hold=(what,))
    FORMATS.add("fiddle tab", added)
    try:
        path = written(piece, tmp_path, "fiddle tab")
        assert registry.find_losses([piece, piece], path) == [what]
        without = replace(LONG, tuning=Tuning((0,) * 6))
        assert registry.find_losses([without], path) == []
    finally:
        FORMATS.remove("fiddle tab")


def test_how_to_print_is_said_for_a_pdf():
    with pytest.raises(ValueError, match="song.pdf is not written here: write a .musicxml, and"):
        registry.check_writable_suffix("song.pdf")


def test_an_unknown_suffix_is_refused_with_the_list_and_not_read_as_text(tmp_path):
    (tmp_path / "a.tex").write_text("e|-0-|\n" * 6, encoding="utf-8")
    with pytest.raises(ValueError, match=r"a.tex has .* supported are \.txt, \.tab, \.gp3"):
        registry.read_any_tab_file(tmp_path / "a.tex")


def test_a_flag_is_refused_where_the_table_does_not_have_it():
    with pytest.raises(ValueError, match="--quantize has no effect here: a.gp5 is no MIDI file"):
        registry.check_flag_has_effect("quantize", "a.gp5")
    registry.check_flag_has_effect("quantize", "a.mid")


def test_a_technique_from_outside_is_written_read_and_missed(tmp_path):
    signs = TechniqueSigns("rasgueados", alphatex=("rasg",))
    with pytest.raises(
        ValueError, match="'rasgueado' is not a technique; choose from hammer, pull"
    ):
        check_tab(played("rasgueado"))
    TECHNIQUES.add("rasgueado", signs)
    try:
        tab = played("rasgueado")
        assert registry.find_losses([tab], written(tab, tmp_path, "alphaTex")) == []
        lost = registry.find_losses([tab], written(tab, tmp_path, "MusicXML"))
        assert lost == ["rasgueados (the first in bar 1)"]
    finally:
        TECHNIQUES.remove("rasgueado")


def test_the_docs_show_the_table():
    text = choice_tables.fill((DOCS / "command-line.md").read_text(encoding="utf-8"))
    assert FORMATS.to_markdown() in text
