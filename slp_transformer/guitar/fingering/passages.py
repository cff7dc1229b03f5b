"""Passages: the notes to be fingered, together with the fingering that people wrote.

A passage is a piece as a row of moments, each the pitches that sound together, with times where
they are known. Whoever fingers it looks at pitches and times alone; `grips` is what to learn from,
or to compare with.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fretboard import MAX_FRET, Note, Tuning
from slp_transformer.guitar.tab import Tab


@dataclass(frozen=True)
class Passage:
    """A piece to be fingered.

    Attributes:
        tuning: the guitar.
        moments: the pitches of each moment, lowest first.
        grips: the fingering that people wrote, in the same order; empty if none is known.
        onsets: when each moment begins, in any unit; None where that is not known.
        durations: how long each note of a moment sounds, in the same unit; None where not known.
        name: what the piece is called.
    """

    tuning: Tuning
    moments: tuple[tuple[int, ...], ...]
    grips: tuple[Grip, ...] = ()
    onsets: tuple[float | None, ...] = ()
    durations: tuple[tuple[float, ...] | None, ...] = ()
    name: str = ""

    def relative_gaps(self) -> list[float | None]:
        """Time from the moment before, in units of the piece's median; None where not known."""
        onsets = self.onsets or (None,) * len(self.moments)
        pairs = zip(onsets, onsets[1:], strict=False)
        steps = [None if a is None or b is None else b - a for a, b in pairs]
        known = [step for step in steps if step is not None and step > 0]
        unit = median(known) if known else 1.0
        scaled = [None if step is None or step < 0 else step / unit for step in steps]
        return [None, *scaled][: len(self.moments)]


def passage_from_grips(
    tuning: Tuning,
    events: Sequence[Sequence[Note]],
    onsets: Sequence[float | None] = (),
    durations_by_moment: Sequence[Sequence[float] | None] = (),
    name: str = "",
) -> Passage:
    """A passage from written tab; notes that no neck has, or twice on a string, are left out."""
    moments, grips, when, long = [], [], [], []
    for i, event in enumerate(events):
        durations = (
            durations_by_moment[i]
            if durations_by_moment and durations_by_moment[i] is not None
            else [None] * len(event)
        )
        kept = {}
        for note, duration in zip(event, durations, strict=True):
            if note.fret + tuning.capo <= MAX_FRET:
                kept.setdefault(note.string, (note, duration))
        if not kept:
            continue
        # By pitch, so that the order says nothing of the strings; of equal ones, low string first.
        row = sorted(kept.values(), key=lambda each: (tuning.pitch_of(each[0]), -each[0].string))
        grips.append(tuple(note for note, _ in row))
        moments.append(tuple(tuning.pitch_of(note) for note, _ in row))
        when.append(onsets[i] if onsets else None)
        known = all(duration is not None for _, duration in row)
        long.append(tuple(duration for _, duration in row) if known else None)
    return Passage(tuning, tuple(moments), tuple(grips), tuple(when), tuple(long), name)


def passage_from_tab(tab: Tab) -> Passage:
    """A tab as a passage, with its steps as times."""
    events, onsets, start = [], [], 0
    for bar in tab.bars:
        events += [event.notes for event in bar.events]
        onsets += [float(start + event.step) for event in bar.events]
        start += bar.steps
    return passage_from_grips(tab.tuning, events, onsets, name=tab.title or tab.source)


def read_passages_jsonl(path: str | Path) -> list[Passage]:
    """Passages from JSON Lines, as `benchmarks/pitch_to_tab.py` describes them.

    Raises:
        ValueError: if there is no such file, or a line is not of that form.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    passages = []
    for number, line in enumerate(lines, start=1):
        try:
            passages.append(_passage_from_json(json.loads(line)))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"{path}, line {number}, is no piece with open_midi and events: {error!r}."
            ) from None
    return passages


def _passage_from_json(piece: dict) -> Passage:
    """One piece of such a file."""
    tuning = Tuning(tuple(reversed(piece["open_midi"])))
    strings = len(tuning.open_pitches)
    events, onsets, lengths = [], [], []
    for _, notes, *times in piece["events"]:
        events.append([Note(strings - string, fret) for string, fret in notes])
        onsets.append(times[0] if times else None)
        lengths.append(times[1] if len(times) > 1 else None)
    return passage_from_grips(tuning, events, onsets, lengths, piece.get("file", ""))
