"""Folk tunes in ABC notation: what is read of it, the rule that bars add up, and how it sounds.

A tune becomes a list of words: its meter (`M:6/8`), its key (`K:Em`), then notes, rests and bar
lines. A note has its length in eighths, whatever the file's own unit: `A`, `^c/2`, `G3`, `e2/3`.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

METERS = {"2/4": 4, "3/4": 6, "4/4": 8, "3/8": 3, "6/8": 6, "9/8": 9, "12/8": 12}  # in eighths
COMMON = {"C": "4/4", "C|": "4/4", "2/2": "4/4"}
MODES = {"": 0, "maj": 0, "m": -3, "min": -3, "dor": -2, "mix": -1, "phr": -4, "lyd": 1}
TONICS = {"F": -1, "C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5}  # sharps of the major key
SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
ACCIDENTALS = {"^^": 2, "^": 1, "": 0, "=": 0, "_": -1, "__": -2}
BAR, BEGIN, END, DOUBLE, FIRST, SECOND = "|", "|:", ":|", "||", "[1", "[2"
SECTION_ENDS = (END, DOUBLE)

NOTE = r"(\^\^|\^|=|__|_)?([A-Ga-gz])([,']*)(\d*)(/*)(\d*)"
LEXER = re.compile(
    r"(?P<bar>:?\|[:|\]]?|::|\[\|)(?P<ending>\s*\[?[12](?![\d/]))?"
    rf"|(?P<lone>\[[12])|(?P<tuplet>\(3(?::\d?:\d?)?)|(?P<note>{NOTE})|(?P<broken>[<>]+)"
    r"|(?P<nothing>\"[^\"]*\"|\{[^}]*\}|![^!]*!|\+[^+]*\+|[().~\\uvHTSPRMLJkn \t-])"
)


class NotReadable(ValueError):
    """A tune that uses what this example does not read; the message says what."""


def parse_key(text: str) -> str:
    """Return a key as `K:` writes it, with the mode in three letters at most: "Em", "Dmix".

    Raises:
        NotReadable: if it is none.
    """
    match = re.fullmatch(r"([A-G])([b#]?)\s*([A-Za-z]*)", text.split("%")[0].strip())
    mode = match[3][:3].lower() if match and match[3] != "m" else "m"
    if not match or mode not in MODES:
        raise NotReadable(f"the key {text!r}")
    return match[1] + match[2] + {"maj": "", "min": "m"}.get(mode, mode)


def sharps(key: str) -> int:
    """Return the sharps of a key signature, flats below zero."""
    tonic, mode = re.fullmatch(r"([A-G][b#]?)(.*)", key).groups()
    accidental = {"b": -7, "#": 7}.get(tonic[1:], 0)
    return TONICS[tonic[0]] + accidental + MODES[mode]


def format_length(length: Fraction) -> str:
    """Return a length in eighths as ABC writes it after a note: "", "2", "/2", "3/2"."""
    over = "" if length.denominator == 1 else f"/{length.denominator}"
    return ("" if length.numerator == 1 else str(length.numerator)) + over


def length_of(word: str) -> Fraction:
    """Return a note's length in eighths; 0 for any other word."""
    match = re.fullmatch(NOTE, word)
    if not match:
        return Fraction(0)
    _, _, _, numerator, slashes, denominator = match.groups()
    divisor = int(denominator or 2 ** len(slashes))
    return Fraction(int(numerator or 1), divisor)


def read_body(body: str, unit: Fraction) -> list[str]:
    """Return the words of a tune's music.

    Args:
        body: the lines below the header.
        unit: the length of a note without a number, in eighths.

    Raises:
        NotReadable: at chords, other tuplets and signs that are not known.
    """
    words: list[str] = []
    notes: list[int] = []  # places of the notes of this bar, for < and >
    pending, triplet, place = Fraction(1), 0, 0
    while place < len(body):
        match = LEXER.match(body, place)
        if not match:
            raise NotReadable(f"the sign {body[place]!r}")
        place, kind = match.end(), match.lastgroup
        if match["note"]:
            length = length_of(match["note"]) * unit * pending
            pending = Fraction(1)
            if triplet:
                length, triplet = length * Fraction(2, 3), triplet - 1
            pitch = re.match(r"[_^=]*[A-Ga-gz][,']*", match["note"])[0]
            notes.append(len(words))
            words.append(pitch + format_length(length))
        elif match["tuplet"]:
            triplet = 3
        elif match["broken"]:
            if not notes:
                raise NotReadable("a broken rhythm without a note")
            short = Fraction(1, 2 ** len(match["broken"]))
            before, pending = (2 - short, short) if ">" in match["broken"] else (short, 2 - short)
            note = words[notes[-1]]
            pitch = re.match(r"[_^=]*[A-Ga-gz][,']*", note)[0]
            words[notes[-1]] = pitch + format_length(length_of(note) * before)
        elif match["bar"] or match["lone"]:
            notes = []
            words += bar_words(match["bar"] or "")
            if ending := match["ending"] or match["lone"]:
                words.append(f"[{ending.strip(' [')}")
        elif kind != "nothing":
            raise NotReadable(f"the sign {match[0]!r}")
    return words


