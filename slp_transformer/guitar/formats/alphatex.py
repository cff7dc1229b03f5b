"""alphaTex, read: the part of it that says what is played on one guitar.

Known are title, tempo, tuning, capo, time signatures, repeats and endings, voices, notes, chords
and rests with their lengths, and the marks of the techniques that a tab has. The rest is left out
and reported.
"""

import re
from fractions import Fraction
from pathlib import Path

from slp_transformer.guitar.ascii_reader import decode_text
from slp_transformer.guitar.formats.alphatex_tokens import Token, TokenCursor, tokenize_alphatex
from slp_transformer.guitar.formats.safe_read import read_bytes
from slp_transformer.guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning
from slp_transformer.guitar.tab import MAX_STRINGS, MIN_STRINGS, ReadProblem, Tab, Technique
from slp_transformer.guitar.theory import parse_pitch_class

MAX_FILE_BYTES = 1 << 19
MAX_BEATS = 100_000
_PITCH_PATTERN = re.compile(r"([A-Ga-g])([#b]?)(-?\d)$")
NOTE_VALUE_DENOMINATORS = (1, 2, 4, 8, 16, 32, 64, 128)
TECHNIQUE_OF_EFFECT = {
    "h": "hammer",
    "ss": "slide",
    "sl": "slide",
    "nh": "harmonic",
    "ah": "harmonic",
}
TECHNIQUE_OF_EFFECT |= {"x": "dead", "lr": "let ring", "v": "vibrato", "vw": "vibrato"}
TUPLET_RATIOS = {3: 2, 5: 4, 6: 4, 7: 4, 9: 8, 10: 8, 11: 8, 12: 8}
BEAT_EFFECTS = ("d", "dd", "tu")


def read_alphatex(path: str | Path) -> tuple[Tab, list[ReadProblem]]:
    """Read an alphaTex file.

    Returns:
        Its tab, and what of the file is not in it.

    Raises:
        ValueError: as `parse_alphatex`; or if there is no such file, or it is too large.
    """
    text = decode_text(read_bytes(path, "an alphaTex file", MAX_FILE_BYTES))
    try:
        return parse_alphatex(text, Path(path).name)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply.") from None


def parse_alphatex(text: str, source_name: str = "") -> tuple[Tab, list[ReadProblem]]:
    """The tab that a text in alphaTex says.

    Args:
        text: the text.
        source_name: what to call it in `Tab.source` and in problems.

    Raises:
        ValueError: naming the line, where it cannot be understood.
    """
    reader = _AlphaTexParser(list(tokenize_alphatex(text, source_name)), source_name or "alphaTex")
    reader.parse()
    tab, omissions = reader.builder.build_tab(
        reader.title, Tuning(reader.pitches, reader.capo), source_name
    )
    problems = [ReadProblem(source_name, line, what) for what, line in reader.warnings.items()]
    return tab, problems + [ReadProblem(source_name, 0, what) for what in omissions]


