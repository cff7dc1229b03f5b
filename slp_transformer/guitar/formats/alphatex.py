"""alphaTex, read: the part of it that says what is played on one guitar.

Known are title, tempo, tuning, capo, metres, repeats and endings, voices, notes, chords and rests
with their lengths, and the marks of the techniques that a tab has. The rest is left out and told.
"""

import re
from fractions import Fraction
from pathlib import Path

from slp_transformer.guitar.ascii_reader import decode
from slp_transformer.guitar.formats.alphatex_tokens import Cursor, Token, tokens_of
from slp_transformer.guitar.formats.safe_read import content_of
from slp_transformer.guitar.formats.tab_builder import Gathered, Said, Struck
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning
from slp_transformer.guitar.tab import FEWEST_STRINGS, MOST_STRINGS, Problem, Tab, Technique
from slp_transformer.guitar.theory import pitch_class

MOST_BYTES = 1 << 19
MOST_BEATS = 100_000
_PITCH = re.compile(r"([A-Ga-g])([#b]?)(-?\d)$")
LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128)
MARKS = {"h": "hammer", "ss": "slide", "sl": "slide", "nh": "harmonic", "ah": "harmonic"}
MARKS |= {"x": "dead", "lr": "let ring", "v": "vibrato", "vw": "vibrato"}
TUPLETS = {3: 2, 5: 4, 6: 4, 7: 4, 9: 8, 10: 8, 11: 8, 12: 8}
BEATS = ("d", "dd", "tu")


def read_alphatex(path: str | Path) -> tuple[Tab, list[Problem]]:
    """Read an alphaTex file.

    Returns:
        Its tab, and what of the file is not in it.

    Raises:
        ValueError: as `parse_alphatex`; or if there is no such file, or it is too large.
    """
    text = decode(content_of(path, "an alphaTex file", MOST_BYTES))
    try:
        return parse_alphatex(text, Path(path).name)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply.") from None


def parse_alphatex(text: str, source: str = "") -> tuple[Tab, list[Problem]]:
    """The tab that a text in alphaTex says.

    Args:
        text: the text.
        source: what to call it in `Tab.source` and in problems.

    Raises:
        ValueError: naming the line, where it cannot be understood.
    """
    reader = _Reader(list(tokens_of(text, source)), source or "alphaTex")
    reader.read()
    tab, told = reader.gathered.tab(reader.title, Tuning(reader.pitches, reader.capo), source)
    problems = [Problem(source, line, what) for what, line in reader.told.items()]
    return tab, problems + [Problem(source, 0, what) for what in told]


