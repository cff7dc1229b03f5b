"""Generation of tabs: what may come next is what one hand can take."""

import random

from slp_transformer.guitar import TabTokenizer
from slp_transformer.guitar.fretboard import TUNINGS, is_playable_grip
from slp_transformer.guitar.tab_session import TabSession


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
