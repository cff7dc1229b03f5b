"""MIDI files: any of them as pitches in time, and tabs with a channel for each string.

MIDI guitars send string n, counted from 1 for the highest, on channel n; so do the files that are
written here, and they come back as the tab that they were.
"""

import io
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from math import gcd
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from slp_transformer._internal.atomic_write import require_extra
from slp_transformer.guitar.ascii_reader import decode_text
from slp_transformer.guitar.formats.safe_read import (
    TimeLimitedBytes,
    read_bytes,
    translate_read_errors,
)
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning, midi_program
from slp_transformer.guitar.score import Score, ScoreNote, score_from_tab, tab_from_score
from slp_transformer.guitar.tab import ReadProblem, Tab, check_tab
from slp_transformer.guitar.tab_header import format_tuning_line, parse_capo, parse_tuning
from slp_transformer.guitar.timing import (
    add_time_signatures,
    bar_start_steps,
    coarsest_grid,
    expand_repeats,
)

MAX_FILE_BYTES = 4 << 20
MAX_EXACT_STEPS_PER_QUARTER = 24
"""Steps to a quarter note, at most, that are taken over from a file as they are."""
PERFORMANCE_STEPS_PER_QUARTER = 12
"""Steps to a quarter note for what is in no such grid, as people play."""
DRUM_CHANNEL = 10


def import_mido() -> ModuleType:
    """Import the library that knows MIDI files."""
    return require_extra("mido", "MIDI files", "guitar")


class _PlayedNote(NamedTuple):
    """A note of a MIDI file, with times in ticks; tracks and channels count from 1."""

    start: int
    end: int
    pitch: int
    channel: int
    track: int