class _Reader(Cursor):
    """Reads tokens one after the other."""

    def __init__(self, tokens: list[Token], source: str):
        """Begin before the first bar."""
        super().__init__(tokens, source)
        self.gathered = Gathered()
        self.told: dict[str, int] = {}
        self.title, self.pitches, self.capo = "", STANDARD.open_pitches, 0
        self.voice, self.bar = 1, 0
        self.begin, self.now = Fraction(0), Fraction(0)
        self.metre = (4, 4)
        self.fresh: Said | None = None
        self.usual = Fraction(1)
        self.notes_begun, self.beats = False, 0

    def read(self) -> None:
        """Read everything."""
        while self.at < len(self.tokens):
            if token := self.take("tag"):
                self.tag(token)
            elif self.take("|"):
                self.close()
            elif token := self.take("range"):
                self.usual = self.lasting(int(token.text[1:]), self.effects())
            elif self.peek("note", "(") or self.rest_ahead():
                self.beat()
            elif not self.take("."):  # what older files have between head and music
                raise self.fail(f"{self.tokens[self.at].text[:30]!r} is not understood here")
        if self.notes_begun or (self.voice == 1 and self.fresh):
            self.close()
        if not self.gathered.bars:
            raise self.fail("there is no music in it")

    def rest_ahead(self) -> bool:
        """Whether a rest comes."""
        token = self.peek("word")
        return token is not None and token.text in ("r", "R")

    # --- What stands before notes -----------------------------------------------------------

    def tag(self, token: Token) -> None:
        """Read a tag and what belongs to it."""
        name = token.text[1:].lower()
        if name == "title":
            self.title = self.quoted()
        elif name == "tempo":
            tempo = self.number("a tempo")
            self.said().tempo = min(max(tempo, 1), 1000)
            self.take("string")
        elif name == "tuning":
            self.tuning()
        elif name == "capo":
            self.capo = self.number("a capo")
        elif name == "ts":
            self.time_signature()
        elif name == "ro":
            self.said().repeat_from = True
        elif name == "rc":
            self.said().repeats = self.number("how often to repeat")
        elif name == "ae":
            self.said().endings = tuple(sorted(set(self.numbers())))
        elif name == "voice":
            self.next_voice()
        elif name in ("track", "staff") and self.gathered.bars:
            self.told.setdefault("only the first staff is read", token.line)
            self.at = len(self.tokens)
        else:
            if name not in ("track", "staff", "instrument"):
                self.told.setdefault(f"\\{name[:30]} is left out", token.line)
            self.skip_arguments()

    def said(self) -> Said:
        """What is said of the bar at hand; nothing of what a second voice says counts."""
        if self.voice > 1:
            return Said(Fraction(4))
        if self.fresh is None:
            length = Fraction(4 * self.metre[0], self.metre[1])
            self.fresh = Said(length, self.metre)
        return self.fresh

    def quoted(self) -> str:
        """A string in quotation marks, or a word."""
        token = self.take("string", "word")
        if token is None:
            return ""
        inside = token.text[1:-1] if token.kind == "string" else token.text
        return re.sub(r"\\(.)", r"\1", inside)[:200]

    def time_signature(self) -> None:
        """A metre."""
        if (token := self.peek("word")) and token.text.lower() == "common":
            self.at += 1
            numbers = [4, 4]
        else:
            numbers = self.numbers()
        if len(numbers) != 2 or numbers[0] < 1 or numbers[1] not in (1, 2, 4, 8, 16, 32):
            raise self.fail("a metre should be two numbers, as in \\ts (6 8)")
        self.metre = numbers[0], numbers[1]
        said = self.said()
        said.metre, said.length = self.metre, Fraction(4 * numbers[0], numbers[1])

    def tuning(self) -> None:
        """The open strings, the highest first; E2 is the low E of a guitar."""
        self.take("(")
        pitches = []
        while (token := self.peek("word")) and (found := _PITCH.match(token.text)):
            letter, sign, octave = found.groups()
            pitch = pitch_class(letter.upper()) + {"": 0, "#": 1, "b": -1}[sign]
            pitches.append(12 * (int(octave) + 1) + pitch)
            self.at += 1
        self.take(")")
        while self.peek("word", "string"):
            self.at += 1
        if not FEWEST_STRINGS <= len(pitches) <= MOST_STRINGS:
            raise self.fail(f"a tuning has {FEWEST_STRINGS} to {MOST_STRINGS} strings")
        self.pitches = tuple(pitches)

    def skip_arguments(self) -> None:
        """Pass over what belongs to a tag that is not known."""
        while self.at < len(self.tokens):
            if self.peek("{") or (self.peek("(") and not self.chord_ahead()):
                self.skip_group()
            elif self.rest_ahead() or not self.take("word", "string"):
                return

    def chord_ahead(self) -> bool:
        """Whether a bracket begins a chord."""
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].kind == "note"

    # --- Notes ---------------------------------------------------------------------------------

    def close(self) -> None:
        """End a bar."""
        if self.voice == 1:
            said = self.said()
            said.length = max(said.length, self.now)
            self.gathered.bars.append(said)
        elif self.bar < len(self.gathered.bars):
            own = self.gathered.bars[self.bar].length
            self.now = min(self.now, own)
        else:
            raise self.fail("a second voice has more bars than the first")
        self.begin += self.gathered.bars[self.bar].length
        self.bar, self.now, self.fresh, self.notes_begun = self.bar + 1, Fraction(0), None, False

    def next_voice(self) -> None:
        """Begin another voice; what comes before the first is the first."""
        if not (self.gathered.bars or self.notes_begun):
            return
        if self.notes_begun:
            self.close()
        if self.voice == 2:
            raise self.fail("a tab has at most two voices")
        self.voice, self.bar, self.begin, self.now = 2, 0, Fraction(0), Fraction(0)

    def beat(self) -> None:
        """Read a rest, a note or a chord, with its length."""
        notes: list[tuple[Token, list[list[str]]]] = []
        effects: list[list[str]] = []
        if self.take("("):
            while token := self.take("note"):
                notes.append((token, self.effects()))
            if not self.take(")"):
                raise self.fail("a chord is not closed")
        elif token := self.take("note"):
            notes.append((token, self.effects()))
        else:
            self.at += 1  # the r of a rest
        if token := self.take("length"):
            self.usual = self.lasting(int(token.text[1:]), [])
        effects = self.effects()
        length = self.usual * self.stretch([*effects, *(notes[0][1] if len(notes) == 1 else [])])
        times = int(re.sub(r"\D", "", token.text)) if (token := self.take("times")) else 1
        alone = effects if len(notes) == 1 else []
        self.beats += times
        if self.beats > MOST_BEATS:
            raise self.fail(f"there are more than {MOST_BEATS:,} beats")
        for _ in range(times):
            for token, own in notes:
                self.note(token, [*own, *alone], length)
            self.now += length
        self.notes_begun = True

    def lasting(self, kind: int, effects: list[list[str]]) -> Fraction:
        """How many quarter notes a note value lasts."""
        if kind not in LENGTHS:
            raise self.fail(f"1/{kind} is no length of a note")
        return Fraction(4, kind) * self.stretch(effects)

    def stretch(self, effects: list[list[str]]) -> Fraction:
        """What dots and tuplets make of a length."""
        share = Fraction(1)
        for name, *numbers in effects:
            if name in ("d", "dd"):
                share *= Fraction(3, 2) if name == "d" else Fraction(7, 4)
            elif name == "tu" and numbers:
                enters = int(numbers[0])
                times = int(numbers[1]) if len(numbers) > 1 else TUPLETS.get(enters, 0)
                if not (1 <= enters <= 64 and 1 <= times <= 64):
                    raise self.fail(f"a tuplet of {' in '.join(numbers)[:30]} is not known")
                share *= Fraction(times, enters)
        return share

    def note(self, token: Token, effects: list[list[str]], length: Fraction) -> None:
        """Strike or hold a note."""
        fret, string = token.text.split(".")
        number, onset = int(string), self.begin + self.now
        if not 1 <= number <= len(self.pitches):
            raise self.fail(f"string {number} is none of {len(self.pitches)}")
        if fret == "-":
            struck = self.gathered.hold(onset, length, number, self.voice)
        else:
            at = Note(number, 0 if fret in "xX" else int(fret))
            struck = self.gathered.strike(Struck(onset, length, at, set(), self.voice))
            if fret in "xX":
                struck.techniques.add(Technique("dead"))
        for name, *numbers in effects:
            if struck is None or name in BEATS:
                continue
            if name in MARKS:
                struck.techniques.add(Technique(MARKS[name]))
            elif name in ("b", "be") and numbers:
                size = max(map(int, numbers[1::2] if name == "be" else numbers))
                struck.techniques.add(Technique("bend", min(max(size, 1), 24)))
            else:
                self.told.setdefault(f"{{{name[:30]}}} is left out", token.line)
