"""Notes that ring on: what is held, and what is cut."""

from slp_transformer.guitar.fingering.fingering_pieces import find_fingerings
from slp_transformer.guitar.fingering.playable_chords import FingeringOptions
from slp_transformer.guitar.fingering.playable_pieces import piece_from_tab
from slp_transformer.guitar.fingering.ringing import (
    HEARD_SHARE,
    count_held_and_cut_notes,
    make_ringing,
)
from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Bar, Event, Tab, TabNote, Technique


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
    assert ringing_path == path and all(event.techniques for event in tab.iter_events())
    low = [(Note(6, 3), 4), (Note(6, 0), 1)]  # G2, then E2: there is one place only, so it is cut
    events = [Event.from_notes(step, [TabNote(*own)]) for step, own in enumerate(low)]
    piece = piece_from_tab(Tab(bars=(Bar(4, tuple(events)),), steps_per_quarter=1))
    ((_, path),), _ = find_fingerings(piece, FingeringOptions())
    assert path == [(Note(6, 3),), (Note(6, 0),)]
