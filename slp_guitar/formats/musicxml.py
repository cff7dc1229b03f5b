"""MusicXML, which notation programs write, read as tab or plain notation.

Strings, tuning and pitches are as in `slp_guitar.formats.musicxml_writer`.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from slp_guitar import bounds
from slp_guitar.formats import safe_read, tab_builder
from slp_guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder
from slp_guitar.formats.unread import Contents, Omissions, iter_xml_parts
from slp_guitar.fretboard import STANDARD, Note, Tuning
from slp_guitar.playing_signs import parse_playing_sign
from slp_guitar.tab import ReadProblem, Tab, Technique, find_key
from slp_guitar.techniques import TECHNIQUES
from slp_guitar.theory import PITCH_CLASS_OF_LETTER

# An innermost tag, and the path to it. To search for a path takes long, and few notes have the tag.
_TECHNIQUE_PATHS = [
    (found[1], kind, path)
    for kind, signs in TECHNIQUES.items()
    for path in signs.musicxml
    if (found := re.search(r"([\w-]+)(?:\[@[^]]*]|='[^']*'])?$", path))
]
_TECHNIQUE_TAGS = {"bend-alter", *(tag for tag, _, _ in _TECHNIQUE_PATHS)}
BEATS = "maxima long breve whole half quarter eighth 16th 32nd 64th 128th 256th".split()
QUARTERS_OF_BEAT = {name: 32 / 2**place for place, name in enumerate(BEATS)}
MAX_TEMPO = 1000  # quarter notes a minute
PITCHED_FAMILIES = "brass keyboard pitched-percussion pluck strings synth voice wind".split()
"""Families of MusicXML's standard sounds that are no drums, whatever their channel."""


