"""Tabs as MusicXML, which notation programs open: a staff of tablature with strings and frets.

There string 1 is the highest as well, but the lines of the staff that the tuning is given for are
counted from the bottom. Open strings are without the capo, pitches with it.
"""

import xml.etree.ElementTree as ET
from pathlib import Path

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.guitar.formats.notation import (
    Beat,
    Measure,
    NoteValue,
    TiedNote,
    measures_from_tab,
)
from slp_transformer.guitar.fretboard import Tuning
from slp_transformer.guitar.tab import Tab, check_tab
from slp_transformer.guitar.timing import find_common_steps_per_quarter

PITCH_SPELLINGS = (("C", 0), ("C", 1), ("D", 0), ("E", -1), ("E", 0), ("F", 0))
PITCH_SPELLINGS += (("F", 1), ("G", 0), ("A", -1), ("A", 0), ("B", -1), ("B", 0))
NOTE_TYPE_NAMES = {
    1: "whole",
    2: "half",
    4: "quarter",
    8: "eighth",
    16: "16th",
    32: "32nd",
    64: "64th",
}
DOCTYPE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<!DOCTYPE score-partwise PUBLIC "-//Recordare//DTD MusicXML 4.0 Partwise//EN" '
    '"http://www.musicxml.org/dtds/partwise.dtd">\n'
)


def format_musicxml(tab: Tab) -> str:
    """A tab as MusicXML 4.0.

    Raises:
        ValueError: if the tab cannot be written down, has no bar or no time, or notes shorter than
            any note value.
    """
    check_tab(tab)
    if not tab.bars:
        raise ValueError("MusicXML needs at least one bar.")
    measures = measures_from_tab(tab)
    lengths = [
        beat.note_value.duration_quarters for m in measures for voice in m.voices for beat in voice
    ]
    score = ET.Element("score-partwise", version="4.0")
    _add_element(ET.SubElement(score, "work"), "work-title", _to_printable(tab.title))
    parts = ET.SubElement(score, "part-list")
    _add_element(ET.SubElement(parts, "score-part", id="P1"), "part-name", "Guitar")
    part = ET.SubElement(score, "part", id="P1")
    _MusicXmlWriter(tab.tuning, find_common_steps_per_quarter(lengths)).write_measures(
        part, measures
    )
    ET.indent(score)
    return DOCTYPE + ET.tostring(score, encoding="unicode") + "\n"


