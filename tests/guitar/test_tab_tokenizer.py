"""Tab tokens: nothing is lost, nothing crashes, and what is wrong is named. Then the metrics."""

import json
import random

import pytest

from slp_transformer.guitar.fretboard import DADGAD, STANDARD, Note, Tuning
from slp_transformer.guitar.practice import make_practice_corpus
from slp_transformer.guitar.tab import Bar, Event, Tab, Technique
from slp_transformer.guitar.tab_metrics import (
    compute_hand_shifts,
    compute_mean_hand_shift,
    compute_playable_share,
    valid_sequence_share,
)
from slp_transformer.guitar.tab_tokenizer import (
    DEFAULT_STEPS_PER_QUARTER,
    TabTokenizer,
    encode_all_tabs,
)

TOKENIZER = TabTokenizer(steps_per_quarter_options=DEFAULT_STEPS_PER_QUARTER)
HEADER = ["<bos>", "TUNING<standard>", "CAPO<0>", "COLUMNS"]


def event(step, *places):
    return Event(step, tuple(Note(string, fret) for string, fret in places))


def piece(*bars, tuning=STANDARD):
    return Tab(tuning=tuning, bars=bars)


def decoded(*names, tokenizer=TOKENIZER):
    return tokenizer.decode(tokenizer.to_ids(names))


def test_a_piece_by_hand():
    tab = piece(
        Bar(16, (event(0, (6, 3)), event(2, (4, 0), (1, 3)))),
        Bar(70, (event(69, (2, 24)),)),
        Bar(300, (event(128, (5, 1)), event(129, (5, 2)))),
        tuning=Tuning(DADGAD.open_pitches, capo=2),
    )
    assert TOKENIZER.to_tokens(TOKENIZER.encode(tab)) == [
        "<bos>", "TUNING<DADGAD>", "CAPO<2>", "COLUMNS",
        "BAR", "TAB<6,3>", "POS<2>", "TAB<4,0>", "TAB<1,3>", "POS<16>",
        "BAR", "POS<69>", "TAB<2,24>", "POS<70>",
        "BAR", "POS<128>", "TAB<5,1>", "LONG", "POS<1>", "TAB<5,2>", "LONG", "POS<44>",
        "<eos>",
    ]  # fmt: skip


def test_the_vocabulary_is_small_and_has_no_doubles():
    assert len(TOKENIZER) == TOKENIZER.vocab_size == 3 + 10 + 49 + 13 + 2 + 128 + 6 * 25 + 10
    assert len(set(TOKENIZER.vocabulary)) == len(TOKENIZER)
    ids = (TOKENIZER.pad_id, TOKENIZER.bos_id, TOKENIZER.eos_id)
    assert TOKENIZER.to_tokens(ids) == ["<pad>", "<bos>", "<eos>"]
    assert TOKENIZER.to_tokens([-1, len(TOKENIZER)]) == ["<?>", "<?>"]


@pytest.mark.parametrize("seed", [0, 3])
def test_the_practice_corpus_comes_back(seed):
    for tab in make_practice_corpus(seed, 150):
        ids = TOKENIZER.encode(tab)
        result = TOKENIZER.decode(ids)
        assert (result.tab.tuning, result.tab.bars) == (tab.tuning, tab.bars)
        assert (result.num_invalid_tokens, result.num_tokens, result.is_complete) == (
            0,
            len(ids),
            True,
        )


def random_tab(rng):
    """A tab with nothing musical about it: any tuning, any bar length, any chord."""
    tuning = Tuning(tuple(rng.randint(28, 76) for _ in range(6)), rng.randint(0, 12))
    bars = []
    for _ in range(rng.randint(0, 4)):
        steps = rng.choice([1, 7, 127, 128, 129, 256, 400])
        events = []
        for step in sorted(rng.sample(range(steps), rng.randint(0, min(5, steps)))):
            strings = sorted(rng.sample(range(1, 7), rng.randint(1, 6)), reverse=True)
            events.append(event(step, *((s, rng.randint(0, 24)) for s in strings)))
        bars.append(Bar(steps, tuple(events)))
    return Tab(tuning=tuning, bars=tuple(bars))


def test_any_tab_comes_back():
    rng = random.Random(13)
    for _ in range(200):
        tab = random_tab(rng)
        result = TOKENIZER.decode(TOKENIZER.encode(tab))
        assert result.tab == tab and result.num_invalid_tokens == 0


def test_any_ids_are_read_and_what_is_well_formed_comes_back():
    rng = random.Random(17)
    for _ in range(300):
        ids = [rng.randrange(-2, len(TOKENIZER) + 2) for _ in range(rng.randint(0, 60))]
        tab = TOKENIZER.decode(ids).tab
        assert TOKENIZER.decode(TOKENIZER.encode(tab)).tab == tab


