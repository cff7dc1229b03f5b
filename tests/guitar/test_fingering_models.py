"""Models of fingering: sums over all fingerings, what is learned, what is kept, translation."""

import itertools
import json
import math

import pytest
import torch

from slp_transformer import EncoderDecoder, TransformerConfig
from slp_transformer.cache import KVCache
from slp_transformer.guitar.fingering import hand_inference, seq2seq
from slp_transformer.guitar.fingering.grips import next_notes
from slp_transformer.guitar.fingering.hand_features import Reader, gap_class
from slp_transformer.guitar.fingering.hand_inference import Hand, best_grip
from slp_transformer.guitar.fingering.hand_model import (
    HandConfig,
    HandModel,
    log_sums,
    loss,
    state_marginals,
)
from slp_transformer.guitar.fingering.hand_model_file import About, load_hand, save_hand
from slp_transformer.guitar.fingering.hand_training import HandTraining, main, train_hand
from slp_transformer.guitar.fingering.lattice import MOST, PLACES, column, features, hands_of
from slp_transformer.guitar.fingering.passages import from_grips
from slp_transformer.guitar.fingering.seq2seq import (
    PAD,
    SOURCE_SIZE,
    TARGET_SIZE,
    FingeringPairs,
    source_ids,
    target_id,
    target_ids,
    translate,
)
from slp_transformer.guitar.fingering.viterbi import finger
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning, is_playable
from slp_transformer.loss import IGNORED

TINY = HandConfig(move_dim=3)
SCALE = (60, 62, 64, 65, 67, 69, 71, 72)


def at_the_fifth_fret(pitches):
    """As someone plays who never takes an open string: everything between frets 5 and 9."""
    grips = []
    for pitch in pitches:
        places = [n for n in STANDARD.positions(pitch) if 5 <= n.fret <= 9]
        grips.append((min(places, key=lambda note: note.fret),))
    return grips


def pieces(count=6):
    rows = [SCALE[k % 3 :] + SCALE[: k % 3 : -1] for k in range(count)]
    return [from_grips(STANDARD, at_the_fifth_fret(row)) for row in rows]


# --- The lattice -------------------------------------------------------------------------------


def test_a_state_is_a_grip_and_a_place_from_which_the_hand_reaches_it():
    made = column((64,), STANDARD)
    found = {
        (made.grips[k][0], hand)
        for k, hand in zip(made.which.tolist(), made.hands.tolist(), strict=True)
    }
    assert {hand for note, hand in found if note == Note(1, 0)} == set(range(1, 16))
    assert {hand for note, hand in found if note == Note(2, 5)} == {1, 2, 3, 4, 5}
    assert {hand for note, hand in found if note == Note(4, 14)} == {10, 11, 12, 13, 14}
    assert len(column((52, 59, 64), STANDARD).which) <= MOST
    assert list(hands_of((Note(6, 3), Note(1, 7)))) == [3]


def test_what_is_said_of_a_shape_is_the_same_elsewhere_on_the_neck():
    """A barre chord two frets higher differs in the place of the hand and in frets alone."""
    shape = [(6, 1), (5, 3), (4, 3), (3, 2), (2, 1), (1, 1)]
    low = features(tuple(Note(s, f) for s, f in shape), 1)
    high = features(tuple(Note(s, f + 2) for s, f in shape), 3)
    differ = (low != high).nonzero().flatten().tolist()
    ranges = [
        range(PLACES["hand"], PLACES["hand, with an open string"]),
        range(PLACES["fret"], PLACES["alone: string and finger"]),
    ]
    assert differ and all(any(i in places for places in ranges) for i in differ)


# --- Sums over all fingerings --------------------------------------------------------------------


def test_the_sum_is_over_all_paths_and_marginals_are_their_shares():
    torch.manual_seed(3)
    T, S = 4, 3
    U, M = torch.randn(2, T, S), torch.randn(2, T - 1, S, S)
    there = torch.ones(2, T, S)
    there[1, 2, 1] = 0
    valid = torch.tensor([[True] * 4, [True, True, True, False]])
    for b, length in ((0, 4), (1, 3)):
        scores = {
            path: sum(U[b, t, s] for t, s in enumerate(path))
            + sum(M[b, t, path[t], path[t + 1]] for t in range(length - 1))
            for path in itertools.product(range(S), repeat=length)
            if all(there[b, t, s] for t, s in enumerate(path))
        }
        every = torch.stack(list(scores.values())).logsumexp(0)
        found = log_sums(U, M, there.unsqueeze(0), valid)[0, b]
        torch.testing.assert_close(found, every)
        marginals = state_marginals(U, M, there.bool(), valid)[b]
        for t, s in itertools.product(range(length), range(S)):
            share = sum((v - every).exp() for path, v in scores.items() if path[t] == s)
            torch.testing.assert_close(marginals[t, s], torch.as_tensor(share).float())


