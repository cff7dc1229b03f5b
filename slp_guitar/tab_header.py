"""The text around a tab: title, style, tuning, capo.

Tab writers state a tuning in many ways: ``tuning: DADGBE``, ``Tuning - D A D F# B E``, ``Drop D``,
``6th = D``, ``tuned down half a step``, or by the letters in front of the strings; and so in
German, French, Spanish, Italian and Portuguese, where notes may be called Do, Re, Mi or H.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from statistics import median

from slp_guitar.fretboard import NAMED_TUNINGS, STANDARD, Tuning, get_string_names
from slp_guitar.tab import MAX_STRINGS, MIN_STRINGS
from slp_guitar.theory import parse_pitch_class

OpenPitches = tuple[int, ...]

MAX_STYLE_CHARACTERS = 40  # characters
MAX_STATEMENT_COLUMNS = 1000  # columns of a line in which something is stated

_NOTE_NAME_REGEX = r"([A-Ga-g](?:[#b\u266f\u266d])?)"
# Six names, and no seventh next to them.
_SIX_NAMES_PATTERN = re.compile(
    r"(?<![\w#])(?<!\b[A-Ga-g][\s,\-])"
    + r"[\s,\-]*".join([_NOTE_NAME_REGEX] * 6)
    + r"(?![\w#])(?![\s,\-][A-Ga-g][#b\u266f\u266d]?(?![\w#]))"
)
_NOTE_WITH_OCTAVE_PATTERN = re.compile(r"\b([A-Ga-g])([#b\u266f\u266d]?)(-?\d)(?!\w)")
_LOW_FIRST_PATTERN = re.compile(r"\blow(?:est)? to high", re.I)
_TUNING_WORDS = (
    r"stimmung|gestimmt|afinaci[oó]n|afinad[ao]s?|accordage|accord[ée]e?s?|accordatura"
    r"|accordat[ao]|afina[cç][aã]o"
)
_TUNING_WORD_PATTERN = re.compile(rf"\btun{{1,2}}(?:ing|ed?)|\b(?:{_TUNING_WORDS})\b", re.I)
_SYLLABLES = {"do": "C", "re": "D", "mi": "E", "fa": "F", "sol": "G", "la": "A", "si": "B"}
_SYLLABLE_PATTERN = re.compile(r"\b(do|r[eé]|mi|f[aá]|sol|l[aá]|si)(?![a-zà-ÿ])", re.I)
_WITHOUT_ACCENTS = str.maketrans("éá", "ea")
_DROP_TUNING_PATTERN = re.compile(
    r"(?P<double>\bdouble[\s-]*)?\bdrop(?:ped)?[\s-]*"
    r"(?P<note>(?-i:[A-D](?:[#b\u266f\u266d]|-?flat)?)|d)(?![\w#\u266f])",
    re.I,
)
_OPEN_TUNING_PATTERN = re.compile(
    r"\bopen[\s-]*(?P<chord>(?-i:[A-G][#b]?m?)|[dg])(?![\w#])(?P<minor>\s+min(?:or)?\b)?", re.I
)
_STEP_COUNT_REGEX = (
    r"(?:a\s+)?(?:one[\s-]+and[\s-]+a[\s-]+half|1[\s-]1/2|1\.5|1/2|half|whole|full|one|two|three"
    r"|[123])(?:[\s-]+(?:half|whole|full))?[\s-]*(?:a[\s-]+)?(?:steps?|tones?|semitones?)\b"
)
_TUNED_DOWN_PATTERN = re.compile(
    rf"\bdown\s+(?P<after>{_STEP_COUNT_REGEX})|(?<![\w/.])(?P<before>{_STEP_COUNT_REGEX})[\s-]+(?:down|lower)\b",
    re.I,
)
_FOREIGN_DOWN_PATTERN = re.compile(
    r"\b(?:(?P<half>halbton|halben\s+ton|medio\s+tono|semitono|demi[\s-]ton|mezzo\s+tono"
    r"|meio[\s-]tom|semitom)|ganzton|ganzen\s+ton|(?:einen|une?|um|1)\s+(?:tono?|tom))\s+"
    r"(?:tiefer|(?:m[aá]s\s+)?abajo|plus\s+bas|(?:en|au)[\s-]dessous|sotto|pi[uù]\s+basso|abaixo)",
    re.I,
)
_NOTHING_MUCH_PATTERN = re.compile(r"\W*(?:all\s+)?(?:(?:guitars?|gtrs?)\W*)?", re.I)
_NOTE_REGEX = r"(?P<note>(?-i:[A-G])(?:[#b\u266f\u266d]|[\s-]?flat)?)(?![\w#])"
_STANDARD_ON_NOTE_PATTERN = re.compile(
    rf"\b{_NOTE_REGEX}[\s-]+standard\b|\bE(?:b|\u266d|[\s-]?flat)\s+tuning", re.I
)
_TUNED_TO_NOTE_PATTERN = re.compile(
    r"^\W*(?:(?:all\s+)?(?:guitars?|gtrs?\.?|strings)\s+)?tun(?:ed?|ing)\s+(?:down\s+)?to\s+"
    + _NOTE_REGEX
    + r"(?=\s*(?:$|[,;.()\]]|tuning))",
    re.I,
)
_STANDARD_TUNING_PATTERN = re.compile(
    r"\b(?:standard|normal)\s+tuning"
    rf"|(?:tun{{1,2}}ing|{_TUNING_WORDS})\W+(?:standard|normale?|est[aá]ndar|padr[aã]o)",
    re.I,
)
_SINGLE_STRING_PATTERN = re.compile(
    r"(?<![\w/])\(?(?P<string>[1-6](?:st|nd|rd|th)?|first|second|third|fourth|fifth|sixth|low)\)?"
    r"(?P<word>\s+string|(?<=low)\s+E(?:\s+string)?)?"
    r"[\s:]*(?P<sign>=|->|(?:is\s+)?(?:re)?tuned(?:\s+down|\s+up)?\s+to|(?:down\s+|up\s+)?to)\s*"
    r"(?:an?\s+)?" + _NOTE_NAME_REGEX + r"(?![\w#/])",
    re.I,
)
_FOREIGN_STRING_PATTERN = re.compile(
    r"^\W*(?P<string>[1-6])(?:\.|[ªºae]|[eè]me)?\s*(?:cuerda|corda|corde|saite)?\s*"
    r"(?:en|in|em|auf|[àa]|=|:)\s*" + _NOTE_NAME_REGEX + r"\W*$",
    re.I,
)
_FRET_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ROMAN_NUMERALS = "i ii iii iv v vi vii viii ix x xi xii"
_FRET_NUMBERS = {
    name: number
    for names in (_FRET_WORDS.split(), _ROMAN_NUMERALS.split(), map(str, range(1, 13)))
    for number, name in enumerate(names, start=1)
}
_FRET_REGEX = (
    r"(?P<fret>\d{1,2}|[IVX]+|"
    + _FRET_WORDS.replace(" ", "|")
    + r")(?:st|nd|rd|th|er|e|[eè]me|[ªºoa])?(?!\w)"
)
_CAPO_WORD = r"(?:[ck]apo(?:d?aster|dastre|dastro|tasto|traste)?|cejilla|pestana|bra[cç]adeira)"
_CAPO_PATTERN = re.compile(
    r"(?:^\W*(?:guitar:\s*)?(?:(?:put|place|use|with|mit|avec|con|com)\s+|w/\s*)?"
    r"(?:an?\s+|the\s+)?|(?<=\s\s)|[,;(\-]\s*)"
    + _CAPO_WORD
    + r"\b[\s:=#\-]*(?:(?:on|at|in|the|fret|is|auf|im|am|bund|en|el|al|au|[àa]|la|sul|na|no|em"
    r"|traste|tasto|casa|case|frette)\s+)*" + _FRET_REGEX,
    re.I,
)
_FRET_THEN_CAPO_PATTERN = re.compile(
    r"(?:^\W*|(?<=\s\s)|[,;(\-]\s*)" + _FRET_REGEX + r"\s+(?:fret\s+)?capo\b", re.I
)
_ANY_CAPO_PATTERN = re.compile(
    rf"(?<!\bda )(?<!\bal )\b{_CAPO_WORD}\b(?=.*(?:\d|\b[IVX]+\b|fret))", re.I
)
_JUMP_PATTERN = re.compile(r"\W*(?:D\.\s?[CS]\.|da capo|dal segno)(?:\s+al\b.{0,30})?\s*$", re.I)
_ANY_TUNING_PATTERN = re.compile(
    r"\W*(?:(?:guitar|alternate|special|my)\s+)?tun{1,2}(?:ing|ed)\b\s*(?:[:=-]|(?:to|down|up)\b)"
    rf"|\W*(?:tune|lower|raise|drop)\b.*\b(?:string|[A-G])\b|\W*(?:{_TUNING_WORDS})\s*[:=-]"
    r"|\W*low E\b.*\bto\b",
    re.I,
)
_STATEMENT_PATTERN = re.compile(
    rf"\s*(?:tun{{1,2}}ing|{_TUNING_WORDS}|{_CAPO_WORD}|time|metre|tempo|key|track|repeat|endings|sign)\b[^:]*:\s",
    re.I,
)
_TITLE_PATTERN = re.compile(
    r"^\s*(?:tit(?:le|el|re|olo)|t[ií]tulo|song|piece|m[uú]sica|canci[oó]n)\s*[:=]\s*(?P<title>\S.*)",
    re.I,
)
_FRILLS = " \t*#=-"
_TRACK_PATTERN = re.compile(r"^track: (?P<track>.*\S)\s*$")
_STYLE_PATTERN = re.compile(r"^\s*(?:style|genre)\s*[:=](?P<style>.*)", re.I)


def infer_open_pitches(note_names: Sequence[str]) -> OpenPitches | None:
    """Return the open strings that six note names mean, the lowest string first or last.

    Each string is less than an octave above the one before, and most are at most two half steps
    above standard tuning. Of the two orders that one is taken in which the tuning is more like a
    transposed standard tuning; where both are about as good, the lowest string comes first.

    Returns:
        MIDI pitches, string 1 (the highest) first; None if some string would be more than five
        half steps out of place, so that the names cannot be a tuning.
    """
    low_first, high_first = _rising_pitches(note_names), _rising_pitches(note_names[::-1])
    is_high_first = _distance_from_standard(low_first) > _distance_from_standard(high_first) + 8
    pitches = high_first if is_high_first else low_first
    offsets = _offsets_from_standard(pitches)
    return pitches if max(abs(x - median(offsets)) for x in offsets) <= 5 else None


def _rising_pitches(low_first_names: Sequence[str]) -> OpenPitches:
    """Return the lowest pitch for each name above the string before, string 1 first."""
    pitches: list[int] = []
    for name in low_first_names:
        before = pitches[-1] if pitches else 0
        pitches.append(before + (_parse_pitch_class(name) - before) % 12)
    too_high = median(_offsets_from_standard(pitches[::-1])) - 2
    return _transpose_pitches(tuple(pitches[::-1]), -12 * ceil(too_high / 12))


def _offsets_from_standard(pitches: Sequence[int]) -> list[int]:
    """Return for each string how many half steps it is above standard tuning."""
    return [a - b for a, b in zip(pitches, STANDARD.open_pitches, strict=True)]


def _distance_from_standard(pitches: OpenPitches) -> float:
    """Return how unlike standard tuning a tuning is, and how far above or below."""
    offsets = _offsets_from_standard(pitches)
    center = median(offsets)
    return abs(center) + sum(abs(offset - center) for offset in offsets)


def format_tuning_line(tuning: Tuning) -> str:
    """Return the line that states a tuning, low string first, so that `parse_tuning` reads it.

    Octaves (E2) are written where letters alone would mislead.
    """
    letters, pitches = get_string_names(tuning), tuning.open_pitches
    line = "tuning: " + " ".join(letters[::-1])
    if len(letters) == len(STANDARD.open_pitches) and parse_tuning(line) == pitches:
        return line
    exact = [f"{letter}{pitch // 12 - 1}" for letter, pitch in zip(letters, pitches, strict=True)]
    line = "tuning: " + " ".join(exact[::-1])
    return line if parse_tuning(line) == pitches else line.replace(":", " (low to high):", 1)


@lru_cache(maxsize=1000)
def parse_tuning(line: str) -> OpenPitches | None:
    """The tuning that a line of text states, string 1 first, or None if it states none."""
    line = line[:MAX_STATEMENT_COLUMNS]
    about_tuning = bool(_TUNING_WORD_PATTERN.search(line))
    if about_tuning and len(_SYLLABLE_PATTERN.findall(line)) >= MIN_STRINGS:
        line = _spell_syllables(line)
    if about_tuning:  # German
        line = re.sub(r"(?<![^\W\d_B-G])H(?![^\W\d_A-G])", "B", line)
    if about_tuning and (exact := _parse_notes_with_octaves(line)):
        return exact
    six = _SIX_NAMES_PATTERN.search(line)
    # Without a word about tuning, names alone; chords have gaps between them.
    alone = six and line.strip(" ()[]*.\t") == six[0] and "  " not in six[0] and six[0][0].isupper()
    # A name is explained: Open D (DADF#AD).
    named = _OPEN_TUNING_PATTERN.search(line) or _DROP_TUNING_PATTERN.search(line)
    if six and (about_tuning or alone or named and named.end() <= six.start()):
        pitches = infer_open_pitches(six.groups())
        if pitches is not None:
            is_before_moving = about_tuning and median(_offsets_from_standard(pitches)) == 0
            down = _find_half_steps_down(line) if is_before_moving else None
            return _transpose_pitches(pitches, -down[0] if down else 0)
    by_name = _parse_tuning_name(line, about_tuning)
    return _parse_single_strings(line, about_tuning, by_name or STANDARD.open_pitches) or by_name


def _spell_syllables(line: str) -> str:
    """Return a line with letters for Do, Re, Mi and so on."""
    return _SYLLABLE_PATTERN.sub(
        lambda found: _SYLLABLES[found[0].lower().translate(_WITHOUT_ACCENTS)], line
    )


def _parse_notes_with_octaves(line: str) -> OpenPitches | None:
    """Four to eight notes with octaves (``Bb1 F2 Bb2 Eb3 G3 C4``); E2 is the low E of a guitar.

    The lowest string comes first, unless most steps lead down and the order is not stated.
    """
    pitches = parse_pitches_with_octaves(line)
    if not MIN_STRINGS <= len(pitches) <= MAX_STRINGS:
        return None
    up = sum(a < b for a, b in zip(pitches, pitches[1:], strict=False))
    down = sum(a > b for a, b in zip(pitches, pitches[1:], strict=False))
    from_high = down > up and not _LOW_FIRST_PATTERN.search(line)
    return tuple(pitches if from_high else pitches[::-1])


def parse_pitches_with_octaves(text: str) -> list[int]:
    """Return the MIDI pitch of each note with an octave in a text."""
    return [
        12 * (int(octave) + 1) + _parse_pitch_class(letter + sign)
        for letter, sign, octave in _NOTE_WITH_OCTAVE_PATTERN.findall(text)
    ]


def _parse_tuning_name(line: str, mentions_tuning: bool) -> OpenPitches | None:
    """A tuning stated by its name: ``Drop C``, ``open G tuning``, ``1 whole step down``."""
    if re.search(r"\bnashville\b", line, re.I) and mentions_tuning:
        return NAMED_TUNINGS["Nashville"].open_pitches
    if found := _DROP_TUNING_PATTERN.search(line):
        base = NAMED_TUNINGS["double-drop-D" if found["double"] else "drop-D"]
        down = (_parse_pitch_class(found["note"]) - 2) % -12
        if further := _find_half_steps_down(line):  # Drop D, half a step down
            down -= 0 if down else further[0]
        return _transpose_pitches(base.open_pitches, down)
    if found := _OPEN_TUNING_PATTERN.search(line):
        stated = mentions_tuning or line.strip(" ()[]*.\t") == found.group()
        chord = found["chord"][0].upper() + found["chord"][1:] + "m" * bool(found["minor"])
        if stated and (named := NAMED_TUNINGS.get(f"open-{chord}")):
            return named.open_pitches
    if further := _find_half_steps_down(line):
        half_steps, start = further
        begins_line = _NOTHING_MUCH_PATTERN.fullmatch(line[:start])
        if mentions_tuning or begins_line or half_steps == 1:
            return _transpose_pitches(STANDARD.open_pitches, -half_steps)
    if found := _STANDARD_ON_NOTE_PATTERN.search(line) or _TUNED_TO_NOTE_PATTERN.search(line):
        half_steps = (_parse_pitch_class(found["note"] or "Eb") - 4 + 7) % 12 - 7
        return _transpose_pitches(STANDARD.open_pitches, half_steps)
    return STANDARD.open_pitches if _STANDARD_TUNING_PATTERN.search(line) else None


def _transpose_pitches(pitches: OpenPitches, half_steps: int) -> OpenPitches:
    """Every string by so many half steps; fewer than none lower them."""
    return tuple(pitch + half_steps for pitch in pitches)


def _parse_pitch_class(note_name: str) -> int:
    """Half steps from C up to a note in any case and with any sign."""
    sharp = note_name[1:] in ("#", "\u266f")
    flat = note_name[1:].lower().lstrip(" -") in ("b", "\u266d", "flat")
    return parse_pitch_class(note_name[0].upper()) + sharp - flat


def _find_half_steps_down(line: str) -> tuple[int, int] | None:
    """Return by how many half steps a line says that all is lower, and where; or None."""
    if found := _TUNED_DOWN_PATTERN.search(line):
        return _parse_half_steps(found["after"] or found["before"]), found.start()
    if found := _FOREIGN_DOWN_PATTERN.search(line):
        return 1 if found["half"] else 2, found.start()
    return None


def _parse_half_steps(words: str) -> int:
    """Return how many half steps ``1 whole step``, ``half a step`` or ``two semitones`` are."""
    words = words.lower()
    if re.search(r"\b1[\s-]1/2|\bone[\s-]+and|1\.5", words):
        return 3
    number = {"two": 2, "2": 2, "three": 3, "3": 3}.get(words.split()[0], 1)
    return number if re.search("1/2|half|semitone", words) else 2 * number


def _parse_single_strings(
    line: str, mentions_tuning: bool, others: OpenPitches
) -> OpenPitches | None:
    """A tuning stated string by string, ``6th = D, 3 = F#``, with the other strings as given."""
    pitches, found = list(others), False
    if foreign := _FOREIGN_STRING_PATTERN.match(_spell_syllables(line)):  # 6ª en Re, 6. Saite auf D
        line = f"{foreign['string']} = {foreign.groups()[-1]}"
    for match in _SINGLE_STRING_PATTERN.finditer(line):
        name, sign = match["string"].lower(), match["sign"].lower()
        is_whole_line = not line[: match.start()].strip(" *-(") and (
            sign[:2] in ("do", "up") or not line[match.end() :].strip(" *-).")
        )
        is_said = "tuned" in sign or is_whole_line or mentions_tuning and match["word"]
        if sign.endswith("to") and not is_said:
            continue
        string = 6 if name == "low" else _FRET_NUMBERS.get(name) or int(name[0])
        usual = others[string - 1]
        pitch_class = _parse_pitch_class(match.groups()[-1])
        pitches[string - 1] = usual + (pitch_class - usual + 6) % 12 - 6
        found = True
    return tuple(pitches) if found else None


