"""Tabs as MIDI files with a channel for each string.

The first guitar has string n, counted from 1 for the highest, on channel n, as MIDI guitars do. The
files state its tuning, so that it comes back as the tab it was.
"""

import io
from collections import defaultdict
from itertools import zip_longest
from math import lcm
from typing import Any

from slp_guitar.formats import notation
from slp_guitar.formats.midi import DRUM_CHANNEL, NO_TUNING_LINE, import_mido
from slp_guitar.fretboard import midi_program
from slp_guitar.playing_order import expand_repeats
from slp_guitar.tab import Tab
from slp_guitar.tab_header import format_tuning_line
from slp_guitar.timing import add_time_signatures, bar_start_steps, require_steps_per_quarter

MAX_MIDI_BEATS = 255  # in a bar, since the number has one byte


def format_midi(*tracks: Tab, one_channel: bool = False) -> bytes:
    """Return tabs that play together as the content of a MIDI file with a channel for each string.

    Repeats are played out. A note ends where the next begins on its string. Tuning and capo are
    in the file as text. The instrument is a steel-string guitar, or a bass where the lowest string
    is below B1; notes without strings have the sound that MIDI begins with.

    Args:
        tracks: the tabs, which have time and the same bars.
        one_channel: give each guitar a single channel, as programs expect that show a part for each
            channel. The file then has pitches without strings, and a note ends where the same pitch
            begins on another string.

    Raises:
        ValueError: if the tabs' steps are columns, they cannot be written down, or a note is higher
            than MIDI has.
    """
    notation.check_tracks_have_same_bars(tracks, needs_strings=False)
    tabs = [
        notation.with_durations_filled(add_time_signatures(expand_repeats(tab))) for tab in tracks
    ]
    mido, content = import_mido(), io.BytesIO()
    unit = lcm(*(require_steps_per_quarter(tab) for tab in tabs))
    file = mido.MidiFile(type=1, ticks_per_beat=max(1, 480 // unit) * unit, charset="utf-8")
    channels, free = [], [channel for channel in range(16) if channel != DRUM_CHANNEL - 1]
    for tab in tabs:
        count = 1 if one_channel or not tab.is_fingered else len(tab.tuning.open_pitches)
        channels.append(free[:count] if len(free) >= count else list(range(count)))
        free = free[count:]
    for tab, messages in (
        (tabs[0], _conductor_messages(tabs[0])),
        *((tab, _guitar_messages(tab, own)) for tab, own in zip(tabs, channels, strict=True)),
    ):
        scale = file.ticks_per_beat // require_steps_per_quarter(tab)
        track, now = mido.MidiTrack(), 0
        for step, message in sorted(
            messages, key=lambda each: (each[0], each[1].type == "note_on")
        ):
            message.time = (step - now) * scale
            track.append(message)
            now = step
        rest = max(0, bar_start_steps(tab)[-1] - now) * scale
        track.append(mido.MetaMessage("end_of_track", time=rest))
        file.tracks.append(track)
    file.save(file=content)
    return content.getvalue()


def _conductor_messages(tab: Tab) -> list[tuple[int, Any]]:
    """Return title, time signatures, keys and tempos, each with its step."""
    meta = import_mido().MetaMessage
    messages = [(0, meta("track_name", name=" ".join(tab.title.split())))]
    for number, (step, bar) in enumerate(zip(bar_start_steps(tab), tab.bars, strict=False), 1):
        if bar.time_signature:
            beats, unit = bar.time_signature
            notation.check_beat_count(number, beats, MAX_MIDI_BEATS, "MIDI")
            messages.append((step, meta("time_signature", numerator=beats, denominator=unit)))
        if bar.key:
            messages.append((step, meta("key_signature", key=bar.key)))
        first = [(0, bar.tempo_bpm)] if bar.tempo_bpm else []
        for place, bpm in (*first, *bar.tempo_changes):
            # Rounded down, so that no player shows a slower tempo.
            messages.append((step + place, meta("set_tempo", tempo=60_000_000 // bpm)))
    return messages


def _guitar_messages(tab: Tab, channels: list[int]) -> list[tuple[int, Any]]:
    """Return the guitar and the notes of all strings, each with its step.

    Raises:
        ValueError: for a pitch that MIDI does not have.
    """
    mido, program = import_mido(), midi_program(tab.tuning)
    messages = [(0, mido.MetaMessage("track_name", name=tab.track or "Guitar"))]
    has_strings = len(channels) > 1
    if has_strings or not tab.is_fingered:
        stated = format_tuning_line(tab.tuning) if has_strings else NO_TUNING_LINE
        messages.append((0, mido.MetaMessage("text", text=stated)))
    if has_strings and tab.tuning.capo:
        messages.append((0, mido.MetaMessage("text", text=f"capo: {tab.tuning.capo}")))
    messages += [
        (0, mido.Message("program_change", channel=channel, program=program))
        for channel in channels
    ]
    ends: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for start, _, event in tab.iter_placed_events():
        sounding = event.sounding_notes()
        for each in (each for each in event.tab_notes() if each.note in sounding):
            pitch, onset = tab.tuning.pitch_of(each.note), start + event.step
            if not 0 <= pitch <= 127:
                raise ValueError(f"MIDI has pitches from 0 to 127, and this tab has {pitch}.")
            own = ends[channels[each.note.string - 1 if has_strings else 0], pitch]
            own[onset] = max(onset + each.duration_steps, own.get(onset, 0))
    for (channel, pitch), own in ends.items():
        of_string = {"channel": channel, "note": pitch}
        for (onset, end), following in zip_longest(own.items(), [*own][1:]):
            end = end if following is None else min(end, following)
            messages += [
                (step, mido.Message(kind, skip_checks=True, velocity=80, **of_string))
                for kind, step in (("note_on", onset), ("note_off", end))
            ]
    return messages
