"""MIDI files: any of them as pitches in time, and tabs with a channel for each string.

A track that states its tuning in the words of `slp_guitar.formats.midi_writer` is a tab
again, with a channel for each string.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import gcd
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from slp_guitar.bounds import MAX_BARS, MAX_FILE_BYTES, MAX_MIDI_NOTES
from slp_guitar.formats import safe_read
from slp_guitar.formats.notation import TUPLET_TIMES
from slp_guitar.formats.tab_builder import BarHeader, NoteEvent, TabBuilder, bar_starts, build_tabs
from slp_guitar.formats.unread import Contents, Omissions
from slp_guitar.fretboard import Note, Tuning
from slp_guitar.tab import MAX_STEPS_PER_QUARTER, ReadProblem, Tab, Technique
from slp_guitar.tab_header import format_tuning_line, parse_capo, parse_tuning
from slp_transformer._internal.extras import import_extra

MAX_EXACT_STEPS_PER_QUARTER = 24
"""Steps to a quarter note, at most, that a beat of a file is taken over with as it is."""
PERFORMANCE_STEPS_PER_QUARTER = 12
"""Steps to a quarter note for what is in no such grid, as people play."""
CONTENTS = Contents("midi")
NO_TUNING_LINE = "tuning: none"
"""What a track of notes without strings states in the files written here."""
DRUM_CHANNEL = 10
SUSTAIN_PEDAL = 64
GUITAR_PROGRAMS = range(24, 32)
"""General MIDI's guitars."""
STRUM_SECONDS = 0.03
"""The time in which the notes of a strummed chord begin."""


def import_mido() -> ModuleType:
    """Import the library that knows MIDI files."""
    return import_extra("mido", "MIDI files", "guitar")


class _PlayedNote(NamedTuple):
    """A note of a MIDI file, with times in ticks; tracks and channels count from 1.

    One that `rings` is held by the sustain pedal after its key is let go.
    """

    start: int
    end: int
    pitch: int
    channel: int
    track: int
    rings: bool = False


