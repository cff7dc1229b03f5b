"""alphaTex, the text that alphaTab draws and plays in a browser, for one guitar.

Read are title, tempo, tuning, capo, time signatures, repeats and endings, voices, notes, chords
and rests with their lengths, and the marks of the techniques that a tab has. The rest is left out
and reported.
"""

import re
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from slp_transformer.guitar.ascii_reader import decode_text
from slp_transformer.guitar.formats.notation import (
    BarHeader,
    Beat,
    Measure,
    NoteEvent,
    TabBuilder,
    TiedNote,
    measures_from_tab,
)
from slp_transformer.guitar.formats.safe_read import read_bytes
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning, format_pitch, midi_program
from slp_transformer.guitar.tab import (
    MAX_STRINGS,
    MIN_STRINGS,
    ReadProblem,
    Tab,
    Technique,
    TechniqueKind,
)
from slp_transformer.guitar.tab_header import parse_pitches_with_octaves

EFFECT_OF_TECHNIQUE: dict[TechniqueKind, str] = {
    "hammer": "h",
    "pull": "h",
    "slide": "ss",
    "harmonic": "nh",
    "dead": "x",
    "let ring": "lr",
    "vibrato": "v",
}


def format_alphatex(tab: Tab) -> str:
    """Return a tab as alphaTex that ends in a line break.

    Strings are numbered as here, 1 for the highest. Open strings are without the capo, where E2
    is the low E of a guitar.

    Raises:
        ValueError: if the tab cannot be written down, has no bar or no time, or notes shorter than
            any note value.
    """
    measures = measures_from_tab(tab)
    title = " ".join(tab.title.split()).replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'\\title "{title}"'] if title else []
    lines += ['\\track "Guitar"', "\\staff {score tabs}"]
    lines.append(f"\\instrument {midi_program(tab.tuning)}")
    lines.append(f"\\tuning ({' '.join(map(format_pitch, tab.tuning.open_pitches))})")
    if tab.tuning.capo:
        lines.append(f"\\capo {tab.tuning.capo}")
    bars = [_format_bar_header(measure) + _format_beats(measure.voices[0]) for measure in measures]
    if any(measure.voices[1] for measure in measures):
        second = [_format_beats(measure.voices[1]) for measure in measures]
        lines += ["\\voice", " |\n".join(bars), "\\voice", " |\n".join(second)]
    else:
        lines.append(" |\n".join(bars))
    return "\n".join(lines) + "\n"


def _format_bar_header(measure: Measure) -> str:
    """Return the tags before the notes of a bar."""
    bar, tags = measure.bar, ""
    if bar.time_signature is not None:
        tags += "\\ts ({} {}) ".format(*bar.time_signature)
    if bar.tempo_bpm is not None:
        tags += f"\\tempo {bar.tempo_bpm} "
    if bar.starts_repeat:
        tags += "\\ro "
    if bar.endings:
        tags += f"\\ae ({' '.join(map(str, bar.endings))}) "
    if bar.num_plays > 1:
        tags += f"\\rc {bar.num_plays} "
    return tags


def _format_beats(beats: list[Beat]) -> str:
    """Return the beats of a bar: ``r.4 3.1.8 (0.6 2.4{h}).4{d}``."""
    written = []
    for value, tied_notes in beats:
        effects = ["d"] if value.is_dotted else []
        if value.tuplet_notes != value.tuplet_time:
            effects.append(f"tu ({value.tuplet_notes} {value.tuplet_time})")
        notes = " ".join(map(_format_note, tied_notes)) or "r"
        chord = f"({notes})" if len(tied_notes) > 1 or "{" in notes else notes
        written.append(f"{chord}.{value.denominator}{_format_effects(effects)}")
    return " ".join(written) or "r.1"


def _format_note(tied: TiedNote) -> str:
    """Return one note: ``3.1``, or ``-.1`` if it is held on, and how it is played."""
    string, fret = tied.tab_note.note
    effects = [
        f"b (0 {max(1, size)})" if kind == "bend" else EFFECT_OF_TECHNIQUE[kind]
        for kind, size in tied.techniques
    ]
    return f"{fret if tied.is_struck else '-'}.{string}{_format_effects(effects)}"


def _format_effects(effects: list[str]) -> str:
    """Return effects in braces, or nothing if there are none."""
    return f"{{{' '.join(effects)}}}" if effects else ""


# --- Reading --------------------------------------------------------------------------------------

