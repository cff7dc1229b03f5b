"""Tab tokens: nothing is lost, nothing crashes, and what is wrong is named."""

import random
from dataclasses import replace
from itertools import product

import pytest
import torch
from guitar_pieces import event
from sampled import mostly_slow

from slp_guitar.fretboard import DADGAD, DROP_D, STANDARD, Note, Tuning
from slp_guitar.practice import make_practice_corpus
from slp_guitar.tab import Bar, Event, Tab, Technique
from slp_guitar.tab_dataset import collect_styles
from slp_guitar.tab_tokenizer import TabTokenizer, encode_all_tabs
from slp_transformer.data.batches import DocumentWindowSource

STYLES = ("Jazz", "Drop D, slow")
TOKENIZER = TabTokenizer()
STYLED = TabTokenizer(styles=STYLES)
HEADER = ["<bos>", "TUNING<standard>", "CAPO<0>", "COLUMNS", "METRE<none>", "KEY<none>"]


def piece(*bars, tuning=STANDARD):
    return Tab(tuning=tuning, bars=bars)


def names(tab):
    return TOKENIZER.to_tokens(TOKENIZER.encode(tab))


def decoded(*names, tokenizer=TOKENIZER):
    return tokenizer.decode(tokenizer.to_ids(names))


def plainly(tab):
    """The tuning and bars as the tokens say them: lengths and sounding notes."""
    return tab.tuning, [
        (bar.steps, [(e.step, e.sounding_notes()) for e in bar.events if e.sounding_notes()])
        for bar in tab.bars
    ]


# --- Encoding ------------------------------------------------------------------------------------


def test_a_piece_by_hand():
    riff = (event(0, (6, 0), (1, 3)), event(2, (4, 2)), event(4, (3, 0)), event(5, (2, 1)))
    again, other = Bar(16, riff), Bar(8, (event(3, (5, 2)), event(7, (5, 3))))
    tab = Tab(
        tuning=replace(DROP_D, capo=2),
        bars=(replace(again, time_signature=(4, 4)), other, again, Bar(16, ()), Bar(16, ()), other),
        steps_per_quarter=4,
    )
    assert names(tab) == [
        "<bos>", "TUNING<drop-D>", "CAPO<2>", "STEPS<4>", "METRE<4/4>", "KEY<A>",
        "BAR<16>", "TAB<6,0>", "WITH<1,3>", "POS<2>", "TAB<4,2>",
        "POS<4>", "TAB<3,0>", "POS<5>", "TAB<2,1>",
        "BAR<8>", "POS<3>", "TAB<5,2>", "POS<7>", "TAB<5,3>",
        "SAME<2>", "BAR<16>", "BAR<16>", "SAME<4>", "<eos>",
    ]  # fmt: skip
    back = TOKENIZER.decode(TOKENIZER.encode(tab))
    assert back.tab == tab and (back.num_invalid_tokens, back.is_complete) == (0, True)


def test_long_bars_by_hand():
    bar = Bar(300, (event(0, (6, 1)), event(130, (6, 2)), event(260, (6, 3)), event(261, (6, 4))))
    tokens = names(Tab(bars=(bar,)))[6:]
    assert tokens == [
        "BAR<44>", "LONGER", "LONGER", "TAB<6,1>", "LONG", "POS<2>", "TAB<6,2>", "LONG",
        "POS<4>", "TAB<6,3>", "POS<5>", "TAB<6,4>", "<eos>",
    ]  # fmt: skip


def test_the_vocabulary_is_small_and_has_no_doubles():
    header, bars = 3 + 10 + 49 + 13 + 10 + 15 + 25, 3 * 128 + 2 + 2 * 6 * 25
    assert len(TOKENIZER) == TOKENIZER.vocab_size == header + bars
    assert len(set(TOKENIZER.vocabulary)) == len(TOKENIZER)
    ids = (TOKENIZER.pad_id, TOKENIZER.bos_id, TOKENIZER.eos_id)
    assert TOKENIZER.to_tokens(ids) == ["<pad>", "<bos>", "<eos>"]
    assert TOKENIZER.to_tokens([-1, len(TOKENIZER)]) == ["<?>", "<?>"]
    with pytest.raises(ValueError, match="'TAB<7,0>' is not in the vocabulary"):
        TOKENIZER.to_ids(["TAB<7,0>"])


