"""Tabs as MusicXML, which notation programs open: a staff of tablature with strings and frets.

There string 1 is the highest as well, but the lines of the staff that the tuning is given for are
counted from the bottom. Open strings stand without the capo, pitches with it.
"""

import xml.etree.ElementTree as ET
from pathlib import Path

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.guitar.formats.notation import Beat, Measure, Tied, Value, measures_of
from slp_transformer.guitar.fretboard import Tuning
from slp_transformer.guitar.tab import Tab, check_tab
from slp_transformer.guitar.timing import common_unit

STEPS = (("C", 0), ("C", 1), ("D", 0), ("E", -1), ("E", 0), ("F", 0))
STEPS += (("F", 1), ("G", 0), ("A", -1), ("A", 0), ("B", -1), ("B", 0))
KINDS = {1: "whole", 2: "half", 4: "quarter", 8: "eighth", 16: "16th", 32: "32nd", 64: "64th"}
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
    measures = measures_of(tab)
    lengths = [beat.value.quarters for m in measures for voice in m.voices for beat in voice]
    score = ET.Element("score-partwise", version="4.0")
    _text(ET.SubElement(score, "work"), "work-title", _printable(tab.title))
    parts = ET.SubElement(score, "part-list")
    _text(ET.SubElement(parts, "score-part", id="P1"), "part-name", "Guitar")
    part = ET.SubElement(score, "part", id="P1")
    _Writer(tab.tuning, common_unit(lengths)).write(part, measures)
    ET.indent(score)
    return DOCTYPE + ET.tostring(score, encoding="unicode") + "\n"


