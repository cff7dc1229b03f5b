"""The time that is found in ASCII tabs, against the MIDI files that their writers published.

    python benchmarks/guitar_time.py CLASSTAB --output time.json

CLASSTAB holds `*.jsonl` with an object a piece (`file`, and `events` of bar, notes and the onset in
quarters that its MIDI file has) and, in a folder `raw`, the tabs. A note counts as right if it is
as long after the first one of its bar as in the MIDI file, up to one factor for the whole piece,
since a tab may be written in other note values. Beside it is the best that any number of columns
to a quarter note does, which is what a flag can say. Of two bars one after the other the length of
the first is compared as well, by how far their first notes are apart. A bar counts as padded or cut
if the time behind its last note is another by more than three quarters of a quarter note than the
share of its columns there; bars with letters, which say their lengths, do not count.
"""

import argparse
import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from slp_guitar.ascii.reader import read_tab_file
from slp_guitar.tab import Tab
from slp_guitar.text_time import infer_timing
from slp_guitar.timing import bar_start_steps

FACTORS = [Fraction(*each) for each in ((1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (3, 2), (2, 3))]
COLUMNS_PER_QUARTER = (1, 2, 3, 4, 6, 8, 12)
TOLERANCE = 0.07  # quarter notes
MAX_MOVED_END = 0.75  # quarter notes
MAX_BARS_AHEAD = 6  # that are searched for the bar with the same notes

Moments = list[tuple[float, tuple[tuple[int, int], ...]]]


def iter_bars(tab: Tab) -> Iterator[Moments]:
    """Yield the moments of each bar: onset in quarters, or columns, and places."""
    unit = tab.steps_per_quarter or 1
    for bar in tab.bars:
        yield [(event.step / unit, tuple(sorted(map(tuple, event.notes)))) for event in bar.events]


def match_bars(tab: Tab, events: list[Any]) -> Iterator[tuple[Moments, Moments]]:
    """Yield the bars of a tab and of the MIDI file that have the same notes, in order."""
    truth: dict[int, Moments] = {}
    for bar, places, *timing in events:
        if timing and timing[0] is not None:
            notes = tuple(sorted((6 - string, fret) for string, fret in places))
            truth.setdefault(bar, []).append((timing[0], notes))
    bars, first = [truth[bar] for bar in sorted(truth)], 0
    for own in iter_bars(tab):
        for place in range(first, min(first + MAX_BARS_AHEAD, len(bars)) if own else first):
            if [notes for _, notes in bars[place]] == [notes for _, notes in own]:
                yield own, bars[place]
                first = place + 1
                break


def count_right(pairs: list[tuple[Moments, Moments]], factor: Fraction) -> int:
    """Return how many notes after the first of their bar are as far from it as in the MIDI file."""
    return sum(
        abs((now - own[0][0]) * float(factor) - (then - other[0][0])) < TOLERANCE
        for own, other in pairs
        for (now, _), (then, _) in zip(own[1:], other[1:], strict=True)
    )


def count_right_lengths(
    tab: Tab, pairs: list[tuple[Moments, Moments]], factor: Fraction
) -> tuple[int, int]:
    """Return how many bars with the next have both in the MIDI file, and how many are as long."""
    unit, starts = tab.steps_per_quarter or 1, bar_start_steps(tab)
    places, place = [], 0
    bars = list(iter_bars(tab))
    for own, other in pairs:
        place = bars.index(own, place) + 1
        places.append((place - 1, own, other))
    known = right = 0
    for (place, own, other), (after, next_own, next_other) in pairwise(places):
        if after == place + 1:
            length = (starts[after] - starts[place]) / unit + next_own[0][0] - own[0][0]
            known += 1
            right += abs(length * float(factor) - (next_other[0][0] - other[0][0])) < TOLERANCE
    return known, right


def count_padded_or_cut(tab: Tab, timed: Tab) -> int:
    """Return how many bars between the first and the last have more time at their end, or less."""
    unit = timed.steps_per_quarter or 1
    count = 0
    for own, bar in zip(tab.bars[1:-1], timed.bars[1:-1], strict=True):
        if own.events and not own.stated_onsets:
            drawn = Fraction(own.steps - own.events[-1].step, own.steps) * bar.steps
            count += abs(drawn - (bar.steps - bar.events[-1].step)) > MAX_MOVED_END * unit
    return count


def measure(path: Path, raw: Path) -> dict[str, Any]:
    """Return the counts over the pieces of a file."""
    counts = dict.fromkeys(("pieces", "without a flag", "stated", "bars", "bars that fit"), 0)
    counts |= dict.fromkeys(("bars where stated", "bars in the stated meter"), 0)
    counts |= dict.fromkeys(("notes", "right", "right by the best flag"), 0)
    counts |= dict.fromkeys(("lengths of bars", "right lengths"), 0)
    counts |= dict.fromkeys(("bars padded or cut", "pieces with no bar padded or cut"), 0)
    whole = ("pieces whose bars all fit", "pieces with known lengths")
    counts |= dict.fromkeys((*whole, "pieces whose known lengths are all right"), 0)
    for line in path.read_text(encoding="utf-8").splitlines():
        piece = json.loads(line)
        tab = max(read_tab_file(raw / piece["file"])[0], key=lambda each: len(each.bars))
        counts["pieces"] += 1
        counts["stated"] += tab.stated_time_signature is not None
        try:
            found = infer_timing(tab)
        except ValueError:
            continue
        counts["without a flag"] += 1
        counts["bars"] += len(tab.bars)
        counts["bars that fit"] += len(tab.bars) - len(found.unfit_bars)
        counts["pieces whose bars all fit"] += not found.unfit_bars
        moved = count_padded_or_cut(tab, found.tab)
        counts["bars padded or cut"] += moved
        counts["pieces with no bar padded or cut"] += not moved
        if (meter := tab.stated_time_signature) is not None:
            length = Fraction(4 * meter[0], meter[1]) * (found.tab.steps_per_quarter or 1)
            counts["bars where stated"] += len(tab.bars)
            counts["bars in the stated meter"] += sum(b.steps == length for b in found.tab.bars)
        pairs = list(match_bars(found.tab, piece["events"]))
        plain = list(match_bars(tab, piece["events"]))
        counts["notes"] += sum(len(own) - 1 for own, _ in pairs)
        best = max(FACTORS, key=lambda factor: count_right(pairs, factor))  # noqa: B023
        counts["right"] += count_right(pairs, best)
        known, right = count_right_lengths(found.tab, pairs, best)
        counts["lengths of bars"] += known
        counts["right lengths"] += right
        counts["pieces with known lengths"] += known > 0
        counts["pieces whose known lengths are all right"] += 0 < known == right
        flags = (Fraction(1, columns) for columns in COLUMNS_PER_QUARTER)
        counts["right by the best flag"] += max(count_right(plain, flag) for flag in flags)
    return counts


def main() -> None:
    """Measure all splits and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = {
        path.stem: measure(path, options.folder / "raw")
        for path in sorted(options.folder.glob("*.jsonl"))
    }
    for name, counts in found.items():
        print(name, counts)
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
