"""From pitches to places: grips, the cheapest fingering, baselines, and how they are measured."""

import itertools
import json
import random
from dataclasses import replace

import pytest
from guitar_pieces import timed

from slp_guitar.fingering.fingering_pieces import find_doubtful_moments, find_fingerings
from slp_guitar.fingering.grips import (
    UnplayableError,
    allowed_next_notes,
    find_grips,
    find_playable_grips,
    place_on_lowest_frets,
)
from slp_guitar.fingering.passages import (
    FingeringMetrics,
    compare_fingerings,
    passage_from_grips,
    passage_from_tab,
    read_passages_jsonl,
    sum_metrics,
)
from slp_guitar.fingering.playable_chords import FingeringOptions, fit_chord_to_guitar
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.fingering.questions import (
    find_repeats,
    rank_questions,
    spread_answers,
)
from slp_guitar.fretboard import (
    DROP_D,
    NAMED_TUNINGS,
    STANDARD,
    Note,
    Tuning,
    is_playable_grip,
)
from slp_guitar.hand import FINGERS, choose_fingers
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique

C_MAJOR = (48, 52, 55, 60, 64)
OPEN_C = (Note(5, 3), Note(4, 2), Note(3, 0), Note(2, 1), Note(1, 0))


def random_chord(chance: random.Random, size: int, tuning: Tuning = STANDARD) -> tuple[int, ...]:
    return tuple(sorted(chance.randint(min(tuning.open_pitches), 76) for _ in range(size)))


# --- Grips ---------------------------------------------------------------------------------------


def test_a_single_note_has_the_grips_of_its_places():
    assert find_grips((64,), STANDARD) == tuple((place,) for place in STANDARD.positions_of(64))


@pytest.mark.parametrize("tuning", [STANDARD, DROP_D, Tuning(capo=3), Tuning((67, 60, 64, 72))])
def test_grips_are_all_the_places_that_one_hand_can_hold(tuning):
    chance = random.Random(7)
    for size in (2, 3, 4):
        for _ in range(12):
            pitches = random_chord(chance, size, tuning)
            if len(set(pitches)) < size:
                continue
            every = itertools.product(*(tuning.positions_of(pitch) for pitch in pitches))
            expected = {grip for grip in every if is_playable_grip(grip, tuning=tuning)}
            assert set(find_grips(pitches, tuning)) == expected


def test_a_well_known_chord_is_among_its_grips():
    found = find_grips(C_MAJOR, STANDARD)
    assert OPEN_C in found and len(found) == len(set(found)) > 1


def test_equal_pitches_take_strings_from_low_to_high():
    """Two grips that differ only in which of two equal notes is which are one grip."""
    pairs = itertools.combinations(STANDARD.positions_of(64), 2)
    expected = {pair for pair in pairs if is_playable_grip(pair)}
    assert set(find_grips((64, 64), STANDARD)) == expected and len(expected) == 5


def test_the_next_note_leaves_a_place_to_those_that_come():
    chance = random.Random(3)
    for _ in range(25):
        pitches = random_chord(chance, 3)
        whole = set(find_grips(pitches, STANDARD))
        if not whole:
            continue
        begun = ()
        while len(begun) < 3:
            places = allowed_next_notes(begun, pitches, STANDARD)
            assert places and all(
                any(grip[: len(begun) + 1] == (*begun, place) for grip in whole) for place in places
            )
            begun = (*begun, chance.choice(places))
        assert begun in whole


def test_a_stretch_is_taken_only_where_there_is_no_other_way():
    wide = (43, 72)  # G on the sixth string alone, at fret 3; C from fret 8 upwards
    assert find_grips(wide, STANDARD) == ()
    (grip,) = find_playable_grips(wide, STANDARD)
    assert grip == (Note(6, 3), Note(1, 8))
    assert find_playable_grips(C_MAJOR, STANDARD) == find_grips(C_MAJOR, STANDARD)
    assert find_playable_grips(C_MAJOR, STANDARD, max_fret=3) == (OPEN_C,)  # a neck below the span


@pytest.mark.parametrize(
    ("pitches", "why"),
    [
        ((39,), "D#2 is not on this neck, which goes from E2 to B5"),
        ((40, 90), "F#6 is not on this neck"),
        ((41, 70), "F2, A#4 are too wide apart for one hand"),
        ((41, 83), "F2, B5 are too wide apart for one hand"),
        ((40, 41), "E2, F2 cannot sound together: one needs a string that another takes"),
        ((40, 45, 50, 55, 59, 64, 69), "7 notes at once need more than 6 strings"),
    ],
)
def test_what_no_hand_can_play_is_refused(pitches, why):
    with pytest.raises(UnplayableError, match=why):
        find_playable_grips(pitches, STANDARD)


