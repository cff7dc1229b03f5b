"""Time in tabs: steps that have a unit, time signatures, repeats, pitches without strings."""

import pytest
from guitar_pieces import event

from slp_guitar.fretboard import Note, Tuning
from slp_guitar.playing_order import expand_repeats
from slp_guitar.practice import make_practice_studies
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique, check_tab
from slp_guitar.timing import (
    add_time_signatures,
    columns_to_steps,
    find_common_steps_per_quarter,
    fit_bars_to_time_signature,
    time_signature_of,
    with_coarsest_grid,
)

HAMMER = (Technique("hammer"),)


def named(tempo, steps=4, **said):
    """A bar that is known by its tempo."""
    return Bar(steps, (), tempo_bpm=tempo, **said)


def order(*bars):
    """The tempi of bars in the order in which they are played."""
    tempo, tempi = None, []
    for bar in expand_repeats(Tab(bars=bars)).bars:
        assert (bar.starts_repeat, bar.num_plays, bar.endings) == (False, 0, ())
        tempo = bar.tempo_bpm or tempo
        tempi.append(tempo)
    return tempi


def test_an_event_says_what_is_said_of_its_notes_and_no_more():
    high, low = TabNote(Note(1, 3), 2, HAMMER), TabNote(Note(6, 0), 4, (), 2)
    made = Event.from_notes(5, [high, low])
    assert made == Event(5, (Note(6, 0), Note(1, 3)), (4, 2), ((), HAMMER), (2, 1))
    assert made.tab_notes() == (low, high)
    plain = Event.from_notes(0, [TabNote(Note(2, 1))])
    assert plain == Event(0, (Note(2, 1),)) and plain.tab_notes() == (TabNote(Note(2, 1)),)


def test_columns_become_time_by_an_explicit_step_alone():
    columns = Tab(bars=(Bar(6, (event(3, (1, 0)),)),))
    for needs_time in (with_coarsest_grid, add_time_signatures):
        with pytest.raises(ValueError, match="columns of a text, not time"):
            needs_time(columns)
    timed = columns_to_steps(columns, 2)
    assert (timed.steps_per_quarter, timed.bars) == (2, columns.bars)
    with pytest.raises(ValueError, match="has time already, 2 steps"):
        columns_to_steps(timed)
    with pytest.raises(ValueError, match="1 to 96 steps, not 97"):
        columns_to_steps(columns, 97)


def test_coarser_steps_are_the_same_music():
    tab = Tab(bars=(Bar(24, (event(12, (1, 0), durations=(18,)),)),), steps_per_quarter=24)
    coarse = Tab(bars=(Bar(4, (event(2, (1, 0), durations=(3,)),)),), steps_per_quarter=4)
    assert with_coarsest_grid(tab) == with_coarsest_grid(coarse) == coarse


def test_the_unit_that_holds_some_moments():
    from fractions import Fraction

    assert find_common_steps_per_quarter([Fraction(1, 3), Fraction(3, 4), Fraction(5)]) == 12
    assert find_common_steps_per_quarter([]) == 1
    assert find_common_steps_per_quarter([Fraction(1, 5), Fraction(1, 7), Fraction(1, 3)]) is None


@pytest.mark.parametrize(
    ("steps", "unit", "said", "time_signature"),
    [
        (16, 4, None, (4, 4)),
        (12, 4, None, (3, 4)),
        (12, 4, (6, 8), (6, 8)),
        (12, 3, (6, 8), (4, 4)),
        (7, 4, (4, 4), (7, 16)),
        (7, 2, None, (7, 8)),
        (5, 8, None, (5, 32)),
    ],
)
def test_a_bar_has_its_own_time_signature_if_that_is_as_long(steps, unit, said, time_signature):
    assert time_signature_of(Bar(steps, (), said), unit) == time_signature


def test_a_bar_that_no_time_signature_fits_is_refused():
    with pytest.raises(ValueError, match="4 steps, 3 to a quarter note, has no time signature"):
        time_signature_of(Bar(4, ()), 3)


def test_time_signatures_are_said_where_they_change():
    bars = (Bar(12, (), (6, 8)), Bar(12, ()), Bar(16, ()), Bar(16, ()))
    time_signatures = [
        bar.time_signature for bar in add_time_signatures(Tab(bars=bars, steps_per_quarter=4)).bars
    ]
    assert time_signatures == [(6, 8), None, (4, 4), None]


