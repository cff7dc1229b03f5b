"""Convert guitar music from one kind of file into another, and say what did not come along."""

from dataclasses import replace

from slp_transformer.cli.console import print_remarks, print_status
from slp_transformer.guitar.commands.song_options import Convert as Options
from slp_transformer.guitar.commands.tab import (
    add_time,
    check_output,
    print_cut_notes,
    read_tracks,
)
from slp_transformer.guitar.fingering.fingering_pieces import (
    FingeringOptions,
    finger_piece,
    piece_from_tab,
)
from slp_transformer.guitar.formats.registry import find_losses, write_tab
from slp_transformer.guitar.fretboard import DROP_D, STANDARD, Tuning

BASS = Tuning((43, 38, 33, 28))


def execute(options: Options) -> None:
    """Read a file, write the other, read that as well and print what is not in it.

    Raises:
        ValueError: if the one cannot be read, or the other not be written.
    """
    output = options.output
    check_output(output, options)
    tabs = []
    for tab in read_tracks(options):
        if not tab.is_fingered:
            print_status("These notes have no strings; they are fingered as `tab` does it.")
            piece = piece_from_tab(tab)
            lowest = min((min(moment.pitches) for moment in piece.moments), default=40)
            reaches = (
                guitar for guitar in (STANDARD, DROP_D, BASS) if guitar.open_pitches[-1] <= lowest
            )
            guitar = next(reaches, STANDARD)
            (((tab, _), *_), changes) = finger_piece(piece, FingeringOptions(guitar))
            print_remarks([f"{where}: {what}" for where, what in changes])
            print_cut_notes(tab)
        if options.no_capo:
            raised = tuple(pitch + tab.tuning.capo for pitch in tab.tuning.open_pitches)
            tab = replace(tab, tuning=Tuning(raised))
        tabs.append(add_time(tab, output, options))
    write_tab(tabs[0], output, *tabs[1:], one_channel=options.one_channel)
    if lost := find_losses(tabs, output):
        print_status(f"{output.name} does not hold {', '.join(lost)}.")
    if any(tab.tuning.capo for tab in tabs) and output.suffix.lower() in (".musicxml", ".xml"):
        print_status("MuseScore ignores capos: for it, write the file by --no-capo.")
    print_status(f"Written to {output}.")