class _AlphaTexParser(TokenCursor):
    """Reads tokens one after the other."""

    def __init__(self, tokens: list[Token], source_name: str):
        """Begin before the first bar."""
        super().__init__(tokens, source_name)
        self.builder = TabBuilder()
        self.warnings: dict[str, int] = {}
        self.title, self.pitches, self.capo = "", STANDARD.open_pitches, 0
        self.voice, self.current_bar = 1, 0
        self.bar_start, self.elapsed = Fraction(0), Fraction(0)
        self.bar_time_signature = (4, 4)
        self.bar_header: BarHeader | None = None
        self.length = Fraction(1)
        self.has_notes, self.num_beats = False, 0

    def parse(self) -> None:
        """Read everything."""
        while self.token_index < len(self.tokens):
            if token := self.next_token("tag"):
                self.parse_tag(token)
            elif self.next_token("|"):
                self.finish_bar()
            elif token := self.next_token("range"):
                self.length = self.beat_duration(int(token.text[1:]), self.parse_effects())
            elif self.peek("note", "(") or self.is_rest_next():
                self.parse_beat()
            elif not self.next_token("."):  # what older files have between head and music
                raise self.error(
                    f"{self.tokens[self.token_index].text[:30]!r} is not understood here"
                )
        if self.has_notes or (self.voice == 1 and self.bar_header):
            self.finish_bar()
        if not self.builder.bars:
            raise self.error("there is no music in it")

    def is_rest_next(self) -> bool:
        """Return whether a rest comes."""
        token = self.peek("word")
        return token is not None and token.text in ("r", "R")

    # --- Before the notes ------------------------------------------------------------------

    def parse_tag(self, token: Token) -> None:
        """Read a tag and what belongs to it."""
        name = token.text[1:].lower()
        if name == "title":
            self.title = self.parse_string()
        elif name == "tempo":
            tempo = self.parse_number("a tempo")
            self.current_bar_header().tempo = min(max(tempo, 1), 1000)
            self.next_token("string")
        elif name == "tuning":
            self.parse_tuning()
        elif name == "capo":
            self.capo = self.parse_number("a capo")
        elif name == "ts":
            self.parse_time_signature()
        elif name == "ro":
            self.current_bar_header().starts_repeat = True
        elif name == "rc":
            self.current_bar_header().num_plays = self.parse_number("how often to repeat")
        elif name == "ae":
            self.current_bar_header().endings = tuple(sorted(set(self.parse_numbers())))
        elif name == "voice":
            self.begin_next_voice()
        elif name in ("track", "staff") and self.builder.bars:
            self.warnings.setdefault("only the first staff is read", token.line)
            self.token_index = len(self.tokens)
        else:
            if name not in ("track", "staff", "instrument"):
                self.warnings.setdefault(f"\\{name[:30]} is left out", token.line)
            self.skip_tag_arguments()

    def current_bar_header(self) -> BarHeader:
        """Return the header of the current bar; a second voice has no influence on it."""
        if self.voice > 1:
            return BarHeader(Fraction(4))
        if self.bar_header is None:
            length = Fraction(4 * self.bar_time_signature[0], self.bar_time_signature[1])
            self.bar_header = BarHeader(length, self.bar_time_signature)
        return self.bar_header

    def parse_string(self) -> str:
        """A string in quotation marks, or a word."""
        token = self.next_token("string", "word")
        if token is None:
            return ""
        inside = token.text[1:-1] if token.token_kind == "string" else token.text
        return re.sub(r"\\(.)", r"\1", inside)[:200]

    def parse_time_signature(self) -> None:
        """Parse a time signature."""
        if (token := self.peek("word")) and token.text.lower() == "common":
            self.token_index += 1
            numbers = [4, 4]
        else:
            numbers = self.parse_numbers()
        if len(numbers) != 2 or numbers[0] < 1 or numbers[1] not in (1, 2, 4, 8, 16, 32):
            raise self.error("a time signature should be two numbers, as in \\ts (6 8)")
        self.bar_time_signature = numbers[0], numbers[1]
        header = self.current_bar_header()
        header.time_signature = self.bar_time_signature
        header.length_quarters = Fraction(4 * numbers[0], numbers[1])

    def parse_tuning(self) -> None:
        """The open strings, the highest first; E2 is the low E of a guitar."""
        self.next_token("(")
        pitches = []
        while (token := self.peek("word")) and (found := _PITCH_PATTERN.match(token.text)):
            letter, sign, octave = found.groups()
            pitch = parse_pitch_class(letter.upper()) + {"": 0, "#": 1, "b": -1}[sign]
            pitches.append(12 * (int(octave) + 1) + pitch)
            self.token_index += 1
        self.next_token(")")
        while self.peek("word", "string"):
            self.token_index += 1
        if not MIN_STRINGS <= len(pitches) <= MAX_STRINGS:
            raise self.error(f"a tuning has {MIN_STRINGS} to {MAX_STRINGS} strings")
        self.pitches = tuple(pitches)

    def skip_tag_arguments(self) -> None:
        """Pass over what belongs to a tag that is not known."""
        while self.token_index < len(self.tokens):
            if self.peek("{") or (self.peek("(") and not self.is_chord_next()):
                self.skip_group()
            elif self.is_rest_next() or not self.next_token("word", "string"):
                return

    def is_chord_next(self) -> bool:
        """Return whether a bracket begins a chord."""
        return (
            self.token_index + 1 < len(self.tokens)
            and self.tokens[self.token_index + 1].token_kind == "note"
        )

    # --- Notes ---------------------------------------------------------------------------------

    def finish_bar(self) -> None:
        """End a bar."""
        if self.voice == 1:
            header = self.current_bar_header()
            header.length_quarters = max(header.length_quarters, self.elapsed)
            self.builder.bars.append(header)
        elif self.current_bar < len(self.builder.bars):
            own = self.builder.bars[self.current_bar].length_quarters
            self.elapsed = min(self.elapsed, own)
        else:
            raise self.error("a second voice has more bars than the first")
        self.bar_start += self.builder.bars[self.current_bar].length_quarters
        self.current_bar, self.elapsed = self.current_bar + 1, Fraction(0)
        self.bar_header, self.has_notes = None, False

    def begin_next_voice(self) -> None:
        """Begin another voice; what comes before the first is the first."""
        if not (self.builder.bars or self.has_notes):
            return
        if self.has_notes:
            self.finish_bar()
        if self.voice == 2:
            raise self.error("a tab has at most two voices")
        self.voice, self.current_bar = 2, 0
        self.bar_start, self.elapsed = Fraction(0), Fraction(0)

    def parse_beat(self) -> None:
        """Read a rest, a note or a chord, with its length."""
        notes: list[tuple[Token, list[list[str]]]] = []
        effects: list[list[str]] = []
        if self.next_token("("):
            while token := self.next_token("note"):
                notes.append((token, self.parse_effects()))
            if not self.next_token(")"):
                raise self.error("a chord is not closed")
        elif token := self.next_token("note"):
            notes.append((token, self.parse_effects()))
        else:
            self.token_index += 1  # the r of a rest
        if token := self.next_token("length"):
            self.length = self.beat_duration(int(token.text[1:]), [])
        effects = self.parse_effects()
        own = notes[0][1] if len(notes) == 1 else []
        length = self.length * self.tuplet_ratio([*effects, *own])
        times = int(re.sub(r"\D", "", token.text)) if (token := self.next_token("times")) else 1
        alone = effects if len(notes) == 1 else []
        self.num_beats += times
        if self.num_beats > MAX_BEATS:
            raise self.error(f"there are more than {MAX_BEATS:,} beats")
        for _ in range(times):
            for token, own in notes:
                self.parse_note(token, [*own, *alone], length)
            self.elapsed += length
        self.has_notes = True

    def beat_duration(self, denominator: int, effects: list[list[str]]) -> Fraction:
        """Return a note value in quarter notes."""
        if denominator not in NOTE_VALUE_DENOMINATORS:
            raise self.error(f"1/{denominator} is no length of a note")
        return Fraction(4, denominator) * self.tuplet_ratio(effects)

    def tuplet_ratio(self, effects: list[list[str]]) -> Fraction:
        """Return the factor of dots and tuplets."""
        share = Fraction(1)
        for name, *numbers in effects:
            if name in ("d", "dd"):
                share *= Fraction(3, 2) if name == "d" else Fraction(7, 4)
            elif name == "tu" and numbers:
                enters = int(numbers[0])
                times = int(numbers[1]) if len(numbers) > 1 else TUPLET_RATIOS.get(enters, 0)
                if not (1 <= enters <= 64 and 1 <= times <= 64):
                    raise self.error(f"a tuplet of {' in '.join(numbers)[:30]} is not known")
                share *= Fraction(times, enters)
        return share

    def parse_note(self, token: Token, effects: list[list[str]], duration: Fraction) -> None:
        """Strike or hold a note."""
        fret, string = token.text.split(".")
        number, onset = int(string), self.bar_start + self.elapsed
        if not 1 <= number <= len(self.pitches):
            raise self.error(f"string {number} is none of {len(self.pitches)}")
        if fret == "-":
            struck = self.builder.extend_tied_note(onset, duration, number, self.voice)
        else:
            at = Note(number, 0 if fret in "xX" else int(fret))
            struck = self.builder.add_note(NoteEvent(onset, duration, at, set(), self.voice))
            if fret in "xX":
                struck.techniques.add(Technique("dead"))
        for name, *numbers in effects:
            if struck is None or name in BEAT_EFFECTS:
                continue
            if name in TECHNIQUE_OF_EFFECT:
                struck.techniques.add(Technique(TECHNIQUE_OF_EFFECT[name]))
            elif name in ("b", "be") and numbers:
                size = max(map(int, numbers[1::2] if name == "be" else numbers))
                struck.techniques.add(Technique("bend", min(max(size, 1), 24)))
            else:
                self.warnings.setdefault(f"{{{name[:30]}}} is left out", token.line)
