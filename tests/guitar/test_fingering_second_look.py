"""A second look: how grips compare with what is around them, and what that is worth."""

import math
from dataclasses import replace

import pytest
import torch

from slp_transformer.guitar.fingering import hand_training
from slp_transformer.guitar.fingering.grips import reachable_grips
from slp_transformer.guitar.fingering.hand_inference import AGAIN, Hand
from slp_transformer.guitar.fingering.hand_model import HandConfig, HandModel
from slp_transformer.guitar.fingering.hand_model_file import SECOND, About, load_hand, save_hand
from slp_transformer.guitar.fingering.hand_training import HandTraining, train_second_look
from slp_transformer.guitar.fingering.passages import from_grips
from slp_transformer.guitar.fingering.second_look import (
    AROUND,
    FEATURES,
    WITHIN,
    SecondLook,
    Surroundings,
    learn_second_look,
    mean_fret,
    share_open,
)
from slp_transformer.guitar.fretboard import STANDARD, Note

E4 = (Note(1, 0), Note(2, 5), Note(3, 9), Note(4, 14), Note(5, 19))


def sure(passage, unsure=()):
    """A look that is certain of what was written, and of nothing at some moments."""
    looked = []
    for t, pitches in enumerate(passage.moments):
        grips = reachable_grips(pitches, passage.tuning)
        likely = torch.zeros(len(grips))
        likely[grips.index(passage.grips[t])] = 1.0
        looked.append((grips, torch.full_like(likely, 1 / len(grips)) if t in unsure else likely))
    return looked


def passage_of(*notes, name=""):
    return from_grips(STANDARD, [(note,) for note in notes], name=name)


def test_a_grip_is_compared_with_the_fingers_before_and_after_it():
    """Nine windows, by hand: frets 4 and 8 before, 6 after; the moment itself is left out."""
    passage = passage_of(Note(1, 4), Note(1, 8), Note(2, 5), Note(1, 6))
    around = Surroundings(passage, sure(passage))
    grips = [grip[0] for grip in around.looked[2][0]]
    assert sorted(grips, key=lambda note: note.string) == list(E4)
    rows = around.features(2)
    assert rows.shape == (5, FEATURES)
    means = [8, 6, 6, 6, 6, 6, 6, 6, 6]  # of (-1,-1), (1,1), (-4,-1), (1,4), then all there is
    for k, note in enumerate(grips):
        for i, mean in enumerate(means):
            apart = 0.0 if note.fret == 0 else note.fret - mean
            assert rows[k, 2 * i] == pytest.approx(min(10, abs(apart)) / 4)
            assert rows[k, 2 * i + 1] == pytest.approx(max(-8, min(8, apart)) / 4)
    assert len(AROUND) == len(means)


def test_where_nothing_is_fretted_nothing_is_compared():
    passage = passage_of(Note(1, 0), Note(2, 5), Note(2, 0))
    assert (Surroundings(passage, sure(passage)).features(1)[:, : 2 * len(AROUND)] == 0).all()
    assert math.isnan(mean_fret((Note(1, 0), Note(3, 0))))
    assert mean_fret((Note(1, 0), Note(3, 2), Note(4, 4))) == 3


def test_open_strings_are_counted_around():
    """Two of the four others are open; an open grip is told so, and how usual that is here."""
    passage = passage_of(Note(2, 0), Note(1, 8), Note(1, 0), Note(3, 0), Note(1, 6))
    around = Surroundings(passage, sure(passage))
    rows = around.features(2)[:, 2 * len(AROUND) :]
    for k, grip in enumerate(around.looked[2][0]):
        assert rows[k, :2].tolist() == ([1.0, 0.5] if grip[0].fret == 0 else [0.0, 0.0])
    assert share_open((Note(1, 0), Note(3, 2), Note(4, 4), Note(5, 0))) == 0.5


