"""The names of the tokens of tabs; `slp_transformer.guitar.token_grammar` reads them back.

In the placed code the header goes on with the metre of the first bar and with the key, which is
estimated from all notes (`slp_transformer.guitar.theory.key_of`); either may be ``none``. Where the
tokenizer has styles, the tab's comes last, as ``STYLE<Jazz>``, or ``STYLE<none>`` if it has none of
them::

    <bos> TUNING<standard> CAPO<0> COLUMNS METRE<4/4> KEY<Em>
    BAR<16> TAB<6,0> WITH<1,3> POS<2> TAB<4,2> POS<4> TAB<3,0>
    SAME<1>
    <eos>

``BAR<16>`` says at once how long the bar is; in one beyond the positions each ``LONGER`` adds their
number. ``TAB`` is the first note of a moment, ``WITH`` another one that sounds with it. A bar's
first moment is its beginning, unless a ``POS`` says otherwise.

A bar that is equal to an earlier one is a single token: ``SAME<1>`` is the bar before, ``SAME<8>``
the one eight bars back, the nearest of several. So a model that has whole pieces before it can have
bars come back without spelling them. The grammar does not keep it from spelling such a bar all the
same.
"""

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Bar, Event, Tab, events_in_order
from slp_transformer.guitar.theory import KEYS, METRES, key_of
from slp_transformer.guitar.token_grammar import STRINGS

FARTHEST = 128
"""How many bars back a bar can be called by ``SAME``."""
Moments = tuple[tuple[int, tuple[Note, ...]], ...]


def plain_vocabulary(max_fret: int, max_position: int) -> tuple[str, ...]:
    """Names of the tokens of the plain code that come after the header."""
    return (
        "BAR",
        "LONG",
        *(f"POS<{steps}>" for steps in range(1, max_position + 1)),
        *(f"TAB<{place}>" for place in _places(max_fret)),
    )


def placed_vocabulary(max_fret: int, max_position: int, styles: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the tokens of the placed code that come after the unit of time."""
    places = _places(max_fret)
    return (
        *(f"METRE<{beats}/{kind}>" for beats, kind in METRES),
        "METRE<none>",
        *(f"KEY<{key}>" for key in KEYS),
        "KEY<none>",
        *(f"BAR<{steps}>" for steps in range(1, max_position + 1)),
        "LONGER",
        "LONG",
        *(f"POS<{steps}>" for steps in range(1, max_position + 1)),
        *(f"SAME<{bars}>" for bars in range(1, FARTHEST + 1)),
        *(f"TAB<{place}>" for place in places),
        *(f"WITH<{place}>" for place in places),
        *((*(f"STYLE<{style}>" for style in styles), "STYLE<none>") if styles else ()),
    )


def _places(max_fret: int) -> list[str]:
    """Every string and fret that has a token."""
    return [f"{s},{f}" for s in range(STRINGS, 0, -1) for f in range(max_fret + 1)]


def plain_tokens(bars: tuple[Bar, ...], max_fret: int, max_position: int) -> list[str]:
    """Names of the tokens of all bars in the plain code.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    tokens: list[str] = []
    for number, bar in enumerate(bars, start=1):
        tokens.append("BAR")
        passed = 0
        for step, notes in moments_of(bar, number, max_fret):
            if step:
                passed = add_position(tokens, step, passed, max_position)
            tokens += [f"TAB<{note.string},{note.fret}>" for note in notes]
        add_position(tokens, bar.steps, passed, max_position)
    return tokens


def placed_tokens(tab: Tab, max_fret: int, max_position: int, styles: tuple[str, ...]) -> list[str]:
    """Names of the tokens of metre, key, style and all bars in the placed code.

    Args:
        tab: the tab.
        max_fret: highest fret that has a token.
        max_position: how many positions have one.
        styles: the styles that have a token; none for a header without a style.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    metre = tab.bars[0].metre if tab.bars else None
    told = "{}/{}".format(*metre) if metre in METRES else "none"
    tokens = [f"METRE<{told}>", f"KEY<{key_of(tab) or 'none'}>"]
    if styles:
        tokens.append(f"STYLE<{tab.style if tab.style in styles else 'none'}>")
    last_seen: dict[tuple[int, Moments], int] = {}
    for number, bar in enumerate(tab.bars, start=1):
        moments = moments_of(bar, number, max_fret)
        before = last_seen.get((bar.steps, moments))
        last_seen[bar.steps, moments] = number
        if moments and before is not None and number - before <= FARTHEST:
            tokens.append(f"SAME<{number - before}>")
            continue
        longer, rest = divmod(bar.steps - 1, max_position)
        tokens += [f"BAR<{rest + 1}>"] + ["LONGER"] * longer
        passed = 0
        for step, notes in moments:
            if step:
                passed = add_position(tokens, step, passed, max_position)
            tokens += [f"{'WITH' if i else 'TAB'}<{s},{f}>" for i, (s, f) in enumerate(notes)]
    return tokens


def moments_of(bar: Bar, number: int, max_fret: int) -> Moments:
    """The moments of a bar at which notes sound, and those notes: none for dead notes alone.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    found = []
    for event, where in events_in_order(bar, number):
        _check_notes(event, where, max_fret)
        if notes := event.sounding():
            found.append((event.step, notes))
    return tuple(found)


def add_position(tokens: list[str], step: int, passed: int, max_position: int) -> int:
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
