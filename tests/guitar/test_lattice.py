"""Costs of the hand: the cheapest fingering of all, what is remembered, and a fit's likelihood."""

import itertools
import math
import random
from dataclasses import replace

import pytest

from slp_guitar.fingering import costs as hand_costs
from slp_guitar.fingering import features, lattice
from slp_guitar.fingering.costs import UNIT, HandCosts, load_weights
from slp_guitar.fingering.features import CUT, RELEASED, Memory, classify_gaps
from slp_guitar.fingering.grips import find_grips
from slp_guitar.fingering.lattice import FingeringLattice
from slp_guitar.fingering.passages import Passage
from slp_guitar.fingering.ringing import count_held_and_cut_notes, find_released_notes
from slp_guitar.fretboard import STANDARD, Note

HANDS = (1, 5, 9)


def random_passage(chance, num_moments, num_grips):
    choices, moments = [], []
    while len(choices) < num_moments:
        pitches = tuple(sorted(chance.sample(range(45, 70), 1 + len(choices) % 2)))
        if found := find_grips(pitches, STANDARD):
            moments.append(pitches)
            choices.append(chance.sample(found, min(num_grips, len(found))))
    lasting = tuple(tuple(chance.choice([0, 1, 2, 5]) for _ in own) for own in moments)
    onsets = tuple(itertools.accumulate(chance.choice([1.0, 1.0, 0.5, 2.0]) for _ in moments))
    return Passage(STANDARD, tuple(moments), onsets=onsets, durations=lasting), choices


def random_weights(chance, of=lambda name: True):
    return {name: chance.randint(-512, 2048) * UNIT for name in load_weights() if of(name)}


def is_of_memory(name):
    return name.startswith(("elsewhere", "other grip"))


def price_path(passage, path, costs):
    """What a fingering costs with the hand where that is cheapest, from the features alone."""
    classes, cost = classify_gaps(passage.onsets), 0.0
    memory = Memory({}, {})
    for t, (pitches, grip) in enumerate(zip(passage.moments, path, strict=True)):
        if t:
            last = passage.moments[t - 1]
            cost += costs.price(features.pair_features(path[t - 1], grip, last, pitches))
        cost += costs.price(features.memory_features(t, pitches, grip, memory))
        memory = memory.remember(t, pitches, grip)
    held = ()
    for t, grip in enumerate(path):
        released = find_released_notes(held, grip)
        cost += costs.price(features.ringing_features(held, grip))
        held = passage.ringing().held_after(t, [n for n in held if n not in released], grip)
    own = [[costs.price_at_each_fret(grip)[k] for k in range(len(HANDS))] for grip in path]
    roads = [
        costs.move_costs(classes[t], not any(note.fret for note in path[t - 1]))
        for t in range(1, len(path))
    ]
    return cost + min(
        sum(own[t][hand] for t, hand in enumerate(hands))
        + sum(roads[t][b][a] for t, (a, b) in enumerate(itertools.pairwise(hands)))
        for hands in itertools.product(range(len(HANDS)), repeat=len(path))
    )


def test_path_and_prices_are_the_cheapest_of_all(monkeypatch):
    monkeypatch.setattr(hand_costs, "HAND_FRETS", HANDS)
    chance, num_cut = random.Random(3), 0
    for _ in range(5):
        passage, choices = random_passage(chance, 4, 2)
        costs = HandCosts(random_weights(chance, lambda name: not is_of_memory(name)))
        every = {path: price_path(passage, path, costs) for path in itertools.product(*choices)}
        found = FingeringLattice(passage, choices, costs)
        path, prices = tuple(found.find_cheapest_path()), found.price_grips()
        assert every[path] == min(every.values())
        num_cut += count_held_and_cut_notes(path, passage.ringing())[0]
        for t, choice in enumerate(choices):
            through = [min(c for p, c in every.items() if p[t] == grip) for grip in choice]
            assert prices[t] == through
    assert num_cut > 0


