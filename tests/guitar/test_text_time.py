"""Time in tabs whose steps are columns: the meter, and every bar in it without a flag."""

from fractions import Fraction

import pytest

from slp_guitar import text_time
from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.formats.registry import read_any_tab_file
from slp_guitar.text_time import infer_timing
from slp_guitar.timing import bar_start_steps, columns_to_steps
from slp_transformer.cli import main


def drawn(*bars, head=""):
    """A tab whose top string has these bars and whose others are open space."""
    rows = ["|".join(bars)] + ["|".join("-" * len(bar) for bar in bars)] * 5
    return head + "\n" + "\n".join(f"|{row}|" for row in rows) + "\n"


def timed(text):
    (tab,), _ = parse_ascii_tabs(text)
    return infer_timing(tab)


def onsets(tab):
    """Onset in quarters of each event, counted from its bar."""
    return [
        [float(Fraction(e.step, tab.steps_per_quarter)) for e in bar.events] for bar in tab.bars
    ]


def test_the_stated_meter_is_taken_and_said_in_a_line():
    head = "A study\nTuning : E A D G B E   Time Signature: 2/4\n"
    found = timed(drawn("0---2---3---5---", "0---2---3---5---", head=head))
    assert found.description == "2/4 as stated, 2 steps a quarter, 2 of 2 bars fit"
    assert found.tab.bars[0].time_signature == (2, 4)
    assert onsets(found.tab) == [[0, 0.5, 1, 1.5]] * 2
    assert bar_start_steps(found.tab) == [0, 4, 8]


def test_a_column_left_free_behind_some_bar_lines_is_no_time():
    bars = "-0---2---3---5---", "0---2---3---5---", "-0---2---3---5---"
    found = timed(drawn(*bars, head="Time: 4/4"))
    assert onsets(found.tab) == [[0, 1, 2, 3]] * 3
    assert [bar.time_signature for bar in found.tab.bars] == [(4, 4), None, None]


def test_bars_drawn_wider_and_frets_of_two_digits_keep_the_meter():
    bars = "0---2---3---5---", "0---2---3---5---", "10---12---10---12---", "0-2-3-5-7-8-10-8-"
    found = timed(drawn(*bars, head="Meter: 4/4"))
    assert onsets(found.tab)[2:] == [[0, 1, 2, 3], [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]]


def test_a_short_first_bar_is_a_pickup():
    found = timed(drawn("0---", *["0---2---3---"] * 3, head="Time - 3/4"))
    starts = [Fraction(s, found.tab.steps_per_quarter) for s in bar_start_steps(found.tab)]
    assert starts == [0, 1, 4, 7, 10]


@pytest.mark.parametrize(
    ("bar", "meter"),
    [("0-2-3-5-7-5-3-2-", (4, 4)), ("0-2-3-5-7-5-", (3, 4)), ("0-2-3-5-7-", (5, 4))],
)
def test_where_nothing_is_stated_the_bars_say_the_meter(bar, meter):
    found = timed(drawn(bar, bar, bar))
    assert found.tab.bars[0].time_signature == meter
    assert "by its bars" in found.description


# --- Letters above the strings --------------------------------------------------------------------


def lettered(*bars, head="Time: 3/4\n"):
    """A tab of bars, each the letters above it and its top string."""
    above = " " + " ".join(letters.ljust(len(row)) for letters, row in bars)
    return drawn(*(row for _, row in bars), head=f"{head}\n{above}")


EVEN = "Q Q Q", "0-2-3-"


def test_letters_above_a_bar_say_its_rhythm_whatever_the_columns():
    found = timed(lettered(("E E. S Q E", "0-2--3-5-7-"), EVEN, ("H Q", "0-2-"), ("H.", "0--")))
    assert onsets(found.tab) == [[0, 0.5, 1.25, 1.5, 2.5], [0, 1, 2], [0, 2], [0]]
    assert "3/4 as stated" in found.description
    assert found.description.endswith("4 of 4 bars fit, 4 by the letters beside them")