def write_musicxml(tab: Tab, path: str | Path) -> None:
    """Write `format_musicxml(tab)` to a file, which is either whole or not there.

    Raises:
        ValueError: as `format_musicxml`.
        OSError: if the file cannot be written.
    """
    text = format_musicxml(tab)
    with atomic_write(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _to_printable(title: str) -> str:
    """A title in one line, without what XML cannot hold."""
    return "".join(mark for mark in " ".join(title.split()) if mark.isprintable())


def _add_element(
    parent: ET.Element, name: str, text: object = None, **attributes: str
) -> ET.Element:
    """Add an element with text in it."""
    child = ET.SubElement(parent, name, attributes)
    child.text = None if text is None else str(text)
    return child


class _MusicXmlWriter:
    """Writes the measures of one guitar."""

    def __init__(self, tuning: Tuning, divisions: int):
        """Begin; a quarter note has so many divisions."""
        self.tuning, self.divisions = tuning, divisions
        self.time_signature: tuple[int, int] | None = None
        self.open_spanners: dict[
            tuple[int, str], bool
        ] = {}  # slurs and slides that have begun, by string

    def write_measures(self, part_element: ET.Element, measures: list[Measure]) -> None:
        """Write all of them."""
        for number, measure in enumerate(measures, start=1):
            written = ET.SubElement(part_element, "measure", number=str(number))
            before = measures[number - 2] if number > 1 else None
            after = measures[number] if number < len(measures) else None
            self.write_barline(written, measure, before, "left")
            self.write_attributes(written, measure, is_first=number == 1)
            if measure.bar.tempo_bpm is not None:
                _add_tempo(written, measure.bar.tempo_bpm)
            for voice, beats in enumerate(measure.voices, start=1):
                if voice == 2 and beats:
                    length = sum(self.to_divisions(beat.note_value) for beat in measure.voices[0])
                    _add_element(ET.SubElement(written, "backup"), "duration", length)
                for beat in beats:
                    self.write_beat(written, beat, voice)
            self.write_barline(written, measure, after, "right")

    def to_divisions(self, note_value: NoteValue) -> int:
        """Return a note value in divisions."""
        return int(note_value.duration_quarters * self.divisions)

    def write_attributes(self, element: ET.Element, measure: Measure, is_first: bool) -> None:
        """Write time signature, clef, tuning and capo where they begin."""
        if not is_first and measure.bar.time_signature == self.time_signature:
            return
        self.time_signature = measure.bar.time_signature
        attributes = ET.SubElement(element, "attributes")
        if is_first:
            _add_element(attributes, "divisions", self.divisions)
            _add_element(ET.SubElement(attributes, "key"), "fifths", 0)
        time = ET.SubElement(attributes, "time")
        _add_element(time, "beats", self.time_signature[0])
        _add_element(time, "beat-type", self.time_signature[1])
        if not is_first:
            return
        clef = ET.SubElement(attributes, "clef")
        _add_element(clef, "sign", "TAB")
        _add_element(clef, "line", 5)
        details = ET.SubElement(attributes, "staff-details")
        _add_element(details, "staff-lines", len(self.tuning.open_pitches))
        for line, pitch in enumerate(reversed(self.tuning.open_pitches), start=1):
            tuning = ET.SubElement(details, "staff-tuning", line=str(line))
            _add_pitch(tuning, pitch, "tuning-")
        if self.tuning.capo:
            _add_element(details, "capo", self.tuning.capo)

    def write_barline(
        self, element: ET.Element, measure: Measure, neighbor: Measure | None, location: str
    ) -> None:
        """Repeats and endings at one side of a measure."""
        bar = measure.bar
        edge = bar.endings and (neighbor is None or neighbor.bar.endings != bar.endings)
        if location == "right" and bar.num_plays > 1:
            edge = bool(bar.endings)
        repeats = bar.starts_repeat if location == "left" else bar.num_plays > 1
        if not (edge or repeats):
            return
        line = ET.SubElement(element, "barline", location=location)
        if edge:
            kind = "start" if location == "left" else "stop"
            _add_element(line, "ending", number=",".join(map(str, bar.endings)), type=kind)
        if repeats and location == "left":
            ET.SubElement(line, "repeat", direction="forward")
        elif repeats:
            ET.SubElement(line, "repeat", direction="backward", times=str(bar.num_plays))

    def write_beat(self, element: ET.Element, beat: Beat, voice: int) -> None:
        """A beat: one note element for each of its notes, or a rest."""
        notes = sorted(beat.notes, key=lambda tied: -tied.tab_note.note.string)
        for place, tied in enumerate(notes or [None]):
            note = ET.SubElement(element, "note")
            if place:
                ET.SubElement(note, "chord")
            if tied is None:
                ET.SubElement(note, "rest")
            else:
                _add_pitch(
                    ET.SubElement(note, "pitch"), self.tuning.pitch_of(tied.tab_note.note), ""
                )
            _add_element(note, "duration", self.to_divisions(beat.note_value))
            if tied is not None:
                for kind, so in (("stop", not tied.is_struck), ("start", tied.is_tied_to_next)):
                    if so:
                        ET.SubElement(note, "tie", type=kind)
            _add_element(note, "voice", voice)
            _add_element(note, "type", NOTE_TYPE_NAMES[beat.note_value.denominator])
            if beat.note_value.is_dotted:
                ET.SubElement(note, "dot")
            if beat.note_value.tuplet_notes != beat.note_value.tuplet_time:
                change = ET.SubElement(note, "time-modification")
                _add_element(change, "actual-notes", beat.note_value.tuplet_notes)
                _add_element(change, "normal-notes", beat.note_value.tuplet_time)
            if tied is not None:
                self.write_notations(note, tied)

    def write_notations(self, note_element: ET.Element, tied_note: TiedNote) -> None:
        """Ties, string and fret, and techniques."""
        played = tied_note.tab_note
        kinds = {technique.kind: technique for technique in played.techniques}
        if "dead" in kinds:
            _add_element(note_element, "notehead", "x")
        notations = ET.SubElement(note_element, "notations")
        for kind, so in (("stop", not tied_note.is_struck), ("start", tied_note.is_tied_to_next)):
            if so:
                ET.SubElement(notations, "tied", type=kind)
        if tied_note.is_struck and "let ring" in kinds:
            ET.SubElement(notations, "tied", type="let-ring")
        technical = ET.Element("technical")
        _add_element(technical, "string", played.note.string)
        _add_element(technical, "fret", played.note.fret)
        for kind, name, mark in (("hammer", "hammer-on", "H"), ("pull", "pull-off", "P")):
            self.write_spanner(technical, tied_note, name, mark, kind in kinds)
        if tied_note.is_struck and "bend" in kinds:
            bend = ET.SubElement(technical, "bend")
            _add_element(bend, "bend-alter", f"{max(1, kinds['bend'].bend_quarter_tones) / 2:g}")
        if tied_note.is_struck and "harmonic" in kinds:
            ET.SubElement(ET.SubElement(technical, "harmonic"), "natural")
        if tied_note.is_struck and "vibrato" in kinds:
            _add_element(technical, "other-technical", "vibrato")
        self.write_spanner(notations, tied_note, "slide", None, "slide" in kinds)
        notations.append(technical)

    def write_spanner(
        self,
        parent: ET.Element,
        tied_note: TiedNote,
        name: str,
        mark: str | None,
        should_start: bool,
    ) -> None:
        """Write the techniques that lead from one note to the next on its string."""
        string = tied_note.tab_note.note.string
        number = str(string)
        if tied_note.is_struck and self.open_spanners.pop((string, name), False):
            _add_element(parent, name, type="stop", number=number)
        if should_start and not tied_note.is_tied_to_next:
            _add_element(parent, name, mark, type="start", number=number)
            self.open_spanners[string, name] = True


def _add_pitch(parent: ET.Element, pitch: int, prefix: str) -> None:
    """A pitch as letter, half steps from it, and octave."""
    letter, alter = PITCH_SPELLINGS[pitch % 12]
    _add_element(parent, f"{prefix}step", letter)
    if alter:
        _add_element(parent, f"{prefix}alter", alter)
    _add_element(parent, f"{prefix}octave", pitch // 12 - 1)


def _add_tempo(element: ET.Element, tempo: int) -> None:
    """A tempo to see and to play in."""
    direction = ET.SubElement(element, "direction", placement="above")
    metronome = ET.SubElement(ET.SubElement(direction, "direction-type"), "metronome")
    _add_element(metronome, "beat-unit", "quarter")
    _add_element(metronome, "per-minute", tempo)
    ET.SubElement(direction, "sound", tempo=str(tempo))