def test_what_the_grammar_allows_is_well_formed_and_written_in_one_way():
    rng = random.Random(19)
    for _ in range(15):
        ids = []
        while not ids or (ids[-1] != TOKENIZER.eos_id and len(ids) < 40):
            ids.append(rng.choice(sorted(TOKENIZER.allowed_next_ids(ids))))
        result = TOKENIZER.decode(ids)
        assert result.num_invalid_tokens == 0
        if result.is_complete:
            assert TOKENIZER.encode(result.tab) == ids


def test_every_token_of_the_corpus_is_allowed_where_it_stands():
    for tab in make_practice_corpus(1, 5):
        ids = TOKENIZER.encode(tab)
        for i in range(0, len(ids), 3):
            assert ids[i] in TOKENIZER.allowed_next_ids(ids[:i])
        assert TOKENIZER.allowed_next_ids(ids) == set()


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        ([], {"<bos>"}),
        (["<bos>"], {"TUNING<standard>", "OPEN<40>"}),
        (["<bos>", "OPEN<40>"], {"OPEN<45>"}),
        (["<bos>", *["OPEN<40>"] * 6], {"CAPO<0>"}),
        (HEADER, {"BAR", "<eos>"}),
        ([*HEADER, "BAR"], {"TAB<6,0>", "TAB<1,0>", "POS<4>", "POS<5>", "LONG"}),
        ([*HEADER, "BAR", "TAB<3,2>"], {"TAB<2,0>", "TAB<1,0>", "POS<4>", "POS<5>", "LONG"}),
        ([*HEADER, "BAR", "TAB<1,2>"], {"POS<4>", "POS<5>", "LONG"}),
        ([*HEADER, "BAR", "POS<4>"], {"TAB<6,0>", "TAB<1,0>", "BAR", "<eos>"}),
        ([*HEADER, "BAR", "POS<4>", "TAB<1,0>"], {"POS<5>", "LONG"}),
        ([*HEADER, "BAR", "POS<4>", "TAB<1,0>", "LONG"], {"POS<4>", "POS<5>", "LONG"}),
    ],
)
def test_allowed_next_by_hand(before, allowed):
    asked = {
        "<pad>", "<bos>", "<eos>", "TUNING<standard>", "OPEN<40>", "OPEN<45>", "CAPO<0>", "BAR",
        "LONG", "POS<4>", "POS<5>", "TAB<6,0>", "TAB<3,0>", "TAB<2,0>", "TAB<1,0>",
    }  # fmt: skip
    found = set(TOKENIZER.to_tokens(TOKENIZER.allowed_next_ids(TOKENIZER.to_ids(before))))
    if any("OPEN" in name for name in allowed):
        allowed = allowed | {"OPEN<40>", "OPEN<45>"}
    if "TAB<6,0>" in allowed:
        allowed = allowed | {"TAB<3,0>", "TAB<2,0>"}
    assert found & asked == allowed


@pytest.mark.parametrize(
    ("names", "ill_formed", "bars"),
    [
        # A string that is not above the one before it is skipped, and so is one used twice.
        ([*HEADER, "BAR", "TAB<2,1>", "TAB<5,3>", "TAB<2,4>", "POS<4>", "<eos>"], 2,
         (Bar(4, (event(0, (2, 1)),)),)),
        # A bar line or the end right behind notes is obeyed; the notes last one step.
        ([*HEADER, "BAR", "TAB<1,0>", "BAR", "POS<3>", "TAB<1,2>", "<eos>"], 2,
         (Bar(1, (event(0, (1, 0)),)), Bar(4, (event(3, (1, 2)),)))),
        # A bar before the header is complete begins the music all the same.
        (["<bos>", "TAB<1,0>", "BAR", "TAB<1,1>", "POS<2>", "<eos>"], 2,
         (Bar(2, (event(0, (1, 1)),)),)),
        # A bar without any time in it is dropped.
        ([*HEADER, "BAR", "BAR", "POS<3>", "<eos>"], 1, (Bar(3, ()),)),
        # Time does not go back, nor stand still.
        ([*HEADER, "BAR", "POS<6>", "TAB<1,1>", "POS<5>", "POS<6>", "POS<8>", "<eos>"], 2,
         (Bar(8, (event(6, (1, 1)),)),)),
        # A position without notes is the end of the bar.
        ([*HEADER, "BAR", "POS<3>", "POS<4>", "LONG", "<eos>"], 2, (Bar(3, ()),)),
        # A moment needs a position of its own after LONG.
        ([*HEADER, "BAR", "LONG", "TAB<1,1>", "POS<2>", "<eos>"], 1, (Bar(130, ()),)),
        # Header tokens, padding and a second beginning have no place inside a bar.
        ([*HEADER, "BAR", "CAPO<3>", "<pad>", "<bos>", "OPEN<40>", "POS<3>", "<eos>"], 4,
         (Bar(3, ()),)),
        # What stands behind the end is not read.
        ([*HEADER, "BAR", "POS<3>", "<eos>", "<pad>", "BAR"], 0, (Bar(3, ()),)),
    ],
)  # fmt: skip
def test_ill_formed_tokens_are_counted_and_the_rest_is_kept(names, ill_formed, bars):
    result = decoded(*names)
    assert result.num_invalid_tokens == ill_formed
    assert result.tab.bars == bars
    assert result.is_complete


