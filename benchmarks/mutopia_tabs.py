"""Tabs of the Mutopia Project's solo guitar pieces, to train on.

    python benchmarks/mutopia_tabs.py DATA/pieces.jsonl.gz CLONE runs/mutopia
    python benchmarks/mutopia_tabs.py DATA/pieces.jsonl.gz CLONE runs/mutopia --share-alike

DATA has one JSON object a piece: `id` (its path at the publisher), `title`, `license`, `time` (the
first time signature), `split`, and `notes`: onset and duration in quarters, MIDI pitch, voice,
string, finger, bar. Strings and fingers, of which editors wrote few, are not looked at: each piece
is fingered as `slp-transformer tab` does it, for the first guitar of that command's list on which
all of its notes are. CLONE is a clone of the publisher's repository, MutopiaProject/MutopiaProject,
whose files name composers and typesetters.

Written are OUT/train and OUT/valid, alphaTex files for `slp-transformer train tabs`, and
OUT/pieces.json: title, composer, typesetter, place and license of each piece. Training pieces are
in the public domain or under CC BY; with `--share-alike` those under CC BY-SA are among them. Each
is there in several keys (`--transpose`), as far as the guitar goes. Left out, and counted: pieces
whose meter changes, and those whose notes are on no grid that tokens have.
"""

import argparse
import gzip
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, lcm
from pathlib import Path
from typing import Any

from slp_guitar.bar_lengths import NOTATED_STEPS_PER_QUARTER
from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import PlayableMoment, PlayablePiece
from slp_guitar.formats.registry import write_tab
from slp_guitar.fretboard import NAMED_TUNINGS, Note, find_nearest_tuning
from slp_guitar.tab import Bar, Tab, TabNote
from slp_guitar.theory import TIME_SIGNATURES
from slp_transformer._internal.json_files import write_json

FREE = ("Public Domain", "Creative Commons Attribution 3.0")
"""The licenses that ask at most for attribution."""