MAX_FILE_BYTES = 1 << 19
MAX_BEATS = 100_000
_TOKEN_PATTERN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*(?s:.*?)\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<tag>\\[A-Za-z]+)
      | (?P<note>(?:\d{1,2}|[xX-])\.\d{1,2})
      | (?P<length>\.\d{1,3}(?!\d))
      | (?P<range>:\d{1,3})
      | (?P<times>\*\s*\d{1,3})
      | (?P<mark>[(){}|.])
      | (?P<rest>[rR](?![^\s(){}|"'\\:*.]))
      | (?P<word>[^\s(){}|"'\\:*.]+)""",
    re.VERBOSE,
)
_INTEGER_PATTERN = re.compile(r"-?\d{1,6}")
NOTE_VALUE_DENOMINATORS = (1, 2, 4, 8, 16, 32, 64, 128)
TUPLET_TIMES = {3: 2, 5: 4, 6: 4, 7: 4, 9: 8, 10: 8, 11: 8, 12: 8}
BEAT_EFFECTS = ("d", "dd", "tu")
TECHNIQUE_OF_EFFECT: dict[str, TechniqueKind] = {
    "h": "hammer",
    "ss": "slide",
    "sl": "slide",
    "nh": "harmonic",
    "ah": "harmonic",
    "x": "dead",
    "lr": "let ring",
    "v": "vibrato",
    "vw": "vibrato",
}


class _Token(NamedTuple):
    """A token: its kind (for a bracket or bar line, itself), its text and its line."""

    kind: str
    text: str
    line: int


_Effects = list[tuple[str, list[int]]]


def read_alphatex(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read an alphaTex file.

    Returns:
        Its one tab, and what of the file is not in it.

    Raises:
        ValueError: as `parse_alphatex`; or if there is no such file, or it is too large.
    """
    text = decode_text(read_bytes(path, "an alphaTex file", MAX_FILE_BYTES))
    tab, problems = parse_alphatex(text, Path(path).name)
    return [tab], problems


def parse_alphatex(text: str, source_name: str = "") -> tuple[Tab, list[ReadProblem]]:
    """Parse a text in alphaTex.

    Args:
        text: the text.
        source_name: what to call it in `Tab.source` and in problems.

    Returns:
        Its tab, and what of the text is not in it.

    Raises:
        ValueError: naming the line, where it cannot be understood.
    """
    parser = _AlphaTexParser(text, source_name or "alphaTex")
    parser.parse()
    tuning = Tuning(parser.pitches, parser.capo)
    tab, omissions = parser.builder.build_tab(parser.title, tuning, source_name)
    problems = [ReadProblem(source_name, line, what) for what, line in parser.warnings.items()]
    return tab, problems + [ReadProblem(source_name, 0, what) for what in omissions]


class _AlphaTexParser:
    """Reads tokens one after the other into a `TabBuilder`."""

    def __init__(self, text: str, source_name: str):
        """Split the text into tokens and begin before the first bar."""
        self.source_name = source_name
        self.tokens = self.tokenize(text)
        self.index = 0
        self.builder = TabBuilder()
        self.warnings: dict[str, int] = {}
        self.title, self.pitches, self.capo = "", STANDARD.open_pitches, 0
        self.time_signature = (4, 4)
        self.length, self.num_beats = Fraction(1), 0
        self.begin_voice(1)

    def tokenize(self, text: str) -> list[_Token]:
        """Return the tokens of a text, and one for its end.

        Raises:
            ValueError: for what is none, naming the line.
        """
        tokens, place, line = [], 0, 1
        while place < len(text):
            found = _TOKEN_PATTERN.match(text, place)
            if found is None:
                raise ValueError(
                    f"{self.source_name}:{line}: {text[place]!r} is not understood here."
                )
            if kind := {"space": "", "mark": found[0]}.get(found.lastgroup or "", found.lastgroup):
                tokens.append(_Token(kind, found[0], line))
            line += found[0].count("\n")
            place = found.end()
        last_line = tokens[-1].line if tokens else 1
        return [*tokens, _Token("end", "", last_line)]

    def error(self, message: str) -> ValueError:
        """Return the error of not understanding the next token."""
        return ValueError(f"{self.source_name}:{self.tokens[self.index].line}: {message}.")

    def peek(self, *kinds: str) -> _Token | None:
        """Return the next token, if it is of one of these kinds."""
        token = self.tokens[self.index]
        return token if token.kind in kinds else None

    def take(self, *kinds: str) -> _Token | None:
        """Return the next token and go on, if it is of one of these kinds."""
        token = self.peek(*kinds)
        self.index += token is not None
        return token

    def parse(self) -> None:
        """Read everything."""
        while not self.peek("end"):
            if token := self.take("tag"):
                self.parse_tag(token)
            elif self.take("|"):
                self.finish_bar()
            elif token := self.take("range"):
                self.length = self.beat_duration(token.text, self.parse_effects())
            elif self.peek("note", "(", "rest"):
                self.parse_beat()
            elif not self.take("."):  # what older files have between head and music
                text = self.tokens[self.index].text[:30]
                raise self.error(f"{text!r} is not understood here")
        if self.has_notes:
            self.finish_bar()
        if not self.builder.bars:
            raise self.error("there is no music in it")

    # --- Before the notes ------------------------------------------------------------------

    def parse_tag(self, token: _Token) -> None:
        """Read a tag and what belongs to it."""
        match token.text[1:].lower():
            case "title":
                if title := self.take("string", "word", "rest"):
                    inside = title.text[1:-1] if title.kind == "string" else title.text
                    self.title = re.sub(r"\\(.)", r"\1", inside)[:200]
            case "tempo":
                self.header.tempo = min(max(self.parse_number("a tempo"), 1), 1000)
                self.take("string")
            case "tuning":
                self.parse_tuning()
            case "capo":
                self.capo = self.parse_number("a capo")
            case "ts":
                self.parse_time_signature()
            case "ro":
                self.header.starts_repeat = True
            case "rc":
                self.header.num_plays = self.parse_number("how often to repeat")
            case "ae":
                self.header.endings = tuple(sorted(set(self.parse_numbers())))
            case "voice" if self.builder.bars or self.has_notes:
                if self.has_notes:
                    self.finish_bar()
                if self.voice == 2:
                    raise self.error("a tab has at most two voices")
                self.begin_voice(2)
            case "voice":
                pass
            case "track" | "staff" if self.builder.bars:
                self.warnings.setdefault("only the first staff is read", token.line)
                self.index = len(self.tokens) - 1
            case name:
                if name not in ("track", "staff", "instrument"):
                    self.warnings.setdefault(f"\\{name[:30]} is left out", token.line)
                self.skip_tag_arguments()

    def parse_numbers(self) -> list[int]:
        """Return some whole numbers, in brackets (with words between them) or not."""
        in_brackets, numbers = self.take("("), []
        while token := self.peek("word", *(("string",) if in_brackets else ())):
            if _INTEGER_PATTERN.fullmatch(token.text):
                numbers.append(int(token.text))
            elif not in_brackets:
                break
            self.index += 1
        if in_brackets and not self.take(")"):
            raise self.error("a bracket is not closed")
        return numbers

    def parse_number(self, expected: str) -> int:
        """Return a whole number that is not negative.

        Raises:
            ValueError: if none comes.
        """
        numbers = self.parse_numbers()
        if not numbers or numbers[0] < 0:
            raise self.error(f"{expected} should be a whole number")
        return numbers[0]

    def parse_time_signature(self) -> None:
        """Read a time signature."""
        token = self.peek("word")
        is_common = token is not None and token.text.lower() == "common"
        self.index += is_common
        numbers = [4, 4] if is_common else self.parse_numbers()
        if len(numbers) != 2 or numbers[0] < 1 or numbers[1] not in (1, 2, 4, 8, 16, 32):
            raise self.error("a time signature should be two numbers, as in \\ts (6 8)")
        self.time_signature = self.header.time_signature = numbers[0], numbers[1]
        self.header.length_quarters = Fraction(4 * numbers[0], numbers[1])

    def parse_tuning(self) -> None:
        """Read the open strings, the highest first; E2 is the low E of a guitar."""
        self.take("(")
        words = []
        while token := self.take("word", "string"):
            words.append(token.text)
        pitches = parse_pitches_with_octaves(" ".join(words))
        self.take(")")
        if not MIN_STRINGS <= len(pitches) <= MAX_STRINGS:
            raise self.error(f"a tuning has {MIN_STRINGS} to {MAX_STRINGS} strings")
        self.pitches = tuple(pitches)

    def skip_tag_arguments(self) -> None:
        """Pass over what belongs to a tag that is not known.

        Raises:
            ValueError: if a bracket is not closed.
        """
        depth = 0
        while True:
            is_chord = self.peek("(") and self.tokens[self.index + 1].kind == "note"
            if depth and self.peek("end"):
                raise self.error("a bracket is not closed")
            if depth == 0 and (is_chord or not self.peek("{", "(", "word", "string")):
                return
            token = self.tokens[self.index]
            depth += (token.kind in "({") - (token.kind in ")}")
            self.index += 1

    # --- Notes ---------------------------------------------------------------------------------

    def begin_voice(self, voice: int) -> None:
        """Go to the beginning of the piece, in voice 1 or 2."""
        self.voice, self.bar_index, self.bar_start = voice, 0, Fraction(0)
        self.begin_bar()

    def begin_bar(self) -> None:
        """Begin a bar in the time signature in force; a second voice has no use for its header."""
        beats, unit = self.time_signature
        self.header = BarHeader(Fraction(4 * beats, unit), self.time_signature)
        self.elapsed, self.has_notes = Fraction(0), False

    def finish_bar(self) -> None:
        """End a bar."""
        bars = self.builder.bars
        if self.voice == 1:
            self.header.length_quarters = max(self.header.length_quarters, self.elapsed)
            bars.append(self.header)
        elif self.bar_index >= len(bars):
            raise self.error("a second voice has more bars than the first")
        self.bar_start += bars[self.bar_index].length_quarters
        self.bar_index += 1
        self.begin_bar()

    def parse_beat(self) -> None:
        """Read a rest, a note or a chord, with its length."""
        notes: list[tuple[_Token, _Effects]] = []
        is_chord = self.take("(")
        while token := self.take("note"):
            notes.append((token, self.parse_effects()))
            if not is_chord:
                break
        if is_chord and not self.take(")"):
            raise self.error("a chord is not closed")
        if not is_chord and not notes:
            self.take("rest")
        if token := self.take("length"):
            self.length = self.beat_duration(token.text, [])
        effects = self.parse_effects()
        if len(notes) == 1:
            effects += notes[0][1]
            notes = [(notes[0][0], effects)]
        length = self.length * self.tuplet_ratio(effects)
        times = int(token.text[1:]) if (token := self.take("times")) else 1
        self.num_beats += times
        if self.num_beats > MAX_BEATS:
            raise self.error(f"there are more than {MAX_BEATS:,} beats")
        for _ in range(times):
            for token, own in notes:
                self.parse_note(token, own, length)
            self.elapsed += length
        self.has_notes = True

    def parse_effects(self) -> _Effects:
        """Return the effects in braces, each with its numbers.

        Raises:
            ValueError: if they are not closed.
        """
        effects: _Effects = []
        while self.take("{"):
            while not self.take("}"):
                token = self.take("word", "rest", "string", "(", ")", "note", "length", ".")
                if token is None:
                    raise self.error("braces are not closed")
                if token.kind == "word" and not _INTEGER_PATTERN.fullmatch(token.text):
                    effects.append((token.text.lower(), []))
                elif token.kind == "word" and effects:
                    effects[-1][1].append(int(token.text))
        return effects

    def beat_duration(self, text: str, effects: _Effects) -> Fraction:
        """Return a note value (``.8`` or ``:8``) in quarter notes."""
        denominator = int(text[1:])
        if denominator not in NOTE_VALUE_DENOMINATORS:
            raise self.error(f"1/{denominator} is no length of a note")
        return Fraction(4, denominator) * self.tuplet_ratio(effects)

    def tuplet_ratio(self, effects: _Effects) -> Fraction:
        """Return the factor of dots and tuplets."""
        factor = Fraction(1)
        for name, numbers in effects:
            if name in ("d", "dd"):
                factor *= Fraction(3, 2) if name == "d" else Fraction(7, 4)
            elif name == "tu" and numbers:
                enters = numbers[0]
                times = numbers[1] if len(numbers) > 1 else TUPLET_TIMES.get(enters, 0)
                if not (1 <= enters <= 64 and 1 <= times <= 64):
                    raise self.error(f"a tuplet of {enters} in {times} is not known")
                factor *= Fraction(times, enters)
        return factor

    def parse_note(self, token: _Token, effects: _Effects, duration: Fraction) -> None:
        """Strike or hold a note."""
        fret, string = token.text.split(".")
        number, onset = int(string), self.bar_start + self.elapsed
        if not 1 <= number <= len(self.pitches):
            raise self.error(f"string {number} is none of {len(self.pitches)}")
        if fret == "-":
            struck = self.builder.extend_tied_note(onset, duration, number, self.voice)
            if struck is None:
                return
        else:
            is_dead = fret in "xX"
            techniques = {Technique("dead")} if is_dead else set()
            note = Note(number, 0 if is_dead else int(fret))
            struck = NoteEvent(onset, duration, note, techniques, self.voice)
            self.builder.add_note(struck)
        for name, numbers in effects:
            if name in TECHNIQUE_OF_EFFECT:
                struck.techniques.add(Technique(TECHNIQUE_OF_EFFECT[name]))
            elif name in ("b", "be") and numbers:
                size = max(numbers[1::2] if name == "be" else numbers, default=0)
                struck.techniques.add(Technique("bend", min(max(size, 1), 24)))
            elif name not in BEAT_EFFECTS:
                self.warnings.setdefault(f"{{{name[:30]}}} is left out", token.line)