@dataclass
class _MidiContents:
    """The contents of a MIDI file, with times in ticks."""

    source: str
    ticks_per_quarter: int
    notes: list[_PlayedNote] = field(default_factory=list)
    time_signatures: dict[int, tuple[int, int]] = field(default_factory=dict)
    tempos: dict[int, int] = field(default_factory=dict)
    pitch_bends: Counter[int] = field(default_factory=Counter)
    track_names: dict[int, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    length_ticks: int = 0


def read_midi(
    path: str | Path,
    tracks: Collection[int] | None = None,
    channels: Collection[int] | None = None,
    steps_per_quarter: int | None = None,
) -> tuple[Score, list[ReadProblem]]:
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
    contents = _read_contents(path)
    chosen = [
        note
        for note in contents.notes
        if (tracks is None or note.track in tracks)
        and (note.channel in channels if channels is not None else note.channel != DRUM_CHANNEL)
    ]
    if not chosen:
        raise ValueError(f"{path} has no notes there: {_describe_parts(contents)}.")
    messages = list(contents.problems)
    drums = sum(note.channel == DRUM_CHANNEL for note in contents.notes)
    if drums and channels is None:
        messages.append(f"{drums} notes of drums, on channel {DRUM_CHANNEL}, are left out")
    for channel, count in sorted(contents.pitch_bends.items()):
        if any(note.channel == channel for note in chosen):
            messages.append(f"{count} pitch bends on channel {channel} are left out")
    score, moved = _quantize(contents, chosen, steps_per_quarter)
    if moved:
        unit = score.steps_per_quarter
        messages.append(f"{moved} notes are moved to the nearest of {unit} steps to a quarter note")
    return score, [ReadProblem(contents.source, 0, message) for message in messages]


def _read_contents(path: str | Path) -> _MidiContents:
    """Return everything of use in a MIDI file.

    Raises:
        ValueError: as `read_midi`.
    """
    content = read_bytes(path, "a MIDI file", MAX_FILE_BYTES)
    with translate_read_errors(path, "a MIDI file"):
        file = import_mido().MidiFile(file=TimeLimitedBytes(content), clip=True)
        if file.ticks_per_beat < 1:
            raise ValueError("its time is in seconds (SMPTE), not in quarter notes")
        contents = _MidiContents(Path(path).name, file.ticks_per_beat)
        for number, track in enumerate(file.tracks, start=1):
            _read_track(contents, number, track)
    return contents


def _read_track(contents: _MidiContents, track_number: int, track: Iterable[Any]) -> None:
    """Add the messages of one track."""
    now, sounding = 0, defaultdict[tuple[int, int], list[int]](list)
    for message in track:
        now += message.time
        match message.type:
            case "note_on" if message.velocity:
                sounding[message.note, message.channel + 1].append(now)
            case "note_on" | "note_off":
                key = message.note, message.channel + 1
                if starts := sounding[key]:
                    contents.notes.append(_PlayedNote(starts.pop(0), now, *key, track_number))
            case "pitchwheel" if message.pitch:
                contents.pitch_bends[message.channel + 1] += 1
            case "set_tempo" if message.tempo:
                contents.tempos[now] = min(max(round(60e6 / message.tempo), 1), 1000)
            case "time_signature":
                beats, unit = message.numerator, message.denominator
                if beats and unit in (1, 2, 4, 8, 16, 32):
                    contents.time_signatures[now] = (beats, unit)
                else:
                    contents.problems.append(f"a time signature of {beats}/{unit} is left out")
            case "track_name":
                name = decode_text(message.name.encode("latin-1"))  # mido reads UTF-8 as Latin-1
                contents.track_names.setdefault(track_number, " ".join(name.split())[:100])
            case "text" if track_number == 1:
                contents.texts.append(message.text)
    left = [
        _PlayedNote(start, now, *key, track_number)
        for key, starts in sounding.items()
        for start in starts
    ]
    contents.notes += left
    if left:
        contents.problems.append(f"{len(left)} notes never end; they end with their track")
    contents.length_ticks = max(contents.length_ticks, now)


def _describe_parts(contents: _MidiContents) -> str:
    """Describe the tracks and channels with notes."""
    counts = Counter((note.track, note.channel) for note in contents.notes)
    parts = []
    for (track, channel), count in sorted(counts.items())[:20]:
        name = f" ({contents.track_names[track]})" if contents.track_names.get(track) else ""
        parts.append(f"track {track}{name}, channel {channel}: {count}")
    return f"there are notes in {'; '.join(parts)}" if parts else "it has none at all"


def _quantize(
    contents: _MidiContents, notes: list[_PlayedNote], steps_per_quarter: int | None
) -> tuple[Score, int]:
    """Return notes in steps, and how many begin a little earlier or later than they did.

    Of notes on one channel at one pitch that begin together the longest is kept.
    """
    ticks = contents.ticks_per_quarter
    unit = steps_per_quarter or _choose_steps_per_quarter(notes, ticks)

    def step(tick: int) -> int:  # the nearest; of two, the later
        return (2 * tick * unit + ticks) // (2 * ticks)

    kept: dict[tuple[int, int, int], int] = {}
    for note in notes:
        key = step(note.start), note.pitch, note.channel
        kept[key] = max(1, step(note.end) - key[0], kept.get(key, 0))
    signatures, tempos = sorted(contents.time_signatures.items()), sorted(contents.tempos.items())
    score = Score(
        tuple(ScoreNote(key[0], kept[key], key[1], key[2]) for key in sorted(kept)),
        unit,
        tuple((step(tick), signature) for tick, signature in signatures),
        tuple((step(tick), tempo) for tick, tempo in tempos),
        contents.track_names.get(1, ""),
        contents.source,
        step(contents.length_ticks),
    )
    return score, sum(note.start * unit % ticks > 0 for note in notes)


def _choose_steps_per_quarter(notes: list[_PlayedNote], ticks_per_quarter: int) -> int:
    """Return the coarsest grid on which all notes begin and end, or at least begin.

    Without one that is coarse enough it is `PERFORMANCE_STEPS_PER_QUARTER`.
    """
    starts = [note.start for note in notes]
    ends = [note.end for note in notes]
    for moments in (starts + ends, starts):
        steps = ticks_per_quarter // gcd(ticks_per_quarter, *moments)
        if steps <= MAX_EXACT_STEPS_PER_QUARTER:
            return steps
    return PERFORMANCE_STEPS_PER_QUARTER


def read_midi_tab(
    path: str | Path, tuning: Tuning | None = None
) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a MIDI file with a channel for each string, as MIDI guitars send, as a tab.

    Args:
        path: the file.
        tuning: the guitar; if None, what the file says, or else standard tuning.

    Returns:
        The one tab; and what of the file is not in it.

    Raises:
        ValueError: as `read_midi`; and if a note is on no string, or below the open string of its
            channel, or two begin together on one string.
    """
    score, problems = read_midi(path)
    if tuning is None:
        texts = _read_contents(path).texts
        pitches = next(filter(None, map(parse_tuning, texts)), STANDARD.open_pitches)
        tuning = Tuning(pitches, next(filter(None, map(parse_capo, texts)), 0))
    places = [_note_from_channel(note, tuning, path) for note in score.notes]
    try:
        return [coarsest_grid(tab_from_score(score, places, tuning))], problems
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _note_from_channel(note: ScoreNote, tuning: Tuning, path: str | Path) -> Note:
    """Return the place of a note whose channel is its string."""
    if not 1 <= note.channel <= len(tuning.open_pitches):
        raise ValueError(
            f"{path} has notes on channel {note.channel}, which is no string of a guitar with "
            f"{len(tuning.open_pitches)}; a MIDI guitar has string n on channel n."
        )
    fret = note.pitch - tuning.pitch_of(Note(note.channel, 0))
    if fret < 0:
        raise ValueError(
            f"{path} has a note {-fret} frets below the open string {note.channel}; is the tuning "
            "another?"
        )
    return Note(note.channel, fret)


# --- Writing --------------------------------------------------------------------------------------


def format_midi(tab: Tab) -> bytes:
    """Return a tab as the content of a MIDI file with string n on channel n.

    Repeats are played out. A note ends where the next begins on its string. Tuning and capo are
    in the file as text. The instrument is a steel-string guitar, or a bass where the lowest string
    is below B1.

    Args:
        tab: the tab, which has time.

    Raises:
        ValueError: if the tab's steps are columns, it cannot be written down, or a note is higher
            than MIDI has.
    """
    check_tab(tab)
    tab = add_time_signatures(expand_repeats(tab))
    score, mido, content = score_from_tab(tab), import_mido(), io.BytesIO()
    if high := next((note for note in score.notes if not 0 <= note.pitch <= 127), None):
        raise ValueError(f"MIDI has pitches from 0 to 127, and this tab has {high.pitch}.")
    scale = max(1, 480 // score.steps_per_quarter)
    file = mido.MidiFile(type=1, ticks_per_beat=scale * score.steps_per_quarter, charset="utf-8")
    for messages in (_conductor_messages(score, tab), _guitar_messages(score, tab)):
        track, now = mido.MidiTrack(), 0
        for step, message in sorted(
            messages, key=lambda each: (each[0], each[1].type == "note_on")
        ):
            track.append(message.copy(time=(step - now) * scale))
            now = step
        rest = max(0, bar_start_steps(tab)[-1] - now) * scale
        track.append(mido.MetaMessage("end_of_track", time=rest))
        file.tracks.append(track)
    file.save(file=content)
    return content.getvalue()


def _conductor_messages(score: Score, tab: Tab) -> list[tuple[int, Any]]:
    """Return title, guitar, time signatures and tempos, each with its step."""
    meta = import_mido().MetaMessage
    messages = [
        (0, meta("track_name", name=" ".join(tab.title.split()))),
        (0, meta("text", text=format_tuning_line(tab.tuning))),
    ]
    if tab.tuning.capo:
        messages.append((0, meta("text", text=f"capo: {tab.tuning.capo}")))
    for step, (beats, unit) in score.time_signatures:
        messages.append((step, meta("time_signature", numerator=beats, denominator=unit)))
    for step, tempo in score.tempos:  # rounded down, so that no player shows a slower tempo
        messages.append((step, meta("set_tempo", tempo=60_000_000 // tempo)))
    return messages


def _guitar_messages(score: Score, tab: Tab) -> list[tuple[int, Any]]:
    """Return the notes of all strings, each with its step; string n is on channel n."""
    mido = import_mido()
    messages = [(0, mido.MetaMessage("track_name", name="Guitar"))]
    for channel in range(len(tab.tuning.open_pitches)):
        program = midi_program(tab.tuning)
        messages.append((0, mido.Message("program_change", channel=channel, program=program)))
        notes = [note for note in score.notes if note.channel == channel + 1]
        for note, after in zip_longest(notes, notes[1:]):
            end = note.onset_step + note.duration_steps
            end = min(end, after.onset_step) if after else end
            for kind, step in (("note_on", note.onset_step), ("note_off", end)):
                message = mido.Message(kind, channel=channel, note=note.pitch, velocity=80)
                messages.append((step, message))
    return messages