def parse_capo(line: str) -> int | None:
    """The fret of the capo that a line of text states, or None.

    Only a statement counts (``Capo: 2``, ``capo III``), not a sentence in which a capo comes up
    ("can also be played with a capo on the 2nd fret").
    """
    line = line[:MAX_STATEMENT_COLUMNS]
    found = _CAPO_PATTERN.search(line) or _FRET_THEN_CAPO_PATTERN.search(line)
    return _FRET_NUMBERS.get(found["fret"].lower()) if found else None


def describe_unread_statement(line: str) -> str | None:
    """Return what to say of a line about a capo or a tuning that is not understood, or None."""
    line = line[:MAX_STATEMENT_COLUMNS]
    capos = _ANY_CAPO_PATTERN.findall(line)
    if len(capos) > 1 or (capos and parse_capo(line) is None):
        return "a capo that is not taken; 'Capo: 2' on a line above the strings sets one"
    if _JUMP_PATTERN.match(line):
        return "a jump (D.C., D.S.) that is not kept; write out what is played"
    if _ANY_TUNING_PATTERN.match(line) and parse_tuning(line) is None:
        return "a tuning that is not understood; 'Tuning: D A D G B E' states one, lowest first"
    return None


_METER_PATTERN = re.compile(
    r"\b(?:(?:time )?signature|time|timing|tempo|met(?:re|er)|takt|comp[aá]s+o?|mesure|misura)"
    r"\s*[:=-]?\s*(?P<beats>\d{1,3})\s*/\s*(?P<unit>1|2|4|8|16|32)(?!\d|/|,\s*\d+/)"
    r"|(?<![\d,/])(?P<bare>[2-9]|12)/(?P<of>[248])(?=\s+tim(?:e|ing)\b|\s*$)"
    r"|^\W*(?P<first>[2-9]|12)/(?P<by>[248])"
    r"(?=\s*[,;(@](?!\s*\d+/)|\s+(?:[-\u2013] |at\b|tempo\b|\d{2,3}\s*bpm))",
    re.I,
)
_BPM_PATTERN = re.compile(
    r"^tempo: (\d{1,4})$|(?<!\d)(\d{2,3})(?:\s*-\s*\d{2,3})?\s*bpm"
    r"|\b(?:J|MM|M\.M\.)\s*=\s*(\d{2,3})\b"
    r"|\btempo\b\s*(?:[:=]\s*[^\d/]{0,30}?)?(?<!\d)(\d{2,3})(?![\d/])|\bbpm\s*[:=]\s*(\d{2,3})\b"
    r"|^\W*\d{1,2}/[248]\s*[,@]\s*(\d{2,3})\W*$",
    re.I,
)
_NOTES_A_MINUTE_PATTERN = re.compile(
    r"(?P<dotted>\bdotted[\s-]+)?(?:(?P<eighth>\u266a|\b(?:eighth|quaver|achtel|croche|corchea"
    r"|colcheia))|(?P<half>\b(?:half|minim|halbe|blanche|blanca|m[ií]nima))|(?P<quarter>\u2669"
    r"|\b(?:q|1/4|quarter|crotchet|viertel|noire|negra|semiminima|sem[ií]nima)))(?:s|[\s-]notes?)?"
    r"(?P<dot>\s*\.)?\s*=\s*(?P<number>\d{2,3})\b",
    re.I,
)
_QUARTERS_OF_NOTE = {"eighth": 0.5, "quarter": 1.0, "half": 2.0}


