"""Tabs as ASCII text: six lines, the high string on top, as players read and exchange them.

The layout can be read back. Every step of a bar takes equally many columns, the first right after
the bar line, and a fret starts in the first column of its step; there is always a dash behind a
fret, so ``12`` is one fret and never two. Where beats are numbered, a bar that would be longer than
a line has steps of its own in each beat. One that still is goes on in the next system, which then
begins without a bar line.
"""

from dataclasses import replace
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from slp_guitar.ascii.marks import WHOLE_STEP_QUARTER_TONES
from slp_guitar.ascii.reader import looks_like_time_signature
from slp_guitar.ascii.unread import READ_ANYWHERE
from slp_guitar.fretboard import get_string_names
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.tab import Bar, Tab, TabNote, check_tab
from slp_guitar.tab_header import find_title, format_tuning_line
from slp_guitar.techniques import TECHNIQUES

MIN_BEAT_COLUMNS = 4
"""Of a beat in a bar that is drawn tightly, so that the numbers stand apart."""


def format_tab(
    tab: Tab, width: int = 80, number_beats_every: int | None = None, with_time_lines: bool = False
) -> str:
    """A tab as text that ends in a line break.

    Title, ``style:``, ``tuning:`` (low string to high) and ``capo:`` come first, then the systems.
    A system is broken at a bar line; only a bar that does not fit on a line of its own is broken
    inside, before a beat that is numbered, or else before an event.

    Args:
        tab: the piece.
        width: columns of a line, at least 20.
        number_beats_every: steps of a beat; a line above each system then numbers the beats of
            every bar.
        with_time_lines: write the unit of time, time signatures and tempos, and count the beats, so
            that the text is read back as the very same steps, with its repeats. (Durations, voices,
            harmonics and ringing notes have no place in this.)

    Raises:
        ValueError: if `width` is below 20, `number_beats_every` below 1, or a bar cannot be
            written: no steps, events out of order or outside the bar, two notes on one string, a
            string that the tuning lacks, a negative fret. The sentence names the bar.
    """
    if width < 20:
        raise ValueError(f"A tab needs lines of at least 20 columns, not {width}.")
    if number_beats_every is not None and number_beats_every < 1:
        raise ValueError(f"A beat has at least 1 step, not {number_beats_every}.")
    check_tab(tab)
    names = get_string_names(tab.tuning)
    margin = max(map(len, names))
    labels = [" " * margin, *(name.ljust(margin) for name in [names[0].lower(), *names[1:]])]
    per_step, room = compute_columns_per_step(tab.bars), width - margin - 2
    pieces: list[_BarText] = []
    for bar, own in zip(tab.bars, steps_per_beat_by_bar(tab), strict=True):
        beat = number_beats_every or (own if with_time_lines else None) or bar.steps
        columns = {step: step * per_step for step in range(bar.steps + 1)}
        if number_beats_every and not with_time_lines and columns[bar.steps] > room:
            columns = min(columns, _place_beat_by_beat(bar, beat), key=lambda c: c[bar.steps])
        pieces += _render_bar(bar, columns, room, beat, len(names))
    lines = _format_header(tab)
    if with_time_lines:
        lines += format_time_lines(tab, per_step, not all(piece.ends_bar for piece in pieces))
    counted = number_beats_every is not None or (
        with_time_lines and tab.steps_per_quarter is not None
    )
    for system in _arrange_systems(pieces, room, break_at_changes=with_time_lines):
        changes = (
            format_bar_changes(system[0].bar) if with_time_lines and system[0].starts_bar else []
        )
        lines += ["", *changes, *_draw_system(system, labels)[0 if counted else 1 :]]
    return "\n".join(lines) + "\n"