def bar_words(sign: str) -> list[str]:
    """Return the words of a bar line."""
    if sign in ("::", ":||:"):
        return [END, BEGIN]
    known = {"|": BAR, "|:": BEGIN, ":|": END, "||": DOUBLE, "|]": DOUBLE, ":||": END, ":|]": END}
    if sign in (":|:",):
        return [END, BEGIN]
    return [known[sign]] if sign in known else []


def read_tune(text: str) -> list[str]:
    """Return the words of one tune.

    Raises:
        NotReadable: saying what of it is not read, or which bar does not add up.
    """
    header = dict(re.findall(r"(?m)^([A-Z]):\s*(.*?)\s*$", text))
    meter = COMMON.get(header.get("M", ""), header.get("M"))
    if meter not in METERS:
        raise NotReadable(f"the meter {header.get('M')!r}")
    default = Fraction(1, 2) if METERS[meter] < 6 and meter != "3/8" else Fraction(1)
    unit = Fraction(header["L"]) * 8 if "L" in header else default
    after_key = re.split(r"(?m)^K:.*$", text, maxsplit=1)[-1]
    lines = [line.split("%")[0] for line in after_key.splitlines()]
    if any(re.match(r"[KLM]:", line) for line in lines):
        raise NotReadable("a change of key or meter")
    music = [line for line in lines if not re.match(r"[A-Za-z]:", line)]
    words = [f"M:{meter}", f"K:{parse_key(header.get('K', ''))}", *read_body(" ".join(music), unit)]
    return tidy(words)


def tidy(words: list[str]) -> list[str]:
    """Return a tune without two bar lines in a row, one at its end, and all bars full.

    Raises:
        NotReadable: naming the bar that is not.
    """
    kept: list[str] = []
    for word in words:
        if word == BAR and kept[-1] in (BAR, BEGIN, *SECTION_ENDS, FIRST, SECOND) + tuple(
            words[:2]
        ):
            continue
        if word in (DOUBLE, END) and kept[-1] == BAR:
            kept.pop()
        if word == DOUBLE and kept[-1] in (*SECTION_ENDS, BEGIN) + tuple(words[:2]):
            continue
        if word == BEGIN and kept[-1] == BAR:
            kept[-1] = DOUBLE
        kept.append(word)
    if kept[-1] == BAR:
        kept[-1] = DOUBLE
    state = Bars(kept[0].removeprefix("M:"))
    for word in kept[2:]:
        if not state.allows(word):
            raise NotReadable(f"bar {state.number}, which does not add up before {word}")
        state = state.after(word)
    if not state.may_end:
        raise NotReadable("an end without a bar line")
    return kept


class Bars:
    """The place of a tune within its bars, and what may follow.

    Every bar is full, but the tune may begin with a shorter one. Then each section may begin with
    one as long, and end with one that lacks as much.

    Attributes:
        full: eighths in a bar.
        pickup: eighths in the first bar, if it is shorter.
        filled: eighths in this bar so far.
        at_start: whether this is the first bar of a section.
        last: the last bar line.
        number: this bar, counted from 1.
    """

    def __init__(self, meter: str):
        """Begin a tune."""
        self.full, self.filled = Fraction(METERS[meter]), Fraction(0)
        self.pickup: Fraction | None = None
        self.at_start, self.last, self.number, self.events = True, "", 1, 0

    @property
    def may_end(self) -> bool:
        """Tell if the tune may end here."""
        return not self.filled and self.last in SECTION_ENDS

    def allows(self, word: str) -> bool:
        """Tell if a word may come next."""
        if length := length_of(word):
            return self.filled + length <= self.full
        full, part = self.filled == self.full, 0 < self.filled < self.full
        if word == BAR:
            first = self.pickup is None and part
            return full or (self.at_start and (first or (part and self.filled == self.pickup)))
        if word in SECTION_ENDS:
            return full or (part and bool(self.pickup) and self.filled == self.full - self.pickup)
        if word == BEGIN:
            return not self.filled and self.last in ("", *SECTION_ENDS)
        if word == FIRST:
            return not self.filled and self.last == BAR
        return word == SECOND and not self.filled and self.last == END

    def after(self, word: str) -> "Bars":
        """Return where the tune stands after a word that is allowed."""
        new = Bars.__new__(Bars)
        new.__dict__.update(self.__dict__)
        if length := length_of(word):
            new.filled += length
            return new
        if word == BAR:
            if self.pickup is None:
                new.pickup = self.filled if self.filled < self.full else Fraction(0)
            new.at_start = False
        elif word in SECTION_ENDS:
            new.at_start = True
            new.pickup = self.pickup or Fraction(0)
        elif word in (FIRST, SECOND):
            new.at_start = False
        if word in (BAR, *SECTION_ENDS):
            new.filled, new.number = Fraction(0), self.number + 1
        new.last = word
        return new


