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

from slp_transformer._internal.atomic_write import atomic_write, require_extra
from slp_transformer.guitar.ascii_reader import decode_text
from slp_transformer.guitar.formats.safe_read import (
    TimeLimitedBytes,
    read_bytes,
    translate_read_errors,
)
from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning
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
    """The library that knows MIDI files."""
    return require_extra("mido", "MIDI files", "guitar")


@dataclass
class _MidiContents:
    """The contents of a MIDI file, with times in ticks."""

    ticks_per_quarter: int
    notes: list[tuple[int, int, int, int, int]] = field(default_factory=list)
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
    heard = _read_contents(path)
    chosen = [
        (start, end, pitch, channel)
        for track, start, end, pitch, channel in heard.notes
        if (tracks is None or track in tracks)
        and (channel in channels if channels is not None else channel != DRUM_CHANNEL)
    ]
    if not chosen:
        raise ValueError(f"{path} has no notes there: {_describe_parts(heard)}.")
    source = Path(path).name
    messages = list(heard.problems)
    drums = sum(note[4] == DRUM_CHANNEL for note in heard.notes)
    if drums and channels is None:
        messages.append(f"{drums} notes of drums, on channel {DRUM_CHANNEL}, are left out")
    for channel, count in sorted(heard.pitch_bends.items()):
        if any(note[3] == channel for note in chosen):
            messages.append(f"{count} pitch bends on channel {channel} are left out")
    unit = steps_per_quarter or _choose_steps_per_quarter(chosen, heard.ticks_per_quarter)
    notes, moved = _quantize_notes(chosen, heard.ticks_per_quarter, unit)
    if moved:
        messages.append(f"{moved} notes are moved to the nearest of {unit} steps to a quarter note")

    def step(tick: int) -> int:
        return _tick_to_step(tick, heard.ticks_per_quarter, unit)

    score = Score(
        tuple(notes),
        unit,
        tuple((step(tick), beats) for tick, beats in sorted(heard.time_signatures.items())),
        tuple((step(tick), tempo) for tick, tempo in sorted(heard.tempos.items())),
        heard.track_names.get(1, ""),
        source,
        step(heard.length_ticks),
    )
    return score, [ReadProblem(source, 0, message) for message in messages]


def _read_contents(path: str | Path) -> _MidiContents:
    """Everything of use in a MIDI file.

    Raises:
        ValueError: as `read_midi`.
    """
    content = read_bytes(path, "a MIDI file", MAX_FILE_BYTES)
    with translate_read_errors(path, "a MIDI file"):
        file = import_mido().MidiFile(file=TimeLimitedBytes(content), clip=True)
        if file.ticks_per_beat < 1:
            raise ValueError("its time is in seconds (SMPTE), not in quarter notes")
        heard = _MidiContents(file.ticks_per_beat)
        for number, track in enumerate(file.tracks, start=1):
            _collect_notes(heard, number, track)
    return heard


def _collect_notes(contents: _MidiContents, track_number: int, track: Iterable) -> None:
    """Add the messages of one track."""
    now, sounding = 0, defaultdict(list)
    for message in track:
        now += message.time
        kind = message.type
        if kind in ("note_on", "note_off"):
            key = message.channel + 1, message.note
            if kind == "note_on" and message.velocity:
                sounding[key].append(now)
            elif sounding[key]:
                contents.notes.append((track_number, sounding[key].pop(0), now, key[1], key[0]))
        elif kind == "pitchwheel" and message.pitch:
            contents.pitch_bends[message.channel + 1] += 1
        elif kind == "set_tempo" and message.tempo:
            contents.tempos[now] = min(max(round(60e6 / message.tempo), 1), 1000)
        elif kind == "time_signature":
            if message.denominator in (1, 2, 4, 8, 16, 32) and message.numerator:
                contents.time_signatures[now] = (message.numerator, message.denominator)
            else:
                contents.problems.append(
                    f"a time signature of {message.numerator}/{message.denominator} is left out"
                )
        elif kind == "track_name":
            name = decode_text(
                message.name.encode("latin-1")
            )  # mido reads Latin-1, many write UTF-8
            contents.track_names.setdefault(track_number, " ".join(name.split())[:100])
        elif kind == "text" and track_number == 1:
            contents.texts.append(message.text)
    left = [(channel, pitch, start) for (channel, pitch), all in sounding.items() for start in all]
    for channel, pitch, start in left:
        contents.notes.append((track_number, start, now, pitch, channel))
    if left:
        contents.problems.append(f"{len(left)} notes never end; they end with their track")
    contents.length_ticks = max(contents.length_ticks, now)


