"""Files of other programs, read by this package and by alphaTab, compared note by note.

    python benchmarks/guitar_files.py FOLDER --output differences.json

reads every Guitar Pro and MusicXML file in a folder and those below it. What both read is compared:
tuning and capo, each note's bar, onset, string and fret, the order in which bars are played, and
every change of tempo. Differences are counted by kind and file type; the output names each file.
The files are anyone's: alphaTab's and PyGuitarPro's own tests are a good thousand.
"""

import argparse
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

from slp_transformer.guitar.formats.registry import FORMATS, read_any_tab_file
from slp_transformer.guitar.playing_order import find_playing_order
from slp_transformer.guitar.tab import ReadProblem, Tab

ALPHATAB = Path(__file__).parents[1] / "docs" / "assets" / "alphatab" / "alphaTab.min.js"
SUFFIXES = {  # that alphaTab reads as well
    suffix
    for name, each in FORMATS.items()
    if each.reader and name not in ("ASCII tab", "MIDI")
    for suffix in each.suffixes
}
FILES_AT_ONCE = 40
TOLERANCE = 0.02  # quarter notes
WITNESS = """
const alphaTab = require(process.argv[1]), fs = require("fs");
console.log = console.warn = console.error = () => {};
for (const path of process.argv.slice(2)) {
  let found;
  try {
    const settings = new alphaTab.Settings(), bytes = new Uint8Array(fs.readFileSync(path));
    const score = alphaTab.importer.ScoreLoader.loadScoreFromBytes(bytes, settings);
    const file = new alphaTab.midi.MidiFile();
    const handler = new alphaTab.midi.AlphaSynthMidiFileHandler(file);
    const generator = new alphaTab.midi.MidiFileGenerator(score, settings, handler);
    generator.generate();
    const staves = score.tracks.flatMap((track) => track.staves);
    found = {
      order: generator.tickLookup.masterBars.map((bar) => bar.masterBar.index),
      tempos: score.masterBars.map((bar) => bar.tempoAutomations
        .map((each) => [each.ratioPosition * bar.calculateDuration() / 960, each.value])),
      staves: staves.map((staff) => ({
        drums: staff.isPercussion, tuning: staff.tuning, capo: staff.capo,
        notes: staff.bars.flatMap((bar) => bar.voices.slice(0, 2).flatMap((voice) => voice.beats
          .filter((beat) => beat.graceType === 0).flatMap((beat) => beat.notes
            .filter((note) => !note.isTieDestination).map((note) => [bar.index,
              (beat.absolutePlaybackStart - bar.masterBar.start) / 960,
              note.isStringed ? staff.tuning.length - note.string + 1 : 0,
              note.isStringed ? note.fret : note.realValue])))),
      })),
    };
  } catch (error) { found = { error: String(error).slice(0, 200) }; }
  fs.writeSync(1, JSON.stringify(found) + "\\n");
}
"""


def ask_alphatab(paths: list[Path]) -> list[dict[str, Any]]:
    """Return what alphaTab reads in each file."""
    words = ["node", "-e", WITNESS, str(ALPHATAB), *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def iter_notes(tab: Tab) -> Iterator[tuple[int, float, int, int]]:
    """Yield bar, onset in it in quarters, string and fret, or pitch on string 0."""
    unit = tab.steps_per_quarter or 1
    for number, bar in enumerate(tab.bars):
        for event in bar.events:
            for note in event.notes:
                onset = round(float(Fraction(event.step, unit)), 2)
                yield (
                    (number, onset, *note)
                    if tab.is_fingered
                    else (number, onset, 0, tab.tuning.pitch_of(note))
                )


def count_unlike(own: list[Any], others: list[Any]) -> int:
    """Return how many notes have no like among the others, within the tolerance."""
    places = defaultdict(list)
    for bar, onset, *place in others:
        places[bar, *place].append(onset)
    return sum(
        not any(abs(onset - other) < TOLERANCE for other in places[bar, *place])
        for bar, onset, *place in own
    )


def list_tempo_changes(
    tempos_by_bar: Iterable[Sequence[tuple[float, float]]],
) -> list[tuple[int, float, int]]:
    """Return bar, quarters from its start and tempo of each change that is one."""
    changes: list[tuple[int, float, int]] = []
    for number, tempos in enumerate(tempos_by_bar, start=1):
        for place, bpm in sorted(tempos):
            if not changes or changes[-1][2] != round(bpm):
                changes.append((number, round(place, 2), round(bpm)))
    return changes


def compare(tabs: list[Tab], witness: dict[str, Any]) -> list[str]:
    """Return the kinds of differences, each with its size."""
    staves = [
        staff
        for staff in witness["staves"]
        if not staff["drums"] and (not staff["tuning"] or 4 <= len(staff["tuning"]) <= 8)
    ]
    found = []
    order = find_playing_order(tabs[0].bars)
    if order != witness["order"]:
        found.append(f"playing order: {len(order)} bars, {len(witness['order'])}")
    unit = tabs[0].steps_per_quarter or 1
    tempos = list_tempo_changes(
        [
            *([(0.0, bar.tempo_bpm)] if bar.tempo_bpm else []),
            *((step / unit, bpm) for step, bpm in bar.tempo_changes),
        ]
        for bar in tabs[0].bars
    )
    others = list_tempo_changes(witness["tempos"])
    if tempos and tempos != others:
        pairs = zip_longest(tempos, others)
        own, other = next((own, other) for own, other in pairs if own != other)
        found.append(f"tempo: {own}, {other} (bar, quarters from its start, tempo)")
    if len(staves) != len(tabs):
        return [*found, f"tracks: {len(tabs)}, {len(staves)}"]
    for tab, staff in zip(tabs, staves, strict=True):
        if tab.is_fingered and list(tab.tuning.open_pitches) != staff["tuning"]:
            found.append(f"tuning: {tab.tuning.open_pitches}, {staff['tuning']}")
        if tab.is_fingered and tab.tuning.capo != staff["capo"]:
            found.append(f"capo: {tab.tuning.capo}, {staff['capo']}")
        own = list(iter_notes(tab))
        if unlike := count_unlike(own, staff["notes"]):
            found.append(f"notes only here: {unlike} of {len(own)}")
        if unlike := count_unlike(staff["notes"], own):
            found.append(f"notes only there: {unlike} of {len(staff['notes'])}")
    return found


def main() -> None:
    """Compare all files and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    paths = sorted(p for p in options.folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    listed: dict[str, dict[str, Any]] = {}
    for start in range(0, len(paths), FILES_AT_ONCE):
        batch = paths[start : start + FILES_AT_ONCE]
        for path, witness in zip(batch, ask_alphatab(batch), strict=True):
            tabs: list[Tab] = []
            problems: list[ReadProblem] = []
            refusal = ""
            try:
                tabs, problems = read_any_tab_file(path)
            except ValueError as error:
                refusal = str(error).replace(str(path), path.name)
            if refusal or "error" in witness:
                both = bool(refusal) and "error" in witness
                kinds = [
                    "refused by both" if both else "refused here" if refusal else "refused there"
                ]
                details = [refusal or witness["error"]]
            else:
                details = compare(tabs, witness)
                kinds = [each.partition(":")[0] for each in details] or ["same"]
            counts[path.suffix.lower()].update(["files", *dict.fromkeys(kinds)])
            if kinds != ["same"]:
                name = path.relative_to(options.folder).as_posix()
                listed[name] = {"differences": details, "said": [p.message for p in problems]}
    for suffix, own in sorted(counts.items()):
        print(suffix, dict(own.most_common()))
    if options.output:
        content = {"counts": counts, "files": listed}
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
