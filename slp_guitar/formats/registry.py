"""The kinds of files that hold guitar music: one table, one way in and out, and what is lost."""

import contextlib
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import lcm
from pathlib import Path
from typing import Any

from slp_guitar.ascii.reader import read_tab_file
from slp_guitar.ascii.writer import format_tab
from slp_guitar.formats.alphatex import format_alphatex, read_alphatex_tabs
from slp_guitar.formats.gpif import read_gp_tabs
from slp_guitar.formats.guitar_pro import (
    MAX_GUITAR_PRO_STRINGS,
    format_guitar_pro,
    read_guitar_pro_tabs,
)
from slp_guitar.formats.midi import read_midi_tabs
from slp_guitar.formats.midi_writer import format_midi
from slp_guitar.formats.musicxml import read_musicxml_tabs
from slp_guitar.formats.musicxml_writer import format_musicxml
from slp_guitar.formats.notation import with_durations_filled
from slp_guitar.formats.unread import Omissions
from slp_guitar.fretboard import Note
from slp_guitar.playing_order import expand_repeats, find_unclear_repeats
from slp_guitar.tab import MAX_STRINGS, Bar, ReadProblem, Tab
from slp_guitar.techniques import TECHNIQUES, TechniqueSigns
from slp_guitar.timing import add_time_signatures, bar_start_steps
from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.choices import Choices
from slp_transformer._internal.config_checks import suggest_closest_match
from slp_transformer._internal.docs_sections import see
from slp_transformer.data.text_files import list_files


def _format_tabs_as_text(*tracks: Tab) -> str:
    """Return tabs as ASCII text, one below the other."""
    if len(tracks) > 1:
        tracks = tuple(
            replace(tab, track=tab.track or f"Guitar {number}")
            for number, tab in enumerate(tracks, start=1)
        )
    return "\n".join(format_tab(tab, with_time_lines=True) for tab in tracks)


DETAIL_WORDS = {
    **{"time_signature": "time signatures", "tempo_bpm": "tempos", "key": "keys"},
    **{"title": "the title", "track": "the tracks' names"},
    **{"stated_onsets": "rhythms by letters", "beat_onsets": "marks of beats"},
}
NOT_BY_ITSELF = {
    *("source", "tuning", "bars", "steps", "events", "steps_per_quarter", "tempo_changes"),
    *("starts_repeat", "num_plays", "endings", "signs"),
}
"""Fields of tabs and bars that are compared in another way, or are no part of the music."""
PLAYED_OUT = "the repeats, which are played out"
OTHER_WORDS = (
    *("the tuning", "the capo", "marks of repeats", PLAYED_OUT),
    *("the strings", "notes", "dead notes", "lengths of notes", "marks of a second voice"),
)


def list_detail_names() -> set[str]:
    """Return what may be found in a tab, and missed in a file."""
    names = {each.name for owner in (Tab, Bar) for each in fields(owner)} - NOT_BY_ITSELF
    own = {DETAIL_WORDS.get(name, f"the {name}") for name in names}
    return {*own, *OTHER_WORDS, *(signs.plural for signs in TECHNIQUES.values())}


@dataclass(frozen=True)
class TabFormat:
    """A kind of file that holds guitar music.

    Attributes:
        suffixes: how the names of such files end; the first is the usual one.
        reader: reads a file, with the flags of `reader_flags`; None for what is only written.
        writer: returns the content of a file; None for what is only read.
        cannot_hold: what of a tab is not in such a file, as `describe_losses` calls it; () says
            that nothing is lost. Files that are read back show it themselves; the others are
            judged by this.
        library: what must be installed, by the name that it is imported by; empty for nothing.
        is_timed: whether its steps must be time; else they may be columns.
        reader_flags: flags of commands that change how such files alone are read.
        writer_flags: flags of commands that change how such files alone are written.
        max_strings: how many a part has at most; 0 where it may have pitches without strings.
        page_reader: what reads it on the page "Finger a piece": midi, gp, xml or text; empty for
            nothing.
    """

    suffixes: tuple[str, ...]
    reader: Callable[..., tuple[list[Tab], list[ReadProblem]]] | None = None
    writer: Callable[..., str | bytes] | None = None
    cannot_hold: tuple[str, ...] = field(kw_only=True)  # no default: that would claim ()
    library: str = ""
    is_timed: bool = True
    reader_flags: tuple[str, ...] = ()
    writer_flags: tuple[str, ...] = ()
    max_strings: int = MAX_STRINGS
    page_reader: str = ""

    def __post_init__(self) -> None:
        """Refuse words that nothing in a tab is called by.

        Raises:
            ValueError: naming the first.
        """
        known = list_detail_names()
        if unknown := [what for what in self.cannot_hold if what not in known]:
            near = suggest_closest_match(unknown[0], known)
            raise ValueError(f'{self.suffixes[0]}: cannot_hold has "{unknown[0]}": {near}')

    @property
    def summary(self) -> str:
        """Return its suffixes, and what can be done with it."""
        verbs = [verb for verb, can in (("read", self.reader), ("written", self.writer)) if can]
        lost = f"; without {', '.join(self.cannot_hold)}" if self.cannot_hold else ""
        names = ", ".join(f"`{suffix}`" for suffix in self.suffixes)
        return f"{names}: {' and '.join(verbs)}{lost}"


