"""The practice corpus: every piece can be played, is what it says, and is the same everywhere."""

import hashlib
import json
from collections import Counter

import pytest
from sampled import mostly_slow

from slp_guitar.fretboard import (
    DADGAD,
    DROP_D,
    HALF_STEP_DOWN,
    MAX_FRET,
    OPEN_G,
    STANDARD,
    TUNINGS,
    Note,
    is_playable_grip,
)
from slp_guitar.practice import (
    STUDY_KINDS,
    make_practice_corpus,
    make_practice_studies,
    scale_sequence_degrees,
)
from slp_guitar.practice_material import (
    find_chord_shapes,
    notes_in_position,
    parse_grip_diagram,
)
from slp_guitar.theory import (
    TABLES,
    chord_pitch_classes,
    parse_pitch_class,
    scale_pitch_classes,
)

SEEDS = (0, 1, 2, 11, 1009)
DIGEST = "db8f9961aa883c850682f66aad86030cadcd3580723c5c12bf9f8d9302c11fb5"


@pytest.fixture(scope="module", params=mostly_slow([*SEEDS, *range(3, 10)], *SEEDS))
def studies(request):
    return make_practice_studies(request.param, 130)


def heard(study, note):
    """Pitch class of a note, named as the hand sees it (shapes, not what a capo makes of them)."""
    down = study.tab.tuning.open_pitches == HALF_STEP_DOWN.open_pitches
    return (study.tab.tuning.pitch_of(note) - study.tab.tuning.capo + down) % 12


def named(harmony):
    """Pitch classes of a bar's harmony: a scale has a space in its name, a chord none."""
    root, _, scale = harmony.partition(" ")
    return scale_pitch_classes(root, scale) if scale else chord_pitch_classes(harmony)


def bars_of(study):
    assert len(study.harmony_by_bar) == len(study.tab.bars)
    return zip(study.tab.bars, study.harmony_by_bar, strict=True)


def test_every_event_can_be_played(studies):
    for study in studies:
        top = MAX_FRET - study.tab.tuning.capo
        for event in study.tab.iter_events():
            assert is_playable_grip(event.notes), study.tab.title
            assert all(0 <= note.fret <= top for note in event.notes), study.tab.title


def test_bars_lie_on_a_grid(studies):
    for study in studies:
        assert 4 <= len(study.tab.bars) <= 12, study.tab.title
        assert len({bar.steps for bar in study.tab.bars}) == 1
        for bar in study.tab.bars:
            assert bar.steps in (12, 16)
            beats, unit = study.tab.bars[0].time_signature
            assert bar.steps * unit == 4 * beats * study.tab.steps_per_quarter
            steps = [event.step for event in bar.events]
            assert steps == sorted(set(steps)) and steps[0] >= 0 and steps[-1] < bar.steps
            for event in bar.events:
                strings = [note.string for note in event.notes]
                assert strings == sorted(set(strings), reverse=True) and strings


def of_kind(studies, *kinds):
    return [study for study in studies if study.kind in kinds]


def test_every_note_belongs_to_the_scale_or_chord(studies):
    free = ("shuffle", "walking bass")
    for study in of_kind(studies, *(kind for kind in STUDY_KINDS if kind not in free)):
        for bar, harmony in bars_of(study):
            legal = set(named(harmony))
            played = {heard(study, note) for event in bar.events for note in event.notes}
            assert played <= legal, (study.tab.title, harmony)


def test_lines_end_on_the_root(studies):
    for study in of_kind(studies, "scale", "arpeggio", "drone", "solo"):
        last = study.tab.bars[-1].events[-1].notes[-1]
        assert heard(study, last) == named(study.harmony_by_bar[-1])[0], study.tab.title


def test_a_blues_has_one_four_and_five_in_their_bars(studies):
    for study in of_kind(studies, "shuffle", "walking bass"):
        key = parse_pitch_class(study.tab.title.partition(" in ")[2].split(",")[0])
        quick = "quick-change" in study.tab.title
        degrees = [(parse_pitch_class(chord[:-1]) - key) % 12 for chord in study.harmony_by_bar]
        assert degrees[:11] == [0, 5 if quick else 0, 0, 0, 5, 5, 0, 0, 7, 5, 0]
        assert degrees[11] in (0, 7)
        for bar, chord in bars_of(study):
            first = bar.events[0]
            assert first.step == 0
            assert heard(study, first.notes[0]) == parse_pitch_class(chord[:-1]), study.tab.title


def test_a_shuffle_keeps_to_fifth_sixth_and_seventh(studies):
    for study in of_kind(studies, "shuffle"):
        for bar, chord in list(bars_of(study))[:11]:
            root = parse_pitch_class(chord[:-1])
            for event in bar.events:
                low, high = (heard(study, note) for note in event.notes)
                assert low == root and (high - root) % 12 in (7, 9, 10)


