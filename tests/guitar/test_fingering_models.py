"""Models of fingering: sums over all fingerings, what is learned, what is kept, translation."""

import itertools
import json
import math
import signal

import pytest
import torch
from tiny_training import run

from slp_guitar.fingering import hand_model, hand_training, seq2seq
from slp_guitar.fingering.grips import allowed_next_notes, find_grips
from slp_guitar.fingering.hand_lattice import (
    FEATURE_OFFSETS,
    MAX_STATES_PER_MOMENT,
    PassageWindows,
    build_moment_states,
    extract_features,
    gap_class,
    possible_hand_frets,
)
from slp_guitar.fingering.hand_model import (
    HandEnsemble,
    HandModel,
    compute_state_marginals,
    hand_model_loss,
    load_hand_ensemble,
    log_partition,
    select_best_grip,
)
from slp_guitar.fingering.hand_training import HandWindowSource, main, make_hand_trainer
from slp_guitar.fingering.passages import passage_from_grips
from slp_guitar.fingering.seq2seq import (
    PAD_ID,
    SOURCE_VOCAB_SIZE,
    TARGET_VOCAB_SIZE,
    FingeringDataset,
    encode_source,
    encode_target,
    note_to_target_id,
    translate_passage,
)
from slp_guitar.fingering.viterbi import find_cheapest_fingering
from slp_guitar.fretboard import STANDARD, Note, Tuning, is_playable_grip
from slp_transformer import EncoderDecoder, TransformerConfig, cli
from slp_transformer.cache import KVCache
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.training.callbacks import Callback
from slp_transformer.training.checkpoints import save_checkpoint

TINY = 3  # rank of what is learned of pairs of states
SCALE = (60, 62, 64, 65, 67, 69, 71, 72)


def at_the_fifth_fret(pitches):
    """As someone plays who never takes an open string: everything between frets 5 and 9."""
    grips = []
    for pitch in pitches:
        places = [n for n in STANDARD.positions_of(pitch) if 5 <= n.fret <= 9]
        grips.append((min(places, key=lambda note: note.fret),))
    return grips


def pieces(count=6):
    rows = [SCALE[k % 3 :] + SCALE[: k % 3 : -1] for k in range(count)]
    return [passage_from_grips(STANDARD, at_the_fifth_fret(row)) for row in rows]


# --- The lattice -------------------------------------------------------------------------------


def test_a_state_is_a_grip_and_a_place_from_which_the_hand_reaches_it():
    made = build_moment_states((64,), STANDARD)
    found = {
        (made.grips[k][0], hand)
        for k, hand in zip(made.grip_ids.tolist(), made.hand_frets.tolist(), strict=True)
    }
    assert {hand for note, hand in found if note == Note(1, 0)} == set(range(1, 16))
    assert {hand for note, hand in found if note == Note(2, 5)} == {1, 2, 3, 4, 5}
    assert {hand for note, hand in found if note == Note(4, 14)} == {10, 11, 12, 13, 14}
    assert len(build_moment_states((52, 59, 64), STANDARD).grip_ids) <= MAX_STATES_PER_MOMENT
    assert list(possible_hand_frets((Note(6, 3), Note(1, 7)))) == [3]


