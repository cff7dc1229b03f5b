"""Tabs as ASCII text: six lines, the high string on top, as players read and exchange them.

The layout can be read back. Every step of a bar takes equally many columns, the first right after
the bar line, and a fret starts in the first column of its step; there is always a dash behind a
fret, so ``12`` is one fret and never two. A bar that is longer than a line goes on in the next
system, which then begins without a bar line.
"""

from dataclasses import dataclass
from pathlib import Path

from slp_transformer.guitar.fretboard import TUNINGS, Tuning, string_names
from slp_transformer.guitar.tab import Bar, Tab
from slp_transformer.storage import whole_file

_PITCHES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


def format_tab(tab: Tab, width: int = 80, steps_per_beat: int | None = None) -> str:
    """A tab as text that ends in a line break.

    Title, ``tuning:`` (low string to high) and ``capo:`` stand above, then the systems. A system is
    broken at a bar line; only a bar that does not fit on a line of its own is broken inside, before
    an event.

    Args:
        tab: the piece.
        width: columns of a line, at least 20.
        steps_per_beat: if given, a line above each system counts the beats of every bar.

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
    for number, bar in enumerate(tab.bars, start=1):
        _check(bar, number, len(names))
    per_step = columns_per_step(tab.bars)
    labels = [names[0].lower(), *names[1:]]
    margin = max(len(label) for label in labels)
    room = width - margin - 2
    pieces = [
        piece for bar in tab.bars for piece in _pieces(bar, per_step, room, steps_per_beat, names)
    ]
    lines = _header(tab)
    for system in _systems(pieces, room):
        lines += ["", *_draw(system, labels, margin, counted=steps_per_beat is not None)]
    return "\n".join(lines) + "\n"


def write_tab(tab: Tab, path: str | Path, width: int = 80) -> None:
    """Write `format_tab(tab, width)` to a file (UTF-8), which is either whole or not there.

    Raises:
        ValueError: as `format_tab`.
        OSError: if the file cannot be written.
    """
    path, text = Path(path), format_tab(tab, width)
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def columns_per_step(bars: tuple[Bar, ...]) -> int:
    """Fewest columns a step can take so that every fret has a dash behind it, in all the bars."""
    needed = 1
    for bar in bars:
        ends = [*(event.step for event in bar.events[1:]), bar.steps]
        for event, end in zip(bar.events, ends, strict=False):
            digits = max(len(str(note.fret)) for note in event.notes)
            needed = max(needed, -(-(digits + 1) // (end - event.step)))
    return needed


def _check(bar: Bar, number: int, strings: int) -> None:
    """Raise a ValueError that says why a bar cannot be written."""
    if bar.steps < 1:
        raise ValueError(f"Bar {number} has {bar.steps} steps; a bar has at least 1.")
    before = -1
    for event in bar.events:
        where = f"Bar {number}, step {event.step}"
        if not before < event.step < bar.steps:
            raise ValueError(
                f"{where}: events must be in order and inside the bar's {bar.steps} steps."
            )
        before = event.step
        used = [note.string for note in event.notes]
        if not used or len(set(used)) < len(used) or not all(1 <= s <= strings for s in used):
            raise ValueError(
                f"{where}: strings {used} cannot be written: an event needs notes on different "
                f"strings from 1 to {strings}."
            )
        if min(note.fret for note in event.notes) < 0:
            raise ValueError(f"{where}: a fret is negative; frets start at 0, the open string.")


def _header(tab: Tab) -> list[str]:
    """Title, tuning and capo, a line each."""
    title = " ".join(tab.title.split())
    lines = [title] if title else []
    lines.append("tuning: " + " ".join(_spelled(tab.tuning)))
    if tab.tuning.capo:
        lines.append(f"capo: {tab.tuning.capo}")
    return lines


def _spelled(tuning: Tuning) -> list[str]:
    """Open strings, low to high; with octaves (E2) where the letters alone would mislead.

    Letters mean the pitch nearest to standard tuning, which is how people read them.
    """
    letters = string_names(tuning)[::-1]
    pitches = tuning.open_pitches[::-1]
    usual = TUNINGS["standard"].open_pitches[::-1]
    plain = len(pitches) == len(usual) and all(
        abs(pitch - standard) < 6 for pitch, standard in zip(pitches, usual, strict=True)
    )
    return (
        letters
        if plain
        else [f"{letter}{pitch // 12 - 1}" for letter, pitch in zip(letters, pitches, strict=True)]
    )


@dataclass(frozen=True)
class _Piece:
    """A bar, or a part of one, as rows of text without bar lines."""

    rows: tuple[str, ...]
    beats: str
    first: bool
    last: bool

    def __len__(self) -> int:
        return len(self.rows[0])


def _pieces(
    bar: Bar, per_step: int, room: int, steps_per_beat: int | None, names: list[str]
) -> list[_Piece]:
    """A bar as text, cut before an event wherever it would run out of the line."""
    length = bar.steps * per_step
    rows = [["-"] * length for _ in names]
    for event in bar.events:
        for string, fret in event.notes:
            digits = str(fret)
            start = event.step * per_step
            rows[string - 1][start : start + len(digits)] = digits
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
        fits = systems and used + 1 + len(piece) <= room
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