def _techniques_without_sign(is_lost: Callable[[str, TechniqueSigns], bool]) -> tuple[str, ...]:
    """Return what the techniques are called that a kind of file has no sign for."""
    return tuple(
        dict.fromkeys(signs.plural for kind, signs in TECHNIQUES.items() if is_lost(kind, signs))
    )


def _guitar_pro_format(version: int) -> TabFormat:
    """Return the entry of a version that PyGuitarPro writes."""
    return TabFormat(
        (f".gp{version}",),
        read_guitar_pro_tabs,
        partial(format_guitar_pro, version=version),
        "guitarpro",
        cannot_hold=(
            *["keys"] * (version < 4),
            *["marks of a second voice"] * (version < 5),
            *_techniques_without_sign(lambda _, signs: signs.since_guitar_pro > version),
        ),
        max_strings=MAX_GUITAR_PRO_STRINGS,
        page_reader="gp",
    )


FORMATS: Choices[TabFormat] = Choices(
    "file format",
    {
        "ASCII tab": TabFormat(
            (".txt", ".tab"),
            partial(read_tab_file, names_unread=True),
            _format_tabs_as_text,
            cannot_hold=(
                "lengths of notes",
                "marks of a second voice",
                *_techniques_without_sign(
                    lambda kind, signs: not signs.ascii and kind not in ("bend", "dead")
                ),
            ),
            is_timed=False,
            page_reader="text",
        ),
        "Guitar Pro 3": _guitar_pro_format(3),
        "Guitar Pro 4": _guitar_pro_format(4),
        "Guitar Pro 5": _guitar_pro_format(5),
        "Guitar Pro 6 to 8": TabFormat(
            (".gp", ".gpx"), read_gp_tabs, cannot_hold=(), page_reader="gp"
        ),
        "MusicXML": TabFormat(
            (".musicxml", ".xml"),
            read_musicxml_tabs,
            format_musicxml,
            cannot_hold=(),
            max_strings=0,
            page_reader="xml",
        ),
        "packed MusicXML": TabFormat(
            (".mxl",), read_musicxml_tabs, cannot_hold=(), page_reader="xml"
        ),
        "MIDI": TabFormat(
            (".mid", ".midi"),
            read_midi_tabs,
            format_midi,
            "mido",
            cannot_hold=(
                PLAYED_OUT,
                "marks of a second voice",
                *_techniques_without_sign(lambda kind, signs: True),
            ),
            reader_flags=("tracks", "channels", "quantize"),
            writer_flags=("one_channel",),
            max_strings=0,
            page_reader="midi",
        ),
        "alphaTex": TabFormat(
            (".atex", ".alphatex"), read_alphatex_tabs, format_alphatex, cannot_hold=()
        ),
    },
)
"""The kinds of files by name."""


def find_format(path: str | Path) -> TabFormat | None:
    """Return the kind of a file by the end of its name; None for one that is not known."""
    suffix = Path(path).suffix.lower()
    return next((each for each in FORMATS.values() if suffix in each.suffixes), None)


def readable_suffixes() -> list[str]:
    """Return the suffixes of all files that can be read."""
    return [suffix for each in FORMATS.values() if each.reader for suffix in each.suffixes]


def list_readable_files(path: Path) -> list[Path]:
    """Return the files in a folder and those below it, or the one file, of kinds that are read."""
    paths = list_files(path) if path.is_dir() else [path]
    return [each for each in paths if (found := find_format(each)) and found.reader]


def writable_suffixes() -> list[str]:
    """Return the usual suffix of each kind of file that can be written."""
    return [each.suffixes[0] for each in FORMATS.values() if each.writer]


def check_flag_has_effect(flag: str, path: str | Path) -> None:
    """Refuse a flag that changes nothing about how a file is read or written.

    Raises:
        ValueError: naming the kinds of files that the flag is for.
    """
    every = FORMATS.items()
    kinds = {name: own for name, own in every if flag in (*own.reader_flags, *own.writer_flags)}
    if find_format(path) not in [*kinds.values()]:
        raise ValueError(
            f"--{flag.replace('_', '-')} has no effect here: {Path(path).name} is no "
            f"{' or '.join(kinds)} file."
        )


