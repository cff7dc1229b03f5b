"""ASCII tab: laid out as players know it, and nothing in it that cannot be read back."""

import random
from dataclasses import replace

import pytest
from guitar_pieces import event, random_piece
from sampled import mostly_slow

from slp_guitar.ascii.reader import parse_ascii_tabs, read_tab_file
from slp_guitar.ascii.writer import compute_columns_per_step, format_tab
from slp_guitar.formats.registry import write_tab
from slp_guitar.fretboard import HALF_STEP_DOWN, OPEN_D, STANDARD, Note, Tuning
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique

C_AND_RUN = Tab(
    title="C and a run",
    tuning=Tuning(capo=2),
    bars=(
        Bar(4, (event(0, (5, 3), (4, 2), (3, 0), (2, 1), (1, 0)), event(2, (1, 3)))),
        Bar(4, (event(1, (6, 12), (1, 9)), event(3, (6, 10)))),
    ),
)


def test_a_page_by_hand():
    assert format_tab(C_AND_RUN) == (
        "C and a run\n"
        "tuning: E A D G B E\n"
        "capo: 2\n"
        "\n"
        "e|0-----3-----|---9--------|\n"
        "B|1-----------|------------|\n"
        "G|0-----------|------------|\n"
        "D|2-----------|------------|\n"
        "A|3-----------|------------|\n"
        "E|------------|---12----10-|\n"
    )


def test_beats_stand_above_their_steps():
    lines = format_tab(C_AND_RUN, number_beats_every=2).splitlines()
    assert lines[4] == "  1     2      1     2"
    assert lines[5].startswith("e|0-----3-----|---9")


@pytest.mark.parametrize(
    ("bar", "columns"),
    [
        (Bar(4, (event(0, (1, 0)), event(2, (1, 2)))), 1),
        (Bar(4, (event(0, (1, 0)), event(1, (1, 2)))), 2),
        (Bar(4, (event(3, (1, 0)),)), 2),
        (Bar(4, (event(2, (1, 10)),)), 2),
        (Bar(4, (event(0, (1, 10)), event(1, (1, 2)))), 3),
        (Bar(8, (event(0, (1, 10), (6, 2)), event(3, (1, 2)))), 1),
        (Bar(2, ()), 1),
    ],
)
def test_a_step_takes_the_columns_that_its_frets_need(bar, columns):
    assert compute_columns_per_step((bar,)) == columns


def random_bar(rng, highest):
    """A bar with notes anywhere on the neck, as no hand would play them."""
    steps = rng.choice([5, 8, 11, 16])
    events = []
    for step in sorted(rng.sample(range(steps), rng.randint(2, 5))):
        strings = sorted(rng.sample(range(1, 7), rng.choice([1, 1, 2, 3, 6])), reverse=True)
        events.append(event(step, *((string, rng.randint(0, highest)) for string in strings)))
    return Bar(steps, tuple(events))


@pytest.mark.parametrize("highest", mostly_slow([9, 17, 18, 19, 21, 23, 24], 19))
def test_the_reader_finds_the_same_notes_however_unlikely(highest):
    rng = random.Random(highest)
    for _ in range(40):
        tab = Tab("Far apart", bars=tuple(random_bar(rng, highest) for _ in range(5)))
        (read,), problems = parse_ascii_tabs(format_tab(tab))
        assert [e.notes for e in read.iter_events()] == [e.notes for e in tab.iter_events()]
        assert not problems


def test_a_bar_that_is_too_long_is_cut_before_an_event():
    long_bar = Bar(40, (event(0, (1, 1)), event(15, (1, 12)), event(20, (1, 3))))
    systems = format_tab(Tab(bars=(long_bar, Bar(2, (event(0, (2, 5)),)))), 24).split("\n\n")[1:]
    tops = [system.splitlines()[0] for system in systems]
    assert tops == ["e|1--------------12---", "e 3-------------------|", "e|--|"]
    long_silence = Bar(60, (event(0, (1, 1)),))
    tops = [s.splitlines()[0] for s in format_tab(Tab(bars=(long_silence,)), 25).split("\n\n")[1:]]
    assert tops == ["e|1" + "-" * 21, "e " + "-" * 22, "e " + "-" * 16 + "|"]


