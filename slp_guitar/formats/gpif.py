"""Guitar Pro 6 to 8 files (`.gpx`, `.gp`): a container with XML, which is called GPIF, in it.

That of Guitar Pro 6 is in `slp_guitar.formats.gpx`; the later ones are ZIP archives.

Everything in it is in lists and is named by number: a bar names its voices, a voice its beats,
a beat its rhythm and notes. String 0 is the lowest; frets count from the capo.
"""

import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

from slp_guitar.formats.gpx import is_gpx, read_gpx_member
from slp_guitar.formats.guitar_pro import BEND_UNITS_PER_QUARTER_TONE
from slp_guitar.formats.safe_read import (
    parse_xml,
    read_bytes,
    read_zip_member,
    translate_read_errors,
)
from slp_guitar.formats.tab_builder import (
    AFTER_BAR,
    BarHeader,
    NoteEvent,
    TabBuilder,
    build_tabs,
    check_bar_count,
    extend_endings_in_place,
)
from slp_guitar.fretboard import Note, Tuning
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.tab import ReadProblem, Tab, Technique
from slp_guitar.techniques import TECHNIQUES
from slp_transformer._internal.bounds import (
    MAX_FILE_BYTES,
    MAX_UNPACKED_BYTES,
    check_score_moment,
    max_notes_of_file,
    parse_exact_number,
)