@pytest.mark.parametrize("seed", [0, 3])
def test_the_practice_corpus_comes_back(seed):
    for tab in make_practice_corpus(seed, 150):
        ids = TOKENIZER.encode(tab)
        back = TOKENIZER.decode(ids)
        assert plainly(back.tab) == plainly(tab)
        found = back.num_invalid_tokens, back.num_tokens, back.is_complete
        assert found == (0, len(ids), True)


def random_tab(rng):
    """A tab with nothing musical about it, in which bars come back, and dead notes stand."""
    bars = []
    for _ in range(rng.randint(0, 7)):
        if bars and rng.random() < 0.4:
            bars.append(rng.choice(bars))
            continue
        steps = rng.choice([1, 5, 7, 127, 128, 129, 256, 400])
        events = []
        for step in sorted(rng.sample(range(steps), rng.randint(0, min(5, steps)))):
            strings = sorted(rng.sample(range(1, 7), rng.randint(1, 6)), reverse=True)
            notes = tuple(Note(s, rng.randint(0, 24)) for s in strings)
            dead = ((Technique("dead"),),) * len(notes) * (rng.random() < 0.1)
            events.append(Event(step, notes, techniques=dead))
        bars.append(Bar(steps, tuple(events)))
    tuning = Tuning(tuple(rng.randint(28, 76) for _ in range(6)), rng.randint(0, 12))
    return Tab(tuning=tuning, bars=tuple(bars))


def test_any_tab_comes_back_and_its_tokens_are_allowed_where_they_stand():
    rng = random.Random(13)
    for number in range(200):
        tab = random_tab(rng)
        ids = TOKENIZER.encode(tab)
        result = TOKENIZER.decode(ids)
        assert plainly(result.tab) == plainly(tab) and result.num_invalid_tokens == 0
        if number < 30:
            for i in range(0, len(ids), 3):
                assert ids[i] in TOKENIZER.allowed_next_ids(ids[:i])
            assert TOKENIZER.allowed_next_ids(ids) == set()


def test_any_ids_are_read_and_what_is_well_formed_comes_back():
    rng = random.Random(17)
    for _ in range(300):
        ids = [rng.randrange(-2, len(TOKENIZER) + 2) for _ in range(rng.randint(0, 60))]
        tab = TOKENIZER.decode(ids).tab
        assert plainly(TOKENIZER.decode(TOKENIZER.encode(tab)).tab) == plainly(tab)


@pytest.mark.parametrize(
    ("styles", "pieces"),
    mostly_slow([((), 150), (STYLES, 150), (STYLES, 60)], (STYLES, 60), unpack=True),
)
def test_what_the_grammar_allows_is_well_formed_and_never_a_dead_end(styles, pieces):
    small = TabTokenizer(2, 3, steps_per_quarter_options=(1,), styles=styles)
    rng, seen = random.Random(19), set()
    for _ in range(pieces):
        ids = []
        while not ids or (ids[-1] != small.eos_id and len(ids) < 60):
            may = sorted(small.allowed_next_ids(ids))
            stay = [i for i in may if i != small.eos_id and "BAR<1>" != small.vocabulary[i]]
            ids.append(rng.choice(stay or may if len(ids) < 30 else may))
        result = small.decode(ids)
        assert result.num_invalid_tokens == 0
        again = small.decode(small.encode(result.tab)).tab
        assert plainly(again) == plainly(result.tab) and again.style == result.tab.style
        seen |= {small.parsed_vocabulary[i][0] for i in ids}
        kinds = [small.parsed_vocabulary[i][0] for i in ids]
        header = kinds[: kinds.index("BAR")]
        assert header[-3:] == ["METRE", "KEY", "STYLE"] if styles else header[-1] == "KEY"
    assert {"SAME", "LONG", "LONGER", "WITH", "POS", "TAB", "BAR"} <= seen


SIGNATURES = [(*each, 60) for each in product([(3, 4), (6, 8), (2, 2)], [(), (1, 2, 3)])]
FEW = ((3, 4), (), 25)