def test_a_pitch_stays_where_it_was_a_moment_ago_and_is_forgotten_later():
    low, high, other = (Note(2, 5),), (Note(1, 0),), (Note(4, 2),)
    weights = {"elsewhere than within 4 moments": 1.0, "frets": -0.125}
    for gap, expected in ((2, high), (4, high), (5, low), (70, low)):
        passage = Passage(STANDARD, ((64,), *((52,),) * (gap - 1), (64,)))
        choices = [[high], *[[other]] * (gap - 1), [low, high]]
        found = FingeringLattice(passage, choices, HandCosts(weights))
        assert found.find_cheapest_path()[-1] == expected
    chords = [(Note(3, 0), Note(2, 0)), (Note(3, 0), Note(2, 0))]
    elsewhere = (Note(4, 5), Note(3, 4))
    passage = Passage(STANDARD, ((55, 59), (52,), (55, 59)))
    choices = [chords[:1], [other], [elsewhere, chords[1]]]
    costs = HandCosts({"other grip than for the same chord": 2.0, "frets": -0.125})
    assert FingeringLattice(passage, choices, costs).find_cheapest_path()[-1] == chords[1]


def test_a_full_beam_still_has_a_price_for_each_grip():
    chance = random.Random(4)
    moments = tuple((p,) for p in chance.choices(range(55, 65), k=40))
    passage = Passage(STANDARD, moments, (), tuple(map(float, range(40))), "", ((9.0,),) * 40)
    choices = [find_grips(own, STANDARD) for own in moments]
    costs = HandCosts(random_weights(chance, lambda name: not is_of_memory(name)))
    found = FingeringLattice(passage, choices, costs)
    assert max(map(len, found._paid)) >= lattice.MAX_STATES
    cheapest = [min(own) for own in found.price_grips()]
    assert max(max(own) for own in found.price_grips()) < math.inf
    assert cheapest == [cheapest[0]] * 40
    assert FingeringLattice(Passage(STANDARD, ()), [], costs).price_grips() == []


def test_what_a_guitarist_asks_for_is_a_cost_of_its_own():
    grip = (Note(6, 0), Note(1, 3))
    plain = HandCosts(load_weights()).price_at_each_fret(grip)
    # An open string is six frets away from the seventh position, unless such strings are wanted.
    for open_string_cost, own in ((-1.0, -1.0), (0.0, 6.0), (2.0, 8.0)):
        asked = HandCosts(open_string_cost=open_string_cost, preferred_position=7)
        more = [b - a for a, b in zip(plain, asked.price_at_each_fret(grip), strict=True)]
        assert more == [own + abs(hand - 7) for hand in range(1, 16)]


def test_what_a_hand_would_rather_not_do_is_counted_fret_by_fret():
    costs = HandCosts({
        "frets behind the index": 3.0, "frets of stretch": 2.0, "frets": 0.5,
        "chord: skipped strings": 0.25, "chord: open strings": -1.0,
        "move, time usual": 0.5, "frets moved, time usual": 0.75,
    })  # fmt: skip
    open_and_behind = (Note(5, 2), Note(1, 0))
    assert costs.price_at_each_fret(open_and_behind)[3] == 0.5 * 2 + 3.0 * 2 - 1.0 + 0.25 * 3
    assert costs.price_at_each_fret((Note(4, 8),))[3] == 0.5 * 8 + 2.0
    moves = costs.move_costs("usual", was_open=False)
    assert moves[4][4] == 0 and moves[4][1] == moves[1][4] == 0.5 + 0.75 * 3


def find_path(*pitches, tuning=STANDARD, **asked):
    passage = Passage(tuning, tuple((p,) if isinstance(p, int) else p for p in pitches))
    return lattice.find_cheapest_fingering(passage, HandCosts(**asked))


def test_a_scale_stays_in_the_first_position_or_in_the_one_that_is_asked_for():
    path = find_path(48, 50, 52, 53, 55, 57, 59, 60)
    places = "5.3 4.0 4.2 4.3 3.0 3.2 2.0 2.1".split()
    assert [f"{note.string}.{note.fret}" for (note,) in path] == places
    a_major = [57 - 12 + p for p in (0, 2, 4, 5, 7, 9, 11, 12, 14, 16, 17, 19, 21, 23, 24)]
    frets = [note.fret for (note,) in find_path(*a_major, *a_major[::-1], preferred_position=4)]
    assert set(frets) == {4, 5, 6, 7}


