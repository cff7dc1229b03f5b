"""The names of the tokens of a bar; `slp_transformer.guitar.token_grammar` reads them back."""

from collections.abc import Iterator

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Bar, Event
from slp_transformer.guitar.tab_checks import events_in_order
from slp_transformer.guitar.token_grammar import STRINGS


def bar_tokens(bar: Bar, number: int, max_fret: int, max_position: int) -> list[str]:
    """Names of the tokens of one bar.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    tokens, passed = ["BAR"], 0
    for event, notes in event_notes(bar, number, max_fret):
        if event.step and notes:
            passed = longs_to(tokens, event.step, passed, max_position)
        tokens += [f"TAB<{note.string},{note.fret}>" for note in notes]
    longs_to(tokens, bar.steps, passed, max_position)
    return tokens


def event_notes(bar: Bar, number: int, max_fret: int) -> Iterator[tuple[Event, tuple[Note, ...]]]:
    """The events of a bar, each with its notes that sound: none for dead notes alone.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    for event, where in events_in_order(bar, number):
        _check_notes(event, where, max_fret)
        yield event, event.sounding()


def longs_to(tokens: list[str], step: int, passed: int, max_position: int) -> int:
    """Add the tokens for a position; `passed` and the result count the ``LONG`` so far."""
    longs, rest = divmod(step - 1, max_position)
    tokens += ["LONG"] * (longs - passed) + [f"POS<{rest + 1}>"]
    return longs


def _check_notes(event: Event, where: str, max_fret: int) -> None:
    """Refuse notes that have no tokens, or are not in order."""
    strings = [note.string for note in event.notes]
    if not strings or any(a <= b for a, b in zip(strings, strings[1:], strict=False)):
        raise ValueError(
            f"{where}: an event needs notes on different strings, string 6 before string 1; "
            f"these are on strings {strings}."
        )
    for string, fret in event.notes:
        if not (1 <= string <= STRINGS and 0 <= fret <= max_fret):
            raise ValueError(
                f"{where}: no token for string {string}, fret {fret}: strings go from 1 to "
                f"{STRINGS}, frets from 0 to {max_fret}."
            )