@dataclass
class _MidiContents:
    """The contents of a MIDI file, with times in ticks; names, texts, channels, ends by track.

    What is left out has its track, its channel or 0, and its name; then how often, and when first.
    """

    source: str
    ticks_per_quarter: int
    notes: list[_PlayedNote] = field(default_factory=list)
    time_signatures: dict[int, tuple[int, int]] = field(default_factory=dict)
    tempos: dict[int, int] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    unread: dict[tuple[int, int, str], tuple[int, int]] = field(default_factory=dict)
    track_names: dict[int, str] = field(default_factory=dict)
    texts: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    programs: defaultdict[int, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    omissions: Omissions = field(default_factory=Omissions)
    length_ticks: dict[int, int] = field(default_factory=dict)


def read_midi_tabs(
    path: str | Path,
    tracks: Collection[int] = (),
    channels: Collection[int] = (),
    quantize: int | None = None,
) -> tuple[list[Tab], list[ReadProblem]]:
    """Read a MIDI file: a tab for each track that states a tuning, or all notes without strings.

    Args:
        path: the file.
        tracks: which tracks to read, from 1; all if empty.
        channels: which channels to read, 1 to 16; all but the drums' 10 if empty.
        quantize: steps to a quarter note, to which notes are moved; if None, the fewest that hold
            them as they are, up to 24, or else 12.

    Returns:
        The tabs; and what of the file is not in them, such as pitch bends and moved notes.

    Raises:
        ValueError: if there is no such file, it is no MIDI file, its time is not in quarter notes,
            or there are no notes in what was chosen.
    """
    contents = _read_contents(path)
    chosen = [
        note
        for note in contents.notes
        if (not tracks or note.track in tracks)
        and (note.channel in channels if channels else note.channel != DRUM_CHANNEL)
    ]
    if not chosen:
        raise ValueError(f"{path} has no notes there: {_describe_parts(contents)}.")
    omissions = contents.omissions
    if not channels:
        drums = sum(note.channel == DRUM_CHANNEL for note in contents.notes)
        omissions.record(f"notes of drums, on channel {DRUM_CHANNEL}, are left out", count=drums)
    used_channels = {note.channel for note in chosen}
    ticks = contents.ticks_per_quarter
    unit, chosen = _choose_steps_per_quarter(chosen, contents, quantize)
    omissions.record(
        f"notes are moved to the nearest of {unit} steps to a quarter note; beats and bars are the "
        "file's, and are not looked for in what was played without a click",
        count=sum(note.start * unit % ticks > 0 for note in chosen),
    )
    used = sorted({note.track for note in chosen})
    guitars = {track: _find_stated_tuning(contents.texts[track]) for track in used}
    if all(guitars[track] or NO_TUNING_LINE in contents.texts[track] for track in used):
        parts = [
            (guitars[track], contents.track_names.get(track, ""), own)
            for track in used
            if (own := [note for note in chosen if note.track == track])
        ]
    else:
        split = _split_by_instrument(chosen, contents, bool(tracks or channels))
        parts = [(None, name, own) for name, own in split]
        if len(used) > 1:
            names = ", ".join(str(track) for track in used)
            apart = "one by one" if len(parts) > 1 else "together"
            omissions.record(f"tracks {names} are read {apart}; --tracks chooses some")
    found, headers = [], _build_bar_headers(contents, chosen, unit, used)
    for guitar, name, notes in parts:
        strings = _find_strings(guitar, contents.programs[notes[0].track]) if guitar else {}
        if guitar and any(note.pitch < strings.get(note.channel, (0, 128))[1] for note in notes):
            what = "has notes on none of its strings; they are read by their pitches"
            omissions.record(f"{name or 'a track'} {what}")
            guitar = None
        builder = TabBuilder(name, guitar, headers)
        for note in _quantize_notes(notes, ticks, unit):
            string, open_pitch = strings[note.channel] if guitar else (0, 0)
            place = Note(string, note.pitch - open_pitch)
            onset, end = Fraction(note.start, unit), Fraction(note.end, unit)
            techniques = {Technique("let ring")} if note.rings else set[Technique]()
            builder.add_note(NoteEvent(onset, end - onset, place, techniques))
        found.append(builder)
    is_part = len(found) > 1 and 1 in used  # the first track's name is not the piece's then
    title = "" if is_part else contents.track_names.get(1, "")
    silent = contents.track_names.keys() - {1, *(note.track for note in contents.notes)}
    omissions.record("track_name left out", count=sum(contents.track_names[n] > "" for n in silent))
    for (_, channel, name), (count, tick) in contents.unread.items():
        if not channel or channel in used_channels:
            bar_number = found[0].bar_number_at(Fraction(tick, ticks))
            omissions.record(f"{name} left out", bar_number, count)
    return build_tabs(contents.source, title, found, omissions=omissions)


def _split_by_instrument(
    notes: list[_PlayedNote], contents: _MidiContents, is_chosen: bool
) -> list[tuple[str, list[_PlayedNote]]]:
    """Return the instruments, each with its name and notes, that which is likely meant first.

    Two hands of a piano, or a melody and its bass, are one piece for a guitar, as is what was
    chosen by flags. Where there are more, or one guitar among two, each is a part: a guitar comes
    first, or else the one with the most notes.
    """
    by_part: dict[tuple[int, int], list[_PlayedNote]] = defaultdict(list)
    for note in notes:
        program = dict(contents.programs[note.track]).get(note.channel, 0)
        by_part[note.track, program].append(note)
    names = {key: contents.track_names.get(key[0], "") for key in by_part}
    guitars = [
        key
        for key, name in names.items()
        if key[1] in GUITAR_PROGRAMS or re.search(r"\bg(?:ui)?ta?r(?!.*bass)", name, re.I)
    ]
    if is_chosen or len(by_part) == 1 or len(by_part) == 2 and len(guitars) != 1:
        return [(contents.track_names.get(min(by_part)[0], ""), notes)]
    first = min(guitars) if guitars else max(by_part, key=lambda key: (len(by_part[key]), -key[0]))
    return [
        (contents.track_names.get(key[0]) or f"Track {key[0]}", by_part[key])
        for key in sorted(by_part, key=lambda key: (key != first, key))
    ]


def _find_stated_tuning(texts: list[str]) -> Tuning | None:
    """Return the guitar that the texts of a track state, in the words of the files written here.

    A text that comes to speak of a tuning says nothing of channels.
    """
    pitches = next((pitches for text in texts if (pitches := parse_tuning(text))), None)
    capo = next(filter(None, map(parse_capo, texts)), 0)
    if pitches is None or format_tuning_line(Tuning(pitches)) not in texts:
        return None
    return Tuning(pitches, capo)


def _read_contents(path: str | Path) -> _MidiContents:
    """Return everything of use in a MIDI file.

    Raises:
        ValueError: as `read_midi_tabs`.
    """
    content = safe_read.read_bytes(path, "a MIDI file", MAX_FILE_BYTES["MIDI"])
    with safe_read.translate_read_errors(path, "a MIDI file"):
        file = import_mido().MidiFile(file=safe_read.TimeLimitedBytes(content), clip=True)
        if file.type == 2:
            raise ValueError(
                "it is of type 2: its tracks are patterns, and nothing says when each is played"
            )
        if file.ticks_per_beat < 1:
            raise ValueError("its time is in seconds (SMPTE), not in quarter notes")
        num_notes = sum(message.type == "note_on" for track in file.tracks for message in track)
        if num_notes > MAX_MIDI_NOTES:
            raise ValueError(f"it has {num_notes:,} notes, more than {MAX_MIDI_NOTES:,}")
        contents = _MidiContents(Path(path).name, file.ticks_per_beat)
        for number, track in enumerate(file.tracks, start=1):
            _read_track(contents, number, track)
    return contents


def _read_track(contents: _MidiContents, track_number: int, track: Iterable[Any]) -> None:
    """Add the messages of one track."""
    now, sounding = 0, defaultdict[tuple[int, int], deque[int]](deque)
    loudness: dict[tuple[int, str], int] = {}  # by channel, of its first note
    pedaled: defaultdict[int, list[_PlayedNote]] = defaultdict(list)  # by channel, while it is down
    down: set[int] = set()

    def lift_pedal(channel: int) -> None:
        for note in pedaled.pop(channel, []):
            is_long = 2 * (now - note.end) >= contents.ticks_per_quarter
            contents.notes.append(note._replace(rings=is_long))

    for message in track:
        now += message.time
        for name in _unread_names(message, loudness):
            where = track_number, getattr(message, "channel", -1) + 1, name
            count, first = contents.unread.get(where, (0, now))
            contents.unread[where] = count + 1, first
        match message.type:
            case "note_on" if message.velocity:
                sounding[message.note, message.channel + 1].append(now)
            case "note_on" | "note_off":
                key = message.note, message.channel + 1
                if starts := sounding[key]:
                    note = _PlayedNote(starts.popleft(), now, *key, track_number)
                    (pedaled[key[1]] if key[1] in down else contents.notes).append(note)
            case "control_change" if message.control == SUSTAIN_PEDAL:
                if message.value >= 64:
                    down.add(message.channel + 1)
                else:
                    down.discard(message.channel + 1)
                    lift_pedal(message.channel + 1)
            case "key_signature":
                contents.keys[now] = message.key
            case "set_tempo" if message.tempo:
                contents.tempos[now] = min(max(int(60e6 / message.tempo + 0.5), 1), 1000)
            case "time_signature":
                beats, unit = message.numerator, message.denominator
                if beats and unit in (1, 2, 4, 8, 16, 32):
                    contents.time_signatures[now] = (beats, unit)
                else:
                    contents.omissions.record(f"time signatures of {beats}/{unit} are left out")
            case "track_name":
                # mido reads UTF-8 as Latin-1.
                name = safe_read.decode_text(message.name.encode("latin-1"))
                contents.track_names.setdefault(track_number, " ".join(name.split())[:100])
            case "text":
                contents.texts[track_number].append(message.text)
            case "program_change":
                contents.programs[track_number].append((message.channel + 1, message.program))
    for channel in tuple(pedaled):
        lift_pedal(channel)
    left = [
        _PlayedNote(start, now, *key, track_number)
        for key, starts in sounding.items()
        for start in starts
    ]
    contents.notes += left
    contents.omissions.record("notes never end; they end with their track", count=len(left))
    contents.length_ticks[track_number] = now


def _unread_names(message: Any, loudness: dict[tuple[int, str], int]) -> Iterator[str]:
    """Yield what of a message is left out; `loudness` has that of the first note of channels."""
    kind, name = message.type, message.type
    if kind == "control_change":
        name += f" {message.control}"
    elif kind in ("program_change", "pitchwheel"):
        name += f" {message.program if kind == 'program_change' else message.pitch}"
    elif kind == "text" and (
        parse_tuning(message.text) or parse_capo(message.text) or message.text == NO_TUNING_LINE
    ):
        name = "text of a tuning"
    data = " ".join(map(str, getattr(message, "data", ())))
    value = f"{name}={getattr(message, 'value', '')}"
    if CONTENTS.leaves_out(kind, name, f"{kind} {data}", value):
        yield kind if kind == "pitchwheel" else name
    elif kind in ("note_on", "note_off") and message.velocity:
        if message.velocity != loudness.setdefault((message.channel, kind), message.velocity):
            yield f"{kind} velocity"


def _describe_parts(contents: _MidiContents) -> str:
    """Describe the tracks and channels with notes."""
    counts = Counter((note.track, note.channel) for note in contents.notes)
    names = {track: f" ({name})" for track, name in contents.track_names.items() if name}
    parts = [
        f"track {track}{names.get(track, '')}, channel {channel}: {count}"
        for (track, channel), count in sorted(counts.items())[:20]
    ]
    return f"there are notes in {'; '.join(parts)}" if parts else "it has none at all"


def _choose_steps_per_quarter(
    notes: list[_PlayedNote], contents: _MidiContents, steps_per_quarter: int | None
) -> tuple[int, list[_PlayedNote]]:
    """Return the coarsest grid on which all notes begin and end, or at least begin, and the notes.

    A grid of more than 24 steps is one whose beats, each by itself, are plain: quintuplets in one
    and triplets in another.
    Notes of a performance, which are on no grid that is coarse enough, begin together if they begin
    within `STRUM_SECONDS`; if they still are on none, it is `PERFORMANCE_STEPS_PER_QUARTER`.
    """
    ticks = contents.ticks_per_quarter
    in_quarters = all(kind <= 4 for _, kind in contents.time_signatures.values())
    limits = [MAX_EXACT_STEPS_PER_QUARTER, *[MAX_STEPS_PER_QUARTER] * in_quarters]
    for played in (notes, strummed := _align_strums(notes, contents)):
        starts, ends = [note.start for note in played], [note.end for note in played]
        for limit, moments in product(limits, (starts + ends, starts)):
            steps = ticks // gcd(ticks, *moments)
            if steps <= limit and _is_notated(moments, ticks):
                is_rough = steps > MAX_EXACT_STEPS_PER_QUARTER and moments is starts
                found = _end_at_starts(played, ticks) if is_rough else played
                return steps_per_quarter or steps, found
    return steps_per_quarter or PERFORMANCE_STEPS_PER_QUARTER, strummed


def _is_notated(moments: Sequence[int], ticks_per_quarter: int) -> bool:
    """Return whether the moments of each beat lie on a grid that a beat of notation can have.

    Beats may differ: one of quintuplets can follow one of triplets.
    """
    sizes: dict[int, int] = defaultdict(lambda: ticks_per_quarter)
    for moment in moments:
        beat = moment // ticks_per_quarter
        sizes[beat] = gcd(sizes[beat], moment)
    grids = {ticks_per_quarter // size for size in sizes.values()}
    return all(
        grid <= MAX_EXACT_STEPS_PER_QUARTER and grid // (grid & -grid) in (1, *TUPLET_TIMES)
        for grid in grids
    )


def _end_at_starts(notes: Sequence[_PlayedNote], ticks_per_quarter: int) -> list[_PlayedNote]:
    """Return notes that end where another begins or a beat does, the nearest of these."""
    starts = sorted({note.start for note in notes})
    ended = []
    for note in notes:
        beat = note.end - note.end % ticks_per_quarter
        after = bisect_left(starts, note.end)
        near = [beat, beat + ticks_per_quarter, *starts[max(0, after - 1) : after + 1]]
        later = [place for place in near if place > note.start]
        ended.append(note._replace(end=min(later, key=lambda place: abs(place - note.end))))
    return ended


def _align_strums(notes: list[_PlayedNote], contents: _MidiContents) -> list[_PlayedNote]:
    """Return the notes, those that begin within 30 ms of each other beginning together."""
    gathered: list[_PlayedNote] = []
    tempos = deque(sorted(contents.tempos.items()))
    first, tempo = -1, 120
    for note in sorted(notes):
        while tempos and tempos[0][0] <= note.start:
            tempo = tempos.popleft()[1]
        window = STRUM_SECONDS * tempo / 60 * contents.ticks_per_quarter
        if first < 0 or note.start - first > window:
            first = note.start
        gathered.append(note._replace(start=first))
    return gathered


def _nearest_step(tick: int, ticks_per_quarter: int, unit: int) -> int:
    """Return the step nearest to a tick; of two, the later."""
    return (2 * tick * unit + ticks_per_quarter) // (2 * ticks_per_quarter)


def _quantize_notes(
    notes: list[_PlayedNote], ticks_per_quarter: int, unit: int
) -> list[_PlayedNote]:
    """Return notes with times in steps; the longest of those at once at a pitch first."""
    moved = []
    for note in notes:
        start = _nearest_step(note.start, ticks_per_quarter, unit)
        end = max(start + 1, _nearest_step(note.end, ticks_per_quarter, unit))
        moved.append(note._replace(start=start, end=end))
    return sorted(moved, key=lambda note: (note.start, note.pitch, note.channel, -note.end))


def _build_bar_headers(
    contents: _MidiContents, notes: list[_PlayedNote], unit: int, tracks: Collection[int]
) -> list[BarHeader]:
    """Return the bars of a file without notes.

    They end with the notes, with the tracks that have them and with those that have no notes.

    Raises:
        ValueError: if there are more than 10,000 bars.
    """
    ticks, bars = contents.ticks_per_quarter, list[BarHeader]()
    last = max(_nearest_step(note.start, ticks, unit) + 1 for note in notes)

    def quarters(tick: int) -> Fraction:
        return Fraction(_nearest_step(tick, ticks, unit), unit)

    meters = sorted((quarters(tick), value) for tick, value in contents.time_signatures.items())
    tempos = sorted((Fraction(tick, ticks), bpm) for tick, bpm in contents.tempos.items())
    keys = sorted((quarters(tick), key) for tick, key in contents.keys.items())
    with_notes = {note.track for note in contents.notes} - {*tracks}
    ends = [tick for track, tick in contents.length_ticks.items() if track not in with_notes]
    end = max(Fraction(last, unit), quarters(max(ends, default=0)))
    start = Fraction(0)
    while start < end:
        num_meters, num_tempos, num_keys = (
            bisect_right(own, start, key=itemgetter(0)) for own in (meters, tempos, keys)
        )
        time_signature = meters[num_meters - 1][1] if num_meters else (4, 4)
        length = Fraction(4 * time_signature[0], time_signature[1])
        # The time signature may change early, if the bar before then has one.
        early = [place - start for place, _ in meters[num_meters : num_meters + 1]]
        length = min([length, *(each for each in early if (8 * each).denominator == 1)])
        bar = BarHeader(length, time_signature)
        bar.tempo = tempos[num_tempos - 1][1] if num_tempos else None
        bar.key = keys[num_keys - 1][1] if num_keys else "C"
        inside = tempos[num_tempos : bisect_left(tempos, start + length, key=itemgetter(0))]
        bar.tempo_changes = {place - start: bpm for place, bpm in inside}
        bars.append(bar)
        start += length
        if len(bars) > MAX_BARS:
            raise ValueError(f"{contents.source} has more than {MAX_BARS:,} bars.")
    lines = bar_starts(bars)
    for place, _ in [*meters, *keys]:
        if place < end and place != lines[(number := bisect_right(lines, place)) - 1]:
            what = "keys and time signatures inside bars are moved to the next bar line"
            contents.omissions.record(what, number)
    return bars


def _find_strings(guitar: Tuning, programs: list[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the string of each channel, the first first, and its open pitch with the capo."""
    opens = enumerate((pitch + guitar.capo for pitch in guitar.open_pitches), start=1)
    return {channel: string for (channel, _), string in zip(programs, opens, strict=False)}
