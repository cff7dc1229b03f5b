"""Tabs as Guitar Pro 3, 4 or 5 files, as the name of the file says."""

from pathlib import Path
from types import ModuleType
from typing import Any

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.guitar.formats.guitar_pro import QUARTER_TONE, guitar_pro_library
from slp_transformer.guitar.formats.notation import Beat, Measure, Tied, measures_of
from slp_transformer.guitar.tab import Tab, Technique
from slp_transformer.guitar.tab_checks import check_tab

VERSIONS = {".gp3": (3, 0, 0), ".gp4": (4, 0, 6), ".gp5": (5, 1, 0)}
MOST_STRINGS = 7
TEMPO = 120
"""Where a tab does not say any."""


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
    version = VERSIONS.get(path.suffix.lower())
    if version is None:
        raise ValueError(f"A Guitar Pro file is named .gp3, .gp4 or .gp5, not {path.name}.")
    check_tab(tab)
    _check(tab, version[0])
    song = _song(tab, guitar_pro_library())
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        guitar_pro_library().write(song, file, version=version)


def _check(tab: Tab, version: int) -> None:
    """Refuse what Guitar Pro files cannot have."""
    if not tab.bars:
        raise ValueError("A Guitar Pro file needs at least one bar.")
    if len(tab.tuning.open_pitches) > MOST_STRINGS:
        raise ValueError(
            f"Guitar Pro 3 to 5 files have at most {MOST_STRINGS} strings; this tab has "
            f"{len(tab.tuning.open_pitches)}."
        )
    for number, bar in enumerate(tab.bars, start=1):
        if bar.repeats > 127 or any(time > 8 for time in bar.endings):
            raise ValueError(f"Bar {number} is repeated too often for a Guitar Pro file.")
        for each in (each for event in bar.events for each in event.played()):
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


def _song(tab: Tab, gp: ModuleType) -> Any:
    """The tab as PyGuitarPro has songs."""
    measures = measures_of(tab)
    title = " ".join(tab.title.split()).encode("cp1252", "replace").decode("cp1252")
    song = gp.Song(title=title[:200], measureHeaders=[], tracks=[])
    song.tempo = tempo = next((m.bar.tempo for m in measures[:1]), None) or TEMPO
    track = gp.Track(song, fretCount=24, offset=tab.tuning.capo, measures=[], name="Guitar")
    track.strings = [
        gp.GuitarString(number, pitch)
        for number, pitch in enumerate(tab.tuning.open_pitches, start=1)
    ]
    song.tracks.append(track)
    for number, measure in enumerate(measures, start=1):
        header = _header(measure, number, gp)
        song.addMeasureHeader(header)
        written = gp.Measure(track, header)
        for voice, beats in zip(written.voices, measure.voices, strict=True):
            voice.beats = [_beat(beat, voice, gp) for beat in beats]
        track.measures.append(written)
        if measure.bar.tempo not in (None, tempo):
            tempo = measure.bar.tempo
            change = gp.MixTableChange(tempo=gp.MixTableItem(tempo), hideTempo=False)
            written.voices[0].beats[0].effect.mixTableChange = change
    return song


def _header(measure: Measure, number: int, gp: ModuleType) -> Any:
    """The header of a measure."""
    bar = measure.bar
    beats, kind = bar.metre
    if beats > 127:
        raise ValueError(f"Bar {number} has {beats} beats; a Guitar Pro file has at most 127.")
    return gp.MeasureHeader(
        number=number,
        timeSignature=gp.TimeSignature(beats, gp.Duration(kind)),
        isRepeatOpen=bar.repeat_from,
        repeatClose=bar.repeats - 1 if bar.repeats > 1 else -1,
        repeatAlternative=sum(1 << (time - 1) for time in bar.endings),
    )


def _beat(beat: Beat, voice: Any, gp: ModuleType) -> Any:
    """A beat of a voice."""
    tuplet = gp.Tuplet(beat.value.enters, beat.value.times)
    written = gp.Beat(voice, duration=gp.Duration(beat.value.kind, beat.value.dotted, tuplet))
    written.status = gp.BeatStatus.normal if beat.notes else gp.BeatStatus.rest
    for tied in sorted(beat.notes, key=lambda tied: tied.played.note.string):
        written.notes.append(_note(tied, written, gp))
    return written


def _note(tied: Tied, beat: Any, gp: ModuleType) -> Any:
    """A note; what leads to the next note stands where this one ends, the rest where it begins."""
    string, fret = tied.played.note
    note = gp.Note(beat, value=fret, string=string, type=gp.NoteType.normal)
    effect = note.effect
    for technique in tied.played.techniques:
        kind = technique.kind
        if kind in ("hammer", "pull"):
            effect.hammer = not tied.goes_on
        elif kind == "slide" and not tied.goes_on:
            effect.slides = [gp.SlideType.shiftSlideTo]
        elif kind == "let ring":
            effect.letRing = True
        elif kind == "vibrato":
            effect.vibrato = True
        elif tied.begins and kind == "harmonic":
            effect.harmonic = gp.NaturalHarmonic()
        elif tied.begins and kind == "dead":
            note.type = gp.NoteType.dead
        elif tied.begins and kind == "bend":
            effect.bend = _bend(technique, gp)
    if not tied.begins:
        note.type = gp.NoteType.tie
    return note


def _bend(technique: Technique, gp: ModuleType) -> Any:
    """A bend that goes up evenly and stays."""
    size = max(1, technique.size)
    points = [gp.BendPoint(0, 0), gp.BendPoint(6, size), gp.BendPoint(12, size)]
    return gp.BendEffect(gp.BendType.bend, size * QUARTER_TONE, points)
