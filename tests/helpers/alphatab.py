"""alphaTab in Node.js: it writes the files that Guitar Pro 7 and 8 save, and compares them."""

import json
import subprocess
from pathlib import Path

ALPHATAB = Path(__file__).parents[2] / "docs" / "assets" / "alphatab" / "alphaTab.min.js"
EXPORT = """
const alphaTab = require(process.argv[1]), fs = require("fs"), settings = new alphaTab.Settings();
const content = new Uint8Array(fs.readFileSync(process.argv[2]));
const score = alphaTab.importer.ScoreLoader.loadScoreFromBytes(content, settings);
fs.writeFileSync(process.argv[3], new alphaTab.exporter.Gp7Exporter().export(score, settings));
"""

COMPARE = """
const alphaTab = require(process.argv[1]), fs = require("fs"), settings = new alphaTab.Settings();
const shown = process.argv.slice(2).map((file) => {
  const content = new Uint8Array(fs.readFileSync(file));
  const score = alphaTab.importer.ScoreLoader.loadScoreFromBytes(content, settings);
  const midi = new alphaTab.midi.MidiFile();
  const handler = new alphaTab.midi.AlphaSynthMidiFileHandler(midi);
  new alphaTab.midi.MidiFileGenerator(score, settings, handler).generate();
  const page = alphaTab.model.JsonConverter.scoreToJson(score).replace(/"id":[0-9]+/gi, "");
  return page + JSON.stringify(midi.tracks.map((track) => track.events));
});
console.log(JSON.stringify(shown.map((one) => one === shown[0])));
"""


def sound_and_look_alike(first: Path, *others: Path) -> list[bool]:
    """For each file, whether alphaTab makes the same score and the same sounds of it as of one."""
    words = ["node", "-e", COMPARE, str(ALPHATAB), str(first), *map(str, others)]
    told = subprocess.run(words, check=True, timeout=600, capture_output=True, encoding="utf-8")
    return json.loads(told.stdout)[1:]


def export_guitar_pro_7(source: Path, target: Path) -> None:
    """Write a file that alphaTab reads as one of Guitar Pro 7."""
    words = ["node", "-e", EXPORT, str(ALPHATAB), str(source), str(target)]
    subprocess.run(words, check=True, timeout=600)
