"""Notes that ring on: what is held, and what is cut."""

from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.fingering.ringing import (
    HEARD_SHARE,
    HeldNote,
    count_held_and_cut_notes,
    find_released_notes,
    make_ringing,
)
from slp_guitar.fretboard import Note, Tuning
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique


def test_a_note_is_cut_once_where_its_string_is_struck_before_it_has_rung():
    grips = [(Note(6, 0), Note(1, 3)), (Note(2, 1),), (Note(6, 3),), (Note(6, 0),)]
    ringing = make_ringing([0.0, 1.0, 2.0, 3.0], [(4.0, 1.0), (), (1.1,), (9.0,)])
    # The bass should ring to the end and is cut at 2; the last tenth of what cuts it is not missed.
    assert ringing.ends[0] == [4.0 * HEARD_SHARE, HEARD_SHARE]
    assert count_held_and_cut_notes(grips, ringing) == (1, 1)
    assert count_held_and_cut_notes([*grips[:2], (Note(5, 10),), (Note(5, 7),)], ringing) == (1, 0)
    assert make_ringing([0.0, 1.0], [(0,), ()]) is None and count_held_and_cut_notes(
        grips, None
    ) == (0, 0)
    assert make_ringing([None, 1.0], [(2.0,), (2.0,)]).ends == [[0.0], [1.0 + 2.0 * HEARD_SHARE]]


def test_a_bass_note_rings_through_the_melody_above_it():
    """C3 is held while D3 and E3 are played: they leave the fifth string alone."""
    notes = [(0, Note(5, 3), 3), (1, Note(5, 5), 1), (2, Note(5, 7), 1)]
    events = [Event.from_notes(step, [TabNote(note, steps)]) for step, note, steps in notes]
    piece = piece_from_tab(Tab(bars=(Bar(4, tuple(events)),), steps_per_quarter=1))
    ((_, path),), _ = find_fingerings(piece, FingeringOptions())
    assert path == [(Note(5, 3),), (Note(4, 0),), (Note(4, 2),)]
    rings = (Technique("let ring"),)
    short = [Event.from_notes(step, [TabNote(note, 1, rings)]) for step, note, _ in notes]
    piece = piece_from_tab(Tab(bars=(Bar(4, tuple(short)),), steps_per_quarter=1))
    ((tab, ringing_path),), _ = find_fingerings(piece, FingeringOptions())
    # D3, too, rings on while E3 is played: three strings.
    assert ringing_path == [(Note(6, 8),), (Note(4, 0),), (Note(5, 7),)]
    assert all(event.techniques for event in tab.iter_events())
    low = [(Note(6, 3), 4), (Note(6, 0), 1)]  # G2, then E2: there is one place only, so it is cut
    events = [Event.from_notes(step, [TabNote(*own)]) for step, own in enumerate(low)]
    piece = piece_from_tab(Tab(bars=(Bar(4, tuple(events)),), steps_per_quarter=1))
    ((_, path),), _ = find_fingerings(piece, FingeringOptions())
    assert path == [(Note(6, 3),), (Note(6, 0),)]


def test_a_bass_that_should_ring_is_where_the_hand_can_hold_it_with_what_follows():
    """B2 below a melody up to B4 at the seventh fret is taken on the sixth string."""
    melody = [57, 62, 65, 71, 65, 62]
    tuning = Tuning((0,))
    events = [Event.from_notes(n, [TabNote(Note(1, p), 1)]) for n, p in enumerate(melody)]
    bass = [TabNote(Note(1, 47), 6), *events[0].tab_notes()]
    bar = Bar(6, (Event.from_notes(0, bass), *events[1:]))
    ((_, path),), _ = find_fingerings(piece_from_tab(Tab("", tuning, (bar,))), FingeringOptions())
    assert path[0] == (Note(6, 7), Note(4, 7)) and path[3] == (Note(1, 7),)
    held = (HeldNote(3, 1.0, 0), HeldNote(4, 1.0, 3), HeldNote(5, 1.0, 2), HeldNote(6, 1.0, 1))
    assert find_released_notes(held, (Note(6, 7), Note(1, 5))) == [held[2]]
