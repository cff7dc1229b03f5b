"""alphaTex, the text that alphaTab draws and plays in a browser.

Read are title, tracks, tempo, tuning, capo, time signatures, repeats and endings, voices, notes,
chords and rests with their lengths, and the marks of the techniques that a tab has. The rest is
left out and reported.
"""

import re
from fractions import Fraction
from itertools import chain
from pathlib import Path

from slp_guitar.bounds import MAX_FILE_BYTES, check_score_moment, max_notes_of_file
from slp_guitar.formats import tab_builder
from slp_guitar.formats.notation import (
    NOTE_VALUE_DENOMINATORS,
    Beat,
    Measure,
    TiedNote,
    check_tracks_have_same_bars,
    measures_from_tab,
)
from slp_guitar.formats.safe_read import decode_text, read_bytes
from slp_guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder
from slp_guitar.formats.unread import Contents
from slp_guitar.fretboard import STANDARD, Note, Tuning, format_pitch, midi_program
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.tab import KEYS, MAX_STRINGS, MIN_STRINGS, ReadProblem, Tab, Technique, is_meter
from slp_guitar.tab_header import parse_pitches_with_octaves
from slp_guitar.techniques import TECHNIQUES, find_technique

OF_BEATS = {kind for kind, signs in TECHNIQUES.items() if signs.is_of_beat}


def format_alphatex(*tracks: Tab) -> str:
    """Return tabs that play together as alphaTex that ends in a line break.

    Strings are numbered as here, 1 for the highest. Open strings are without the capo, where E2
    is the low E of a guitar.

    Raises:
        ValueError: if a tab cannot be written down, has no bar or no time, or notes shorter than
            any note value; or the tracks' bars are not of the same lengths.
    """
    check_tracks_have_same_bars(tracks)
    title = _quote_string(tracks[0].title)
    lines = [f"\\title {title}"] if title != '""' else []
    for number, tab in enumerate(tracks):
        measures = measures_from_tab(tab)
        lines += [f"\\track {_quote_string(tab.track or 'Guitar')}", "\\staff {score tabs}"]
        lines.append(f"\\instrument {midi_program(tab.tuning)}")
        lines.append(f"\\tuning ({' '.join(map(format_pitch, tab.tuning.open_pitches))})")
        if tab.tuning.capo:
            lines.append(f"\\capo {tab.tuning.capo}")
        bars = [
            ("" if number else _format_bar_header(measure)) + _format_beats(measure.voices[0])
            for measure in measures
        ]
        if any(measure.voices[1] for measure in measures):
            second = [_format_beats(measure.voices[1]) for measure in measures]
            lines += ["\\voice", " |\n".join(bars), "\\voice", " |\n".join(second)]
        else:
            lines.append(" |\n".join(bars))
    return "\n".join(lines) + "\n"


def _quote_string(text: str) -> str:
    """Return a text in one line as alphaTex has strings."""
    return '"' + " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _format_bar_header(measure: Measure) -> str:
    """Return the tags before the notes of a bar."""
    bar, tags = measure.bar, ""
    if bar.time_signature is not None:
        tags += "\\ts ({} {}) ".format(*bar.time_signature)
    if bar.key:
        tags += f"\\ks {bar.key[:-1] + 'minor' if KEYS[bar.key][1] else bar.key} "
    if bar.tempo_bpm is not None:
        tags += f"\\tempo {bar.tempo_bpm} "
    if bar.starts_repeat:
        tags += "\\ro "
    if bar.endings:
        tags += f"\\ae ({' '.join(map(str, bar.endings))}) "
    if bar.num_plays > 1:
        tags += f"\\rc {bar.num_plays} "
    for sign in bar.signs:
        tags += f"\\jump {sign.replace('DaSegno', 'DalSegno')} "
    return tags


def _format_beats(beats: list[Beat]) -> str:
    """Return the beats of a bar: ``r.4 3.1.8 (0.6 2.4{h}).4{d}``."""
    written = []
    for value, tied_notes, tempo_bpm in beats:
        effects = ["d"] if value.is_dotted else []
        effects += [f"tempo {tempo_bpm}"] if tempo_bpm else []
        kinds = {technique.kind for tied in tied_notes for technique in tied.techniques}
        effects += [TECHNIQUES[k].alphatex[0] for k in TECHNIQUES if k in kinds & OF_BEATS]
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
        f"b (0 {max(1, size)})" if kind == "bend" else TECHNIQUES[kind].alphatex[0]
        for kind, size in tied.techniques
        if kind == "bend" or TECHNIQUES[kind].alphatex and kind not in OF_BEATS
    ]
    return f"{fret if tied.is_struck else '-'}.{string}{_format_effects(effects)}"


