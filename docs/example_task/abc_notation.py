"""Folk tunes in ABC notation: what is read of it, and the rule that bars add up.

A tune becomes a list of words: its meter (`M:6/8`), its key (`K:Em`), then notes, rests and bar
lines. A note has its length in eighths, whatever the file's own unit: `A`, `^c/2`, `G3`, `e2/3`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

METERS = {"2/4": 4, "3/4": 6, "4/4": 8, "3/8": 3, "6/8": 6, "9/8": 9, "12/8": 12}  # in eighths
COMMON = {"C": "4/4", "C|": "4/4", "2/2": "4/4"}
MODES = {"maj": "", "min": "m"} | {mode: mode for mode in ("", "m", "dor", "mix", "phr", "lyd")}
BAR, BEGIN, END, DOUBLE, FIRST, SECOND = "|", "|:", ":|", "||", "[1", "[2"
SECTION_ENDS = (END, DOUBLE)
BAR_LINES = {BAR: [BAR], BEGIN: [BEGIN], "||": [DOUBLE], "|]": [DOUBLE], "::": [END, BEGIN]}
BAR_LINES |= {":|:": [END, BEGIN], END: [END], ":||": [END], ":|]": [END]}  # "[|" is none

NOTE = r"((?:\^\^|\^|=|__|_)?[A-Ga-gz][,']*)(\d*)(/*)(\d*)"
LEXER = re.compile(
    r"(?P<bar>:?\|[:|\]]?|::|\[\|)?(?P<ending>(?:(?<=[|:])\s*\[?|\[)[12](?![\d/]))"
    rf"|(?P<line>:?\|[:|\]]?|::|\[\|)|(?P<tuplet>\(3(?::\d?:\d?)?)|(?P<note>{NOTE})"
    r"|(?P<broken>[<>]+)"
    r"|(?P<nothing>\"[^\"]*\"|\{[^}]*\}|![^!]*!|\+[^+]*\+|[().~\\uvHTSPRMLJkn \t-])"
)


class NotReadable(ValueError):
    """A tune that uses what this example does not read; the message says what."""


def length_of(word: str) -> Fraction:
    """Return a note's length in eighths; 0 for any other word."""
    if not (match := re.fullmatch(NOTE, word)):
        return Fraction(0)
    return Fraction(int(match[2] or 1), int(match[4] or 2 ** len(match[3])))


def scale_note(word: str, factor: Fraction) -> str:
    """Return a note that is so many times as long."""
    length = length_of(word) * factor
    over = "" if length.denominator == 1 else f"/{length.denominator}"
    number = "" if length.numerator == 1 else str(length.numerator)
    return re.fullmatch(NOTE, word)[1] + number + over


def read_body(body: str, unit: Fraction) -> list[str]:
    """Return the words of a tune's music; `unit` is the length of a note without a number."""
    words: list[str] = []
    last = None  # the place of this bar's last note, for < and >
    pending, triplet, place = Fraction(1), 0, 0
    while place < len(body):
        if not (match := LEXER.match(body, place)):
            raise NotReadable(f"the sign {body[place]!r}")
        place = match.end()
        if match["note"]:
            factor = unit * pending * (Fraction(2, 3) if triplet else 1)
            pending, triplet, last = Fraction(1), max(0, triplet - 1), len(words)
            words.append(scale_note(match["note"], factor))
        elif match["tuplet"]:
            triplet = 3
        elif match["broken"]:
            if last is None:
                raise NotReadable("a broken rhythm without a note")
            short = Fraction(1, 2 ** len(match["broken"]))
            before, pending = (2 - short, short) if ">" in match["broken"] else (short, 2 - short)
            words[last] = scale_note(words[last], before)
        elif not match["nothing"]:
            last = None
            words += BAR_LINES.get(match["bar"] or match["line"], [])
            words += [f"[{match['ending'][-1]}"] if match["ending"] else []
    return words


def read_tune(text: str) -> list[str]:
    """Return the words of one tune; NotReadable says what of it is not read."""
    header = dict(re.findall(r"(?m)^([A-Z]):\s*(.*?)\s*$", text))
    meter = COMMON.get(header.get("M", ""), header.get("M"))
    if meter not in METERS:
        raise NotReadable(f"the meter {header.get('M')!r}")
    default = Fraction(1, 2) if METERS[meter] < 6 and meter != "3/8" else Fraction(1)
    unit = Fraction(header["L"]) * 8 if "L" in header else default
    lines = [s.split("%")[0] for s in re.split(r"(?m)^K:.*$", text, maxsplit=1)[-1].splitlines()]
    if any(re.match(r"[KLM]:", line) for line in lines):
        raise NotReadable("a change of key or meter")
    key = header.get("K", "")
    match = re.fullmatch(r"([A-G][b#]?)\s*([A-Za-z]*)", key.split("%")[0].strip())
    mode = match[2][:3].lower() if match and match[2] != "m" else "m"
    if not match or mode not in MODES:
        raise NotReadable(f"the key {key!r}")
    music = " ".join(line for line in lines if not re.match(r"[A-Za-z]:", line))
    return tidy([f"M:{meter}", f"K:{match[1]}{MODES[mode]}"], read_body(music, unit))


