"""Guitar Pro files at the door: what goes out comes back, what is no such file is said."""

import xml.etree.ElementTree as ET

import guitarpro
import pytest
from guitar_pieces import event, timed

from slp_guitar.formats.alphatex import parse_alphatex_tabs
from slp_guitar.formats.guitar_pro import read_guitar_pro_tabs
from slp_guitar.formats.musicxml_writer import format_musicxml
from slp_guitar.formats.notation import NoteValue, measures_from_tab, round_trip_tab
from slp_guitar.formats.registry import read_any_tab_file, write_tab
from slp_guitar.fretboard import Note, Tuning
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique


def read_one(path):
    (tab,), problems = read_guitar_pro_tabs(path)
    assert problems == []
    return tab


def test_time_is_cut_where_notes_begin_and_end():
    low, high = TabNote(Note(6, 0), 7), TabNote(Note(1, 3), 2)
    tab = timed(Bar(8, (Event.from_notes(0, [low]), Event.from_notes(2, [high]))), unit=2)
    (measure,) = measures_from_tab(tab, num_voices=1)
    assert measure.time_signature == (4, 4)
    voice, other = measure.voices
    assert other == []
    assert [seen(beat) for beat in voice] == [
        (NoteValue(4), [(6, True, True)]),
        (NoteValue(4), [(1, True, False), (6, False, True)]),
        (NoteValue(4, True), [(6, False, False)]),
        (NoteValue(8), []),
    ]


def seen(beat):
    """A beat, as strings that are struck and that are held on."""
    notes = [(t.tab_note.note.string, t.is_struck, t.is_tied_to_next) for t in beat.notes]
    return beat.note_value, notes


def test_a_held_bass_has_a_voice_of_its_own():
    low, high = TabNote(Note(6, 0), 8), [TabNote(Note(1, fret), 2) for fret in range(4)]
    events = [Event.from_notes(0, [low, high[0]])]
    events += [Event.from_notes(2 * i, [note]) for i, note in enumerate(high[1:], start=1)]
    (measure,) = measures_from_tab(timed(Bar(8, tuple(events)), unit=2))
    melody, bass = measure.voices
    assert [seen(beat) for beat in melody] == [(NoteValue(4), [(1, True, False)])] * 4
    assert [seen(beat) for beat in bass] == [(NoteValue(1), [(6, True, False)])]


@pytest.mark.parametrize(
    ("string", "bass_before", "voice"),
    [
        (5, 1, 2),  # as low as the bass of beat 2, and nothing begins while it sounds
        (3, 1, 1),  # higher than the bass
        (5, 3, 1),  # the bass before it still sounds
    ],
)
def test_the_bass_of_beat_one_is_with_the_basses(string, bass_before, voice):
    def moments(*notes):
        return tuple(
            Event.from_notes(step, [TabNote(Note(string, 1), length)])
            for step, string, length in notes
        )

    before = Bar(8, moments((5, 6, 2 + bass_before), (6, 1, 1)))
    bar = Bar(8, moments((0, string, 2), (2, 4, 2), (3, 2, 1)))
    _, measure = measures_from_tab(timed(before, bar, unit=2))
    found = {
        note.tab_note.note.string: number
        for number, beats in enumerate(measure.voices, start=1)
        for beat in beats
        for note in beat.notes
        if note.is_struck
    }
    assert found == {string: voice, 4: 2, 2: 1}


@pytest.mark.parametrize(
    ("notes", "second"),
    [
        ([(0, 6, 4), (1, 5, 2), (2, 1, 2)], {6}),  # while voice 2 sounds, nothing else goes there
        ([(0, 6, 2), (1, 1, 1), (2, 5, 2), (3, 2, 1)], {6, 5}),  # until it ends
        ([(0, 4, 4), (2, 1, 1), (3, 5, 1)], set()),  # a lower one begins meanwhile
        ([(0, 6, 2), (2, 1, 2)], set()),  # nothing begins meanwhile
    ],
)
def test_only_what_is_held_below_others_is_in_the_second_voice(notes, second):
    events = [Event.from_notes(t, [TabNote(Note(string, 1), n)]) for t, string, n in notes]
    (measure,) = measures_from_tab(timed(Bar(8, tuple(events)), unit=2))
    found = [
        {each.tab_note.note.string for beat in beats for each in beat.notes if each.is_struck}
        for beats in measure.voices
    ]
    assert second == (found[1] if len(found) > 1 else set())
    assert set().union(*found) == {string for _, string, _ in notes}


