"""Damage guitar files of each kind in many ways, and see what reading them makes of each.

    python tests/stress/guitar_files.py --count 1000 --out results/guitar_files.json

Each trial writes a practice piece as a file of one kind (ASCII, MIDI, Guitar Pro 3, 4 and 5,
MusicXML, alphaTex), or an excerpt in GuitarSet's form, alone or in an archive; damages it; and
reads it. Where Node.js is, alphaTab writes Guitar Pro 7 files (`.gp`), and most damage is done to
the XML in them. It is kept if the file is read, or refused by a ValueError of one sentence, in at
most 5 seconds of processor time and 1 GiB beyond what the process had. The last lines count each
kind.
"""

import json
import random
import shutil
import sys
import time
import traceback
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from alphatab import export_guitar_pro_7
from mutations import BYTES, SECONDS, Trial, cut, flip, high_water, insert, main, make_trials

from slp_guitar.formats.notation import with_durations_filled
from slp_guitar.formats.registry import read_any_tab_file, write_tab
from slp_guitar.guitarset import read_guitarset_tabs
from slp_guitar.practice import make_practice_corpus
from slp_guitar.tab import Tab
from slp_guitar.timing import bar_start_steps

KINDS = (".txt", ".mid", ".gp3", ".gp4", ".gp5", ".musicxml", ".atex", ".jams", ".zip")
KINDS += (".gp",) if shutil.which("node") else ()
WORDED, XML = (".txt", ".atex", ".jams"), (".musicxml", ".gp")
SCORE = "Content/score.gpif"
HUGE = (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\x7f\xff\xff\xff", b"\xff" * 9)
LONG = ("9" * 40, "-1", "1e308", "nan", "0", "(" * 3000, "{" * 3000, "-" * 3000, "[" * 3000)


def excerpt_of(tab: Tab) -> bytes:
    """A piece as GuitarSet would have it, at 120 quarter notes a minute."""
    strings: dict[int, list[dict[str, float]]] = {string: [] for string in range(6)}
    tab = with_durations_filled(tab)
    unit = 2 * (tab.steps_per_quarter or 1)
    for start, bar in zip(bar_start_steps(tab), tab.bars, strict=False):
        for event in bar.events:
            for each in event.tab_notes():
                strings[6 - min(each.note.string, 6)].append({
                    "time": (start + event.step) / unit, "duration": each.duration_steps / unit,
                    "value": tab.tuning.pitch_of(each.note) + 0.1,
                })  # fmt: skip
    beat = {"measure": 1, "num_beats": 4, "beat_units": 4}
    annotations = [
        {"namespace": "note_midi", "annotation_metadata": {"data_source": str(s)}, "data": data}
        for s, data in strings.items()
    ]
    beats = [{"time": i / 2, "value": {"position": i % 4 + 1, **beat}} for i in range(64)]
    annotations.append({"namespace": "beat_position", "data": beats})
    chord = {"time": 0.0, "duration": 2.0, "value": "C:maj"}
    annotations += [{"namespace": "chord", "data": [chord]}] * 2
    return json.dumps({"annotations": annotations}).encode()


@cache
def _guitar_pro_7(tab: Tab, folder: Path) -> bytes:
    """Return a piece as alphaTab would save it for Guitar Pro 7."""
    source, target = folder / "piece.atex", folder / "piece.gp"
    write_tab(tab, source)
    export_guitar_pro_7(source, target)
    return target.read_bytes()


def write(tab: Tab, kind: str, folder: Path) -> Path:
    """Write a piece as a file of one kind."""
    name = "00_SS1-120-C_solo"
    path = folder / f"{name}{kind}"
    if kind == ".jams":
        path.write_bytes(excerpt_of(tab))
    elif kind == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}.jams", excerpt_of(tab))
    elif kind == ".gp":
        path.write_bytes(_guitar_pro_7(tab, folder))
    else:
        write_tab(tab, path)
    return path


def overwrite(path: Path, draw: random.Random) -> str:
    content, number = bytearray(path.read_bytes()), draw.choice(HUGE)
    place = draw.randrange(len(content))
    content[place : place + len(number)] = number
    path.write_bytes(content)
    return f"{number.hex()} over byte {place}"