def test_the_first_question_is_the_one_that_settles_most():
    """Of equal margins the moment that comes three times; neighbors of a question come last."""
    pitches = [(60,), (62,), (64,)] * 3 + [(67,)] * 5
    repeats = find_repeats(pitches)
    assert repeats[1] == [1, 4, 7] and repeats[2] == [2, 5] and repeats[0] == [0]
    assert repeats[10] == [10, 11, 12]
    prices = [[0.0, 5.0]] * 14
    prices[13] = [3.0]
    assert rank_questions(prices, repeats) == [1, 10, 2, 3, 0, 8, 9]
    prices[0] = [0.25, 0.0]  # 1 in 2.25 is more than 3 in 7
    assert rank_questions(prices, repeats) == [0, 10, 3, 1, 2, 8, 9]


def test_an_answer_holds_at_repeats_unless_they_have_their_own():
    repeats = find_repeats([(60,), (62,), (64,)] * 4)
    assert spread_answers({4: "a"}, repeats) == {1: "a", 4: "a", 7: "a", 10: "a"}
    assert spread_answers({7: "b", 1: "a"}, repeats) == {1: "a", 4: "b", 7: "b", 10: "b"}


def finger_chords(grips, tuning):
    """The fingering that a piece of written grips gets anew, as frets."""
    bar = Bar(len(grips), tuple(Event(n, grip) for n, grip in enumerate(grips)))
    piece = piece_from_tab(Tab(tuning=tuning, bars=(bar,)))
    ((_, path),), _ = find_fingerings(piece, FingeringOptions(tuning))
    return [sorted(note.fret for note in grip) for grip in path]


def test_a_piece_of_power_chords_keeps_one_shape_and_open_strings_out_of_it():
    power = [tuple(Note(string, fret) for string in (6, 5, 4)) for fret in (0, 3, 5, 8, 7)]
    assert finger_chords(power, DROP_D) == [[n] * 3 for n in (0, 3, 5, 8, 7)]
    seven = NAMED_TUNINGS["seven-string"]
    again = [(Note(7, n), Note(6, n + 2), Note(5, n + 2)) for n in (0, 1, 0, 4)]
    assert finger_chords(again, seven)[3] == [4, 6, 6]  # not 1 1 4 over a string that is skipped
    few = [power[0], power[2]]
    assert finger_chords(few, DROP_D)[1] == [0, 0, 5]
    assert finger_chords([*few, power[0]], DROP_D)[1] == [5, 5, 5]
    fifths = [(Note(6, n), Note(5, n + 2)) for n in (9, 12, 9, 11)]
    # A fifth over a string that is skipped, 9 and 6, is no octave.
    assert finger_chords(fifths, STANDARD) == [[4, 6], [7, 9], [4, 6], [6, 8]]
    parallel = [(Note(5, n), Note(4, n + 2), Note(3, n + 2)) for n in (1, 4, 3)]
    assert finger_chords(parallel, STANDARD) == [[1, 3, 3], [4, 6, 6], [3, 5, 5]]
    triads = [(Note(5, 3), Note(4, 2), Note(3, 0))] * 3  # three chords in six
    assert finger_chords([*few, *triads, power[0]], DROP_D)[1] == [0, 0, 5]


def test_octaves_keep_one_shape_without_open_strings():
    octaves = [(Note(4, fret), Note(2, fret + 3)) for fret in (5, 7, 8, 5)]  # G3 could be open
    assert finger_chords(octaves, STANDARD) == [[5, 8], [7, 10], [8, 11], [5, 8]]


@pytest.mark.parametrize(
    ("pitches", "dropped"),
    [
        ((41, 53, 69, 72, 77), [41]),  # four of the five are a barre at the thirteenth fret
        ((40, 43, 47, 52, 55, 59, 64), [43]),  # its octave sounds, too
        ((40, 45, 50, 55, 59, 62, 67), [50]),  # not 45, which has none
        ((41, 83), [41]),
        ((41, 48, 83), [41, 48]),  # the melody stays, whatever that costs
        (tuple(range(31, 90)), [p for p in range(31, 90) if p not in (40, 78, 83)]),
    ],
)
def test_as_few_notes_as_possible_are_left_out(pitches, dropped):
    options = FingeringOptions(unplayable_policy="drop")
    left, changes, _ = fit_chord_to_guitar(pitches, options)
    assert [pitch for pitch in pitches if pitch not in left] == dropped
    assert find_grips(tuple(left), STANDARD, 19, 19) and len(changes) == len(dropped)


