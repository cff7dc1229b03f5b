"""The fretboard: pitches, places, tunings and what one hand can hold."""

from collections import Counter

import pytest

from slp_guitar.fretboard import (
    DADGAD,
    DROP_D,
    HALF_STEP_DOWN,
    NAMED_TUNINGS,
    OPEN_D,
    STANDARD,
    TUNINGS,
    Note,
    Tuning,
    describe_tuning,
    find_nearest_tuning,
    find_tuning_by_letters,
    get_string_names,
    get_tuning_name,
    is_playable_grip,
)


def test_string_1_is_the_highest():
    assert STANDARD.pitch_of(Note(1, 0)) == 64
    assert STANDARD.pitch_of(Note(6, 0)) == 40
    assert DROP_D.pitch_of(Note(6, 0)) == 38


def test_a_capo_raises_every_string():
    assert Tuning(capo=3).pitch_of(Note(5, 2)) == 45 + 3 + 2


def test_positions_are_all_the_places_of_a_pitch():
    five = [Note(5, 19), Note(4, 14), Note(3, 9), Note(2, 5), Note(1, 0)]
    assert STANDARD.positions_of(64) == five
    assert Tuning(capo=2).positions_of(64) == [Note(5, 17), Note(4, 12), Note(3, 7), Note(2, 3)]
    assert STANDARD.positions_of(39) == []


@pytest.mark.parametrize("note", [Note(0, 1), Note(7, 1), Note(1, -1)])
def test_a_note_off_the_fretboard_is_refused(note):
    with pytest.raises(ValueError, match="does not exist"):
        STANDARD.pitch_of(note)


@pytest.mark.parametrize(
    ("notes", "playable"),
    [
        ([Note(6, 3), Note(5, 2), Note(1, 3)], True),
        ([Note(6, 1), Note(1, 5)], True),
        ([Note(6, 1), Note(1, 6)], False),
        ([Note(6, 0), Note(1, 12)], True),
        ([Note(6, 3), Note(6, 5)], False),
        ([Note(2, 0), Note(1, 0)], True),
    ],
)
def test_one_hand_holds_four_frets_and_a_string_once(notes, playable):
    assert is_playable_grip(notes) is playable


def test_tunings_have_their_letters():
    low_to_high = {name: "".join(get_string_names(t)[::-1]) for name, t in TUNINGS.items()}
    assert low_to_high == {
        "standard": "EADGBE", "drop-D": "DADGBE", "double-drop-D": "DADGBD", "open-G": "DGDGBD",
        "open-D": "DADF#AD", "DADGAD": "DADGAD", "half-step-down": "EbAbDbGbBbEb",
        "lute": "EADF#BE", "lute-drop-D": "DADF#BE", "drop-D-and-G": "DGDGBE",
    }  # fmt: skip


def test_tuning_name_ignores_the_capo():
    assert get_tuning_name(Tuning(DADGAD.open_pitches, capo=5)) == "DADGAD"
    assert get_tuning_name(OPEN_D) == "open-D"
    assert get_tuning_name(HALF_STEP_DOWN) == "half-step-down"
    assert get_tuning_name(Tuning((60, 59, 55, 50, 45, 40))) is None


@pytest.mark.parametrize(
    ("letters", "name"),
    [
        ("E A D G", "bass"),
        ("B E A D G", "bass-5"),
        ("G C E A", "ukulele"),
        ("B E A D G B E", "seven-string"),
        ("D A D G A D", "DADGAD"),
        ("eb ab db gb bb eb", "half-step-down"),
    ],
)
def test_strings_are_known_by_their_letters(letters, name):
    assert find_tuning_by_letters(letters.split()) == NAMED_TUNINGS[name]


def test_letters_that_no_name_has_are_near_those_of_a_bass():
    assert find_tuning_by_letters("D A D G".split()).open_pitches == (43, 38, 33, 26)
    assert find_tuning_by_letters("D A D G B F".split()) is None  # a guitar's are read elsewhere
    assert find_tuning_by_letters("drop D".split()) is None


def find_tuning(pitches, **said):
    """The name of the guitar that has all pitches; None if there is none."""
    name, lost = find_nearest_tuning(Counter(pitches), **said)
    return None if lost else name


def test_the_first_guitar_is_tried_that_has_every_note():
    wanted = {"standard": {40, 83}, "drop-D": {38, 64}, "bass": {28, 43}, "bass-5": {23, 43}}
    for name, pitches in (wanted | {"drop-C": {36, 80}}).items():
        assert find_tuning(pitches) == name
    assert find_tuning({40, 88}) is None and find_tuning({40, 88}, max_fret=24) == "standard"
    named = {"Ukulele": "ukulele", "electric bass 2": "bass", "Bass drum": "standard"}
    assert [find_tuning({60, 61}, part=part) for part in named] == [*named.values()]
    assert find_tuning({57, 61}, part="Ukulele") == "ukulele-low-G"
    assert find_tuning({40, 83}, part="Bass Guitar") == "standard"
    assert find_tuning({35, 80}) == "seven-string" and find_tuning({30, 80}) is not None
    names = {tuning.open_pitches for tuning in NAMED_TUNINGS.values()}
    assert len(names) == len(NAMED_TUNINGS) and describe_tuning(NAMED_TUNINGS["bass"]) == "bass"
    assert describe_tuning(Tuning((43, 38, 33, 26))) == "D1 A1 D2 G2"