@pytest.mark.parametrize(
    ("signature", "units", "pieces"), mostly_slow([*SIGNATURES, FEW], FEW, unpack=True)
)
def test_a_time_signature_that_is_asked_for_is_that_of_all_bars(signature, units, pieces):
    small = TabTokenizer(max_fret=1, max_position=7, steps_per_quarter_options=units)
    beats, unit = signature
    rng, seen = random.Random(23), set()
    for _ in range(pieces):
        ids = []
        while not ids or (ids[-1] != small.eos_id and len(ids) < 80):
            may = sorted(small.allowed_next_ids(ids, signature))
            stay = [i for i in may if i != small.eos_id]
            ids.append(rng.choice(stay or may if len(ids) < 30 else may))
        if ids[-1] == small.eos_id:
            tab = small.decode(ids).tab
            (steps,) = {bar.steps for bar in tab.bars}
            assert steps * unit == (tab.steps_per_quarter or steps // beats * unit // 4) * 4 * beats
            seen |= {small.parsed_vocabulary[i][0] for i in ids}
    assert {"BAR", "SAME", "TAB", "LONGER"} <= seen


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


def test_the_unit_of_time_is_said():
    bars = (Bar(3, (event(0, (1, 0)),)),)
    timed = Tab(bars=bars, steps_per_quarter=3)
    ids = TOKENIZER.encode(timed)
    assert names(timed)[3] == "STEPS<3>" and TOKENIZER.decode(ids).tab == timed
    with pytest.raises(ValueError, match="no token for 7 steps to a quarter note"):
        TOKENIZER.encode(Tab(bars=bars, steps_per_quarter=7))


def test_what_has_no_token_of_its_own_is_left_out():
    dead = (Technique("dead"),)
    first = Event(0, (Note(6, 3), Note(5, 0)), (2, 2), ((), dead))
    bar = Bar(4, (first, Event(2, (Note(1, 0),), techniques=(dead,))), (4, 4), tempo_bpm=90)
    kept = piece(Bar(4, (event(0, (6, 3)),), (4, 4)))
    assert TOKENIZER.decode(TOKENIZER.encode(piece(bar))).tab == kept


def test_a_stream_has_every_piece_from_beginning_to_end():
    tabs = make_practice_corpus(2, 3)
    stream = encode_all_tabs(tabs, TOKENIZER)
    assert stream == [i for tab in tabs for i in TOKENIZER.encode(tab)]
    with pytest.raises(ValueError, match="etude.txt: Bar 1 has 0 steps"):
        encode_all_tabs([Tab(source="etude.txt", bars=(Bar(0, ()),))], TOKENIZER)


# --- Grammar ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        ([], {"<bos>"}),
        (["<bos>"], {"TUNING<standard>", "OPEN<40>", "OPEN<45>"}),
        (["<bos>", "OPEN<40>"], {"OPEN<40>", "OPEN<45>"}),
        (["<bos>", *["OPEN<40>"] * 6], {"CAPO<0>"}),
        (HEADER[:3], {"COLUMNS", "STEPS<3>"}),
        (HEADER[:4], {"METRE<3/4>"}),
        (HEADER[:5], {"KEY<C>"}),
        (HEADER, {"BAR<4>", "<eos>"}),
        ([*HEADER, "BAR<4>"],
         {"BAR<4>", "<eos>", "SAME<1>", "TAB<6,0>", "TAB<2,0>", "POS<1>", "POS<3>", "LONGER"}),
        ([*HEADER, "BAR<4>", "TAB<3,0>"],
         {"BAR<4>", "<eos>", "SAME<1>", "WITH<2,0>", "POS<1>", "POS<3>"}),
        ([*HEADER, "BAR<4>", "TAB<3,0>", "POS<2>"], {"TAB<6,0>", "TAB<2,0>"}),
        ([*HEADER, "BAR<4>", "TAB<3,0>", "POS<2>", "TAB<3,0>"],
         {"BAR<4>", "<eos>", "SAME<1>", "WITH<2,0>", "POS<3>"}),
        ([*HEADER, "BAR<4>", "SAME<1>"], {"BAR<4>", "<eos>", "SAME<1>", "SAME<2>"}),
        ([*HEADER, "BAR<4>", "LONGER"],
         {"BAR<4>", "<eos>", "SAME<1>", "TAB<6,0>", "TAB<2,0>", "POS<1>", "POS<3>", "LONG",
          "LONGER"}),
        ([*HEADER, "BAR<4>", "LONGER", "LONG"], {"POS<1>", "POS<3>"}),
    ],
)  # fmt: skip
def test_allowed_next(before, allowed):
    asked = {
        "METRE<3/4>", "KEY<C>", "BAR<4>", "<eos>", "SAME<1>", "SAME<2>", "TAB<6,0>", "TAB<2,0>",
        "WITH<6,0>", "WITH<2,0>", "POS<1>", "POS<3>", "LONG", "LONGER", "<bos>", "COLUMNS",
        "<pad>", "TUNING<standard>", "OPEN<40>", "OPEN<45>", "CAPO<0>", "STEPS<3>",
    }  # fmt: skip
    told = TOKENIZER.to_tokens(TOKENIZER.allowed_next_ids(TOKENIZER.to_ids(before)))
    assert asked & set(told) == allowed


