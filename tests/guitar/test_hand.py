"""What one hand can take: fingers, barres, stretches; and what is done about the rest."""

import pytest

from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.grips import (
    UnplayableError,
    find_grips_or_placements,
    find_placements,
    find_playable_grips,
)
from slp_guitar.fingering.playable_chords import FingeringOptions, fit_chord_to_guitar
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.fretboard import (
    STANDARD,
    Note,
    Tuning,
    get_scale_length,
    is_playable_grip,
)
from slp_guitar.hand import choose_fingers, explain_impossible_grip
from slp_guitar.tab import Bar, Event, Tab, TabNote

BASS = Tuning((43, 38, 33, 28))
UKULELE = Tuning((69, 64, 60, 67))


def held(text):
    """String and fret of each note, from the lowest string: 133211, x for none."""
    frets = text.split()
    return [(len(frets) - n, int(f)) for n, f in enumerate(frets) if f != "x"]


@pytest.mark.parametrize(
    ("grip", "refusal"),
    [
        ("1 3 3 2 1 1", ""),  # the index across six strings
        ("x 3 2 0 1 0", ""),
        ("x 2 4 4 4 2", ""),
        ("x 2 4 4 4 4", ""),  # the ring finger across neighboring strings
        ("0 2 x x x 12", "too wide"),
        ("0 x x x x 12", ""),  # open strings need no finger
        ("4 x 3 5 4 6", "too many fingers"),
        ("1 0 1 x x x", ""),
        ("1 2 3 4 5 x", "too many fingers"),
        ("1 x x x x 6", "too wide"),
        ("3 x x x x 8", ""),  # the same stretch is shorter up the neck
        ("1 0 1 0 1 2", ""),  # a finger each, since open strings sound between them
    ],
)
def test_a_grip_passes_or_is_refused_by_name(grip, refusal):
    assert explain_impossible_grip(held(grip), 650) == refusal


@pytest.mark.parametrize(
    ("grip", "hand", "fingers"),
    [
        ("x 3 2 0 1 0", 1, "x 3 2 0 1 0"),  # C
        ("1 3 3 2 1 1", 1, "1 3 4 2 1 1"),  # F over a barre
        ("x 2 4 4 3 2", 2, "x 1 3 4 2 1"),  # B minor
        ("x x 0 2 3 2", 2, "x x 0 1 3 2"),  # D
        ("x 5 7 5 6 5", 5, "x 1 3 1 2 1"),  # over a barre that the chord's notes interrupt
        ("x x x 5 x x", 5, "x x x 1 x x"),  # alone it takes the finger of its place
        ("x x x 8 x x", 5, "x x x 4 x x"),
        ("x x x 9 x x", 5, "x x x 4 x x"),  # reached for
        ("0 x 0 0 x 0", 3, "0 x 0 0 x 0"),
        ("0 2 2 1 0 0", 1, "0 2 3 1 0 0"),  # E
        ("0 x x x x 12", 1, "0 x x x x 4"),  # where no finger of the hand is near
        ("1 x x x x 6", 1, "0 x x x x 0"),  # no hand takes it
    ],
)
def test_fingers_are_those_of_the_hand_where_it_is(grip, hand, fingers):
    places = held(grip)
    numbers = dict(held(fingers))
    assert choose_fingers(places, hand, 650) == [numbers[string] for string, _ in places]


def test_two_notes_need_two_strings_and_an_open_string_stops_a_barre():
    assert explain_impossible_grip([(6, 1), (6, 3)], 650) == "two notes on one string"
    assert explain_impossible_grip(held("2 0 2 2 x 2"), 650) == ""  # two neighbors are one finger's
    assert explain_impossible_grip(held("1 2 3 2 1 1"), 650) == ""
    assert explain_impossible_grip(held("1 3 0 3 1 3"), 650) == "too many fingers"
    assert explain_impossible_grip(held("1 3 1 3 1 3"), 650) == ""


def test_a_stretch_is_measured_on_the_instrument_and_above_its_capo():
    assert [get_scale_length(own) for own in (STANDARD, BASS, UKULELE)] == [650, 864, 380]
    assert get_scale_length(Tuning((59, 54, 50, 45, 40, 35))) == 700
    assert get_scale_length(Tuning((64, 59, 55, 50, 45, 40, 35, 30))) == 650
    wide = [Note(4, 1), Note(1, 5)]
    assert is_playable_grip(wide) and not is_playable_grip(wide, tuning=BASS)
    assert is_playable_grip([Note(4, 1), Note(1, 9)], 12, UKULELE)
    wide = [Note(6, 1), Note(1, 6)]
    assert not is_playable_grip(wide, 5) and is_playable_grip(wide, 5, Tuning(capo=3))


def test_what_is_too_wide_or_needs_a_fifth_finger_is_said():
    for pitches, why in [
        ((41, 83), "F2, B5 are too wide apart for one hand"),
        ((44, 50, 57, 60, 65, 71), "need more than 4 fingers|too wide"),
    ]:
        assert find_placements(pitches, STANDARD)
        with pytest.raises(UnplayableError, match=why):
            find_playable_grips(pitches, STANDARD)
    (grip,) = find_grips_or_placements((41, 83), STANDARD)  # as someone may have written
    assert grip == (Note(6, 1), Note(1, 19))
    with pytest.raises(UnplayableError):
        find_grips_or_placements((40, 41), STANDARD)


def test_a_chord_that_is_too_wide_is_refused_moved_or_dropped_with_bar_and_beat():
    notes = [TabNote(Note(1, pitch)) for pitch in (41, 48, 83)]
    zero = Tuning((0,) * 6)
    event = Event(6, tuple(own.note for own in notes))
    bars = (Bar(8, ()), Bar(6, (event,), time_signature=(6, 8)))
    piece = piece_from_tab(Tab(tuning=zero, bars=bars, steps_per_quarter=4))
    with pytest.raises(ValueError, match=r"bar 2, moment 1 \(beat 4\): F2, C3, B5 are too wide"):
        find_fingerings(piece, FingeringOptions())
    ((_, (grip,)),), changes = find_fingerings(piece, FingeringOptions(unplayable_policy="octave"))
    assert [STANDARD.pitch_of(note) for note in grip] == [53, 60, 83]
    assert ("bar 2, moment 1 (beat 4)", "F2 is moved to F3") in changes
    ((_, (grip,)),), changes = find_fingerings(piece, FingeringOptions(unplayable_policy="drop"))
    assert [said for _, said in changes[-2:]] == ["F2 is left out", "C3 is left out"]
    assert changes[-1][0] == "bar 2, moment 1 (beat 4)"


def test_where_octaves_are_not_enough_inner_notes_are_left_out():
    options = FingeringOptions(unplayable_policy="octave")
    left, changes, reason = fit_chord_to_guitar((40, 41, 42, 43, 44, 45, 46), options)
    assert reason == "" and 1 < len(left) < 7
    assert all(what.endswith("is left out") for what in changes)
    assert find_playable_grips(tuple(left), STANDARD)