def test_the_hand_remembers_its_place_through_open_strings_and_goes_where_it_is_needed():
    """An open string between two notes at fret 9 does not bring the hand back to the nut."""
    path = find_path(73, 71, 64, 71, 73)
    assert path[2][0].fret == 0 and path[1] == path[3] and path[1][0].fret == path[0][0].fret - 2
    choices = [[(Note(6, 1),)], [(Note(2, 1),), (Note(4, 10),)], [(Note(1, 12),)]]
    passage = Passage(STANDARD, ((41,), (60,), (41,), (76,), (60,), (76,)))
    some = [choices[k] for k in (0, 1, 0, 2, 1, 2)]
    path = FingeringLattice(passage, some, HandCosts()).find_cheapest_path()
    assert path[1] == (Note(2, 1),) and path[4] == (Note(4, 10),)


def test_open_strings_are_wanted_or_shunned():
    scale = (60, 62, 64, 65, 67, 69, 71, 72)
    opens = [
        sum(grip[0].fret == 0 for grip in find_path(*scale, open_string_cost=cost))
        for cost in (-5.0, 5.0)
    ]
    assert opens == [1, 0]  # E4 is the one open string of this scale


def test_a_style_is_what_two_thirds_of_the_chords_are():
    fifths, seventh, triad = (45, 52, 57), (50, 57, 60, 65), (48, 52, 55, 60)
    assert features.find_style([fifths] * 2) == "" and features.find_style([seventh] * 2) == ""
    assert features.find_style([fifths] * 3 + [(60,)] * 9) == "movable"
    assert features.find_style([seventh] * 4 + [triad] * 2) == "comping"
    assert features.find_style([seventh] * 4 + [triad] * 3) == ""
    grip = (Note(4, 0), Note(3, 2), Note(2, 1), Note(1, 1))
    assert list(features.style_features(grip, "comping")) == [(features.COMPING_OPEN, 1)]
    assert list(features.style_features(grip[:1], "comping")) == []
    assert list(features.style_features(grip, "")) == []


def test_chords_for_comping_have_no_open_strings():
    """Dm7, G7, Cmaj7, A7, four strings each: what xx0211 would take from the neck."""
    jazz = [(50, 57, 60, 65), (43, 53, 59, 62), (48, 55, 59, 64), (45, 55, 61, 64)]
    assert all(note.fret for grip in find_path(*jazz) for note in grip)
    assert any(not note.fret for grip in find_path(*jazz[:2]) for note in grip)


@pytest.mark.parametrize(
    ("phrase", "places"),
    [
        # Without a weight each there are open strings among these: of the steps that skip strings,
        # of notes that go against the pitch in a line, above a bass, in chords; of crossed strings.
        ([72, 69, 67, 69, 64, 62, 60, 64], "1.8 1.5 2.8 1.5 2.5 3.7 3.5 2.5"),
        ([71, 69, 67, 64, 67, 71], "1.7 1.5 2.8 2.5 2.8 1.7"),
        ([(45, 64), 67, 69, 71, 72], "5.0/2.5 2.8 1.5 1.7 1.8"),
        (
            [(62, 66), (64, 67), (66, 69), (67, 71), (66, 69), (64, 67), (62, 66)],
            "2.3/1.2 2.5/1.3 2.7/1.5 2.8/1.7 2.7/1.5 2.5/1.3 2.3/1.2",
        ),
        (
            [(45, 52, 57), (48, 55, 60), (50, 57, 62), (48, 55, 60)],
            "5.0/4.2/3.2 5.3/4.5/3.5 5.5/4.7/3.7 5.3/4.5/3.5",
        ),
    ],
)
def test_a_higher_note_is_on_a_higher_string_and_none_is_skipped_on_the_way(phrase, places):
    path = find_path(*phrase)
    assert " ".join("/".join(f"{n.string}.{n.fret}" for n in g) for g in path) == places


