"""Scores and tabs as pieces to be fingered, and fingerings as tabs again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.playability import PinError, Weigh, Wishes, choose, fit
from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.score import Score, bars_of_score, tab_of
from slp_transformer.guitar.tab import Bar, Event, Tab

Places = Sequence[Sequence[Note | None]]


@dataclass(frozen=True)
class Piece:
    """Something to be fingered.

    Attributes:
        moments: the pitches of each moment.
        onsets: when each begins, in steps.
        lengths: how long each note sounds; None where that is not said.
        bars: the bar of each moment, from 1.
        told: what was left out when it was read.
        tab: makes a tab from a place for each note (None leaves it out) and a guitar.
    """

    moments: tuple[tuple[int, ...], ...]
    onsets: tuple[float, ...]
    lengths: tuple[tuple[float, ...] | None, ...]
    bars: tuple[int, ...]
    told: tuple[tuple[str, str], ...]
    tab: Callable[[Places, Tuning], Tab]

    def where(self, moment: int) -> str:
        """A moment in words."""
        bar = self.bars[moment]
        return f"bar {bar}, moment {moment - self.bars.index(bar) + 1}"

    def number_of(self, bar: int, moment: int) -> int:
        """The number of a bar's moment, both counted from 1.

        Raises:
            ValueError: if there is none.
        """
        count = self.bars.count(bar)
        if not 1 <= moment <= count:
            raise ValueError(f"Bar {bar} has {count} moments, so there is no {bar}:{moment}.")
        return self.bars.index(bar) + moment - 1


@dataclass(frozen=True)
class Taken:
    """What came of a piece.

    Attributes:
        tabs: its tabs, each with the fingering that it is made of; best first.
        told: what was changed: where, and what.
    """

    tabs: list[tuple[Tab, list[Grip]]]
    told: list[tuple[str, str]]


def of_score(score: Score) -> Piece:
    """A score as a piece."""
    moments = score.moments()
    starts = list(accumulate((bar.steps for bar in bars_of_score(score)), initial=0))
    onsets = [score.notes[same[0]].onset for same in moments]
    bars, number = [], 1
    for onset in onsets:
        while number < len(starts) - 1 and onset >= starts[number]:
            number += 1
        bars.append(number)

    def tab(places: Places, tuning: Tuning) -> Tab:
        row: list[Note | None] = [None] * len(score.notes)
        for same, chosen in zip(moments, places, strict=True):
            for i, place in zip(same, chosen, strict=True):
                row[i] = place
        return tab_of(score, row, tuning)

    return Piece(
        tuple(tuple(score.notes[i].pitch for i in same) for same in moments),
        tuple(map(float, onsets)),
        tuple(tuple(float(score.notes[i].duration) for i in same) for same in moments),
        tuple(bars),
        (),
        tab,
    )


def of_tab(written: Tab) -> Piece:
    """A tab as a piece: its pitches, to be fingered anew, perhaps on another guitar."""
    moments, onsets, lengths, bars, told = [], [], [], [], []
    kept: list[list[tuple[Event, list]]] = []
    start = 0
    for number, bar in enumerate(written.bars, start=1):
        own = []
        for event in bar.events:
            sounding = set(event.sounding())
            played = [each for each in event.played() if each.note in sounding]
            if len(played) < len(event.notes):
                told.append((f"bar {number}", "a note without a pitch is left out"))
            if any(each.techniques for each in played):
                told.append((f"bar {number}", "how a note is played is left out"))
            if not played:
                continue
            own.append((event, played))
            moments.append(tuple(written.tuning.pitch(each.note) for each in played))
            onsets.append(float(start + event.step))
            durations = tuple(float(each.duration) for each in played)
            lengths.append(durations if all(durations) else None)
            bars.append(number)
        kept.append(own)
        start += bar.steps

    def tab(places: Places, tuning: Tuning) -> Tab:
        rows = iter(places)
        made: list[Bar] = []
        for bar, own in zip(written.bars, kept, strict=True):
            events = []
            for event, played in own:
                pairs = zip(played, next(rows), strict=True)
                anew = [p._replace(note=place, techniques=()) for p, place in pairs if place]
                if anew:
                    events.append(Event.of(event.step, anew))
            made.append(replace(bar, events=tuple(events)))
        return replace(written, tuning=tuning, bars=tuple(made))

    return Piece(tuple(moments), tuple(onsets), tuple(lengths), tuple(bars), tuple(told), tab)


def take(piece: Piece, wishes: Wishes, alternatives: int = 1, weigh: Weigh | None = None) -> Taken:
    """Finger a piece as a guitarist wishes.

    Args:
        piece: the piece.
        wishes: what is asked for.
        alternatives: how many fingerings.
        weigh: how a trained model likes grips; None for the hand's costs alone.

    Raises:
        ValueError: if there is nothing to play, something cannot be played and is to be refused, or
            a pin is in the way; it says where.
    """
    there, notes, told, refused = [], [], list(piece.told), []
    for n, pitches in enumerate(piece.moments):
        left, changes, reason = fit(pitches, wishes)
        told += [(piece.where(n), what) for what in changes]
        if reason:
            refused.append((piece.where(n), reason))
        elif left:
            there.append(n)
            notes.append(left)
    if refused:
        raise ValueError(out_of_reach(refused))
    if not there:
        raise ValueError("There is nothing to play: no note is left.")
    lengths = [piece.lengths[n] for n in there]
    passage = Passage(
        wishes.tuning,
        tuple(map(tuple, notes)),
        onsets=tuple(piece.onsets[n] for n in there),
        lengths=tuple(
            None if all_lengths is None else tuple(all_lengths[place] for place in own.values())
            for all_lengths, own in zip(lengths, notes, strict=True)
        ),
    )
    pins = {}
    for n, pinned in wishes.pins.items():
        if n not in there:
            raise ValueError(f"{piece.where(n)}: nothing that is pinned there is left.")
        pins[there.index(n)] = pinned
    try:
        paths = choose(passage, replace(wishes, pins=pins), alternatives, weigh)
    except PinError as error:
        raise ValueError(f"{piece.where(there[error.moment])}: {error}.") from None
    tabs = []
    for path in paths:
        rows = [[None] * len(pitches) for pitches in piece.moments]
        for n, own, grip in zip(there, notes, path, strict=True):
            for source, place in zip(own.values(), grip, strict=True):
                rows[n][source] = place
        tabs.append((piece.tab(rows, wishes.tuning), path))
    return Taken(tabs, told)


def out_of_reach(refused: Sequence[tuple[str, str]]) -> str:
    """A sentence about moments that this guitar cannot play, naming the first three."""
    first = "; ".join(f"{where}: {why}" for where, why in refused[:3])
    many = f"{len(refused)} moments are" if len(refused) > 1 else "One moment is"
    more = ", and so on" if len(refused) > 3 else ""
    return f"{many} out of this guitar's reach: {first}{more}."