def test_the_loss_is_how_surprising_written_tab_is():
    """Where every note has one place only, nothing surprises; otherwise what is written does."""
    only = from_grips(STANDARD, [(Note(6, 0),), (Note(6, 1),), (Note(6, 3),)])
    model = HandModel(TINY)
    assert loss(model, Reader([only]).windows([(0, 0, 3)])).item() == pytest.approx(0, abs=1e-4)
    written = Reader(pieces(2))
    T = len(written.ids[0])
    assert loss(model, written.windows([(0, 0, T), (1, 0, T)])).item() > 0.1


def test_a_window_knows_what_was_written_and_what_rings_on():
    events = [(Note(6, 3), Note(2, 0)), (Note(2, 1),), (Note(2, 3),)]
    lengths = [(3.0, 1.0), (1.0,), (1.0,)]
    passage = from_grips(STANDARD, events, [0.0, 1.0, 2.0], lengths)
    reader = Reader([passage])
    columns = reader.windows([(0, 0, 3)])
    kind = reader.kinds.columns[int(reader.ids[0][0])]
    chosen = [kind.grips[int(k)] for k in kind.which[columns.written[0, 0][: len(kind.which)] > 0]]
    assert chosen and set(chosen) == {events[0]}
    state = int(columns.written[0, 0].argmax())
    assert columns.held_strings[0, 0, state].tolist() == [0, 0, 0, 0, 0, 1]
    assert columns.held_fret[0, 0, state] == 1
    assert columns.held_strings[0, 1].sum() == 0
    assert [gap_class(gap) for gap in (None, 0.0, 0.5, 1.0, 2.0, 9.0)] == [0, 1, 2, 3, 4, 5]


# --- Learning ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned():
    training = HandTraining(steps=60, batch_size=4, window=16, learning_rate=0.02)
    return train_hand(pieces(), training)


def test_a_hand_learns_where_people_play(learned):
    written = from_grips(STANDARD, at_the_fifth_fret(SCALE[::-1]))
    assert finger(written.moments, STANDARD) != list(written.grips)
    assert Hand([learned], caution=0.0).finger(written) == list(written.grips)


def test_a_long_piece_is_read_in_parts_and_comes_out_whole(learned, monkeypatch):
    row = (SCALE + SCALE[::-1]) * 3
    passage = from_grips(STANDARD, at_the_fifth_fret(row))
    hand = Hand([learned])
    whole = hand.finger(passage)
    monkeypatch.setattr(hand_inference, "CHUNK", 17)
    assert hand.finger(passage) == whole and len(whole) == len(row)
    for grips, likely in hand.likelihoods(passage):
        assert float(likely.sum()) == pytest.approx(1, abs=1e-3) and len(likely) == len(grips)


def test_two_hands_agree_by_their_mean(learned):
    passage = from_grips(STANDARD, at_the_fifth_fret(SCALE))
    other = HandModel(TINY)
    mean = Hand([learned, other]).likelihoods(passage)
    for (_, both), (_, a), (_, b) in zip(
        mean, Hand([learned]).likelihoods(passage), Hand([other]).likelihoods(passage), strict=True
    ):
        torch.testing.assert_close(both, (a + b) / 2)


def test_the_best_grip_has_most_notes_right():
    """Each note of the second is the likelier one, though the first is the likeliest as a whole."""
    a, b, c = Note(1, 0), Note(2, 5), Note(3, 9)
    x, y, z = Note(6, 0), Note(5, 7), Note(4, 2)
    grips = ((a, x), (b, y), (b, z), (c, y))
    assert best_grip(grips, torch.tensor([0.34, 0.18, 0.24, 0.24])) == (b, y)
    assert best_grip(grips, torch.tensor([0.9, 0.02, 0.04, 0.04])) == (a, x)