def write_musicxml(tab: Tab, path: str | Path) -> None:
    """Write `format_musicxml(tab)` to a file, which is either whole or not there.

    Raises:
        ValueError: as `format_musicxml`.
        OSError: if the file cannot be written.
    """
    text = format_musicxml(tab)
    with whole_file(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _printable(title: str) -> str:
    """A title in one line, without what XML cannot hold."""
    return "".join(mark for mark in " ".join(title.split()) if mark.isprintable())


def _text(parent: ET.Element, name: str, text: object = None, **attributes: str) -> ET.Element:
    """Add an element with text in it."""
    child = ET.SubElement(parent, name, attributes)
    child.text = None if text is None else str(text)
    return child


class _Writer:
    """Writes the measures of one guitar."""

    def __init__(self, tuning: Tuning, divisions: int):
        """Begin; a quarter note has so many divisions."""
        self.tuning, self.divisions = tuning, divisions
        self.metre: tuple[int, int] | None = None
        self.open: dict[tuple[int, str], bool] = {}  # slurs and slides that have begun, by string

    def write(self, part: ET.Element, measures: list[Measure]) -> None:
        """Write all of them."""
        for number, measure in enumerate(measures, start=1):
            written = ET.SubElement(part, "measure", number=str(number))
            before = measures[number - 2] if number > 1 else None
            after = measures[number] if number < len(measures) else None
            self.barline(written, measure, before, "left")
            self.attributes(written, measure, first=number == 1)
            if measure.bar.tempo is not None:
                _tempo(written, measure.bar.tempo)
            for voice, beats in enumerate(measure.voices, start=1):
                if voice == 2 and beats:
                    length = sum(self.duration(beat.value) for beat in measure.voices[0])
                    _text(ET.SubElement(written, "backup"), "duration", length)
                for beat in beats:
                    self.beat(written, beat, voice)
            self.barline(written, measure, after, "right")

    def duration(self, value: Value) -> int:
        """How many divisions a note value lasts."""
        return int(value.quarters * self.divisions)

    def attributes(self, written: ET.Element, measure: Measure, first: bool) -> None:
        """Metre, clef, tuning and capo, where they begin."""
        if not first and measure.bar.metre == self.metre:
            return
        self.metre = measure.bar.metre
        attributes = ET.SubElement(written, "attributes")
        if first:
            _text(attributes, "divisions", self.divisions)
            _text(ET.SubElement(attributes, "key"), "fifths", 0)
        time = ET.SubElement(attributes, "time")
        _text(time, "beats", self.metre[0])
        _text(time, "beat-type", self.metre[1])
        if not first:
            return
        clef = ET.SubElement(attributes, "clef")
        _text(clef, "sign", "TAB")
        _text(clef, "line", 5)
        details = ET.SubElement(attributes, "staff-details")
        _text(details, "staff-lines", len(self.tuning.open_pitches))
        for line, pitch in enumerate(reversed(self.tuning.open_pitches), start=1):
            tuning = ET.SubElement(details, "staff-tuning", line=str(line))
            _pitch(tuning, pitch, "tuning-")
        if self.tuning.capo:
            _text(details, "capo", self.tuning.capo)

    def barline(
        self, written: ET.Element, measure: Measure, beside: Measure | None, where: str
    ) -> None:
        """Repeats and endings at one side of a measure."""
        bar = measure.bar
        edge = bar.endings and (beside is None or beside.bar.endings != bar.endings)
        if where == "right" and bar.repeats > 1:
            edge = bool(bar.endings)
        repeats = bar.repeat_from if where == "left" else bar.repeats > 1
        if not (edge or repeats):
            return
        line = ET.SubElement(written, "barline", location=where)
        if edge:
            kind = "start" if where == "left" else "stop"
            _text(line, "ending", number=",".join(map(str, bar.endings)), type=kind)
        if repeats and where == "left":
            ET.SubElement(line, "repeat", direction="forward")
        elif repeats:
            ET.SubElement(line, "repeat", direction="backward", times=str(bar.repeats))

    def beat(self, written: ET.Element, beat: Beat, voice: int) -> None:
        """A beat: one note element for each of its notes, or a rest."""
        notes = sorted(beat.notes, key=lambda tied: -tied.played.note.string)
        for place, tied in enumerate(notes or [None]):
            note = ET.SubElement(written, "note")
            if place:
                ET.SubElement(note, "chord")
            if tied is None:
                ET.SubElement(note, "rest")
            else:
                _pitch(ET.SubElement(note, "pitch"), self.tuning.pitch(tied.played.note), "")
            _text(note, "duration", self.duration(beat.value))
            if tied is not None:
                for kind, so in (("stop", not tied.begins), ("start", tied.goes_on)):
                    if so:
                        ET.SubElement(note, "tie", type=kind)
            _text(note, "voice", voice)
            _text(note, "type", KINDS[beat.value.kind])
            if beat.value.dotted:
                ET.SubElement(note, "dot")
            if beat.value.enters != beat.value.times:
                change = ET.SubElement(note, "time-modification")
                _text(change, "actual-notes", beat.value.enters)
                _text(change, "normal-notes", beat.value.times)
            if tied is not None:
                self.notations(note, tied)

    def notations(self, note: ET.Element, tied: Tied) -> None:
        """Ties, string and fret, and techniques."""
        played = tied.played
        kinds = {technique.kind: technique for technique in played.techniques}
        if "dead" in kinds:
            _text(note, "notehead", "x")
        notations = ET.SubElement(note, "notations")
        for kind, so in (("stop", not tied.begins), ("start", tied.goes_on)):
            if so:
                ET.SubElement(notations, "tied", type=kind)
        if tied.begins and "let ring" in kinds:
            ET.SubElement(notations, "tied", type="let-ring")
        technical = ET.Element("technical")
        _text(technical, "string", played.note.string)
        _text(technical, "fret", played.note.fret)
        for kind, name, mark in (("hammer", "hammer-on", "H"), ("pull", "pull-off", "P")):
            self.spanner(technical, tied, name, mark, kind in kinds)
        if tied.begins and "bend" in kinds:
            bend = ET.SubElement(technical, "bend")
            _text(bend, "bend-alter", f"{max(1, kinds['bend'].size) / 2:g}")
        if tied.begins and "harmonic" in kinds:
            ET.SubElement(ET.SubElement(technical, "harmonic"), "natural")
        if tied.begins and "vibrato" in kinds:
            _text(technical, "other-technical", "vibrato")
        self.spanner(notations, tied, "slide", None, "slide" in kinds)
        notations.append(technical)

    def spanner(
        self, parent: ET.Element, tied: Tied, name: str, mark: str | None, begins: bool
    ) -> None:
        """What leads from a note to the next on its string: its end, then its beginning."""
        string = tied.played.note.string
        number = str(string)
        if tied.begins and self.open.pop((string, name), False):
            _text(parent, name, type="stop", number=number)
        if begins and not tied.goes_on:
            _text(parent, name, mark, type="start", number=number)
            self.open[string, name] = True


def _pitch(parent: ET.Element, pitch: int, prefix: str) -> None:
    """A pitch as letter, half steps from it, and octave."""
    letter, alter = STEPS[pitch % 12]
    _text(parent, f"{prefix}step", letter)
    if alter:
        _text(parent, f"{prefix}alter", alter)
    _text(parent, f"{prefix}octave", pitch // 12 - 1)


def _tempo(written: ET.Element, tempo: int) -> None:
    """A tempo to see and to play in."""
    direction = ET.SubElement(written, "direction", placement="above")
    metronome = ET.SubElement(ET.SubElement(direction, "direction-type"), "metronome")
    _text(metronome, "beat-unit", "quarter")
    _text(metronome, "per-minute", tempo)
    ET.SubElement(direction, "sound", tempo=str(tempo))
