"""MusicXML, which notation programs open: read as tab or plain notation, written as tab.

There string 1 is the highest as well, but the lines of the staff that the tuning is given for are
counted from the bottom. Open strings are without the capo, pitches with it.
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from fractions import Fraction
from itertools import accumulate
from math import lcm
from pathlib import Path

from slp_transformer.guitar.formats.notation import (
    NOTE_VALUE_DENOMINATORS,
    BarHeader,
    Beat,
    Measure,
    NoteEvent,
    NoteValue,
    TabBuilder,
    TiedNote,
    build_tabs,
    check_same_bars,
    measures_from_tab,
)
from slp_transformer.guitar.formats.safe_read import (
    parse_xml,
    read_bytes,
    read_zip_member,
    translate_read_errors,
)
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning, midi_program
from slp_transformer.guitar.tab import ReadProblem, Tab, Technique, TechniqueKind
from slp_transformer.guitar.theory import NOTE_NAMES, PITCH_CLASS_OF_LETTER

NOTE_TYPES = ("whole", "half", "quarter", "eighth", "16th", "32nd", "64th")
NOTE_TYPE_NAMES = dict(zip(NOTE_VALUE_DENOMINATORS, NOTE_TYPES, strict=True))
DOCTYPE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<!DOCTYPE score-partwise PUBLIC "-//Recordare//DTD MusicXML 4.0 Partwise//EN" '
    '"http://www.musicxml.org/dtds/partwise.dtd">\n'
)


def format_musicxml(*tracks: Tab) -> str:
    """Return tabs that play together as MusicXML 4.0.

    Raises:
        ValueError: if a tab cannot be written down, has no bar or no time, or notes shorter than
            any note value; or the tracks' bars are not of the same lengths.
    """
    check_same_bars(tracks)
    score = _element("score-partwise", version="4.0")
    score.append(_element("work", _element("work-title", _printable(tracks[0].title))))
    score.append(part_list := _element("part-list"))
    for number, tab in enumerate(tracks, start=1):
        part, instrument = f"P{number}", f"P{number}-I1"
        midi = (
            _element("midi-channel", (number - 1) % 9 + 1),
            _element("midi-program", midi_program(tab.tuning) + 1),
        )
        name = _printable(tab.track) or "Guitar"
        part_list.append(
            _element(
                "score-part",
                _element("part-name", name),
                _element("score-instrument", _element("instrument-name", name), id=instrument),
                _element("midi-instrument", *midi, id=instrument),
                id=part,
            )
        )
        score.append(_MusicXmlWriter(tab.tuning, measures_from_tab(tab)).part_element(part))
    ET.indent(score)
    return DOCTYPE + ET.tostring(score, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """Return a text in one line, without what XML cannot have."""
    return "".join(mark for mark in " ".join(text.split()) if mark.isprintable())


def _element(name: str, *content: ET.Element | str | int, **attributes: str) -> ET.Element:
    """Return an element with elements or text in it."""
    element = ET.Element(name, attributes)
    for each in content:
        if isinstance(each, ET.Element):
            element.append(each)
        else:
            element.text = str(each)
    return element


class _MusicXmlWriter:
    """Writes the measures of one guitar."""

    def __init__(self, tuning: Tuning, measures: list[Measure]):
        """Find the divisions of a quarter note in which every note value is a whole number."""
        self.tuning, self.measures = tuning, measures
        beats = [beat for measure in measures for voice in measure.voices for beat in voice]
        self.divisions = lcm(*(beat.note_value.duration_quarters.denominator for beat in beats))
        self.open_spanners: set[tuple[int, str]] = set()  # slurs and slides, by string

    def part_element(self, name: str) -> ET.Element:
        """Return the part with all measures."""
        part = _element("part", id=name)
        for number, measure in enumerate(self.measures, start=1):
            around = [None, *self.measures, None][number - 1 : number + 2 : 2]
            first, second = measure.voices
            content = self.barline_elements(measure, around[0], "left")
            content += self.attribute_elements(measure, is_first=number == 1)
            if measure.bar.tempo_bpm is not None:
                content.append(_tempo_element(measure.bar.tempo_bpm))
            content += [note for beat in first for note in self.note_elements(beat, 1)]
            if second:
                length = sum(self.to_divisions(beat.note_value) for beat in first)
                content.append(_element("backup", _element("duration", length)))
                content += [note for beat in second for note in self.note_elements(beat, 2)]
            content += self.barline_elements(measure, around[1], "right")
            part.append(_element("measure", *content, number=str(number)))
        return part

    def to_divisions(self, note_value: NoteValue) -> int:
        """Return a note value in divisions."""
        return int(note_value.duration_quarters * self.divisions)

    def attribute_elements(self, measure: Measure, is_first: bool) -> list[ET.Element]:
        """Return time signature, clef, tuning and capo where they begin."""
        if measure.bar.time_signature is None:
            return []
        beats, unit = measure.time_signature
        time = _element("time", _element("beats", beats), _element("beat-type", unit))
        if not is_first:
            return [_element("attributes", time)]
        lines = [
            _element("staff-tuning", *_pitch_elements(pitch, "tuning-"), line=str(line))
            for line, pitch in enumerate(reversed(self.tuning.open_pitches), start=1)
        ]
        capo = [_element("capo", self.tuning.capo)] if self.tuning.capo else []
        return [
            _element(
                "attributes",
                _element("divisions", self.divisions),
                _element("key", _element("fifths", 0)),
                time,
                _element("clef", _element("sign", "TAB"), _element("line", 5)),
                _element("staff-details", _element("staff-lines", len(lines)), *lines, *capo),
            )
        ]

    def barline_elements(
        self, measure: Measure, neighbor: Measure | None, location: str
    ) -> list[ET.Element]:
        """Return the repeats and endings at one side of a measure."""
        bar, is_left, content = measure.bar, location == "left", []
        ends_repeat = not is_left and bar.num_plays > 1
        if bar.endings and (ends_repeat or neighbor is None or neighbor.bar.endings != bar.endings):
            numbers = ",".join(map(str, bar.endings))
            kind = "start" if is_left else "stop"
            content.append(_element("ending", number=numbers, type=kind))
        if is_left and bar.starts_repeat:
            content.append(_element("repeat", direction="forward"))
        elif ends_repeat:
            content.append(_element("repeat", direction="backward", times=str(bar.num_plays)))
        return [_element("barline", *content, location=location)] if content else []

    def note_elements(self, beat: Beat, voice: int) -> list[ET.Element]:
        """Return one element for each note of a beat, the lowest first, or a rest."""
        value = beat.note_value
        duration = _element("duration", self.to_divisions(value))
        actual = _element("actual-notes", value.tuplet_notes)
        normal = _element("normal-notes", value.tuplet_time)
        length = [
            _element("voice", voice),
            _element("type", NOTE_TYPE_NAMES[value.denominator]),
            *[_element("dot")] * value.is_dotted,
            *[_element("time-modification", actual, normal)] * (value.tuplet_notes > 1),
        ]
        if not beat.notes:
            return [_element("note", _element("rest"), duration, *length)]
        notes: list[ET.Element] = []
        for tied in reversed(beat.notes):
            pitch = self.tuning.pitch_of(tied.tab_note.note)
            chord = [_element("chord")] if notes else []
            ties = [_element("tie", type=kind) for kind in _tie_types(tied)]
            dead = any(technique.kind == "dead" for technique in tied.tab_note.techniques)
            head = [_element("notehead", "x")] if dead else []
            content = [*chord, _element("pitch", *_pitch_elements(pitch)), duration, *ties, *length]
            notes.append(_element("note", *content, *head, self.notations_element(tied)))
        return notes

    def notations_element(self, tied: TiedNote) -> ET.Element:
        """Return the ties, string and fret, and techniques of a note."""
        string, fret = tied.tab_note.note
        sizes: dict[str, int] = dict(tied.techniques)
        notations = [_element("tied", type=kind) for kind in _tie_types(tied)]
        if "let ring" in sizes:
            notations.append(_element("tied", type="let-ring"))
        technical = [_element("string", string), _element("fret", fret)]
        for kind, name, mark in (("hammer", "hammer-on", "H"), ("pull", "pull-off", "P")):
            technical += self.spanner_elements(tied, name, kind in sizes, mark)
        half_steps = f"{max(1, sizes.get('bend', 0)) / 2:g}"
        others = {
            "bend": _element("bend", _element("bend-alter", half_steps)),
            "harmonic": _element("harmonic", _element("natural")),
            "vibrato": _element("other-technical", "vibrato"),
        }
        technical += [element for kind, element in others.items() if kind in sizes]
        slides = self.spanner_elements(tied, "slide", "slide" in sizes)
        return _element("notations", *notations, *slides, _element("technical", *technical))

    def spanner_elements(
        self, tied: TiedNote, name: str, should_start: bool, *mark: str
    ) -> list[ET.Element]:
        """Return the ends of a technique that leads from one note to the next on its string."""
        string = tied.tab_note.note.string
        ends = []
        if tied.is_struck and (string, name) in self.open_spanners:
            self.open_spanners.remove((string, name))
            ends.append(_element(name, type="stop", number=str(string)))
        if should_start:
            self.open_spanners.add((string, name))
            ends.append(_element(name, *mark, type="start", number=str(string)))
        return ends


def _tie_types(tied: TiedNote) -> list[str]:
    """Return which ends of ties are at a note."""
    return ["stop"] * (not tied.is_struck) + ["start"] * tied.is_tied_to_next


def _pitch_elements(pitch: int, prefix: str = "") -> list[ET.Element]:
    """Return a pitch as letter, half steps from it, and octave."""
    name = NOTE_NAMES[pitch % 12]
    alters = [_element(f"{prefix}alter", 1 if sign == "#" else -1) for sign in name[1:]]
    octave = _element(f"{prefix}octave", pitch // 12 - 1)
    return [_element(f"{prefix}step", name[0]), *alters, octave]


def _tempo_element(tempo_bpm: int) -> ET.Element:
    """Return a tempo to see and to play in."""
    beat, speed = _element("beat-unit", "quarter"), _element("per-minute", tempo_bpm)
    return _element(
        "direction",
        _element("direction-type", _element("metronome", beat, speed)),
        _element("sound", tempo=str(tempo_bpm)),
        placement="above",
    )


# --- Reading --------------------------------------------------------------------------------------

MAX_FILE_BYTES = 16 << 20
MAX_NOTES = 200_000
TECHNICAL = "notations/technical"
FRET = f"{TECHNICAL}[string][fret]"
QUARTERS_OF_BEAT = {"whole": 4.0, "half": 2.0, "quarter": 1.0, "eighth": 0.5}
TECHNIQUE_OF_PATH: dict[str, TechniqueKind] = {
    "notations/technical/hammer-on[@type='start']": "hammer",
    "notations/technical/pull-off[@type='start']": "pull",
    "notations/slide[@type='start']": "slide",
    "notations/glissando[@type='start']": "slide",
    "notations/technical/harmonic": "harmonic",
    "notations/tied[@type='let-ring']": "let ring",
    "notations/technical/[other-technical='vibrato']": "vibrato",
    "notations/ornaments/wavy-line[@type='start']": "vibrato",
    "[notehead='x']": "dead",
}
"""What is there in a note that is played so, as ElementTree finds it."""


def read_musicxml(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a MusicXML file, packed (.mxl) or not: a tab for each part.

    A part in plain notation has no strings. Of a part in tablature and in notation the tablature
    is read.

    Returns:
        The tabs; and what of the file is not in them.

    Raises:
        ValueError: if there is no such file, it is no partwise MusicXML, or it defines entities.
    """
    content, source = read_bytes(path, "a MusicXML file", MAX_FILE_BYTES), Path(path).name
    with translate_read_errors(path, "MusicXML"):
        if content.startswith(b"PK"):
            container = parse_xml(read_zip_member(content, "META-INF/container.xml", 1 << 16))
            name = next(
                each.get("full-path", "") for each in container.iter() if each.get("full-path")
            )
            content = read_zip_member(content, name, MAX_FILE_BYTES)
        root = parse_xml(content)
        if root.tag != "score-partwise":
            raise ValueError("it is no score-partwise")
        names = {
            part.get("id"): part.findtext("part-name") or "" for part in root.iter("score-part")
        }
        title = root.findtext("work/work-title") or root.findtext("movement-title") or ""
        parts = [_PartReader(part, names.get(part.get("id"), "")) for part in root.iter("part")]
        count = max(len(part.bars) for part in parts)
        for part in parts:  # all have the same bars
            part.bars += [BarHeader(Fraction(0)) for _ in range(count - len(part.bars))]
        for same in zip(*(part.bars for part in parts), strict=True):
            beats, unit = same[0].time_signature or (4, 4)
            length = max(bar.length_quarters for bar in same) or Fraction(4 * beats, unit)
            tempo = next((bar.tempo for bar in same if bar.tempo), None)
            for bar in same:
                bar.length_quarters, bar.tempo = length, tempo
        return build_tabs(source, title, [part.place_notes() for part in parts])


