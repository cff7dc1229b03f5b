"""Turn pitches into tab that can be played: of a MIDI file, or of a tab for another guitar."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from slp_transformer.cli.console import print_result, print_status
from slp_transformer.cli.options import Tab as Options
from slp_transformer.guitar.ascii_writer import format_tab
from slp_transformer.guitar.fingering.fingering_pieces import (
    FingeringOptions,
    PlayablePiece,
    finger_piece,
    piece_from_score,
    piece_from_tab,
    summarize_fingering,
)
from slp_transformer.guitar.formats.midi import read_midi
from slp_transformer.guitar.formats.registry import (
    UNTIMED_SUFFIXES,
    add_time_if_needed,
    check_writable_suffix,
    read_any_tab_file,
    write_tab,
)
from slp_transformer.guitar.fretboard import STANDARD, TUNINGS, Note, Tuning, get_tuning_name
from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.tab_header import parse_tuning
from slp_transformer.tasks.base import format_table

NUM_PREVIEW_BARS = 4  # bars on a terminal, where the whole goes to a file
MIDI_SUFFIXES = (".mid", ".midi")
INPUT_SUFFIXES = (*MIDI_SUFFIXES, ".txt", ".tab", ".gp3", ".gp4", ".gp5", ".atex", ".alphatex")
PIN_PATTERN = re.compile(r"(\d+):(\d+)=(\d+)/(\d+)")


def execute(options: Options) -> None:
    """Finger a piece, and write or show it.

    Raises:
        ValueError: if the piece cannot be read, an option makes no sense, or notes are
            unplayable.
    """
    if options.output is not None:
        check_output(options.output)
    piece = read_piece(options)
    wanted = make_options(options)
    score_grips = None
    if options.model:  # PyTorch is imported only for models
        from slp_transformer.guitar.fingering.hand_inference import load_hand_ensemble

        score_grips = load_hand_ensemble(*options.model).grip_log_probs
    tabs_and_grips, changes = finger_piece(piece, wanted, options.alternatives, score_grips)
    print_changes(changes)
    count = len(tabs_and_grips)
    for number, (tab, grips) in enumerate(tabs_and_grips, start=1):
        path = None if options.output is None else numbered_path(options.output, number)
        write_and_show(tab, path, options)
        summary = {"guitar": describe_tuning(tab.tuning)}
        summary |= summarize_fingering(grips, wanted.max_span)
        heading = "" if count == 1 else f"{number}.\n"
        print_status(heading + format_table(summary))
        if path is not None:
            print_status(f"written to {path}")
    if count < options.alternatives:
        print_status(f"There is no other fingering than these {count}.")


# --- Input -------------------------------------------------------------------------------------


def read_piece(options: Options) -> PlayablePiece:
    """The piece that a file holds.

    Raises:
        ValueError: if it cannot be read.
    """
    path = options.song
    suffix = path.suffix.lower()
    if suffix in MIDI_SUFFIXES:
        score, problems = read_midi(path, options.tracks or None, options.channels or None)
        print_problems(problems)
        return piece_from_score(score)
    for flag in ("tracks", "channels"):
        if getattr(options, flag):
            raise ValueError(f"--{flag} has no effect here: {path} is no MIDI file.")
    if suffix not in INPUT_SUFFIXES:
        raise ValueError(
            f"{path} has an unsupported file type; supported are {', '.join(INPUT_SUFFIXES)}."
        )
    tabs, problems = read_any_tab_file(path)
    print_problems(problems)
    if not tabs:
        raise ValueError(f"{path} has no tablature that can be read.")
    if len(tabs) > 1:
        print_status(f"{path} has {len(tabs)} tabs; the first is taken.")
    return piece_from_tab(tabs[0])


def make_options(options: Options) -> FingeringOptions:
    """Build the fingering options from the flags.

    Raises:
        ValueError: naming the flag that makes no sense.
    """
    tuning = parse_tuning_argument(options.tuning) if options.tuning else STANDARD
    check_between("capo", options.capo, 0, 12)
    check_between("max_fret", options.max_fret, options.capo + 1, 36)
    check_between("max_span", options.max_span, 1, 12)
    check_between("alternatives", options.alternatives, 1, 20)
    if options.position is not None:
        check_between("position", options.position, 1, 15)
    return FingeringOptions(
        replace(tuning, capo=options.capo),
        options.max_fret,
        options.max_span,
        options.position,
        options.prefer_open - options.avoid_open,
        parse_pins(options.pin),
        options.unplayable,
    )


def check_between(name: str, value: int, least: int, most: int) -> None:
    """Refuse a number that is too small or too large.

    Raises:
        ValueError: naming the flag.
    """
    if not least <= value <= most:
        flag = name.replace("_", "-")
        raise ValueError(f"--{flag} must be from {least} to {most}, not {value}.")


def parse_tuning_argument(text: str) -> Tuning:
    """A tuning by its name, or by its strings from the lowest: D A D G B E.

    Raises:
        ValueError: if it is neither.
    """
    if text in TUNINGS:
        return TUNINGS[text]
    pitches = parse_tuning(f"tuning: {text}")
    if pitches is None:
        raise ValueError(
            f'There is no tuning "{text}": say {", ".join(TUNINGS)}, or the strings from the '
            'lowest, as in "D A D G B E".'
        )
    return Tuning(tuple(pitches))


def parse_pins(words: Sequence[str]) -> dict[tuple[int, int], tuple[Note, ...]]:
    """Pins by the numbers of their bar and moment.

    Raises:
        ValueError: if one is not of the form BAR:MOMENT=STRING/FRET.
    """
    pins: dict[tuple[int, int], tuple[Note, ...]] = {}
    for word in words:
        found = PIN_PATTERN.fullmatch(word)
        if found is None:
            raise ValueError(
                f"--pin is BAR:MOMENT=STRING/FRET, such as 3:1=2/5 for the first moment of bar 3 "
                f"on string 2 at fret 5, not {word}."
            )
        bar, moment, string, fret = map(int, found.groups())
        pins[bar, moment] = (*pins.get((bar, moment), ()), Note(string, fret))
    return pins


# --- Output ------------------------------------------------------------------------------------


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is done.

    Raises:
        ValueError: saying why.
    """
    check_writable_suffix(path)
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} to.")