def test_a_note_that_rings_on_leaves_its_string_alone_until_it_comes_again_or_its_bar_ends():
    lets = (Technique("let ring"),)
    notes = [TabNote(Note(2, 1), 1, lets), TabNote(Note(1, 0), 1), TabNote(Note(1, 3), 9, lets)]
    events = [Event.from_notes(step, [each]) for step, each in zip((2, 3, 5), notes, strict=True)]
    piece = piece_from_tab(timed(Bar(8, tuple(events))))
    assert piece.ringing_steps(piece.moments) == ((6.0,), (1.0,), (9.0,))
    again = Bar(8, (*events, Event.from_notes(7, [notes[0]])))
    piece = piece_from_tab(timed(again, again))
    assert [own[0] for own in piece.ringing_steps(piece.moments)] == [5, 1, 9, 1] * 2


TECHNIQUES_BY_PLACE = [  # at (string, fret), what leads on, and where a capo brings the notes
    ((2, 5), "bend", 0, (), "bends"),  # an open string is not bent
    ((2, 5), "let ring", 0, ("let ring",), ""),
    ((2, 5), "palm mute", 2, ("palm mute",), ""),
    ((2, 5), "harmonic", 2, (), "harmonics"),
]


@pytest.mark.parametrize(("place", "kind", "capo", "kept", "lost"), TECHNIQUES_BY_PLACE)
def test_techniques_that_make_sense_on_the_new_string_are_kept(place, kind, capo, kept, lost):
    event = Event(0, (Note(*place),), techniques=((Technique(kind, 4 * (kind == "bend")),),))
    piece = piece_from_tab(Tab(bars=(Bar(1, (event,)),)))
    new = Tuning(STANDARD.open_pitches, capo)
    grip = (Note(1, 0),) if not capo else (Note(2, 3),)
    tab = piece.build_tab([grip], [1], new)
    own = tab.bars[0].events[0].tab_notes()[0].techniques
    assert tuple(each.kind for each in own if each.kind not in FINGERS) == kept
    said = piece.describe_lost_techniques([grip], new)
    assert said == ([("bar 1", f"{lost} don't go with the places")] if lost else [])


def test_fingers_of_the_file_stay_where_the_whole_grip_does():
    grip = (Note(5, 3), Note(4, 2), Note(2, 1))
    fingers = tuple((Technique(f"finger {n}"),) for n in (4, 3, 1))  # not as the hand has them
    piece = piece_from_tab(Tab(bars=(Bar(1, (Event(0, grip, techniques=fingers),)),)))
    moved = (*grip[:2], Note(3, 5))
    for found, tuning, kept in [
        (grip, STANDARD, fingers),
        (grip, replace(STANDARD, capo=2), None),
        (moved, STANDARD, None),
    ]:
        own = piece.build_tab([found], [1], tuning).bars[0].events[0].tab_notes()
        chosen = choose_fingers(found, 1, 650, tuning.capo)
        wanted = kept or [(Technique(f"finger {n}"),) for n in chosen]
        assert {each.note: each.techniques for each in own} == dict(zip(found, wanted, strict=True))
        said = [("bar 1", "fingers of the left hand don't go with the places")]
        assert piece.describe_lost_techniques([found], tuning) == ([] if kept else said)


@pytest.mark.parametrize(
    ("grips", "is_kept"),
    [
        ([(3, 5), (1, 0), (3, 7)], True),  # along one string
        ([(3, 5), (1, 0), (2, 3)], False),  # to another
        ([(3, 5), (3, 9), (3, 7)], False),  # over another note
        ([(3, 5), (1, 0), (3, 5)], False),  # to the same fret
    ],
)
def test_a_hammer_on_is_kept_where_it_leads_along_one_string(grips, is_kept):
    places, hammer = [(2, 1), (1, 0), (2, 3)], Technique("hammer")
    events = [
        Event(n, (Note(*place),), techniques=() if n else ((hammer,),))
        for n, place in enumerate(places)
    ]
    piece = piece_from_tab(Tab(bars=(Bar(3, tuple(events)),)))
    tab = piece.build_tab([(Note(*place),) for place in grips], [1] * 3, STANDARD)
    assert (hammer in tab.bars[0].events[0].techniques[0]) == is_kept
    assert bool(piece.describe_lost_techniques([(Note(*g),) for g in grips], STANDARD)) != is_kept


