"""MusicXML, which notation programs open, written as tab.

There string 1 is the highest as well, but the lines of the staff that the tuning is given for are
counted from the bottom. Open strings are without the capo, pitches with it.
"""

import re
import xml.etree.ElementTree as ET
from math import lcm

from slp_guitar.formats.musicxml import BEATS
from slp_guitar.formats.notation import (
    NOTE_VALUE_DENOMINATORS,
    Beat,
    Measure,
    NoteValue,
    TiedNote,
    check_tracks_have_same_bars,
    measures_from_tab,
)
from slp_guitar.fretboard import midi_program
from slp_guitar.playing_signs import PLAYING_SIGNS, START
from slp_guitar.tab import KEYS, Tab
from slp_guitar.techniques import TECHNIQUES
from slp_guitar.theory import NOTE_NAMES

_SIGN_PATTERN = re.compile(
    r"notations/(?:(?P<group>technical|articulations)/)?\[?(?P<name>[\w-]+)"
    r"(?:='(?P<text>.*)'\]|\[@type='(?P<type>[\w-]+)'\])?"
)
"""Of `TechniqueSigns.musicxml`, what is written of it."""
NOTE_TYPE_NAMES = {kind: BEATS[kind.bit_length() + 2] for kind in NOTE_VALUE_DENOMINATORS}
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
    check_tracks_have_same_bars(tracks, needs_strings=False)
    score = _element("score-partwise", version="4.0")
    score.append(_element("work", _element("work-title", _without_unprintable(tracks[0].title))))
    score.append(part_list := _element("part-list"))
    for number, tab in enumerate(tracks, start=1):
        part, instrument = f"P{number}", f"P{number}-I1"
        midi = (
            _element("midi-channel", (number - 1) % 9 + 1),
            _element("midi-program", midi_program(tab.tuning) + 1),
        )
        name = _without_unprintable(tab.track) or ("Guitar" if tab.is_fingered else "Music")
        part_list.append(
            _element(
                "score-part",
                _element("part-name", name),
                _element("score-instrument", _element("instrument-name", name), id=instrument),
                _element("midi-instrument", *midi, id=instrument),
                id=part,
            )
        )
        score.append(_MusicXmlWriter(tab, measures_from_tab(tab)).part_element(part))
    ET.indent(score)
    return DOCTYPE + ET.tostring(score, encoding="unicode") + "\n"


