"""Guitar Pro 3, 4 and 5 files (`.gp3`, `.gp4`, `.gp5`), read and written by PyGuitarPro.

There too string 1 is the highest, frets count from the capo and open strings are given without it.
What a tab does not hold, such as grace notes, chord diagrams and lyrics, is left out and named.
"""

import io
import re
from collections.abc import Sequence
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from slp_guitar.bounds import MAX_FILE_BYTES
from slp_guitar.formats import safe_read, tab_builder
from slp_guitar.formats.notation import (
    Beat,
    NoteValue,
    TiedNote,
    check_beat_count,
    check_tracks_have_same_bars,
    measures_from_tab,
)
from slp_guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder
from slp_guitar.formats.unread import Contents, Omissions, iter_changed_fields
from slp_guitar.fretboard import Note, Tuning, midi_program
from slp_guitar.playing_order import expand_repeats
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.tab import KEYS, Bar, ReadProblem, Tab, Technique, find_key
from slp_guitar.techniques import TECHNIQUES
from slp_transformer._internal.extras import import_extra

BEND_UNITS_PER_QUARTER_TONE = 25
"""A bend by a quarter tone, as Guitar Pro counts."""

CONTENTS = Contents("guitar_pro", iter_changed_fields)


def import_guitarpro() -> ModuleType:
    """Import the library that knows Guitar Pro files."""
    return import_extra("guitarpro", "Guitar Pro files", "guitar")