def test_a_bar_that_is_too_long_is_cut_before_a_numbered_beat_but_through_no_fret():
    bar = Bar(20, (event(0, (1, 3)), event(9, (1, 5)), event(13, (1, 7))))
    _, *systems = format_tab(Tab(bars=(bar,)), 20, number_beats_every=10).split("\n\n")
    tops = [system.splitlines()[:2] for system in systems]
    assert tops == [["  1", "e|3--------5"], ["  2", "e ---7------|"]]
    wide = replace(bar, events=(event(0, (1, 3)), event(9, (1, 12)), event(13, (1, 7))))
    _, *systems = format_tab(Tab(bars=(wide,)), 20, number_beats_every=10).split("\n\n")
    tops = [system.splitlines()[1] for system in systems]
    assert tops == ["e|3--------12--", "e 7------|"]


def test_a_bar_that_is_too_long_has_steps_of_its_own_in_each_beat():
    """A triplet, a rest, a quintuplet and half a beat on a grid of fifteen."""
    steps = 0, 5, 10, 30, 33, 36, 39, 42, 45
    bar = Bar(52, tuple(event(step, (1, fret)) for fret, step in enumerate(steps)))
    _, system = format_tab(Tab(bars=(bar,)), 40, number_beats_every=15).split("\n\n")
    assert system.splitlines()[:2] == [
        "  1     2   3         4",
        "e|0-1-2-----3-4-5-6-7-8---|",
    ]
    wide = format_tab(Tab(bars=(bar,)), 60, number_beats_every=15).splitlines()[3]
    assert wide == "e|0----1----2-------------------3--4--5--6--7--8------|"


@pytest.mark.parametrize(
    ("tuning", "line", "labels"),
    [
        (STANDARD, "tuning: E A D G B E", ["e|", "B|", "G|", "D|", "A|", "E|"]),
        (OPEN_D, "tuning: D A D F# A D", ["d |", "A |", "F#|", "D |", "A |", "D |"]),
        (HALF_STEP_DOWN, "tuning: Eb Ab Db Gb Bb Eb", ["eb|", "Bb|", "Gb|", "Db|", "Ab|", "Eb|"]),
        (
            Tuning((64, 59, 67, 62, 57, 52)),
            "tuning: E3 A3 D4 G4 B3 E4",
            ["e|", "B|", "G|", "D|", "A|", "E|"],
        ),
    ],
)
def test_labels_and_tuning_say_what_the_strings_are(tuning, line, labels):
    lines = format_tab(Tab(tuning=tuning, bars=(Bar(4, ()),))).splitlines()
    assert lines[0] == line
    assert [row.removesuffix("----|") for row in lines[2:]] == labels


@pytest.mark.parametrize(
    "low_to_high",
    [
        (34, 41, 46, 51, 55, 60), (33, 40, 45, 50, 54, 59), (28, 33, 38, 43, 47, 52),
        (52, 57, 62, 67, 59, 64), (36, 43, 48, 53, 57, 62),
    ],
)  # fmt: skip
def test_every_tuning_is_read_back(low_to_high):
    tab = Tab(tuning=Tuning(low_to_high[::-1], capo=2), bars=(Bar(4, (event(0, (1, 1)),)),))
    (read,), problems = parse_ascii_tabs(format_tab(tab))
    assert problems == []
    assert read.tuning == tab.tuning


def test_a_title_stays_on_its_line():
    assert format_tab(Tab(title="A\n  waltz")).splitlines()[0] == "A waltz"


@pytest.mark.parametrize(
    ("title", "style"),
    [
        ("", "Blues"), ("A waltz", ""), ("style: Blues", ""), ("Genre: Blues", "Jazz"),
        ("Style", "title: Jazz"), ("Title song", "style: Jazz"),
        *(("A waltz", style) for style in ("Blues", "slow, capo 2", "tempo: 90", "Guitar 2")),
        *(("A waltz", style) for style in ("e|--0--|-----|", "----------------")),
        ("A waltz", "Drop D"),  # the tuning stays standard
    ],
)  # fmt: skip
def test_title_and_style_are_read_back_and_are_nothing_else(tmp_path, title, style):
    for unit in (None, 4):
        tab = Tab(title, bars=(Bar(4, (event(0, (1, 1)),)),), steps_per_quarter=unit, style=style)
        assert parse_ascii_tabs(format_tab(tab, with_time_lines=True)) == ([tab], [])
    write_tab(tab, tmp_path / "tab.txt")
    assert read_tab_file(tmp_path / "tab.txt")[0] == [replace(tab, source="tab.txt")]


def test_a_style_has_a_line_under_the_title():
    tab = replace(C_AND_RUN, style="Slow  blues")
    assert format_tab(tab) == format_tab(C_AND_RUN).replace(
        "run\ntuning", "run\nstyle: Slow blues\ntuning"
    )