def _without_unprintable(text: str) -> str:
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
    """Writes the measures of one guitar, or of notes without strings."""

    def __init__(self, tab: Tab, measures: list[Measure]):
        """Find the divisions of a quarter note in which every note value is a whole number."""
        self.tuning, self.is_fingered, self.measures = tab.tuning, tab.is_fingered, measures
        beats = [beat for measure in measures for voice in measure.voices for beat in voice]
        self.divisions = lcm(*(beat.note_value.duration_quarters.denominator for beat in beats))
        self.open_spanners: set[tuple[int, str]] = set()  # slurs and slides, by string
        # Elements that are in many notes, never as the last: those of a pitch, and of a length.
        self.pitches: dict[int, ET.Element] = {}
        self.lengths: dict[tuple[NoteValue, int], list[ET.Element]] = {}

    def part_element(self, name: str) -> ET.Element:
        """Return the part with all measures."""
        part = _element("part", id=name)
        for number, measure in enumerate(self.measures, start=1):
            around = [None, *self.measures, None][number - 1 : number + 2 : 2]
            first, second = measure.voices
            content = self.barline_elements(measure, around[0], "left")
            content += self.attribute_elements(measure, is_first=number == 1)
            signs = measure.bar.signs
            content += [_sign_element(sign) for sign in signs if not PLAYING_SIGNS[sign].leads_to]
            if measure.bar.tempo_bpm is not None:
                content.append(_tempo_element(measure.bar.tempo_bpm))
            for beat in first:
                content += [_tempo_element(beat.tempo_bpm)] if beat.tempo_bpm else []
                content += self.note_elements(beat, 1)
            if second:
                length = sum(self.to_divisions(beat.note_value) for beat in first)
                content.append(_element("backup", _element("duration", length)))
                content += [note for beat in second for note in self.note_elements(beat, 2)]
            content += [_sign_element(sign) for sign in signs if PLAYING_SIGNS[sign].leads_to]
            content += self.barline_elements(measure, around[1], "right")
            part.append(_element("measure", *content, number=str(number)))
        return part

    def to_divisions(self, note_value: NoteValue) -> int:
        """Return a note value in divisions."""
        return int(note_value.duration_quarters * self.divisions)

    def attribute_elements(self, measure: Measure, is_first: bool) -> list[ET.Element]:
        """Return key and time signature, clef, tuning and capo where they begin."""
        (fifths, is_minor), (beats, unit) = KEYS[measure.bar.key or "C"], measure.time_signature
        mode = _element("mode", "minor" if is_minor else "major")
        key = _element("key", _element("fifths", fifths), mode)
        time = _element("time", _element("beats", beats), _element("beat-type", unit))
        if not is_first:
            changes = [key] * bool(measure.bar.key) + [time] * bool(measure.bar.time_signature)
            return [_element("attributes", *changes)] if changes else []
        lines = [
            _element("staff-tuning", *_pitch_elements(pitch, "tuning-"), line=str(line))
            for line, pitch in enumerate(reversed(self.tuning.open_pitches), start=1)
        ]
        capo = [_element("capo", self.tuning.capo)] if self.tuning.capo else []
        strings = _element("staff-lines", len(lines)), *lines, *capo
        sign, line, *details = ("TAB", 5, strings) if self.is_fingered else ("G", 2)
        return [
            _element(
                "attributes",
                _element("divisions", self.divisions),
                key,
                time,
                _element("clef", _element("sign", sign), _element("line", line)),
                *(_element("staff-details", *each) for each in details),
            )
        ]

    def barline_elements(
        self, measure: Measure, neighbor: Measure | None, location: str
    ) -> list[ET.Element]:
        """Return the repeats and endings at one side of a measure."""
        bar, is_left, content = measure.bar, location == "left", []
        if bar.endings and (neighbor is None or neighbor.bar.endings != bar.endings):
            numbers = ",".join(map(str, bar.endings))
            kind = "start" if is_left else "stop"
            content.append(_element("ending", number=numbers, type=kind))
        if is_left and bar.starts_repeat:
            content.append(_element("repeat", direction="forward"))
        elif not is_left and bar.num_plays > 1:
            content.append(_element("repeat", direction="backward", times=str(bar.num_plays)))
        return [_element("barline", *content, location=location)] if content else []

    def note_elements(self, beat: Beat, voice: int) -> list[ET.Element]:
        """Return one element for each note of a beat, the lowest first, or a rest."""
        if not beat.notes:
            length = self.length_elements(beat.note_value, voice)
            return [_element("note", _element("rest"), *length)]
        kind = beat.note_value, voice
        if kind not in self.lengths:
            self.lengths[kind] = self.length_elements(*kind)
        duration, *length = self.lengths[kind]
        notes: list[ET.Element] = []
        for tied in reversed(beat.notes):
            pitch = self.tuning.pitch_of(tied.tab_note.note)
            if pitch not in self.pitches:
                self.pitches[pitch] = _element("pitch", *_pitch_elements(pitch))
            chord = [_element("chord")] if notes else []
            ties = [_element("tie", type=kind) for kind in _tie_types(tied)]
            content = [*chord, self.pitches[pitch], duration, *ties, *length]
            dead = any(technique.kind == "dead" for technique in tied.tab_note.techniques)
            is_ghost = any(technique.kind == "ghost" for technique in tied.techniques)
            brackets = {"parentheses": "yes"} if is_ghost else {}
            if dead or is_ghost:
                content.append(_element("notehead", "x" if dead else "normal", **brackets))
            notes.append(_element("note", *content, self.notations_element(tied)))
        return notes

    def length_elements(self, value: NoteValue, voice: int) -> list[ET.Element]:
        """Return what says how long a note is, in the order of a note's elements."""
        actual = _element("actual-notes", value.tuplet_notes)
        normal = _element("normal-notes", value.tuplet_time)
        tuplet = _element("time-modification", actual, normal)
        return [
            _element("duration", self.to_divisions(value)),
            _element("voice", voice),
            _element("type", NOTE_TYPE_NAMES[value.denominator]),
            *[_element("dot")] * value.is_dotted,
            *[tuplet] * (value.tuplet_notes > 1),
        ]

    def notations_element(self, tied: TiedNote) -> ET.Element:
        """Return the ties, string and fret, and techniques of a note."""
        sizes = dict(tied.techniques)
        places = zip(("string", "fret"), tied.tab_note.note, strict=True)
        found = {
            "notations": [_element("tied", type=kind) for kind in _tie_types(tied)],
            "articulations": [],
            "technical": [_element(name, place) for name, place in places] * self.is_fingered,
        }
        for kind, signs in TECHNIQUES.items():
            path = signs.musicxml[0] if signs.musicxml else ""
            sign = _SIGN_PATTERN.fullmatch(path)
            if sign and signs.leads_on:
                mark = [kind[0].upper()] * (sign["group"] == "technical")
                ends = self.spanner_elements(tied, sign["name"], kind in sizes, *mark)
                found[sign["group"] or "notations"] += ends
            elif sign and kind in sizes:
                inside = [sign["text"]] if sign["text"] else []
                inside += [_element("natural")] if kind == "harmonic" else []
                attributes = {"type": sign["type"]} if sign["type"] else {}
                found[sign["group"] or "notations"].append(
                    _element(sign["name"], *inside, **attributes)
                )
        if "bend" in sizes:
            alter = _element("bend-alter", f"{max(1, sizes['bend']) / 2:g}")
            found["technical"].append(_element("bend", alter))
        notations = found.pop("notations")
        return _element(
            "notations", *notations, *(_element(name, *own) for name, own in found.items() if own)
        )

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


def _sign_element(sign: str) -> ET.Element:
    """Return a sign such as D.C. al Fine, to see and to follow."""
    own = PLAYING_SIGNS[sign]
    if sign == "Fine":
        attributes = {"fine": "yes"}
    elif not own.leads_to:
        attributes = {"coda" if "Coda" in sign else "segno": sign}
    elif own.is_conditional:
        attributes = {"tocoda": own.leads_to}
    else:
        attributes = {"dacapo": "yes"} if own.leads_to == START else {"dalsegno": own.leads_to}
    words = _element("direction-type", _element("words", own.summary))
    return _element("direction", words, _element("sound", **attributes), placement="above")


def _tempo_element(tempo_bpm: int) -> ET.Element:
    """Return a tempo to see and to play in."""
    beat, speed = _element("beat-unit", "quarter"), _element("per-minute", tempo_bpm)
    return _element(
        "direction",
        _element("direction-type", _element("metronome", beat, speed)),
        _element("sound", tempo=str(tempo_bpm)),
        placement="above",
    )
