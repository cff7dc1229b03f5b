"""The placed code: bars by reference, keys, styles; nothing lost."""

import json
import random
from dataclasses import replace

import pytest
import torch

from slp_transformer.data.batches import DocumentWindows
from slp_transformer.guitar.fretboard import DADGAD, DROP_D, STANDARD, Note, Tuning
from slp_transformer.guitar.practice import make_practice_corpus
from slp_transformer.guitar.styles import collect_styles
from slp_transformer.guitar.tab import Bar, Event, Tab, Technique
from slp_transformer.guitar.tab_tokenizer import DEFAULT_STEPS_PER_QUARTER, TabTokenizer
from slp_transformer.guitar.theory import (
    KEY_NAMES,
    SCALE_HALF_STEPS,
    count_notes_in_best_scale,
    estimate_key,
)

STYLES = ("Jazz", "Drop D, slow")
PLACED = TabTokenizer(steps_per_quarter_options=DEFAULT_STEPS_PER_QUARTER, scheme="placed")
STYLED = TabTokenizer(
    steps_per_quarter_options=DEFAULT_STEPS_PER_QUARTER, scheme="placed", styles=STYLES
)
HEADER = ["<bos>", "TUNING<standard>", "CAPO<0>", "COLUMNS", "METRE<none>", "KEY<none>"]


def event(step, *places):
    return Event(step, tuple(Note(string, fret) for string, fret in places))


def names(tab):
    return PLACED.to_tokens(PLACED.encode(tab))


def plainly(tab):
    """Bars as the tokens say them: lengths and sounding notes."""
    return [
        (bar.steps, [(e.step, e.sounding_notes()) for e in bar.events if e.sounding_notes()])
        for bar in tab.bars
    ]


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
    back = PLACED.decode(PLACED.encode(tab))
    assert back.tab == tab and (back.num_invalid_tokens, back.is_complete) == (0, True)


def test_in_the_placed_code_every_moment_tells_where_it_is():
    riff = (event(0, (6, 0), (1, 3)), event(2, (4, 2)), event(4, (3, 0)), event(5, (2, 1)))
    tab = Tab(bars=(Bar(16, riff), Bar(8, (event(3, (5, 2)),)), Bar(16, riff)))
    assert names(tab)[6:] == [
        "BAR<16>", "TAB<6,0>", "WITH<1,3>", "POS<2>", "TAB<4,2>", "POS<4>", "TAB<3,0>",
        "POS<5>", "TAB<2,1>", "BAR<8>", "POS<3>", "TAB<5,2>", "SAME<2>", "<eos>",
    ]  # fmt: skip
    before = PLACED.to_ids([*HEADER, "BAR<4>", "TAB<3,0>", "POS<1>", "TAB<3,0>"])
    asked = {"TAB<6,0>", "TAB<2,0>", "POS<1>", "POS<2>", "POS<3>", "WITH<2,0>"}
    told = set(PLACED.to_tokens(PLACED.allowed_next_ids(before)))
    assert told & asked == {"POS<2>", "POS<3>", "WITH<2,0>"}


def test_long_bars_by_hand():
    bar = Bar(300, (event(0, (6, 1)), event(130, (6, 2)), event(260, (6, 3)), event(261, (6, 4))))
    tokens = names(Tab(bars=(bar,)))[6:]
    assert tokens == [
        "BAR<44>", "LONGER", "LONGER", "TAB<6,1>", "LONG", "POS<2>", "TAB<6,2>", "LONG",
        "POS<4>", "TAB<6,3>", "POS<5>", "TAB<6,4>", "<eos>",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 3])
def test_the_practice_corpus_comes_back_in_fewer_tokens(seed):
    corpus = make_practice_corpus(seed, 150)
    for tab in corpus:
        ids = PLACED.encode(tab)
        result = PLACED.decode(ids)
        assert result.tab.tuning == tab.tuning and plainly(result.tab) == plainly(tab)
        assert (result.num_invalid_tokens, result.num_tokens, result.is_complete) == (
            0,
            len(ids),
            True,
        )
    plain = TabTokenizer(steps_per_quarter_options=DEFAULT_STEPS_PER_QUARTER)
    lengths = [(len(PLACED.encode(tab)), len(plain.encode(tab))) for tab in corpus]
    assert sum(a for a, _ in lengths) < 0.75 * sum(b for _, b in lengths)


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
            dead = rng.random() < 0.1
            events.append(
                Event(step, notes, techniques=((Technique("dead"),),) * len(notes) * dead)
            )
        bars.append(Bar(steps, tuple(events)))
    tuning = Tuning(tuple(rng.randint(28, 76) for _ in range(6)), rng.randint(0, 12))
    return Tab(tuning=tuning, bars=tuple(bars))