class _PartReader:
    """Reads the measures of one part."""

    def __init__(self, part: ET.Element, name: str):
        """Read all of them; notes are kept with their bar and their place in it.

        Raises:
            ValueError: for more than 200,000 notes, or an invalid time signature.
        """
        self.builder: TabBuilder = TabBuilder(name)
        self.bars: list[BarHeader] = self.builder.bars
        self.omissions: Counter[str] = self.builder.omission_counts
        self.is_drums, self.half_steps, self.capo = False, 0, 0
        self.notes: list[tuple[int, Fraction, Fraction, ET.Element]] = []
        self.tunings: dict[str, dict[int, int]] = {}  # by staff, then line
        self.tab_staff: str | None = None
        self.divisions, self.time_signature = Fraction(1), (4, 4)
        endings: tuple[int, ...] = ()
        for measure in part.iter("measure"):
            bar = BarHeader(Fraction(0), self.time_signature, endings=endings)
            self.bars.append(bar)
            now = before = Fraction(0)
            for element in measure:
                length = Fraction(element.findtext("duration") or 0) / self.divisions
                match element.tag:
                    case "attributes":
                        self.read_attributes(element)
                        bar.time_signature = self.time_signature
                    case "note" if element.find("grace") is not None:
                        self.omissions["grace notes are left out"] += 1
                    case "note":
                        begin = before if element.find("chord") is not None else now
                        if element.find("rest") is None:
                            self.notes.append((len(self.bars) - 1, begin, length, element))
                            self.is_drums |= element.find("pitch") is None
                        before, now = begin, max(now, begin + length)
                    case "backup":
                        now -= length
                    case "forward":
                        now += length
                    case "barline":
                        endings = _read_barline(element, bar, endings)
                    case "direction" | "sound":
                        bar.tempo = _read_tempo(element) or bar.tempo
                bar.length_quarters = max(bar.length_quarters, now)
            if len(self.notes) > MAX_NOTES:
                raise ValueError(f"{name} has more than {MAX_NOTES:,} notes")

    def read_attributes(self, attributes: ET.Element) -> None:
        """Read what a measure says of those that follow.

        Raises:
            ValueError: for an invalid time signature.
        """
        for element in attributes:
            match element.tag:
                case "divisions":
                    self.divisions = Fraction(element.text or 1)
                case "time" if element.find("beats") is not None:
                    beats = sum(map(int, (element.findtext("beats") or "4").split("+")))
                    unit = int(element.findtext("beat-type", "4"))
                    if beats < 1 or unit not in (1, 2, 4, 8, 16, 32):
                        raise ValueError(f"a time signature is {beats}/{unit}")
                    self.time_signature = beats, unit
                case "clef" if element.findtext("sign") == "TAB":
                    self.tab_staff = element.get("number", "1")
                case "staff-details":
                    self.capo = int(element.findtext("capo") or self.capo)
                    lines = self.tunings.setdefault(element.get("number", "1"), {})
                    for line in element.iter("staff-tuning"):
                        lines[int(line.get("line", "0"))] = _read_pitch(line, "tuning-")
                case "transpose":
                    octaves = int(element.findtext("octave-change") or 0)
                    self.half_steps = int(element.findtext("chromatic") or 0) + 12 * octaves

    def place_notes(self) -> TabBuilder:
        """Return the notes with their places, and the guitar."""
        if self.is_drums or not self.notes:
            self.builder.reason_left_out = "it is drums" if self.is_drums else "it is empty"
            return self.builder
        fretted = [each for each in self.notes if each[3].find(FRET) is not None]
        staves = {each[3].findtext("staff", "1") for each in fretted}
        if self.tab_staff in staves:  # the others have the same in notation
            fretted = [each for each in fretted if each[3].findtext("staff", "1") == self.tab_staff]
        notes = fretted or self.notes
        left = sum(each[3].findtext("staff", "1") in staves for each in self.notes) - len(notes)
        if fretted and left > 0 and self.tab_staff not in staves:
            self.omissions["notes without a string are left out"] += left
        starts = list(accumulate((bar.length_quarters for bar in self.bars), initial=Fraction(0)))
        voices: list[str] = []
        open_pitches: dict[int, int] = {}
        for index, begin, duration, element in notes:
            onset = starts[index] + begin
            pitch = _read_pitch(element.find("pitch")) + self.half_steps
            note = Note(0, pitch)
            if fretted:
                places = (element.findtext(f"{TECHNICAL}/{tag}", "") for tag in Note._fields)
                note = Note(*map(int, places))
                open_pitches.setdefault(note.string, pitch - note.fret - self.capo)
            if (voice := element.findtext("voice", "1")) not in voices:
                voices.append(voice)
            number = min(voices.index(voice) + 1, 2)
            event = NoteEvent(onset, duration, note, _read_techniques(element), number)
            self.builder.read_note(event, is_tied=element.find("tie[@type='stop']") is not None)
        stated = self.tunings.get(self.tab_staff or "1", {})
        if fretted:
            count = len(stated) or max(6, *open_pitches)
            lowest_first = [stated[line] for line in sorted(stated)]
            usual = [*STANDARD.open_pitches, 35, 30]
            found = [open_pitches.get(s, usual[s - 1]) for s in range(1, count + 1)]
            self.builder.tuning = Tuning(tuple(lowest_first[::-1] or found), self.capo)
        return self.builder