def _describe_parts(contents: _MidiContents) -> str:
    """Describe the tracks and channels with notes."""
    counts = Counter((note[0], note[4]) for note in contents.notes)
    if not counts:
        return "it has none at all"
    parts = []
    for (track, channel), count in sorted(counts.items())[:20]:
        name = f" ({contents.track_names[track]})" if contents.track_names.get(track) else ""
        parts.append(f"track {track}{name}, channel {channel}: {count}")
    return "there are notes in " + "; ".join(parts)


def _choose_steps_per_quarter(
    notes: list[tuple[int, int, int, int]], ticks_per_quarter: int
) -> int:
    """Return the coarsest grid on which all notes begin and end, or at least begin.

    Without one that is coarse enough it is `PERFORMANCE_STEPS_PER_QUARTER`.
    """
    starts = [start for start, *_ in notes]
    ends = [end for _, end, *_ in notes]
    for moments in (starts + ends, starts):
        step = gcd(ticks_per_quarter, *moments)
        if ticks_per_quarter // step <= MAX_EXACT_STEPS_PER_QUARTER:
            return ticks_per_quarter // step
    return PERFORMANCE_STEPS_PER_QUARTER


def _tick_to_step(tick: int, ticks_per_quarter: int, steps_per_quarter: int) -> int:
    """The step nearest to a moment in ticks; of two, the later."""
    return (2 * tick * steps_per_quarter + ticks_per_quarter) // (2 * ticks_per_quarter)


def _quantize_notes(
    notes: list[tuple[int, int, int, int]], ticks_per_quarter: int, steps_per_quarter: int
) -> tuple[list[ScoreNote], int]:
    """Notes in steps, without doubles; and how many begin a little earlier or later than they did.

    Of notes on one channel at one pitch that begin together the longest is kept.
    """
    kept: dict[tuple[int, int, int], int] = {}
    moved = 0
    for start, end, pitch, channel in notes:
        onset = _tick_to_step(start, ticks_per_quarter, steps_per_quarter)
        moved += Fraction(start * steps_per_quarter, ticks_per_quarter) != onset
        duration = max(1, _tick_to_step(end, ticks_per_quarter, steps_per_quarter) - onset)
        key = onset, pitch, channel
        kept[key] = max(duration, kept.get(key, 0))
    soundings = [
        ScoreNote(onset, duration, pitch, channel)
        for (onset, pitch, channel), duration in sorted(kept.items())
    ]
    return soundings, moved


def read_midi_tab(path: str | Path, tuning: Tuning | None = None) -> tuple[Tab, list[ReadProblem]]:
    """Read a MIDI file with a channel for each string, as MIDI guitars send, as a tab.

    Args:
        path: the file.
        tuning: the guitar; if None, what the file says, or else standard tuning.

    Raises:
        ValueError: as `read_midi`; and if a note is on no string, or below the open string of its
            channel, or two begin together on one string.
    """
    score, problems = read_midi(path)
    texts = _read_contents(path).texts
    pitches = next(filter(None, map(parse_tuning, texts)), None) or STANDARD.open_pitches
    capo = next(filter(None, map(parse_capo, texts)), 0)
    guitar = tuning or Tuning(pitches, capo)
    places = [_note_from_channel(note, guitar, path) for note in score.notes]
    try:
        return coarsest_grid(tab_from_score(score, places, guitar)), problems
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


