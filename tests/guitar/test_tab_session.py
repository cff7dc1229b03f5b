"""Generation of tabs: what may come next is what one hand can take and notation can hold."""

import random
from functools import cache

import pytest

from slp_guitar import TabTokenizer
from slp_guitar.bar_lengths import (
    METER_OF_COLUMNS,
    NOTATED_STEPS_PER_QUARTER,
    count_bar_steps,
)
from slp_guitar.formats.registry import read_any_tab_file
from slp_guitar.fretboard import TUNINGS, is_playable_grip
from slp_guitar.tab_session import TabSession
from slp_guitar.timing import time_signature_of


def test_any_walk_along_what_is_allowed_can_be_played():
    tokenizer, num_refused, num_chords = TabTokenizer(), 0, 0
    for seed, name in enumerate(("standard", "open-G")):
        rng = random.Random(seed)
        session = TabSession(tokenizer, TUNINGS[name])
        ids = session.begin(None)
        while session.kinds[ids[-1]] != "BAR":
            ids.append(rng.choice(sorted(session.allowed(ids) - {tokenizer.eos_id})))
        for _ in range(60):
            allowed = session.allowed(ids) - {tokenizer.eos_id}
            num_refused += len(tokenizer.allowed_next_ids(ids) - {tokenizer.eos_id} - allowed)
            notes = sorted(i for i in allowed if session.kinds[i] in ("TAB", "WITH"))
            ids.append(rng.choice(notes or sorted(allowed)))
        tab = tokenizer.decode(ids).tab
        chords = [event.notes for event in tab.iter_events() if len(event.notes) > 1]
        assert all(is_playable_grip(chord, tuning=tab.tuning) for chord in chords)
        num_chords += len(chords)
    assert num_refused > 50 and num_chords > 10


def walk(session, num_tokens, seed):
    """Return a piece of random tokens that are allowed, and ends soon after so many."""
    rng, ids = random.Random(seed), session.begin(None)
    while ids[-1] != session.stop:
        may = sorted(session.allowed(ids))
        stay = [i for i in may if session.kinds[i] not in ("<eos>", "SAME", "LONG", "WITH")]
        end = [session.stop] if session.stop in may else may
        ids.append(rng.choice(stay or may) if len(ids) < num_tokens else end[0])
    return ids


# Units of 5 and 64 are none that notation has; bars of 13 positions need LONGER.
SMALL = TabTokenizer(max_fret=1, max_position=13, steps_per_quarter_options=(1, 5, 12, 64))


@pytest.mark.parametrize("header", [None, {"METRE": "9/8"}])
def test_all_bars_of_a_generated_piece_fill_its_time_signature(header):
    units = set()
    for seed in range(8):
        session = TabSession(SMALL, TUNINGS["standard"], header)
        tab = SMALL.decode(walk(session, 30, seed)).tab
        stated = tab.bars[0].time_signature
        (steps,) = {bar.steps for bar in tab.bars}
        own = [tab.steps_per_quarter] if tab.steps_per_quarter else NOTATED_STEPS_PER_QUARTER
        if stated:
            assert steps in [count_bar_steps(stated, unit) for unit in own]
        elif tab.steps_per_quarter is None:
            assert steps in METER_OF_COLUMNS
        units.add(tab.steps_per_quarter)
    assert units == ({None, 1, 12} if header is None else {None, 12})


@cache
def generated_pieces():
    """Return some pieces, with what generated them."""
    sessions = [TabSession(SMALL, TUNINGS["open-G"]) for _ in range(5)]
    return [(session, walk(session, 40, seed)) for seed, session in enumerate(sessions)]


@pytest.mark.parametrize("suffix", ["gp5", "mid", "musicxml", "atex"])
def test_what_is_generated_can_be_written(suffix, tmp_path):
    path = tmp_path / f"piece.{suffix}"
    for session, ids in generated_pieces():
        remarks = session.write(path, ids)
        (tab, *_), _ = read_any_tab_file(path)
        generated = SMALL.decode(ids).tab
        assert len(tab.bars) == len(generated.bars)
        assert not any("did not fit" in remark for remark in remarks)
        if stated := generated.bars[0].time_signature:
            assert time_signature_of(tab.bars[0], tab.steps_per_quarter) == stated
            assert remarks == []


def test_after_bars_of_different_lengths_new_ones_are_as_long_as_most():
    tokens = "<bos> TUNING<standard> CAPO<0> COLUMNS METRE<none> KEY<none>"
    ids = SMALL.to_ids(f"{tokens} BAR<8> TAB<1,0> BAR<8> TAB<1,1> BAR<6> TAB<2,0>".split())
    allowed = SMALL.to_tokens(sorted(SMALL.allowed_next_ids(ids, fill_bars=True)))
    bars = [token for token in allowed if token.startswith(("BAR", "SAME"))]
    assert bars == ["BAR<8>", "SAME<2>", "SAME<3>"]