def test_a_piece_that_breaks_off_is_kept_and_is_not_complete():
    result = decoded(*HEADER, "BAR", "POS<2>", "TAB<5,3>", "TAB<1,0>")
    assert result.tab.bars == (Bar(3, (event(2, (5, 3), (1, 0)),)),)
    assert result.num_invalid_tokens == 0 and not result.is_complete


def test_a_middle_is_read_in_the_tuning_that_is_given():
    ids = TOKENIZER.to_ids(["TAB<5,3>", "POS<4>", "BAR", "POS<8>"])
    result = TOKENIZER.decode(ids, default_tuning=DADGAD)
    assert result.tab == piece(Bar(4, (event(0, (5, 3)),)), Bar(8, ()), tuning=DADGAD)
    assert result.num_invalid_tokens == 0


def test_the_share_of_well_formed_tokens():
    result = decoded(*HEADER, "BAR", "TAB<1,0>", "TAB<1,0>", "POS<1>", "<eos>")
    assert (result.num_invalid_tokens, result.num_tokens) == (1, 9)
    assert result.valid_token_share == 1 - 1 / 9
    assert TOKENIZER.decode([]).valid_token_share == 1.0


def test_ids_outside_the_vocabulary_are_ill_formed():
    ids = [*TOKENIZER.to_ids([*HEADER, "BAR"]), -1, len(TOKENIZER), 10**6]
    assert TOKENIZER.decode(ids).num_invalid_tokens == 3


def test_an_unknown_tuning_is_spelled_from_the_low_string_up():
    tuning = Tuning((65, 60, 55, 50, 45, 40), capo=1)
    assert TOKENIZER.tuning_tokens(tuning) == [
        "OPEN<40>", "OPEN<45>", "OPEN<50>", "OPEN<55>", "OPEN<60>", "OPEN<65>", "CAPO<1>",
    ]  # fmt: skip
    assert TOKENIZER.decode(TOKENIZER.encode(piece(tuning=tuning))).tab.tuning == tuning


@pytest.mark.parametrize(
    ("tab", "sentence"),
    [
        (piece(tuning=Tuning((64, 59, 55, 50))), "6 strings, not 4"),
        (piece(tuning=Tuning(capo=13)), "fret 0 to 12, not 13"),
        (piece(tuning=Tuning((64, 59, 55, 50, 45, 27))), "between the MIDI pitches 28 and 76"),
        (piece(Bar(4, ()), Bar(0, ())), "Bar 2 has 0 steps"),
        (piece(Bar(4, ()), Bar(4, (event(4, (1, 0)),))), "Bar 2, step 4: .*inside the 4 steps"),
        (piece(Bar(4, (event(1, (1, 0)), event(1, (2, 0))))), "Bar 1, step 1: .*in order"),
        (piece(Bar(4, (event(0, (1, 0)), event(0, (2, 0))))), "Bar 1, step 0: .*in order"),
        (piece(Bar(4, (event(-1, (1, 0)),))), "Bar 1, step -1: .*in order"),
        (piece(Bar(4, (event(0, (1, 0), (2, 0)),))), r"Bar 1, step 0: .*on strings \[1, 2\]"),
        (piece(Bar(4, (event(0, (2, 0), (2, 3)),))), r"Bar 1, step 0: .*on strings \[2, 2\]"),
        (piece(Bar(4, (Event(0, ()),))), r"Bar 1, step 0: .*on strings \[\]"),
        (piece(Bar(4, (event(0, (1, 25)),))), "Bar 1, step 0: no token for string 1, fret 25"),
        (piece(Bar(4, (event(0, (7, 1)),))), "Bar 1, step 0: no token for string 7"),
    ],
)
def test_what_cannot_be_encoded_is_named(tab, sentence):
    with pytest.raises(ValueError, match=sentence):
        TOKENIZER.encode(tab)


def test_a_stream_has_every_piece_from_beginning_to_end():
    tabs = make_practice_corpus(2, 3)
    stream = encode_all_tabs(tabs, TOKENIZER)
    assert stream == [i for tab in tabs for i in TOKENIZER.encode(tab)]
    with pytest.raises(ValueError, match="etude.txt: Bar 1 has 0 steps"):
        encode_all_tabs([Tab(source="etude.txt", bars=(Bar(0, ()),))], TOKENIZER)


