"""Turn pitches into tab that can be played: of a MIDI file, or of a tab for another guitar."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from slp_guitar import fretboard
from slp_guitar.ascii.writer import format_tab
from slp_guitar.commands import rare_collections
from slp_guitar.commands.song_options import MOST_FRETS, ConvertOptions, TabOptions
from slp_guitar.fingering import fingering_pieces
from slp_guitar.fingering.costs import read_weights
from slp_guitar.fingering.fingering_pieces import CapoSuggestion, DoubtfulMoment
from slp_guitar.fingering.grips import UnplayableError
from slp_guitar.fingering.playable_chords import EASY, FingeringOptions
from slp_guitar.fingering.playable_pieces import PlayablePiece, piece_from_tab
from slp_guitar.formats import registry
from slp_guitar.formats.notation import count_cut_notes
from slp_guitar.fretboard import MAX_FRET, STANDARD, Note, Tuning
from slp_guitar.tab import MAX_STRINGS, Bar, Event, Tab, TabNote
from slp_guitar.tab_header import parse_tuning
from slp_guitar.text_time import infer_timing
from slp_guitar.timing import columns_to_steps
from slp_transformer._internal.atomic_write import check_writable_path
from slp_transformer._internal.config_checks import check_range, within
from slp_transformer.cli.console import format_count, print_result, print_status
from slp_transformer.tasks.reports import format_table

FINGERING_FLAGS = (
    *("tuning", "capo", "transpose", "max_fret", "max_span", "position", "open_strings"),
    *("pin", "review", "alternatives", "unplayable", "costs", "easiest_capo", "refinger", "easy"),
)
UNPLAYABLE_HINTS = {
    "roll": "plays chords from the bass up and moves notes off the neck",
    "octave": "moves notes by octaves",
    "drop": "leaves notes out",
}
NUM_CAPOS, NUM_SHAPES = 3, 6
PIN_PATTERN = re.compile(r"(\d+):(\d+)=(\d+/\d+(?:,\d+/\d+)*)")


@rare_collections()
def execute(options: TabOptions) -> None:
    """Finger a piece if it is not fingered or is to be fingered anew, and write or show it.

    Raises:
        ValueError: if the piece cannot be read, an option makes no sense, or notes are
            unplayable.
    """
    output = options.output
    if output is not None:
        check_output(output, options)
    elif options.one_channel:
        registry.check_writable_suffix("standard output", one_channel=True)
    tab, *others = read_and_select_tracks(options)
    if others:
        names = ", ".join(own.track or "one without a name" for own in others)
        print_status(
            f"{options.song} has {1 + len(others)} tracks; {tab.track or 'the first'} is taken, "
            f"and not {names} (--tracks chooses)."
        )
    half_steps = options.transpose
    if options.keep_shapes:
        new_capo = options.capo
        if new_capo is None:
            raise ValueError("--keep-shapes needs --capo: with the capo there, the shapes stay.")
        if tab.is_fingered:
            tab = replace(tab, tuning=replace(tab.tuning, capo=new_capo))
            options = replace(options, capo=None)
        else:
            half_steps += new_capo
    if tab.is_fingered and not is_fingering_wanted(options):
        show_or_write(tab, output, options)
        if output is not None:
            print_status(f"Written to {output}; its fingering is kept (--refinger finds another).")
        return
    piece = piece_from_tab(tab).transpose(half_steps)
    wanted = make_fingering_options(options, tab)
    if not tab.is_fingered and options.tuning is None and options.capo is None:
        guitar, max_fret = choose_neck(piece, options, options.song.name)
        wanted = replace(wanted, tuning=guitar, max_fret=max_fret)
    if options.easiest_capo:
        if options.capo is not None or options.pin:
            flag = "--pin" if options.pin else "--capo"
            raise ValueError(f"--easiest-capo finds the capo, and {flag} is for a given one.")
        suggestions = fingering_pieces.suggest_capos(piece, wanted)
        for number, own in enumerate(suggestions[:NUM_CAPOS], start=1):
            print_result(f"{number}. {format_capo(own, suggestions[0].cost, wanted.tuning)}")
        wanted = replace(wanted, tuning=replace(wanted.tuning, capo=suggestions[0].capo))
    try:
        found, changes = fingering_pieces.find_fingerings(piece, wanted, options.alternatives)
    except UnplayableError as error:
        policies = [name for name in UNPLAYABLE_HINTS if name != options.unplayable]
        hints = ", ".join(f"{name} {UNPLAYABLE_HINTS[name]}" for name in policies)
        if options.capo and not options.keep_shapes:
            hints += f". --keep-shapes keeps the shapes, {options.capo} half steps higher"
        highest = max((pitch for moment in piece.moments for pitch in moment.pitches), default=0)
        frets = highest - max(wanted.tuning.open_pitches)
        if wanted.max_fret < frets <= MOST_FRETS:
            hints += f". --max-fret {frets} has all its notes"
        raise ValueError(f"{error} --unplayable can do something: {hints}.") from None
    print_each(f"{where}: {what}" for where, what in changes)
    count = len(found)
    for number, (tab, grips) in enumerate(found, start=1):
        name = fretboard.describe_tuning(tab.tuning)
        capo = f", capo {tab.tuning.capo}" if tab.tuning.capo else ""
        summary = fingering_pieces.summarize_fingering(grips, wanted.max_span)
        print_cut_note_count(tab)
        path = output
        if output is not None and number > 1:
            path = output.with_stem(f"{output.stem}-{number}")
        show_or_write(tab, path, options)
        heading = "" if count == 1 else f"{number}.\n"
        print_status(heading + format_table({"guitar": name + capo} | summary))
        if path is not None:
            print_status(f"Written to {path}.")
    if count < options.alternatives:
        print_status(f"There is no other fingering than these {count}.")
    if options.review:
        doubts = fingering_pieces.find_doubtful_moments(piece, wanted, options.review)
        for number, doubt in enumerate(doubts, start=1):
            print_result(f"{number}. {format_doubtful_moment(doubt, wanted.tuning)}")
        if len(doubts) < options.review:
            print_status(f"No other moment is uncertain: {len(doubts)} found.")


def show_or_write(tab: Tab, path: Path | None, options: TabOptions) -> None:
    """Print a tab, or write it to a file."""
    if path is None:
        print_result(format_tab(tab, number_beats_every=tab.steps_per_quarter))
    else:
        write_tracks([tab], path, options)


def write_tracks(tabs: Sequence[Tab], path: Path, options: TabOptions | ConvertOptions) -> None:
    """Write tracks to a file, read it as well and print what is not in it.

    Raises:
        ValueError: if it needs time that they do not have, or cannot be written.
    """
    timed = [add_time_or_refuse(tab, path, options) for tab in tabs]
    registry.write_tab(timed[0], path, *timed[1:], one_channel=options.one_channel)
    if lost := registry.find_losses(timed, path):
        print_status(f"{path.name} does not hold {', '.join(lost)}.")


def format_capo(own: CapoSuggestion, least: float, tuning: Tuning) -> str:
    """Return a place of the capo with the shapes that it gives, as x32010."""
    shapes = []
    for grip in own.chords[:NUM_SHAPES]:
        frets = {note.string: str(note.fret) for note in grip}
        each = [frets.get(string, "x") for string in range(len(tuning.open_pitches), 0, -1)]
        shapes.append(("" if max(map(len, each)) == 1 else "-").join(each))
    key = f", shapes of {own.key}" if own.key else ""
    more = "" if own.cost == least else f"; costs {own.cost - least:.1f} more"
    return f"{f'capo {own.capo}' if own.capo else 'no capo'}{key}: {' '.join(shapes)}{more}"


def choose_neck(
    piece: PlayablePiece, options: TabOptions | ConvertOptions, of: str
) -> tuple[Tuning, int]:
    """Return the guitar for a piece without strings and its frets, and say what is not usual of it.

    It is the first that has all notes with 19 frets, or else with 24, unless the flag says how
    many; or else the one that lacks the fewest.
    """
    counts = Counter(pitch for moment in piece.moments for pitch in moment.pitches)
    part = piece.tab.track or piece.tab.title
    given, kind = options.max_fret, options.output and registry.find_format(options.output)
    strings = kind and kind.max_strings or MAX_STRINGS
    necks = [given] if given else [MAX_FRET, fretboard.FRETS_OF_LONG_NECKS]
    tried = [(fretboard.find_nearest_tuning(counts, n, part, strings), n) for n in necks]
    (name, _), max_fret = next((each for each in tried if not each[0][1]), tried[-1])
    if name != "standard":
        why = "a standard guitar does not have all its notes"
        if name.partition("-")[0] in part.lower():
            why = f"its part is called {part}"
        takes = " (--tuning takes another)" if isinstance(options, TabOptions) else ""
        print_status(f"{of} names no tuning, and {why}: it is fingered for {name}{takes}.")
    if given is None and max_fret > MAX_FRET:
        print_status(
            f"{of}: not all its notes are within {MAX_FRET} frets: up to {max_fret} are used "
            "(--max-fret says how many there are)."
        )
    return fretboard.NAMED_TUNINGS[name], max_fret


def format_doubtful_moment(doubt: DoubtfulMoment, tuning: Tuning) -> str:
    """Draw an uncertain moment between its neighbors, as it is and in other ways, with their pins.

    The drawing is one system with a bar for each way; the first is the fingering that is taken.
    """
    place, num_repeats = doubt.places[0], len(doubt.places) - 1
    shown = range(max(0, place - 1), min(len(doubt.paths[0]), place + 2))
    bars = []
    for path in doubt.paths:
        notes = [Event.from_notes(n, map(TabNote, path[t])) for n, t in enumerate(shown)]
        bars.append(Bar(len(shown), tuple(notes)))
    text = format_tab(Tab(tuning=tuning, bars=tuple(bars))).splitlines()
    drawn = text[-len(tuning.open_pitches) :]
    again = f" (and {format_count(num_repeats, 'place')} like it)" if num_repeats else ""
    lines = [f"{doubt.moment}{again}, with its neighbors: as it is, and in other ways", *drawn]
    where = f"{doubt.moment.bar_number}:{doubt.moment.number}"
    for path, extra in zip(doubt.paths[1:], doubt.extra_costs[1:], strict=True):
        grip = ",".join(f"{note.string}/{note.fret}" for note in path[place])
        changed = sum(a != b for a, b in zip(path, doubt.paths[0], strict=True))
        moments = "moment" if changed == 1 else "moments"
        cost = f"{abs(extra):.1f} {'less' if round(extra, 1) < 0 else 'more'}"
        lines.append(f"--pin {where}={grip}  costs {cost}, changes {changed} {moments}")
    return "\n".join(lines) + "\n"


def check_output(path: Path, options: TabOptions | ConvertOptions) -> None:
    """Refuse a file that cannot be written, or that is the one to read.

    Raises:
        ValueError: saying why.
    """
    registry.check_writable_suffix(path, options.one_channel)
    check_writable_path(path)
    if path.exists() and options.song.exists() and path.samefile(options.song):
        raise ValueError(f"{path} is the file to read: name another one to write to.")


def read_and_select_tracks(options: TabOptions | ConvertOptions) -> list[Tab]:
    """Return the tracks of a file that are asked for, with what is left out printed.

    Raises:
        ValueError: if it cannot be read, or an option has no effect on it.
    """
    path = options.song
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file.")
    found = registry.find_format(path)
    reader_flags = found.reader_flags if found else ()
    for flag in ("channels", "quantize"):
        if found and found.reader and getattr(options, flag):
            registry.check_flag_has_effect(flag, path)
    tabs, problems = registry.read_any_tab_file(
        path, **{flag: getattr(options, flag) for flag in reader_flags}
    )
    if "tracks" not in reader_flags:
        if wrong := [number for number in options.tracks if not 1 <= number <= len(tabs)]:
            raise ValueError(f"{path} has no track {wrong[0]}: its tracks are 1 to {len(tabs)}.")
        tabs = [tabs[number - 1] for number in options.tracks] or tabs
    print_each(problems)
    if not tabs:
        raise ValueError(f"{path} has no tablature that can be read.")
    needs_time = [
        tab for tab in tabs if options.output and registry.has_no_time(tab, options.output)
    ]
    if options.steps_per_quarter is not None and not needs_time:
        print_status("--steps-per-quarter has no effect here: no columns of a text are made time.")
    return tabs


def is_fingering_wanted(options: TabOptions) -> bool:
    """Return whether a flag asks for another fingering than a tab has."""
    return any(getattr(options, name) != getattr(TabOptions, name) for name in FINGERING_FLAGS)


def make_fingering_options(options: TabOptions, tab: Tab) -> FingeringOptions:
    """Build the fingering options from the flags; guitar and capo are the tab's unless they say.

    Raises:
        ValueError: naming the flag that makes no sense.
    """
    max_fret = MAX_FRET if options.max_fret is None else options.max_fret
    check_range(within((options.capo or 0) + 1, MOST_FRETS), **{"--max-fret": max_fret})
    tuning = tab.tuning if tab.is_fingered else STANDARD
    capo = tuning.capo if options.capo is None else options.capo
    if options.tuning:
        tuning = parse_tuning_argument(options.tuning)
    open_strings = {"more": 1, "less": -1}.get(options.open_strings or "")
    asked = {
        "preferred_position": options.position,
        "open_string_preference": open_strings,
        "max_span": options.max_span,
    }
    chosen = {name: value for name, value in asked.items() if value is not None}
    return FingeringOptions(
        replace(tuning, capo=capo),
        max_fret,
        pinned_notes=parse_pins(options.pin),
        unplayable_policy=options.unplayable,
        weights=read_weights(options.costs) if options.costs else None,
        **((EASY if options.easy else {}) | chosen),
    )


def parse_tuning_argument(text: str) -> Tuning:
    """Return a tuning by its name, or by its strings from the lowest: D A D G B E.

    Raises:
        ValueError: if it is neither.
    """
    if text in fretboard.NAMED_TUNINGS:
        return fretboard.NAMED_TUNINGS[text]
    if by_letters := fretboard.find_tuning_by_letters(text.replace("-", " ").split()):
        return by_letters
    pitches = parse_tuning(f"tuning: {text}")
    if pitches is None:
        raise ValueError(
            f'There is no tuning "{text}": say {", ".join(fretboard.NAMED_TUNINGS)}, or the '
            'strings from the lowest, as in "D A D G B E".'
        )
    return Tuning(tuple(pitches))


def parse_pins(words: Sequence[str]) -> dict[tuple[int, int], tuple[Note, ...]]:
    """Return pinned notes by the numbers of their bar and moment.

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
        moment = int(found[1]), int(found[2])
        places = (Note(*map(int, place.split("/"))) for place in found[3].split(","))
        pins[moment] = (*pins.get(moment, ()), *places)
    return pins


def add_time_or_refuse(tab: Tab, path: Path, options: TabOptions | ConvertOptions) -> Tab:
    """Return a tab as a file of that name can hold it.

    Raises:
        ValueError: if the file needs time that the tab does not have.
    """
    if not registry.has_no_time(tab, path):
        return tab
    if options.steps_per_quarter is not None:
        return columns_to_steps(tab, options.steps_per_quarter)
    try:
        found = infer_timing(tab)
    except ValueError as error:
        raise ValueError(f"{path.suffix} needs time, and {options.song}: {error}.") from None
    for sentence in (found.description, *found.remarks):
        print_status(f"{options.song.name}: {sentence}.")
    return found.tab


def print_each(remarks: Iterable[object]) -> None:
    """Print remarks on a piece, every one: what is lost has a name and a place."""
    for remark in remarks:
        print_status(str(remark))


def print_cut_note_count(tab: Tab) -> None:
    """Say how many notes cannot last as long as the piece has them."""
    if count := count_cut_notes(tab):
        print_status(f"{format_count(count, 'note')} cut short: the string is struck again.")