def test_a_pitch_is_looked_for_where_it_comes_again():
    """Within eight moments on string 2; forty moments on, twice, on string 1."""
    notes = [Note(2, 5), Note(1, 1), Note(2, 5), *[Note(1, 1)] * 40, Note(1, 0), Note(1, 0)]
    passage = passage_of(*notes)
    around = Surroundings(passage, sure(passage))
    rows, at = around.features(0), 2 * len(AROUND) + 2
    for k, grip in enumerate(around.looked[0][0]):
        string = grip[0].string
        near, wide, whole = {2: (1, 1, 1), 1: (0, 0, 2)}.get(string, (0, 0, 0))
        for i, (there, of) in enumerate(zip((near, wide, whole), (1, 1, 3), strict=True)):
            assert rows[k, at + i] == pytest.approx(math.log(max(0.02, there / of)))
    assert len(WITHIN) == 3


def test_a_pitch_on_two_strings_at_once_is_one_moment_of_it():
    """A unison on strings 1 and 2; elsewhere the pitch was taken once, on string 2."""
    unison = (Note(2, 5), Note(1, 0))
    passage = from_grips(STANDARD, [unison, (Note(1, 1),), (Note(2, 5),)])
    around = Surroundings(passage, sure(passage))
    grips = around.looked[0][0]
    here = around.features(0)[grips.index(unison), 2 * len(AROUND) + 2]
    assert here == pytest.approx(math.log(0.02) / 2)  # string 2 as there, string 1 never
    alone = around.features(2)[:, 2 * len(AROUND) + 2]
    for grip, agrees in zip(around.looked[2][0], alone, strict=True):
        on_either = 1.0 if grip[0].string in (1, 2) else 0.02
        assert agrees == pytest.approx(math.log(on_either))


def test_a_moment_is_looked_for_with_its_neighbours_and_alone():
    """It comes back twice: between the same neighbours on string 2, between others on string 1."""
    same = [Note(1, 1), Note(2, 5), Note(1, 3)]
    passage = passage_of(*same, *same, Note(1, 3), Note(1, 0), Note(1, 3))
    around = Surroundings(passage, sure(passage))
    rows = around.features(1)[:, -4:-2]
    for k, grip in enumerate(around.looked[1][0]):
        beside, alone = {2: (1.0, 0.5), 1: (0.0, 0.5)}.get(grip[0].string, (0.0, 0.0))
        assert rows[k, 0] == pytest.approx(math.log(max(0.02, beside)))
        assert rows[k, 1] == pytest.approx(math.log(max(0.02, alone)))
    only = passage_of(Note(1, 1), Note(2, 5))
    assert (Surroundings(only, sure(only)).features(1)[:, 2 * len(AROUND) + 2 : -2] == 0).all()


def test_strings_that_other_notes_take_just_before_and_after_are_told():
    """String 2 four moments before does not count, nor the same pitch on string 2 just before."""
    before = [Note(2, 1), Note(1, 1), Note(2, 3), Note(2, 5)]
    passage = passage_of(*before, Note(2, 5), Note(2, 6), Note(3, 2))
    around = Surroundings(passage, sure(passage))
    rows = around.features(4)[:, -2:]
    for k, grip in enumerate(around.looked[4][0]):
        taken = {1: [1.0, 0.0], 2: [1.0, 1.0], 3: [0.0, 1.0]}
        assert rows[k].tolist() == taken.get(grip[0].string, [0.0, 0.0])


def pieces(count=8):
    """Everything between frets 5 and 9; each by another hand, as their names say."""
    scale = (60, 62, 64, 65, 67, 69, 71, 72)
    found = []
    for n in range(count):
        row = scale[n % 3 :] + scale[: n % 3 : -1]
        grips = [min(m for m in STANDARD.positions(p) if 5 <= m.fret <= 9) for p in row]
        found.append(passage_of(*grips, name=f"{'abcd'[n % 4]}_{n}"))
    return found