def test_what_is_said_of_a_shape_is_the_same_elsewhere_on_the_neck():
    """A barre chord two frets higher differs in the place of the hand and in frets alone."""
    shape = [(6, 1), (5, 3), (4, 3), (3, 2), (2, 1), (1, 1)]
    low = extract_features(tuple(Note(s, f) for s, f in shape), 1)
    high = extract_features(tuple(Note(s, f + 2) for s, f in shape), 3)
    differ = (low != high).nonzero().flatten().tolist()
    ranges = [
        range(FEATURE_OFFSETS["hand"], FEATURE_OFFSETS["hand, with an open string"]),
        range(FEATURE_OFFSETS["fret"], FEATURE_OFFSETS["alone: string and finger"]),
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
        found = log_partition(U, M, there.unsqueeze(0), valid)[0, b]
        torch.testing.assert_close(found, every)
        marginals = compute_state_marginals(U, M, there.bool(), valid)[b]
        for t, s in itertools.product(range(length), range(S)):
            share = sum((v - every).exp() for path, v in scores.items() if path[t] == s)
            torch.testing.assert_close(marginals[t, s], torch.as_tensor(share).float())


def test_the_loss_is_how_surprising_written_tab_is():
    """Where every note has one place only, nothing surprises; otherwise what is written does."""
    only = passage_from_grips(STANDARD, [(Note(6, 0),), (Note(6, 1),), (Note(6, 3),)])
    model, sure = HandModel(TINY), PassageWindows([only]).build_batch([(0, 0, 3)])
    assert hand_model_loss(model, sure).item() == pytest.approx(0, abs=1e-4)
    written = PassageWindows(pieces(2))
    T = len(written.states[0])
    assert hand_model_loss(model, written.build_batch([(0, 0, T), (1, 0, T)])).item() > 1.6


def test_a_window_knows_what_was_written_and_how_much_time_passed():
    events = [(Note(6, 3), Note(2, 0)), (Note(2, 1),), (Note(2, 3),)]
    reader = PassageWindows([passage_from_grips(STANDARD, events, [0.0, 1.0, 2.0])])
    columns, states = reader.build_batch([(0, 0, 3)]), reader.states[0][0]
    written = columns.target_states[0, 0][: len(states.grip_ids)] > 0
    chosen = {states.grips[int(k)] for k in states.grip_ids[written]}
    assert chosen == {events[0]} and columns.gap_classes.tolist() == [[0, 3, 3]]
    assert [gap_class(gap) for gap in (None, 0.0, 0.5, 1.0, 2.0, 9.0)] == [0, 1, 2, 3, 4, 5]


# --- Learning ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned():
    settings = {"steps": 60, "batch_size": 4, "learning_rate": 0.02, "warmup_steps": 3}
    trainer = make_hand_trainer(pieces(), pieces(1), window_moments=16, **settings)
    trainer.fit()
    return trainer.model


def test_a_hand_learns_where_people_play(learned):
    written = passage_from_grips(STANDARD, at_the_fifth_fret(SCALE[::-1]))
    assert find_cheapest_fingering(written.moments, STANDARD) != list(written.grips)
    assert HandEnsemble([learned], cost_weight=0.0).predict_grips(written) == list(written.grips)


def test_a_long_piece_is_read_in_parts_and_comes_out_whole(learned, monkeypatch):
    row = (SCALE + SCALE[::-1]) * 3
    passage = passage_from_grips(STANDARD, at_the_fifth_fret(row))
    hand = HandEnsemble([learned])
    whole = hand.predict_grips(passage)
    monkeypatch.setattr(hand_model, "WINDOW_MOMENTS", 17)
    assert hand.predict_grips(passage) == whole and len(whole) == len(row)
    for grips, likely in hand.grip_probabilities(passage):
        assert float(likely.sum()) == pytest.approx(1, abs=1e-3) and len(likely) == len(grips)


def test_two_hands_agree_by_their_mean(learned):
    passage = passage_from_grips(STANDARD, at_the_fifth_fret(SCALE))
    other = HandModel(TINY)
    mean = HandEnsemble([learned, other]).grip_probabilities(passage)
    each = [HandEnsemble([hand]).grip_probabilities(passage) for hand in (learned, other)]
    for (_, both), (_, a), (_, b) in zip(mean, *each, strict=True):
        torch.testing.assert_close(both, (a + b) / 2)


def test_the_best_grip_has_most_notes_right():
    """Each note of the second is the likelier one, though the first is the likeliest as a whole."""
    a, b, c = Note(1, 0), Note(2, 5), Note(3, 9)
    x, y, z = Note(6, 0), Note(5, 7), Note(4, 2)
    grips = ((a, x), (b, y), (b, z), (c, y))
    assert select_best_grip(grips, torch.tensor([0.34, 0.18, 0.24, 0.24])) == (b, y)
    assert select_best_grip(grips, torch.tensor([0.9, 0.02, 0.04, 0.04])) == (a, x)


def test_weights_are_logarithms_and_unknown_grips_weigh_little(learned):
    passage = passage_from_grips(STANDARD, at_the_fifth_fret(SCALE[:2]))
    choices = [[(Note(3, 5),), (Note(2, 1),)], [(Note(9, 9),)]]
    weights = HandEnsemble([learned]).grip_log_probs(passage, choices)
    (grips, likely), _ = HandEnsemble([learned]).grip_probabilities(passage)
    assert weights[0][0] == pytest.approx(math.log(likely[grips.index((Note(3, 5),))]))
    assert weights[1] == [hand_model.MIN_LOG_PROB]
    seven = passage_from_grips(Tuning((64, 59, 55, 50, 45, 40, 35)), [[Note(7, 1)]])
    with pytest.raises(ValueError, match="up to 6 strings"):
        HandEnsemble([learned]).predict_grips(seven)


def test_what_is_pinned_changes_the_rest_as_conditional_probability_does():
    """P(b) is the mean of P(b given a), weighted by P(a)."""
    passage = passage_from_grips(STANDARD, at_the_fifth_fret((60, 64, 67)))
    torch.manual_seed(0)
    hand = HandEnsemble([HandModel(TINY)])
    (grips, shares), (others, expected), _ = hand.grip_probabilities(passage)
    total = torch.zeros(len(others))
    for grip, share in zip(grips, shares, strict=True):
        (_, own), (_, given), _ = hand.grip_probabilities(passage, [grip, (), ()])
        assert own[grips.index(grip)] == pytest.approx(1, abs=1e-4)
        total += share * given
        choices = [[grip], list(others), [(Note(1, 3),), (Note(2, 8),)]]
        weights = hand.grip_log_probs(passage, choices)[1]
        torch.testing.assert_close(torch.tensor(weights).exp(), given, atol=1e-4, rtol=0)
    torch.testing.assert_close(total, expected, atol=1e-4, rtol=0)
    assert not torch.allclose(given, expected, atol=0.01)


def test_a_hand_with_caution_heeds_the_costs_that_were_thought_out(learned):
    row = SCALE[::-1]
    written = passage_from_grips(STANDARD, at_the_fifth_fret(row))
    cheapest = find_cheapest_fingering(written.moments, STANDARD)
    free = HandEnsemble([learned], cost_weight=0.0).predict_grips(written)
    assert free == list(written.grips) != cheapest
    torch.manual_seed(0)
    knows_nothing = HandModel(TINY)
    knows_nothing.trust.data.zero_()
    assert HandEnsemble([knows_nothing], cost_weight=0.0).predict_grips(written) != cheapest
    assert HandEnsemble([knows_nothing], cost_weight=10.0).predict_grips(written) == cheapest


# --- Runs ----------------------------------------------------------------------------------------


class Stop(Callback):
    def on_eval(self, trainer, record):
        if record.step == 3:
            raise RuntimeError("no power")


def test_a_run_that_stopped_goes_on_to_the_same_bits_and_is_read_back(tmp_path):
    def trainer(name):
        sizes = {"steps": 6, "batch_size": 3, "eval_interval": 3}
        return make_hand_trainer(pieces(), pieces(2), tmp_path / name, window_moments=5, **sizes)

    whole, parts = trainer("whole"), trainer("parts")
    whole.fit()
    parts.callbacks += (Stop(),)
    with pytest.raises(RuntimeError, match="no power"):
        parts.fit()
    assert trainer("parts").fit(resume=True) == whole.state.eval_history
    first, second = load_hand_ensemble(tmp_path / "whole", tmp_path / "parts").models
    assert first.state_score.weight.any()
    for name, W in first.state_dict().items():
        assert torch.equal(W, second.state_dict()[name])


def test_windows_cover_every_moment_once_and_say_where_they_are():
    windows = HandWindowSource(pieces(3), 7, 5)
    lengths = [len(passage.moments) for passage in pieces(3)]
    (batch,) = windows.iter_eval(100)
    assert batch.num_targets == sum(lengths)
    assert {n for n, _, _ in batch.inputs[0].tolist()} == {7, 8, 9}
    drawn = windows.draw(500, torch.Generator().manual_seed(0))
    for n, start, end in drawn.inputs[0].tolist():
        assert 0 <= start and end - start == 5 and end <= lengths[n - 7]
    assert {start for _, start, _ in drawn.inputs[0].tolist()} == set(range(max(lengths) - 4))


def test_another_run_is_no_model_of_the_hand(tmp_path):
    save_checkpoint(tmp_path / "run", 0, torch.nn.Linear(2, 3))
    with pytest.raises(ValueError, match="does not fit the model"):
        load_hand_ensemble(tmp_path / "run")
    with pytest.raises(ValueError, match="none"):
        load_hand_ensemble(tmp_path / "none")


def train_command(tmp_path):
    lines = []
    for n, passage in enumerate(pieces(3)):
        events = [[1, [[6 - note.string, note.fret] for note in g]] for g in passage.grips]
        piece = {"file": f"{n}", "open_midi": [40, 45, 50, 55, 59, 64], "events": events}
        lines.append(json.dumps(piece))
    tabs = tmp_path / "tabs.jsonl"
    tabs.write_text("\n".join(lines), encoding="utf-8")
    return [str(tabs), "--out-dir", str(tmp_path / "run"), "--steps", "2"]


def test_the_command_trains_a_model_of_the_hand(tmp_path, capsys):
    train = train_command(tmp_path)
    assert main(train) == 0
    said = capsys.readouterr()
    assert "validation: strings" in said.out and "2 training pieces, 1 validation" in said.err
    assert len(load_hand_ensemble(tmp_path / "run").models) == 1
    assert main(train) == 2 and "holds a run already" in capsys.readouterr().err
    assert main([*train, "--resume"]) == 0
    for wrong in (["--steps", "0"], ["--val-data", "none"]):
        assert main([*train, *wrong]) == 2
    capsys.readouterr()
    assert cli.main(["generate", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "fingering model" in said and "`slp-transformer tab FILE --model" in said
    run(tmp_path / "other", steps=1)
    assert main([*train[:2], str(tmp_path / "other"), "--resume"]) == 2
    said = capsys.readouterr().err
    assert "another one: its model is a TransformerLM, not a HandModel. Resume it" in said


@pytest.mark.parametrize("moment", ["load_passages", "hand_model_loss", "compare_fingerings"])
def test_ctrl_c_is_one_sentence_and_the_run_is_resumed(tmp_path, capsys, monkeypatch, moment):
    train = train_command(tmp_path)
    with monkeypatch.context() as patched:
        own = getattr(hand_training, moment)

        def press(*args, **options):
            signal.raise_signal(signal.SIGINT)
            return own(*args, **options)

        patched.setattr(hand_training, moment, press)
        assert main(train) == 130
    (said,) = capsys.readouterr().err.splitlines()[-1:]
    if moment == "hand_model_loss":
        assert "Stopped after step 1 of 2, which is saved in" in said and "with --resume." in said
    else:
        assert said.endswith("hand_training: Stopped.")
    assert main([*train, "--resume"]) == 0


# --- Translation ---------------------------------------------------------------------------------


def small_translator(window):
    torch.manual_seed(5)
    options = {"source_vocab_size": SOURCE_VOCAB_SIZE, "positions": "sinusoidal"}
    return EncoderDecoder(TransformerConfig(TARGET_VOCAB_SIZE, 2 * window, 16, 2, 1, **options))


def test_source_and_target_have_a_token_a_note_and_a_capo_changes_nothing():
    events = [(Note(6, 3), Note(2, 0)), (Note(1, 3),)]
    passage = passage_from_grips(STANDARD, events, [0.0, 1.0])
    capo = passage_from_grips(Tuning(capo=2), events, [0.0, 1.0])
    assert len(encode_source(passage)) == len(encode_target(passage)) == 3
    assert torch.equal(encode_source(passage), encode_source(capo))
    assert torch.equal(encode_target(passage), encode_target(capo))
    kinds = (encode_source(passage) - 1) // seq2seq.NUM_RELATIVE_PITCHES
    assert kinds.tolist() == [seq2seq.NOTE_AFTER, seq2seq.NOTE_TOGETHER, seq2seq.NOTE_AFTER]
    assert seq2seq.format_target_ids(encode_target(passage).tolist()) == ["6/3", "2/0", "1/3"]
    with pytest.raises(ValueError, match="64 semitones"):
        encode_source(passage_from_grips(Tuning((104, 40)), [[Note(1, 0)]]))


def test_the_decoder_reads_notes_and_places_in_turn_and_noise_is_in_places_alone():
    pairs = FingeringDataset(pieces(), window_notes=11, noise_rate=0.5)
    batch = pairs.draw(5, torch.Generator().manual_seed(1))
    source, reads, mask = batch.inputs
    says = batch.targets
    assert mask.shape == (5, 1, 11) and reads.shape == says.shape == (5, 21)
    assert torch.equal(reads[:, ::2], source)
    changed = 0
    for row in range(5):
        count = int((source[row] != PAD_ID).sum())
        assert (says[row, ::2][:count] != IGNORE_INDEX).all()
        assert (says[row, ::2][count:] == IGNORE_INDEX).all()
        assert (says[row, 1::2] == IGNORE_INDEX).all()
        changed += int((reads[row, 1::2] != says[row, ::2][:-1])[: count - 1].sum())
    assert 0 < changed < 50
    whole = next(pairs.iter_eval(100))
    told = whole.targets[:, ::2] != IGNORE_INDEX
    assert int(told.sum()) == sum(len(p.moments) for p in pieces())
    heard, said = whole.inputs[1][:, 1::2], whole.targets[:, ::2]
    assert torch.equal(heard[told[:, 1:]], said[:, :-1][told[:, 1:]])
    assert pairs.fingerprint()["pieces"] == 6


def test_translation_keeps_pitches_and_grips_whatever_the_weights():
    moments = [(64,), (48, 52, 55, 60, 64), (43, 72), (52, 59)] * 3
    passage = passage_from_grips(STANDARD, find_cheapest_fingering(moments, STANDARD))
    written = translate_passage(small_translator(13), passage, window_notes=13)
    assert [tuple(map(STANDARD.pitch_of, grip)) for grip in written] == moments
    assert all(is_playable_grip(g) for g, m in zip(written, moments, strict=True) if m != (43, 72))
    assert written[2] == (Note(6, 3), Note(1, 8))


def test_translation_is_the_likeliest_legal_place_each_time():
    """As computed anew, without a cache, for every note of a short piece."""
    model = small_translator(9).eval()
    moments = [(64,), (55, 64), (59,), (52, 67), (60,)]
    passage = passage_from_grips(STANDARD, find_cheapest_fingering(moments, STANDARD))
    source, places_so_far, expected = encode_source(passage), [], []
    for pitches in moments:
        grip = ()
        for _ in pitches:
            notes = source[: len(places_so_far) + 1]
            reads = seq2seq.interleave_notes_and_targets(notes, torch.tensor(places_so_far))
            with torch.no_grad():
                H_enc, cache = model.encode(source.unsqueeze(0)), KVCache()
                u = model.decode(reads.unsqueeze(0), H_enc, cache=cache)[0, -1]
            places = allowed_next_notes(grip, pitches, STANDARD)
            best = max(places, key=lambda note: float(u[note_to_target_id(note)]))
            grip = (*grip, best)
            places_so_far.append(note_to_target_id(best))
        expected.append(grip)
    assert translate_passage(model, passage, window_notes=9) == expected


def test_enough_beams_find_the_likeliest_legal_fingering_of_all():
    """As found by trying all; the greedy one, with these weights, is less likely."""
    model = small_translator(9).eval()
    for W in model.parameters():
        W.data.mul_(10)  # so that what was written matters
    moments = [(52, 60), (64,), (59,)]
    passage = passage_from_grips(STANDARD, find_cheapest_fingering(moments, STANDARD))
    ways = list(itertools.product(*(find_grips(pitches, STANDARD) for pitches in moments)))
    ids = torch.tensor([[note_to_target_id(n) for grip in way for n in grip] for way in ways])
    source = encode_source(passage)
    reads = torch.stack([seq2seq.interleave_notes_and_targets(source, row) for row in ids])
    with torch.no_grad():
        log_y = model(source.expand(len(ways), -1), reads)[:, ::2].log_softmax(-1)
    totals = log_y.gather(2, ids.unsqueeze(2)).sum((1, 2)).tolist()
    scores = dict(zip(ways, totals, strict=True))
    found = {beams: tuple(translate_passage(model, passage, 9, beams)) for beams in (1, 150)}
    assert found[150] == max(scores, key=scores.__getitem__)
    assert scores[found[1]] < scores[found[150]]
    assert tuple(translate_passage(model, passage, 3, 7)) in scores, "over windows as well"


def test_beyond_a_window_a_translation_goes_on_from_its_last_half():
    """Of one note, of a window and less, of several windows; a chord across a window's end."""
    model, chord = small_translator(7), (48, 52, 55, 60, 64)
    for moments in [[(64,)], [(60,), chord, (62,)], [(64,), chord, (41,), chord] * 4]:
        passage = passage_from_grips(STANDARD, find_cheapest_fingering(moments, STANDARD))
        written = translate_passage(model, passage, window_notes=7)
        assert [tuple(map(STANDARD.pitch_of, grip)) for grip in written] == moments
