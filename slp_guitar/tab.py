"""A tab: bars of events, each event the notes that begin together at one moment.

Time is whole numbers. An event is so many steps after the bar line, and a bar is so many steps
long. `Tab.steps_per_quarter` says how many steps a quarter note has; where it is None, steps are
only the columns of a text, in which people space notes as they please. Columns become time by an
explicit step alone, `slp_guitar.timing.columns_to_steps`. Seconds are not kept here: a
loader that knows them keeps them with its tabs.

All details of notes but string and fret are optional, and so are time signature and tempo. Ties are
notation: a note that is held over a bar line is one note with a duration that crosses it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice, starmap
from operator import attrgetter
from typing import NamedTuple

from slp_guitar.fretboard import STANDARD, Note, Tuning
from slp_guitar.playing_signs import PLAYING_SIGNS
from slp_guitar.techniques import TECHNIQUES

TechniqueKind = str
"""A name in `slp_guitar.techniques.TECHNIQUES`."""


class Technique(NamedTuple):
    """The way a note is played.

    Attributes:
        kind: "hammer", "pull" and "slide" lead from this note to the next one on its string;
            "bend" raises it after it is struck; a "dead" note has no pitch, whatever its fret.
        bend_quarter_tones: how far a bend goes, in quarter tones (4 is a whole step); 0 for all
            else.
    """

    kind: TechniqueKind
    bend_quarter_tones: int = 0


KEYS: dict[str, tuple[int, bool]] = {
    "FCGDAEB"[(fifths + 1 + 3 * minor) % 7]
    + ("#" if fifths > 5 - 3 * minor else "b" if fifths < -1 - 3 * minor else "")
    + "m" * minor: (fifths, minor)
    for minor in (False, True)
    for fifths in range(-7, 8)
}
"""How many sharps a key has, fewer than none for flats, and whether it is minor."""


def is_meter(beats: int, unit: int) -> bool:
    """Return whether there is a time signature of so many beats, each 1/unit of a whole note."""
    return beats >= 1 and unit in (1, 2, 4, 8, 16, 32)


def find_key(fifths: int, is_minor: bool = False) -> str | None:
    """Return the name of a key; None for more than seven signs."""
    return next((name for name, own in KEYS.items() if own == (fifths, is_minor)), None)


class TabNote(NamedTuple):
    """One note of an event, with all of its details.

    Attributes:
        note: string and fret.
        duration_steps: steps that it lasts, past the end of the bar too; 0 if unknown.
        techniques: how it is played, in the order of `TECHNIQUES`.
        voice: 1 or 2, where a piece has parts that are written apart.
    """

    note: Note
    duration_steps: int = 0
    techniques: tuple[Technique, ...] = ()
    voice: int = 1


@dataclass(frozen=True)
class Event:
    """Notes that begin together.

    The last three are empty, or have as many entries as there are notes.

    Attributes:
        step: steps from the bar line, 0 for the first moment of the bar.
        notes: the notes, lowest string first (string 6 before string 1).
        durations: as `TabNote.duration_steps`, for each note.
        techniques: as `TabNote.techniques`.
        voices: as `TabNote.voice`.
    """

    step: int
    notes: tuple[Note, ...]
    durations: tuple[int, ...] = ()
    techniques: tuple[tuple[Technique, ...], ...] = ()
    voices: tuple[int, ...] = ()

    @staticmethod
    def from_notes(step: int, tab_notes: Iterable[TabNote]) -> "Event":
        """The event of some notes in any order; details that none of them has are left empty."""
        ordered = sorted(tab_notes, key=attrgetter("note.string"), reverse=True)
        notes, durations, techniques, voices = zip(*ordered, strict=True) if ordered else [()] * 4
        return Event(
            step,
            notes,
            durations if any(durations) else (),
            techniques if any(techniques) else (),
            voices if set(voices) - {1} else (),
        )

    def tab_notes(self) -> tuple[TabNote, ...]:
        """Return its notes, each with all of its details."""
        count = len(self.notes)
        columns = (
            self.notes,
            self.durations or (0,) * count,
            self.techniques or ((),) * count,
            self.voices or (1,) * count,
        )
        return tuple(starmap(TabNote, zip(*columns, strict=True)))

    def sounding_notes(self) -> tuple[Note, ...]:
        """Its notes without the dead ones, which have no pitch."""
        if not self.techniques:
            return self.notes
        return tuple(
            note
            for note, techniques in zip(self.notes, self.techniques, strict=True)
            if all(technique.kind != "dead" for technique in techniques)
        )


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        steps: how many steps the bar is long.
        events: its events, in order of `step`.
        time_signature: beats and what kind of note a beat is, (6, 8) for six eighths, from this bar
            on; None where it does not change, or is unknown.
        tempo_bpm: quarter notes a minute from this bar on; None as with `time_signature`.
        starts_repeat: whether a repeat begins with this bar.
        num_plays: how often the repeat that ends with this bar is played in all; 0 if none ends.
        endings: the times, from 1, that this bar is played when its repeat is; empty for always.
        signs: the names of what stands at this bar in
            `slp_guitar.playing_order.PLAYING_SIGNS`, as D.C. al Fine.
        tempo_changes: tempos that begin inside the bar, each after the step at which it does.
        stated_onsets: in a tab whose steps are columns, where letters above the bar say its rhythm:
            in quarter notes from the bar line, when each event begins, and then how long the bar
            is. Empty where nothing says it.
        beat_onsets: likewise where beats are marked above or below it, in beats and by the columns.
        key: the key signature from this bar on, by the name of its key: D, or Bm; None as with
            `time_signature`. No key is the same as C.
    """

    steps: int
    events: tuple[Event, ...]
    time_signature: tuple[int, int] | None = None
    tempo_bpm: int | None = None
    starts_repeat: bool = False
    num_plays: int = 0
    endings: tuple[int, ...] = ()
    signs: tuple[str, ...] = ()
    tempo_changes: tuple[tuple[int, int], ...] = ()
    stated_onsets: tuple[Fraction, ...] = ()
    beat_onsets: tuple[Fraction, ...] = ()
    key: str | None = None


