"""Accuracy of the ASCII tablature reader against an answer key and MIDI files.

Usage::

    python benchmarks/guitar_reader.py DATA/valid DATA/test --key DATA/valid.jsonl DATA/test.jsonl

Each folder holds tabs as published (and for some a MIDI file of the same name); its key
is a JSON Lines file, one piece a line, made by another parser:
``{"file": ..., "open_midi": [low, ...], "events": [[bar, [[string, fret], ...], ...], ...]}``
with string 0 the lowest.

Measured for every folder:

- **recall**: the share of the key's notes that are read, in order: the longest common subsequence
  of (string, fret) over the piece, summed over pieces.
- **extra**: the share of the notes read that are not in it.
- **confirmed columns**: of the pieces with a MIDI file, how many columns (notes that sound
  together) the MIDI confirms, for the key and for the reader alike. A column matches a moment of
  the MIDI file if all its pitches begin there; matches must be in order (longest common
  subsequence). Notes that begin within a sixteenth of a beat make one moment. Pitches are shifted
  by the number of semitones that makes the piece's pitches agree best, so that a MIDI file in
  another key or octave counts too.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import mido
import torch

from slp_guitar.fretboard import Tuning
from slp_guitar.tab import Tab
from slp_guitar.tab_dataset import read_tab_folder

Columns = list[list[int]]


def common_subsequence(matches: torch.Tensor) -> int:
    """Length of the longest common subsequence, given which pairs of elements match.

    Args:
        matches: boolean, first sequence by second.
    """
    best = torch.zeros(matches.shape[1] + 1, dtype=torch.int32)
    for row in matches.int():
        best[1:] = torch.maximum(best[1:], best[:-1] + row)
        best = best.cummax(dim=0).values
    return int(best[-1])


def notes_in_common(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> int:
    """Notes that two readings share, in order."""
    codes = [torch.tensor([string * 100 + fret for string, fret in notes]) for notes in (a, b)]
    return common_subsequence(codes[0][:, None] == codes[1][None, :])


def midi_moments(path: Path) -> Columns:
    """The pitches of a MIDI file, gathered into moments."""
    midi = mido.MidiFile(path, clip=True)
    onsets = []
    for track in midi.tracks:
        time = 0
        for message in track:
            time += message.time
            if message.type == "note_on" and message.velocity > 0 and message.channel != 9:
                onsets.append((time, message.note))
    moments: Columns = []
    start = None
    for time, pitch in sorted(onsets):
        if start is None or time - start > midi.ticks_per_beat / 16:
            moments.append([])
            start = time
        moments[-1].append(pitch)
    return moments


def confirmed_columns(columns: Columns, moments: Columns) -> int:
    """Return how many columns the moments of a MIDI file confirm, in order."""
    if not columns or not moments:
        return 0
    sounding = torch.zeros(len(moments), 128, dtype=torch.bool)
    for row, moment in zip(sounding, moments, strict=True):
        row[moment] = True
    shift = best_shift(columns, moments)
    matches = torch.stack(
        [sounding[:, (torch.tensor(column) + shift).clamp(0, 127)].all(dim=1) for column in columns]
    )
    return common_subsequence(matches)


def best_shift(columns: Columns, moments: Columns) -> int:
    """The transposition that makes the pitches of a tab and of a MIDI file agree best."""
    tab = Counter(pitch for column in columns for pitch in column)
    midi = Counter(pitch for moment in moments for pitch in moment)
    scale = sum(tab.values()) / sum(midi.values())

    def overlap(shift: int) -> float:
        return sum(min(n, scale * midi[pitch + shift]) for pitch, n in tab.items())

    return max(range(-24, 25), key=lambda shift: (overlap(shift), -abs(shift)))


def key_columns(piece: dict) -> tuple[list[tuple[int, int]], Columns]:
    """The notes of a piece in the key (string 1 the highest), and its columns as pitches."""
    open_midi = piece["open_midi"]
    strings = len(open_midi)
    events = [event[1] for event in piece["events"]]
    notes = [(strings - string, fret) for event in events for string, fret in event]
    return notes, [[open_midi[string] + fret for string, fret in event] for event in events]


def tab_columns(tabs: list[Tab]) -> tuple[list[tuple[int, int]], Columns]:
    """The notes of what was read of a file, and its columns as pitches."""
    events = [(tab.tuning, event) for tab in tabs for event in tab.iter_events()]
    notes = [(note.string, note.fret) for _, event in events for note in event.notes]
    return notes, [_pitches(tuning, event.notes) for tuning, event in events]


def _pitches(tuning: Tuning, notes) -> list[int]:
    return [tuning.pitch_of(note) for note in notes]


def measure(folder: Path, key: Path, details: bool = False) -> dict:
    """Measure the reader on a folder of tabs."""
    tabs, problems = read_tab_folder(folder)
    by_file: dict[str, list[Tab]] = {}
    for tab in tabs:
        by_file.setdefault(tab.source, []).append(tab)
    total: Counter[str] = Counter()
    with key.open(encoding="utf-8") as lines:
        pieces = [json.loads(line) for line in lines]
    for piece in pieces:
        expected, expected_columns = key_columns(piece)
        found, found_columns = tab_columns(by_file.get(piece["file"], []))
        common = notes_in_common(expected, found) if found else 0
        total.update(pieces=1, key_notes=len(expected), read_notes=len(found), common=common)
        midi = folder / Path(piece["file"]).with_suffix(".mid").name
        confirmed = (0, 0)
        if midi.is_file():
            moments = midi_moments(midi)
            confirmed = (
                confirmed_columns(expected_columns, moments),
                confirmed_columns(found_columns, moments),
            )
            total.update(
                midi_pieces=1,
                key_columns=len(expected_columns),
                read_columns=len(found_columns),
                key_confirmed=confirmed[0],
                read_confirmed=confirmed[1],
            )
        if details and (common < len(expected) or common < len(found) or len(set(confirmed)) > 1):
            print(
                f"  {piece['file']}: key {len(expected)}, read {len(found)}, common {common}; "
                f"columns {len(expected_columns)}, {len(found_columns)}, confirmed {confirmed}"
            )
    return {
        "folder": folder.name,
        **total,
        "problems": len(problems),
        "recall": round(total["common"] / total["key_notes"], 4),
        "extra": round(1 - total["common"] / max(1, total["read_notes"]), 4),
        "key_confirmed_share": round(total["key_confirmed"] / max(1, total["key_columns"]), 4),
        "read_confirmed_share": round(total["read_confirmed"] / max(1, total["read_columns"]), 4),
    }


def main() -> None:
    """Measure every folder that the command line names, and print one JSON object for each."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description="Measure the reader of ASCII tablature.")
    parser.add_argument("folders", nargs="+", type=Path, help="folders of tabs and MIDI files")
    parser.add_argument("--key", nargs="+", type=Path, required=True, help="a key for each folder")
    parser.add_argument("--details", action="store_true", help="name the pieces that differ")
    arguments = parser.parse_args()
    if len(arguments.folders) != len(arguments.key):
        parser.error(f"{len(arguments.folders)} folders need as many keys.")
    for path in (*arguments.folders, *arguments.key):
        if not path.exists():
            parser.error(f"There is no {path}.")
    for folder, key in zip(arguments.folders, arguments.key, strict=True):
        print(json.dumps(measure(folder, key, arguments.details)), flush=True)


if __name__ == "__main__":
    main()
