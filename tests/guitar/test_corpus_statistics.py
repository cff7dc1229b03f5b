"""Corpus statistics of tabs made by hand, with known results."""

from dataclasses import replace

import pytest
from guitar_pieces import event

from slp_guitar.corpus_statistics import (
    CopyDetector,
    compute_corpus_statistics,
    compute_hand_shifts,
    compute_playable_share,
    repeated_bar_flags,
)
from slp_guitar.tab import Bar, Event, Note, Tab, Technique


def bar(*moments, steps=16):
    """A bar of moments, one a step, each a list of (string, fret)."""
    events = (Event(i, tuple(Note(*n) for n in moment)) for i, moment in enumerate(moments))
    return Bar(steps, tuple(events))


def line(*frets, string=1):
    return [[(string, fret)] for fret in frets]


def test_the_figures_of_two_small_pieces():
    first = Tab(bars=(bar([(6, 0), (1, 3)], *line(3, 9)), bar(*line(0, 5)), bar(*line(0, 5))))
    second = Tab(bars=(bar([(6, 1), (1, 9)], *line(2)),))
    told = compute_corpus_statistics([first, second], is_complete=[True, False])
    assert (told["pieces"], told["events"], told["length"]) == (2, 9, 4.5)
    assert told["chords"] == 2 / 9
    assert told["playable_events"] == 8 / 9 and told["playable_chords"] == 1 / 2
    # The hand: 3, 3, 9, (open) 5, (open) 5; then 1, 2. Of its moves 0, 6, 4, 0 and 1 one is far.
    assert told["jumps"] == 1 / 5
    assert told["open_strings"] == 3 / 11
    assert told["returning_bars"] == 1 / 4
    assert told["monotonous"] is None and told["longest_copy"] is None and told["mean_copy"] is None
    assert told["ended"] == 1 / 2
    # Two bars have one before them: other steps than the first's, and the same as the second's.
    assert told["same_rhythm"] == 1 / 2
    assert told["usual_length"] == 1
    # E2 and G4 sound well; F2 and C#5 are a minor sixth apart.
    assert told["clashes"] == 0


def test_stretches_of_eight_with_few_different_moments():
    told = compute_corpus_statistics([Tab(bars=(bar(*line(1, 2, 3, 1, 2, 3, 1, 2, 4, 5)),))])
    assert told["monotonous"] == 1 / 3  # the first has three different, the next four and five
    assert compute_corpus_statistics([Tab(bars=(bar(*line(*[1, 2, 3] * 4)),))])["monotonous"] == 1


def test_semitones_in_chords_and_endings_on_the_tonic():
    scale = line(0, 4, 7, 0, 2, 4, 5, 7, 9, 11, 12)  # E major
    home, away = bar(*scale, [(1, 0), (6, 0)]), bar(*scale, [(6, 7), (2, 1)])
    clash = bar(*scale, [(6, 12), (2, 4), (1, 0)])  # E, D sharp and E
    tabs = [Tab(bars=(each,)) for each in (home, away, clash, home)]
    told = compute_corpus_statistics(tabs, is_complete=[True, True, True, False])
    assert told["clashes"] == 2 / 4  # B and C in the second piece, E and D sharp in the third
    assert told["tonic_endings"] == 2 / 3  # the fourth did not end
    assert compute_corpus_statistics(tabs)["tonic_endings"] == 3 / 4


def test_bars_as_long_as_most_of_their_own_piece():
    three, four = bar(steps=3), bar(steps=4)
    tabs = [Tab(bars=(three, four, three)), Tab(bars=(four, four)), Tab(bars=(three, four)), Tab()]
    assert compute_corpus_statistics(tabs)["usual_length"] == 5 / 7


def test_a_bar_returns_only_with_its_length_its_steps_and_its_notes():
    one = bar(*line(1, 2))
    later = Bar(16, (Event(0, one.events[0].notes), Event(3, one.events[1].notes)))
    tab = Tab(bars=(one, bar(steps=16), bar(steps=16), replace(one, steps=12), later, one, one))
    # Bars of rests do not count.
    assert repeated_bar_flags(tab) == [False, False, False, True, True]
    assert repeated_bar_flags(Tab(bars=(one,))) == [False]  # each piece is for itself


def test_nothing_has_no_figures():
    told = compute_corpus_statistics([])
    assert (told["pieces"], told["events"]) == (0, 0)
    assert {v for k, v in told.items() if k not in ("pieces", "events")} == {None}


def test_dead_notes_do_not_sound():
    dead = Event(0, (Note(6, 0), Note(1, 2)), techniques=((Technique("dead"),), ()))
    told = compute_corpus_statistics([Tab(bars=(Bar(4, (dead,)),))])
    assert (told["events"], told["chords"], told["open_strings"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("frets", "longest"),
    [
        ([1, 2, 3, 4], 4),  # all of the first piece's beginning
        ([9, 2, 3, 4, 9], 3),
        ([5, 7, 8], 2),  # a run does not reach from one piece into the next
        ([11, 12], 0),
        ([7, 7, 7], 1),
        ([], 0),
    ],
)
def test_the_longest_run_that_is_copied(frets, longest):
    copies = CopyDetector(
        [Tab(bars=(bar(*line(1, 2, 3)), bar(*line(4, 5)))), Tab(bars=(bar(*line(7, 8)),))]
    )
    assert copies.longest_copied_run_length(Tab(bars=(bar(*line(*frets)),))) == longest


def test_copies_of_several_pieces_are_summed_up():
    learned = CopyDetector([Tab(bars=(bar(*line(1, 2, 3, 4)),))])
    tabs = [Tab(bars=(bar(*line(*frets)),)) for frets in ([2, 3, 4], [4, 3])]
    told = compute_corpus_statistics(tabs, learned)
    assert (told["longest_copy"], told["mean_copy"]) == (3, 2.0)


# --- Playing -------------------------------------------------------------------------------------


def test_playable_share_by_hand():
    events = [
        event(0, (6, 3), (5, 2), (1, 3)),
        event(1, (6, 3), (1, 8)),
        event(2, (6, 0), (1, 12)),
        event(3, (2, 20)),
        Event(4, (Note(2, 1), Note(2, 3))),
    ]
    assert compute_playable_share(events) == 2 / 5
    assert compute_playable_share(events, max_span=5) == 3 / 5
    assert compute_playable_share(events, max_fret=24) == 3 / 5
    assert compute_playable_share([]) == 0.0


@pytest.mark.parametrize("note", [Note(0, 1), Note(7, 1), Note(3, -1)])
def test_a_note_off_the_guitar_cannot_be_played(note):
    assert compute_playable_share([Event(0, (note,))]) == 0.0


def test_hand_shifts_by_hand():
    events = [event(0, (6, 3), (5, 5)), event(1, (1, 0)), event(2, (1, 7), (2, 0))]
    events.append(event(3, (1, 5)))
    assert compute_hand_shifts(events) == [4, 2]