def check_writable_suffix(path: str | Path, one_channel: bool = False) -> None:
    """Refuse a name that is not of a kind of file that can be written, in one channel if asked for.

    Raises:
        ValueError: naming the suffixes that can.
    """
    found = find_format(path)
    if one_channel:
        check_flag_has_effect("one_channel", path)
    if Path(path).suffix.lower() == ".pdf":
        raise ValueError(
            f"{Path(path).name} is not written here: write a .musicxml, and print that by a "
            "program for scores, as by mscore song.musicxml -o song.pdf with MuseScore."
        )
    if found is None or found.writer is None:
        raise ValueError(
            f"{Path(path).name} does not say what to write: let it end in "
            f"{', '.join(sorted(writable_suffixes()))}."
        )


def write_tab(tab: Tab, path: str | Path, *others: Tab, one_channel: bool = False) -> None:
    """Write a tab to a file of the kind that its name says, whole or not at all.

    Args:
        tab: the tab, or the first track.
        path: the file.
        others: further tracks that play together with it.
        one_channel: as `slp_guitar.formats.midi.format_midi`; for MIDI files alone.

    Raises:
        ValueError: for a name that says none; or as what formats that kind of file, for instance if
            the tab's steps are columns, and not time, where the file needs time.
        OSError: if the file cannot be written.
    """
    check_writable_suffix(path, one_channel)
    options = {"one_channel": True} if one_channel else {}
    found = find_format(path)
    assert found and found.writer  # so it was checked
    write_file(Path(path), found.writer(tab, *others, **options))


def has_no_time(tab: Tab, path: str | Path) -> bool:
    """Return whether a file of that name needs time and the tab's steps are columns."""
    found = find_format(path)
    return tab.steps_per_quarter is None and found is not None and found.is_timed


def read_any_tab_file(path: str | Path, **flags: Any) -> tuple[list[Tab], list[ReadProblem]]:
    """Read the tabs in a file of the kind that its name says.

    Args:
        path: the file.
        flags: those of the kind's `TabFormat.reader_flags` that are given.

    Returns:
        The tabs, and what of the file is not in them.

    Raises:
        ValueError: if there is no such file, it is not what its name says, or of no kind that is
            read.
    """
    found = find_format(path)
    if found is not None and found.reader is not None:
        tabs, problems = found.reader(Path(path), **flags)
        unclear = find_unclear_repeats(tabs[0].bars).items() if tabs else ()
        name = Path(path).name
        problems += [ReadProblem(name, 0, f"{what} (bar {bar})") for what, bar in unclear]
        return tabs, problems
    if Path(path).suffix.lower() in AUDIO_SUFFIXES:
        raise ValueError(
            f"{path} is a recording, and recordings are not read: make a MIDI file of it, as by "
            f"basic-pitch, and read that.{see('recordings')}"
        )
    raise ValueError(
        f"{path} has an unsupported file type; supported are {', '.join(readable_suffixes())}."
    )


AUDIO_SUFFIXES = (".mp3", ".wav", ".flac", ".ogg", ".m4a", ".aac", ".aiff", ".opus", ".wma")
NOTES = ("notes", "dead notes")


def find_losses(tabs: Sequence[Tab], path: str | Path) -> list[str]:
    """Return what of some tabs is not in the file that they were written to.

    The file is read back wherever its kind is read: what stands in it counts, not what should. What
    was written to a pipe is gone, and what a umask hides cannot be read.

    Raises:
        ValueError: if it cannot be read.
    """
    found = find_format(path)
    is_silent = not any(event.sounding_notes() for tab in tabs for event in tab.iter_events())
    read, path = None, Path(path)
    is_hidden = path.exists() and not (path.is_file() and os.access(path, os.R_OK))
    if found is None or found.reader is not None and not is_hidden:
        try:
            read = read_any_tab_file(path)[0]
        except ValueError:
            if not is_silent:  # what has nothing to play is no piece to many readers
                raise
    if found is None or read is not None:
        return describe_losses(tabs, read or [])
    held = Omissions()
    for tab in tabs:
        whole = {"the strings": tab.is_fingered, PLAYED_OUT: any(map(_playing_marks, tab.bars))}
        held |= {name: (1, 0) for name in found.cannot_hold if whole.get(name)}
        for what, place, _ in _iter_details(tab, True, tab.steps_per_quarter or 1):
            if what in found.cannot_hold:
                held.record(what, _bar_number_at(tab, place, tab.steps_per_quarter or 1))
    return held.sentences()


