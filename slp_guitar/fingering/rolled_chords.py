"""Chords that no hand can take, rolled: their parts one after the other, from the bass up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from slp_guitar.bar_lengths import NOTATED_STEPS_PER_QUARTER
from slp_guitar.fingering.grips import find_grips
from slp_guitar.fingering.playable_chords import FingeringOptions, nearest_octave_on_neck
from slp_guitar.fingering.playable_pieces import PlayableMoment, PlayablePiece
from slp_guitar.fretboard import format_pitch

MAX_COLUMN_SCALE = 8
"""Columns that one may become, where steps are columns of a text."""
PARTS_PER_QUARTER = 2
"""Parts of a rolled chord to a quarter note where there is time: the hand has to move."""


@dataclass(frozen=True)
class _Roll:
    """A chord to be rolled: its parts, lowest first, and the steps before something else begins."""

    parts: tuple[tuple[int, ...], ...]
    steps: int


def roll_chords(
    piece: PlayablePiece, options: FingeringOptions
) -> tuple[PlayablePiece, list[tuple[str, str]]]:
    """Play the chords of a piece that no hand can take in parts that one can, from the bass up.

    The parts come an eighth apart, or share the time before the next moment and the end of the bar;
    the piece gets finer steps where it needs them. A chord is left as it is where even then there
    is no time. Notes off the neck are moved by octaves first.

    Args:
        piece: the piece.
        options: the guitar.

    Returns:
        The piece, its moments counted anew in each bar; and what was changed: where, and what.
    """
    changes: list[tuple[str, str]] = []
    on_neck = []
    for moment in piece.moments:
        moved = [nearest_octave_on_neck(pitch, options) for pitch in moment.pitches]
        changes += (
            (piece.describe_place(moment), f"{format_pitch(a)} is moved to {format_pitch(b)}")
            for a, b in zip(moment.pitches, moved, strict=True)
            if a != b
        )
        on_neck.append(moment._replace(pitches=tuple(moved)))
    piece = replace(piece, moments=on_neck)
    rolls = list(_find_rolls(piece, options))
    if not any(rolls):
        return piece, changes
    unit = piece.tab.steps_per_quarter
    scale = _choose_scale([roll for roll in rolls if roll], unit)
    finer = [replace(bar, steps=bar.steps * scale, events=()) for bar in piece.tab.bars]
    new_unit = unit and unit * scale
    moments: list[PlayableMoment] = []
    for moment, roll in zip(piece.moments, rolls, strict=True):
        notes = tuple(
            each._replace(duration_steps=each.duration_steps * scale) for each in moment.notes
        )
        whole = moment._replace(step=moment.step * scale, notes=notes)
        if roll is None or roll.steps * scale < len(roll.parts):
            moments.append(whole)
            continue
        time = roll.steps * scale
        eighth = (new_unit or PARTS_PER_QUARTER) // PARTS_PER_QUARTER
        apart = max(1, min(eighth, time // len(roll.parts)))
        moments += _play_parts(whole, roll.parts, time, apart)
        parts = (" ".join(map(format_pitch, part)) for part in roll.parts)
        changes.append((piece.describe_place(moment), f"is rolled: {', then '.join(parts)}"))
    tab = replace(piece.tab, bars=tuple(finer), steps_per_quarter=new_unit)
    return replace(piece, tab=tab, moments=_number_anew(moments)), changes


def _find_rolls(piece: PlayablePiece, options: FingeringOptions) -> Iterator[_Roll | None]:
    """Yield for each moment how it is to be rolled; None for one that can be played, or cannot."""
    moments = piece.moments
    for moment, after in zip(moments, [*moments[1:], None], strict=True):
        parts = _split_into_playable_parts(sorted(set(moment.pitches)), options)
        is_in_bar = after is not None and after.bar_number == moment.bar_number
        end = after.step if after and is_in_bar else piece.tab.bars[moment.bar_number - 1].steps
        yield _Roll(parts, end - moment.step) if len(parts) > 1 else None


def _split_into_playable_parts(
    pitches: Sequence[int], options: FingeringOptions
) -> tuple[tuple[int, ...], ...]:
    """Return the fewest parts of a chord, lowest first, that a hand can take."""
    parts: list[tuple[int, ...]] = []
    for pitch in pitches:
        longer = (*parts.pop(), pitch) if parts else (pitch,)
        is_playable = find_grips(longer, options.tuning, options.max_fret, options.max_fret)
        parts += [longer] if is_playable else [longer[:-1], (pitch,)]
    return tuple(filter(None, parts))


def _choose_scale(rolls: Sequence[_Roll], unit: int | None) -> int:
    """Return how many steps each one becomes: the fewest that leave time for most of the rolls."""
    if unit is None:
        scales = list(range(1, MAX_COLUMN_SCALE + 1))
    else:
        most = max(NOTATED_STEPS_PER_QUARTER) // unit
        scales = [n for n in range(1, most + 1) if n * unit in NOTATED_STEPS_PER_QUARTER] or [1]

    def price(scale: int) -> tuple[int, bool, int]:
        late = sum(roll.steps * scale < len(roll.parts) for roll in rolls)
        return late, unit is not None and unit * scale < PARTS_PER_QUARTER, scale

    return min(scales, key=price)


def _play_parts(
    moment: PlayableMoment, parts: Sequence[tuple[int, ...]], time: int, apart: int
) -> Iterator[PlayableMoment]:
    """Yield the parts of a moment; all ring as long as it does, or until the next one."""
    for k, part in enumerate(parts):
        own = [place for place, pitch in enumerate(moment.pitches) if pitch in part]
        notes = tuple(moment.notes[place] for place in own)
        lengths = (max(1, (note.duration_steps or time) - k * apart) for note in notes)
        yield moment._replace(
            step=moment.step + k * apart,
            pitches=tuple(moment.pitches[place] for place in own),
            notes=tuple(
                note._replace(duration_steps=length)
                for note, length in zip(notes, lengths, strict=True)
            ),
        )


def _number_anew(moments: Sequence[PlayableMoment]) -> list[PlayableMoment]:
    """Return moments with their numbers in their bars."""
    numbered: list[PlayableMoment] = []
    for moment in moments:
        is_first = not numbered or numbered[-1].bar_number != moment.bar_number
        number = 1 if is_first else numbered[-1].number + 1
        numbered.append(moment._replace(number=number))
    return numbered