def test_widths_and_beats_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="at least 20 columns, not 19"):
        format_tab(Tab(), width=19)
    with pytest.raises(ValueError, match="at least 1 step, not 0"):
        format_tab(Tab(), number_beats_every=0)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "waltz.tab"
    write_tab(C_AND_RUN, path)
    assert path.read_text(encoding="utf-8") == format_tab(C_AND_RUN)
    with pytest.raises(ValueError, match="Bar 1"):
        write_tab(Tab(bars=(Bar(0, ()),)), path)
    assert path.read_text(encoding="utf-8") == format_tab(C_AND_RUN)
    assert [file.name for file in tmp_path.iterdir()] == ["waltz.tab"]


def test_nothing_is_left_behind_when_the_rename_fails(tmp_path):
    target = tmp_path / "taken.txt"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(OSError):
        write_tab(C_AND_RUN, target)
    assert [file.name for file in tmp_path.iterdir()] == ["taken.txt"]


MARKS = [
    (), *((Technique(kind),) for kind in ("dead", "hammer", "pull", "slide", "vibrato")),
    *((Technique("bend", size),) for size in (1, 2, 3, 4, 6, 8)),
]  # fmt: skip
"""How a note may be played that has a sign in a text."""


def as_ascii_holds_it(tab, rng):
    """The same bars with all that a text can say: marks, repeats, endings, signs and keys."""
    bars = []
    for bar in tab.bars:
        events = []
        for each in bar.events:
            notes = []
            for note in each.notes:
                marks = rng.choice(MARKS)
                fret = 0 if marks == MARKS[1] else note.fret
                notes.append(TabNote(note._replace(fret=fret), 0, marks))
            events.append(Event.from_notes(each.step, notes))
        bar = replace(bar, events=tuple(events), key=rng.choice([None, None, "D", "Fm"]))
        bar = replace(bar, starts_repeat=rng.random() < 0.1, num_plays=rng.choice([0, 0, 0, 2, 3]))
        bar = replace(bar, endings=rng.choice([(), (), (), (1,), (1, 2)]))
        is_signed = rng.random() < 0.1
        bars.append(replace(bar, signs=tuple(rng.sample([*PLAYING_SIGNS], is_signed))))
    if rng.random() < 0.4:  # columns
        bars = [replace(bar, time_signature=None, tempo_bpm=None) for bar in bars]
        tab = replace(tab, steps_per_quarter=None)
    return replace(tab, bars=tuple(bars))


@pytest.mark.parametrize("seed", mostly_slow(range(31), 0, 1, 2))
def test_whatever_is_written_is_read_back_as_it_was(tmp_path, seed):
    """In every tuning, unit and width, and nothing in the text is left over."""
    rng = random.Random(seed)
    for _ in range(15):
        tab = as_ascii_holds_it(random_piece(rng, rng.choice([4, 5, 6, 6, 7, 8])), rng)
        width, beat = rng.choice([24, 40, 80, 120]), rng.choice([None, None, 4])
        text = format_tab(tab, width, number_beats_every=beat, with_time_lines=True)
        (read,), problems = parse_ascii_tabs(text, names_unread=True)
        said = {"stated_time_signature": None, "stated_tempo_bpm": None}  # as of the first bar
        assert replace(read, **said) == tab and problems == []
    (tmp_path / "tab.txt").write_text(text, encoding="utf-8")
    assert read_tab_file(tmp_path / "tab.txt")[0] == [replace(read, source="tab.txt")]


@pytest.mark.parametrize("title", ["Capo 2", "Guitar 2", "Tempo: 90", "3/4"])
def test_a_title_that_states_something_is_a_title(title):
    ((read,), _) = parse_ascii_tabs(format_tab(replace(C_AND_RUN, title=title)))
    assert (read.title, read.tuning, read.track) == (title, C_AND_RUN.tuning, C_AND_RUN.track)


def test_a_dead_note_is_an_x():
    dead = Event(0, (Note(2, 3),), techniques=((Technique("dead"),),))
    assert "B|x-" in format_tab(Tab(bars=(Bar(4, (dead,)),)))


def test_a_ruler_says_the_unit_and_counts_beats():
    waltz = Bar(12, (event(0, (6, 3)), event(4, (1, 0))), (6, 8), 90)
    assert format_tab(Tab("Six", bars=(waltz,), steps_per_quarter=4), with_time_lines=True) == (
        "Six\n"
        "tuning: E A D G B E\n"
        "time: 4 steps to a quarter, 1 column to a step\n"
        "\n"
        "metre: 6/8\n"
        "tempo: 90\n"
        "  1 2 3 4 5 6\n"
        "e|----0-------|\n"
        "B|------------|\n"
        "G|------------|\n"
        "D|------------|\n"
        "A|------------|\n"
        "E|3-----------|\n"
    )