def _format_effects(effects: list[str]) -> str:
    """Return effects in braces, or nothing if there are none."""
    return f"{{{' '.join(effects)}}}" if effects else ""


# --- Reading --------------------------------------------------------------------------------------

MAX_TUPLET = 96
TUPLET_TIMES = {3: 2, 5: 4, 6: 4, 7: 4, 9: 8, 10: 8, 11: 8, 12: 8}
KEYS_IN_ALPHATEX = {name.lower().replace("m", "minor"): name for name in KEYS}
CONTENTS = Contents("alphatex")
_STRING = r""" (?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*') """
_EFFECTS = r""" (?:\s*\{(?:[^{}"]|"[^"\n]*")*\})* """
_PLACE = r""" (?:\d{1,2}|[xX-])\.\d{1,2}(?!\d) """
_WORD = rf""" (?!{_PLACE}|[rR](?:$|[\s.|{{*])) [^\s(){{}}|"'\\:*.]+ """
_ARGUMENT = rf""" (?:{_STRING}|{_WORD}|\{{[^{{}}]*\}}|\((?!\s*{_PLACE})[^()]*\)) """
_ITEM_PATTERN = re.compile(
    rf"""(?P<space>\s+|//[^\n]*|/\*(?s:.*?)\*/|\.(?!\d))
      | \\(?P<tag>[A-Za-z]+) (?P<arguments>(?:\s*{_ARGUMENT})*)
      | (?P<bar>\|)
      | :(?P<range>\d{{1,3}}) (?P<range_effects>{_EFFECTS})
      | (?P<beat>(?P<note>{_PLACE}{_EFFECTS}) | \((?P<chord>\s*(?:{_PLACE}{_EFFECTS}\s*)*)\) | [rR])
        (?:\s*\.(?P<length>\d{{1,3}}))? (?P<effects>{_EFFECTS}) (?:\s*\*\s*(?P<times>\d{{1,3}}))?
        (?=$|[\s(){{|.\\:/])""",
    re.VERBOSE,
)
_NOTE_PATTERN = re.compile(rf"([\dxX-]+)\.(\d+)({_EFFECTS})", re.VERBOSE)
_STRING_PATTERN = re.compile(_STRING, re.VERBOSE)

_Effects = list[tuple[str, list[int]]]