def describe_losses(before: Sequence[Tab], after: Sequence[Tab]) -> list[str]:
    """Return what is in some tabs and is not in what was read back from a file of them.

    Args:
        before: the tracks that were written.
        after: the tracks that were read.
    """
    lost = Omissions()
    if len(before) != len(after):
        before, every = [tab for tab in before if any(tab.iter_events())], before
        if len(before) != len(after):
            return [f"{len(every)} tracks, but {len(after)}"]
        lost.record("tracks without notes", count=len(every) - len(before))
    for own, read in zip(
        map(_with_signatures_stated, before), map(_with_signatures_stated, after), strict=True
    ):
        if len(before) == 1:
            own = replace(own, track="")
        if any(map(_playing_marks, own.bars)) and not any(map(_playing_marks, read.bars)):
            played = expand_repeats(own)
            if len(played.bars) == len(read.bars):
                lost.setdefault(PLAYED_OUT, (1, 0))
                own = played
        has_strings = read.is_fingered or not own.is_fingered
        if not has_strings:
            lost.setdefault("the strings", (1, 0))
        unit = lcm(own.steps_per_quarter or 1, read.steps_per_quarter or 1)
        details = (Counter(_iter_details(tab, has_strings, unit)) for tab in (own, read))
        missing = next(details) - next(details)
        gone = {place for what, place, _ in missing if what in NOTES}
        for (what, place, _), count in missing.items():
            if what in NOTES or place not in gone:
                lost.record(what, _bar_number_at(own, place, unit), count)
    return lost.sentences()


def _with_signatures_stated(tab: Tab) -> Tab:
    """Return a tab with the time signatures that its bars have, as a file must state them."""
    with contextlib.suppress(ValueError):  # no time, or a length that has no signature
        return add_time_signatures(tab)
    return tab


def _bar_number_at(tab: Tab, place: Any, unit: int) -> int:
    """Return the bar, from 1, of a place of `_iter_details`; 0 for the whole piece."""
    start = place[0] if isinstance(place, tuple) else place
    scaled = start is not None and start * (tab.steps_per_quarter or 1) / unit
    return 0 if start is None else bisect_right(bar_start_steps(tab), scaled)


def _playing_marks(bar: Bar) -> tuple[Any, ...]:
    """Return what a bar says of the order of playing; nothing if it says nothing."""
    marks = bar.starts_repeat, max(bar.num_plays, 1), bar.endings, tuple(sorted(bar.signs))
    return marks if marks != (False, 1, (), ()) else ()


def _iter_fields(owner: Tab | Bar, place: Any) -> Iterator[Any]:
    """Yield what a tab or bar states, each field of it; one without words has its own name."""
    for name in sorted({each.name for each in fields(owner)} - NOT_BY_ITSELF):
        value = getattr(owner, name)
        value = " ".join(value.split()) if isinstance(value, str) else value
        if value:
            yield DETAIL_WORDS.get(name, f"the {name}"), place, value


def _iter_details(tab: Tab, has_strings: bool, unit: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield each thing that a tab holds: what it is, where it is, and its value.

    Args:
        tab: the tab.
        has_strings: whether strings count; else a note is where its pitch is.
        unit: how many parts of a quarter note places and lengths count, a multiple of the steps.
    """
    yield "the tuning", None, tab.tuning.open_pitches
    yield from _iter_fields(tab, None)
    if tab.tuning.capo:
        yield "the capo", None, tab.tuning.capo
    parts = unit // (tab.steps_per_quarter or 1)
    for start, bar in zip(bar_start_steps(tab), with_durations_filled(tab).bars, strict=False):
        where = start * parts
        yield from _iter_fields(bar, where)
        for step, bpm in bar.tempo_changes:
            yield "tempos", where + step * parts, bpm
        if marks := _playing_marks(bar):
            yield "marks of repeats", where, marks
        for event in bar.events:
            for (string, fret), length, techniques, voice in event.tab_notes():
                if not has_strings:
                    string = fret = tab.tuning.pitch_of(Note(string, fret))
                place = where + event.step * parts, string
                kinds = {technique.kind: technique.bend_quarter_tones for technique in techniques}
                if "dead" in kinds:
                    yield "dead notes", place, None
                else:
                    yield "notes", place, fret
                yield "lengths of notes", place, length * parts
                if voice == 2:
                    yield "marks of a second voice", place, None
                for kind, size in kinds.items():
                    if kind != "dead":
                        yield TECHNIQUES[kind].plural, place, size