def test_weights_are_logarithms_and_unknown_grips_weigh_little(learned):
    passage = from_grips(STANDARD, at_the_fifth_fret(SCALE[:2]))
    choices = [[(Note(3, 5),), (Note(2, 1),)], [(Note(9, 9),)]]
    weights = Hand([learned]).weigh(passage, choices)
    (grips, likely), _ = Hand([learned]).likelihoods(passage)
    assert weights[0][0] == pytest.approx(math.log(likely[grips.index((Note(3, 5),))]))
    assert weights[1] == [hand_inference.UNHEARD]
    with pytest.raises(ValueError, match="up to 6 strings"):
        Hand([learned]).finger(from_grips(Tuning((64, 59, 55, 50, 45, 40, 35)), [[Note(7, 1)]]))


def test_a_hand_with_caution_heeds_the_costs_that_were_thought_out(learned):
    row = SCALE[::-1]
    written = from_grips(STANDARD, at_the_fifth_fret(row))
    cheapest = finger(written.moments, STANDARD)
    assert Hand([learned], caution=0.0).finger(written) == list(written.grips) != cheapest
    torch.manual_seed(0)
    knows_nothing = HandModel(TINY)
    knows_nothing.trust.data.zero_()
    assert Hand([knows_nothing], caution=0.0).finger(written) != cheapest
    assert Hand([knows_nothing], caution=10.0).finger(written) == cheapest


# --- Keeping -------------------------------------------------------------------------------------


def test_a_hand_that_is_kept_comes_back_the_same(learned, tmp_path):
    save_hand(tmp_path / "run", learned, About(learned.config, 60, 6, 0.9))
    back = load_hand(tmp_path / "run")
    assert len(load_hand(tmp_path / "run", tmp_path / "run").models) == 2
    passage = from_grips(STANDARD, at_the_fifth_fret(SCALE))
    for (_, a), (_, b) in zip(
        Hand([learned]).likelihoods(passage), back.likelihoods(passage), strict=True
    ):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("hand.json", None, "there is no hand.json"),
        ("hand.safetensors", None, "there is no hand.safetensors"),
        ("hand.json", b"{", "hand.json"),
        ("hand.json", b'{"move_dim": 10000000}', "move_dim must be from 1 to 1024"),
        ("hand.json", b'{"move_dim": 23}', "does not fit"),
        ("hand.safetensors", b"\x00" * 40, "does not fit"),
    ],
)
def test_a_damaged_hand_is_refused_in_a_sentence(learned, tmp_path, name, content, said):
    save_hand(tmp_path, learned, About(learned.config, 60, 6))
    path = tmp_path / name
    if content is None:
        path.unlink()
    elif content.startswith(b'{"move_dim'):
        about = json.loads(path.read_bytes())
        about["config"] |= json.loads(content)
        path.write_text(json.dumps(about), encoding="utf-8")
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        load_hand(tmp_path)


def test_the_command_trains_and_keeps_a_hand(tmp_path, capsys):
    lines = []
    for n, passage in enumerate(pieces(3)):
        events = [[1, [[6 - note.string, note.fret] for note in g]] for g in passage.grips]
        piece = {"file": f"{n}", "open_midi": [40, 45, 50, 55, 59, 64], "events": events}
        lines.append(json.dumps(piece))
    tabs = tmp_path / "tabs.jsonl"
    tabs.write_text("\n".join(lines), encoding="utf-8")
    run = tmp_path / "run"
    assert main([str(tabs), "--out-dir", str(run), "--steps", "2"]) == 0
    said = capsys.readouterr()
    assert "held out: strings" in said.out and "2 pieces to learn from, 1 held out" in said.err
    assert load_hand(run).models[0].config == HandConfig()
    assert main([str(tmp_path / "none"), "--out-dir", str(run)]) == 2
    with pytest.raises(SystemExit, match="2"):
        main([str(tabs), "--out-dir", str(run), "--steps", "0"])


# --- Translation ---------------------------------------------------------------------------------


def small_translator(window):
    torch.manual_seed(5)
    config = TransformerConfig(
        TARGET_SIZE, 2 * window, 16, 2, 1, source_vocab_size=SOURCE_SIZE, positions="sinusoidal"
    )
    return EncoderDecoder(config)


