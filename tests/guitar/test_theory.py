"""Scales, chords and keys, by hand."""

from dataclasses import replace

import pytest
from guitar_pieces import event

from slp_guitar.fretboard import DADGAD, STANDARD
from slp_guitar.tab import Bar, Tab
from slp_guitar.theory import (
    KEY_NAMES,
    SCALE_HALF_STEPS,
    chord_above_root,
    chord_pitch_classes,
    count_notes_in_best_scale,
    estimate_key,
    parse_pitch_class,
    scale_pitch_classes,
)


def test_scales_and_chords_by_hand():
    assert scale_pitch_classes("G", "major") == [7, 9, 11, 0, 2, 4, 6]
    assert scale_pitch_classes("A", "blues") == [9, 0, 2, 3, 4, 7]
    assert scale_pitch_classes("E", "harmonic minor") == [4, 6, 7, 9, 11, 0, 3]
    assert chord_pitch_classes("F#m7b5") == [6, 9, 0, 4]
    assert chord_pitch_classes("Bb7") == [10, 2, 5, 8]
    assert chord_above_root("G", 7, "7") == "D7"


@pytest.mark.parametrize("wrong", ["H", "", "C##", "e"])
def test_what_is_no_note_name_is_refused(wrong):
    with pytest.raises(ValueError, match="no note name"):
        parse_pitch_class(wrong)


# --- Keys ----------------------------------------------------------------------------------------


def scale_in(root, scale):
    """A piece of one octave of a scale that begins and ends on its root, the fifth repeated."""
    steps = [*SCALE_HALF_STEPS[scale], 12, 7, 7, 0, 0]
    frets = [(root - 4) % 12 + step for step in steps]
    bar = Bar(16, tuple(event(i, (6, fret)) for i, fret in enumerate(frets)))
    return Tab(bars=(bar,))


@pytest.mark.parametrize("root", range(12))
def test_the_key_of_a_scale_is_its_own(root):
    assert estimate_key(scale_in(root, "major")) == KEY_NAMES[root]
    assert estimate_key(scale_in(root, "harmonic minor")) == KEY_NAMES[12 + root]


def test_a_piece_without_notes_has_no_key():
    assert estimate_key(Tab()) is None and count_notes_in_best_scale([Tab()]) == (0, 0)


def test_a_capo_and_a_tuning_move_the_key():
    tab = scale_in(0, "major")
    assert estimate_key(replace(tab, tuning=replace(STANDARD, capo=2))) == "D"
    assert estimate_key(replace(tab, tuning=DADGAD)) == "Bb"


def test_notes_in_one_scale_are_those_of_the_best_major_scale():
    chromatic = Tab(bars=(Bar(12, tuple(event(i, (6, i)) for i in range(12))),))
    assert count_notes_in_best_scale([chromatic]) == (7, 12)
    natural = scale_in(9, "minor")
    assert count_notes_in_best_scale([natural]) == (12, 12)
    assert count_notes_in_best_scale([natural, chromatic]) == (19, 24)