def read_guitar_pro_tabs(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a Guitar Pro file: one tab for each track of 4 to 8 strings.

    Returns:
        The tabs, each with the song's title, and the track's name where there are several; and what
        of the file is not in them.

    Raises:
        ValueError: if there is no such file, it is no Guitar Pro 3 to 5 file, or it has no track
            that a tab can be made of.
    """
    library = import_guitarpro()
    content = safe_read.read_bytes(path, "a Guitar Pro file", MAX_FILE_BYTES["Guitar Pro 3 to 5"])
    with safe_read.translate_read_errors(path, "a Guitar Pro 3, 4 or 5 file"):
        if b"GUITAR" not in content[:32]:
            raise ValueError("it does not begin like one")
        song = library.parse(safe_read.TimeLimitedBytes(content), encoding="latin-1")
        headers = _read_headers(song)
        builders = [_read_track(song, track, headers, library) for track in song.tracks]
        omissions, title = Omissions(), safe_read.decode_text(song.title.encode("latin-1"))
        omissions.record_unread(CONTENTS.find_unread(song))
        for header in song.measureHeaders:
            omissions.record_unread(CONTENTS.find_unread(header), header.number)
        return tab_builder.build_tabs(Path(path).name, title, builders, omissions=omissions)


def _read_headers(song: Any) -> list[BarHeader]:
    """Return the bars of a song, without notes; any track may change the tempo.

    Raises:
        ValueError: for an invalid time signature.
    """
    headers: list[BarHeader] = []
    parts = zip(*(track.measures for track in song.tracks), strict=True)
    for header, measures in zip(song.measureHeaders, parts, strict=True):
        changes: dict[Fraction, int] = {}
        for voice in (voice for part in measures for voice in part.voices):
            now = Fraction(0)
            for beat in voice.beats:
                change = beat.effect.mixTableChange
                if change and change.tempo and change.tempo.value > 0:
                    changes[now] = change.tempo.value
                now += _duration_in_quarters(beat.duration)
        tempo = changes.pop(Fraction(0), None if headers else max(song.tempo, 1))
        meter = header.timeSignature
        bar = BarHeader.of_meter(meter.numerator, meter.denominator.value)
        bar.tempo, bar.tempo_changes = tempo, changes
        bar.starts_repeat = header.isRepeatOpen
        bar.num_plays = header.repeatClose + 1 if header.repeatClose > 0 else 0
        bar.endings = tuple(n for n in range(1, 9) if header.repeatAlternative >> (n - 1) & 1)
        signs = filter(None, (header.direction, header.fromDirection))
        bar.signs = tuple("".join(map(str.capitalize, sign.name.split())) for sign in signs)
        bar.key = find_key(*header.keySignature.value)
        headers.append(bar)
    tab_builder.extend_endings_in_place(headers)
    return headers


def _read_track(song: Any, track: Any, headers: list[BarHeader], library: ModuleType) -> TabBuilder:
    """Return the guitar and the notes of one track."""
    builder = TabBuilder(safe_read.decode_text(track.name.encode("latin-1")), bars=headers)
    if track.isPercussionTrack:
        builder.reason_left_out = "it is drums"
        return builder
    pitches = tuple(string.value for string in track.strings)
    builder.tuning = Tuning(pitches, max(0, track.offset))
    begin, kinds, omissions = Fraction(0), library.NoteType, builder.omissions
    omissions.record_unread(CONTENTS.find_unread(track))
    for header, bar, measure in zip(song.measureHeaders, headers, track.measures, strict=True):
        omissions.record_unread(CONTENTS.find_unread(measure), header.number)
        for number, voice in enumerate(measure.voices[:2], start=1):
            now = Fraction(0)
            for beat in voice.beats:
                length = _duration_in_quarters(beat.duration)
                if beat.status == library.BeatStatus.empty:
                    continue
                omissions.record_unread(CONTENTS.find_unread(beat), header.number)
                for note in beat.notes if now < bar.length_quarters else ():
                    omissions.record_unread(CONTENTS.find_unread(note), header.number)
                    if note.type in (kinds.normal, kinds.dead, kinds.tie):
                        techniques = _read_techniques(note, kinds)
                        place = Note(note.string, note.value)
                        event = NoteEvent(begin + now, length, place, techniques, number)
                        builder.add_note(event, is_tied=note.type == kinds.tie)
                if now >= bar.length_quarters:
                    omissions.record(tab_builder.AFTER_BAR, header.number, len(beat.notes))
                now += length
        begin += bar.length_quarters
    return builder


def _duration_in_quarters(duration: Any) -> Fraction:
    """Return a duration in quarter notes.

    Raises:
        ValueError: for a note value that there is not.
    """
    kind, tuplet = duration.value, duration.tuplet
    if kind not in (1, 2, 4, 8, 16, 32, 64, 128) or not (tuplet.enters and tuplet.times):
        raise ValueError(f"a note has the length 1/{kind}")
    value = NoteValue(kind, duration.isDotted, tuplet.enters, tuplet.times)
    return value.duration_quarters


def _has_sign(note: Any, sign: str) -> bool:
    """Return whether a note has a sign of `TechniqueSigns.guitar_pro`."""
    path, _, name = sign.partition("=")
    value = attrgetter(path)(note)
    return value.name == name if name else bool(value)


def _read_techniques(note: Any, kinds: Any) -> set[Technique]:
    """Return how a note is played."""
    effect = note.effect
    techniques = {
        Technique(kind)
        for kind, signs in TECHNIQUES.items()
        if any(_has_sign(note, sign) for sign in signs.guitar_pro)
    }
    if note.type == kinds.dead:
        techniques.add(Technique("dead"))
    if effect.isBend:
        top = max((point.value for point in effect.bend.points), default=0)
        size = top if top > 0 else effect.bend.value // BEND_UNITS_PER_QUARTER_TONE
        techniques.add(Technique("bend", max(1, min(size, 24))))
    return techniques


# --- Writing --------------------------------------------------------------------------------------

FULL_VERSIONS = {3: (3, 0, 0), 4: (4, 0, 6), 5: (5, 1, 0)}
MAX_GUITAR_PRO_STRINGS = 7
MAX_GUITAR_PRO_BEATS = 127
DEFAULT_TEMPO_BPM = 120
"""The tempo of a tab that states none."""


def format_guitar_pro(*tracks: Tab, version: int = 5) -> bytes:
    """Return tabs that play together as the content of a Guitar Pro file.

    A piece without a tempo is written in 120 quarter notes a minute. A second voice needs
    version 5, harmonics and vibrato version 4.

    Args:
        tracks: the tabs, which have time and the same bars.
        version: of Guitar Pro: 3, 4 or 5.

    Raises:
        ValueError: for tabs that cannot be written down, have no bar or no time, more than 7
            strings, frets above 99, repeats played more than 127 times, tuplets inside others, or
            notes shorter than any note value.
    """
    check_tracks_have_same_bars(tracks)
    if not _can_hold_playing_signs(tracks[0].bars, version):
        tracks = tuple(map(expand_repeats, tracks))
    for tab in tracks:
        _check_writable(tab)
    gp, content = import_guitarpro(), io.BytesIO()
    gp.write(_build_song(tracks, version, gp), content, FULL_VERSIONS[version], "utf-8")
    return content.getvalue()


def _can_hold_playing_signs(bars: Sequence[Bar], version: int) -> bool:
    """Return whether a file can have the signs of some bars: each once, and from version 5 on.

    PyGuitarPro has one sign to lead to and one that leads on for a bar.
    """
    signs = [sign for bar in bars for sign in bar.signs]
    kinds = [
        (place, bool(PLAYING_SIGNS[s].leads_to)) for place, b in enumerate(bars) for s in b.signs
    ]
    return not signs or version == 5 and len(set(signs)) == len(signs) == len(set(kinds))


def _check_writable(tab: Tab) -> None:
    """Refuse what Guitar Pro files cannot have."""
    if len(tab.tuning.open_pitches) > MAX_GUITAR_PRO_STRINGS:
        raise ValueError(
            f"Guitar Pro 3 to 5 files have at most {MAX_GUITAR_PRO_STRINGS} strings; this tab has "
            f"{len(tab.tuning.open_pitches)}."
        )
    for number, bar in enumerate(tab.bars, start=1):
        if bar.num_plays > 127 or any(time > 8 for time in bar.endings):
            raise ValueError(f"Bar {number} is repeated too often for a Guitar Pro file.")
        if any(note.fret > 99 for event in bar.events for note in event.notes):
            raise ValueError(f"Bar {number}: Guitar Pro has frets up to 99.")


def _build_song(tracks: Sequence[Tab], version: int, gp: ModuleType) -> Any:
    """Return tabs as PyGuitarPro has songs."""
    parts = [measures_from_tab(tab, num_voices=1 + (version == 5)) for tab in tracks]
    tempo = parts[0][0].bar.tempo_bpm or DEFAULT_TEMPO_BPM
    title = _shorten_text(tracks[0].title, 200)
    key = "C"
    song = gp.Song(title=title, tempo=tempo, measureHeaders=[], tracks=[])
    for number, measure in enumerate(parts[0], start=1):
        key = measure.bar.key or key
        bar, (beats, unit) = measure.bar, measure.time_signature
        # Also of a bar to which its length gave the signature.
        check_beat_count(number, beats, MAX_GUITAR_PRO_BEATS, "Guitar Pro")
        header = gp.MeasureHeader(
            number=number,
            timeSignature=gp.TimeSignature(beats, gp.Duration(unit)),
            isRepeatOpen=bar.starts_repeat,
            repeatClose=bar.num_plays - 1 if bar.num_plays > 1 else -1,
            repeatAlternative=sum(1 << (time - 1) for time in bar.endings),
            keySignature=gp.KeySignature(KEYS[key]),
        )
        for sign in bar.signs:
            words = re.sub("(?<=[a-z])(?=[A-Z])", " ", sign).replace(" Al ", " al ")
            attribute = "fromDirection" if PLAYING_SIGNS[sign].leads_to else "direction"
            setattr(header, attribute, gp.DirectionSign(words))
        song.addMeasureHeader(header)
    for number, (tab, measures) in enumerate(zip(tracks, parts, strict=True), start=1):
        name = _shorten_text(tab.track, 40) or "Guitar"
        track = gp.Track(song, number, 24, tab.tuning.capo, measures=[], name=name)
        track.channel = gp.MidiChannel(2 * number - 2, 2 * number - 1, midi_program(tab.tuning))
        track.strings = [
            gp.GuitarString(number, pitch)
            for number, pitch in enumerate(tab.tuning.open_pitches, start=1)
        ]
        song.tracks.append(track)
        for header, measure in zip(song.measureHeaders, measures, strict=True):
            written = gp.Measure(track, header)
            for voice, beats_of_voice in zip(written.voices, measure.voices, strict=True):
                # Each voice has a beat, if only an empty one: readers rely on it.
                voice.beats = [
                    _build_beat(beat, voice, version, gp) for beat in beats_of_voice
                ] or [gp.Beat(voice)]
            track.measures.append(written)
    for measure, written in zip(parts[0], song.tracks[0].measures, strict=True):
        starts = [measure.bar.tempo_bpm, *(beat.tempo_bpm for beat in measure.voices[0][1:])]
        for bpm, beat in zip(starts, written.voices[0].beats, strict=True):
            if bpm not in (None, tempo):
                tempo = bpm
                change = gp.MixTableChange(tempo=gp.MixTableItem(tempo), hideTempo=False)
                beat.effect.mixTableChange = change
    return song


def _shorten_text(text: str, max_bytes: int) -> str:
    """Return a text in one line that has at most so many bytes."""
    return " ".join(text.split()).encode()[:max_bytes].decode(errors="ignore")


def _build_beat(beat: Beat, voice: Any, version: int, gp: ModuleType) -> Any:
    """Return a beat of a voice."""
    value = beat.note_value
    tuplet = gp.Tuplet(value.tuplet_notes, value.tuplet_time)
    if not tuplet.isSupported():
        raise ValueError(
            f"Bar {voice.measure.number} has tuplets of {tuplet.enters} notes; a Guitar Pro 3 to 5 "
            "file has none inside others."
        )
    duration = gp.Duration(value.denominator, value.is_dotted, tuplet)
    status = gp.BeatStatus.normal if beat.notes else gp.BeatStatus.rest
    written = gp.Beat(voice, duration=duration, status=status)
    written.notes = [_build_note(tied, written, version, gp) for tied in beat.notes]
    return written


def _build_note(tied_note: TiedNote, beat: Any, version: int, gp: ModuleType) -> Any:
    """Return a note with its techniques."""
    string, fret = tied_note.tab_note.note
    sizes = {technique.kind: technique.bend_quarter_tones for technique in tied_note.techniques}
    kind = gp.NoteType.dead if "dead" in sizes else gp.NoteType.normal
    note = gp.Note(
        beat, value=fret, string=string, type=kind if tied_note.is_struck else gp.NoteType.tie
    )
    values = {"slide": [gp.SlideType.shiftSlideTo], "harmonic": gp.NaturalHarmonic()}
    for kind in [*sizes, *(["hammer"] if "pull" in sizes else [])]:
        signs = TECHNIQUES[kind]
        if signs.guitar_pro and version >= signs.since_guitar_pro:
            path, _, name = signs.guitar_pro[0].partition("=")
            owner, _, attribute = path.rpartition(".")
            value = values.get(kind, True)
            if name:  # one of an enumeration
                value = type(attrgetter(path)(note))[name]
            setattr(attrgetter(owner)(note), attribute, value)
    if "bend" in sizes:  # goes up evenly and stays
        size = max(1, sizes["bend"])
        points = [gp.BendPoint(0, 0), gp.BendPoint(6, size), gp.BendPoint(12, size)]
        strength = size * BEND_UNITS_PER_QUARTER_TONE
        note.effect.bend = gp.BendEffect(gp.BendType.bend, strength, points)
    return note