def test_the_weights_that_the_package_brings_are_exact_and_each_is_used():
    weights = load_weights()
    assert all(weight / UNIT == int(weight / UNIT) for weight in weights.values())
    chance, seen = random.Random(1), {CUT, RELEASED}
    grips = [(Note(s, f),) for s in range(1, 7) for f in range(14)]
    chords = [g for k in (2, 3) for _ in range(60) if len(g := random_chord(chance, k)) == k]
    memory = Memory({}, {})
    for grip in [*grips, *chords]:
        seen |= {name for name, _ in features.grip_features(grip)}
        for style in ("movable", "comping"):
            seen |= {name for name, _ in features.style_features(grip, style)}
        for hand in range(1, 16):
            seen |= {name for name, _ in features.hand_features(grip, hand)}
        for before in chance.sample([*grips, *chords], 30):
            both = [tuple(map(STANDARD.pitch_of, own)) for own in (before, grip)]
            seen |= {name for name, _ in features.pair_features(before, grip, *both)}
        pitches = tuple(map(STANDARD.pitch_of, grip))
        memory = memory.remember(0, pitches, grip)
        for lag in (2, 9, 33):
            seen |= {name for name, _ in features.memory_features(lag, pitches, grip, memory)}
    for time_class, was_open in itertools.product(features.TIME_CLASSES, (False, True)):
        for apart in (1, 2, 7):
            seen |= {n for n, _ in features.move_features(1, 1 + apart, time_class, was_open)}
    assert set(weights) == seen


def random_chord(chance, size):
    strings = sorted(chance.sample(range(1, 7), size), reverse=True)
    notes = [Note(string, chance.choice([0, 1, 2, 3, 5])) for string in strings]
    return tuple(sorted(notes, key=lambda note: (STANDARD.pitch_of(note), -note.string)))


def test_time_is_classed_by_the_piece_s_median():
    assert classify_gaps([0.0, 1.0, 2.0, 2.5, 5.0]) == [
        "unknown",
        "usual",
        "usual",
        "short",
        "long",
    ]
    assert classify_gaps([None, 1.0, 1.0, None]) == ["unknown"] * 4


def test_the_likelihood_is_that_of_all_paths_counted_one_by_one(monkeypatch):
    torch = pytest.importorskip("torch")
    from slp_guitar.fingering import cost_fitting

    monkeypatch.setattr(cost_fitting, "HAND_FRETS", HANDS)
    monkeypatch.setattr(hand_costs, "HAND_FRETS", HANDS)
    chance = random.Random(5)
    passage, _ = random_passage(chance, 3, 1)
    choices = [find_grips(own, STANDARD) for own in passage.moments]
    assert all(2 <= len(choice) <= cost_fitting.MAX_GRIPS for choice in choices)
    passage = replace(passage, grips=tuple(choice[-1] for choice in choices))
    fitter = cost_fitting.CostFitter([passage], HandCosts())
    remembered = lattice.find_cheapest_fingering(passage)
    weights = {name: chance.uniform(-0.5, 1) for name in fitter.names}
    costs, classes = HandCosts(weights), classify_gaps(passage.onsets)
    fitter.weights.data[:] = torch.tensor(list(map(weights.get, fitter.names)), dtype=torch.float64)
    total, of_written, memory, held = 0.0, 0.0, Memory({}, {}), ()
    past, num_held = [], 0
    for t, pitches in enumerate(passage.moments):
        past.append({
            grip: costs.price(features.memory_features(t, pitches, grip, memory))
            + costs.price(features.ringing_features(held, grip))
            for grip in choices[t]
        })  # fmt: skip
        memory = memory.remember(t, pitches, remembered[t])
        held = passage.ringing().held_after(t, held, remembered[t])
        num_held += len(held)
    assert num_held
    for path in itertools.product(*choices):
        cost = sum(own[grip] for own, grip in zip(past, path, strict=True))
        for t in range(1, len(path)):
            both = passage.moments[t - 1 : t + 1]
            cost += costs.price(features.pair_features(path[t - 1], path[t], *both))
        for hands in itertools.product(range(len(HANDS)), repeat=len(path)):
            more = sum(costs.price_at_each_fret(g)[h] for g, h in zip(path, hands, strict=True))
            for t in range(1, len(path)):
                move = (HANDS[hands[t - 1]], HANDS[hands[t]], classes[t])
                was_open = not any(note.fret for note in path[t - 1])
                more += costs.price(features.move_features(*move, was_open))
            total += math.exp(-cost - more)
            of_written += math.exp(-cost - more) * (path == passage.grips)
    (loss,) = fitter.losses(torch.arange(1)).tolist()
    assert loss == pytest.approx(math.log(total / of_written), rel=1e-9)