def fillable(lengths: Iterable[Fraction], full: int) -> set[Fraction]:
    """Return what may be left of a bar so that notes of these lengths can fill it."""
    lengths, reached, new = set(lengths), {Fraction(0)}, {Fraction(0)}
    while new:
        new = {a + b for a in new for b in lengths if a + b <= full} - reached
        reached |= new
    return reached


def read_tunes(folder: Path) -> tuple[list[list[str]], list[str]]:
    """Return the tunes of a folder's .abc files in the order of their names, and what was left out.

    Raises:
        ValueError: if there is no tune.
    """
    tunes, skipped = [], []
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.abc"))
    for file in files:
        text = file.read_text("utf-8", errors="replace")
        for tune in re.split(r"(?m)^(?=X:)", text):
            if tune.startswith("X:"):
                try:
                    tunes.append(read_tune(tune))
                except NotReadable as error:
                    skipped.append(f"{file.name}, tune {tune[2:8].split()[0]}: {error}")
    if not tunes:
        raise ValueError(f"There is no tune in {folder}: name an .abc file or a folder of them.")
    return tunes, skipped


def write_abc(words: list[str], title: str = "Untitled") -> str:
    """Return a tune as an ABC file, four bars a line."""
    meter, key, *music = words
    lines, line, bars = [], "", 0
    for word in music:
        line += word if line and length_of(word) else f" {word}" if line else word
        if word in (BAR, *SECTION_ENDS):
            line += " "
            bars += 1
            if bars % 4 == 0 or word in SECTION_ENDS:
                lines.append(line.strip())
                line, bars = "", 0
    if line:
        lines.append(line.strip())
    return "\n".join(["X:1", f"T:{title}", meter, "L:1/8", key, *lines]) + "\n"


def unroll(words: list[str]) -> list[str]:
    """Return the music with its repeats and endings written out."""
    played: list[str] = []
    section: list[str] = []
    first: list[str] | None = None
    for word in words:
        if word == FIRST:
            first = []
        elif word == SECOND:
            first = None
        elif word == END:
            played += section + (first if first is not None else [])
            if first is None:
                played += section
                section = []
            else:  # once more up to the first ending; the second one follows
                played += section
                section, first = [], None
            played.append(BAR)
        elif word in (BEGIN, DOUBLE):
            played += section + ([BAR] if word == DOUBLE else [])
            section = []
        else:
            (section if first is None else first).append(word)
    return played + section


def notes(words: list[str]) -> list[tuple[int | None, Fraction]]:
    """Return MIDI pitches, None for a rest, with their lengths in eighths, repeats written out."""
    order = "FCGDAEB"
    signature = sharps(words[1].removeprefix("K:"))
    altered = dict.fromkeys(order[:signature], 1) if signature > 0 else {}
    if signature < 0:
        altered = dict.fromkeys(order[signature:], -1)
    here: dict[str, int] = {}
    result: list[tuple[int | None, Fraction]] = []
    for word in unroll(words[2:]):
        match = re.fullmatch(NOTE, word)
        if not match:
            here = {}
            continue
        accidental, letter, octave = match[1], match[2], match[3]
        if letter == "z":
            result.append((None, length_of(word)))
            continue
        if accidental:
            here[letter + octave] = ACCIDENTALS[accidental]
        shift = here.get(letter + octave, altered.get(letter.upper(), 0))
        height = 60 + SEMITONES[letter.upper()] + 12 * letter.islower()
        height += 12 * (octave.count("'") - octave.count(",")) + shift
        result.append((height, length_of(word)))
    return result