def read_musicxml_tabs(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a MusicXML file, packed (.mxl) or not: a tab for each part.

    A part in plain notation has no strings. Of a part in tablature and in notation the tablature
    is read.

    Returns:
        The tabs; and what of the file is not in them.

    Raises:
        ValueError: if there is no such file, it is no partwise MusicXML, or it defines entities.
    """
    max_bytes, source = bounds.MAX_FILE_BYTES["MusicXML"], Path(path).name
    content = safe_read.read_bytes(path, "a MusicXML file", max_bytes)
    with safe_read.translate_read_errors(path, "MusicXML"):
        max_notes = bounds.max_notes_of_file(len(content))
        if content.startswith(b"PK"):
            container = safe_read.read_zip_member(content, "META-INF/container.xml", 1 << 16)
            entries = safe_read.parse_xml(container).iter()
            name = next(filter(None, (each.get("full-path") for each in entries)))
            content = safe_read.read_zip_member(content, name, max_bytes)
        root = safe_read.parse_xml(content)
        if root.tag == "score-timewise":
            _make_partwise_in_place(root)
        elif root.tag != "score-partwise":
            raise ValueError("it is no score-partwise or score-timewise")
        names = _read_part_names(root)
        num_bars = sum(1 for _ in root.iter("measure"))  # of all parts, as they cost
        tab_builder.check_bar_count(num_bars)
        if sum(1 for _ in root.iter("note")) > max_notes:
            raise ValueError(f"it has more than {max_notes:,} notes and rests")
        title = root.findtext("work/work-title") or root.findtext("movement-title") or ""
        drums = {
            part.get("id")
            for part in root.iter("score-part")
            if {each.text for each in part.iterfind("midi-instrument/midi-channel")} == {"10"}
            and not any(
                (each.text or "").partition(".")[0] in PITCHED_FAMILIES
                for each in part.iterfind("score-instrument/instrument-sound")
            )
        }
        divisions = _parse_divisions(root.findtext(".//divisions"))
        parts = [
            _PartReader(part, names.get(part.get("id"), ""), part.get("id") in drums, divisions)
            for part in root.iter("part")
        ]
        kept = [part for part in parts if not part.builder.reason_left_out] or parts
        count = max(len(part.bars) for part in kept)
        for part in parts:  # all have the same bars, by those that are read
            part.bars[:] = part.bars[:count]
            part.bars += [BarHeader(Fraction(0)) for _ in range(count - len(part.bars))]
        for place in range(count):
            same = [part.bars[place] for part in parts]
            own = [part.bars[place] for part in kept]
            beats, unit = own[0].time_signature or (4, 4)
            length = max(bar.length_quarters for bar in own) or Fraction(4 * beats, unit)
            tempo = next((bar.tempo for bar in same if bar.tempo), None)
            changes = next((bar.tempo_changes for bar in same if bar.tempo_changes), {})
            for bar in own:
                bar.length_quarters, bar.tempo, bar.tempo_changes = length, tempo, changes
        omissions = Omissions()
        omissions.record_unread(CONTENTS.find_unread(root))
        builders = [part.place_notes() for part in parts]
        return tab_builder.build_tabs(source, title, builders, max_notes, omissions)


def _iter_parts(element: ET.Element) -> Iterator[tuple[tuple[str, ...], ET.Element]]:
    """Yield what is in an element, as `iter_xml_parts`; words that are a sign are called so."""
    for names, part in iter_xml_parts(element):
        if part.tag == "words" and parse_playing_sign(part.text or ""):
            names = ("a sign in words",)
        elif part.tag == "movement-title" and element.findtext("work/work-title"):
            names = ("movement-title beside a work-title",)
        yield names, part


CONTENTS = Contents("musicxml", _iter_parts)


def _read_part_names(root: ET.Element) -> dict[str | None, str]:
    """Return the names of the parts, with their group's where they have a number alone, or none."""
    names: dict[str | None, str] = {}
    groups: dict[str, str] = {}  # those that are open, by number
    for element in root.iterfind("part-list/*"):
        if element.tag == "part-group" and element.get("type") == "start":
            groups[element.get("number", "1")] = element.findtext("group-name") or ""
        elif element.tag == "part-group":
            groups.pop(element.get("number", "1"), None)
        elif element.tag == "score-part":
            name = element.findtext("part-name") or ""
            group = next(filter(None, reversed(groups.values())), "")
            is_bare = re.fullmatch(r"(?:\d{1,2}|[IVX]+)?\.?", name.strip())
            names[element.get("id")] = f"{group} {name}".strip() if is_bare else name
    return names


def _make_partwise_in_place(root: ET.Element) -> None:
    """Turn measures that hold the parts into parts that hold the measures."""
    parts: dict[str, ET.Element] = {}
    for measure in root.findall("measure"):
        for part in measure.findall("part"):
            name = part.get("id", "")
            whole = parts.setdefault(name, ET.Element("part", id=name))
            ET.SubElement(whole, "measure", measure.attrib).extend(part)
        root.remove(measure)
    root.extend(parts.values())


class _PlacedNote(NamedTuple):
    """A note, and what was found in it already."""

    bar_index: int  # from 0
    begin: Fraction  # its place in the bar
    length: Fraction
    half_steps: int  # how far it sounds above what is written
    staff: str
    has_tie: bool  # to the note before
    place: tuple[str, str] | None  # string and fret as they are written, if it has both
    tags: set[str]  # of what may say how it is played
    element: ET.Element


class _PartReader:
    """Reads the measures of one part."""

    def __init__(self, part: ET.Element, name: str, is_drum_channel: bool, divisions: Fraction):
        """Read all of them; notes are kept with their bar and their place in it.

        Args:
            part: the part.
            name: its name.
            is_drum_channel: whether it plays on MIDI's channel for drums.
            divisions: steps to a quarter note until the part says so itself.

        Raises:
            ValueError: for an invalid time signature.
        """
        self.builder: TabBuilder = TabBuilder(name)
        self.is_drum_channel: bool = is_drum_channel
        self.bars: list[BarHeader] = self.builder.bars
        self.num_drums, self.half_steps, self.capo = 0, 0, 0
        self.drum_staves: set[str] = set()
        self.notes: list[_PlacedNote] = []
        self.repeated: list[tuple[int, int]] = []  # bars that a sign has played as earlier ones
        self.bars_back = 0
        self.tunings: dict[str, dict[int, int]] = {}  # by staff, then line
        self.tab_staff: str | None = None
        self.divisions, self.time_signature = divisions, (4, 4)
        self.key: str | None = None
        endings: tuple[int, ...] = ()
        for measure in part.iter("measure"):
            unread = CONTENTS.find_unread(measure)
            self.builder.omissions.record_unread(unread, len(self.bars) + 1)
            bar = BarHeader(Fraction(0), self.time_signature, endings=endings, key=self.key)
            self.bars.append(bar)
            now = before = Fraction(0)
            for element in measure:
                length = bounds.parse_exact_number(element.findtext("duration") or "0")
                length /= self.divisions
                match element.tag:
                    case "attributes":
                        self.read_attributes(element)
                        bar.time_signature, bar.key = self.time_signature, self.key
                    case "note" if element.find("grace") is None:
                        begin = before if element.find("chord") is not None else now
                        self.read_note(element, begin, length)
                        before, now = begin, max(now, begin + length)
                    case "backup":
                        if length > now:
                            what = "steps back to before their bar lead to its start"
                            self.builder.omissions.record(what, len(self.bars))
                        now = max(Fraction(0), now - length)
                    case "forward":
                        now += length
                    case "barline":
                        endings = _read_barline(element, bar, endings)
                        bar.signs += _read_signs(element)
                    case "direction" | "sound":
                        tempo = _read_tempo(element)
                        if tempo is not None and 1 <= tempo <= MAX_TEMPO:
                            offset = _read_sounding_offset(element) / self.divisions
                            bar.tempo_changes[max(Fraction(0), now + offset)] = round(tempo)
                        elif tempo is not None:
                            what = f"tempos that are no number from 1 to {MAX_TEMPO:,} are left out"
                            self.builder.omissions.record(what, len(self.bars))
                        bar.signs += _read_signs(element)
                bounds.check_score_moment(now)
                bar.length_quarters = max(bar.length_quarters, now)
            bar.tempo = bar.tempo_changes.pop(Fraction(0), None)
            if self.bars_back:
                self.repeated.append((len(self.bars), self.bars_back))
        stated = self.tunings.get(self.tab_staff or "1", {})
        if 2 * self.num_drums > len(self.notes) or self.is_drum_channel:
            self.builder.reason_left_out = "it is drums"
        elif not (self.notes or stated):
            self.builder.reason_left_out = "it is empty"

    def read_note(self, element: ET.Element, begin: Fraction, length: Fraction) -> None:
        """Keep a note, unless it is none of a guitar."""
        number, staff = len(self.bars), element.findtext("staff", "1")
        is_unpitched = element.find("unpitched") is not None
        if element.find("rest") is not None or element.find("cue") is not None:
            return
        self.num_drums += is_unpitched or staff in self.drum_staves
        if is_unpitched:
            return
        tags = {each.tag for each in element.iter()}
        if "alter" in tags and float(element.findtext("pitch/alter") or 0) % 1:
            self.builder.omissions.record("microtones are rounded to half steps", number)
        groups = element.iterfind("notations/technical") if "string" in tags else ()
        places = [(each.findtext("string"), each.findtext("fret")) for each in groups]
        place = next(((string, fret) for string, fret in places if string and fret), None)
        if place is None and any(string is not None for string, _ in places):
            self.builder.omissions.record("strings without a fret are left out", number)
        ties = (each for each in element.iter() if each.tag in ("tie", "tied"))
        has_tie = any(each.get("type") == "stop" for each in ties)
        marks = _TECHNIQUE_TAGS & tags
        where = number - 1, begin, length, self.half_steps, staff
        self.notes.append(_PlacedNote(*where, has_tie, place, marks, element))

    def read_attributes(self, attributes: ET.Element) -> None:
        """Read what a measure says of those that follow.

        Raises:
            ValueError: for an invalid time signature.
        """
        for element in attributes:
            match element.tag:
                case "divisions":
                    self.divisions = _parse_divisions(element.text)
                case "time" if element.find("beats") is not None:
                    beats = sum(map(int, (element.findtext("beats") or "4").split("+")))
                    unit = int(element.findtext("beat-type", "4"))
                    if beats < 1 or unit not in (1, 2, 4, 8, 16, 32):
                        raise ValueError(f"a time signature is {beats}/{unit}")
                    self.time_signature = beats, unit
                case "key":
                    fifths = int(element.findtext("fifths") or 0)
                    self.key = find_key(fifths, element.findtext("mode") == "minor")
                case "clef":
                    kind, staff = element.findtext("sign"), element.get("number", "1")
                    self.drum_staves -= {staff}
                    if kind == "percussion":
                        self.drum_staves.add(staff)
                    elif kind == "TAB":
                        self.tab_staff = staff
                case "measure-style" if (sign := element.find("measure-repeat")) is not None:
                    text = (sign.text or "1") if sign.get("type") == "start" else "0"
                    bars_back = int(bounds.parse_exact_number(text))
                    self.bars_back = min(max(bars_back, 0), bounds.MAX_NOTES)
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
        stated = self.tunings.get(self.tab_staff or "1", {})
        if self.builder.reason_left_out:
            return self.builder
        fretted = [each for each in self.notes if each.place is not None]
        staves = {each.staff for each in fretted}
        if self.tab_staff in staves:  # the others have the same in notation
            fretted = [each for each in fretted if each.staff == self.tab_staff]
        notes = fretted or self.notes
        left = sum(each.staff in staves for each in self.notes) - len(notes)
        if fretted and left > 0 and self.tab_staff not in staves:
            self.builder.omissions.record("notes without a string are left out", count=left)
        starts = tab_builder.bar_starts(self.bars)
        voices: dict[str, int] = {}
        open_pitches: dict[int, int] = {}
        last_pitches: dict[tuple[int, int], int] = {}  # by voice and string
        for index, begin, length, half_steps, _, has_tie, place, tags, element in notes:
            onset = starts[index] + begin
            pitch = _read_pitch(element.find("pitch")) + half_steps
            note = Note(0, pitch)
            if fretted and place:
                note = Note(*map(int, place))
                open_pitches.setdefault(note.string, pitch - note.fret - self.capo)
            voice = element.findtext("voice", "1")
            number = min(voices.setdefault(voice, len(voices) + 1), 2)
            what = "notes of further voices are read as of the second"
            self.builder.omissions.record(what, index + 1, count=int(voices[voice] > 2))
            techniques = _read_techniques(element, tags) if tags else set()
            event = NoteEvent(onset, length, note, techniques, number)
            is_same = last_pitches.get((number, note.string), pitch) == pitch or not fretted
            last_pitches[number, note.string] = pitch
            self.builder.add_note(event, is_tied=has_tie and is_same)
        for number, bars_back in self.repeated:
            self.builder.copy_earlier_bar(number, bars_back)
        if fretted or not notes:
            count = len(stated) or max(6, *open_pitches)
            lowest_first = [stated[line] for line in sorted(stated)]
            usual = [*STANDARD.open_pitches, 35, 30]
            found = [open_pitches.get(s, usual[s - 1]) for s in range(1, count + 1)]
            self.builder.tuning = Tuning(tuple(lowest_first[::-1] or found), self.capo)
        return self.builder


def _read_techniques(note: ET.Element, tags: set[str]) -> set[Technique]:
    """Return the ways in which a note is played that has these tags in it."""
    techniques = {
        Technique(kind)
        for tag, kind, path in _TECHNIQUE_PATHS
        if tag in tags and note.find(path) is not None
    }
    if "bend-alter" in tags:
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


SIGN_OF_SOUND = {
    "segno": "Segno",
    "coda": "Coda",
    "fine": "Fine",
    "tocoda": "DaCoda",
    "dacapo": "DaCapo",
    "dalsegno": "DaSegno",
}
"""The sign that an attribute of a sound stands for, where no words say more."""


def _read_signs(element: ET.Element) -> tuple[str, ...]:
    """Return the signs that a direction, bar line or sound gives, in words if it has some."""
    texts = [each.text or "" for each in element.iterfind("direction-type/words")]
    signs = [sign for text in texts if (sign := parse_playing_sign(text))]
    drawn = (each.tag for each in (*element, *element.iterfind("direction-type/*")))
    sound = element if element.tag == "sound" else element.find("sound")
    named = [*drawn, *(sound.keys() if sound is not None else ())]
    return tuple(signs or dict.fromkeys(SIGN_OF_SOUND[n] for n in named if n in SIGN_OF_SOUND))


def _parse_divisions(text: str | None) -> Fraction:
    """Return how many steps a quarter note has.

    Raises:
        ValueError: if it is no number above 0.
    """
    divisions = bounds.parse_exact_number(text or "1")
    if divisions <= 0:
        raise ValueError(f"a quarter note has {text} divisions")
    return divisions


def _read_tempo(element: ET.Element) -> float | None:
    """Return the quarter notes a minute that a direction or sound gives.

    Returns:
        None if it gives no tempo; 0 for one that is no number, as `dotted quarter = half`.
    """
    sound = element if element.tag == "sound" else element.find("sound[@tempo]")
    metronome = element.find("direction-type/metronome")
    if sound is not None and sound.get("tempo"):
        return float(sound.get("tempo", 0))
    if metronome is None:
        return None
    number = re.search(r"\d+(?:\.\d+)?", metronome.findtext("per-minute", ""))
    beat = QUARTERS_OF_BEAT.get(metronome.findtext("beat-unit", ""), 0.0)
    dots = len(metronome.findall("beat-unit-dot"))
    return float(number[0]) * beat * (2 - 0.5**dots) if number else 0.0


def _read_sounding_offset(element: ET.Element) -> Fraction:
    """Return by how many divisions a direction or sound is heard later than its place.

    A direction's own offset says where it is drawn, unless it has `sound="yes"`.
    """
    offset = element.find("sound/offset")
    if offset is None:
        path = "offset" if element.tag == "sound" else "offset[@sound='yes']"
        offset = element.find(path)
    return bounds.parse_exact_number((offset.text if offset is not None else None) or "0")