def test_a_review_shows_the_cheapest_other_ways_and_a_pin_makes_the_rest_follow():
    melody = "2.3 2.5 1.0 2.0 2.3 2.5 1.0 1.3 1.5 1.7 1.8 1.7 1.5 2.5 1.12 1.10 1.8 1.7 1.3 6.0"
    notes = [Note(*map(int, place.split("."))) for place in melody.split()]
    bar = Bar(len(notes), tuple(Event(step, (note,)) for step, note in enumerate(notes)))
    piece, options = piece_from_tab(Tab(bars=(bar,))), FingeringOptions()
    doubts = find_doubtful_moments(piece, options, 9)
    ((tab, path),), _ = find_fingerings(piece, options)
    for doubt in doubts:
        assert doubt.paths[0] == path and doubt.extra_costs[0] == 0
        assert len({own[doubt.places[0]] for own in doubt.paths}) == len(doubt.paths) > 1
        other = doubt.paths[1]
        place = doubt.moment.bar_number, doubt.moment.number
        pinned = replace(options, pinned_notes={place: other[doubt.places[0]]})
        ((_, found),), changes = find_fingerings(piece, pinned)
        assert found == other
        assert len({other[again] for again in doubt.places}) == 1
        assert len(changes) == (len(doubt.places) > 1)
    assert max(len(doubt.places) for doubt in doubts) == 2
    assert find_doubtful_moments(piece, options, 1) == doubts[:1]


# --- Baselines ---------------------------------------------------------------------------------


def test_the_lowest_fret_is_what_it_says():
    moments = [(64,), C_MAJOR]
    assert place_on_lowest_frets(moments, STANDARD) == [(Note(1, 0),), OPEN_C]


# --- Measures ----------------------------------------------------------------------------------


def test_agreement_counts_notes_chords_and_what_can_be_played():
    written = [(Note(6, 0),), (Note(5, 3), Note(4, 2)), (Note(1, 0),)]
    chosen = [(Note(6, 0),), (Note(6, 8), Note(4, 2)), (Note(2, 5),)]
    found = compare_fingerings(written, chosen, STANDARD)
    # E2 has one place only; C3, E3 and E4 have more. The second event spans six frets.
    assert found == FingeringMetrics(4, 2, 3, 1, 1, 0, 3, 1, 2, 4)
    assert found.to_shares()["strings"] == 0.5
    assert sum_metrics([found, found]) == tuple(2 * count for count in found)


# --- Passages ----------------------------------------------------------------------------------


def test_a_tab_is_a_passage_with_its_steps_as_times():
    first = Bar(8, (Event(0, (Note(6, 3),)), Event(4, (Note(5, 2), Note(1, 3)))))
    passage = passage_from_tab(Tab("", STANDARD, (first, Bar(6, (Event(2, (Note(2, 0),)),)))))
    assert passage.moments == ((43,), (47, 67), (59,))
    assert passage.onsets == (0, 4, 10)
    assert passage.relative_gaps() == [None, 0.8, 1.2]


def test_notes_off_the_neck_and_twice_on_a_string_are_left_out():
    events = [[Note(1, 20)], [Note(2, 1), Note(2, 3), Note(5, 0)]]
    passage = passage_from_grips(STANDARD, events, [0.0, 1.0])
    assert passage.grips == ((Note(5, 0), Note(2, 1)),)
    assert passage.onsets == (1.0,)


def test_keys_are_read_and_broken_ones_named(tmp_path):
    path = tmp_path / "valid.jsonl"
    events = [[1, [[0, 0], [5, 3]], 0.0, [1.0, 0.5]], [1, [[1, 2]]]]
    piece = {"file": "a.txt", "open_midi": [38, 45, 50, 55, 59, 64], "events": events}
    path.write_text(json.dumps(piece) + "\n", encoding="utf-8")
    (passage,) = read_passages_jsonl(path)
    assert passage.tuning == DROP_D and passage.moments == ((38, 67), (47,))
    assert passage.onsets == (0.0, None)
    path.write_text('{"file": 3}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 1, is no piece"):
        read_passages_jsonl(path)
    with pytest.raises(ValueError, match="cannot be read"):
        read_passages_jsonl(tmp_path / "none.jsonl")
