"""Scales, chords and keys: the music theory that the practice corpus is made from.

Pitch classes count half steps from C (C is 0, B is 11). Note names are spelled the way guitarists
name keys; `pitch_class` reads any sharp or flat.
"""

from collections import Counter
from collections.abc import Iterable
from statistics import correlation

from slp_transformer.guitar.tab import Tab

NOTE_NAMES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
_PITCH_CLASS_OF_LETTER = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}

SCALE_HALF_STEPS: dict[str, tuple[int, ...]] = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "harmonic minor": (0, 2, 3, 5, 7, 8, 11),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "major pentatonic": (0, 2, 4, 7, 9),
    "minor pentatonic": (0, 3, 5, 7, 10),
    "blues": (0, 3, 5, 6, 7, 10),
}
"""Half steps above the root for every degree of a scale."""

CHORD_HALF_STEPS: dict[str, tuple[int, ...]] = {
    "": (0, 4, 7),
    "m": (0, 3, 7),
    "5": (0, 7),
    "7": (0, 4, 7, 10),
    "m7": (0, 3, 7, 10),
    "maj7": (0, 4, 7, 11),
    "m7b5": (0, 3, 6, 10),
    "sus2": (0, 2, 7),
    "sus4": (0, 5, 7),
    "7sus4": (0, 5, 7, 10),
    "add9": (0, 4, 7, 2),
    "m11": (0, 3, 7, 10, 5),
}
"""Half steps above the root for every tone of a chord, by what follows the root in its name."""


def parse_pitch_class(name: str) -> int:
    """Half steps from C up to a note name such as ``F#`` or ``Bb``.

    Raises:
        ValueError: if it is no note name.
    """
    if not name or name[0] not in _PITCH_CLASS_OF_LETTER or name[1:] not in ("", "#", "b"):
        raise ValueError(f"{name!r} is no note name: write A to G, then # or b where needed.")
    return (_PITCH_CLASS_OF_LETTER[name[0]] + {"": 0, "#": 1, "b": -1}[name[1:]]) % 12


def scale_pitch_classes(root: str, scale: str) -> list[int]:
    """Pitch classes of a scale, root first.

    Raises:
        ValueError: if the scale is not in `SCALE_HALF_STEPS`.
    """
    if scale not in SCALE_HALF_STEPS:
        raise ValueError(f"Unknown scale {scale!r}: choose one of {', '.join(SCALE_HALF_STEPS)}.")
    return [(parse_pitch_class(root) + interval) % 12 for interval in SCALE_HALF_STEPS[scale]]


def split_chord_name(chord: str) -> tuple[str, str]:
    """Root and quality of a chord name: ``F#m7`` is ``F#`` and ``m7``.

    Raises:
        ValueError: if the root is no note name or the quality is not in `CHORD_HALF_STEPS`.
    """
    length = 2 if chord[1:2] in ("#", "b") else 1
    root, quality = chord[:length], chord[length:]
    parse_pitch_class(root)
    if quality not in CHORD_HALF_STEPS:
        raise ValueError(f"Unknown chord {chord!r}: its quality {quality!r} is not in CHORDS.")
    return root, quality


def chord_pitch_classes(chord: str) -> list[int]:
    """Pitch classes of a chord, root first: ``chord_classes("C")`` is C, E and G.

    Raises:
        ValueError: as `split_chord_name`.
    """
    root, quality = split_chord_name(chord)
    return [(parse_pitch_class(root) + interval) % 12 for interval in CHORD_HALF_STEPS[quality]]


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
