"""Chords that no hand can take are played in parts, in the time that they have."""

import pytest

from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.fretboard import Note, Tuning, is_playable_grip
from slp_guitar.tab import Bar, Event, Tab, TabNote

ROLL = FingeringOptions(unplayable_policy="roll")


def rolled(bars, unit, options=ROLL):
    """Finger bars of moments: step to pitches, all of which last two steps."""
    made = []
    for steps, moments in bars:
        notes = {step: [TabNote(Note(1, p), 2) for p in own] for step, own in moments.items()}
        details = [
            Event(step, tuple(n.note for n in own), (2,) * len(own)) for step, own in notes.items()
        ]
        made.append(Bar(steps, tuple(details), (steps, 4)))
    tab = Tab(tuning=Tuning((0,)), bars=tuple(made), steps_per_quarter=unit)
    ((tab, grips),), changes = find_fingerings(piece_from_tab(tab), options)
    assert all(is_playable_grip(grip) for grip in grips)
    pitches = [
        [
            (event.step, sorted(map(tab.tuning.pitch_of, event.notes)), event.durations)
            for event in bar.events
        ]
        for bar in tab.bars
    ]
    return tab, pitches, dict(changes)


def test_a_wide_chord_is_played_from_the_bass_up_and_ends_when_it_did():
    bars = [(3, {0: (64,)}), (3, {0: (83, 41, 48), 2: (60,)})]
    tab, found, changes = rolled(bars, unit=1)
    assert changes == {"bar 2, moment 1 (beat 1)": "is rolled: F2 C3, then B5"}
    assert tab.steps_per_quarter == 2 and [bar.steps for bar in tab.bars] == [6, 6]
    assert found[0] == [(0, [64], (4,))]
    # an eighth apart; all end together
    assert found[1] == [(0, [41, 48], (4, 4)), (1, [83], (3,)), (4, [60], (4,))]


def test_parts_share_the_time_before_what_comes_next():
    thick = (40, 45, 50, 55, 59, 64, 67)
    bars = [(4, {0: thick, 1: (60,), 3: (41, 83)}), (4, {0: (60,)})]
    tab, found, _ = rolled(bars, unit=8)
    # one thirty-second before the next note: two sixty-fourths
    assert tab.steps_per_quarter == 16 and tab.bars[0].steps == 8
    assert [(step, own) for step, own, _ in found[0]] == [
        (0, [40, 45, 50, 55, 59, 64]), (1, [67]), (2, [60]), (6, [41]), (7, [83]),
    ]  # fmt: skip
    tab, found, _ = rolled([(4, {0: (41, 83), 1: (60,)})], unit=None)
    assert tab.bars[0].steps == 8 and [step for step, *_ in found[0]] == [0, 1, 2]


def test_notes_off_the_neck_are_moved_and_what_has_no_time_is_refused():
    _, found, changes = rolled([(4, {0: (38, 64), 2: (60,)})], unit=4)
    assert changes == {"bar 1, moment 1 (beat 1)": "D2 is moved to D3"}
    assert found[0][0][1] == [50, 64]
    with pytest.raises(ValueError, match=r"bar 1, moment 1 \(beat 1\): F2, B5 are too wide"):
        rolled([(4, {0: (41, 83), 1: (60,)})], unit=24)


def test_moments_are_pinned_by_their_numbers_after_rolling():
    pins = {(1, 2): (Note(1, 19),), (1, 3): (Note(4, 10),)}
    options = FingeringOptions(unplayable_policy="roll", pinned_notes=pins)
    tab, _, _ = rolled([(4, {0: (41, 83), 2: (60,)})], 4, options)
    assert [event.notes for event in tab.iter_events()][1:] == [(Note(1, 19),), (Note(4, 10),)]
