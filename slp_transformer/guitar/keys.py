"""The key of a piece, estimated from how often each pitch class sounds."""

from collections import Counter
from collections.abc import Iterable
from statistics import correlation

from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.theory import NOTE_NAMES, SCALES

KEYS = (*NOTE_NAMES, *(f"{name}m" for name in NOTE_NAMES))
"""The twelve major keys, then the twelve minor ones."""

MAJOR = (6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88)
MINOR = (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17)


def pitch_classes(tab: Tab) -> list[int]:
    """How many of a tab's notes are of each pitch class, C first; dead notes have none."""
    counts = Counter(
        tab.tuning.pitch(note) % 12 for event in tab.events() for note in event.sounding()
    )
    return [counts[pitch_class] for pitch_class in range(12)]


def key_of(tab: Tab) -> str | None:
    """The key that a piece is most likely in: one of `KEYS`.

    It is the key whose profile goes along best with the piece's pitch classes. Source: Krumhansl
    and Kessler 1982, whose profiles say how well listeners find each pitch class fits a key.

    Returns:
        The key; None where all pitch classes are equally frequent, as where there are no notes.
    """
    counts = pitch_classes(tab)
    if len(set(counts)) == 1:
        return None
    fits = [
        correlation(counts, [profile[(pitch_class - root) % 12] for pitch_class in range(12)])
        for profile in (MAJOR, MINOR)
        for root in range(12)
    ]
    return KEYS[max(range(24), key=fits.__getitem__)]


def most_in_one_scale(tabs: Iterable[Tab]) -> tuple[int, int]:
    """Of all notes, how many lie in the major scale that holds most of their own piece's notes.

    A natural minor scale has the notes of a major one.

    Returns:
        Those notes, and all notes.
    """
    inside = notes = 0
    for tab in tabs:
        counts = pitch_classes(tab)
        inside += max(
            sum(counts[(root + step) % 12] for step in SCALES["major"]) for root in range(12)
        )
        notes += sum(counts)
    return inside, notes