def test_capitals_among_small_letters_are_dotted():
    found = timed(lettered(("Q  e q", "0--2-3-"), ("q q q", "0-2-3-"), ("H", "0---")))
    assert onsets(found.tab) == [[0, 1.5, 2], [0, 1, 2], [0]]


def test_numbers_in_brackets_above_letters_are_tuplets():
    text = lettered(("T T T E S Q Q", "0-2-3-5-7-8-9-"), ("E S S Q Q", "0-2-3-5-7-"), EVEN)
    above = "\n |-3-|\n" + " T T T E"
    found = timed(text.replace("\n T T T E", above))
    assert onsets(found.tab)[0] == [0, 1 / 12, 1 / 6, 0.25, 0.75, 1, 2]


def test_a_note_between_two_letters_has_its_share_of_the_time():
    found = timed(lettered(("Q    Q  Q", "0-----2--3--"), EVEN, ("H       Q", "0---2---3-")))
    assert onsets(found.tab) == [[0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_letters_keep_their_lengths_and_the_meter_follows():
    short, full = ("Q  Q", "0--2--"), ("Q Q Q Q", "0-2-3-5-")
    found = timed(lettered(*[full] * 2, *[short] * 8, head="Time: 4/4\n"))
    assert onsets(found.tab) == [[0, 1, 2, 3]] * 2 + [[0, 1]] * 8
    meters = [bar.time_signature for bar in found.tab.bars]
    assert meters == [(4, 4), None, (2, 4), *[None] * 7]
    assert "bars 3, 4, 5, 6, 7, 8, 9 are of another length than the meter" in found.remarks[0]


def test_a_bar_whose_letters_are_of_another_length_keeps_that():
    found = timed(lettered(*[EVEN] * 4, ("Q Q Q Q", "0-2-3-5-"), *[EVEN] * 4))
    starts = [Fraction(s, found.tab.steps_per_quarter) for s in bar_start_steps(found.tab)]
    assert starts == [0, 3, 6, 9, 12, 16, 19, 22, 25, 28]


def test_a_bar_of_another_length_in_which_letters_are_missing_is_fitted_by_its_columns():
    found = timed(lettered(*[EVEN] * 4, ("Q   Q ", "0-2-3-"), *[EVEN] * 4))
    assert onsets(found.tab)[4] == [0, 1, 2]


def test_where_nothing_is_stated_the_letters_say_the_meter():
    found = timed(lettered(*[("Q E E Q Q Q", "0-2-3-5-7-8-")] * 3, head="A study\n"))
    assert found.tab.bars[0].time_signature == (5, 4)


def test_letters_below_the_strings_say_its_rhythm():
    text = drawn("0--2-3-5-", "0-2-3-", head="Time: 3/4\n") + " q. e e e  q q q\n"
    found = timed(text)
    assert onsets(found.tab) == [[0, 1.5, 2, 2.5], [0, 1, 2]]


def test_other_letters_below_the_strings_are_no_rhythm():
    text = drawn("0--2-3-5-", "0-2-3-", head="Time: 3/4\n") + " x  x x x  x x x\n"
    (tab,), _ = parse_ascii_tabs(text)
    assert [bar.stated_onsets for bar in tab.bars] == [(), ()]


@pytest.mark.parametrize("words", ["West", "Es ist  x", "E  A  E  E", "The quest"])
def test_words_above_the_strings_are_no_rhythm(words):
    (tab,), _ = parse_ascii_tabs(drawn("0--", "0--", head=f"A study\n\n {words}"))
    assert not any(bar.stated_onsets for bar in tab.bars)


def test_a_grace_note_has_an_eighth_of_a_quarter_of_the_note_behind_it():
    found = timed(lettered(("Q a Q E E", "0-2-3-5-7-"), *[EVEN] * 3))
    assert onsets(found.tab)[0] == [0, 1, 1.125, 2, 2.5]


# --- Beats beside the strings ---------------------------------------------------------------------


@pytest.mark.parametrize("ruler", ["|   |     |     |", "| . |  .  |  .  |  ."])
def test_strokes_and_dots_above_a_bar_are_its_beats_however_it_is_drawn(ruler):
    found = timed(drawn("0-2-3-----5-----7--8---", head=f"Time: 4/4\n\n {ruler}"))
    assert onsets(found.tab) == [[0, 0.5, 1, 2, 3, 3.5]]


def test_beats_are_counted_out_below_the_strings_and_three_of_them_are_three_quarters():
    count = " 1     &  2  &  3  &  "  # of unequal width
    bars = "0--------2--3--5-----", "0-----2--3-----5--7--"
    below = drawn(*bars, head="A study") + count + count + "\n\n"
    (tab,), _ = parse_ascii_tabs(below + drawn(*bars[::-1]) + count + count + "\n")
    found = infer_timing(tab)
    assert found.tab.bars[0].time_signature == (3, 4)
    first, second = [0, 1, 1.5, 2], [0, 0.5, 1, 2, 2.5]
    assert onsets(found.tab) == [first, second, second, first]


def test_a_bar_with_more_beats_than_the_others_is_longer_and_said():
    ruler, bar = "|   |   |   ", "0---2---3---"
    head = "Time: 3/4\n\n " + " ".join([ruler, ruler, ruler, ruler[:4] + ruler, ruler])
    found = timed(drawn(bar, bar, bar, "0---2---3---5---", bar, head=head))
    assert [bar_start for bar_start in bar_start_steps(found.tab)] == [0, 3, 6, 9, 13, 16]
    assert found.remarks == (
        "bar 4 is of another length than the meter, as what is marked there says",
    )


def test_strokes_of_any_number_are_stems_and_no_beats():
    bars = "0-2-3-5-", "0---3-5-", "0---3---", "0-2-3-5-"
    stems = (bar.translate(str.maketrans("02357-", "||||| ")) for bar in bars)
    found = timed(drawn(*bars, head="Time: 4/4\n\n " + " ".join(stems)))
    assert onsets(found.tab) == [[0, 1, 2, 3], [0, 2, 3], [0, 2], [0, 1, 2, 3]]


# --- How bars are drawn ---------------------------------------------------------------------------


def test_a_blank_margin_and_columns_behind_a_sign_are_no_time():
    text = drawn("0---2---", "0---2---", "0---2---", head="Time: 2/4")
    indented = "\n".join(
        f"     {line[1:]}" if line.startswith("|") else line for line in text.split("\n")
    )
    assert onsets(timed(indented).tab) == [[0, 1]] * 3
    found = timed(drawn("0---2---", "---0---2---", "0---2---", head="Time: 2/4"))
    assert onsets(found.tab) == [[0, 1]] * 3


def test_quick_notes_may_be_drawn_wider_than_their_time():
    found = timed(drawn("0----2----3----5--7-8-", *["0----2----3----5----"] * 3, head="Time: 4/4"))
    assert onsets(found.tab)[0] == [0, 1, 2, 3, 3.5, 3.75]
    assert found.unfit_bars == ()


def test_bars_that_fit_no_grid_are_named_with_what_is_done():
    good, bad = "0---2---3---5---", "0-----34----5-7------"
    found = timed(drawn(good, bad, good, bad, good, good, head="Time: 4/4"))
    assert found.unfit_bars == (2, 4)
    assert found.remarks[0].startswith("bars 2, 4 are not drawn in time: the rhythm is estimated")
    assert {bar.steps for bar in found.tab.bars} == {4 * found.tab.steps_per_quarter}


def test_as_many_notes_as_steps_fill_a_bar_evenly_wherever_they_stand():
    straight, crooked = "0-2-3-5-7-8-3-5-7-2-3-0-", "0-2-3---5-7-8---3-5---7-2-3---0-"
    found = timed(drawn(straight, crooked, straight, head="Time: 3/4"))
    assert onsets(found.tab)[1] == [step / 4 for step in range(12)]
    assert found.unfit_bars == ()


def test_as_many_notes_as_triplets_are_even_only_where_other_bars_have_triplets():
    crooked, triplets = "2----3--5---7---8-2----", "0---2---3---5---7---8---"
    rest = [["0-2-3-5-" * 2] * 3, [triplets] * 3]
    found = [timed(drawn(*bars, crooked, bars[0], head="Time: 2/4")) for bars in rest]
    assert [each.unfit_bars for each in found] == [(4,), ()]
    assert onsets(found[1].tab)[3] == [step / 3 for step in range(6)]


def test_the_rhythm_of_a_bar_spaced_by_eye_is_estimated_beat_by_beat():
    """Each beat is as wide as its notes needed: a quarter, and two eighths three times."""
    wide = "0-----2--3--5--7--8-----5-----"
    found = timed(drawn(*["0---2---3---5---"] * 3, wide, "0---2---3---5---", head="Time: 4/4"))
    assert onsets(found.tab)[3] == [0, 1, 1.5, 2, 2.5, 3, 3.5]


def test_of_many_bars_spaced_by_eye_the_first_are_estimated_and_the_others_named(monkeypatch):
    """Each takes some milliseconds, and a file may have thousands."""
    monkeypatch.setattr(text_time, "MAX_ESTIMATED", 7 * 4)
    wide, straight = "0-----2--3--5--7--8-----5-----", "0---2---3---5---"
    bars = [*[straight] * 3, wide, straight, wide, straight]
    found = timed(drawn(*bars, head="Time: 4/4"))
    assert onsets(found.tab)[3] == [0, 1, 1.5, 2, 2.5, 3, 3.5] != onsets(found.tab)[5]
    assert found.unfit_bars == (4, 6)
    assert [remark.partition(":")[0] for remark in found.remarks] == [
        "bar 4 is not drawn in time",
        "bar 6 is not drawn in time, and too much to estimate",
    ]


def test_nothing_is_added_behind_the_last_note_of_a_bar_spaced_by_eye():
    """Eighteen notes in 4/4: some are quicker than sixteenths, and all stand equally wide apart."""
    quick = "0-2-" * 9
    found = timed(drawn(*["0-2-3-5-" * 4] * 3, quick, "0-2-3-5-" * 4, head="Time: 4/4"))
    assert found.unfit_bars == (4,)
    bar = found.tab.bars[3]
    assert bar.steps == 4 * found.tab.steps_per_quarter
    assert bar.steps - bar.events[-1].step <= found.tab.steps_per_quarter / 4


def test_bars_that_contradict_each_other_ask_for_a_flag_with_the_value_that_fits_best():
    odd = (
        "6----0---8----6---7---9--8--4--1---8--4-",
        "1---7-5----5--8----7---0-1----0----5--5-",
        "3--3--8----1-5----1---8---1--8---9---7-",
        "9----5--4--3--0---7-1--2-1----8---8--",
    )
    sentence = "contradict each other .*0 of 4 bars fit.* --steps-per-quarter, 10 fits"
    with pytest.raises(ValueError, match=sentence):
        timed(drawn(*odd, head="Time: 4/4"))


def test_what_has_time_or_no_notes_is_refused():
    (tab,), _ = parse_ascii_tabs(drawn("0---2---", "0---2---"))
    with pytest.raises(ValueError, match="has time already"):
        infer_timing(columns_to_steps(tab))
    empty = type(tab)(bars=tuple(type(bar)(bar.steps, ()) for bar in tab.bars))
    with pytest.raises(ValueError, match="without notes"):
        infer_timing(empty)


def test_convert_needs_no_flag_where_the_tab_says_its_time(tmp_path, capsys):
    text = drawn("0---2---3---5---", "0---2---3---5---", head="Time: 4/4   90 bpm")
    (tmp_path / "song.txt").write_text(text, encoding="utf-8")
    out = tmp_path / "song.gp5"
    assert main(["convert", str(tmp_path / "song.txt"), "-o", str(out)]) == 0
    assert "song.txt: 4/4 as stated, 1 step a quarter, 2 of 2 bars fit." in capsys.readouterr().err
    (back,), _ = read_any_tab_file(out)
    assert (back.bars[0].time_signature, back.bars[0].tempo_bpm) == ((4, 4), 90)
    assert onsets(back) == [[0, 1, 2, 3]] * 2