def test_bars_without_a_time_signature_are_lengthened_and_long_ones_cut():
    notes = (event(0, (1, 0)), event(12, (1, 2)), event(20, (1, 3)))
    tempos = ((5, 60), (12, 70), (20, 80))
    odd = Bar(25, notes, None, 90, starts_repeat=True, num_plays=2, tempo_changes=tempos)
    tab, changed = fit_bars_to_time_signature(
        Tab(bars=(Bar(12, ()), odd), steps_per_quarter=3), max_bar_quarters=4
    )
    assert changed == [2]
    assert tab.bars == (
        Bar(12, ()),
        Bar(12, notes[:1], tempo_bpm=90, starts_repeat=True, tempo_changes=((5, 60),)),
        Bar(12, (event(0, (1, 2)), event(8, (1, 3))), None, 70, tempo_changes=((8, 80),)),
        Bar(3, (), num_plays=2),
    )
    whole = Tab(bars=(Bar(12, ()), Bar(7, ())), steps_per_quarter=4)
    assert fit_bars_to_time_signature(whole) == (whole, [])


def test_repeats_are_unfolded():
    assert order(named(1), named(2, num_plays=2), named(3)) == [1, 2, 1, 2, 3]
    assert order(named(1), named(2, starts_repeat=True), named(3, num_plays=3), named(4)) == [
        1, 2, 3, 2, 3, 2, 3, 4,
    ]  # fmt: skip
    first, second = {"endings": (1,), "num_plays": 2}, {"endings": (2,)}
    assert order(named(1), named(2, **first), named(3, **second), named(4)) == [1, 2, 1, 3, 4]
    twice = order(named(1), named(2, **first), named(3, **second), named(4), named(5, num_plays=2))
    assert twice == [1, 2, 1, 3, 4, 5, 4, 5]
    three = (named(2, endings=(1, 2), num_plays=3), named(3, endings=(3,)))
    assert order(named(1), *three) == [1, 2, 1, 2, 1, 3]
    each = (named(2, endings=(1,), num_plays=2), named(3, endings=(2,), num_plays=2))
    assert order(named(1), *each, named(4, endings=(3,))) == [1, 2, 1, 3, 1, 4]
    assert order(named(1, num_plays=2), named(2, num_plays=2)) == [1, 1, 2, 2]


def test_a_jump_back_says_time_signature_and_tempo_again():
    bars = (Bar(4, (), (4, 4), 60), Bar(3, (), (3, 4), 90, num_plays=2), Bar(3, ()))
    said = [(bar.time_signature, bar.tempo_bpm) for bar in expand_repeats(Tab(bars=bars)).bars]
    assert said == [((4, 4), 60), ((3, 4), 90), ((4, 4), 60), ((3, 4), 90), (None, None)]


def test_repeats_without_end_are_refused():
    with pytest.raises(ValueError, match="more than 10,000 bars"):
        expand_repeats(Tab(bars=(Bar(1, (), num_plays=10**9),)))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"tuning": Tuning((60, 50, 40))}, "4 to 8 strings, not 3"),
        ({"steps_per_quarter": 0}, "1 to 96 steps, not 0"),
        (Bar(0, ()), "Bar 2 has 0 steps"),
        (Bar(4, (), (4, 3)), "Bar 2: 4/3 is not a time signature"),
        (Bar(4, (), tempo_bpm=0), "Bar 2: a tempo is 1 to 1000"),
        (Bar(4, (), tempo_changes=((1, 1001),)), "Bar 2: a tempo is 1 to 1000"),
        (Bar(4, (), tempo_changes=((4, 90),)), r"Bar 2: tempos change at the steps \[4\]"),
        (event(4, (1, 0)), "Bar 2, step 4: events must be in order and inside"),
        (Bar(4, (event(2, (1, 0)), event(1, (1, 0)))), "Bar 2, step 1: events must be in order"),
        (event(0, (1, 0), (1, 2)), r"Bar 2, step 0: strings \[1, 1\]"),
        (event(0, (7, 0)), r"Bar 2, step 0: strings \[7\]"),
        (event(0), r"Bar 2, step 0: strings \[\]"),
        (event(0, (1, -2)), "Bar 2, step 0: a fret is negative"),
        (event(0, (1, 0), durations=(1, 2)), "Bar 2, step 0: 2 details for 1 notes"),
        (event(0, (1, 0), durations=(-1,)), "Bar 2, step 0: .* less than no time"),
        (
            Event(0, (Note(1, 0),), techniques=((Technique("strum"),),)),
            "Bar 2, step 0: 'strum' is not a technique",
        ),
    ],
)
def test_what_cannot_be_written_down_is_named(said, sentence):
    bar = Bar(4, (said,)) if isinstance(said, Event) else said
    tab = Tab(**said) if isinstance(said, dict) else Tab(bars=(Bar(4, ()), bar))
    with pytest.raises(ValueError, match=sentence):
        check_tab(tab)


def test_practice_studies_are_in_time():
    for study in make_practice_studies(0, 60):
        check_tab(study.tab)
        time_signatures = {bar.time_signature for bar in add_time_signatures(study.tab).bars}
        assert time_signatures - {None} <= {(4, 4), (3, 4), (6, 8)}, study.tab.title
