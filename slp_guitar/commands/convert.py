"""Convert guitar music from one kind of file into another, and say what did not come along."""

from dataclasses import replace

from slp_guitar.ascii_guitars import OTHER_INSTRUMENT_TUNINGS
from slp_guitar.commands import rare_collections
from slp_guitar.commands.song_options import ConvertOptions
from slp_guitar.commands.tab import (
    add_time_or_refuse,
    check_output,
    print_cut_note_count,
    read_and_select_tracks,
)
from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.formats.registry import find_losses, write_tab
from slp_guitar.fretboard import DROP_D, STANDARD, Tuning
from slp_guitar.tab import Tab
from slp_transformer.cli.console import print_remarks, print_status

NECKS = (STANDARD, DROP_D, Tuning(OTHER_INSTRUMENT_TUNINGS["bass"]))
"""What pieces without strings are fingered for: the first that reaches down to them."""


@rare_collections()
def execute(options: ConvertOptions) -> None:
    """Read a file, write the other, read that as well and print what is not in it.

    Raises:
        ValueError: if the one cannot be read, or the other not be written.
    """
    output = options.output
    check_output(output, options)
    tabs: list[Tab] = []
    tracks = read_and_select_tracks(options)
    if not all(tab.is_fingered for tab in tracks):
        print_status("These notes have no strings; they are fingered as `tab` does it.")
    for number, tab in enumerate(tracks, start=1):
        try:
            tab = tab if tab.is_fingered else place_on_first_fitting_neck(tab)
        except ValueError as error:
            if not tabs and number == len(tracks):
                raise
            print_status(f"{tab.track}: left out. {error}")
            continue
        if options.no_capo:
            raised = tuple(pitch + tab.tuning.capo for pitch in tab.tuning.open_pitches)
            tab = replace(tab, tuning=Tuning(raised))
        tabs.append(add_time_or_refuse(tab, output, options))
    write_tab(tabs[0], output, *tabs[1:], one_channel=options.one_channel)
    if lost := find_losses(tabs, output):
        print_status(f"{output.name} does not hold {', '.join(lost)}.")
    if any(tab.tuning.capo for tab in tabs) and output.suffix.lower() in (".musicxml", ".xml"):
        print_status("MuseScore ignores capos: for it, write the file by --no-capo.")
    print_status(f"Written to {output}.")


def place_on_first_fitting_neck(tab: Tab) -> Tab:
    """Return pitches on strings of the first of `NECKS` that reaches down to them.

    Raises:
        ValueError: if they cannot be played there.
    """
    piece = piece_from_tab(tab)
    lowest = min((min(moment.pitches) for moment in piece.moments), default=40)
    guitar = next((neck for neck in NECKS if neck.open_pitches[-1] <= lowest), STANDARD)
    (((fingered, _), *_), changes) = find_fingerings(piece, FingeringOptions(guitar))
    print_remarks([f"{where}: {what}" for where, what in changes])
    print_cut_note_count(fingered)
    return fingered