@dataclass(frozen=True)
class Tab:
    """A piece of guitar music.

    Attributes:
        title: what the piece is called; may be empty.
        tuning: the guitar it is written for; 4 to 8 strings.
        bars: its bars, in order, with repeats as they are written.
        source: where it was read from (a file name), or empty.
        steps_per_quarter: how many steps a quarter note has; None where steps are columns of a text
            and not time.
        style: what kind of music it is; may be empty.
        track: what this guitar is called, where several play together; may be empty.
        stated_time_signature: of a tab whose steps are columns, what the text above it states;
            `slp_guitar.text_time` makes time of it. None for none.
        stated_tempo_bpm: likewise.
    """

    title: str = ""
    tuning: Tuning = STANDARD
    bars: tuple[Bar, ...] = field(default_factory=tuple)
    source: str = ""
    steps_per_quarter: int | None = None
    style: str = ""
    track: str = ""
    stated_time_signature: tuple[int, int] | None = None
    stated_tempo_bpm: int | None = None

    @property
    def is_fingered(self) -> bool:
        """Whether its strings are a guitar's; else all are tuned to 0, and frets are pitches."""
        return any(self.tuning.open_pitches)

    def iter_events(self) -> Iterator[Event]:
        """Every event of the piece, in order."""
        return (event for _, _, event in self.iter_placed_events())

    def iter_placed_events(self) -> Iterator[tuple[int, Bar, Event]]:
        """Every event in order, after its bar and the step of the piece at which that begins."""
        start = 0
        for bar in self.bars:
            yield from ((start, bar, event) for event in bar.events)
            start += bar.steps

    def with_events(self, events: Iterable[Event]) -> "Tab":
        """The same bars with other events, as many in each as it has now."""
        rest = iter(events)
        own = (tuple(islice(rest, len(bar.events))) for bar in self.bars)
        bars = zip(self.bars, own, strict=True)
        return replace(
            self,
            bars=tuple(
                bar if each == bar.events else replace(bar, events=each) for bar, each in bars
            ),
        )


@dataclass(frozen=True)
class ReadProblem:
    """Something in a file that could not be read.

    Attributes:
        source: the file.
        line_number: the line, from 1; 0 for a file that has no lines.
        message: what is wrong with it.
    """

    source: str
    line_number: int
    message: str

    def __str__(self) -> str:
        place = f":{self.line_number}" if self.line_number else ""
        return f"{self.source}{place}: {self.message}"


MIN_STRINGS, MAX_STRINGS = 4, 8
MAX_STEPS_PER_QUARTER = 96
"""Most steps that a quarter note may have."""


