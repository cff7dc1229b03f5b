"""Repeats, endings and signs: the order that programs play them in, and every format's marks."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from guitar_pieces import event, timed

from slp_guitar.formats import registry
from slp_guitar.formats.alphatex import parse_alphatex_tabs
from slp_guitar.formats.tab_builder import BarHeader, extend_endings_in_place
from slp_guitar.playing_order import (
    BY_NUMBER,
    NESTED_IN_ENDING,
    NO_BEGINNING,
    SEVERAL_JUMPS,
    expand_repeats,
    find_playing_order,
    find_unclear_repeats,
)
from slp_guitar.playing_signs import PLAYING_SIGNS, parse_playing_sign
from slp_guitar.tab import Bar, check_tab


def bars_of(text):
    """Bars as musicians draw them: |: begins, :3 ends after three times, [1 2] endings, <Fine>."""
    found = []
    for bar in text.split("|"):
        plays = re.search(r":(\d)", bar)
        endings = re.search(r"\[(.*?)\]", bar)
        found.append(
            Bar(
                4,
                (),
                starts_repeat=bool(re.match(r":(?!\d)", bar)),
                num_plays=int(plays[1]) if plays else 0,
                endings=tuple(map(int, endings[1].split())) if endings else (),
                signs=tuple(re.findall("<(.*?)>", bar)),
            )
        )
    return tuple(found)


@pytest.mark.parametrize(
    ("drawn", "order"),
    [
        ("a|b|c", "123"),
        (":a|[1]|[1] :2|[2]|c", "123145"),  # an ending of two bars
        (":a|[1 2]|[1 2] :2|[3]", "1231231 4"),
        ("a|:b|:c|d :2|e :3|f", "1 23434523434523434 5 6"),  # one repeat inside another
        (":a|:b|c :2|[1] :2|[2]|f", "12323 4 12323 5 6"),
        ("a|b :2|c|d :2", "12 12 34 34"),  # without beginnings
        (":a|[1] :2|[2]|:d|[1] :2|[2]", "12 13 45 46"),
        (":a|[1] :2|[2] :2|c", "12 13 4"),
        (":a|[1]|[2]|d", "1234"),  # endings of no repeat
        ("a|:b|[1]|[2 3] :3|e", "1 23 24 24 5"),  # a sign behind the last ending alone
        (":a|[1 3]|[2]|[2] :4|e", "12 134 12 1 5"),
        ("a|b|c<DaCapo>|d", "123 123 4"),
        ("a|b<Fine>|c|d<DaCapoAlFine>|e", "1234 12"),
        ("a<Fine>|b", "12"),  # nothing leads back
        (":a|[1]|:[1]|[1] :2|[1] :2|[2]|f", "1 2 34 34 5 1 6 7"),  # a repeat inside an ending
        (":a|:[1] :2|[1] :2|[2]", "1 22 3 1 4"),  # from its first bar on
        (":a|[1] :2|[2]|:[2] :2|x|y :2", "12 1 3 44 56 56"),  # or inside the last one
        (":a|[1] :3|[2]|:[2] :2|[2] :3|[3]", "12 1 3 44 5 1 6"),
        ("a|b<Segno>|c<DaCoda>|d<DaSegnoAlCoda>|e<Coda>|f", "1234 23 56"),
        ("a|b<SegnoSegno>|c<DaDoubleCoda>|d<DaSegnoSegnoAlDoubleCoda>|e<DoubleCoda>", "1234 23 5"),
        (":a|b :2|c<DaCapo>|d", "1212 3 12 3 4"),  # the second time without the repeat
        (":a|[1] :2|[2]<DaCapoAlFine>|d", "12 13 13 4"),  # and by the last ending
        (":a|b :2<DaCapo>|c", "1212 12 3"),  # first the repeat
        ("a<Segno>|:b|c :2|d<DaCoda>|e<DaSegnoAlCoda>|f<Coda>|:g|h :2", "123 23 45 1234 6 78 78"),
        ("a|b<DaSegno>|c", "123"),  # to a sign that is not there
        ("a|b<DaCapo>|c|d<DaCapo>", "12 12 34 1234"),  # each leads back once
    ],
)
def test_bars_are_played_in_the_order_of_their_signs(drawn, order):
    found = find_playing_order(bars_of(drawn))
    assert [place + 1 for place in found] == [int(each) for each in order.replace(" ", "")]


def test_a_piece_without_an_end_is_refused():
    with pytest.raises(ValueError, match="more than 10,000 bars"):
        find_playing_order(bars_of("|".join([":a"] * 2 + [":9"] * 8)) * 9000)


def test_an_ending_lasts_to_its_sign_where_only_its_first_bar_is_marked():
    headers = [BarHeader(Fraction(4), starts_repeat=True)] + [
        BarHeader(Fraction(4)) for _ in range(6)
    ]
    headers[1].endings, headers[3].num_plays, headers[4].endings = (1,), 2, (2,)
    extend_endings_in_place(headers)
    assert [each.endings for each in headers] == [(), (1,), (1,), (1,), (2,), (), ()]


NESTED = [(":a", 0), ("[1]", 1), (":c", 1), ("d :2", 1), ("e :2", 1), ("[2]", 2), ("f", 0)]


def test_a_repeat_inside_an_ending_does_not_end_it():
    headers = [
        BarHeader(Fraction(4), None, None, bar.starts_repeat, bar.num_plays, bar.endings)
        for bar in bars_of("|".join(drawn for drawn, _ in NESTED))
    ]
    extend_endings_in_place(headers)
    assert [each.endings for each in headers] == [(n,) if n else () for _, n in NESTED]


@pytest.mark.parametrize("suffix", [".gp3", ".gp5", ".musicxml", ".atex", ".mid"])
def test_a_repeat_inside_an_ending_is_kept_or_played_out_and_named(tmp_path, suffix):
    bars = bars_of("|".join(drawn for drawn, _ in NESTED))
    played = [event(0, (1, fret), durations=(4,)) for fret in range(len(bars))]
    bars = [
        replace(bar, events=(own,), endings=(ending,) if ending else ())
        for bar, own, (_, ending) in zip(bars, played, NESTED, strict=True)
    ]
    registry.write_tab(timed(*bars, unit=1), tmp_path / f"piece{suffix}")
    (back,), problems = registry.read_any_tab_file(tmp_path / f"piece{suffix}")
    sounding = [note.fret for e in expand_repeats(back).iter_events() for note in e.notes]
    assert sounding == [0, 1, 2, 3, 2, 3, 4, 0, 5, 6]
    named = [p.message for p in problems if "programs differ" in p.message]
    expected = [f"{NESTED_IN_ENDING} (bar 3)"]
    assert named == ([] if suffix == ".mid" else expected)


@pytest.mark.parametrize(
    ("drawn", "what"),
    [
        ("a|:b|[1] :2|[2]|c<DaCapo>", {}),
        (":a|[1 2] :3|[3]|:d|:e :2|f :2", {}),
        ("a :2|b|c :2", {NO_BEGINNING: 2}),
        (":a|[1]|:[1] :2|[1] :2|[2]", {NESTED_IN_ENDING: 3}),
        ("a|:b|[1] :2|[2] :2|[3]", {BY_NUMBER: 3}),  # each with a sign
        (":a|[1 2] :2|[3]", {BY_NUMBER: 2}),  # played two times, or three
        (":a|:b|[1] :2|[2]|c :2", {BY_NUMBER: 3}),  # inside another repeat
        ("a<DaCapo><DaSegno>|b", {SEVERAL_JUMPS: 1}),
        ("a<Segno>|b<DaCoda>|c<DaSegnoAlCoda>|d<Coda>", {}),
        ("a<Segno>|b<DaCapo>|c<DaSegno>", {SEVERAL_JUMPS: 3}),  # in two bars
    ],
)
def test_what_programs_play_in_different_ways_is_named(drawn, what):
    assert find_unclear_repeats(bars_of(drawn)) == what


def test_signs_keep_what_is_in_force_where_they_lead():
    bars = bars_of("a<Segno>|b|c<DaSegno>|d")
    bars = [
        replace(bar, tempo_bpm=tempo) for bar, tempo in zip(bars, (60, 70, 80, None), strict=True)
    ]
    tab = expand_repeats(timed(*bars))
    assert [bar.tempo_bpm for bar in tab.bars] == [60, 70, 80, 60, 70, 80, None]
    assert not any(bar.signs for bar in tab.bars)


@pytest.mark.parametrize("sign", PLAYING_SIGNS)
@pytest.mark.parametrize("suffix", [".gp5", ".musicxml", ".atex", ".txt"])
def test_every_sign_is_in_every_format_that_has_them(tmp_path, suffix, sign):
    played = event(0, (1, 3), durations=(4,))
    tab = timed(*(Bar(4, (played,), signs=signs) for signs in ((), (sign,), ())), unit=1)
    registry.write_tab(tab, tmp_path / f"piece{suffix}")
    (back,), problems = registry.read_any_tab_file(tmp_path / f"piece{suffix}")
    assert [bar.signs for bar in back.bars] == [(), (sign,), ()] and problems == []
    assert parse_playing_sign(PLAYING_SIGNS[sign].summary) == sign


@pytest.mark.parametrize("suffix", [".gp3", ".gp4", ".mid"])
def test_where_there_are_no_signs_they_are_played_out_and_it_is_said(tmp_path, suffix):
    notes = [event(0, (1, fret), durations=(4,)) for fret in (1, 2, 3)]
    signs = (), ("Fine",), ("DaCapoAlFine",)
    tab = timed(*(Bar(4, (n,), signs=s) for n, s in zip(notes, signs, strict=True)), unit=1)
    registry.write_tab(tab, tmp_path / f"piece{suffix}")
    (back,), _ = registry.read_any_tab_file(tmp_path / f"piece{suffix}")
    assert [note.fret for e in back.iter_events() for note in e.notes] == [1, 2, 3, 1, 2]
    lost = registry.find_losses([tab], tmp_path / f"piece{suffix}")
    assert "the repeats, which are played out" in lost


BOTH_WAYS = [n for n, each in registry.FORMATS.items() if each.reader and each.writer]
SIGNS_IN_ONE = "a<Segno>|:b|[1] :2|[2]|c<DaCoda>|d<DaSegnoAlCoda>|e<Coda>|:f|[1]|:[1] :2|[1] :2|[2]"


def marks(tab):
    return [(b.starts_repeat, max(b.num_plays, 1), b.endings, b.signs) for b in tab.bars]


@pytest.mark.slow
@pytest.mark.parametrize("first", BOTH_WAYS)
def test_signs_are_kept_or_named_from_every_format_to_every_other(tmp_path, first):
    bars = bars_of(SIGNS_IN_ONE)
    played = [event(0, (1, fret), durations=(4,)) for fret in range(len(bars))]
    tab = timed(*(replace(b, events=(e,)) for b, e in zip(bars, played, strict=True)), unit=1)
    order = find_playing_order(bars)
    for name in (first, *BOTH_WAYS):
        path = tmp_path / f"{name}{registry.FORMATS[name].suffixes[0]}"
        registry.write_tab(tab, path)
        (back,), _ = registry.read_any_tab_file(path)
        sounding = [n.fret for e in expand_repeats(back).iter_events() for n in e.notes]
        assert sounding == order, (first, name)
        lost = registry.find_losses([tab], path)
        assert (marks(back) == marks(tab)) != any("repeats" in what for what in lost), name
        tab = back if path.stem == first and name == first else tab


def test_a_sign_that_stands_twice_is_played_out_in_guitar_pro(tmp_path):
    bars = bars_of("a|b<DaCapo>|c|d<DaCapo>")
    tab = timed(*(replace(bar, events=(event(0, (1, 3), durations=(4,)),)) for bar in bars), unit=1)
    registry.write_tab(tab, tmp_path / "piece.gp5")
    (back,), _ = registry.read_any_tab_file(tmp_path / "piece.gp5")
    assert len(back.bars) == 10


def test_an_unknown_sign_is_refused():
    with pytest.raises(ValueError, match="Bar 1: 'Encore' is not a sign; choose from Segno"):
        check_tab(timed(Bar(4, (), signs=("Encore",))))


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        ("D.C. al Fine", "DaCapoAlFine"),
        ("d. s. al coda", "DaSegnoAlCoda"),
        ("Da Capo", "DaCapo"),
        ("(Dal Segno)", "DaSegno"),
        ("to coda", "DaCoda"),
        ("D.S.S. al Double Coda", "DaSegnoSegnoAlDoubleCoda"),
        ("Fine", "Fine"),
        ("fine print", None),
        ("D.C. al segno", None),
    ],
)
def test_signs_are_read_as_people_write_them(words, sign):
    assert parse_playing_sign(words) == sign


def test_an_unknown_jump_of_alphatex_is_named():
    _, problems = parse_alphatex_tabs("\\jump Nowhere 3.3.1 | 3.3.1")
    assert [problem.message for problem in problems] == ["\\jump left out (the first in bar 1)"]