@pytest.mark.parametrize(
    ("names", "ill_formed", "bars"),
    [
        # A string that is not above the one before it is skipped, and so is one used twice.
        (["BAR<4>", "TAB<2,1>", "WITH<5,3>", "WITH<2,4>", "<eos>"], 2,
         (Bar(4, (event(0, (2, 1)),)),)),
        # A bar line or the end right behind a position is obeyed.
        (["BAR<4>", "POS<2>", "BAR<5>", "POS<3>", "<eos>"], 2, (Bar(4, ()), Bar(5, ()))),
        # Time does not go back, nor stand still, nor reach beyond the bar.
        (["BAR<8>", "POS<6>", "TAB<1,1>", "POS<5>", "POS<6>", "POS<8>", "TAB<1,2>", "<eos>"], 4,
         (Bar(8, (event(6, (1, 1)),)),)),
        # A position is followed by a note.
        (["BAR<8>", "POS<3>", "POS<4>", "LONG", "TAB<1,0>", "<eos>"], 2,
         (Bar(8, (event(3, (1, 0)),)),)),
        # A moment needs a position of its own after LONG, which needs room in the bar.
        (["BAR<8>", "LONG", "LONGER", "LONG", "TAB<1,1>", "POS<2>", "TAB<1,2>", "<eos>"], 2,
         (Bar(136, (event(130, (1, 2)),)),)),
        # Header tokens, padding and a second beginning have no place inside a bar.
        (["BAR<3>", "CAPO<3>", "<pad>", "<bos>", "OPEN<40>", "<eos>"], 4, (Bar(3, ()),)),
        # What stands behind the end is not read.
        (["BAR<3>", "<eos>", "<pad>", "BAR<2>"], 0, (Bar(3, ()),)),
    ],
)  # fmt: skip
def test_ill_formed_tokens_are_counted_and_the_rest_is_kept(names, ill_formed, bars):
    result = decoded(*HEADER, *names)
    assert result.num_invalid_tokens == ill_formed
    assert result.tab.bars == bars
    assert result.is_complete


def test_a_bar_before_the_header_is_complete_begins_the_music():
    result = decoded("<bos>", "TAB<1,0>", "BAR<2>", "TAB<1,1>", "<eos>")
    assert result.num_invalid_tokens == 2
    assert result.tab.bars == (Bar(2, (event(0, (1, 1)),)),)


def test_a_piece_that_breaks_off_is_kept_and_is_not_complete():
    result = decoded(*HEADER, "BAR<3>", "POS<2>", "TAB<5,3>", "WITH<1,0>")
    assert result.tab.bars == (Bar(3, (event(2, (5, 3), (1, 0)),)),)
    assert result.num_invalid_tokens == 0 and not result.is_complete


def test_a_middle_is_read_in_the_tuning_that_is_given():
    result = TOKENIZER.decode(TOKENIZER.to_ids(["TAB<5,3>", "BAR<8>"]), DADGAD)
    assert result.tab == piece(Bar(1, (event(0, (5, 3)),)), Bar(8, ()), tuning=DADGAD)
    assert result.num_invalid_tokens == 0


