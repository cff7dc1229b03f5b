"""alphaTab in Node.js, which writes the files that Guitar Pro 7 and 8 save."""

import subprocess
from pathlib import Path

ALPHATAB = Path(__file__).parents[2] / "docs" / "assets" / "alphatab" / "alphaTab.min.js"
EXPORT = """
const alphaTab = require(process.argv[1]), fs = require("fs"), settings = new alphaTab.Settings();
const content = new Uint8Array(fs.readFileSync(process.argv[2]));
const score = alphaTab.importer.ScoreLoader.loadScoreFromBytes(content, settings);
fs.writeFileSync(process.argv[3], new alphaTab.exporter.Gp7Exporter().export(score, settings));
"""


def export_guitar_pro_7(source: Path, target: Path) -> None:
    """Write a file that alphaTab reads as one of Guitar Pro 7."""
    words = ["node", "-e", EXPORT, str(ALPHATAB), str(source), str(target)]
    subprocess.run(words, check=True, timeout=600)
