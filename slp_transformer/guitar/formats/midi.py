"""MIDI files: any of them as pitches in time, and tabs with a channel for each string.

MIDI guitars send string n, counted from 1 for the highest, on channel n; so do the files that are
written here, and they come back as the tab that they were.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd
from pathlib import Path
from types import ModuleType
from typing import Any

from slp_transformer._internal.atomic_write import from_text_extra, whole_file
from slp_transformer.guitar.ascii_reader import decode
from slp_transformer.guitar.formats.safe_read import BoundedBytes, content_of, understood
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning
from slp_transformer.guitar.score import Score, Sounding, score_of, tab_of
from slp_transformer.guitar.tab import Problem, Tab, check_tab
from slp_transformer.guitar.tab_header import stated_capo, stated_tuning, tuning_line
from slp_transformer.guitar.timing import bar_starts, coarsest, unfolded, with_metres

MOST_BYTES = 4 << 20
FINEST = 24
"""Steps to a quarter note, at most, that are taken over from a file as they are."""
PLAYED = 12
"""Steps to a quarter note for what is in no such grid, as people play."""
DRUMS = 10


def mido_library() -> ModuleType:
    """The library that knows MIDI files."""
    return from_text_extra("mido", "MIDI files", "guitar")


@dataclass
class _Heard:
    """What a MIDI file says, in its own ticks."""

    ticks: int
    notes: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    metres: dict[int, tuple[int, int]] = field(default_factory=dict)
    tempi: dict[int, int] = field(default_factory=dict)
    bends: Counter[int] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    length: int = 0


def read_midi(
    path: str | Path,
    tracks: Collection[int] | None = None,
    channels: Collection[int] | None = None,
    steps_per_quarter: int | None = None,
) -> tuple[Score, list[Problem]]:
    """Read the notes of a MIDI file.

    Args:
        path: the file.
        tracks: which tracks to read, from 1; all if None.
        channels: which channels to read, 1 to 16; all but the drums' 10 if None.
        steps_per_quarter: the unit of time, to which notes are moved; if None, the coarsest that
            holds them as they are, up to 24, or else 12.

    Returns:
        The notes; and what of the file is not in them, such as pitch bends and moved notes.

    Raises:
        ValueError: if there is no such file, it is no MIDI file, its time is not in quarter notes,
            or there are no notes in what was chosen.
    """
    heard = _hear(path)
    chosen = [
        (start, end, pitch, channel)
        for track, start, end, pitch, channel in heard.notes
        if (tracks is None or track in tracks)
        and (channel in channels if channels is not None else channel != DRUMS)
    ]
    if not chosen:
        raise ValueError(f"{path} has no notes there: {_parts(heard)}.")
    source = Path(path).name
    told = list(heard.problems)
    drums = sum(note[4] == DRUMS for note in heard.notes)
    if drums and channels is None:
        told.append(f"{drums} notes of drums, on channel {DRUMS}, are left out")
    for channel, count in sorted(heard.bends.items()):
        if any(note[3] == channel for note in chosen):
            told.append(f"{count} pitch bends on channel {channel} are left out")
    unit = steps_per_quarter or _unit_for(chosen, heard.ticks)
    notes, moved = _in_steps(chosen, heard.ticks, unit)
    if moved:
        told.append(f"{moved} notes are moved to the nearest of {unit} steps to a quarter note")

    def step(tick: int) -> int:
        return _nearest(tick, heard.ticks, unit)

    score = Score(
        tuple(notes),
        unit,
        tuple((step(tick), metre) for tick, metre in sorted(heard.metres.items())),
        tuple((step(tick), tempo) for tick, tempo in sorted(heard.tempi.items())),
        heard.names.get(1, ""),
        source,
        step(heard.length),
    )
    return score, [Problem(source, 0, message) for message in told]


def _hear(path: str | Path) -> _Heard:
    """Everything of use in a MIDI file.

    Raises:
        ValueError: as `read_midi`.
    """
    content = content_of(path, "a MIDI file", MOST_BYTES)
    with understood(path, "a MIDI file"):
        file = mido_library().MidiFile(file=BoundedBytes(content), clip=True)
        if file.ticks_per_beat < 1:
            raise ValueError("its time is in seconds (SMPTE), not in quarter notes")
        heard = _Heard(file.ticks_per_beat)
        for number, track in enumerate(file.tracks, start=1):
            _hear_track(heard, number, track)
    return heard


def _hear_track(heard: _Heard, number: int, track: Iterable) -> None:
    """Add what one track says."""
    now, sounding = 0, defaultdict(list)
    for message in track:
        now += message.time
        kind = message.type
        if kind in ("note_on", "note_off"):
            key = message.channel + 1, message.note
            if kind == "note_on" and message.velocity:
                sounding[key].append(now)
            elif sounding[key]:
                heard.notes.append((number, sounding[key].pop(0), now, key[1], key[0]))
        elif kind == "pitchwheel" and message.pitch:
            heard.bends[message.channel + 1] += 1
        elif kind == "set_tempo" and message.tempo:
            heard.tempi[now] = min(max(round(60e6 / message.tempo), 1), 1000)
        elif kind == "time_signature":
            if message.denominator in (1, 2, 4, 8, 16, 32) and message.numerator:
                heard.metres[now] = (message.numerator, message.denominator)
            else:
                heard.problems.append(
                    f"a metre of {message.numerator}/{message.denominator} is left out"
                )
        elif kind == "track_name":
            name = decode(message.name.encode("latin-1"))  # mido reads Latin-1, many write UTF-8
            heard.names.setdefault(number, " ".join(name.split())[:100])
        elif kind == "text" and number == 1:
            heard.texts.append(message.text)
    left = [(channel, pitch, start) for (channel, pitch), all in sounding.items() for start in all]
    for channel, pitch, start in left:
        heard.notes.append((number, start, now, pitch, channel))
    if left:
        heard.problems.append(f"{len(left)} notes never end; they end with their track")
    heard.length = max(heard.length, now)


def _parts(heard: _Heard) -> str:
    """Where the notes of a file are, in words."""
    counts = Counter((note[0], note[4]) for note in heard.notes)
    if not counts:
        return "it has none at all"
    parts = []
    for (track, channel), count in sorted(counts.items())[:20]:
        name = f" ({heard.names[track]})" if heard.names.get(track) else ""
        parts.append(f"track {track}{name}, channel {channel}: {count}")
    return "there are notes in " + "; ".join(parts)


def _unit_for(notes: list[tuple[int, int, int, int]], ticks: int) -> int:
    """The coarsest unit that holds notes as they are, or at least their beginnings; or `PLAYED`."""
    starts = [start for start, *_ in notes]
    ends = [end for _, end, *_ in notes]
    for moments in (starts + ends, starts):
        step = gcd(ticks, *moments)
        if ticks // step <= FINEST:
            return ticks // step
    return PLAYED


def _nearest(tick: int, ticks: int, unit: int) -> int:
    """The step nearest to a moment in ticks; of two, the later."""
    return (2 * tick * unit + ticks) // (2 * ticks)


def _in_steps(
    notes: list[tuple[int, int, int, int]], ticks: int, unit: int
) -> tuple[list[Sounding], int]:
    """Notes in steps, without doubles; and how many begin a little earlier or later than they did.

    Of notes on one channel at one pitch that begin together the longest is kept.
    """
    kept: dict[tuple[int, int, int], int] = {}
    moved = 0
    for start, end, pitch, channel in notes:
        onset = _nearest(start, ticks, unit)
        moved += Fraction(start * unit, ticks) != onset
        duration = max(1, _nearest(end, ticks, unit) - onset)
        key = onset, pitch, channel
        kept[key] = max(duration, kept.get(key, 0))
    soundings = [
        Sounding(onset, duration, pitch, channel)
        for (onset, pitch, channel), duration in sorted(kept.items())
    ]
    return soundings, moved


def read_midi_tab(path: str | Path, tuning: Tuning | None = None) -> tuple[Tab, list[Problem]]:
    """Read a MIDI file with a channel for each string, as MIDI guitars send, as a tab.

    Args:
        path: the file.
        tuning: the guitar; if None, what the file says, or else standard tuning.

    Raises:
        ValueError: as `read_midi`; and if a note is on no string, or below the open string of its
            channel, or two begin together on one string.
    """
    score, problems = read_midi(path)
    texts = _hear(path).texts
    pitches = next(filter(None, map(stated_tuning, texts)), None) or STANDARD.open_pitches
    capo = next(filter(None, map(stated_capo, texts)), 0)
    guitar = tuning or Tuning(pitches, capo)
    places = [_place(note, guitar, path) for note in score.notes]
    try:
        return coarsest(tab_of(score, places, guitar)), problems
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _place(note: Sounding, guitar: Tuning, path: str | Path) -> Note:
    """Where a note is played whose channel is its string."""
    if not 1 <= note.channel <= len(guitar.open_pitches):
        raise ValueError(
            f"{path} has notes on channel {note.channel}, which is no string of a guitar with "
            f"{len(guitar.open_pitches)}; a MIDI guitar has string n on channel n."
        )
    fret = note.pitch - guitar.pitch(Note(note.channel, 0))
    if fret < 0:
        raise ValueError(
            f"{path} has a note {-fret} frets below the open string {note.channel}; is the tuning "
            "another?"
        )
    return Note(note.channel, fret)


STEEL, BASS = 25, 33
LOW = 35  # a lowest string below B1 is a bass's

Said = list[tuple[int, Any]]  # messages, each with its moment in ticks


def write_midi(tab: Tab, path: str | Path) -> None:
    """Write a tab as a MIDI file with string n on channel n, whole or not at all.

    Repeats are played out. A note ends where the next begins on its string. Tuning and capo stand
    in the file as text. The instrument is a steel-string guitar, or a bass where the lowest string
    is below B1.

    Args:
        tab: the tab, which has time.
        path: where to.

    Raises:
        ValueError: if the tab's steps are columns, it cannot be written down, or a note is higher
            than MIDI has.
        OSError: if the file cannot be written.
    """
    check_tab(tab)
    tab = with_metres(unfolded(tab))
    score = score_of(tab)
    if high := next((note for note in score.notes if not 0 <= note.pitch <= 127), None):
        raise ValueError(f"MIDI has pitches from 0 to 127, and this tab has {high.pitch}.")
    ticks = tab.steps_per_quarter * max(1, 480 // tab.steps_per_quarter)
    scale = ticks // tab.steps_per_quarter
    end = bar_starts(tab)[-1] * scale
    file = mido_library().MidiFile(type=1, ticks_per_beat=ticks, charset="utf-8")
    file.tracks.append(_conductor(score, tab, scale, end))
    program = BASS if min(tab.tuning.open_pitches) < LOW else STEEL
    for string in range(1, len(tab.tuning.open_pitches) + 1):
        own = [note for note in score.notes if note.channel == string]
        file.tracks.append(_string_track(own, string, program, scale, end))
    with whole_file(Path(path)) as unfinished:
        file.save(unfinished)


def _conductor(score: Score, tab: Tab, scale: int, end: int) -> Any:
    """The track that says the title, the guitar, metres and tempi."""
    mido = mido_library()
    said = [
        (0, mido.MetaMessage("track_name", name=" ".join(tab.title.split()))),
        (0, mido.MetaMessage("text", text=tuning_line(tab.tuning))),
    ]
    if tab.tuning.capo:
        said.append((0, mido.MetaMessage("text", text=f"capo: {tab.tuning.capo}")))
    for step, (beats, kind) in score.metres:
        message = mido.MetaMessage("time_signature", numerator=beats, denominator=kind)
        said.append((step * scale, message))
    for step, tempo in score.tempi:
        said.append((step * scale, mido.MetaMessage("set_tempo", tempo=round(60e6 / tempo))))
    return _track(said, end)


def _string_track(notes: list[Sounding], string: int, program: int, scale: int, end: int) -> Any:
    """The track of one string."""
    mido = mido_library()
    channel = string - 1
    said = [
        (0, mido.MetaMessage("track_name", name=f"string {string}")),
        (0, mido.Message("program_change", channel=channel, program=program)),
    ]
    for note, after in zip(notes, [*notes[1:], None], strict=False):
        last = note.onset + note.duration
        last = last if after is None else min(last, after.onset)
        for kind, step in (("note_on", note.onset), ("note_off", last)):
            message = mido.Message(kind, channel=channel, note=note.pitch, velocity=80)
            said.append((step * scale, message))
    return _track(said, end)


def _track(said: Said, end: int) -> Any:
    """Messages with their moments as a track that ends with the piece."""
    mido = mido_library()
    track, now = mido.MidiTrack(), 0
    said = sorted(said, key=lambda each: each[0])  # notes are in order, and end before the next
    for tick, message in said:
        track.append(message.copy(time=tick - now))
        now = tick
    track.append(mido.MetaMessage("end_of_track", time=max(0, end - now)))
    return track