def test_source_and_target_have_a_token_a_note_and_a_capo_changes_nothing():
    events = [(Note(6, 3), Note(2, 0)), (Note(1, 3),)]
    passage = from_grips(STANDARD, events, [0.0, 1.0])
    capo = from_grips(Tuning(capo=2), events, [0.0, 1.0])
    assert len(source_ids(passage)) == len(target_ids(passage)) == 3
    assert torch.equal(source_ids(passage), source_ids(capo))
    assert torch.equal(target_ids(passage), target_ids(capo))
    kinds = (source_ids(passage) - 1) // seq2seq.HEIGHTS
    assert kinds.tolist() == [seq2seq.AFTER, seq2seq.TOGETHER, seq2seq.AFTER]
    assert seq2seq.place_names(target_ids(passage).tolist()) == ["6/3", "2/0", "1/3"]
    with pytest.raises(ValueError, match="64 semitones"):
        source_ids(from_grips(Tuning((104, 40)), [[Note(1, 0)]]))


def test_the_decoder_reads_notes_and_places_in_turn_and_noise_is_in_places_alone():
    pairs = FingeringPairs(pieces(), window=11, noise=0.5)
    batch = pairs.draw(5, torch.Generator().manual_seed(1))
    source, reads, mask = batch.inputs
    says = batch.targets
    assert mask.shape == (5, 1, 11) and reads.shape == says.shape == (5, 21)
    assert torch.equal(reads[:, ::2], source)
    changed = 0
    for row in range(5):
        count = int((source[row] != PAD).sum())
        assert (says[row, ::2][:count] != IGNORED).all()
        assert (says[row, ::2][count:] == IGNORED).all() and (says[row, 1::2] == IGNORED).all()
        changed += int((reads[row, 1::2] != says[row, ::2][:-1])[: count - 1].sum())
    assert 0 < changed < 50
    whole = next(pairs.in_order(100))
    told = whole.targets[:, ::2] != IGNORED
    assert int(told.sum()) == sum(len(p.moments) for p in pieces())
    heard, said = whole.inputs[1][:, 1::2], whole.targets[:, ::2]
    assert torch.equal(heard[told[:, 1:]], said[:, :-1][told[:, 1:]])
    assert len(pairs.part(3)) == 3 and pairs.describe()["pieces"] == 6


def test_translation_keeps_pitches_and_grips_whatever_the_weights():
    moments = [(64,), (48, 52, 55, 60, 64), (41, 70), (52, 59)] * 3
    passage = from_grips(STANDARD, finger(moments, STANDARD))
    written = translate(small_translator(13), passage, window=13)
    assert [tuple(map(STANDARD.pitch, grip)) for grip in written] == moments
    assert all(is_playable(g) for g, m in zip(written, moments, strict=True) if m != (41, 70))
    assert written[2] == (Note(6, 1), Note(1, 6))


def test_translation_is_the_likeliest_legal_place_each_time():
    """As computed anew, without a cache, for every note of a short piece."""
    model = small_translator(9).eval()
    moments = [(64,), (55, 64), (59,), (52, 67), (60,)]
    passage = from_grips(STANDARD, finger(moments, STANDARD))
    source, places_so_far, expected = source_ids(passage), [], []
    for pitches in moments:
        grip = ()
        for _ in pitches:
            notes = source[: len(places_so_far) + 1]
            reads = seq2seq.in_turn(notes, torch.tensor(places_so_far))
            with torch.no_grad():
                H_enc, cache = model.encode(source.unsqueeze(0)), KVCache()
                u = model.decode(reads.unsqueeze(0), H_enc, cache=cache)[0, -1]
            places = next_notes(grip, pitches, STANDARD)
            best = max(places, key=lambda note: float(u[target_id(note)]))
            grip = (*grip, best)
            places_so_far.append(target_id(best))
        expected.append(grip)
    assert translate(model, passage, window=9) == expected


def test_beyond_a_window_a_translation_goes_on_from_its_last_half():
    """Of one note, of a window and less, of several windows; a chord across a window's end."""
    model, chord = small_translator(7), (48, 52, 55, 60, 64)
    for moments in [[(64,)], [(60,), chord, (62,)], [(64,), chord, (41,), chord] * 4]:
        passage = from_grips(STANDARD, finger(moments, STANDARD))
        written = translate(model, passage, window=7)
        assert [tuple(map(STANDARD.pitch, grip)) for grip in written] == moments
