"""Convert guitar music from one kind of file into another, and say what did not come along."""

from dataclasses import replace

from slp_guitar.commands import rare_collections
from slp_guitar.commands.song_options import ConvertOptions
from slp_guitar.commands.tab import (
    check_output,
    choose_neck,
    print_cut_note_count,
    print_each,
    read_and_select_tracks,
    write_tracks,
)
from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.formats.registry import find_format
from slp_guitar.fretboard import STANDARD, Tuning
from slp_guitar.tab import Tab
from slp_transformer.cli.console import format_count, print_status


@rare_collections()
def execute(options: ConvertOptions) -> None:
    """Read a file, write the other and print what is not in it.

    Raises:
        ValueError: if the one cannot be read, or the other not be written.
    """
    output = options.output
    check_output(output, options)
    tabs: list[Tab] = []
    found = find_format(output)
    needs_strings = found is not None and found.max_strings > 0
    tracks = read_and_select_tracks(options)
    is_all_fingered = all(tab.is_fingered for tab in tracks)
    if options.max_fret is not None and (is_all_fingered or not needs_strings):
        why = "these notes have strings" if is_all_fingered else f"{output.suffix} needs none"
        print_status(f"--max-fret has no effect here: {why}, so nothing is fingered.")
    for tab in tracks:
        if needs_strings and not tab.is_fingered:
            tab = finger_pitches(tab, options, tab.track or options.song.name)
        if options.no_capo and tab.is_fingered:
            raised = tuple(pitch + tab.tuning.capo for pitch in tab.tuning.open_pitches)
            tab = replace(tab, tuning=Tuning(raised))
        tabs.append(tab)
    write_tracks(tabs, output, options)
    if any(tab.tuning.capo for tab in tabs) and output.suffix.lower() in (".musicxml", ".xml"):
        print_status("MuseScore ignores capos: for it, write the file by --no-capo.")
    print_status(f"Written to {output}.")


def finger_pitches(tab: Tab, options: ConvertOptions, name: str) -> Tab:
    """Return pitches on the strings of the guitar that `tab` takes, without those that it lacks."""
    piece = piece_from_tab(tab)
    print_status(f"{name}: the notes have no strings; they are fingered as `tab` does it.")
    if not piece.moments:
        return replace(tab, tuning=STANDARD)
    guitar, max_fret = choose_neck(piece, options, name)
    if not any(guitar.positions_of(p, max_fret) for one in piece.moments for p in one.pitches):
        count = format_count(sum(len(moment.pitches) for moment in piece.moments), "note")
        print_status(f"{name}: its bars are left empty: no neck has any of its {count}.")
        return replace(tab, tuning=guitar, bars=tuple(replace(b, events=()) for b in tab.bars))
    wanted = FingeringOptions(guitar, max_fret, unplayable_policy="drop")
    (((fingered, _), *_), changes) = find_fingerings(piece, wanted)
    print_each(f"{name}, {place}: {what}" for place, what in changes)
    print_cut_note_count(fingered)
    return fingered
