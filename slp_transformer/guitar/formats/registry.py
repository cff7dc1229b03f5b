"""One way in and one way out for tabs in files, whose names say what they are; and what is lost."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import write_file
from slp_transformer.guitar.ascii_reader import read_tab_file
from slp_transformer.guitar.ascii_writer import format_tab
from slp_transformer.guitar.formats.alphatex import format_alphatex, read_alphatex
from slp_transformer.guitar.formats.gpif import read_gp
from slp_transformer.guitar.formats.guitar_pro import format_guitar_pro, read_guitar_pro
from slp_transformer.guitar.formats.midi import format_midi, read_midi
from slp_transformer.guitar.formats.musicxml import format_musicxml, read_musicxml
from slp_transformer.guitar.formats.notation import fill_durations
from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import ReadProblem, Tab
from slp_transformer.guitar.timing import bar_start_steps, columns_to_steps, expand_repeats


def _format_tabs(*tracks: Tab) -> str:
    """Return tabs as ASCII text, one below the other."""
    if len(tracks) > 1:
        tracks = tuple(
            replace(tab, track=tab.track or f"Guitar {number}")
            for number, tab in enumerate(tracks, start=1)
        )
    return "\n".join(format_tab(tab, show_timing=True) for tab in tracks)


FORMATTER_OF_SUFFIX: dict[str, Callable[..., str | bytes]] = {
    **dict.fromkeys((".txt", ".tab"), _format_tabs),
    **dict.fromkeys((".mid", ".midi"), format_midi),
    **{f".gp{version}": partial(format_guitar_pro, version=version) for version in (3, 4, 5)},
    **dict.fromkeys((".musicxml", ".xml"), format_musicxml),
    **dict.fromkeys((".atex", ".alphatex"), format_alphatex),
}
"""What makes the content of each file type, by suffix."""

READER_OF_SUFFIX: dict[str, Callable[[Path], tuple[list[Tab], list[ReadProblem]]]] = {
    **dict.fromkeys((".txt", ".tab"), read_tab_file),
    **dict.fromkeys((".mid", ".midi"), read_midi),
    **dict.fromkeys((".gp3", ".gp4", ".gp5"), read_guitar_pro),
    ".gp": read_gp,
    **dict.fromkeys((".musicxml", ".mxl", ".xml"), read_musicxml),
    **dict.fromkeys((".atex", ".alphatex"), read_alphatex),
}
"""The reader of each file type, by suffix."""

UNTIMED_SUFFIXES = (".txt", ".tab")
"""Files that hold tabs whose steps are columns."""


def check_writable_suffix(path: str | Path, one_channel: bool = False) -> None:
    """Refuse a name that is not of a kind of file that can be written, in one channel if asked for.

    Raises:
        ValueError: naming the suffixes that can.
    """
    if one_channel and Path(path).suffix.lower() not in (".mid", ".midi"):
        raise ValueError(f"--one-channel has no effect here: {Path(path).name} is no MIDI file.")
    if Path(path).suffix.lower() not in FORMATTER_OF_SUFFIX:
        aliases = {".tab", ".midi", ".xml", ".alphatex"}
        raise ValueError(
            f"{Path(path).name} does not say what to write: let it end in "
            f"{', '.join(sorted(set(FORMATTER_OF_SUFFIX) - aliases))}."
        )


def write_tab(tab: Tab, path: str | Path, *others: Tab, one_channel: bool = False) -> None:
    """Write a tab to a file of the kind that its name says, whole or not at all.

    Args:
        tab: the tab, or the first track.
        path: the file.
        others: further tracks that play together with it.
        one_channel: as `slp_transformer.guitar.formats.midi.format_midi`; for MIDI files alone.

    Raises:
        ValueError: for a name that says none; or as what formats that kind of file, for instance if
            the tab's steps are columns, and not time, where the file needs time.
        OSError: if the file cannot be written.
    """
    check_writable_suffix(path, one_channel)
    options = {"one_channel": True} if one_channel else {}
    content = FORMATTER_OF_SUFFIX[Path(path).suffix.lower()](tab, *others, **options)
    write_file(Path(path), content)


def add_time_if_needed(tab: Tab, path: str | Path, steps_per_quarter: int = 4) -> Tab:
    """Return the tab as a file of that name can hold it: columns taken for steps if it needs time.

    Raises:
        ValueError: as `check_writable_suffix` and `slp_transformer.guitar.timing.columns_to_steps`.
    """
    check_writable_suffix(path)
    timeless = tab.steps_per_quarter is None and Path(path).suffix.lower() not in UNTIMED_SUFFIXES
    return columns_to_steps(tab, steps_per_quarter) if timeless else tab


def read_any_tab_file(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read the tabs in a file: text, Guitar Pro, MusicXML, alphaTex or MIDI.

    Returns:
        The tabs, and what of the file is not in them.

    Raises:
        ValueError: if there is no such file, or it is not what its name says.
    """
    return READER_OF_SUFFIX.get(Path(path).suffix.lower(), read_tab_file)(Path(path))