def test_notes_after_the_end_of_their_bar_shift_nothing(tmp_path):
    """A third quarter in a bar of two is left out, and the bar after begins where it should."""
    first, then = (event(0, (1, 3), durations=(2,)), event(0, (2, 5), durations=(2,)))
    bars = Bar(2, (first,), (2, 4)), Bar(2, (then,))
    write_tab(timed(*bars, unit=1), tmp_path / "a.gp5")
    song = guitarpro.parse(tmp_path / "a.gp5")
    voice = song.tracks[0].measures[0].voices[0]
    late = guitarpro.Beat(voice, status=guitarpro.BeatStatus.normal)
    late.notes = [guitarpro.Note(late, value=7, string=1, type=guitarpro.NoteType.normal)]
    voice.beats.append(late)
    guitarpro.write(song, tmp_path / "b.gp5")
    text = "\\ts (2 4) 3.1.2 7.1.4 | 5.2.2"
    for (tab,), problems in (read_guitar_pro_tabs(tmp_path / "b.gp5"), parse_alphatex_tabs(text)):
        assert "notes after the end of their bar are left out" in str(problems[0])
        found = [
            (bar.steps, [(e.step, e.notes, e.durations) for e in bar.events]) for bar in tab.bars
        ]
        half = 2 * tab.steps_per_quarter
        assert found == [
            (half, [(0, (Note(1, 3),), (half,))]),
            (half, [(0, (Note(2, 5),), (half,))]),
        ]


def test_tuplets_fill_their_beats():
    """Thirds of a beat that a longer note leaves open are filled by notes of the same tuplet."""
    played = [event(0, (1, 0), durations=(4,)), event(4, (1, 1), durations=(20,))]
    played += [event(24, (1, 2), durations=(16,)), event(40, (1, 3), durations=(8,))]
    (measure,) = measures_from_tab(timed(Bar(48, tuple(played)), unit=12))
    values = [(*beat.note_value[:2], beat.note_value.tuplet_notes) for beat in measure.voices[0]]
    assert values == [(8, False, 3), (4, False, 3), (4, False, 1), (2, False, 3), (4, False, 3)]


