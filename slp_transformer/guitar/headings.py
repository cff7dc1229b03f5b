"""What the text around a tab says about it: title, tuning, capo.

Tab writers state a tuning in many ways: ``tuning: DADGBE``, ``Tuning - D A D F# B E``, ``Drop D``,
``6th = D``, ``tuned down half a step``, or by the letters in front of the strings.
"""

import re

from slp_transformer.guitar.fretboard import (
    DOUBLE_DROP_D,
    DROP_D,
    HALF_STEP_DOWN,
    OPEN_D,
    OPEN_G,
    STANDARD,
)
from slp_transformer.guitar.theory import pitch_class

Pitches = tuple[int, ...]

_NOTE = r"([A-Ga-g](?:[#b\u266f\u266d])?)"
_SIX = re.compile(r"(?<![\w#])" + r"[\s,\-]*".join([_NOTE] * 6) + r"(?![\w#])")
_ABOUT_TUNING = re.compile(r"\btun{1,2}(?:ing|ed?)", re.IGNORECASE)
_NAMED = (
    (re.compile(r"double[\s-]*drop(?:ped)?[\s-]*D\b", re.IGNORECASE), DOUBLE_DROP_D.open_pitches),
    (re.compile(r"\bdrop(?:ped)?[\s-]*D\b", re.IGNORECASE), DROP_D.open_pitches),
    (re.compile(r"\bopen[\s-]*G\s+tuning", re.IGNORECASE), OPEN_G.open_pitches),
    (re.compile(r"\bopen[\s-]*D\s+tuning", re.IGNORECASE), OPEN_D.open_pitches),
    (
        re.compile(
            r"(?:half|1/2)[\s-]*(?:a[\s-])?step[\s-]*(?:down|lower)|down\s+(?:a\s+)?(?:half|1/2)"
            r"|\bE(?:b|\u266d|-flat)\s+tuning",
            re.IGNORECASE,
        ),
        HALF_STEP_DOWN.open_pitches,
    ),
    (
        re.compile(r"\b(?:standard|normal)\s+tuning|tun{1,2}ing\W+(?:standard|normal)", re.I),
        STANDARD.open_pitches,
    ),
)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6}
_ONE_STRING = re.compile(
    r"(?<![\w/])\(?(?P<string>[1-6](?:st|nd|rd|th)?|first|second|third|fourth|fifth|sixth)\)?"
    r"(?P<word>\s+string)?"
    r"[\s:]*(?P<sign>=|->|(?:is\s+)?(?:re)?tuned(?:\s+down|\s+up)?\s+to|to)\s*"
    + _NOTE
    + r"(?![\w#/])",
    re.IGNORECASE,
)
_CAPO = re.compile(
    r"(?:^\W*|\s{2,}|[,;(\-]\s*)capo\b[\s:=\-]*(?:(?:on|at|in|the|fret|is)\s+)*"
    r"(?P<fret>\d{1,2}|[IVX]+)(?:st|nd|rd|th)?\b",
    re.IGNORECASE,
)
_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_TITLE = re.compile(r"^\s*(?:title|song|piece)\s*[:=]\s*(?P<title>\S.*)", re.IGNORECASE)


def tuning_from_names(names: list[str] | tuple[str, ...]) -> Pitches | None:
    """Open strings from six note names, in either order.

    Each name is taken to be the pitch nearest to the string that it would be in standard tuning;
    of the two orders, low to high and high to low, the one that stays nearer wins.

    Returns:
        MIDI pitches, string 1 (the highest) first; None if some string would be more than five
        semitones away from standard tuning, so that the names cannot be a tuning.
    """
    orders = [_nearest(names), _nearest(names[::-1])]
    pitches = min(orders, key=_distance)
    worst = max(abs(a - b) for a, b in zip(pitches, STANDARD.open_pitches, strict=True))
    return pitches if worst <= 5 else None


def _nearest(names: list[str] | tuple[str, ...]) -> Pitches:
    """The pitch of each name that is nearest to the same string in standard tuning."""
    return tuple(
        _near(name, open_pitch)
        for name, open_pitch in zip(names, STANDARD.open_pitches, strict=True)
    )


def _near(name: str, pitch: int) -> int:
    """The pitch of that name, in any case and with any sign, that is nearest to `pitch`."""
    plain = name[0].upper() + name[1:].replace("\u266f", "#").replace("\u266d", "b")
    return pitch + (pitch_class(plain) - pitch + 6) % 12 - 6


def _distance(pitches: Pitches) -> int:
    """Semitones from standard tuning, summed over the strings."""
    return sum(abs(a - b) for a, b in zip(pitches, STANDARD.open_pitches, strict=True))


def stated_tuning(line: str) -> Pitches | None:
    """The tuning that a line of text states, string 1 first, or None if it states none."""
    about_tuning = bool(_ABOUT_TUNING.search(line))
    six = _SIX.search(line)
    if six and (about_tuning or _stands_alone(line, six)):
        pitches = tuning_from_names(six.groups())
        if pitches is not None:
            return pitches
    for pattern, pitches in _NAMED:
        if pattern.search(line):
            return pitches
    return _single_strings(line, about_tuning)


def _stands_alone(line: str, six: re.Match[str]) -> bool:
    """Whether six note names are all that a line says (and are not chords with gaps between)."""
    names = six.group()
    return line.strip(" ()[]*.\t") == names and "  " not in names and names[:1].isupper()


def _single_strings(line: str, about_tuning: bool) -> Pitches | None:
    """A tuning stated string by string: ``6th = D, 3 = F#``."""
    pitches = list(STANDARD.open_pitches)
    found = False
    for match in _ONE_STRING.finditer(line):
        plain = match["sign"].lower() == "to"
        if plain and not (about_tuning and match["word"]):
            continue
        name = match["string"].lower()
        string = _ORDINALS.get(name) or int(name[0])
        pitches[string - 1] = _near(match.groups()[-1], STANDARD.open_pitches[string - 1])
        found = True
    return tuple(pitches) if found else None


def stated_capo(line: str) -> int | None:
    """The fret of the capo that a line of text states, or None.

    Only a statement counts (``Capo: 2``, ``capo III``), not a sentence in which a capo comes up
    ("can also be played with a capo on the 2nd fret").
    """
    found = _CAPO.search(line)
    if not found:
        return None
    fret = found["fret"].upper()
    number = _ROMAN.index(fret) if fret in _ROMAN else int(fret) if fret.isdecimal() else 0
    return number if 1 <= number <= 12 else None


def title_of(lines: list[str]) -> str:
    """The title among lines of text: what follows ``Title:``, or else the first line of words."""
    for line in lines:
        if found := _TITLE.match(line):
            return found["title"].strip()[:100]
    return next((line.strip(" \t*#=-")[:100] for line in lines if _has_words(line)), "")


def _has_words(line: str) -> bool:
    """Whether a line holds at least three letters in a row."""
    return bool(re.search(r"[^\W\d_]{3}", line))