def test_ids_outside_the_vocabulary_are_ill_formed():
    ids = [*TOKENIZER.to_ids([*HEADER, "BAR<4>"]), -1, len(TOKENIZER), 10**6]
    assert TOKENIZER.decode(ids).num_invalid_tokens == 3
    assert TOKENIZER.decode([]).num_tokens == 0


def test_what_cannot_stand_is_counted_and_a_bar_ends_all_the_same():
    told = ["SAME<1>", "BAR<4>", "WITH<2,0>", "TAB<3,1>", "POS<2>", "BAR<2>", "TAB<1,0>"]
    told += ["TAB<1,0>", "SAME<2>", "SAME<9>", "TAB<1,1>", "<eos>"]
    back = decoded(*HEADER, *told)
    assert back.num_invalid_tokens == 6  # SAME<1>, WITH, the BAR after a POS, a TAB, SAME<9>, a TAB
    first, second = Bar(4, (event(0, (3, 1)),)), Bar(2, (event(0, (1, 0)),))
    assert back.tab.bars == (first, second, first) and back.is_complete


def test_the_middle_of_a_piece_is_read():
    back = decoded("TAB<3,1>", "POS<5>", "TAB<3,2>", "BAR<9>", "SAME<2>")
    middle = Bar(6, (event(0, (3, 1)), event(5, (3, 2))))
    assert back.tab.bars == (middle, Bar(9, ()), middle) and back.num_invalid_tokens == 0


def test_an_unknown_tuning_is_spelled_from_the_low_string_up():
    tuning = Tuning((65, 60, 55, 50, 45, 40), capo=1)
    assert TOKENIZER.tuning_tokens(tuning) == [
        "OPEN<40>", "OPEN<45>", "OPEN<50>", "OPEN<55>", "OPEN<60>", "OPEN<65>", "CAPO<1>",
    ]  # fmt: skip


# --- Settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", [TabTokenizer(17, 8), TOKENIZER, STYLED])
def test_the_settings_come_back(tokenizer):
    again = TabTokenizer.from_json(tokenizer.to_json())
    assert again.vocabulary == tokenizer.vocabulary and again.to_json() == tokenizer.to_json()
    assert again.styles == tokenizer.styles
    tab = piece(Bar(9, ()), tuning=DADGAD)
    assert again.encode(tab) == tokenizer.encode(tab)


def test_settings_that_an_earlier_version_wrote_are_read():
    content = {"kind": "tab tokens", "max_fret": 24, "max_position": 128, "styles": []}
    content |= {"steps_per_quarter_options": [1, 2, 3, 4, 6, 8, 12, 16, 24], "scheme": "placed"}
    assert TabTokenizer.from_json(content).vocabulary == TOKENIZER.vocabulary


@pytest.mark.parametrize(
    "change",
    [
        {"max_frets": 3}, {"max_fret": -1}, {"max_position": 0}, {"max_position": "2"},
        {"scheme": "plain"}, {"kind": "text"}, {"steps_per_quarter_options": [0]},
    ],
)  # fmt: skip
def test_settings_that_are_none_are_refused(change):
    with pytest.raises(ValueError, match="settings of a tokenizer|must be a whole number"):
        TabTokenizer.from_json(TOKENIZER.to_json() | change)


def test_a_style_that_is_there_twice_is_refused(unchecked):
    with pytest.raises(ValueError, match="style 'Jazz' is there twice"):
        TabTokenizer(styles=("Jazz", "Rock", "Jazz"))


# --- Styles --------------------------------------------------------------------------------------


def test_a_style_ends_the_header_and_comes_back():
    for tab in make_practice_corpus(2, 20):
        for style in ("", "Blues", *STYLES):
            ids = STYLED.encode(replace(tab, style=style))
            told = style if style in STYLES else "none"
            kinds = [STYLED.parsed_vocabulary[i][0] for i in ids[:7]]
            assert kinds == ["<bos>", "TUNING", "CAPO", "STEPS", "METRE", "KEY", "STYLE"]
            assert STYLED.to_tokens(ids)[6] == f"STYLE<{told}>"
            back = STYLED.decode(ids)
            assert back.tab.style == style.replace("Blues", "") and back.num_invalid_tokens == 0
            assert plainly(back.tab) == plainly(tab)
            others = [i for i in ids if STYLED.parsed_vocabulary[i][0] != "STYLE"]
            assert STYLED.to_tokens(others) == names(tab)