def numbered_path(path: Path, number: int) -> Path:
    """The file of an alternative: song.txt, song-2.txt and so on."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def write_and_show(tab: Tab, path: Path | None, options: Options) -> None:
    """Write a tab and show how it begins; show all of it, if there is nothing to write to.

    Raises:
        ValueError: if the file needs time that the tab does not have.
    """
    beat = tab.steps_per_quarter
    if path is None:
        print_result(format_tab(tab, steps_per_beat=beat))
        return
    timeless = tab.steps_per_quarter is None and path.suffix.lower() not in UNTIMED_SUFFIXES
    if timeless and options.steps_per_quarter is None:
        raise ValueError(
            f"{options.song} spaces notes in columns, and {path.suffix} needs time: say how "
            "many columns are a quarter note by --steps-per-quarter."
        )
    tab = add_time_if_needed(tab, path, options.steps_per_quarter or 4)
    write_tab(tab, path)
    begins = replace(tab, bars=tab.bars[:NUM_PREVIEW_BARS])
    print_result(format_tab(begins, steps_per_beat=beat))
    if len(tab.bars) > NUM_PREVIEW_BARS:
        print_status(f"... and {len(tab.bars) - NUM_PREVIEW_BARS:,} more bars")


def describe_tuning(tuning: Tuning) -> str:
    """A guitar in words."""
    name = get_tuning_name(tuning) or " ".join(map(str, reversed(tuning.open_pitches)))
    return name + (f", capo {tuning.capo}" if tuning.capo else "")


def print_problems(problems: Sequence[object]) -> None:
    """Print the problems of a file."""
    for problem in problems[:5]:
        print_status(str(problem))
    if len(problems) > 5:
        print_status(f"... and {len(problems) - 5} more like this")


def print_changes(changes: Sequence[tuple[str, str]]) -> None:
    """Print the changes to notes that this guitar cannot play."""
    for where, what in changes[:8]:
        print_status(f"{where}: {what}")
    if len(changes) > 8:
        kinds = Counter(what.split(" is ")[-1] for _, what in changes)
        print_status(
            "... in all: " + "; ".join(f"{count} × {kind}" for kind, count in kinds.most_common(5))
        )
