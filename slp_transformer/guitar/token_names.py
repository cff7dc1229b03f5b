"""The names of the tokens of a bar; `slp_transformer.guitar.token_grammar` reads them back."""

from slp_transformer.guitar.tab import Bar, Event
from slp_transformer.guitar.token_grammar import STRINGS


def bar_tokens(bar: Bar, number: int, max_fret: int, max_position: int) -> list[str]:
    """Names of the tokens of one bar.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    if bar.steps < 1:
        raise ValueError(f"Bar {number} has {bar.steps} steps; a bar has at least 1.")
    tokens, now, passed = ["BAR"], 0, 0
    for i, event in enumerate(bar.events):
        where = f"Bar {number}, step {event.step}"
        if not now <= event.step < bar.steps or (i and event.step == now):
            raise ValueError(
                f"{where}: events must be in order and inside the bar's {bar.steps} steps."
            )
        now = event.step
        if not (names := _event_tokens(event, where, max_fret)):
            continue
        if now:
            passed = _position(tokens, now, passed, max_position)
        tokens += names
    _position(tokens, bar.steps, passed, max_position)
    return tokens


def _position(tokens: list[str], step: int, passed: int, max_position: int) -> int:
    """Add the tokens for a position; `passed` and the result count the ``LONG`` so far."""
    longs, rest = divmod(step - 1, max_position)
    tokens += ["LONG"] * (longs - passed) + [f"POS<{rest + 1}>"]
    return longs


def _event_tokens(event: Event, where: str, max_fret: int) -> list[str]:
    """Names of the tokens of the notes that sound together; none for dead notes alone."""
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
    return [f"TAB<{note.string},{note.fret}>" for note in event.sounding()]