def make_piece(row: dict[str, Any]) -> PlayablePiece:
    """Return a piece of pitches whose bars fill its time signature, after a pickup of rests.

    Raises:
        ValueError: if its bars or its notes do not lie on such a grid.
    """
    beats, kind = map(int, row["time"].split("/"))
    length = Fraction(4 * beats, kind)
    if (beats, kind) not in TIME_SIGNATURES:
        raise ValueError("a time signature without a token")
    notes = [(Fraction(on), Fraction(lasts), pitch, bar) for on, lasts, pitch, *_, bar in
             row["notes"]]  # fmt: skip
    # A pickup has the number of the first bar, and so says nothing of where bars begin.
    first = min(bar for *_, bar in notes)
    after = [on - (bar - first) * length for on, _, _, bar in notes if bar > first]
    start = min(after, default=Fraction(0))
    start -= length * ceil((start - min(on for on, *_ in notes)) / length)
    lines = {bar - (on - start) // length for on, _, _, bar in notes if bar > first}
    if len(lines) > 1:
        raise ValueError("a meter that changes")
    unit = lcm(*((on - start).denominator for on, *_ in notes), length.denominator)
    unit = next((one for one in NOTATED_STEPS_PER_QUARTER if one % unit == 0), 0)
    if not unit:
        raise ValueError("a grid without a token")
    size = int(length * unit)
    events: dict[int, dict[int, int]] = defaultdict(dict)
    for on, lasts, pitch, _ in notes:
        own = events[int((on - start) * unit)]
        own[pitch] = max(own.get(pitch, 0), round(lasts * unit))
    bars = [
        Bar(size, (), (beats, kind) if n == 0 else None) for n in range(max(events) // size + 1)
    ]
    moments, number = [], Counter[int]()
    for step, own in sorted(events.items()):
        bar, place = divmod(step, size)
        number[bar] += 1
        struck = tuple(
            TabNote(Note(k, pitch), lasts)
            for k, (pitch, lasts) in enumerate(sorted(own.items()), 1)
        )
        pitches = tuple(sorted(own))
        moments.append(PlayableMoment(bar + 1, number[bar], place, pitches, struck))
    tab = Tab(row["title"], bars=tuple(bars), steps_per_quarter=unit, source=row["id"])
    return PlayablePiece(tab, moments)


def finger(piece: PlayablePiece) -> Tab:
    """Return a piece for the first guitar that has its notes, without how long they last.

    Raises:
        ValueError: if no hand can take a chord.
    """
    counts = Counter(pitch for moment in piece.moments for pitch in moment.pitches)
    name, lost = find_nearest_tuning(counts)
    if lost:
        raise ValueError("notes on no guitar")
    options = FingeringOptions(NAMED_TUNINGS[name])
    if len(options.tuning.open_pitches) != 6:
        raise ValueError("notes on no guitar of six strings")
    ((tab, _),), _ = find_fingerings(piece, options)
    return tab.with_events(replace(event, durations=()) for event in tab.iter_events())


def make_tabs(piece: PlayablePiece, keys: range) -> Iterator[tuple[int, Tab]]:
    """Yield a piece in each key that a guitar has it in, with the half steps that it is moved."""
    for half_steps in keys:
        try:
            yield half_steps, finger(piece.transpose(half_steps))
        except ValueError:
            if half_steps == 0:
                raise


def read_header(clone: Path, piece: str) -> dict[str, str]:
    """Return what the first file of a piece says of itself, from the repository's last commit."""
    git = ["git", "-C", str(clone)]

    def ask(*command: str) -> str:
        return subprocess.run(
            [*git, *command], check=True, capture_output=True, encoding="utf-8", errors="replace"
        ).stdout

    names = ask("ls-tree", "-r", "--full-tree", "--name-only", "HEAD", f"ftp/{piece}.ly")
    names = names or ask("ls-tree", "-r", "--full-tree", "--name-only", "HEAD", f"ftp/{piece}/")
    text = ask("show", f"HEAD:{names.splitlines()[0]}")
    return dict(re.findall(r'^\s*(\w+) *= *(?:\\markup *)?"([^"]*)"', text, re.MULTILINE))


def describe(row: dict[str, Any], clone: Path) -> dict[str, str]:
    """Return what is to be said of a piece to whoever uses it.

    Raises:
        ValueError: if the publisher's file has another license than the row.
    """
    header = read_header(clone, row["id"].partition("#")[0])
    licenses = {header.get(name) for name in ("license", "copyright")} - {None}
    if licenses and row["license"] not in licenses:
        raise ValueError(f"{row['id']} is under {' or '.join(map(str, licenses))}")
    family, initials = re.fullmatch(r"(.+?)([A-Z]*)", row["composer"]).groups()  # as "BachJS"
    return {
        **{name: row[name] for name in ("id", "title", "license", "split")},
        "composer": header.get("composer") or " ".join([*(f"{one}." for one in initials), family]),
        "typesetter": header.get("maintainer", "unknown"),
    }


def main() -> None:
    """Write the files, and print what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pieces", type=Path)
    parser.add_argument("clone", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share-alike", action="store_true", help="train on CC BY-SA, too")
    parser.add_argument("--transpose", type=int, default=3, help="most half steps [3]")
    arguments = parser.parse_args()
    left_out: Counter[str] = Counter()
    kept = []
    with gzip.open(arguments.pieces, "rt", encoding="utf-8") as lines:
        rows = list(map(json.loads, lines))
    for row in rows:
        is_valid = row["split"] == "valid"
        if not (is_valid or row["license"] in FREE or arguments.share_alike):
            left_out[f"{row['license']}"] += 1
            continue
        most = 0 if is_valid else arguments.transpose
        folder = arguments.out / ("valid" if is_valid else "train")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            tabs = list(make_tabs(make_piece(row), range(-most, most + 1)))
        except ValueError as error:
            left_out[f"{row['split']}: {str(error).partition(':')[0]}"] += 1
            continue
        for half_steps, tab in tabs:
            write_tab(tab, folder / f"{row['id'].replace('/', '_')}{half_steps:+d}.atex")
        kept.append(describe(row, arguments.clone) | {"keys": len(tabs)})
    write_json(arguments.out / "pieces.json", kept)
    print(json.dumps({"kept": Counter(row["split"] for row in kept), "left_out": left_out}))


if __name__ == "__main__":
    main()
