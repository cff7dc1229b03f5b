"""Scores and tabs as pieces to be fingered, and fingerings as tabs again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.playability import (
    FingeringOptions,
    GripScorer,
    PinError,
    find_fingerings,
    fit_moment,
)
from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.score import Score, make_empty_bars, tab_from_score
from slp_transformer.guitar.tab import Bar, Event, Tab

MomentNotes = Sequence[Sequence[Note | None]]


@dataclass(frozen=True)
class PlayablePiece:
    """Something to be fingered.

    Attributes:
        moments: the pitches of each moment.
        onsets: when each begins, in steps.
        durations: how long each note sounds; None where that is not known.
        bar_numbers: the bar of each moment, from 1.
        changes: what was left out when it was read.
        build_tab: makes a tab from a place for each note (None leaves it out) and a guitar.
    """

    moments: tuple[tuple[int, ...], ...]
    onsets: tuple[float, ...]
    durations: tuple[tuple[float, ...] | None, ...]
    bar_numbers: tuple[int, ...]
    changes: tuple[tuple[str, str], ...]
    build_tab: Callable[[MomentNotes, Tuning], Tab]

    def describe_moment(self, moment: int) -> str:
        """A moment in words."""
        bar = self.bar_numbers[moment]
        return f"bar {bar}, moment {moment - self.bar_numbers.index(bar) + 1}"

    def moment_index(self, bar_number: int, moment_in_bar: int) -> int:
        """The number of a bar's moment, both counted from 1.

        Raises:
            ValueError: if there is none.
        """
        count = self.bar_numbers.count(bar_number)
        if not 1 <= moment_in_bar <= count:
            raise ValueError(
                f"Bar {bar_number} has {count} moments, so there is no "
                f"{bar_number}:{moment_in_bar}."
            )
        return self.bar_numbers.index(bar_number) + moment_in_bar - 1


@dataclass(frozen=True)
class Fingering:
    """The fingerings of a piece.

    Attributes:
        tabs_and_grips: its tabs, each with the fingering that it is made of; best first.
        changes: what was changed: where, and what.
    """

    tabs_and_grips: list[tuple[Tab, list[Grip]]]
    changes: list[tuple[str, str]]


def piece_from_score(score: Score) -> PlayablePiece:
    """A score as a piece."""
    moments = score.group_by_onset()
    starts = list(accumulate((bar.steps for bar in make_empty_bars(score)), initial=0))
    onsets = [score.notes[same[0]].onset_step for same in moments]
    bars, number = [], 1
    for onset in onsets:
        while number < len(starts) - 1 and onset >= starts[number]:
            number += 1
        bars.append(number)

    def tab(places: MomentNotes, tuning: Tuning) -> Tab:
        row: list[Note | None] = [None] * len(score.notes)
        for same, chosen in zip(moments, places, strict=True):
            for i, place in zip(same, chosen, strict=True):
                row[i] = place
        return tab_from_score(score, row, tuning)

    return PlayablePiece(
        tuple(tuple(score.notes[i].pitch for i in same) for same in moments),
        tuple(map(float, onsets)),
        tuple(tuple(float(score.notes[i].duration_steps) for i in same) for same in moments),
        tuple(bars),
        (),
        tab,
    )


def piece_from_tab(source_tab: Tab) -> PlayablePiece:
    """A tab as a piece: its pitches, to be fingered anew, perhaps on another guitar."""
    moments, onsets, lengths, bars, changes = [], [], [], [], []
    kept: list[list[tuple[Event, list]]] = []
    start = 0
    for number, bar in enumerate(source_tab.bars, start=1):
        own = []
        for event in bar.events:
            sounding = set(event.sounding_notes())
            played = [each for each in event.tab_notes() if each.note in sounding]
            if len(played) < len(event.notes):
                changes.append((f"bar {number}", "a note without a pitch is left out"))
            if any(each.techniques for each in played):
                changes.append((f"bar {number}", "how a note is played is left out"))
            if not played:
                continue
            own.append((event, played))
            moments.append(tuple(source_tab.tuning.pitch_of(each.note) for each in played))
            onsets.append(float(start + event.step))
            durations = tuple(float(each.duration_steps) for each in played)
            lengths.append(durations if all(durations) else None)
            bars.append(number)
        kept.append(own)
        start += bar.steps

    def tab(places: MomentNotes, tuning: Tuning) -> Tab:
        rows = iter(places)
        made: list[Bar] = []
        for bar, own in zip(source_tab.bars, kept, strict=True):
            events = []
            for event, played in own:
                pairs = zip(played, next(rows), strict=True)
                anew = [p._replace(note=place, techniques=()) for p, place in pairs if place]
                if anew:
                    events.append(Event.from_notes(event.step, anew))
            made.append(replace(bar, events=tuple(events)))
        return replace(source_tab, tuning=tuning, bars=tuple(made))

    return PlayablePiece(
        tuple(moments), tuple(onsets), tuple(lengths), tuple(bars), tuple(changes), tab
    )


def finger_piece(
    piece: PlayablePiece,
    options: FingeringOptions,
    num_alternatives: int = 1,
    score_grips: GripScorer | None = None,
) -> Fingering:
    """Finger a piece.

    Args:
        piece: the piece.
        options: the guitar and the preferences.
        num_alternatives: how many fingerings.
        score_grips: log-probabilities of grips under a trained model; None for `HandCosts` alone.

    Raises:
        ValueError: if there is nothing to play, something cannot be played and is to be refused, or
            a pin is in the way; it says where.
    """
    there, notes, changes, refused = [], [], list(piece.changes), []
    for n, pitches in enumerate(piece.moments):
        left, changed, reason = fit_moment(pitches, options)
        changes += [(piece.describe_moment(n), what) for what in changed]
        if reason:
            refused.append((piece.describe_moment(n), reason))
        elif left:
            there.append(n)
            notes.append(left)
    if refused:
        raise ValueError(format_unplayable_message(refused))
    if not there:
        raise ValueError("There is nothing to play: no note is left.")
    lengths = [piece.durations[n] for n in there]
    passage = Passage(
        options.tuning,
        tuple(map(tuple, notes)),
        onsets=tuple(piece.onsets[n] for n in there),
        durations=tuple(
            None if all_lengths is None else tuple(all_lengths[place] for place in own.values())
            for all_lengths, own in zip(lengths, notes, strict=True)
        ),
    )
    pins = {}
    for n, pinned in options.pinned_notes.items():
        if n not in there:
            raise ValueError(f"{piece.describe_moment(n)}: nothing that is pinned there is left.")
        pins[there.index(n)] = pinned
    try:
        paths = find_fingerings(
            passage, replace(options, pinned_notes=pins), num_alternatives, score_grips
        )
    except PinError as error:
        raise ValueError(f"{piece.describe_moment(there[error.moment_index])}: {error}.") from None
    tabs = []
    for path in paths:
        rows = [[None] * len(pitches) for pitches in piece.moments]
        for n, own, grip in zip(there, notes, path, strict=True):
            for source, place in zip(own.values(), grip, strict=True):
                rows[n][source] = place
        tabs.append((piece.build_tab(rows, options.tuning), path))
    return Fingering(tabs, changes)


def format_unplayable_message(unplayable_moments: Sequence[tuple[str, str]]) -> str:
    """A sentence about moments that this guitar cannot play, naming the first three."""
    first = "; ".join(f"{where}: {why}" for where, why in unplayable_moments[:3])
    count = len(unplayable_moments)
    many = f"{count} moments are" if count > 1 else "One moment is"
    more = ", and so on" if len(unplayable_moments) > 3 else ""
    return f"{many} out of this guitar's reach: {first}{more}."
