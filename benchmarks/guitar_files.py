"""Files of other programs, read by this package and by alphaTab, compared note by note.

    python benchmarks/guitar_files.py FOLDER --output differences.json

reads every Guitar Pro and MusicXML file in a folder and those below it. What both read is compared:
tuning and capo, each note's bar, onset, string and fret, the order in which bars are played, and
every change of tempo. Differences are counted by kind and file type; the output names each file,
and the cause of each difference where a check finds it: all its notes are in bars that hold grace
notes, say, or the reader names what it left out. The files are anyone's: alphaTab's and
PyGuitarPro's own tests are a good thousand.

    python benchmarks/guitar_files.py FOLDER --convert .musicxml .gp5 --output differences.json

has `convert` write each of them as well, and compares what alphaTab reads in the new file with what
it reads in the old one: bar, onset and pitch of each note, and how many tracks have notes.
"""

import argparse
import contextlib
import io
import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

from slp_guitar.commands.convert import execute
from slp_guitar.commands.song_options import ConvertOptions
from slp_guitar.formats.registry import FORMATS, read_any_tab_file
from slp_guitar.playing_order import find_playing_order
from slp_guitar.tab import ReadProblem, Tab

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
      tempos: score.masterBars.map((bar, k) => [
        ...(score.masterBars[k - 1]?.tempoAutomations ?? [])
          .filter((each) => each.ratioPosition >= 1).map((each) => [0, each.value]),
        ...bar.tempoAutomations.filter((each) => each.ratioPosition < 1)
          .map((each) => [each.ratioPosition * bar.calculateDuration() / 960, each.value])]),
      marks: ["grace notes", "beats after the end of their bar", "signs to repeat a bar", "slashes",
        "more than two voices"].map((kind, k) => [kind, staves.flatMap((staff) => staff.bars
          .filter((bar) => {
            const beats = bar.voices.flatMap((voice) => voice.beats);
            const end = bar.masterBar.start + bar.masterBar.calculateDuration();
            return [
              beats.some((beat) => beat.graceType !== 0),
              beats.some((beat) => beat.notes.length && beat.absolutePlaybackStart >= end),
              bar.simileMark > 0,
              beats.some((beat) => beat.slashed || staff.showSlash),
              bar.voices.filter((voice) => !voice.isEmpty).length > 2,
            ][k];
          }).map((bar) => bar.index))]),
      parts: score.tracks.filter((track) => track.staves.some((own) => !own.isPercussion)).length,
      staves: staves.map((staff) => ({
        drums: staff.isPercussion, tuning: staff.tuning, capo: staff.capo,
        notes: staff.bars.flatMap((bar) => bar.voices.filter((voice) => !voice.isEmpty).slice(0, 2)
          .flatMap((voice) => voice.beats
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


def find_unlike(own: list[Any], others: list[Any]) -> list[int]:
    """Return the bar of each note that has no like among the others, within the tolerance."""
    places = defaultdict(list)
    for bar, onset, *place in others:
        places[bar, *place].append(onset)
    return [
        bar
        for bar, onset, *place in own
        if not any(abs(onset - other) < TOLERANCE for other in places[bar, *place])
    ]


SAID_CAUSES = {  # of a kind of difference, by what the reader says
    "notes": (
        "after the end of their bar",
        "ties that continue no note",
        "on a string that is struck already",
        "times are rounded",
        "tied notes",
        "notes without a pitch",
        "microtones are rounded",
        "strings without a fret",
    ),
    "tracks": ("left out, since it is empty",),
    "tempo": ("changes of tempo are moved",),
    "playing order": ("programs differ",),
    "refused here": ("since it is drums", "no track of 4 to 8 strings with notes", "has no notes"),
}


def find_cause(difference: str, bars: Sequence[int], marks: Any, said: Sequence[str]) -> str:
    """Return the cause of a difference, empty for unknown.

    Args:
        difference: what differs.
        bars: where its notes are, from 0.
        marks: pairs of a thing and the bars that hold it, by alphaTab.
        said: what the reader says of the file.
    """
    if difference.startswith("tempo that its bar had before"):
        return "a tempo that a bar has twice is read once by alphaTab"
    held = {bar: [kind for kind, places in marks if bar in places] for bar in bars}
    if held and all(held.values()):
        return ", ".join(sorted({kinds[0] for kinds in held.values()}))
    kind = next((each for each in SAID_CAUSES if difference.startswith(each)), "")
    remarks = [remark for remark in said if any(c in remark for c in SAID_CAUSES.get(kind, ()))]
    return "; ".join(remarks)


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


def _without_repeated_tempos(
    changes: Iterable[tuple[int, float, int]],
) -> list[tuple[int, float, int]]:
    """Return changes without those to a tempo that their bar had before."""
    first = {(bar, bpm): place for bar, place, bpm in reversed(list(changes))}
    return sorted((bar, place, bpm) for (bar, bpm), place in first.items())


def compare(tabs: list[Tab], witness: dict[str, Any]) -> list[tuple[str, list[int]]]:
    """Return the kinds of differences, each with its size, and the bars of its notes."""
    staves = [
        staff
        for staff in witness["staves"]
        if not staff["drums"] and (not staff["tuning"] or 4 <= len(staff["tuning"]) <= 8)
    ]
    found: list[tuple[str, list[int]]] = []
    order = find_playing_order(tabs[0].bars)
    if order != witness["order"]:
        found.append((f"playing order: {len(order)} bars, {len(witness['order'])}", []))
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
        is_known = _without_repeated_tempos(tempos) == _without_repeated_tempos(others)
        kind = "tempo that its bar had before" if is_known else "tempo"
        found.append((f"{kind}: {own}, {other} (bar, quarters from its start, tempo)", []))
    if len(staves) != len(tabs):
        return [*found, (f"tracks: {len(tabs)}, {len(staves)}", [])]
    for tab, staff in zip(tabs, staves, strict=True):
        if tab.is_fingered and list(tab.tuning.open_pitches) != staff["tuning"]:
            found.append((f"tuning: {tab.tuning.open_pitches}, {staff['tuning']}", []))
        if tab.is_fingered and tab.tuning.capo != staff["capo"]:
            found.append((f"capo: {tab.tuning.capo}, {staff['capo']}", []))
        own = list(iter_notes(tab))
        if unlike := find_unlike(own, staff["notes"]):
            found.append((f"notes only here: {len(unlike)} of {len(own)}", unlike))
        if unlike := find_unlike(staff["notes"], own):
            found.append((f"notes only there: {len(unlike)} of {len(staff['notes'])}", unlike))
    return found


def list_pitches(witness: dict[str, Any]) -> tuple[list[Any], int]:
    """Return bar, onset and pitch of each note in alphaTab, and how many staves have notes."""
    staves = [own for own in witness["staves"] if not own["drums"] and own["notes"]]
    found = []
    for own in staves:
        for bar, onset, string, fret in own["notes"]:
            is_known = 0 < string <= len(own["tuning"])
            start = own["tuning"][string - 1] + own["capo"] if is_known else 0
            found.append((bar, onset, start + fret))
    return found, len(staves)


def compare_written(old: dict[str, Any], new: dict[str, Any], said: str) -> tuple[str, str]:
    """Return what became of a file that was converted, and how much of it differs."""
    if "error" in old or "error" in new:
        return "not read by alphaTab", str(old.get("error", new.get("error")))
    (before, tracks), (after, tracks_after) = list_pitches(old), list_pitches(new)
    lost, more = find_unlike(before, after), find_unlike(after, before)
    size = f"{len(lost)} of {len(before)} notes lost, {len(more)} more; {tracks} and {tracks_after}"
    if not (lost or more):
        return "same" if tracks_after == tracks else "same notes, on other staves", size
    is_named = any(words in said for words in ("left out", "does not hold", "rounded", "differ"))
    names = "something is named" if is_named else "nothing is named"
    return ("a track fewer" if tracks_after < tracks else "notes differ") + f", {names}", size


def convert_all(folder: Path, paths: Sequence[Path], suffix: str) -> dict[str, Any]:
    """Convert files, and return for each what alphaTab finds changed, and what was said."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for start in range(0, len(paths), FILES_AT_ONCE):
            written: dict[Path, tuple[Path, str]] = {}
            for number, path in enumerate(paths[start : start + FILES_AT_ONCE], start):
                name, said = path.relative_to(folder).as_posix(), io.StringIO()
                out = Path(place) / f"{number}{suffix}"
                try:
                    with contextlib.redirect_stderr(said):
                        execute(ConvertOptions(song=path, output=out))
                    written[path] = out, said.getvalue()
                except ValueError as error:
                    found[name] = ("refused", str(error).replace(str(path), path.name))
            old = ask_alphatab([*written])
            new = ask_alphatab([out for out, _ in written.values()])
            for (path, (_, said)), a, b in zip(written.items(), old, new, strict=True):
                found[path.relative_to(folder).as_posix()] = compare_written(a, b, said)
    return found


def main() -> None:
    """Compare all files and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--convert", nargs="+", metavar="SUFFIX", help="compare what is written")
    options = parser.parse_args()
    paths = sorted(p for p in options.folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    if options.convert:
        written = {own: convert_all(options.folder, paths, own) for own in options.convert}
        for own, files in written.items():
            print(own, dict(Counter(kind for kind, _ in files.values()).most_common()))
        if options.output:
            unlike = {
                own: {name: each for name, each in files.items() if each[0] != "same"}
                for own, files in written.items()
            }
            options.output.write_text(json.dumps(unlike, indent=1) + "\n", encoding="utf-8")
        return
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
                details = [(refusal or witness["error"], [])]
            else:
                details = compare(tabs, witness)
                kinds = [each.partition(":")[0] for each, _ in details] or ["same"]
            counts[path.suffix.lower()].update(["files", *dict.fromkeys(kinds)])
            if kinds != ["same"]:
                name = path.relative_to(options.folder).as_posix()
                said = [p.message for p in problems]
                marks = witness.get("marks", ())
                causes = {}
                for each, bars in details:
                    kind = each if not refusal else f"refused here: {each}"
                    causes[each] = find_cause(kind, bars, marks, [*said, refusal])
                    if kind.startswith("tracks") and witness["parts"] == len(tabs):
                        causes[each] = "parts on several staves, which are tracks there"
                listed[name] = {"differences": causes, "said": said}
                is_known = all(causes.values()) or "error" in witness
                counts[path.suffix.lower()]["cause found" if is_known else "cause unknown"] += 1
    for suffix, own in sorted(counts.items()):
        print(suffix, dict(own.most_common()))
    if options.output:
        content = {"counts": counts, "files": listed}
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
