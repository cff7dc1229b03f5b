"""Guitar Pro 6 to 8 files (`.gpx`, `.gp`): a container with XML, which is called GPIF, in it.

That of Guitar Pro 6 is in `slp_guitar.formats.gpx`; the later ones are ZIP archives.

Everything in it is in lists and is named by number: a bar names its voices, a voice its beats,
a beat its rhythm and notes. String 0 is the lowest; frets count from the capo.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from slp_guitar import bounds
from slp_guitar.formats import safe_read, tab_builder
from slp_guitar.formats.gpx import is_gpx, read_gpx_member
from slp_guitar.formats.guitar_pro import BEND_UNITS_PER_QUARTER_TONE
from slp_guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder
from slp_guitar.formats.unread import Contents, Omissions, iter_xml_parts
from slp_guitar.fretboard import Note, Tuning
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.tab import ReadProblem, Tab, Technique, find_key
from slp_guitar.techniques import TECHNIQUES

NOTE_VALUES = ("Whole", "Half", "Quarter", "Eighth", "16th", "32nd", "64th", "128th", "256th")
CONTENTS = Contents("gpif", iter_xml_parts)
STRINGED = re.compile(r"guitar|gtr|bass(?!oon)|banjo|uku|mando|lute|sitar", re.I)
"""Types of instruments whose staves are read by strings; those of others, by pitch."""
SIMILE_BARS = {"Simple": 1, "FirstOfDouble": 2, "SecondOfDouble": 2}
"""How many bars back the bar is that a simile mark repeats."""
MAX_PARTS_OF_BAR = 1000
"""To how small a share of a bar the place of a change of tempo is exact."""
QUARTERS_OF_TEMPO_UNIT = {"1": 0.5, "3": 1.5, "4": 2.0, "5": 3.0}


def read_gp_tabs(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a Guitar Pro 6 to 8 file: a tab for each staff; one without strings has pitches alone.

    Returns:
        The tabs, each with the song's title, and the track's name where there are several; and what
        of the file is not in them.

    Raises:
        ValueError: if there is no such file, it is no Guitar Pro 6 to 8 file or unpacks to more
            than 64 MiB, or it has no track that a tab can be made of.
    """
    max_bytes, source = bounds.MAX_FILE_BYTES["Guitar Pro 6 to 8"], Path(path).name
    content = safe_read.read_bytes(path, "a Guitar Pro file", max_bytes)
    with safe_read.translate_read_errors(path, "a Guitar Pro 6, 7 or 8 file"):
        root = safe_read.parse_xml(
            read_gpx_member(content, "score.gpif")
            if is_gpx(content)
            else safe_read.read_zip_member(content, "Content/score.gpif", bounds.MAX_UNPACKED_BYTES)
        )
        song = _Song(root, bounds.max_notes_of_file(len(content)))
        builders: list[TabBuilder] = []
        staves: list[tuple[ET.Element, ET.Element]] = []
        for track in root.iterfind("Tracks/Track"):
            # Older files have one staff, which is not named so.
            staves += ((track, staff) for staff in track.findall("Staves/Staff") or [track])
        drums = {place for place, (track, _) in enumerate(staves) if _is_drums(track)}
        if root.find("MasterTrack/Anacrusis") is not None:
            song.shorten_pickup({*range(len(staves))} - drums)
        song.read_tempos(root)
        for place, (track, staff) in enumerate(staves):
            pitches = staff.findtext("*/Property[@name='Tuning']/Pitches", "").split()
            capo = int(staff.findtext("*/Property[@name='CapoFret']/Fret") or 0)
            tuning = Tuning(tuple(map(int, reversed(pitches))), capo)
            kinds = [each.get("ref", each.text or "") for each in track.iterfind("Instrument")]
            kinds += [each.text or "" for each in track.iterfind("InstrumentSet/Type")]
            is_guitar = any(tuning.open_pitches) and (not kinds or STRINGED.search(" ".join(kinds)))
            guitar = tuning if is_guitar else None
            builder = TabBuilder(track.findtext("Name", ""), guitar, song.headers)
            if place in drums:
                builder.reason_left_out = "it is drums"
            else:
                if track is not staves[place - 1][0] or not place:
                    builder.omissions.record_unread(CONTENTS.find_unread(track))
                song.read_staff(builder, place, tuning)
            builders.append(builder)
        title = root.findtext("Score/Title", "")
        return tab_builder.build_tabs(source, title, builders, song.max_notes, song.omissions)


def _is_drums(track: ET.Element) -> bool:
    """Return whether a track is of drums."""
    is_set = "drum" in track.findtext("InstrumentSet/Type", "").lower()
    return is_set or track.find("GeneralMidi[@table='Percussion']") is not None