def format_time_lines(tab: Tab, columns_per_step: int, has_cut_bar: bool) -> list[str]:
    """Return the time line of a tab; none where the bars can be read without.

    Args:
        tab: the tab.
        columns_per_step: how many columns a step takes.
        has_cut_bar: whether some bar goes on in the next system.
    """
    columns = f"{columns_per_step} column{'s' if columns_per_step > 1 else ''} to a step"
    if tab.steps_per_quarter is not None:
        unit = tab.steps_per_quarter
        return [f"time: {unit} step{'s' if unit > 1 else ''} to a quarter, {columns}"]
    firsts = [bar.events[0] for bar in tab.bars if bar.events]
    steps = gcd(*(event.step for event in tab.iter_events()))
    plain = (
        not has_cut_bar
        and not any(e.step == 0 and looks_like_time_signature(e.notes) for e in firsts)
        and min((event.step for event in firsts), default=0) == 0
        and (steps == 1 or steps == 0 and columns_per_step == 1)
    )
    return [] if plain else [f"time: {columns}"]


def steps_per_beat_by_bar(tab: Tab) -> list[int | None]:
    """Return for each bar how many steps a beat has; None where there is no time."""
    unit, kind = tab.steps_per_quarter, 4
    beats: list[int | None] = []
    for bar in tab.bars:
        kind = bar.time_signature[1] if bar.time_signature else kind
        beats.append(4 * unit // kind if unit is not None and 4 * unit % kind == 0 else unit)
    return beats


def format_bar_changes(bar: Bar) -> list[str]:
    """Return the lines that say what changes with a bar, and how often it is played."""
    lines = [
        ("metre: {}/{}".format(*bar.time_signature or (0, 0)), bar.time_signature),
        (f"tempo: {bar.tempo_bpm}", bar.tempo_bpm),
        (f"key: {bar.key}", bar.key),
        *((f"tempo: {bpm} from step {step}", True) for step, bpm in bar.tempo_changes),
        ("repeat: begins here", bar.starts_repeat),
        (f"endings: {' '.join(map(str, bar.endings))}", bar.endings),
        (f"repeat: played {bar.num_plays} times", bar.num_plays > 1),
        *((f"sign: {PLAYING_SIGNS[sign].summary}", True) for sign in bar.signs),
    ]
    return [line for line, is_needed in lines if is_needed]


def compute_columns_per_step(bars: tuple[Bar, ...]) -> int:
    """Fewest columns a step can take so that every fret has a dash behind it, in all the bars."""
    needed = 1
    for bar in bars:
        ends = [*(event.step for event in bar.events[1:]), bar.steps]
        for event, end in zip(bar.events, ends, strict=False):
            longest = max(len(format_note(each)) for each in event.tab_notes())
            needed = max(needed, -(-(longest + 1) // (end - event.step)))
    return needed


def _format_header(tab: Tab) -> list[str]:
    """Title, style, tuning and capo, a line each."""
    title, style, track = (" ".join(text.split()) for text in (tab.title, tab.style, tab.track))
    is_plain = find_title([title]) == title and not any(test(title) for test in READ_ANYWHERE)
    lines = [
        (title if is_plain else f"title: {title}", title),
        (f"style: {style}", style),
        (f"track: {track}", track),
        (format_tuning_line(tab.tuning), True),
        (f"capo: {tab.tuning.capo}", tab.tuning.capo),
    ]
    return [line for line, is_needed in lines if is_needed]


class _BarText(NamedTuple):
    """A bar, or a part of one, as rows of text without bar lines; the first row counts beats."""

    bar: Bar
    rows: list[str]
    starts_bar: bool
    ends_bar: bool


def _place_beat_by_beat(bar: Bar, steps_per_beat: int) -> dict[int, int]:
    """Return the columns of beats, events and the end of a bar, by step, if it is drawn tightly.

    Each beat has as few steps, equally wide, as its own events need.
    """
    columns = {0: 0}
    for start in range(0, bar.steps, steps_per_beat):
        end = min(start + steps_per_beat, bar.steps)
        inside = [event for event in bar.events if start <= event.step < end]
        unit = gcd(end - start, *(event.step - start for event in inside))
        count = (end - start) // unit
        events = tuple(replace(event, step=(event.step - start) // unit) for event in inside)
        width = compute_columns_per_step((Bar(count, events),))
        width = max(width, -(-MIN_BEAT_COLUMNS // count))
        for step in range(1, count + 1):
            columns[start + step * unit] = columns[start] + step * width
    return columns


def _render_bar(
    bar: Bar, columns: dict[int, int], max_columns: int, steps_per_beat: int, num_strings: int
) -> list[_BarText]:
    """Return a bar as text, cut before a beat or an event where it would run out of the line.

    Args:
        bar: the bar.
        columns: where beats, events and the end of the bar are, by step.
        max_columns: of a line.
        steps_per_beat: of a beat that is numbered.
        num_strings: of the guitar.
    """
    length = columns[bar.steps]
    rows = [[" "] * length, *(["-"] * length for _ in range(num_strings))]
    beats = [columns[step] for step in range(0, bar.steps, steps_per_beat)]
    for count, start in enumerate(beats, start=1):
        rows[0][start : start + len(str(count))] = str(count)[: length - start]
    starts = [columns[event.step] for event in bar.events]
    whole = set(beats)  # a fret may go on over the beginning of a beat
    for start, event in zip(starts, bar.events, strict=True):
        for each in event.tab_notes():
            text = format_note(each)
            rows[each.note.string][start : start + len(text)] = text
            whole.difference_update(range(start + 1, start + len(text)))
    cuts = [0]
    while length - cuts[-1] > max_columns:
        within = range(cuts[-1] + 1, cuts[-1] + max_columns + 1)
        places = whole.intersection(within) or set(starts).intersection(within)
        cuts.append(max(places, default=within[-1]))
    return [
        _BarText(bar, ["".join(row[start:end]) for row in rows], start == 0, end == length)
        for start, end in pairwise([*cuts, length])
    ]


def _arrange_systems(
    bar_texts: list[_BarText], max_columns: int, break_at_changes: bool
) -> list[list[_BarText]]:
    """Return pieces gathered into lines; part of a bar shares no line with what follows it."""
    systems: list[list[_BarText]] = []
    used = 0
    for piece in bar_texts:
        columns = len(piece.rows[0])
        changes = break_at_changes and format_bar_changes(piece.bar)
        fits = systems and used + 1 + columns <= max_columns and not changes
        if fits and piece.starts_bar and systems[-1][-1].ends_bar:
            systems[-1].append(piece)
            used += 1 + columns
        else:
            systems.append([piece])
            used = columns
    return systems


def _draw_system(system: list[_BarText], labels: list[str]) -> list[str]:
    """Return the beats and strings of a system; a bar line is left out where a bar is only cut."""
    left = "|" if system[0].starts_bar else " "
    right = "|" if system[-1].ends_bar else ""
    beats, *strings = zip(*(piece.rows for piece in system), strict=True)
    rows = zip(labels[1:], strings, strict=True)
    lines = (f"{label}{left}{'|'.join(row)}{right}" for label, row in rows)
    return [f"{labels[0]} {' '.join(beats)}".rstrip(), *lines]


def format_note(tab_note: TabNote) -> str:
    """A fret with the first of its marks that can be written: ``7``, ``7h``, ``7b1/2``, ``x``."""
    fret = tab_note.note.fret
    if any(kind == "dead" for kind, _ in tab_note.techniques):
        return "x"
    for kind, size in tab_note.techniques:
        if kind == "bend":
            parts = {1: "1/4", 2: "1/2", 3: "3/4", WHOLE_STEP_QUARTER_TONES: ""}
            return f"{fret}b" + parts.get(size, str(fret + (size + 1) // 2))
        if marks := TECHNIQUES[kind].ascii:
            return f"{fret}{marks[0]}"
    return str(fret)