def test_it_learns_that_a_doubtful_moment_goes_with_the_rest():
    learned = learn_second_look(pieces(), [sure(p, unsure=range(0, 20, 2)) for p in pieces()])
    passage = passage_of(Note(1, 7), Note(2, 8), Note(2, 5), Note(2, 7), Note(1, 5))
    scores = learned(passage, sure(passage, unsure=[2]))
    best = reachable_grips((64,), STANDARD)[int(scores[2].argmax())]
    assert best == (Note(2, 5),)
    low = passage_of(Note(1, 1), Note(2, 1), Note(1, 0), Note(2, 3), Note(1, 3))
    assert [len(s) for s in learned(low, sure(low))] == [len(g) for g, _ in sure(low)]


def test_it_learns_only_what_the_first_look_does_not_know():
    learned = learn_second_look(pieces(), [sure(p) for p in pieces()])
    doubtful = learn_second_look(pieces(), [sure(p, unsure=range(20)) for p in pieces()])
    assert learned.weights.abs().max() < 0.1 < 1 < doubtful.weights.abs().max()


def test_where_nothing_is_to_be_chosen_nothing_is_learned():
    only = passage_of(Note(6, 0), Note(6, 1))
    with pytest.raises(ValueError, match="leaves a choice"):
        learn_second_look([only], [sure(only)])


def test_a_hand_looks_again_with_what_the_second_look_says():
    torch.manual_seed(3)
    model, second = HandModel(HandConfig(num_blocks=0)), SecondLook()
    [passage, *_] = pieces(1)
    plain = Hand([model])
    assert plain.finger(passage) == Hand([model], second=second).finger(passage)
    second.weights.data[0] = -50.0  # against what is far from the moment before
    looked = plain.look(passage)
    said = second(passage, looked)
    also = [torch.ones(len(scores)) for scores in said]
    expected = plain.likelihoods(passage, [AGAIN * s + a for s, a in zip(said, also, strict=True)])
    found = Hand([model], second=second).likelihoods(passage, also)
    for (_, a), (_, b) in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)
    assert Hand([model], second=second).finger(passage) != plain.finger(passage)


def test_it_is_kept_with_the_hand_and_several_agree_by_their_mean(tmp_path):
    about, model = About(HandConfig(num_blocks=0), 1, 1), HandModel(HandConfig(num_blocks=0))
    for name, value in (("a", 1.0), ("b", 3.0)):
        second = SecondLook()
        second.weights.data.fill_(value)
        save_hand(tmp_path / name, model, about, second)
    save_hand(tmp_path / "c", model, about)
    folders = [tmp_path / name for name in "abc"]
    assert (load_hand(folders[0]).second.weights == 1).all()
    assert (load_hand(*folders).second.weights == 2).all()
    assert load_hand(folders[2]).second is None
    (folders[0] / SECOND).write_bytes(b"no")
    with pytest.raises(ValueError, match=r"second\.safetensors does not fit"):
        load_hand(folders[0])
    save_hand(folders[0], model, about)  # anew, without one
    assert load_hand(folders[0]).second is None


def test_each_piece_is_looked_at_by_a_model_of_others(monkeypatch):
    asked = []

    def train(passages, config, training):
        asked.append({passage.name for passage in passages})
        return HandModel(HandConfig(num_blocks=0))

    class Looking(Hand):
        def look(self, passage, also=None):
            assert passage.name not in asked[-1]
            assert not {name[0] for name in asked[-1]} & {passage.name[0]}
            return super().look(passage, also)

    monkeypatch.setattr(hand_training, "train_hand", train)
    monkeypatch.setattr(hand_training, "Hand", Looking)
    second = train_second_look(pieces(), HandConfig(num_blocks=0), HandTraining(steps=1))
    assert len(asked) == 4 and second.weights.abs().sum() > 0
    alone = [replace(passage, name="x_1") for passage in pieces(2)]
    with pytest.raises(ValueError, match="must not all be 'x'"):
        train_second_look(alone)