def test_the_settings_come_back():
    small = TabTokenizer(max_fret=17, max_position=8, max_capo=3, tunings={"mine": DADGAD})
    again = TabTokenizer.from_json(small.to_json())
    assert again.vocabulary == small.vocabulary and again.to_json() == small.to_json()
    assert again.encode(piece(Bar(9, ()), tuning=DADGAD)) == small.encode(
        piece(Bar(9, ()), tuning=DADGAD)
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"kind": "tab tokens"}',
        '{"kind": "tab tokens", "tunings": {}, "max_frets": 3}',
        '{"kind": "tab tokens", "tunings": {"a": [1, 2]}}',
        '{"kind": "tab tokens", "tunings": {"a": 3}}',
        json.dumps({"kind": "tab tokens", "tunings": {}, "max_fret": -1}),
        json.dumps({"kind": "tab tokens", "tunings": {}, "max_position": 0}),
        json.dumps({"kind": "tab tokens", "tunings": {}, "max_capo": "2"}),
    ],
)
def test_settings_that_are_none_are_refused(text):
    with pytest.raises(ValueError):
        TabTokenizer.from_json(text)


def test_the_unit_of_time_is_said():
    bars = (Bar(3, (event(0, (1, 0)),)),)
    timed = Tab(bars=bars, steps_per_quarter=3)
    ids = TOKENIZER.encode(timed)
    assert TOKENIZER.to_tokens(ids)[3] == "STEPS<3>" and TOKENIZER.decode(ids).tab == timed
    after = TOKENIZER.to_ids(HEADER[:3])
    units = {"COLUMNS", *(f"STEPS<{n}>" for n in (1, 2, 3, 4, 6, 8, 12, 16, 24))}
    assert set(TOKENIZER.to_tokens(TOKENIZER.allowed_next_ids(after))) == units
    with pytest.raises(ValueError, match="no token for 7 steps to a quarter note"):
        TOKENIZER.encode(Tab(bars=bars, steps_per_quarter=7))


def test_without_units_no_token_tells_the_unit():
    timeless = TabTokenizer()
    assert set(TOKENIZER.vocabulary) - set(timeless.vocabulary) == {
        "COLUMNS", *(f"STEPS<{unit}>" for unit in DEFAULT_STEPS_PER_QUARTER),
    }  # fmt: skip
    ids = timeless.encode(Tab(bars=(Bar(3, ()),), steps_per_quarter=3))
    assert timeless.to_tokens(ids) == [*HEADER[:3], "BAR", "POS<3>", "<eos>"]
    assert timeless.decode(ids).num_invalid_tokens == 0


def test_what_has_no_token_of_its_own_is_left_out():
    dead = (Technique("dead"),)
    first = Event(0, (Note(6, 3), Note(5, 0)), (2, 2), ((), dead))
    bar = Bar(4, (first, Event(2, (Note(1, 0),), techniques=(dead,))), (4, 4), tempo_bpm=90)
    plain = piece(Bar(4, (event(0, (6, 3)),)))
    assert TOKENIZER.decode(TOKENIZER.encode(piece(bar))).tab == plain


def test_a_name_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="'TAB<7,0>' is not in the vocabulary"):
        TOKENIZER.to_ids(["TAB<7,0>"])


def test_playable_share_by_hand():
    events = [
        event(0, (6, 3), (5, 2), (1, 3)),
        event(1, (6, 1), (1, 6)),
        event(2, (6, 0), (1, 12)),
        event(3, (2, 20)),
        Event(4, (Note(2, 1), Note(2, 3))),
    ]
    assert compute_playable_share(events) == 2 / 5
    assert compute_playable_share(events, max_span=5) == 3 / 5
    assert compute_playable_share(events, max_fret=24) == 3 / 5
    assert compute_playable_share([]) == 0.0


@pytest.mark.parametrize("note", [Note(0, 1), Note(7, 1), Note(3, -1)])
def test_a_note_off_the_guitar_cannot_be_played(note):
    assert compute_playable_share([Event(0, (note,))]) == 0.0


def test_hand_shifts_by_hand():
    events = [
        event(0, (6, 3), (5, 5)),
        event(1, (1, 0)),
        event(2, (1, 7), (2, 0)),
        event(3, (1, 5)),
    ]
    assert compute_hand_shifts(events) == [4, 2]
    assert compute_mean_hand_shift(events) == 3.0
    assert compute_mean_hand_shift(events[:2]) == 0.0


def test_well_formed_share_by_hand():
    assert valid_sequence_share([0, 3, 0, 0]) == 0.75
    assert valid_sequence_share([]) == 0.0


def test_the_whole_corpus_can_be_played():
    assert (
        compute_playable_share(e for tab in make_practice_corpus(4, 60) for e in tab.iter_events())
        == 1.0
    )