TECHNIQUE_NAMES = {
    "hammer": "hammer-ons and pull-offs",
    "pull": "hammer-ons and pull-offs",
    "slide": "slides",
    "bend": "bends",
    "harmonic": "harmonics",
    "let ring": "notes that ring on",
    "vibrato": "vibratos",
}

NOTES = ("notes", "dead notes")


def describe_losses(before: Sequence[Tab], after: Sequence[Tab]) -> list[str]:
    """Return what is in some tabs and is not in what was read back from a file of them.

    Args:
        before: the tracks that were written.
        after: the tracks that were read.
    """
    if len(before) != len(after):
        return [f"{len(before)} tracks, but {len(after)}"]
    lost: Counter[str] = Counter()
    for own, read in zip(before, after, strict=True):
        if len(before) == 1:
            own = replace(own, track="")
        if len(read.bars) > len(own.bars):
            lost["the repeats, which are played out"] = 1
            own = expand_repeats(own)
        has_strings = read.is_fingered or not own.is_fingered
        if not has_strings:
            lost["the strings"] = 1
        details = (Counter(_iter_details(tab, has_strings)) for tab in (own, read))
        missing = next(details) - next(details)
        gone = {place for what, place, _ in missing if what in NOTES}
        for (what, place, _), count in missing.items():
            if what in NOTES or place not in gone:
                lost[what] += count
    return [what if what.startswith("the ") else f"{n:,} {what}" for what, n in lost.items()]


def _iter_details(tab: Tab, has_strings: bool) -> Iterator[tuple[str, Any, Any]]:
    """Yield each thing that a tab holds: what it is, where it is, and its value.

    Without strings a note is where its pitch is.
    """
    yield "the title", None, " ".join(tab.title.split())
    yield "the tuning", None, tab.tuning.open_pitches
    track = " ".join(tab.track.split())
    optional = ("the capo", tab.tuning.capo), ("the tracks' names", track), ("the style", tab.style)
    yield from ((what, None, value) for what, value in optional if value)
    unit = tab.steps_per_quarter or 1
    for start, bar in zip(bar_start_steps(tab), fill_durations(tab).bars, strict=False):
        where = Fraction(start, unit)
        for what, value in (("time signatures", bar.time_signature), ("tempos", bar.tempo_bpm)):
            if value:
                yield what, where, value
        if bar.starts_repeat or bar.num_plays > 1 or bar.endings:
            yield "marks of repeats", where, (bar.starts_repeat, bar.num_plays, bar.endings)
        for event in bar.events:
            for (string, fret), length, techniques, voice in event.tab_notes():
                if not has_strings:
                    string = fret = tab.tuning.pitch_of(Note(string, fret))
                place = where + Fraction(event.step, unit), string
                kinds = {technique.kind: technique.bend_quarter_tones for technique in techniques}
                if "dead" in kinds:
                    yield "dead notes", place, None
                else:
                    yield "notes", place, fret
                yield "lengths of notes", place, Fraction(length, unit)
                if voice == 2:
                    yield "marks of a second voice", place, None
                for kind in kinds.keys() - {"dead"}:
                    yield TECHNIQUE_NAMES[kind], place, kinds[kind]
