"""What a file does not hold of the tabs that were written to it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from slp_transformer.guitar.formats.notation import fill_durations
from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.timing import bar_start_steps, expand_repeats

TECHNIQUE_NAMES = {
    "hammer": "hammer-ons and pull-offs",
    "pull": "hammer-ons and pull-offs",
    "slide": "slides",
    "bend": "bends",
    "harmonic": "harmonics",
    "let ring": "notes that ring on",
    "vibrato": "vibratos",
}

NOTES = ("notes", "dead notes")


def describe_losses(before: Sequence[Tab], after: Sequence[Tab]) -> list[str]:
    """Return what is in some tabs and is not in what was read back from a file of them.

    Args:
        before: the tracks that were written.
        after: the tracks that were read.
    """
    if len(before) != len(after):
        return [f"{len(before)} tracks, but {len(after)}"]
    lost: Counter[str] = Counter()
    for own, read in zip(before, after, strict=True):
        if len(before) == 1:
            own = replace(own, track="")
        if len(read.bars) > len(own.bars):
            lost["the repeats, which are played out"] = 1
            own = expand_repeats(own)
        missing = Counter(_iter_details(own)) - Counter(_iter_details(read))
        gone = {place for what, place, _ in missing if what in NOTES}
        for (what, place, _), count in missing.items():
            if what in NOTES or place not in gone:
                lost[what] += count
    return [what if what.startswith("the ") else f"{n:,} {what}" for what, n in lost.items()]


def _iter_details(tab: Tab) -> Iterator[tuple[str, Any, Any]]:
    """Yield each thing that a tab holds: what it is, where it is, and its value."""
    yield "the title", None, " ".join(tab.title.split())
    yield "the tuning", None, tab.tuning.open_pitches
    if tab.tuning.capo:
        yield "the capo", None, tab.tuning.capo
    if tab.track:
        yield "the tracks' names", None, " ".join(tab.track.split())
    if tab.style:
        yield "the style", None, tab.style
    unit = tab.steps_per_quarter or 1
    for start, bar in zip(bar_start_steps(tab), fill_durations(tab).bars, strict=False):
        where = Fraction(start, unit)
        for what, value in (("time signatures", bar.time_signature), ("tempos", bar.tempo_bpm)):
            if value:
                yield what, where, value
        if bar.starts_repeat or bar.num_plays > 1 or bar.endings:
            yield "marks of repeats", where, (bar.starts_repeat, bar.num_plays, bar.endings)
        for event in bar.events:
            for (string, fret), length, techniques, voice in event.tab_notes():
                place = where + Fraction(event.step, unit), string
                kinds = {technique.kind: technique.bend_quarter_tones for technique in techniques}
                if "dead" in kinds:
                    yield "dead notes", place, None
                else:
                    yield "notes", place, fret
                yield "lengths of notes", place, Fraction(length, unit)
                if voice == 2:
                    yield "notes of a second voice", place, None
                for kind in kinds.keys() - {"dead"}:
                    yield TECHNIQUE_NAMES[kind], place, kinds[kind]