def read_alphatex_tabs(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read an alphaTex file.

    Returns:
        A tab for each track, and what of the file is not in them.

    Raises:
        ValueError: as `parse_alphatex_tabs`; or if there is no such file, or it is too large.
    """
    text = decode_text(read_bytes(path, "an alphaTex file", MAX_FILE_BYTES["alphaTex"]))
    return parse_alphatex_tabs(text, Path(path).name)


def parse_alphatex_tabs(text: str, source_name: str = "") -> tuple[list[Tab], list[ReadProblem]]:
    """Parse a text in alphaTex.

    Args:
        text: the text.
        source_name: what to call it in `Tab.source` and in problems.

    Returns:
        A tab for each track or staff, and what of the text is not in them.

    Raises:
        ValueError: naming the line, where it cannot be understood.
    """
    parser = _AlphaTexParser(text, source_name)
    parser.parse()
    return tab_builder.build_tabs(source_name, parser.title, parser.finished)


class _AlphaTexParser:
    """Reads one item after the other into a `TabBuilder` for each track."""

    def __init__(self, text: str, source_name: str):
        """Begin before the first bar."""
        self.text, self.source_name = text, source_name
        self.position = 0
        self.finished: list[TabBuilder] = []
        self.title, self.num_beats = "", 0
        self.max_beats: int = max_notes_of_file(len(text))
        self.time_signature = (4, 4)
        self.reset_track()

    def error(self, message: str) -> ValueError:
        """Return the error of not understanding the item at hand."""
        line_number = self.text.count("\n", 0, self.position) + 1
        return ValueError(f"{self.source_name or 'alphaTex'}:{line_number}: {message}.")

    def leave_out(self, name: str, *other_names: str) -> None:
        """Keep that something is left out, unless it may be skipped."""
        if CONTENTS.leaves_out(name, *other_names):
            self.builder.omissions.record_unread([name[:30]], self.bar_index + 1)

    def parse(self) -> None:
        """Read everything."""
        while self.position < len(self.text):
            found = _ITEM_PATTERN.match(self.text, self.position)
            if found is None:
                word = self.text[self.position :].split()[0][:30]
                raise self.error(f"{word!r} is not understood here")
            if found["tag"]:
                name = found["tag"].lower()
                if name in ("track", "staff") and (self.bar_index or self.has_notes):
                    self.commit_track()
                self.parse_tag(name, found["arguments"])
            elif found["bar"]:
                self.commit_bar()
            elif found["range"]:
                effects = _parse_effects(found["range_effects"])
                self.length = self.beat_duration(found["range"]) * self.tuplet_ratio(effects)
            elif found["beat"]:
                self.parse_beat(found)
            self.position = found.end()
        self.commit_track()
        if not self.builder.bars:
            raise self.error("there is no music in it")
        tab_builder.extend_endings_in_place(self.builder.bars)

    def parse_tag(self, name: str, arguments: str) -> None:
        """Read a tag, whose arguments are numbers or words, in brackets or not."""
        plain = _STRING_PATTERN.sub(" ", arguments)
        numbers = [int(digits) for digits in re.findall(r"(?<!\S)\(?(\d{1,6})(?![^\s)])", plain)]
        match name:
            case "title" | "track":
                string = _STRING_PATTERN.search(arguments)
                text = string[0][1:-1] if string else plain.strip()
                setattr(self, name, re.sub(r"\\(.)", r"\1", text)[:200])
            case "tuning":
                self.pitches = tuple(parse_pitches_with_octaves(plain))
                if not MIN_STRINGS <= len(self.pitches) <= MAX_STRINGS:
                    raise self.error(f"a tuning has {MIN_STRINGS} to {MAX_STRINGS} strings")
            case "ts":
                if plain.strip(" ()").lower() == "common":
                    numbers = [4, 4]
                if len(numbers) != 2 or not is_meter(*numbers):
                    raise self.error("a time signature should be two numbers, as in \\ts (6 8)")
                self.time_signature = self.header.time_signature = numbers[0], numbers[1]
                self.header.length_quarters = Fraction(4 * numbers[0], numbers[1])
            case "ks" if key := KEYS_IN_ALPHATEX.get(
                plain.strip(" ()").lower().removesuffix("major")
            ):
                self.header.key = key
            case "tempo" | "capo" | "rc" if not numbers:
                raise self.error(f"\\{name} should have a whole number")
            case "tempo":
                self.header.tempo = min(max(numbers[0], 1), 1000)
            case "capo":
                self.capo = numbers[0]
            case "rc":
                self.header.num_plays = numbers[0]
            case "ro":
                self.header.starts_repeat = True
            case "ae":
                self.header.endings = tuple(sorted(set(numbers)))
            case "jump" if (sign := plain.strip(" ()").replace("DalS", "DaS")) in PLAYING_SIGNS:
                self.header.signs += (sign,)
            case "voice" if self.bar_index or self.has_notes:
                if self.has_notes:
                    self.commit_bar()
                if self.voice == 2:
                    raise self.error("a tab has at most two voices")
                self.restart_in_voice(2)
            case _:
                self.leave_out(f"\\{name}", f"\\{name}={plain.strip(' ()').lower()}")

    def reset_track(self) -> None:
        """Begin a track, whose bars are those of the first one."""
        self.builder, self.length = TabBuilder(), Fraction(1)
        if self.finished:
            self.builder.bars = self.finished[0].bars
        self.track, self.pitches, self.capo = "", STANDARD.open_pitches, 0
        self.restart_in_voice(1)

    def commit_track(self) -> None:
        """Keep the track that ends here, if there is anything in it, and begin the next."""
        if self.has_notes:
            self.commit_bar()
        self.builder.name, self.builder.tuning = self.track, Tuning(self.pitches, self.capo)
        self.finished.append(self.builder)
        self.reset_track()

    def restart_in_voice(self, voice: int) -> None:
        """Go to the beginning of the piece, in voice 1 or 2."""
        self.voice, self.bar_index, self.bar_start = voice, 0, Fraction(0)
        self.reset_bar()

    def reset_bar(self) -> None:
        """Begin a bar in the time signature in force; a second voice has no use for its header."""
        self.header = BarHeader.of_meter(*self.time_signature)
        self.elapsed, self.has_notes = Fraction(0), False

    def commit_bar(self) -> None:
        """End a bar."""
        bars = self.builder.bars
        if self.voice == 1 and not self.finished:
            self.header.tempo = self.header.tempo_changes.pop(Fraction(0), self.header.tempo)
            bars.append(self.header)
        elif self.bar_index >= len(bars):
            raise self.error("a second voice or track has more bars than the first")
        self.bar_start += bars[self.bar_index].length_quarters
        self.bar_index += 1
        self.reset_bar()

    def parse_beat(self, found: re.Match[str]) -> None:
        """Read a rest, a note or a chord, with its length."""
        if found["length"]:
            self.length = self.beat_duration(found["length"])
        notes = _NOTE_PATTERN.findall(found["note"] or found["chord"] or "")
        beat_effects = _parse_effects(found["effects"])
        if len(notes) == 1:
            beat_effects += _parse_effects(notes[0][2])
        own_effects = [_parse_effects(effects) for _, _, effects in notes] * (len(notes) > 1)
        for name, numbers in chain(beat_effects, *own_effects):
            self.leave_out(f"{{{name}}}", *(f"{{{name} {number}}}" for number in numbers[:1]))
        if any(name == "gr" for name, _ in beat_effects):
            return  # grace notes take their time from others
        for name, numbers in beat_effects:
            if name == "tempo" and numbers:
                self.header.tempo_changes[self.elapsed] = min(max(numbers[0], 1), 1000)
        length, times = self.length * self.tuplet_ratio(beat_effects), int(found["times"] or 1)
        self.num_beats += times
        if self.num_beats > self.max_beats:
            raise self.error(f"there are more than {self.max_beats:,} beats")
        for _ in range(times):
            for fret, string, effects in notes:
                own = beat_effects if len(notes) == 1 else _parse_effects(effects) + beat_effects
                self.parse_note(fret, int(string), own, length)
            self.elapsed += length
            check_score_moment(self.elapsed)
        self.has_notes = True

    def beat_duration(self, denominator: str) -> Fraction:
        """Return a note value in quarter notes."""
        if int(denominator) not in (*NOTE_VALUE_DENOMINATORS, 128):
            raise self.error(f"1/{denominator} is no length of a note")
        return Fraction(4, int(denominator))

    def tuplet_ratio(self, effects: _Effects) -> Fraction:
        """Return the factor of dots and tuplets."""
        factor = Fraction(1)
        for name, numbers in effects:
            if name in ("d", "dd"):
                factor *= Fraction(3, 2) if name == "d" else Fraction(7, 4)
            elif name == "tu" and numbers:
                enters = numbers[0]
                times = numbers[1] if len(numbers) > 1 else TUPLET_TIMES.get(enters, 0)
                if not (1 <= enters <= MAX_TUPLET and 1 <= times <= MAX_TUPLET):
                    raise self.error(f"a tuplet of {enters} in {times} is not known")
                factor *= Fraction(times, enters)
        return factor

    def parse_note(self, fret: str, string: int, effects: _Effects, duration: Fraction) -> None:
        """Strike or hold a note."""
        bars = self.builder.bars
        header = bars[self.bar_index] if self.bar_index < len(bars) else self.header
        if self.elapsed >= header.length_quarters:
            self.builder.omissions.record(tab_builder.AFTER_BAR, self.bar_index + 1)
            return
        if not 1 <= string <= len(self.pitches):
            raise self.error(f"string {string} is none of {len(self.pitches)}")
        note = Note(string, int(fret) if fret.isdigit() else 0)
        techniques = {Technique("dead")} if fret in "xX" else set()
        for name, numbers in effects:
            named = " ".join([name, *map(str, numbers)]) if name == "lf" else name
            if kind := find_technique("alphatex", named):
                techniques.add(Technique(kind))
            elif name in ("b", "be") and numbers:
                size = max(numbers[1::2] if name == "be" else numbers, default=0)
                techniques.add(Technique("bend", min(max(size, 1), 24)))
        event = NoteEvent(self.bar_start + self.elapsed, duration, note, techniques, self.voice)
        self.builder.add_note(event, fret == "-" or any(name == "t" for name, _ in effects))


def _parse_effects(text: str) -> _Effects:
    """Return the effects in braces, each with its numbers."""
    effects: _Effects = []
    plain = re.sub(r"\b(dy|ot|rasg|fermata)\s+\w+", r"\1", _STRING_PATTERN.sub(" ", text))
    for name, number in re.findall(r"([A-Za-z]\w*)|(-?\d{1,6})", plain):
        if name:
            effects.append((name.lower(), []))
        elif effects:
            effects[-1][1].append(int(number))
    return effects