class _Song:
    """The lists of a file, each by number."""

    def __init__(self, root: ET.Element, max_notes: int):
        """Read the lists and the bars.

        Args:
            root: the XML.
            max_notes: notes and rests that the file may have.

        Raises:
            ValueError: for an invalid time signature or tempo.
        """
        self.bars, self.voices, self.beats, self.notes, self.rhythms = (
            {each.get("id"): each for each in root.iterfind(path)}
            for path in ("Bars/Bar", "Voices/Voice", "Beats/Beat", "Notes/Note", "Rhythms/Rhythm")
        )
        self.master_bars = root.findall("MasterBars/MasterBar")
        tab_builder.check_bar_count(len(self.master_bars))
        self.headers = [_read_master_bar(bar) for bar in self.master_bars]
        tab_builder.extend_endings_in_place(self.headers)
        self.num_read, self.max_notes, self.omissions = 0, max_notes, Omissions()
        self.unread: dict[ET.Element, list[str]] = {}
        self.omissions.record_unread(CONTENTS.find_unread(root))
        for number, bar in enumerate(self.master_bars, start=1):
            self.omissions.record_unread(CONTENTS.find_unread(bar), number)

    def read_tempos(self, root: ET.Element) -> None:
        """Read the tempos, and name the other automations, those of tracks among them."""
        for automation in root.iterfind(".//Automations/Automation"):
            whole = ET.Element("Automations")
            whole.append(automation)
            place_of_bar = int(automation.findtext("Bar") or 0)
            self.omissions.record_unread(CONTENTS.find_unread(whole), place_of_bar + 1)
            if automation.findtext("Type") != "Tempo":
                continue
            number, unit = (*automation.findtext("Value", "").split(), "2")[:2]
            tempo = float(number) * QUARTERS_OF_TEMPO_UNIT.get(unit, 1.0)
            header = self.headers[place_of_bar]
            place = bounds.parse_exact_number(automation.findtext("Position") or "0")
            place = place.limit_denominator(MAX_PARTS_OF_BAR)
            tempo_bpm = min(max(round(tempo), 1), 1000)
            if place:  # a share of the bar
                header.tempo_changes[place * header.length_quarters] = tempo_bpm
            else:
                header.tempo = tempo_bpm

    def find_unread(self, element: ET.Element) -> list[str]:
        """Return what of an element is left out; each is looked into once."""
        if element not in self.unread:
            self.unread[element] = CONTENTS.find_unread(element)
        return self.unread[element]

    def shorten_pickup(self, staves: Iterable[int]) -> None:
        """Have the first bar, a pickup, last only as long as what some staves have in it."""
        bars = self.master_bars[0].findtext("Bars", "").split() if self.master_bars else []
        lengths = [
            sum((self.beat_length(self.beats[name]) for name in beats.split()), Fraction(0))
            for place in staves
            if place < len(bars)
            for voice in self.bars[bars[place]].findtext("Voices", "").split()
            if voice != "-1" and (beats := self.voices[voice].findtext("Beats", ""))
        ]
        if not lengths:
            return
        header = self.headers[0]
        header.length_quarters = min(max(lengths), header.length_quarters)
        header.length_quarters = header.length_quarters or Fraction(1)

    def beat_length(self, beat: ET.Element) -> Fraction:
        """Return the length of a beat in quarter notes; a grace note has none."""
        is_grace = beat.find("GraceNotes") is not None
        return Fraction(0) if is_grace else _read_rhythm(self.beat_rhythm(beat))

    def beat_rhythm(self, beat: ET.Element) -> ET.Element:
        """Return what says how long a beat is."""
        rhythm = beat.find("Rhythm")
        return self.rhythms[rhythm.get("ref") if rhythm is not None else ""]

    def read_staff(self, builder: TabBuilder, place: int, tuning: Tuning) -> None:
        """Read the notes of a staff.

        Args:
            builder: takes them.
            place: which staff of all tracks it is, from 0.
            tuning: the strings that it states, if it is not read by them either.

        Raises:
            ValueError: for more notes and rests than a file of its size may have.
        """
        # A file may name an element as often as it likes: each is looked into once.
        lengths: dict[str, Fraction] = {}
        read: dict[tuple[str, str], tuple[Note, set[Technique], bool]] = {}
        begin, omissions = Fraction(0), builder.omissions
        for number, (header, master_bar) in enumerate(
            zip(self.headers, self.master_bars, strict=True), start=1
        ):
            bar = self.bars[master_bar.findtext("Bars", "").split()[place]]
            omissions.record_unread(self.find_unread(bar), number)
            used = [name for name in bar.findtext("Voices", "").split() if name != "-1"]
            if len(used) > 2:
                omissions.record("third and fourth voices are left out", number)
            for voice, voice_name in enumerate(used[:2], start=1):
                now = Fraction(0)
                omissions.record_unread(self.find_unread(self.voices[voice_name]), number)
                for beat_name in self.voices[voice_name].findtext("Beats", "").split():
                    beat = self.beats[beat_name]
                    notes = beat.findtext("Notes", "").split()
                    omissions.record_unread(self.find_unread(beat), number)
                    self.num_read += max(len(notes), 1)
                    if self.num_read > self.max_notes:
                        raise ValueError(f"it has more than {self.max_notes:,} notes and rests")
                    if beat.find("GraceNotes") is not None:
                        continue
                    if beat_name not in lengths:
                        lengths[beat_name] = self.beat_length(beat)
                    length = lengths[beat_name]
                    omissions.record_unread(self.find_unread(self.beat_rhythm(beat)), number)
                    for name in notes if now < header.length_quarters else ():
                        omissions.record_unread(self.find_unread(self.notes[name]), number)
                        if (name, beat_name) not in read:
                            own = self.notes[name], beat, tuning, builder.tuning is not None
                            read[name, beat_name] = _read_note(*own)
                        note, techniques, is_tied = read[name, beat_name]
                        event = NoteEvent(begin + now, length, note, {*techniques}, voice)
                        builder.add_note(event, is_tied)
                    if now >= header.length_quarters:
                        omissions.record(tab_builder.AFTER_BAR, number, len(notes))
                    now += length
                    bounds.check_score_moment(now)
            mark = bar.findtext("SimileMark", "")
            builder.copy_earlier_bar(number, SIMILE_BARS.get(mark, 0))
            begin += header.length_quarters


