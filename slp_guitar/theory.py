"""Scales, chords and keys: the music theory that the practice corpus is made from.

Pitch classes count half steps from C (C is 0, B is 11). Note names are spelled the way guitarists
name keys; `pitch_class` reads any sharp or flat.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from statistics import correlation
from typing import Any

from slp_guitar.tab import Tab

NOTE_NAMES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
PITCH_CLASS_OF_LETTER = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}

TABLES: dict[str, Any] = tomllib.loads(
    files("slp_guitar").joinpath("theory.toml").read_text(encoding="utf-8")
)
"""Scales and chords, and the progressions, patterns and shapes of the practice corpus."""
SCALE_HALF_STEPS: dict[str, list[int]] = TABLES["scales"]
"""Half steps above the root for every degree of a scale."""
CHORD_HALF_STEPS: dict[str, list[int]] = TABLES["chords"]
"""Half steps above the root for every tone of a chord, by what follows the root in its name."""


def parse_pitch_class(name: str) -> int:
    """Half steps from C up to a note name such as ``F#`` or ``Bb``.

    Raises:
        ValueError: if it is no note name.
    """
    if not name or name[0] not in PITCH_CLASS_OF_LETTER or name[1:] not in ("", "#", "b"):
        raise ValueError(f"{name!r} is no note name: write A to G, then # or b where needed.")
    return (PITCH_CLASS_OF_LETTER[name[0]] + {"": 0, "#": 1, "b": -1}[name[1:]]) % 12


def scale_pitch_classes(root: str, scale: str) -> list[int]:
    """Pitch classes of a scale of `SCALE_HALF_STEPS`, root first."""
    return [(parse_pitch_class(root) + interval) % 12 for interval in SCALE_HALF_STEPS[scale]]


def split_chord_name(chord: str) -> tuple[int, str]:
    """Pitch class of a chord's root, and its quality: ``F#m7`` is 6 and ``m7``."""
    length = 2 if chord[1:2] in ("#", "b") else 1
    return parse_pitch_class(chord[:length]), chord[length:]


def chord_pitch_classes(chord: str) -> list[int]:
    """Pitch classes of a chord of `CHORD_HALF_STEPS`, root first: those of ``C`` are C, E and G."""
    root, quality = split_chord_name(chord)
    return [(root + interval) % 12 for interval in CHORD_HALF_STEPS[quality]]


def chord_above_root(root: str, half_steps: int, quality: str) -> str:
    """Name of the chord so many half steps above a root: 7 above G with ``7`` is ``D7``."""
    return NOTE_NAMES[(parse_pitch_class(root) + half_steps) % 12] + quality


KEY_NAMES = (*NOTE_NAMES, *(f"{name}m" for name in NOTE_NAMES))
"""The twelve major keys, then the twelve minor ones."""
TIME_SIGNATURES = tuple(
    (beats, kind)
    for kind, most in ((2, (2, 3, 4)), (4, (2, 3, 4, 5, 6)), (8, (3, 5, 6, 7, 9, 12)))
    for beats in most
)
"""The time signatures that have a token."""

MAJOR_KEY_PROFILE = (6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88)
MINOR_KEY_PROFILE = (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17)


def count_pitch_classes(tab: Tab) -> list[int]:
    """Return how many of a tab's notes are of each pitch class, C first; dead notes have none."""
    counts = Counter(
        tab.tuning.pitch_of(note) % 12
        for event in tab.iter_events()
        for note in event.sounding_notes()
    )
    return [counts[pitch_class] for pitch_class in range(12)]


def estimate_key(tab: Tab) -> str | None:
    """The key that a piece is most likely in: one of `KEY_NAMES`.

    It is the key whose profile goes along best with the piece's pitch classes. Source: Krumhansl
    and Kessler 1982, whose profiles say how well listeners find each pitch class fits a key.

    Returns:
        The key; None where all pitch classes are equally frequent, as where there are no notes.
    """
    counts = count_pitch_classes(tab)
    if len(set(counts)) == 1:
        return None
    fits = [
        correlation(counts, [profile[(pitch_class - root) % 12] for pitch_class in range(12)])
        for profile in (MAJOR_KEY_PROFILE, MINOR_KEY_PROFILE)
        for root in range(12)
    ]
    return KEY_NAMES[max(range(24), key=fits.__getitem__)]


def key_pitch_classes(key: str) -> set[int]:
    """Pitch classes of a key of `KEY_NAMES`; a minor one has the raised seventh as well."""
    scales = ("minor", "harmonic minor") if key.endswith("m") else ("major",)
    root = key.removesuffix("m")
    return {pitch for scale in scales for pitch in scale_pitch_classes(root, scale)}


def ends_on_tonic(tab: Tab, key: str | None) -> bool:
    """Return whether the last moment's lowest note is the tonic of a key of `KEY_NAMES`."""
    events = (event for bar in reversed(tab.bars) for event in reversed(bar.events))
    last = next(filter(None, (event.sounding_notes() for event in events)), ())
    if key is None or not last:
        return False
    return min(map(tab.tuning.pitch_of, last)) % 12 == parse_pitch_class(key.removesuffix("m"))


def count_notes_in_best_scale(tabs: Iterable[Tab]) -> tuple[int, int]:
    """Of all notes, how many lie in the major scale that holds most of their own piece's notes.

    A natural minor scale has the notes of a major one.

    Returns:
        Those notes, and all notes.
    """
    inside = notes = 0
    for tab in tabs:
        counts = count_pitch_classes(tab)
        inside += max(
            sum(counts[(root + step) % 12] for step in SCALE_HALF_STEPS["major"])
            for root in range(12)
        )
        notes += sum(counts)
    return inside, notes
