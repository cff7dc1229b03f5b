"""alphaTex and MusicXML at the door, and the one way in and out for all kinds of files."""

import random
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction

import pytest
from guitar_pieces import event, random_piece, timed
from sampled import mostly_slow

from slp_guitar.formats import registry
from slp_guitar.formats.alphatex import format_alphatex, parse_alphatex_tabs
from slp_guitar.formats.musicxml_writer import format_musicxml
from slp_guitar.formats.notation import round_trip_tab
from slp_guitar.fretboard import DROP_D, Note, Tuning
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique
from slp_guitar.timing import bar_start_steps

# --- alphaTex ------------------------------------------------------------------------------------


def test_alphatex_by_hand():
    tab = timed(
        Bar(12, (event(0, (6, 0), (1, 3), durations=(4, 4)), event(4, (2, 5), durations=(6,)))),
        Bar(12, (event(0, (1, 12), durations=(12,)),), tempo_bpm=90, num_plays=2),
        tuning=Tuning(DROP_D.open_pitches, 2),
    )
    assert format_alphatex(tab).splitlines() == [
        '\\title "By hand"',
        '\\track "Guitar"',
        "\\staff {score tabs}",
        "\\instrument 25",
        "\\tuning (E4 B3 G3 D3 A2 D2)",
        "\\capo 2",
        "\\ts (3 4) (3.1 0.6).4 5.2.4{d} r.8 |",
        "\\tempo 90 \\rc 2 12.1.2{d}",
    ]