def test_any_tab_comes_back():
    rng = random.Random(13)
    for _ in range(200):
        tab = random_tab(rng)
        result = PLACED.decode(PLACED.encode(tab))
        assert plainly(result.tab) == plainly(tab) and result.num_invalid_tokens == 0
        assert result.tab.tuning == tab.tuning


def test_every_token_of_a_piece_is_allowed_where_it_stands():
    rng = random.Random(5)
    for tab in [random_tab(rng) for _ in range(30)] + make_practice_corpus(1, 5):
        ids = PLACED.encode(tab)
        for i in range(0, len(ids), 3):
            assert ids[i] in PLACED.allowed_next_ids(ids[:i])
        assert PLACED.allowed_next_ids(ids) == set()


@pytest.mark.parametrize("styles", [(), STYLES])
def test_what_the_grammar_allows_is_well_formed_and_never_a_dead_end(styles):
    small = TabTokenizer(
        max_fret=2, max_position=3, steps_per_quarter_options=(1,), scheme="placed", styles=styles
    )
    rng, seen = random.Random(19), set()
    for _ in range(150):
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


def test_any_ids_are_read():
    rng = random.Random(17)
    for _ in range(300):
        ids = [rng.randrange(-2, len(PLACED) + 2) for _ in range(rng.randint(0, 60))]
        tab = PLACED.decode(ids).tab
        assert plainly(PLACED.decode(PLACED.encode(tab)).tab) == plainly(tab)


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
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
    ],
)  # fmt: skip
def test_allowed_next_by_hand(before, allowed):
    asked = {
        "METRE<3/4>", "KEY<C>", "BAR<4>", "<eos>", "SAME<1>", "SAME<2>", "TAB<6,0>", "TAB<2,0>",
        "WITH<6,0>", "WITH<2,0>", "POS<1>", "POS<3>", "LONG", "LONGER", "<bos>", "COLUMNS",
    }  # fmt: skip
    assert set(PLACED.to_tokens(PLACED.allowed_next_ids(PLACED.to_ids(before)))) & asked == allowed


def test_what_cannot_stand_is_counted_and_a_bar_ends_all_the_same():
    told = [*HEADER, "SAME<1>", "BAR<4>", "WITH<2,0>", "TAB<3,1>", "POS<2>", "BAR<2>", "TAB<1,0>"]
    back = PLACED.decode(
        PLACED.to_ids([*told, "TAB<1,0>", "SAME<2>", "SAME<9>", "TAB<1,1>", "<eos>"])
    )
    assert back.num_invalid_tokens == 6  # SAME<1>, WITH, the BAR after a POS, a TAB, SAME<9>, a TAB
    first, second = Bar(4, (event(0, (3, 1)),)), Bar(2, (event(0, (1, 0)),))
    assert back.tab.bars == (first, second, first) and back.is_complete


def test_the_middle_of_a_piece_is_read():
    back = PLACED.decode(PLACED.to_ids(["TAB<3,1>", "POS<5>", "TAB<3,2>", "BAR<9>", "SAME<2>"]))
    middle = Bar(6, (event(0, (3, 1)), event(5, (3, 2))))
    assert back.tab.bars == (middle, Bar(9, ()), middle) and back.num_invalid_tokens == 0


def test_the_settings_keep_the_code():
    kept = json.loads(PLACED.to_json())
    again = TabTokenizer.from_json(PLACED.to_json())
    assert again.scheme == "placed" and again.vocabulary == PLACED.vocabulary
    del kept["code"]
    with pytest.raises(ValueError, match="code is missing"):
        TabTokenizer.from_json(json.dumps(kept))
    with pytest.raises(ValueError, match='scheme must be "plain" or "placed"'):
        TabTokenizer(scheme="short")


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
            assert [
                STYLED.vocabulary[i] for i in ids if STYLED.parsed_vocabulary[i][0] != "STYLE"
            ] == names(tab)


def test_styles_come_last_so_that_all_other_ids_stay():
    assert STYLED.vocabulary == (
        *PLACED.vocabulary, "STYLE<Jazz>", "STYLE<Drop D, slow>", "STYLE<none>",
    )  # fmt: skip


