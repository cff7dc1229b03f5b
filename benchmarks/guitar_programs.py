"""What other programs keep of the guitar files that we write, as they write it out again.

    python benchmarks/guitar_programs.py --out results/guitar_programs.json

Practice studies, some with a capo, all with a repeat, are written as each kind of file. MuseScore 3
(`mscore3`) reads it and writes MusicXML; alphaTab, as the site has it, reads it in Node.js and
writes Guitar Pro 7; TuxGuitar's own classes, as Debian has them, read it in Java and write Guitar
Pro 5. All are read back here. A program that is not there is left out.
"""

import argparse
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from slp_guitar.formats.notation import with_durations_filled
from slp_guitar.formats.registry import read_any_tab_file, write_tab
from slp_guitar.fretboard import DADGAD, DROP_D, STANDARD, Tuning
from slp_guitar.playing_order import expand_repeats
from slp_guitar.practice import make_practice_studies
from slp_guitar.tab import Tab
from slp_guitar.timing import bar_start_steps

ALPHATAB = Path(__file__).parents[1] / "docs" / "assets" / "alphatab" / "alphaTab.min.js"
EXPORT = """
const alphaTab = require(process.argv[1]), fs = require("fs"), settings = new alphaTab.Settings();
const content = new Uint8Array(fs.readFileSync(process.argv[2]));
const score = alphaTab.importer.ScoreLoader.loadScoreFromBytes(content, settings);
fs.writeFileSync(process.argv[3], new alphaTab.exporter.Gp7Exporter().export(score, settings));
"""
TUXGUITAR = Path("/usr/share/tuxguitar")
CONVERT = """
import java.io.*;
import java.util.ServiceLoader;
import org.herac.tuxguitar.io.base.*;
import org.herac.tuxguitar.song.factory.TGFactory;
import org.herac.tuxguitar.song.managers.TGSongManager;
import org.herac.tuxguitar.util.TGContext;
import org.herac.tuxguitar.util.plugin.TGPlugin;

class Convert {
    public static void main(String[] paths) throws Exception {
        TGContext context = new TGContext();
        for (TGPlugin plugin : ServiceLoader.load(TGPlugin.class))
            if (plugin.getClass().getName().matches(".*[.]io[.](gtp|midi)[.].*"))
                plugin.connect(context);
        TGFileFormatManager formats = TGFileFormatManager.getInstance(context);
        TGSongReaderHandle in = new TGSongReaderHandle();
        TGSongWriterHandle out = new TGSongWriterHandle();
        for (TGSongPersistenceHandle each : new TGSongPersistenceHandle[] {in, out}) {
            each.setFactory(new TGFactory());
            each.setContext(new TGSongStreamContext());
        }
        in.setFormat(formats.findReaderFileFormatByCode(paths[0].replaceAll(".*[.]", "")));
        in.setInputStream(new FileInputStream(paths[0]));
        formats.read(in);
        // Its window does this with every song that it shows: rests between notes, in order.
        TGSongManager manager = new TGSongManager();
        manager.autoCompleteSilences(in.getSong());
        manager.orderBeats(in.getSong());
        out.setFormat(formats.findWriterFileFormatByCode("gp5"));
        out.setSong(in.getSong());
        out.setOutputStream(new FileOutputStream(paths[1]));
        formats.write(out);
    }
}
"""
COLUMNS = ("notes", "strings", "durations", "tuning", "capo", "tempo", "repeats")
PROGRAMS = {
    "MuseScore": (".musicxml", ".musicxml without capo", ".gp5", ".gp4", ".mid"),
    "alphaTab": (".gp5", ".gp4", ".gp3", ".atex", ".musicxml"),
    "TuxGuitar": (".gp5", ".gp4", ".gp3", ".mid"),
}
EXECUTABLES = {"MuseScore": "mscore3", "alphaTab": "node", "TuxGuitar": "tuxguitar"}
OUTPUTS = {"MuseScore": "out.musicxml", "alphaTab": "out.gp", "TuxGuitar": "out.gp5"}


