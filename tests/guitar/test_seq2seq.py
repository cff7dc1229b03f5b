"""Pitch to tab as translation: what is read and written, and that pitches are kept."""

import itertools

import pytest
import torch

from slp_guitar.fingering import seq2seq
from slp_guitar.fingering.grips import allowed_next_notes, find_grips, find_playable_grips
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
from slp_guitar.fretboard import STANDARD, Note, Tuning, is_playable_grip
from slp_transformer import EncoderDecoder, TransformerConfig
from slp_transformer.cache import KVCache
from slp_transformer.loss import IGNORE_INDEX

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


def some_passage(moments):
    return passage_from_grips(STANDARD, [find_playable_grips(own, STANDARD)[0] for own in moments])


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
    passage = passage_from_grips(
        STANDARD, [find_playable_grips(own, STANDARD)[0] for own in moments]
    )
    written = translate_passage(small_translator(13), passage, window_notes=13)
    assert [tuple(map(STANDARD.pitch_of, grip)) for grip in written] == moments
    assert all(is_playable_grip(g) for g, m in zip(written, moments, strict=True) if m != (43, 72))
    assert written[2] == (Note(6, 3), Note(1, 8))


def test_translation_is_the_likeliest_legal_place_each_time():
    """As computed anew, without a cache, for every note of a short piece."""
    model = small_translator(9).eval()
    moments = [(64,), (55, 64), (59,), (52, 67), (60,)]
    passage = passage_from_grips(
        STANDARD, [find_playable_grips(own, STANDARD)[0] for own in moments]
    )
    source, places_so_far, expected = encode_source(passage), [], []
    for pitches in moments:
        grip = ()
        for _ in pitches:
            notes = source[: len(places_so_far) + 1]
            reads = seq2seq.interleave_notes_and_targets(
                notes, torch.tensor(places_so_far, dtype=torch.long)
            )
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
    passage = passage_from_grips(
        STANDARD, [find_playable_grips(own, STANDARD)[0] for own in moments]
    )
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
        passage = passage_from_grips(
            STANDARD, [find_playable_grips(own, STANDARD)[0] for own in moments]
        )
        written = translate_passage(model, passage, window_notes=7)
        assert [tuple(map(STANDARD.pitch_of, grip)) for grip in written] == moments
