"""The signs at bars that say where to go on, such as D.C. al Fine."""

import re
from typing import NamedTuple

from slp_transformer._internal.choices import Choices

START = "start"
"""The beginning of the piece, as a place that signs lead to."""


class PlayingSign(NamedTuple):
    """A sign at a bar that says where to go on.

    Attributes:
        summary: how it is printed.
        leads_to: the sign of the bar to go on at, or `START`; empty for a sign that others name.
        until: the sign that counts after this one has led back; empty for none.
        is_conditional: whether it counts only after another has led back.
    """

    summary: str
    leads_to: str = ""
    until: str = ""
    is_conditional: bool = False


_CODAS = {"Coda": "Coda", "DoubleCoda": "Double Coda"}
_BACK = {"DaCapo": ("D.C.", START), "DaSegno": ("D.S.", "Segno")}
_BACK["DaSegnoSegno"] = "D.S.S.", "SegnoSegno"
PLAYING_SIGNS = Choices(
    "playing sign",
    {
        "Segno": PlayingSign("Segno"),
        "SegnoSegno": PlayingSign("Segno Segno"),
        "Fine": PlayingSign("Fine", is_conditional=True),
        **{name: PlayingSign(words) for name, words in _CODAS.items()},
        **{
            f"Da{name}": PlayingSign(f"To {words}", name, is_conditional=True)
            for name, words in _CODAS.items()
        },
        **{name: PlayingSign(words, target) for name, (words, target) in _BACK.items()},
        **{
            f"{name}AlFine": PlayingSign(f"{words} al Fine", target, "Fine")
            for name, (words, target) in _BACK.items()
        },
        **{
            f"{name}Al{coda}": PlayingSign(f"{words} al {coda_words}", target, f"Da{coda}")
            for name, (words, target) in _BACK.items()
            for coda, coda_words in _CODAS.items()
        },
    },
)
"""The signs of `Bar.signs` by name; those with words in between are read as Guitar Pro has them."""

_AL_PATTERN = re.compile(r"\bal (?:the )?", re.I)
_SIGN_WORDS = (
    (re.compile(r"d\.? ?s\.? ?s\.?|da?l segno segno", re.I), "DaSegnoSegno"),
    (re.compile(r"d\.? ?s\.?|da?l segno", re.I), "DaSegno"),
    (re.compile(r"d\.? ?c\.?|da capo", re.I), "DaCapo"),
    (re.compile(r"to (?:the )?double coda", re.I), "DaDoubleCoda"),
    (re.compile(r"to (?:the )?coda", re.I), "DaCoda"),
    (re.compile(r"segno segno", re.I), "SegnoSegno"),
    (re.compile(r"double coda", re.I), "DoubleCoda"),
    *((re.compile(name, re.I), name) for name in ("Segno", "Coda", "Fine")),
)


def parse_playing_sign(words: str) -> str | None:
    """Return the sign that words state and nothing else, as ``D.C. al Fine``; or None."""
    start, *goals = _AL_PATTERN.split(" ".join(words.split()).strip(" ()*:,"))
    name = next((name for pattern, name in _SIGN_WORDS if pattern.fullmatch(start.strip())), "")
    for goal in goals[:1]:
        name += "Al" + "".join(word.capitalize() for word in goal.split())
    return name if name in PLAYING_SIGNS else None