def test_alphatex_as_people_write_it():
    (tab,), problems = parse_alphatex_tabs("""
        \\title 'Lick' \\artist "Nobody"  // a comment
        \\tempo 70 "slow"
        .
        \\ts 3 4 :8 3.3{h} 5.3 (2.4 3.3){lr} r x.2 0.1*1 |
        \\ro :16 {tu 3} 1.2*3 -.2.4 2.2.2 {v} | \\rc 3 r.2{d}
    """)
    said = ["\\artist left out (the first in bar 1)"]
    assert [problem.message for problem in problems] == said
    assert tab.title == "Lick" and tab.steps_per_quarter == 12 // 2
    first, second, third = tab.bars
    assert (first.time_signature, first.tempo_bpm, first.steps) == ((3, 4), 70, 18)
    strikes = [(e.step, [tuple(n) for n in e.notes], e.durations) for e in first.events]
    assert strikes == [
        (0, [(3, 3)], (3,)),
        (3, [(3, 5)], (3,)),
        (6, [(4, 2), (3, 3)], (3, 3)),
        (12, [(2, 0)], (3,)),
        (15, [(1, 0)], (3,)),
    ]
    assert first.events[0].techniques == ((Technique("hammer"),),)
    assert first.events[3].techniques == ((Technique("dead"),),)
    assert second.starts_repeat and third.num_plays == 3
    assert [event.durations for event in second.events] == [(1,), (1,), (7,), (12,)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "alphaTex:1: there is no music"),
        ("\\title x", "there is no music"),
        ("3.3.5", "1/5 is no length"),
        ("\n3.9", ":2: string 9 is none of 6"),
        ("(3.3 2.2", r":1: '\(3.3' is not understood"),
        ("3.3 {h", r":1: '\{h' is not understood"),
        ("\\ts 4 5 3.3", "a time signature should be two numbers"),
        ("\\tuning e4 3.3", "a tuning has 4 to 8 strings"),
        ("\\tempo fast 3.3", "tempo should have a whole number"),
        ("3.3 {tu 3 0}", "a tuplet of 3 in 0"),
        ("3.3 \\9", "is not understood here"),
        ("3.3 hello", "'hello' is not understood"),
        ("3.3 | \\voice 3.3 | 3.3", "more bars than the first"),
        ("\\x " + "(" * 5000, r"\(\(.* is not understood here"),
        ("r*999 " * 11, "more than 10,033 beats"),
    ],
)
def test_what_is_no_alphatex_is_said_with_its_line(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_alphatex_tabs(text)


def test_a_tie_after_a_rest_holds_the_note_through_it_as_alphatab_plays_it():
    (tab,), problems = parse_alphatex_tabs("3.3.4 r.4 -.3.4 5.3.4 | -.2.4")
    assert [problem.message for problem in problems] == [
        "ties that continue no note are left out (the first in bar 2)"
    ]
    assert [(event.step, event.durations) for event in tab.iter_events()] == [(0, (3,)), (3, (1,))]


def test_a_tie_may_be_an_effect_of_a_note_with_its_fret():
    (tab,), problems = parse_alphatex_tabs("(3.3 0.6).4 (3.3{t} 2.6).4 3.3{t}.4 3.3.4")
    assert problems == []
    found = [(e.step, [n.fret for n in e.notes], e.durations) for e in tab.iter_events()]
    assert found == [(0, [0, 3], (1, 3)), (1, [2], (1,)), (3, [3], (1,))]


# --- MusicXML ------------------------------------------------------------------------------------


def notes_in(xml):
    """The notes of a MusicXML text read plainly: onset, duration, string, fret, voice."""
    part = ET.fromstring(xml.encode()).find("part")
    divisions = int(part.find("measure/attributes/divisions").text)
    now, held, found = Fraction(0), {}, []
    for measure in part:
        start, furthest = now, now
        for element in measure:
            length = Fraction(int(element.findtext("duration", "0")), divisions)
            if element.tag == "backup":
                now -= length
            if element.tag != "note":
                continue
            if element.find("chord") is not None:
                now -= length
            if element.find("rest") is None:
                string = int(element.findtext("notations/technical/string"))
                ties = {tie.get("type") for tie in element.findall("tie")}
                if "stop" in ties:
                    held[string][1] += length
                else:
                    fret = int(element.findtext("notations/technical/fret"))
                    held[string] = [now, length, string, fret, int(element.findtext("voice"))]
                    found.append(held[string])
            now += length
            furthest = max(furthest, now)
        now = furthest
        assert now > start
    return sorted(map(tuple, found))


@pytest.mark.parametrize("strings", [4, 6, 7])
def test_musicxml_has_every_note_with_its_string_and_fret(strings):
    rng = random.Random(strings)
    for number in range(6):
        tab = random_piece(rng, strings, voices=number % 2)
        wanted, unit = [], round_trip_tab(tab).steps_per_quarter
        read = round_trip_tab(tab)
        for start, bar in zip(bar_start_steps(read), read.bars, strict=False):
            for moment in bar.events:
                for each in moment.tab_notes():
                    onset = Fraction(start + moment.step, unit)
                    wanted.append(
                        (onset, Fraction(each.duration_steps, unit), *each.note, each.voice)
                    )
        assert notes_in(format_musicxml(tab)) == sorted(wanted)


def test_musicxml_says_tuning_from_the_bottom_and_pitches_with_the_capo():
    tab = timed(
        Bar(4, (event(0, (6, 3), (1, 0), durations=(4, 4)),), (2, 2), 66, True),
        Bar(4, (), endings=(1, 2), num_plays=3),
        Bar(4, (), endings=(3,)),
        tuning=Tuning(DROP_D.open_pitches, 2),
        unit=1,
    )
    part = ET.fromstring(format_musicxml(tab).encode()).find("part")
    details = part.find("measure/attributes/staff-details")
    lines = [
        (line.get("line"), line.findtext("tuning-step"), line.findtext("tuning-octave"))
        for line in details.findall("staff-tuning")
    ]
    assert lines[0] == ("1", "D", "2") and lines[5] == ("6", "E", "4")
    assert details.findtext("capo") == "2"
    pitches = [[each.text for each in pitch] for pitch in part.iter("pitch")]
    assert pitches == [["G", "2"], ["F", "1", "4"]]
    assert part.find("measure/direction/sound").get("tempo") == "66"
    repeats = [(r.get("direction"), r.get("times")) for r in part.iter("repeat")]
    assert repeats == [("forward", None), ("backward", "3")]
    endings = [(e.get("number"), e.get("type")) for e in part.iter("ending")]
    assert endings == [("1,2", "start"), ("1,2", "stop"), ("3", "start"), ("3", "stop")]


def test_musicxml_says_how_notes_are_played():
    hammer, bend = (Technique("hammer"),), (Technique("bend", 3), Technique("vibrato"))
    played = [TabNote(Note(2, 5), 1, hammer), TabNote(Note(2, 7), 1, (Technique("slide"),))]
    played += [TabNote(Note(2, 9), 1, bend), TabNote(Note(2, 0), 1, (Technique("dead"),))]
    bar = Bar(4, tuple(Event.from_notes(step, [each]) for step, each in enumerate(played)))
    root = ET.fromstring(format_musicxml(timed(bar, unit=1)).encode())
    for name, kinds in (("hammer-on", ["start", "stop"]), ("slide", ["start", "stop"])):
        assert [each.get("type") for each in root.iter(name)] == kinds
    assert [each.text for each in root.iter("bend-alter")] == ["1.5"]
    assert [each.text for each in root.iter("notehead")] == ["x"]


# --- All kinds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "suffix", [s for each in registry.FORMATS.values() if each.writer for s in each.suffixes]
)
def test_the_name_of_a_file_says_what_it_is(tmp_path, suffix):
    bars = (Bar(16, (event(0, (6, 3)), event(8, (1, 0)))),)
    path = tmp_path / f"piece{suffix}"
    tab = Tab("A piece", bars=bars, steps_per_quarter=None if suffix in (".txt", ".tab") else 4)
    registry.write_tab(tab, path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    (back,), problems = registry.read_any_tab_file(path)
    assert problems == [] and back.source == path.name
    assert [e.notes for e in back.iter_events()] == [e.notes for e in tab.iter_events()]


OUTPUTS = [
    *((suffix, strings, False) for suffix in (".gp3", ".gp4") for strings in (4, 5, 6, 7)),
    *((".gp5", strings, True) for strings in (4, 5, 6, 7)),
    *((suffix, strings, True) for suffix in (".atex", ".musicxml") for strings in (4, 6, 8)),
    *((".mid", strings, False) for strings in (4, 5, 6, 7, 8)),
]


@pytest.mark.parametrize(
    ("suffix", "strings", "voices"), mostly_slow(OUTPUTS, *OUTPUTS[::2], unpack=True)
)
def test_what_goes_out_comes_back(tmp_path, suffix, strings, voices):
    rng, path = random.Random(strings), tmp_path / f"piece{suffix}"
    for number in range(8):
        plain = suffix in (".gp3", ".mid")
        tab = random_piece(rng, strings, plain, voices and number % 2 == 1)
        registry.write_tab(tab, path)
        (back,), problems = registry.read_any_tab_file(path)
        assert problems == []
        assert replace(back, source="") == as_slurred(round_trip_tab(tab))


def as_slurred(tab):
    """Hammers to a lower fret are pulls: so they are read."""
    below, bars = {}, []
    for bar in reversed(tab.bars):
        events = []
        for moment in reversed(bar.events):
            notes = []
            for each in moment.tab_notes():
                if (Technique("hammer"),) == each.techniques:
                    if below.get(each.note.string, 99) < each.note.fret:
                        each = each._replace(techniques=(Technique("pull"),))
                notes.append(each)
            below |= {each.note.string: each.note.fret for each in notes}
            events.append(Event.from_notes(moment.step, notes))
        bars.append(replace(bar, events=tuple(reversed(events))))
    return replace(tab, bars=tuple(reversed(bars)))


@pytest.mark.parametrize("suffix", [".gp3", ".gp5", ".atex", ".musicxml", ".txt"])
def test_repeats_endings_and_tempi_come_back(tmp_path, suffix):
    notes = (event(0, (1, 0), durations=(16,)),)
    tab = timed(
        Bar(16, notes, (4, 4), 100),
        Bar(16, notes, starts_repeat=True, tempo_changes=((6, 80), (11, 123))),
        Bar(16, notes, endings=(1, 2), num_plays=3, tempo_bpm=60),
        Bar(16, notes, endings=(3,)),
        Bar(12, (event(0, (2, 5), durations=(12,)),), (6, 8), num_plays=2),
    )
    registry.write_tab(tab, tmp_path / f"out{suffix}")
    (back,), _ = registry.read_any_tab_file(tmp_path / f"out{suffix}")
    assert round_trip_tab(back).bars == round_trip_tab(tab).bars


def test_midi_has_the_tempo_of_each_moment_as_it_is_played(tmp_path):
    notes = (event(0, (1, 0), durations=(4,)), event(4, (1, 3), durations=(4,)))
    first = Bar(8, notes, (2, 4), 100, tempo_changes=((3, 70), (5, 90)), num_plays=2)
    registry.write_tab(timed(first, Bar(8, notes)), tmp_path / "out.mid")
    (back,), problems = registry.read_any_tab_file(tmp_path / "out.mid")
    assert (back.steps_per_quarter, problems) == (4, [])
    assert [(bar.tempo_bpm, bar.tempo_changes) for bar in back.bars] == [
        *[(100, ((3, 70), (5, 90)))] * 2,
        (None, ()),
    ]


@pytest.mark.parametrize("suffix", [".gp5", ".mid", ".atex"])
def test_a_string_that_is_struck_again_ends_the_note_before(tmp_path, suffix):
    tab = timed(
        Bar(4, (event(0, (2, 3), durations=(9,)), event(1, (2, 5), durations=(3,))), tempo_bpm=90),
        unit=1,
    )
    registry.write_tab(tab, tmp_path / f"out{suffix}")
    (back,), _ = registry.read_any_tab_file(tmp_path / f"out{suffix}")
    assert [e.durations for e in back.iter_events()] == [(1,), (3,)]


def test_a_name_that_says_nothing_is_refused(tmp_path):
    for name in ("piece.doc", "piece"):
        with pytest.raises(ValueError, match=r"let it end in \.atex, \.gp3, \.gp4, \.gp5, \.mid"):
            registry.write_tab(timed(Bar(4, ())), tmp_path / name)
    with pytest.raises(ValueError, match=r"piece\.pdf is not written here: write a \.musicxml"):
        registry.write_tab(timed(Bar(4, ())), tmp_path / "piece.pdf")