GUITAR_PROGRAM, BASS_PROGRAM = 25, 33
MAX_BASS_LOW_PITCH = 35  # a lowest string below B1 is a bass's

TimedMessages = list[tuple[int, Any]]  # messages, each with its moment in ticks


def write_midi(tab: Tab, path: str | Path) -> None:
    """Write a tab as a MIDI file with string n on channel n, whole or not at all.

    Repeats are played out. A note ends where the next begins on its string. Tuning and capo are
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
    tab = add_time_signatures(expand_repeats(tab))
    score = score_from_tab(tab)
    if high := next((note for note in score.notes if not 0 <= note.pitch <= 127), None):
        raise ValueError(f"MIDI has pitches from 0 to 127, and this tab has {high.pitch}.")
    ticks = tab.steps_per_quarter * max(1, 480 // tab.steps_per_quarter)
    scale = ticks // tab.steps_per_quarter
    end = bar_start_steps(tab)[-1] * scale
    file = import_mido().MidiFile(type=1, ticks_per_beat=ticks, charset="utf-8")
    file.tracks.append(_build_conductor_track(score, tab, scale, end))
    program = BASS_PROGRAM if min(tab.tuning.open_pitches) < MAX_BASS_LOW_PITCH else GUITAR_PROGRAM
    for string in range(1, len(tab.tuning.open_pitches) + 1):
        own = [note for note in score.notes if note.channel == string]
        file.tracks.append(_build_string_track(own, string, program, scale, end))
    with atomic_write(Path(path)) as unfinished:
        file.save(unfinished)


def _build_conductor_track(score: Score, tab: Tab, scale: int, end_tick: int) -> Any:
    """Build the track with the title, the guitar, time signatures and tempi."""
    mido = import_mido()
    messages = [
        (0, mido.MetaMessage("track_name", name=" ".join(tab.title.split()))),
        (0, mido.MetaMessage("text", text=format_tuning_line(tab.tuning))),
    ]
    if tab.tuning.capo:
        messages.append((0, mido.MetaMessage("text", text=f"capo: {tab.tuning.capo}")))
    for step, (beats, kind) in score.time_signatures:
        message = mido.MetaMessage("time_signature", numerator=beats, denominator=kind)
        messages.append((step * scale, message))
    for step, tempo in score.tempos:
        message = mido.MetaMessage("set_tempo", tempo=round(60e6 / tempo))
        messages.append((step * scale, message))
    return _build_track(messages, end_tick)


def _build_string_track(
    notes: list[ScoreNote], string: int, program: int, scale: int, end_tick: int
) -> Any:
    """Build the track of one string."""
    mido = import_mido()
    channel = string - 1
    messages = [
        (0, mido.MetaMessage("track_name", name=f"string {string}")),
        (0, mido.Message("program_change", channel=channel, program=program)),
    ]
    for note, after in zip(notes, [*notes[1:], None], strict=False):
        last = note.onset_step + note.duration_steps
        last = last if after is None else min(last, after.onset_step)
        for kind, step in (("note_on", note.onset_step), ("note_off", last)):
            message = mido.Message(kind, channel=channel, note=note.pitch, velocity=80)
            messages.append((step * scale, message))
    return _build_track(messages, end_tick)


def _build_track(timed_messages: TimedMessages, end_tick: int) -> Any:
    """Messages with their moments as a track that ends with the piece."""
    mido = import_mido()
    track, now = mido.MidiTrack(), 0
    timed_messages = sorted(
        timed_messages, key=lambda each: each[0]
    )  # notes are in order, and end before the next
    for tick, message in timed_messages:
        track.append(message.copy(time=tick - now))
        now = tick
    track.append(mido.MetaMessage("end_of_track", time=max(0, end_tick - now)))
    return track