def test_walking_bass_leads_by_half_steps_or_stays_in_the_chord(studies):
    for study in of_kind(studies, "walking bass"):
        bars = list(bars_of(study))
        for (bar, chord), (following, _) in zip(bars, bars[1:], strict=False):
            root = parse_pitch_class(chord[:-1])
            mixolydian = {(root + step) % 12 for step in (0, 2, 4, 5, 7, 9, 10)}
            goal = heard(study, following.events[0].notes[0])
            for event in bar.events:
                pitch = heard(study, event.notes[0])
                approach = event.step >= 3 * (bar.steps // 4) and (pitch - goal) % 12 in (1, 11)
                assert len(event.notes) == 1 and (pitch in mixolydian or approach)


def test_chords_are_whole_when_strummed(studies):
    for study in of_kind(studies, "strumming"):
        for bar, chord in bars_of(study):
            played = {heard(study, note) for event in bar.events for note in event.notes}
            tones = chord_pitch_classes(chord)
            assert set(tones) - played <= {(tones[0] + 7) % 12}, (study.tab.title, chord)


def test_kinds_keys_and_tunings_vary():
    studies = make_practice_studies(0, 600)
    kinds = Counter(study.kind for study in studies)
    assert set(kinds) == set(STUDY_KINDS) and min(kinds.values()) >= 10
    tunings = Counter(study.tab.tuning.open_pitches for study in studies)
    for tuning in (STANDARD, DROP_D, OPEN_G, DADGAD, HALF_STEP_DOWN):
        assert tunings[tuning.open_pitches] >= 10
    assert sum(study.tab.tuning.capo > 0 for study in studies) >= 60
    roots = {study.harmony_by_bar[-1].split()[0].rstrip("m7") for study in studies}
    assert len(roots) >= 12
    assert len({(study.tab.tuning, study.tab.bars) for study in studies}) == 600


def test_fewer_pieces_begin_more():
    assert make_practice_corpus(5, 40) == make_practice_corpus(5, 90)[:40]
    assert make_practice_corpus(5, 40) != make_practice_corpus(6, 40)
    assert make_practice_corpus(5, 0) == []


def test_a_negative_number_of_pieces_is_refused():
    with pytest.raises(ValueError, match="-1 pieces"):
        make_practice_corpus(num_pieces=-1)


def test_the_corpus_is_the_same_everywhere():
    plain = [
        [t.title, t.tuning.open_pitches, t.tuning.capo, [[b.steps, b.events] for b in t.bars]]
        for t in make_practice_corpus(seed=7, num_pieces=200)
    ]
    text = json.dumps(plain, default=lambda event: [event.step, event.notes])
    assert hashlib.sha256(text.encode("utf-8")).hexdigest() == DIGEST


def test_shapes_by_hand():
    strings_and_frets = ((5, 3), (4, 2), (3, 0), (2, 1), (1, 0))
    assert parse_grip_diagram("x32010") == tuple(Note(*place) for place in strings_and_frets)
    assert find_chord_shapes("F")[0] == parse_grip_diagram("133211")
    minor = parse_grip_diagram("x24432"), parse_grip_diagram("022000", 7)
    assert find_chord_shapes("Bm") == list(minor)
    c = (
        parse_grip_diagram("x32010"),
        parse_grip_diagram("x02220", 3),
        parse_grip_diagram("022100", 8),
    )
    assert find_chord_shapes("C") == list(c)
    assert find_chord_shapes("G", DROP_D) == [parse_grip_diagram("520003")]
    with pytest.raises(ValueError, match="No shape for the chord Ebm7"):
        find_chord_shapes("Ebm7", DADGAD)


@pytest.mark.parametrize("name", TABLES["open_shapes"])
def test_every_shape_is_its_chord_with_the_root_below(name):
    tuning = TUNINGS[name]
    for chord in TABLES["open_shapes"][name]:
        shape, tones = find_chord_shapes(chord, tuning)[0], chord_pitch_classes(chord)
        played = [tuning.pitch_of(note) % 12 for note in shape]
        assert is_playable_grip(shape) and len(shape) >= 3
        assert played[0] == tones[0], chord
        missing = set(tones) - set(played)
        assert set(played) <= set(tones) and missing <= {(tones[0] + 7) % 12}, chord


@pytest.mark.parametrize(
    ("scale", "position", "frets"),
    [
        (("A", "minor pentatonic"), 5, [[5, 8], [5, 7], [5, 7], [5, 7], [5, 8], [5, 8]]),
        (("C", "major"), 0, [[0, 1, 3], [0, 2, 3], [0, 2, 3], [0, 2], [0, 1, 3], [0, 1, 3, 5]]),
    ],
)
def test_boxes_by_hand(scale, position, frets):
    box = notes_in_position(scale_pitch_classes(*scale), position)
    assert [[n.fret for n in box if n.string == string] for string in range(6, 0, -1)] == frets


@pytest.mark.parametrize(
    ("name", "ends", "degrees"),
    [
        ("up and down", (1, 3), "123321"),
        ("thirds", (0, 3), "02133120"),
        ("groups of four", (0, 4), "0123123443213210"),
    ],
)
def test_sequences_by_hand(name, ends, degrees):
    assert scale_sequence_degrees(name, *ends) == [int(degree) for degree in degrees]