def _read_master_bar(element: ET.Element) -> BarHeader:
    """Return a bar without its notes.

    Raises:
        ValueError: for an invalid time signature.
    """
    beats, unit = map(int, element.findtext("Time", "4/4").split("/"))
    header = BarHeader.of_meter(beats, unit)
    fifths = int(element.findtext("Key/AccidentalCount") or 0)
    header.key = find_key(fifths, element.findtext("Key/Mode") == "Minor")
    repeat = element.find("Repeat")
    if repeat is not None:
        header.starts_repeat = repeat.get("start") == "true"
        header.num_plays = int(repeat.get("count", 2)) if repeat.get("end") == "true" else 0
    header.endings = tuple(map(int, element.findtext("AlternateEndings", "").split()))
    signs = (each.text or "" for each in element.iterfind("Directions/*"))
    header.signs = tuple(sign for sign in signs if sign in PLAYING_SIGNS)
    return header


def _read_rhythm(rhythm: ET.Element) -> Fraction:
    """Return a length in quarter notes.

    Raises:
        ValueError: for a note value that there is not.
    """
    length = Fraction(4, 1 << NOTE_VALUES.index(rhythm.findtext("NoteValue", "")))
    dots, tuplet = rhythm.find("AugmentationDot"), rhythm.find("PrimaryTuplet")
    if dots is not None:
        length *= 2 - Fraction(1, 1 << min(int(dots.get("count", 1)), 4))
    if tuplet is not None:
        length *= Fraction(int(tuplet.get("den", 1)), int(tuplet.get("num", 1)))
    return length


def _has_sign(note: ET.Element, beat: ET.Element, sign: str) -> bool:
    """Return whether a note has a sign of `TechniqueSigns.gpif`."""
    if sign.startswith("Beat/"):
        return beat.find(sign.removeprefix("Beat/")) is not None
    name, _, bit = sign.partition("&")
    return bool(int(note.findtext(name) or 0) & int(bit)) if bit else note.find(name) is not None


def _read_note(
    element: ET.Element, beat: ET.Element, tuning: Tuning, is_guitar: bool
) -> tuple[Note, set[Technique], bool]:
    """Return where a note is, how it is played, and whether it is held on from the one before."""
    properties = {each.get("name"): each for each in element.iterfind("Properties/Property")}

    def value(name: str, default: str = "0") -> str:
        return "".join(properties[name].itertext()).strip() if name in properties else default

    note = Note(len(tuning.open_pitches) - int(value("String")), int(value("Fret")))
    if not is_guitar:
        usual = 12 * int(value("Octave")) + int(value("Tone"))  # as Guitar Pro 6 has pitches
        if "String" in properties and "Tone" not in properties and "Midi" not in properties:
            usual = tuning.pitch_of(note)
        note = Note(0, int(value("Midi", str(usual))))
    tie = element.find("Tie")
    is_tied = tie is not None and tie.get("destination") == "true"
    bends = ("BendOriginValue", "BendMiddleValue", "BendDestinationValue")
    top = round(max(float(value(name)) for name in bends) / BEND_UNITS_PER_QUARTER_TONE)
    techniques = {
        Technique(kind)
        for kind, signs in TECHNIQUES.items()
        if any(_has_sign(element, beat, sign) for sign in signs.gpif)
    }
    if "Bended" in properties:
        techniques.add(Technique("bend", min(max(top, 1), 24)))
    return note, techniques, is_tied