def make_pieces() -> list[Tab]:
    """Return the pieces: twelve studies, on four guitars, each with a repeat."""
    guitars = (STANDARD, Tuning(STANDARD.open_pitches, 2), DROP_D, Tuning(DADGAD.open_pitches, 3))
    pieces = []
    for number, study in enumerate(make_practice_studies(0, 12)):
        bars = list(study.tab.bars)
        bars[0] = replace(bars[0], tempo_bpm=60 + 7 * number)
        bars[1] = replace(bars[1], starts_repeat=True)
        bars[-1] = replace(bars[-1], num_plays=2)
        guitar = guitars[number % len(guitars)]
        pieces.append(replace(study.tab, tuning=guitar, bars=tuple(bars)))
    return pieces


def read_out(program: str, path: Path) -> list[Tab]:
    """Have a program read a file and write it out; return its tracks, none if it does not."""
    out = path.with_name(OUTPUTS[program])
    out.unlink(missing_ok=True)
    command = ["mscore3", "-o", str(out), str(path)]
    if program == "alphaTab":
        command = ["node", "-e", EXPORT, str(ALPHATAB), str(path), str(out)]
    if program == "TuxGuitar":
        source = path.with_name("Convert.java")
        source.write_text(CONVERT, encoding="utf-8")
        jars = os.pathsep.join(map(str, TUXGUITAR.glob("[lp]*/*.jar")))
        command = ["java", "-cp", jars, str(source), str(path), str(out)]
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    return read_any_tab_file(out)[0] if out.exists() else []


def iter_details(tab: Tab) -> Iterator[tuple[object, ...]]:
    """Each thing that a piece says, after the column that it counts for."""
    yield "tuning", tab.tuning.open_pitches
    yield "capo", tab.tuning.capo
    unit, tempo = tab.steps_per_quarter or 1, 0
    for start, bar in zip(bar_start_steps(tab), with_durations_filled(tab).bars, strict=False):
        if bar.tempo_bpm not in (None, tempo):
            tempo = bar.tempo_bpm or 0
            yield "tempo", start / unit, tempo
        if bar.starts_repeat or bar.num_plays > 1:
            yield "repeats", start / unit, bar.starts_repeat, bar.num_plays
        for event in bar.events:
            for each in event.tab_notes():
                onset = Fraction(start + event.step, unit)
                pitch = tab.tuning.pitch_of(each.note)
                yield "notes", onset, pitch
                yield "strings", onset, each.note
                yield "durations", onset, pitch, Fraction(each.duration_steps, unit)


def measure(program: str, kind: str, pieces: list[Tab]) -> dict[str, tuple[int, int]]:
    """Return for each column how many of how many details a program kept."""
    kept, there = Counter[str](), Counter[str]()
    for piece in pieces:
        suffix, _, without_capo = kind.partition(" ")
        if without_capo:
            raised = (pitch + piece.tuning.capo for pitch in piece.tuning.open_pitches)
            piece = replace(piece, tuning=Tuning(tuple(raised)))
        with TemporaryDirectory() as folder:
            write_tab(piece, Path(folder) / f"piece{suffix}")
            read = read_out(program, Path(folder) / f"piece{suffix}")
        before = Counter(iter_details(expand_repeats(piece) if suffix == ".mid" else piece))
        after = Counter(detail for tab in read for detail in iter_details(tab))
        for detail, count in before.items():
            there[str(detail[0])] += count
            kept[str(detail[0])] += min(count, after[detail])
    return {column: (kept[column], there[column]) for column in COLUMNS}


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    pieces, rows = make_pieces(), {}
    print("| program | reads | " + " | ".join(COLUMNS) + " |\n" + "|---" * (2 + len(COLUMNS)) + "|")
    for program, kinds in PROGRAMS.items():
        if shutil.which(EXECUTABLES[program]) is None:
            print(f"{program} is not there.")
            continue
        for kind in kinds:
            rows[f"{program} {kind}"] = found = measure(program, kind, pieces)
            cells = (f"{kept:,} of {count:,}" for kept, count in found.values())
            print(f"| {program} | {kind} | " + " | ".join(cells) + " |", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