def _search(pattern: re.Pattern[str], line: str, alone: bool) -> re.Match[str] | None:
    """Return a match in a line, or None; also where words stand beside it and it is to be alone."""
    found = pattern.search(line)
    beside = line[: found.start()] + line[found.end() :] if found and alone else ""
    return None if re.search(r"\w", beside) else found


def parse_time_signature(line: str, alone: bool = False) -> tuple[int, int] | None:
    """Return the time signature that a line of text states, among others or alone, or None."""
    found = _search(_METER_PATTERN, line[:MAX_STATEMENT_COLUMNS], alone)
    if found is None:
        return None
    beats, unit = map(int, filter(None, found.groups()))
    return (beats, unit) if beats else None


def parse_tempo(line: str, alone: bool = False) -> int | None:
    """Return the quarter notes a minute that a line states, among others or alone, or None."""
    line = line[:MAX_STATEMENT_COLUMNS]
    if found := _search(_NOTES_A_MINUTE_PATTERN, line, alone):
        quarters = next(size for name, size in _QUARTERS_OF_NOTE.items() if found[name])
        quarters *= 1.5 if found["dotted"] or found["dot"] else 1
        return round(int(found["number"]) * quarters)
    found = _search(_BPM_PATTERN, line, alone)
    if found is None or re.search(r"half|dotted|eighth|1/[28]|measure", line, re.I):
        return None
    return min(max(int(next(filter(None, found.groups()))), 1), 1000)


