"""Tabs as MIDI files: string n, from 1 for the highest, on channel n, as MIDI guitars send."""

from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.guitar.formats.midi import mido_library
from slp_transformer.guitar.score import Score, Sounding, score_of
from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.tab_checks import check_tab
from slp_transformer.guitar.tab_header import tuning_line
from slp_transformer.guitar.timing import bar_starts, unfolded, with_metres

STEEL, BASS = 25, 33
LOW = 35  # a lowest string below B1 is a bass's

Said = list[tuple[int, Any]]  # messages, each with its moment in ticks


def write_midi(tab: Tab, path: str | Path, program: int | None = None) -> None:
    """Write a tab as a MIDI file with string n on channel n, whole or not at all.

    Repeats are played out. A note ends where the next begins on its string. Tuning and capo stand
    in the file as text.

    Args:
        tab: the tab, which has time.
        path: where to.
        program: the instrument, 0 to 127 as in General MIDI; if None, a steel-string guitar, or a
            bass where the lowest string is below B1.

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
    if program is None:
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
