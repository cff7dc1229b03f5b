"""What holds of every tab that can be written down: in a file, in tokens, or as sound."""

from collections.abc import Iterator
from typing import get_args

from slp_transformer.guitar.tab import Bar, Event, Kind, Tab

FEWEST_STRINGS, MOST_STRINGS = 4, 8
FINEST = 96
"""Most steps that a quarter note may have."""
KINDS = get_args(Kind)


def check_tab(tab: Tab) -> None:
    """Refuse a tab that cannot be written down, in a sentence that names the bar.

    Raises:
        ValueError: for other than 4 to 8 strings, a unit of time outside 1 to 96 steps a quarter, a
            bar without length, events out of order or outside their bar, two notes on one string,
            strings that the tuning lacks, negative frets, details that do not fit the notes.
    """
    strings = len(tab.tuning.open_pitches)
    if not FEWEST_STRINGS <= strings <= MOST_STRINGS:
        raise ValueError(
            f"A tab has {FEWEST_STRINGS} to {MOST_STRINGS} strings; this tuning has {strings}."
        )
    if tab.steps_per_quarter is not None and not 1 <= tab.steps_per_quarter <= FINEST:
        raise ValueError(f"A quarter note has 1 to {FINEST} steps, not {tab.steps_per_quarter}.")
    for number, bar in enumerate(tab.bars, start=1):
        check_bar(bar, number, strings)


def check_bar(bar: Bar, number: int, strings: int) -> None:
    """Refuse a bar that cannot be written down.

    Raises:
        ValueError: as `check_tab`.
    """
    if bar.metre is not None and (bar.metre[0] < 1 or bar.metre[1] not in (1, 2, 4, 8, 16, 32)):
        raise ValueError(
            f"Bar {number}: {bar.metre[0]}/{bar.metre[1]} is no metre; write so many halves, "
            "quarters, eighths, ..., as in 6/8."
        )
    if bar.tempo is not None and not 1 <= bar.tempo <= 1000:
        raise ValueError(
            f"Bar {number}: a tempo is 1 to 1000 quarter notes a minute, not {bar.tempo}."
        )
    for event, where in events_in_order(bar, number):
        _check_event(event, where, strings)


def events_in_order(bar: Bar, number: int) -> Iterator[tuple[Event, str]]:
    """The events of a bar, each with the words for where it is.

    Raises:
        ValueError: naming the place, if the bar has no steps or an event stands outside its order.
    """
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
        yield event, where


def _check_event(event: Event, where: str, strings: int) -> None:
    """Refuse an event that cannot be written down."""
    used = [note.string for note in event.notes]
    if not used or len(set(used)) < len(used) or not all(1 <= s <= strings for s in used):
        raise ValueError(
            f"{where}: strings {used} cannot be written: an event needs notes on different "
            f"strings from 1 to {strings}."
        )
    if min(note.fret for note in event.notes) < 0:
        raise ValueError(f"{where}: a fret is negative; frets start at 0, the open string.")
    for details in (event.durations, event.techniques, event.voices):
        if details and len(details) != len(used):
            raise ValueError(f"{where}: {len(details)} details for {len(used)} notes.")
    if any(duration < 0 for duration in event.durations):
        raise ValueError(f"{where}: a note cannot last less than no time.")
    for technique in (each for several in event.techniques for each in several):
        if technique.kind not in KINDS:
            raise ValueError(
                f"{where}: {technique.kind!r} is no technique that a tab knows: {', '.join(KINDS)}."
            )