def test_styles_come_last_so_that_all_other_ids_stay():
    assert STYLED.vocabulary == (
        *TOKENIZER.vocabulary, "STYLE<Jazz>", "STYLE<Drop D, slow>", "STYLE<none>",
    )  # fmt: skip


def test_without_styles_nothing_is_said_of_them():
    assert not any("STYLE" in token for token in TOKENIZER.vocabulary)
    tab = make_practice_corpus(2, 1)[0]
    assert TOKENIZER.encode(replace(tab, style="Jazz")) == TOKENIZER.encode(tab)
    assert TOKENIZER.decode(TOKENIZER.encode(replace(tab, style="Jazz"))).tab.style == ""


def test_a_style_may_stand_after_the_key_alone():
    def allowed(*more):
        ids = STYLED.to_ids([*HEADER, *more])
        return set(STYLED.to_tokens(STYLED.allowed_next_ids(ids)))

    told = {"STYLE<Jazz>", "STYLE<Drop D, slow>", "STYLE<none>"}
    assert allowed() == told
    assert {"BAR<4>", "<eos>"} < allowed("STYLE<none>") and not told & allowed("STYLE<none>")
    rest = ["BAR<4>", "STYLE<Jazz>", "TAB<3,1>", "<eos>"]
    back = decoded(*HEADER, *rest, tokenizer=STYLED)
    assert back.num_invalid_tokens == 2 and back.tab.style == ""  # the BAR too, which is obeyed
    assert back.tab.bars == (Bar(4, (event(0, (3, 1)),)),)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "name", ["", "none", "None", "a<b", "a>b", " Jazz", "so  far", "a\nb", "x" * 41, "\u200b", 3]
)
def test_a_style_without_a_sane_name_is_refused(name):
    with pytest.raises(ValueError, match="without < and >, and other than none: ") as refusal:
        TabTokenizer(styles=("Jazz", name))
    assert str(refusal.value).endswith(f"{name!r} will not do.")
    assert TabTokenizer(styles=("x" * 40,)).styles == ("x" * 40,)


def test_styles_of_tabs_are_those_that_tell_something():
    def tabs(*styles):
        return [Tab(style=style) for style in styles]

    assert collect_styles(tabs("Rock", "", "Jazz", "Rock")) == (("Jazz", "Rock"), [])
    assert collect_styles(tabs("Rock", "", "Rock")) == collect_styles(tabs("")) == ((), [])
    many = [f"style {number:02}" for number in range(65)]
    assert collect_styles(tabs(*many[1:])) == (tuple(many[1:]), [])
    assert collect_styles(tabs(*many)) == (
        (), ["styles have no tokens: there are 65 styles, more than 64"],
    )  # fmt: skip


# --- Windows -------------------------------------------------------------------------------------


def test_half_of_the_windows_begin_with_a_piece():
    pieces = [[1, 5, 6, 2], [1, 7, 2], [1, 8, 9, 8, 9, 8, 2], [1, 3, 2]]
    stream = torch.tensor([token for piece in pieces for token in piece])
    source = DocumentWindowSource(stream, 5, begin_id=1)
    generator = torch.Generator().manual_seed(0)
    seconds = set()
    for _ in range(50):
        batch = source.draw(5, generator)
        inputs = batch.inputs[0]
        assert inputs.shape == batch.targets.shape == (5, 5)
        assert (inputs[:, 1:] == batch.targets[:, :-1]).all()
        assert (inputs[:3, 0] == 1).all()
        seconds |= set(inputs[:3, 1].tolist())
    assert seconds == {5, 7, 8}  # the last piece leaves no room for a window
    assert DocumentWindowSource(stream, 5, begin_id=4).draw(2, generator).targets.shape == (2, 5)
    alone = DocumentWindowSource(torch.arange(1, 40), 5, begin_id=1).draw(5, generator)
    assert (alone.inputs[0][:3, 0] == 1).all()
