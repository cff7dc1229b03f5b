"""Notes that ring on: what is held, what is cut, and the cheapest fingering of all."""

import itertools
import random

import pytest

from slp_transformer.guitar.fingering import viterbi
from slp_transformer.guitar.fingering.fingering_pieces import (
    find_fingerings,
    piece_from_tab,
)
from slp_transformer.guitar.fingering.grips import find_grips
from slp_transformer.guitar.fingering.playable_chords import FingeringOptions
from slp_transformer.guitar.fingering.ringing import (
    HEARD_SHARE,
    MAX_HELD_STATES,
    RingingLattice,
    count_held_and_cut_notes,
    make_ringing,
)
from slp_transformer.guitar.fingering.viterbi import HandCosts, find_cheapest_path, price_grips
from slp_transformer.guitar.fretboard import STANDARD, Note
from slp_transformer.guitar.tab import Bar, Event, Tab, TabNote


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


def random_piece(chance, num_moments, num_grips):
    choices = []
    while len(choices) < num_moments:
        pitches = tuple(sorted(chance.sample(range(45, 70), 1 + len(choices) % 2)))
        if found := find_grips(pitches, STANDARD):
            choices.append(chance.sample(found, min(num_grips, len(found))))
    lasting = [[chance.choice([0, 1, 2, 5]) for _ in choice[0]] for choice in choices]
    return choices, make_ringing(range(num_moments), lasting)


def test_path_and_prices_are_the_cheapest_of_all(monkeypatch):
    hands_there, chance = (1, 5, 9), random.Random(3)
    monkeypatch.setattr(viterbi, "HAND_FRETS", hands_there)
    costs, num_cut = HandCosts(per_move=0.1, per_fret_moved=0.1, per_cut_note=1.7), 0
    for _ in range(5):
        choices, ringing = random_piece(chance, 5, 2)

        def cost(path, ringing=ringing):
            own = find_cost_without(path)
            return own + costs.per_cut_note * count_held_and_cut_notes(path, ringing)[1]

        def find_cost_without(path):
            return min(
                sum(costs.move_cost(a, b) for a, b in itertools.pairwise(hands))
                + sum(map(costs.grip_cost, path, hands))
                for hands in itertools.product(hands_there, repeat=len(path))
            )

        every = {path: cost(path) for path in itertools.product(*choices)}
        lattice = RingingLattice(choices, costs, None, ringing)
        path, prices = tuple(lattice.find_cheapest_path()), lattice.price_grips()
        assert every[path] == pytest.approx(min(every.values()))
        num_cut += path != tuple(find_cheapest_path(choices, costs))
        for t, choice in enumerate(choices):
            for grip, price in zip(choice, prices[t], strict=True):
                through = min(each for other, each in every.items() if other[t] == grip)
                assert price == pytest.approx(through)
    assert num_cut > 0  # what rings on has changed fingerings


def test_without_durations_it_is_the_shorter_program():
    choices, _ = random_piece(random.Random(8), 30, 3)
    lattice = RingingLattice(choices, HandCosts(), lambda t, grip: 0.1 * grip[0].string, None)
    assert lattice.find_cheapest_path() == find_cheapest_path(
        choices, HandCosts(), lambda t, grip: 0.1 * grip[0].string
    )
    expected = price_grips(choices, HandCosts(), lambda t, grip: 0.1 * grip[0].string)
    assert lattice.price_grips() == [pytest.approx(own) for own in expected]
    assert RingingLattice([], HandCosts(), None, None).price_grips() == []


def test_a_full_beam_still_has_a_price_for_each_grip():
    chance = random.Random(4)
    choices = [find_grips((p,), STANDARD) for p in chance.choices(range(55, 65), k=40)]
    ringing = make_ringing(range(40), [[9.0]] * 40)
    lattice = RingingLattice(choices, HandCosts(), None, ringing)
    assert max(map(len, lattice._paid)) > MAX_HELD_STATES
    cheapest = [min(own) for own in lattice.price_grips()]
    assert max(max(own) for own in lattice.price_grips()) < 100
    assert cheapest == pytest.approx([cheapest[0]] * 40)


def test_a_bass_note_rings_through_the_melody_above_it():
    """C3 is held while D3 and E3 are played: they leave the fifth string alone."""
    notes = [(0, Note(5, 3), 3), (1, Note(5, 5), 1), (2, Note(5, 7), 1)]
    events = [Event.from_notes(step, [TabNote(note, steps)]) for step, note, steps in notes]
    piece = piece_from_tab(Tab(bars=(Bar(4, tuple(events)),), steps_per_quarter=1))
    ((_, path),), _ = find_fingerings(piece, FingeringOptions())
    assert path == [(Note(5, 3),), (Note(4, 0),), (Note(4, 2),)]
    low = [(Note(6, 3), 4), (Note(6, 0), 1)]  # G2, then E2: there is one place only, so it is cut
    events = [Event.from_notes(step, [TabNote(*own)]) for step, own in enumerate(low)]
    piece = piece_from_tab(Tab(bars=(Bar(4, tuple(events)),), steps_per_quarter=1))
    ((_, path),), _ = find_fingerings(piece, FingeringOptions())
    assert path == [(Note(6, 3),), (Note(6, 0),)]