def check_tab(tab: Tab, needs_strings: bool = True) -> None:
    """Refuse a tab that cannot be written down, in a sentence that names the bar.

    Args:
        tab: the tab.
        needs_strings: whether notes without strings are refused.

    Raises:
        ValueError: for notes without strings if they are needed, other than 4 to 8 strings, a unit
            of time outside 1 to 96 steps a quarter, a bar without length, events out of order or
            outside their bar, two notes on one string, strings that the tuning lacks, negative
            frets, details that do not fit the notes.
    """
    strings = len(tab.tuning.open_pitches)
    if needs_strings and not tab.is_fingered:
        raise ValueError("These notes have pitches but no strings yet; `tab` finds them.")
    if tab.is_fingered and not MIN_STRINGS <= strings <= MAX_STRINGS:
        raise ValueError(f"A tab has {MIN_STRINGS} to {MAX_STRINGS} strings, not {strings}.")
    unit = tab.steps_per_quarter
    if unit is not None and not 1 <= unit <= MAX_STEPS_PER_QUARTER:
        raise ValueError(f"A quarter note has 1 to {MAX_STEPS_PER_QUARTER} steps, not {unit}.")
    for number, bar in enumerate(tab.bars, start=1):
        _check_bar(bar, number)
        for event, where in iter_checked_events(bar, number):
            _check_event(event, where, strings)


def _check_bar(bar: Bar, bar_number: int) -> None:
    """Refuse a time signature, key, sign or tempo that cannot be written down."""
    if bar.time_signature is not None and not is_meter(*bar.time_signature):
        raise ValueError(
            "Bar {}: {}/{} is not a time signature; write so many halves, quarters, eighths, ..., "
            "as in 6/8.".format(bar_number, *bar.time_signature)
        )
    if unknown := [sign for sign in bar.signs if sign not in PLAYING_SIGNS]:
        raise ValueError(
            f"Bar {bar_number}: {unknown[0]!r} is not a sign; choose from "
            f"{', '.join(PLAYING_SIGNS)}."
        )
    if bar.key is not None and bar.key not in KEYS:
        raise ValueError(f"Bar {bar_number}: {bar.key!r} is no key; a key is D, or Bm.")
    tempos = [bpm for _, bpm in bar.tempo_changes]
    if bar.tempo_bpm is not None:
        tempos.append(bar.tempo_bpm)
    if wrong := [bpm for bpm in tempos if not 1 <= bpm <= 1000]:
        raise ValueError(
            f"Bar {bar_number}: a tempo is 1 to 1000 quarter notes a minute, not {wrong[0]}."
        )
    places = [step for step, _ in bar.tempo_changes]
    if places != sorted({step for step in places if 0 < step < bar.steps}):
        raise ValueError(
            f"Bar {bar_number}: tempos change at the steps {places}; they must be in order and "
            f"inside the {bar.steps} steps, behind the first."
        )


def iter_checked_events(bar: Bar, bar_number: int) -> Iterator[tuple[Event, str]]:
    """The events of a bar, each with the words for where it is.

    Raises:
        ValueError: naming the place, if the bar has no steps or an event is out of order.
    """
    if bar.steps < 1:
        raise ValueError(f"Bar {bar_number} has {bar.steps} steps; a bar has at least 1.")
    before = -1
    for event in bar.events:
        where = f"Bar {bar_number}, step {event.step}"
        if not before < event.step < bar.steps:
            raise ValueError(f"{where}: events must be in order and inside the {bar.steps} steps.")
        before = event.step
        yield event, where


def _check_event(event: Event, location: str, num_strings: int) -> None:
    """Refuse an event that cannot be written down."""
    used = [note.string for note in event.notes]
    if not used or len(set(used)) < len(used) or not all(1 <= s <= num_strings for s in used):
        raise ValueError(
            f"{location}: strings {used} cannot be written: an event needs notes on different "
            f"strings from 1 to {num_strings}."
        )
    if min(note.fret for note in event.notes) < 0:
        raise ValueError(f"{location}: a fret is negative; frets start at 0, the open string.")
    for details in (event.durations, event.techniques, event.voices):
        if details and len(details) != len(used):
            raise ValueError(f"{location}: {len(details)} details for {len(used)} notes.")
    if any(duration < 0 for duration in event.durations):
        raise ValueError(f"{location}: a note cannot last less than no time.")
    for technique in (each for several in event.techniques for each in several):
        if technique.kind not in TECHNIQUES:
            raise ValueError(
                f"{location}: {technique.kind!r} is not a technique; choose from "
                f"{', '.join(TECHNIQUES)}."
            )
