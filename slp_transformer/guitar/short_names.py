"""The short code and the placed one: names of tokens; `guitar.short_grammar` reads them back.

The header goes on with the metre of the first bar and with the key, which is estimated from all
notes (`slp_transformer.guitar.keys`); either may be ``none``. Where the tokenizer has styles, the
tab's comes last, as ``STYLE<Jazz>``, or ``STYLE<none>`` if it has none of them::

    <bos> TUNING<standard> CAPO<0> COLUMNS METRE<4/4> KEY<Em>
    BAR<16> TAB<6,0> WITH<1,3> POS<2> TAB<4,2> TAB<3,0>
    SAME<1>
    <eos>

``BAR<16>`` says at once how long the bar is; in one beyond the positions each ``LONGER`` adds their
number. ``TAB`` is the first note of a moment, ``WITH`` another one that sounds with it. The first
moment of a bar is its beginning, and a moment without a ``POS`` is as far from the one before as
that is from its own predecessor, so that ``POS`` comes only where the stride changes. In the placed
code every moment but the first of a bar has its ``POS``.

A bar that is equal to an earlier one is a single token: ``SAME<1>`` is the bar before, ``SAME<8>``
the one eight bars back, the nearest of several. So a model that has whole pieces before it can have
bars come back without spelling them. The grammar does not keep it from spelling such a bar all the
same.
"""

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.keys import KEYS, key_of
from slp_transformer.guitar.tab import Bar, Tab
from slp_transformer.guitar.token_grammar import STRINGS
from slp_transformer.guitar.token_names import event_notes, longs_to

FARTHEST = 128
"""How many bars back a bar can be called by ``SAME``."""
METRES = tuple(
    (beats, kind)
    for kind, most in ((2, (2, 3, 4)), (4, (2, 3, 4, 5, 6)), (8, (3, 5, 6, 7, 9, 12)))
    for beats in most
)
"""The metres that have a token."""

Moments = tuple[tuple[int, tuple[Note, ...]], ...]


def vocabulary_of(max_fret: int, max_position: int) -> tuple[str, ...]:
    """Names of the tokens of the short code that come after the header's older ones."""
    places = [f"{s},{f}" for s in range(STRINGS, 0, -1) for f in range(max_fret + 1)]
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
    )


def style_vocabulary(styles: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the tokens for styles, which come last of all; without styles there are none."""
    return (*(f"STYLE<{style}>" for style in styles), "STYLE<none>") if styles else ()


def about(tab: Tab, styles: tuple[str, ...] = ()) -> list[str]:
    """Names of the tokens for metre, key and style: what ends a header in the short code.

    Args:
        tab: the tab.
        styles: the styles that have a token; none for a header without a style.
    """
    metre = tab.bars[0].metre if tab.bars else None
    told = "{}/{}".format(*metre) if metre in METRES else "none"
    style = tab.style if tab.style in styles else "none"
    named = [f"STYLE<{style}>"] if styles else []
    return [f"METRE<{told}>", f"KEY<{key_of(tab) or 'none'}>", *named]


def bars_in_short(
    bars: tuple[Bar, ...], max_fret: int, max_position: int, placed: bool = False
) -> list[str]:
    """Names of the tokens of all bars.

    Args:
        bars: the bars.
        max_fret: highest fret that has a token.
        max_position: how many positions have one.
        placed: have every moment but the first tell where it is, as in the placed code.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    tokens: list[str] = []
    last_seen: dict[tuple[int, Moments], int] = {}
    for number, bar in enumerate(bars, start=1):
        moments = moments_of(bar, number, max_fret)
        before = last_seen.get((bar.steps, moments))
        last_seen[bar.steps, moments] = number
        if moments and before is not None and number - before <= FARTHEST:
            tokens.append(f"SAME<{number - before}>")
        else:
            tokens += bar_in_short(bar.steps, moments, max_position, placed)
    return tokens


def moments_of(bar: Bar, number: int, max_fret: int) -> Moments:
    """The moments of a bar at which notes sound, and those notes.

    Raises:
        ValueError: naming the bar, for what has no tokens.
    """
    found = ((event.step, notes) for event, notes in event_notes(bar, number, max_fret))
    return tuple((step, notes) for step, notes in found if notes)


def bar_in_short(steps: int, moments: Moments, max_position: int, placed: bool) -> list[str]:
    """Names of the tokens of one bar that is spelled out."""
    longer, rest = divmod(steps - 1, max_position)
    tokens = [f"BAR<{rest + 1}>"] + ["LONGER"] * longer
    now, expected, passed = 0, 0, 0
    for step, notes in moments:
        if step != expected:
            passed = longs_to(tokens, step, passed, max_position)
        tokens += [f"{'WITH' if i else 'TAB'}<{s},{f}>" for i, (s, f) in enumerate(notes)]
        first = (step, notes) == moments[0]
        now, expected = step, None if first or placed else 2 * step - now
    return tokens