def repeat(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    start = draw.randrange(len(content))
    stretch = content[start : start + draw.choice([1, 4, 30, 300])]
    times = draw.choice([2, 100, min(3000, 300_000 // len(stretch))])
    path.write_bytes(content[:start] + stretch * times + content[start:])
    return f"{len(stretch)} bytes at {start} repeated {times} times"


def exchange(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    a, b, c = sorted(draw.randrange(len(content) + 1) for _ in range(3))
    path.write_bytes(content[:a] + content[b:c] + content[a:b] + content[c:])
    return f"bytes {a} to {b} and {b} to {c} exchanged"


def reword(path: Path, draw: random.Random) -> str:
    words = path.read_bytes().decode("utf-8", errors="replace").split(" ")
    for _ in range(draw.choice([1, 1, 3, 20])):
        words[draw.randrange(len(words))] = draw.choice([*LONG, draw.choice(words)])
    path.write_text(" ".join(words), encoding="utf-8")
    return "words replaced"


def rewrite_xml(path: Path, draw: random.Random) -> str:
    """Change elements of XML, so that it stays XML: their words, number, order and attributes."""
    root = ET.fromstring(path.read_bytes())
    for _ in range(draw.choice([1, 1, 3, 20])):
        parent = draw.choice([each for each in root.iter() if len(each)])
        elements = list(root.iter())
        child, other = draw.choice(parent), draw.choice(elements)
        match draw.choice(["text", "text", "text", "attribute", "remove", "repeat", "move"]):
            case "text":
                child.text = draw.choice([*LONG, "", other.text])
            case "attribute" if child.attrib:
                child.set(
                    draw.choice(list(child.attrib)), draw.choice([*LONG, other.get("id", "")])
                )
            case "repeat" if len(elements) < 9000:
                times = min(draw.choice([1, 20, 5000]), 30_000 // len(list(child.iter())))
                parent[:] = [*parent, *[child] * times]
            case "move" if len(parent) > 1:
                parent[:] = draw.sample(list(parent), len(parent))
            case _:
                parent.remove(child)
    path.write_bytes(ET.tostring(root))
    return "elements changed"


def damage_score(way: Callable[[Path, random.Random], str], path: Path, draw: random.Random) -> str:
    """Damage the XML in a Guitar Pro 7 file, and pack it again."""
    score = path.with_suffix(".gpif")
    with zipfile.ZipFile(path) as archive:
        score.write_bytes(archive.read(SCORE))
    told = way(score, draw)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SCORE, score.read_bytes())
    return f"in its XML: {told}"


WAYS = (flip, flip, flip, cut, insert, overwrite, overwrite, repeat, exchange)


def one_trial(folder: Path, kind: str, number: int, seed: int, tabs: list[Tab]) -> Trial:
    """Damage a file, and read it."""
    draw = random.Random(f"{seed} {kind} {number}")
    path = write(draw.choice(tabs), kind, folder)
    ways = (*WAYS, *[reword] * 3 * (kind in WORDED), *[rewrite_xml] * 20 * (kind in XML))
    way = draw.choice(ways)
    told = way(path, draw) if kind != ".gp" else damage_score(way, path, draw)
    ways = WAYS if kind in XML else ways  # a second way damages the archive, or the XML's form
    if draw.random() < (0.1 if kind in XML else 0.3) and path.stat().st_size:
        told += "; " + draw.choice(ways)(path, draw)
    before, begun = high_water(reset=True), time.process_time()
    problem = ""
    try:
        read = read_guitarset_tabs if kind in (".jams", ".zip") else read_any_tab_file
        tabs_read, problems = read(path)
        outcome = "read" if not problems else "read in part"
        if any(len(str(each)) > 500 or "\n" in str(each) for each in problems):
            problem = "a problem is no sentence"
    except ValueError as error:
        outcome = "refused"
        if not str(error).strip() or "\n" in str(error) or len(str(error)) > 600:
            problem = f"no sentence: {str(error)[:200]!r}"
    except BaseException:
        outcome, problem = "failed", traceback.format_exc()[-600:]
    seconds = time.process_time() - begun
    memory = max(0, high_water() - before)
    if seconds > SECONDS or memory > BYTES:
        problem = f"{seconds:.1f} s, {memory >> 20} MiB"
    return Trial(kind, told, outcome, seconds, memory >> 20, problem)


def campaign(count: int, seed: int) -> list[Trial]:
    tabs, every = make_practice_corpus(0, 40), product(KINDS, range(count))
    with TemporaryDirectory(prefix="slp-transformer-") as folder:
        return make_trials(one_trial(Path(folder), *which, seed, tabs) for which in every)


if __name__ == "__main__":
    sys.exit(main(__doc__, campaign))