@pytest.mark.parametrize("unit", [1, 3, 4, 5, 7, 12, 24])
def test_every_length_is_made_of_note_values(unit):
    lengths = range(1, 20 * unit, unit // 4 or 1)
    for steps in lengths:
        bar = Bar(40 * unit, (event(0, (1, 0), durations=(steps,)),))
        beats = measures_from_tab(timed(bar, unit=unit))[0].voices[0]
        held = [beat.note_value.duration_quarters for beat in beats if beat.notes]
        assert sum(held) * unit == steps
        assert len(held) <= 5 + steps // (4 * unit)


def test_a_unit_that_no_note_value_is_is_refused():
    bars = Bar(68, ()), Bar(68, (event(1, (1, 0), durations=(1,)),))
    with pytest.raises(ValueError, match="Bar 2: .* 17 steps to a quarter note, and no note value"):
        measures_from_tab(timed(*bars, unit=17))


@pytest.mark.parametrize("count", [3, 5, 7, 9, 11, 13])
def test_tuplets_of_a_whole_bar_are_written_and_read_back(tmp_path, count):
    notes = [event(4 * place, (1, place), durations=(4,)) for place in range(count)]
    tab = timed(Bar(4 * count, tuple(notes), (4, 4), 90), unit=count)
    for suffix in (".gp5", ".atex", ".musicxml"):
        write_tab(tab, tmp_path / f"out{suffix}")
        (back,), _ = read_any_tab_file(tmp_path / f"out{suffix}")
        assert round_trip_tab(back).bars == round_trip_tab(tab).bars


def test_tuplets_inside_tuplets_have_the_product_of_their_ratios(tmp_path):
    """Two thirds of a beat as notes of a triplet; the last one as five sixteenths in it."""
    lengths = (5, 5, 1, 1, 1, 1, 1)
    notes = [
        event(step, (1, fret), durations=(own,))
        for fret, (step, own) in enumerate(zip((0, 5, 10, 11, 12, 13, 14), lengths, strict=True))
    ]
    tab = timed(Bar(15, tuple(notes), (1, 4)), unit=15)
    ratios = [(3, 2)] * 2 + [(15, 8)] * 5
    kinds = (8, 8, 32, 32, 32, 32, 32)
    (measure,) = measures_from_tab(tab)
    values = [beat.note_value for beat in measure.voices[0]]
    assert [(value.denominator, value[2:]) for value in values] == [
        *zip(kinds, ratios, strict=True)
    ]
    root = ET.fromstring(format_musicxml(tab))
    assert [int(own.text) for own in root.iter("duration")] == list(lengths)
    modified = [(int(own[0].text), int(own[1].text)) for own in root.iter("time-modification")]
    assert (root.findtext(".//divisions"), modified) == ("15", ratios)
    for suffix in (".atex", ".musicxml"):
        write_tab(tab, tmp_path / f"out{suffix}")
        (back,), _ = read_any_tab_file(tmp_path / f"out{suffix}")
        assert round_trip_tab(back).bars == round_trip_tab(tab).bars
    with pytest.raises(ValueError, match="Bar 1 has tuplets of 15 notes; .* none inside others"):
        write_tab(tab, tmp_path / "out.gp5")


def test_strings_are_numbered_as_here(tmp_path):
    tab = timed(Bar(4, (event(0, (6, 3), (2, 1)),), tempo_bpm=80), tuning=Tuning(capo=2), unit=1)
    write_tab(tab, tmp_path / "out.gp5")
    track = guitarpro.parse(tmp_path / "out.gp5").tracks[0]
    assert [string.value for string in track.strings] == [64, 59, 55, 50, 45, 40]
    assert track.offset == 2
    notes = track.measures[0].voices[0].beats[0].notes
    assert [(note.string, note.value) for note in notes] == [(2, 1), (6, 3)]


def test_an_unused_second_voice_has_an_empty_beat(tmp_path):
    write_tab(timed(Bar(16, (event(0, (1, 0)),)), Bar(16, ())), tmp_path / "out.gp5")
    for measure in guitarpro.parse(tmp_path / "out.gp5").tracks[0].measures:
        used, unused = measure.voices
        assert used.beats and [beat.status.name for beat in unused.beats] == ["empty"]


def test_all_techniques_come_back_in_one_order(tmp_path):
    several = (Technique("bend", 3), Technique("let ring"), Technique("vibrato"))
    notes = [TabNote(Note(3, 7), 4, several), TabNote(Note(5, 0), 4, (Technique("harmonic"),))]
    tab = timed(Bar(4, (Event.from_notes(0, notes),), (1, 4), 90))
    write_tab(tab, tmp_path / "out.gp5")
    assert read_one(tmp_path / "out.gp5").bars == round_trip_tab(tab).bars


def test_what_is_not_said_is_said_when_it_comes_back(tmp_path):
    tab = timed(Bar(16, (event(0, (6, 0)), event(8, (1, 0)))))
    write_tab(tab, tmp_path / "out.gp5")
    back = read_one(tmp_path / "out.gp5")
    assert back.steps_per_quarter == 1
    bar = Bar(4, (event(0, (6, 0), durations=(2,)), event(2, (1, 0), durations=(2,))), (4, 4), 120)
    assert back.bars == (bar,)


@pytest.mark.parametrize(
    ("tab", "name", "sentence"),
    [
        (timed(), "out.gp5", "at least one bar"),
        (Tab(bars=(Bar(4, ()),)), "out.gp5", "columns of a text, not time"),
        (timed(Bar(4, ()), tuning=Tuning(tuple(range(70, 30, -5)))), "out.gp5", "has 8"),
        (timed(Bar(4, (event(0, (1, 100)),))), "out.gp5", "Bar 1: .* up to 99"),
        (timed(Bar(4, (), num_plays=200)), "out.gp4", "Bar 1 is repeated too often"),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path, tab, name, sentence):
    with pytest.raises(ValueError, match=sentence):
        write_tab(tab, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_drums_and_other_tracks_are_told(tmp_path):
    song = guitarpro.Song(title="Band")
    song.tracks[0].name = "Lead"
    drums = guitarpro.Track(song, number=2, isPercussionTrack=True, name="Drums")
    song.tracks.append(drums)
    guitarpro.write(song, str(tmp_path / "band.gp5"))
    (tab,), problems = read_guitar_pro_tabs(tmp_path / "band.gp5")
    assert (tab.title, tab.track) == ("Band", "Lead")
    assert [str(problem) for problem in problems] == [
        "band.gp5: Drums: left out, since it is drums"
    ]


def test_what_is_no_guitar_pro_file_is_said_in_a_sentence(tmp_path):
    write_tab(timed(Bar(4, ())), tmp_path / "good.gp5")
    good = (tmp_path / "good.gp5").read_bytes()
    bad = tmp_path / "bad.gp5"
    for content in (b"", b"hello", good[:100], good[:-20], good[:40] + b"\xff" * 200 + good[40:]):
        bad.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.gp5 (cannot be read as|has no track|is empty)"):
            read_guitar_pro_tabs(bad)