def test_without_styles_nothing_is_said_of_them():
    assert not any("STYLE" in token for token in PLACED.vocabulary)
    tab = make_practice_corpus(2, 1)[0]
    assert PLACED.encode(replace(tab, style="Jazz")) == PLACED.encode(tab)
    assert PLACED.decode(PLACED.encode(replace(tab, style="Jazz"))).tab.style == ""


def test_a_style_may_stand_after_the_key_alone():
    told = ("STYLE<Jazz>", "STYLE<Drop D, slow>", "STYLE<none>")
    assert set(STYLED.to_tokens(STYLED.allowed_next_ids(STYLED.to_ids(HEADER)))) == set(told)
    after = STYLED.to_tokens(STYLED.allowed_next_ids(STYLED.to_ids([*HEADER, "STYLE<none>"])))
    assert {"BAR<4>", "<eos>"} < set(after) and not set(told) & set(after)
    back = STYLED.decode(STYLED.to_ids([*HEADER, "BAR<4>", "STYLE<Jazz>", "TAB<3,1>", "<eos>"]))
    assert back.num_invalid_tokens == 2 and back.tab.style == ""  # the BAR too, which is obeyed
    assert back.tab.bars == (Bar(4, (event(0, (3, 1)),)),)


def test_the_settings_keep_the_styles():
    again = TabTokenizer.from_json(STYLED.to_json())
    assert again.styles == STYLES and again.vocabulary == STYLED.vocabulary
    assert TabTokenizer.from_json(PLACED.to_json()).styles == ()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "name", ["", "none", "None", "a<b", "a>b", " Jazz", "so  far", "a\nb", "x" * 41, "\u200b", 3]
)
def test_a_style_without_a_sane_name_is_refused(name):
    with pytest.raises(ValueError, match="without < and >, and other than none: ") as refusal:
        TabTokenizer(scheme="placed", styles=("Jazz", name))
    assert str(refusal.value).endswith(f"{name!r} will not do.")
    assert TabTokenizer(scheme="placed", styles=("x" * 40,)).styles == ("x" * 40,)


def test_a_style_twice_and_styles_in_the_plain_code_are_refused():
    with pytest.raises(ValueError, match="The style 'Jazz' is there twice"):
        TabTokenizer(scheme="placed", styles=("Jazz", "Rock", "Jazz"))
    with pytest.raises(ValueError, match="Only the placed code has style tokens"):
        TabTokenizer(styles=("Jazz", "Rock"))


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


# --- Keys ----------------------------------------------------------------------------------------


def scale_in(root, scale):
    """A piece of one octave of a scale that begins and ends on its root, the fifth repeated."""
    steps = [*SCALE_HALF_STEPS[scale], 12, 7, 7, 0, 0]
    frets = [(root - 4) % 12 + step for step in steps]
    bar = Bar(16, tuple(event(i, (6, fret)) for i, fret in enumerate(frets)))
    return Tab(bars=(bar,))


@pytest.mark.parametrize("root", range(12))
def test_the_key_of_a_scale_is_its_own(root):
    assert estimate_key(scale_in(root, "major")) == KEY_NAMES[root]
    assert estimate_key(scale_in(root, "harmonic minor")) == KEY_NAMES[12 + root]


def test_a_piece_without_notes_has_no_key():
    assert estimate_key(Tab()) is None and count_notes_in_best_scale([Tab()]) == (0, 0)


def test_a_capo_and_a_tuning_move_the_key():
    tab = scale_in(0, "major")
    assert estimate_key(replace(tab, tuning=replace(STANDARD, capo=2))) == "D"
    assert estimate_key(replace(tab, tuning=DADGAD)) == "Bb"


def test_notes_in_one_scale_are_those_of_the_best_major_scale():
    chromatic = Tab(bars=(Bar(12, tuple(event(i, (6, i)) for i in range(12))),))
    assert count_notes_in_best_scale([chromatic]) == (7, 12)
    natural = scale_in(9, "minor")
    assert count_notes_in_best_scale([natural]) == (12, 12)
    assert count_notes_in_best_scale([natural, chromatic]) == (19, 24)


# --- Windows -------------------------------------------------------------------------------------


def test_half_of_the_windows_begin_with_a_piece():
    pieces = [[1, 5, 6, 2], [1, 7, 2], [1, 8, 9, 8, 9, 8, 2], [1, 3, 2]]
    stream = torch.tensor([token for piece in pieces for token in piece])
    source = DocumentWindows(stream, 5, begin_id=1)
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
    assert DocumentWindows(stream, 5, begin_id=4).draw(2, generator).targets.shape == (2, 5)
