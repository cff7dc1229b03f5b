"""Tabs as ASCII text: six lines, the high string on top, as players read and exchange them.

The layout can be read back. Every step of a bar takes equally many columns, the first right after
the bar line, and a fret starts in the first column of its step; there is always a dash behind a
fret, so ``12`` is one fret and never two. A bar that is longer than a line goes on in the next
system, which then begins without a bar line.
"""

from dataclasses import dataclass
from pathlib import Path

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.guitar.ascii_marks import FULL
from slp_transformer.guitar.ascii_time import beats_of, said_of, time_lines
from slp_transformer.guitar.fretboard import string_names
from slp_transformer.guitar.tab import Bar, Played, Tab, check_tab
from slp_transformer.guitar.tab_header import is_about_style, tuning_line

MARKS = {"hammer": "h", "pull": "p", "slide": "/", "vibrato": "~"}


def format_tab(
    tab: Tab, width: int = 80, steps_per_beat: int | None = None, ruler: bool = False
) -> str:
    """A tab as text that ends in a line break.

    Title, ``style:``, ``tuning:`` (low string to high) and ``capo:`` stand above, then the systems.
    A system is broken at a bar line; only a bar that does not fit on a line of its own is broken
    inside, before an event.

    Args:
        tab: the piece.
        width: columns of a line, at least 20.
        steps_per_beat: if given, a line above each system counts the beats of every bar.
        ruler: say the unit of time, metre and tempo, and count the beats of a tab in time, so that
            the text is read back as the very same steps. (Durations, voices, repeats, harmonics and
            ringing notes have no place in this.)

    Raises:
        ValueError: if `width` is below 20, `steps_per_beat` below 1, or a bar cannot be written: no
            steps, events out of order or outside the bar, two notes on one string, a string that
            the tuning lacks, a negative fret. The sentence names the bar.
    """
    if width < 20:
        raise ValueError(f"A tab needs lines of at least 20 columns, not {width}.")
    if steps_per_beat is not None and steps_per_beat < 1:
        raise ValueError(f"A beat has at least 1 step, not {steps_per_beat}.")
    names = string_names(tab.tuning)
    check_tab(tab)
    per_step = columns_per_step(tab.bars)
    labels = [names[0].lower(), *names[1:]]
    margin = max(len(label) for label in labels)
    room = width - margin - 2
    beats = beats_of(tab) if ruler else [None] * len(tab.bars)
    pieces = [
        piece
        for bar, own in zip(tab.bars, beats, strict=True)
        for piece in _pieces(bar, per_step, room, steps_per_beat or own, names, ruler)
    ]
    cut = not all(piece.last for piece in pieces)
    lines = [*_header(tab), *(time_lines(tab, per_step, cut) if ruler else [])]
    for system in _systems(pieces, room):
        counted = steps_per_beat is not None or (ruler and tab.steps_per_quarter is not None)
        lines += ["", *system[0].said, *_draw(system, labels, margin, counted)]
    return "\n".join(lines) + "\n"


def write_tab(tab: Tab, path: str | Path, width: int = 80) -> None:
    """Write `format_tab(tab, width, ruler=True)` to a file (UTF-8), whole or not at all.

    Raises:
        ValueError: as `format_tab`.
        OSError: if the file cannot be written.
    """
    path, text = Path(path), format_tab(tab, width, ruler=True)
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def columns_per_step(bars: tuple[Bar, ...]) -> int:
    """Fewest columns a step can take so that every fret has a dash behind it, in all the bars."""
    needed = 1
    for bar in bars:
        ends = [*(event.step for event in bar.events[1:]), bar.steps]
        for event, end in zip(bar.events, ends, strict=False):
            longest = max(len(written_note(each)) for each in event.played())
            needed = max(needed, -(-(longest + 1) // (end - event.step)))
    return needed


def _header(tab: Tab) -> list[str]:
    """Title, style, tuning and capo, a line each."""
    title, style = " ".join(tab.title.split()), " ".join(tab.style.split())
    lines = [f"title: {title}" if is_about_style(title) else title] if title else []
    if style:
        lines.append(f"style: {style}")
    lines.append(tuning_line(tab.tuning))
    if tab.tuning.capo:
        lines.append(f"capo: {tab.tuning.capo}")
    return lines


@dataclass(frozen=True)
class _Piece:
    """A bar, or a part of one, as rows of text without bar lines."""

    rows: tuple[str, ...]
    beats: str
    first: bool
    last: bool
    said: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows[0])


def _pieces(
    bar: Bar,
    per_step: int,
    room: int,
    steps_per_beat: int | None,
    names: list[str],
    ruler: bool,
) -> list[_Piece]:
    """A bar as text, cut before an event wherever it would run out of the line."""
    length = bar.steps * per_step
    rows = [["-"] * length for _ in names]
    for event in bar.events:
        for each in event.played():
            text, start = written_note(each), event.step * per_step
            rows[each.note.string - 1][start : start + len(text)] = text
    beats = [" "] * length
    for count, step in enumerate(range(0, bar.steps, steps_per_beat or bar.steps), start=1):
        digits = str(count)[: length - step * per_step]
        beats[step * per_step : step * per_step + len(digits)] = digits
    cuts = _cuts(bar, per_step, room)
    return [
        _Piece(
            tuple("".join(row[start:end]) for row in rows),
            "".join(beats[start:end]),
            first=start == 0,
            last=end == length,
            said=tuple(said_of(bar)) if ruler and start == 0 else (),
        )
        for start, end in zip(cuts, cuts[1:], strict=False)
    ]


def _cuts(bar: Bar, per_step: int, room: int) -> list[int]:
    """Columns where a bar begins, where it is cut, and where it ends."""
    length, cuts = bar.steps * per_step, [0]
    starts = [event.step * per_step for event in bar.events]
    while length - cuts[-1] > room:
        limit = cuts[-1] + room
        cuts.append(max((s for s in starts if cuts[-1] < s <= limit), default=limit))
    return [*cuts, length]


def _systems(pieces: list[_Piece], room: int) -> list[list[_Piece]]:
    """Pieces gathered into lines; part of a bar never shares a line with what follows it."""
    systems: list[list[_Piece]] = []
    used = 0
    for piece in pieces:
        fits = systems and used + 1 + len(piece) <= room and not piece.said
        if fits and piece.first and systems[-1][-1].last:
            systems[-1].append(piece)
            used += 1 + len(piece)
        else:
            systems.append([piece])
            used = len(piece)
    return systems


def _draw(system: list[_Piece], labels: list[str], margin: int, counted: bool) -> list[str]:
    """The text lines of a system; a bar line is left out where a bar is only cut."""
    left = "|" if system[0].first else " "
    right = "|" if system[-1].last else ""
    lines = []
    if counted:
        beats = " ".join(piece.beats for piece in system)
        lines.append((" " * (margin + 1) + beats).rstrip())
    for string, label in enumerate(labels):
        row = "|".join(piece.rows[string] for piece in system)
        lines.append(f"{label:<{margin}}{left}{row}{right}")
    return lines


def written_note(played: Played) -> str:
    """A fret with the first of its marks that can be written: ``7``, ``7h``, ``7b1/2``, ``x``."""
    fret = played.note.fret
    for kind, size in played.techniques:
        if kind == "dead":
            return "x"
        if kind == "bend":
            parts = {1: "1/4", 2: "1/2", 3: "3/4", FULL: ""}
            return f"{fret}b" + parts.get(size, str(fret + (size + 1) // 2))
        if kind in MARKS:
            return f"{fret}{MARKS[kind]}"
    return str(fret)