def strip_title(line: str) -> str:
    """Return a line as a title: what follows ``Title:``, or the words without frills."""
    found = _TITLE_PATTERN.match(line)
    plain = line.lstrip(_FRILLS).rstrip(_FRILLS.replace("#", ""))
    plain = plain if re.search(r"\b[A-G]#$", plain) else plain.rstrip(_FRILLS)
    return (found["title"].strip() if found else plain)[:100]


def find_title(lines: list[str]) -> str:
    """The title among lines of text: what follows ``Title:``, or else the first line of words."""
    named = [line for line in lines if _TITLE_PATTERN.match(line)]
    titles = map(strip_title, named or (x for x in lines if not _STATEMENT_PATTERN.match(x)))
    return next((title for title in titles if named or re.search(r"[^\W\d_]{3}", title)), "")


def parse_track(line: str) -> str | None:
    """Return the name in a line ``track: Lead``, after which tuning and capo are stated anew."""
    found = _TRACK_PATTERN.match(line[:MAX_STATEMENT_COLUMNS])
    return found["track"] if found else None


def is_style_line(line: str) -> bool:
    """Return whether a line of text states the style, and so states nothing else."""
    return bool(_STYLE_PATTERN.match(line[:MAX_STATEMENT_COLUMNS]))


def find_style(lines: list[str]) -> str:
    """The style among lines of text: what follows ``style:`` or ``genre:``; empty if none does."""
    found = (
        match["style"]
        for line in lines
        if (match := _STYLE_PATTERN.match(line[:MAX_STATEMENT_COLUMNS]))
    )
    return next(filter(is_valid_style, (" ".join(name.split()) for name in found)), "")


def is_valid_style(style_name: str) -> bool:
    """Return whether a text will do as the name of a style.

    It has 1 to 40 printable characters, none of them ``<`` or ``>``, which tokens have around it,
    and no spaces but single ones between words. What a tab without a style is called, none, is no
    style.
    """
    return (
        0 < len(style_name) <= MAX_STYLE_CHARACTERS
        and style_name == " ".join(style_name.split())
        and style_name.isprintable()
        and not set("<>") & set(style_name)
        and style_name.casefold() != "none"
    )