def tidy(head: list[str], music: list[str]) -> list[str]:
    """Return a tune without two bar lines in a row, one at its end, and all bars full."""
    kept = [""]
    for word in music:
        if word == BAR and kept[-1] in ("", BAR, BEGIN, *SECTION_ENDS, FIRST, SECOND):
            continue
        if word in SECTION_ENDS and kept[-1] == BAR:
            kept.pop()
        if word == DOUBLE and kept[-1] in ("", *SECTION_ENDS, BEGIN):
            continue
        if word == BEGIN and kept[-1] == BAR:
            kept[-1] = DOUBLE
        kept.append(word)
    if kept[-1] == BAR:
        kept[-1] = DOUBLE
    bars = Bars(METERS[head[0].removeprefix("M:")])
    for word in kept[1:]:
        if not bars.allows(word):
            raise NotReadable(f"bar {bars.number}, which does not add up before {word}")
        bars = bars.after(word)
    if not bars.may_end:
        raise NotReadable("an end without a bar line")
    return head + kept[1:]


@dataclass(frozen=True)
class Bars:
    """The place of a tune within its bars, and what may follow.

    Every bar is full, but the tune may begin with a shorter one. Then each section may begin with
    one as long, and end with one that lacks as much.
    """

    full: int  # eighths in a bar
    filled: Fraction = Fraction(0)  # of this bar, so far
    pickup: Fraction | None = None  # eighths in the first bar, 0 if it is full; None until it ends
    at_start: bool = True  # whether this is the first bar of a section
    last: str = ""  # the last bar line
    number: int = 1  # this bar, counted from 1

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
            return full or (self.at_start and part and self.pickup in (None, self.filled))
        if word in SECTION_ENDS:
            return full or (part and bool(self.pickup) and self.filled == self.full - self.pickup)
        before = {BEGIN: ("", *SECTION_ENDS), FIRST: (BAR,), SECOND: (END,)}
        return not self.filled and self.last in before.get(word, ())

    def after(self, word: str) -> "Bars":
        """Return where the tune stands after a word that is allowed."""
        if length := length_of(word):
            return replace(self, filled=self.filled + length)
        if word not in (BAR, *SECTION_ENDS):
            return replace(self, last=word, at_start=self.at_start and word == BEGIN)
        pickup = self.pickup
        if pickup is None:
            pickup = self.filled if word == BAR and self.filled < self.full else Fraction(0)
        return Bars(self.full, Fraction(0), pickup, word != BAR, word, self.number + 1)


def fillable(lengths: Iterable[Fraction], full: int) -> set[Fraction]:
    """Return what may be left of a bar so that notes of these lengths can fill it."""
    lengths, reached, new = set(lengths), {Fraction(0)}, {Fraction(0)}
    while new:
        new = {a + b for a in new for b in lengths if a + b <= full} - reached
        reached |= new
    return reached


def read_tunes(folder: Path) -> tuple[list[list[str]], list[str]]:
    """Return the tunes of a folder's .abc files, by name, and what was left out."""
    tunes, skipped = [], []
    for file in [folder] if folder.is_file() else sorted(folder.rglob("*.abc")):
        for tune in re.split(r"(?m)^(?=X:)", file.read_text("utf-8", errors="replace")):
            try:
                tunes += [read_tune(tune)] if tune.startswith("X:") else []
            except NotReadable as error:
                skipped.append(f"{file.name}, tune {tune[2:8].split()[0]}: {error}")
    if not tunes:
        raise ValueError(f"There is no tune in {folder}: name an .abc file or a folder of them.")
    return tunes, skipped


def write_abc(words: list[str], title: str = "Untitled") -> str:
    """Return a tune as an ABC file, a section a line."""
    meter, key, *music = words
    text = "".join(f" {word}" if word[0] != "[" else word for word in music)
    for end in SECTION_ENDS:
        text = re.sub(rf"{re.escape(end)} (?!\[)", f"{end}\n", text)
    return "\n".join(["X:1", f"T:{title}", meter, "L:1/8", key, text.strip()]) + "\n"
