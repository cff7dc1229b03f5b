"""Guitar Pro 3, 4 and 5 files (`.gp3`, `.gp4`, `.gp5`), read and written by PyGuitarPro.

There too string 1 is the highest, frets count from the capo and open strings are given without it.
What a tab does not hold, such as grace notes, chord diagrams and lyrics, is left out; what of it is
music is reported.
"""

from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from slp_transformer._internal.atomic_write import atomic_write, require_extra
from slp_transformer.guitar.formats.notation import Beat, Measure, TiedNote, measures_from_tab
from slp_transformer.guitar.formats.safe_read import (
    TimeLimitedBytes,
    read_bytes,
    translate_read_errors,
)
from slp_transformer.guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder
from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.tab import (
    MAX_STRINGS,
    MIN_STRINGS,
    ReadProblem,
    Tab,
    Technique,
    check_tab,
)

MAX_FILE_BYTES = 4 << 20
BEND_UNITS_PER_QUARTER_TONE = 25
"""A bend by a quarter tone, as Guitar Pro counts."""


def import_guitarpro() -> ModuleType:
    """The library that knows Guitar Pro files."""
    return require_extra("guitarpro", "Guitar Pro files", "guitar")


def read_guitar_pro(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a Guitar Pro file: one tab for each track of 4 to 8 strings.

    Returns:
        The tabs, named after the song, and the track where there are several; and what of the file
        is not in them.

    Raises:
        ValueError: if there is no such file, it is no Guitar Pro 3 to 5 file, or it has no track
            that a tab can be made of.
    """
    library = import_guitarpro()
    content = read_bytes(path, "a Guitar Pro file", MAX_FILE_BYTES)
    kind = "a Guitar Pro 3, 4 or 5 file"
    source, tabs, problems = Path(path).name, [], []
    with translate_read_errors(path, kind):
        song = library.parse(TimeLimitedBytes(content))
        for track in song.tracks:
            if track.isPercussionTrack or not (MIN_STRINGS <= len(track.strings) <= MAX_STRINGS):
                why = "it is drums" if track.isPercussionTrack else f"{len(track.strings)} strings"
                problems.append(ReadProblem(source, 0, f"track {track.number} is left out: {why}"))
                continue
            tab, omissions = _read_track(song, track, library, source)
            tabs.append(tab)
            problems += [
                ReadProblem(source, 0, f"track {track.number}: {what}") for what in omissions
            ]
    if not tabs:
        raise ValueError(f"{path} has no track of 4 to 8 strings that a tab can be made of.")
    return tabs, problems


def _read_track(song: Any, track: Any, library: ModuleType, source: str) -> tuple[Tab, list[str]]:
    """The tab of one track, and what of the track is not in it."""
    builder, begin, tempo = TabBuilder(), Fraction(0), song.tempo
    for header, measure in zip(song.measureHeaders, track.measures, strict=True):
        bar = _read_measure_header(header)
        if header.tripletFeel.value:
            builder.omission_counts["bars in triplet feel are read as they are written"] += 1
        changed = None
        for number, voice in enumerate(measure.voices[:2], start=1):
            now = Fraction(0)
            for beat in voice.beats:
                changed = _read_tempo(beat) or changed
                length = _duration_in_quarters(beat.duration)
                if beat.status.value == 0:
                    continue
                for note in beat.notes:
                    _read_note(builder, note, begin + now, length, number, library)
                now += length
            bar.length_quarters = max(bar.length_quarters, now)
        tempo = changed or tempo
        bar.tempo = min(max(tempo, 1), 1000)
        builder.bars.append(bar)
        begin += bar.length_quarters
    tuning = Tuning(tuple(string.value for string in track.strings), max(0, track.offset))
    names = [song.title] if len(song.tracks) == 1 else [song.title, track.name]
    title = ", ".join(filter(None, (" ".join(name.split()) for name in names)))
    return builder.build_tab(title, tuning, source)


def _read_measure_header(header: Any) -> BarHeader:
    """Return the header of a measure.

    Raises:
        ValueError: for an invalid time signature.
    """
    signature = header.timeSignature
    beats, kind = signature.numerator, signature.denominator.value
    if beats < 1 or kind not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"measure {header.number} has the time signature {beats}/{kind}")
    endings = header.repeatAlternative
    return BarHeader(
        Fraction(4 * beats, kind),
        (beats, kind),
        None,
        header.isRepeatOpen,
        header.repeatClose + 1 if header.repeatClose > 0 else 0,
        tuple(time for time in range(1, 9) if endings >> (time - 1) & 1),
    )


def _read_tempo(beat: Any) -> int | None:
    """The tempo that begins with a beat, if one does."""
    change = beat.effect.mixTableChange
    return change.tempo.value if change and change.tempo and change.tempo.value > 0 else None


def _duration_in_quarters(duration: Any) -> Fraction:
    """Return a duration in quarter notes.

    Raises:
        ValueError: for a note value that there is not.
    """
    kind, tuplet = duration.value, duration.tuplet
    if kind not in (1, 2, 4, 8, 16, 32, 64, 128) or not (tuplet.enters and tuplet.times):
        raise ValueError(f"a note has the length 1/{kind}")
    length = Fraction(4 * tuplet.times, kind * tuplet.enters)
    return length * 3 / 2 if duration.isDotted else length


def _read_note(
    tab_builder: TabBuilder,
    note: Any,
    onset: Fraction,
    duration: Fraction,
    voice: int,
    gp: ModuleType,
) -> None:
    """Take in one note."""
    struck = None
    if note.type == gp.NoteType.tie:
        struck = tab_builder.extend_tied_note(onset, duration, note.string, voice)
    elif note.type in (gp.NoteType.normal, gp.NoteType.dead):
        struck = NoteEvent(onset, duration, Note(note.string, note.value), set(), voice)
        tab_builder.add_note(struck)
    if struck is None:
        return
    effect = note.effect
    kinds = {
        "hammer": effect.hammer,
        "slide": effect.slides,
        "harmonic": effect.harmonic,
        "dead": note.type == gp.NoteType.dead,
        "let ring": effect.letRing,
        "vibrato": effect.vibrato or note.beat.effect.vibrato,
    }
    struck.techniques |= {Technique(kind) for kind, so in kinds.items() if so}
    if effect.isBend:
        struck.techniques.add(Technique("bend", _bend_quarter_tones(effect.bend)))
    for what in ("grace", "trill", "tremoloPicking"):
        if getattr(effect, what):
            name = {"tremoloPicking": "tremolo"}.get(what, what)
            tab_builder.omission_counts[f"notes with a {name} are read without it"] += 1


def _bend_quarter_tones(bend: Any) -> int:
    """Return the size of a bend in quarter tones."""
    top = max((point.value for point in bend.points), default=0)
    return (
        max(1, min(top, 24))
        if top > 0
        else max(1, min(bend.value // BEND_UNITS_PER_QUARTER_TONE, 24))
    )


VERSION_OF_SUFFIX = {".gp3": (3, 0, 0), ".gp4": (4, 0, 6), ".gp5": (5, 1, 0)}
MAX_GUITAR_PRO_STRINGS = 7
DEFAULT_TEMPO_BPM = 120
"""The tempo of a tab that states none."""


def write_guitar_pro(tab: Tab, path: str | Path) -> None:
    """Write a tab as a Guitar Pro file, whole or not at all.

    A piece without a tempo is written in 120 quarter notes a minute.

    Args:
        tab: the tab, which has time.
        path: where to; ``.gp3``, ``.gp4`` or ``.gp5``.

    Raises:
        ValueError: for another name; for a tab that cannot be written down, has no bar or no time,
            more than 7 strings, frets above 99, repeats played more than 127 times, or notes
            shorter than any note value; and for a second voice, harmonics or vibrato in files that
            cannot have them.
        OSError: if the file cannot be written.
    """
    path = Path(path)
    version = VERSION_OF_SUFFIX.get(path.suffix.lower())
    if version is None:
        raise ValueError(f"A Guitar Pro file is named .gp3, .gp4 or .gp5, not {path.name}.")
    check_tab(tab)
    _check_writable(tab, version[0])
    song = _build_song(tab, import_guitarpro())
    with atomic_write(path) as unfinished, unfinished.open("wb") as file:
        import_guitarpro().write(song, file, version=version)


def _check_writable(tab: Tab, version: int) -> None:
    """Refuse what Guitar Pro files cannot have."""
    if not tab.bars:
        raise ValueError("A Guitar Pro file needs at least one bar.")
    if len(tab.tuning.open_pitches) > MAX_GUITAR_PRO_STRINGS:
        raise ValueError(
            f"Guitar Pro 3 to 5 files have at most {MAX_GUITAR_PRO_STRINGS} strings; this tab has "
            f"{len(tab.tuning.open_pitches)}."
        )
    for number, bar in enumerate(tab.bars, start=1):
        if bar.num_plays > 127 or any(time > 8 for time in bar.endings):
            raise ValueError(f"Bar {number} is repeated too often for a Guitar Pro file.")
        for each in (each for event in bar.events for each in event.tab_notes()):
            kinds = {technique.kind for technique in each.techniques}
            if each.note.fret > 99:
                raise ValueError(f"Bar {number}: Guitar Pro has frets up to 99.")
            if version < 5 and each.voice != 1:
                raise ValueError(f"Bar {number}: only a .gp5 file has a second voice.")
            if version < 4 and kinds & {"harmonic", "vibrato"}:
                raise ValueError(
                    f"Bar {number}: harmonics and vibrato belong to whole chords in a .gp3 file; "
                    "write .gp4 or .gp5."
                )


def _build_song(tab: Tab, gp: ModuleType) -> Any:
    """The tab as PyGuitarPro has songs."""
    measures = measures_from_tab(tab)
    title = " ".join(tab.title.split()).encode("cp1252", "replace").decode("cp1252")
    song = gp.Song(title=title[:200], measureHeaders=[], tracks=[])
    song.tempo = tempo = next((m.bar.tempo_bpm for m in measures[:1]), None) or DEFAULT_TEMPO_BPM
    track = gp.Track(song, fretCount=24, offset=tab.tuning.capo, measures=[], name="Guitar")
    track.strings = [
        gp.GuitarString(number, pitch)
        for number, pitch in enumerate(tab.tuning.open_pitches, start=1)
    ]
    song.tracks.append(track)
    for number, measure in enumerate(measures, start=1):
        header = _build_measure_header(measure, number, gp)
        song.addMeasureHeader(header)
        written = gp.Measure(track, header)
        for voice, beats in zip(written.voices, measure.voices, strict=True):
            voice.beats = [_build_beat(beat, voice, gp) for beat in beats]
        track.measures.append(written)
        if measure.bar.tempo_bpm not in (None, tempo):
            tempo = measure.bar.tempo_bpm
            change = gp.MixTableChange(tempo=gp.MixTableItem(tempo), hideTempo=False)
            written.voices[0].beats[0].effect.mixTableChange = change
    return song


def _build_measure_header(measure: Measure, number: int, gp: ModuleType) -> Any:
    """The header of a measure."""
    bar = measure.bar
    beats, kind = bar.time_signature
    if beats > 127:
        raise ValueError(f"Bar {number} has {beats} beats; a Guitar Pro file has at most 127.")
    return gp.MeasureHeader(
        number=number,
        timeSignature=gp.TimeSignature(beats, gp.Duration(kind)),
        isRepeatOpen=bar.starts_repeat,
        repeatClose=bar.num_plays - 1 if bar.num_plays > 1 else -1,
        repeatAlternative=sum(1 << (time - 1) for time in bar.endings),
    )


def _build_beat(beat: Beat, voice: Any, gp: ModuleType) -> Any:
    """A beat of a voice."""
    tuplet = gp.Tuplet(beat.note_value.tuplet_notes, beat.note_value.tuplet_time)
    written = gp.Beat(
        voice, duration=gp.Duration(beat.note_value.denominator, beat.note_value.is_dotted, tuplet)
    )
    written.status = gp.BeatStatus.normal if beat.notes else gp.BeatStatus.rest
    for tied in sorted(beat.notes, key=lambda tied: tied.tab_note.note.string):
        written.notes.append(_build_note(tied, written, gp))
    return written


def _build_note(tied_note: TiedNote, beat: Any, gp: ModuleType) -> Any:
    """Write a note; techniques that lead to the next one are at its end, others at its start."""
    string, fret = tied_note.tab_note.note
    note = gp.Note(beat, value=fret, string=string, type=gp.NoteType.normal)
    effect = note.effect
    for technique in tied_note.tab_note.techniques:
        kind = technique.kind
        if kind in ("hammer", "pull"):
            effect.hammer = not tied_note.is_tied_to_next
        elif kind == "slide" and not tied_note.is_tied_to_next:
            effect.slides = [gp.SlideType.shiftSlideTo]
        elif kind == "let ring":
            effect.letRing = True
        elif kind == "vibrato":
            effect.vibrato = True
        elif tied_note.is_struck and kind == "harmonic":
            effect.harmonic = gp.NaturalHarmonic()
        elif tied_note.is_struck and kind == "dead":
            note.type = gp.NoteType.dead
        elif tied_note.is_struck and kind == "bend":
            effect.bend = _build_bend(technique, gp)
    if not tied_note.is_struck:
        note.type = gp.NoteType.tie
    return note


def _build_bend(technique: Technique, gp: ModuleType) -> Any:
    """A bend that goes up evenly and stays."""
    size = max(1, technique.bend_quarter_tones)
    points = [gp.BendPoint(0, 0), gp.BendPoint(6, size), gp.BendPoint(12, size)]
    return gp.BendEffect(gp.BendType.bend, size * BEND_UNITS_PER_QUARTER_TONE, points)