NOTE_VALUES = ("Whole", "Half", "Quarter", "Eighth", "16th", "32nd", "64th", "128th", "256th")
LEFT_OUT = {
    "marks of tremolo picking": "Tremolo",
    "moves of the whammy bar": "Whammy",
    "fade-ins": "Fadding",
    "strokes": "Arpeggio",
}
"""What a beat has that no tab has."""
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
    max_bytes, source = MAX_FILE_BYTES["Guitar Pro 6 to 8"], Path(path).name
    content = read_bytes(path, "a Guitar Pro file", max_bytes)
    with translate_read_errors(path, "a Guitar Pro 6, 7 or 8 file"):
        root = parse_xml(
            read_gpx_member(content, "score.gpif")
            if is_gpx(content)
            else read_zip_member(content, "Content/score.gpif", MAX_UNPACKED_BYTES)
        )
        song = _Song(root, max_notes_of_file(len(content)))
        builders: list[TabBuilder] = []
        for track in root.iterfind("Tracks/Track"):
            table = track.find("GeneralMidi[@table='Percussion']")
            is_drums = (
                table is not None or "drum" in track.findtext("InstrumentSet/Type", "").lower()
            )
            # Older files have one staff, which is not named so.
            for staff in track.findall("Staves/Staff") or [track]:
                pitches = staff.findtext("*/Property[@name='Tuning']/Pitches", "").split()
                capo = int(staff.findtext("*/Property[@name='CapoFret']/Fret") or 0)
                tuning = Tuning(tuple(map(int, reversed(pitches))), capo)
                guitar = tuning if any(tuning.open_pitches) else None
                builder = TabBuilder(track.findtext("Name", ""), guitar, song.headers)
                if is_drums:
                    builder.reason_left_out = "it is drums"
                else:
                    song.read_staff(builder, len(builders))
                builders.append(builder)
        return build_tabs(source, root.findtext("Score/Title", ""), builders, song.max_notes)


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
        check_bar_count(len(self.master_bars))
        self.headers = [_read_master_bar(bar) for bar in self.master_bars]
        extend_endings_in_place(self.headers)
        if root.find("MasterTrack/Anacrusis") is not None and self.headers:
            self.shorten_pickup()
        for automation in root.iterfind("MasterTrack/Automations/Automation[Type='Tempo']"):
            number, unit = (*automation.findtext("Value", "").split(), "2")[:2]
            tempo = float(number) * QUARTERS_OF_TEMPO_UNIT.get(unit, 1.0)
            header = self.headers[int(automation.findtext("Bar") or 0)]
            place = parse_exact_number(automation.findtext("Position") or "0")
            place = place.limit_denominator(MAX_PARTS_OF_BAR)
            tempo_bpm = min(max(round(tempo), 1), 1000)
            if place:  # a share of the bar
                header.tempo_changes[place * header.length_quarters] = tempo_bpm
            else:
                header.tempo = tempo_bpm
        self.num_read, self.max_notes = 0, max_notes

    def shorten_pickup(self) -> None:
        """Have the first bar, a pickup, last only as long as what is in it."""
        lengths = [
            sum((self.beat_length(self.beats[name]) for name in beats.split()), Fraction(0))
            for bar in self.master_bars[0].findtext("Bars", "").split()
            for voice in self.bars[bar].findtext("Voices", "").split()
            if voice != "-1" and (beats := self.voices[voice].findtext("Beats", ""))
        ]
        header = self.headers[0]
        header.length_quarters = min(max(lengths, default=Fraction(0)), header.length_quarters)
        header.length_quarters = header.length_quarters or Fraction(1)

    def beat_length(self, beat: ET.Element) -> Fraction:
        """Return the length of a beat in quarter notes; a grace note has none."""
        rhythm = beat.find("Rhythm")
        if beat.find("GraceNotes") is not None:
            return Fraction(0)
        return _read_rhythm(self.rhythms[rhythm.get("ref") if rhythm is not None else ""])

    def read_staff(self, builder: TabBuilder, place: int) -> None:
        """Read the notes of a staff.

        Args:
            builder: takes them.
            place: which staff of all tracks it is, from 0.

        Raises:
            ValueError: for more notes and rests than a file of its size may have.
        """
        # A file may name an element as often as it likes: each is looked into once.
        beats: dict[str, tuple[list[str], Fraction | None, list[str]]] = {}
        read: dict[tuple[str, str], tuple[Note, set[Technique], bool]] = {}
        num_strings = len(builder.tuning.open_pitches) if builder.tuning else 0
        begin = Fraction(0)
        for number, (header, master_bar) in enumerate(
            zip(self.headers, self.master_bars, strict=True), start=1
        ):
            bar = self.bars[master_bar.findtext("Bars", "").split()[place]]
            used = [name for name in bar.findtext("Voices", "").split() if name != "-1"]
            if len(used) > 2:
                builder.record_omission("third and fourth voices are left out", number)
            if master_bar.find("TripletFeel") is not None:
                builder.record_omission("bars in triplet feel are read as they are written", number)
            for voice, voice_name in enumerate(used[:2], start=1):
                now = Fraction(0)
                for beat_name in self.voices[voice_name].findtext("Beats", "").split():
                    beat = self.beats[beat_name]
                    if beat_name not in beats:
                        names = beat.findtext("Notes", "").split()
                        missing = [w for w, at in LEFT_OUT.items() if beat.find(at) is not None]
                        is_grace = beat.find("GraceNotes") is not None
                        length = None if is_grace else self.beat_length(beat)
                        beats[beat_name] = names, length, missing
                    notes, length, missing = beats[beat_name]
                    self.num_read += max(len(notes), 1)
                    if self.num_read > self.max_notes:
                        raise ValueError(f"it has more than {self.max_notes:,} notes and rests")
                    if length is None:
                        builder.record_omission("grace notes are left out", number, len(notes))
                        continue
                    for what in missing:
                        builder.record_omission(f"{what} are left out", number, len(notes))
                    for name in notes if now < header.length_quarters else ():
                        element = self.notes[name]
                        if (name, beat_name) not in read:
                            read[name, beat_name] = _read_note(element, beat, num_strings)
                        note, techniques, is_tied = read[name, beat_name]
                        if element.find("Trill") is not None:
                            builder.record_omission("trills are left out", number)
                        event = NoteEvent(begin + now, length, note, {*techniques}, voice)
                        builder.add_note(event, is_tied)
                    if now >= header.length_quarters:
                        builder.record_omission(AFTER_BAR, number, len(notes))
                    now += length
                    check_score_moment(now)
            mark = bar.findtext("SimileMark", "")
            builder.copy_earlier_bars(number, SIMILE_BARS.get(mark, 0))
            begin += header.length_quarters


def _read_master_bar(element: ET.Element) -> BarHeader:
    """Return a bar without its notes.

    Raises:
        ValueError: for an invalid time signature.
    """
    beats, unit = map(int, element.findtext("Time", "4/4").split("/"))
    if beats < 1 or unit not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"a bar has the time signature {beats}/{unit}")
    header = BarHeader(Fraction(4 * beats, unit), (beats, unit))
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
    element: ET.Element, beat: ET.Element, num_strings: int
) -> tuple[Note, set[Technique], bool]:
    """Return where a note is, how it is played, and whether it is held on from the one before."""
    properties = {each.get("name"): each for each in element.iterfind("Properties/Property")}

    def value(name: str, default: str = "0") -> str:
        return "".join(properties[name].itertext()).strip() if name in properties else default

    if num_strings:
        note = Note(num_strings - int(value("String")), int(value("Fret")))
    else:
        usual = 12 * int(value("Octave")) + int(value("Tone"))  # as Guitar Pro 6 has pitches
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