def _read_techniques(note: ET.Element) -> set[Technique]:
    """Return the ways in which a note is played."""
    techniques = {
        Technique(kind) for path, kind in TECHNIQUE_OF_PATH.items() if note.find(path) is not None
    }
    for alter in note.iterfind("notations/technical/bend/bend-alter"):
        techniques.add(Technique("bend", min(max(round(2 * float(alter.text or 0)), 1), 24)))
    return techniques


def _read_pitch(element: ET.Element | None, prefix: str = "") -> int:
    """Return the pitch that an element gives by letter, half steps and octave.

    Raises:
        ValueError: if it gives none.
    """
    letter = element.findtext(f"{prefix}step", "") if element is not None else ""
    if element is None or letter not in PITCH_CLASS_OF_LETTER:
        raise ValueError("a note has no pitch")
    octave, alter = (element.findtext(f"{prefix}{name}") or 0 for name in ("octave", "alter"))
    return 12 * (int(octave) + 1) + PITCH_CLASS_OF_LETTER[letter] + round(float(alter))


def _read_barline(barline: ET.Element, bar: BarHeader, endings: tuple[int, ...]) -> tuple[int, ...]:
    """Read the repeats at one side of a bar; return the endings that are open after it."""
    ending, repeat = barline.find("ending"), barline.find("repeat")
    if ending is not None:
        if ending.get("type") == "start":
            numbers = re.findall(r"\d{1,2}", ending.get("number", ""))
            bar.endings = endings = tuple(sorted(map(int, numbers)))
        else:
            endings = ()
    if repeat is not None and repeat.get("direction") == "forward":
        bar.starts_repeat = True
    elif repeat is not None:
        usual = max(bar.endings, default=1) + 1
        bar.num_plays = int(repeat.get("times") or usual)
    return endings


def _read_tempo(element: ET.Element) -> int | None:
    """Return the quarter notes a minute that a direction or sound gives, if it gives any."""
    sound = element if element.tag == "sound" else element.find("sound[@tempo]")
    metronome = element.find("direction-type/metronome")
    tempo = 0.0
    if sound is not None and sound.get("tempo"):
        tempo = float(sound.get("tempo", 0))
    elif metronome is not None:
        number = re.search(r"\d+(?:\.\d+)?", metronome.findtext("per-minute", ""))
        beat = QUARTERS_OF_BEAT.get(metronome.findtext("beat-unit", ""), 1.0)
        dot = 1.5 if metronome.find("beat-unit-dot") is not None else 1.0
        tempo = float(number[0]) * beat * dot if number else 0.0
    return min(max(round(tempo), 1), 1000) if tempo > 0 else None
