"""The names of the tokens of tabs; `slp_transformer.guitar.token_grammar` reads them back.

In the placed code the header goes on with the time signature of the first bar and the key, which is
estimated from all notes (`slp_transformer.guitar.theory.estimate_key`); either may be ``none``.
Where the tokenizer has styles, the tab's comes last, as ``STYLE<Jazz>``, or ``STYLE<none>`` if it
has none of them::

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

from collections.abc import Sequence

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Bar, Event, Tab, iter_checked_events
from slp_transformer.guitar.theory import KEY_NAMES, TIME_SIGNATURES, estimate_key
from slp_transformer.guitar.token_grammar import NUM_STRINGS

MAX_BARS_BACK = 128
"""The farthest bar back that ``SAME`` can repeat."""
BarMoments = tuple[tuple[int, tuple[Note, ...]], ...]


def build_plain_vocabulary(max_fret: int, max_position: int) -> tuple[str, ...]:
    """Names of the tokens of the plain code that come after the header."""
    return (
        "BAR",
        "LONG",
        *(f"POS<{steps}>" for steps in range(1, max_position + 1)),
        *(f"TAB<{place}>" for place in _note_names(max_fret)),
    )


def build_placed_vocabulary(
    max_fret: int, max_position: int, styles: Sequence[str]
) -> tuple[str, ...]:
    """Names of the tokens of the placed code that come after the unit of time."""
    places = _note_names(max_fret)
    return (
        *(f"METRE<{beats}/{kind}>" for beats, kind in TIME_SIGNATURES),
        "METRE<none>",
        *(f"KEY<{key}>" for key in KEY_NAMES),
        "KEY<none>",
        *(f"BAR<{steps}>" for steps in range(1, max_position + 1)),
        "LONGER",
        "LONG",
        *(f"POS<{steps}>" for steps in range(1, max_position + 1)),
        *(f"SAME<{bars}>" for bars in range(1, MAX_BARS_BACK + 1)),
        *(f"TAB<{place}>" for place in places),
        *(f"WITH<{place}>" for place in places),
        *((*(f"STYLE<{style}>" for style in styles), "STYLE<none>") if styles else ()),
    )


def _note_names(max_fret: int) -> list[str]:
    """Every string and fret that has a token."""
    return [f"{s},{f}" for s in range(NUM_STRINGS, 0, -1) for f in range(max_fret + 1)]


def encode_plain_bars(bars: tuple[Bar, ...], max_fret: int, max_position: int) -> list[str]:
    """Names of the tokens of all bars in the plain code.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    tokens: list[str] = []
    for number, bar in enumerate(bars, start=1):
        tokens.append("BAR")
        passed = 0
        for step, notes in sounding_moments_in_bar(bar, number, max_fret):
            if step:
                passed = append_position_tokens(tokens, step, passed, max_position)
            tokens += [f"TAB<{note.string},{note.fret}>" for note in notes]
        append_position_tokens(tokens, bar.steps, passed, max_position)
    return tokens


def encode_placed_tab(
    tab: Tab, max_fret: int, max_position: int, styles: Sequence[str]
) -> list[str]:
    """Names of the tokens of time signature, key, style and all bars in the placed code.

    Args:
        tab: the tab.
        max_fret: highest fret that has a token.
        max_position: how many positions have one.
        styles: the styles that have a token; none for a header without a style.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    time_signature = tab.bars[0].time_signature if tab.bars else None
    written = "{}/{}".format(*time_signature) if time_signature in TIME_SIGNATURES else "none"
    tokens = [f"METRE<{written}>", f"KEY<{estimate_key(tab) or 'none'}>"]
    if styles:
        tokens.append(f"STYLE<{tab.style if tab.style in styles else 'none'}>")
    last_seen: dict[tuple[int, BarMoments], int] = {}
    for number, bar in enumerate(tab.bars, start=1):
        moments = sounding_moments_in_bar(bar, number, max_fret)
        before = last_seen.get((bar.steps, moments))
        last_seen[bar.steps, moments] = number
        if moments and before is not None and number - before <= MAX_BARS_BACK:
            tokens.append(f"SAME<{number - before}>")
            continue
        longer, rest = divmod(bar.steps - 1, max_position)
        tokens += [f"BAR<{rest + 1}>"] + ["LONGER"] * longer
        passed = 0
        for step, notes in moments:
            if step:
                passed = append_position_tokens(tokens, step, passed, max_position)
            tokens += [f"{'WITH' if i else 'TAB'}<{s},{f}>" for i, (s, f) in enumerate(notes)]
    return tokens


def sounding_moments_in_bar(bar: Bar, bar_number: int, max_fret: int) -> BarMoments:
    """The moments of a bar at which notes sound, and those notes: none for dead notes alone.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    found = []
    for event, where in iter_checked_events(bar, bar_number):
        _check_encodable_notes(event, where, max_fret)
        if notes := event.sounding_notes():
            found.append((event.step, notes))
    return tuple(found)


def append_position_tokens(tokens: list[str], step: int, num_longs: int, max_position: int) -> int:
    """Add the tokens for a position; `num_longs` and the result count the ``LONG`` so far."""
    longs, rest = divmod(step - 1, max_position)
    tokens += ["LONG"] * (longs - num_longs) + [f"POS<{rest + 1}>"]
    return longs


def _check_encodable_notes(event: Event, location: str, max_fret: int) -> None:
    """Refuse notes that have no tokens, or are not in order."""
    strings = [note.string for note in event.notes]
    if not strings or any(a <= b for a, b in zip(strings, strings[1:], strict=False)):
        raise ValueError(
            f"{location}: an event needs notes on different strings, string 6 before string 1; "
            f"these are on strings {strings}."
        )
    for string, fret in event.notes:
        if not (1 <= string <= NUM_STRINGS and 0 <= fret <= max_fret):
            raise ValueError(
                f"{location}: no token for string {string}, fret {fret}: strings go from 1 to "
                f"{NUM_STRINGS}, frets from 0 to {max_fret}."
            )
