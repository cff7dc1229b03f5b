"""Guitar Pro 3, 4 and 5 files (`.gp3`, `.gp4`, `.gp5`), read and written by PyGuitarPro.

There too string 1 is the highest, frets count from the capo and open strings are given without it.
What a tab does not hold, such as grace notes, chord diagrams and lyrics, is left out; what of it is
music is told.
"""

from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from slp_transformer._internal.atomic_write import from_text_extra
from slp_transformer.guitar.formats.safe_read import BoundedBytes, content_of, understood
from slp_transformer.guitar.formats.tab_builder import Gathered, Said, Struck
from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.problems import Problem
from slp_transformer.guitar.tab import Tab, Technique
from slp_transformer.guitar.tab_checks import FEWEST_STRINGS, MOST_STRINGS

MOST_BYTES = 4 << 20
QUARTER_TONE = 25
"""A bend by a quarter tone, as Guitar Pro counts."""


def guitar_pro_library() -> ModuleType:
    """The library that knows Guitar Pro files."""
    return from_text_extra("guitarpro", "Guitar Pro files", "guitar")


def read_guitar_pro(path: str | Path) -> tuple[list[Tab], list[Problem]]:
    """Read a Guitar Pro file: one tab for each track of 4 to 8 strings.

    Returns:
        The tabs, named after the song, and the track where there are several; and what of the file
        is not in them.

    Raises:
        ValueError: if there is no such file, it is no Guitar Pro 3 to 5 file, or it has no track
            that a tab can be made of.
    """
    library = guitar_pro_library()
    content = content_of(path, "a Guitar Pro file", MOST_BYTES)
    kind = "a Guitar Pro 3, 4 or 5 file"
    source, tabs, problems = Path(path).name, [], []
    with understood(path, kind):
        song = library.parse(BoundedBytes(content))
        for track in song.tracks:
            if track.isPercussionTrack or not (
                FEWEST_STRINGS <= len(track.strings) <= MOST_STRINGS
            ):
                why = "it is drums" if track.isPercussionTrack else f"{len(track.strings)} strings"
                problems.append(Problem(source, 0, f"track {track.number} is left out: {why}"))
                continue
            tab, told = _tab_of_track(song, track, library, source)
            tabs.append(tab)
            problems += [Problem(source, 0, f"track {track.number}: {what}") for what in told]
    if not tabs:
        raise ValueError(f"{path} has no track of 4 to 8 strings that a tab can be made of.")
    return tabs, problems


def _tab_of_track(song: Any, track: Any, library: ModuleType, source: str) -> tuple[Tab, list[str]]:
    """The tab of one track, and what of the track is not in it."""
    gathered, begin, tempo = Gathered(), Fraction(0), song.tempo
    for header, measure in zip(song.measureHeaders, track.measures, strict=True):
        said = _said(header)
        if header.tripletFeel.value:
            gathered.told["bars in triplet feel are read as they are written"] += 1
        changed = None
        for number, voice in enumerate(measure.voices[:2], start=1):
            now = Fraction(0)
            for beat in voice.beats:
                changed = _tempo(beat) or changed
                length = _length(beat.duration)
                if beat.status.value == 0:
                    continue
                for note in beat.notes:
                    _take(gathered, note, begin + now, length, number, library)
                now += length
            said.length = max(said.length, now)
        tempo = changed or tempo
        said.tempo = min(max(tempo, 1), 1000)
        gathered.bars.append(said)
        begin += said.length
    tuning = Tuning(tuple(string.value for string in track.strings), max(0, track.offset))
    names = [song.title] if len(song.tracks) == 1 else [song.title, track.name]
    title = ", ".join(filter(None, (" ".join(name.split()) for name in names)))
    return gathered.tab(title, tuning, source)


def _said(header: Any) -> Said:
    """What a measure's header says.

    Raises:
        ValueError: for a metre that there is not.
    """
    beats, kind = header.timeSignature.numerator, header.timeSignature.denominator.value
    if beats < 1 or kind not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"measure {header.number} has the metre {beats}/{kind}")
    endings = header.repeatAlternative
    return Said(
        Fraction(4 * beats, kind),
        (beats, kind),
        None,
        header.isRepeatOpen,
        header.repeatClose + 1 if header.repeatClose > 0 else 0,
        tuple(time for time in range(1, 9) if endings >> (time - 1) & 1),
    )


def _tempo(beat: Any) -> int | None:
    """The tempo that begins with a beat, if one does."""
    change = beat.effect.mixTableChange
    return change.tempo.value if change and change.tempo and change.tempo.value > 0 else None


def _length(duration: Any) -> Fraction:
    """How many quarter notes a duration lasts.

    Raises:
        ValueError: for a note value that there is not.
    """
    kind, tuplet = duration.value, duration.tuplet
    if kind not in (1, 2, 4, 8, 16, 32, 64, 128) or not (tuplet.enters and tuplet.times):
        raise ValueError(f"a note has the length 1/{kind}")
    length = Fraction(4 * tuplet.times, kind * tuplet.enters)
    return length * 3 / 2 if duration.isDotted else length


def _take(
    gathered: Gathered, note: Any, onset: Fraction, length: Fraction, voice: int, gp: ModuleType
) -> None:
    """Take in one note."""
    struck = None
    if note.type == gp.NoteType.tie:
        struck = gathered.hold(onset, length, note.string, voice)
    elif note.type in (gp.NoteType.normal, gp.NoteType.dead):
        struck = Struck(onset, length, Note(note.string, note.value), set(), voice)
        gathered.strike(struck)
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
        struck.techniques.add(Technique("bend", _height(effect.bend)))
    for what in ("grace", "trill", "tremoloPicking"):
        if getattr(effect, what):
            name = {"tremoloPicking": "tremolo"}.get(what, what)
            gathered.told[f"notes with a {name} are read without it"] += 1


def _height(bend: Any) -> int:
    """How far a bend goes, in quarter tones."""
    top = max((point.value for point in bend.points), default=0)
    return max(1, min(top, 24)) if top > 0 else max(1, min(bend.value // QUARTER_TONE, 24))
