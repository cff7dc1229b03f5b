"""Make small files that are meant to cost much, and see what the command line makes of each.

    python tests/stress/hostile.py --count 500 --seed 1 --out hostile.json

Half are guitar files (numbers that no score has, archives and XML that grow, repeats of repeats,
lengths without a common unit), a sixth published tokenizers (parts that double a text, patterns
that try everything, long templates), a sixth configurations of published models, a sixth what
`hostile_sources.py` makes: tables, texts, weights, chat templates. Each is given to one command. It
is kept if the command does its work or refuses in one sentence with code 2, in at most 5 seconds of
a core and 500 MiB beyond what the process had. A text has 2 more seconds for each megabyte: to
train on it, or to continue it, is work that was asked for.
"""

import ctypes
import json
import random
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mutations
import torch
from hostile_sources import (
    hostile_table,
    hostile_template,
    hostile_text,
    hostile_weights,
    make_guitar_pro,
    pack_gpx,
    times_within,
)
from mutations import ODD, Trial, campaign, change_json, contents, give, main, unheard

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.modern import save_pretrained

mutations.BYTES = 500 << 20

NUMBERS = ["0", "-1", "1", "3", "7", "97", "128", "255", "1000", "65537", "999999", "100000000"]
NUMBERS += [
    "1" + "0" * 30,
    "1e9",
    "1e999999",
    "nan",
    "inf",
    "0.0000001",
    "1/3",
    "x",
    "",
    "9" * 5000,
]
OUTPUTS = ["mid", "gp3", "gp5", "musicxml", "atex", "tab"]
# --- Guitar files --------------------------------------------------------------------------------


def number(draw: random.Random) -> str:
    """A number, most often a harmless one."""
    return draw.choice(NUMBERS) if draw.random() < 0.3 else draw.choice(["1", "2", "4"])


def make_musicxml(draw: random.Random) -> bytes:
    """A score with hostile numbers, or of many or deep elements."""
    n = partial(number, draw)

    def note() -> str:
        pitch = f"<pitch><step>{draw.choice('CDEFGABH')}</step><alter>{n()}</alter>"
        place = f"<string>{n()}</string><fret>{n()}</fret>" if draw.random() < 0.3 else ""
        tie = '<tie type="stop"/>' if draw.random() < 0.2 else ""
        return (
            f"<note>{pitch}<octave>{n()}</octave></pitch><duration>{n()}</duration>{tie}"
            f"<notations><technical>{place}</technical></notations></note>"
        )

    def measure() -> str:
        head = f"<divisions>{n()}</divisions><time><beats>{n()}</beats><beat-type>{n()}</beat-type>"
        repeat = f'<barline><ending number="{n()}" type="start"/></barline>'
        repeat += f'<barline><repeat direction="backward" times="{n()}"/></barline>'
        body = "".join(note() for _ in range(draw.choice([1, 3, 20])))
        body += f"<backup><duration>{n()}</duration></backup><sound tempo='{n()}'/>"
        end = draw.choice([repeat, ""])
        return f"<measure><attributes>{head}</time></attributes>{body}{end}</measure>"

    count = draw.choice([1, 1, 5, 300])
    measures = draw.choice([
        lambda: "".join(measure() for _ in range(count)),
        lambda: (one := measure()) * times_within(one, draw.choice([1, 1000, 20_000])),
        lambda: "<measure/>" * draw.choice([1000, 99_999, 400_000]),
        lambda: "<a>" * 300_000 + measure(),
        lambda: "<measure>" + "<forward><duration>1</duration></forward>" * 200_000 + "</measure>",
        lambda: measure() + "<!--" + "x" * 5_000_000 + "-->",
    ])()  # fmt: skip
    part = f"<part>{measures}</part>"
    parts = part * times_within(part, draw.choice([1, 1, 2, 50]))
    return f"<score-partwise><part-list/>{parts}</score-partwise>".encode()


def make_gpif(draw: random.Random) -> bytes:
    """The XML of a Guitar Pro 7 file, whose lists name each other many times."""
    n, times = partial(number, draw), draw.choice([1, 1, 100, 5_000])
    bar = f"<MasterBar><Time>{n()}/{n()}</Time><Bars>0</Bars></MasterBar>"
    bars = bar * times_within(bar, draw.choice([1, 4, 500, 20_000]))
    beats = " ".join(["0"] * times)
    pitches = draw.choice(["40 45 50 55 59 64", n(), n() * 9])
    return (
        "<GPIF><Score><Title>x</Title></Score><MasterTrack/><MasterBars>"
        f"{bars}</MasterBars><Tracks><Track id='0'><Name>g</Name><Staves><Staff><Properties>"
        f"<Property name='Tuning'><Pitches>{pitches}</Pitches>"
        "</Property></Properties></Staff></Staves></Track></Tracks>"
        "<Bars><Bar id='0'><Voices>0 0 0 -1</Voices></Bar></Bars>"
        f"<Voices><Voice id='0'><Beats>{beats}</Beats></Voice></Voices>"
        f"<Beats><Beat id='0'><Rhythm ref='0'/><Notes>{beats[:9]}</Notes></Beat></Beats>"
        f"<Notes><Note id='0'><Properties><Property name='String'><String>{n()}</String></Property>"
        f"<Property name='Fret'><Fret>{n()}</Fret></Property></Properties></Note></Notes>"
        "<Rhythms><Rhythm id='0'><NoteValue>16th</NoteValue>"
        f"<PrimaryTuplet num='{n()}' den='{n()}'/></Rhythm></Rhythms></GPIF>"
    ).encode()


def pack(path: Path, name: str, content: bytes, draw: random.Random) -> None:
    """Pack a file, by one of the methods that there are, and with much that is empty beside it."""
    methods = [zipfile.ZIP_DEFLATED] * 3 + [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED]
    method = draw.choice(methods)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("META-INF/container.xml", f'<a><b full-path="{name}"/></a>')
        with archive.open(name, "w") as member:
            member.write(content)
            if draw.random() < 0.3:
                filler = draw.choice(
                    [bytes(1 << 20), b"<a/>" * (1 << 18), b"<a b='' c=''/>" * 80_000]
                )
                most = 200 if method == zipfile.ZIP_DEFLATED else 66  # the others pack slowly
                for _ in range(draw.choice([20, 62, most])):
                    member.write(filler)


def make_midi(draw: random.Random) -> bytes:
    """A MIDI file of hostile numbers."""
    ticks = draw.choice([0, 1, 96, 480, 32767, 0x8000, 0xE728])
    tracks = draw.choice([1, 1, 2, 200])

    def far(value: int) -> bytes:
        """A number of the file, seven bits to a byte."""
        rest = [value & 127]
        while value := value >> 7:
            rest.append(value & 127 | 128)
        return bytes(rest[::-1])

    def event() -> bytes:
        delta = far(draw.choice([0, 0, 1, 1, 480, 10**6, (1 << 28) - 1]))
        pitch = draw.randrange(30, 90)
        body = draw.choice([
            bytes([0x90, pitch, 64]), bytes([0x80, pitch, 0]),
            bytes([0x90 | draw.randrange(16), pitch, 1]),
            bytes([0xFF, 0x51, 3, *draw.choice([(0, 0, 0), (0, 0, 1), (255, 255, 255)])]),
            bytes([0xFF, 0x58, 4, *draw.choice([(0, 0), (1, 2), (4, 5), (255, 30)]), 24, 8]),
            bytes([0xFF, 3, 5]) + b"\x1b]0;x", bytes([0xB0, 101, 0]), bytes([0xE0, 0, 127]),
        ])  # fmt: skip
        return delta + body

    content = b"MThd" + struct.pack(">IHHH", 6, draw.choice([0, 1, 2]), tracks, ticks)
    for _ in range(tracks):
        events = b"".join(event() for _ in range(draw.choice([1, 20, 400])))
        events *= draw.choice([1, 1, 20]) if tracks == 1 else 1
        content += b"MTrk" + struct.pack(">I", len(events) + 4) + events + b"\0\xff\x2f\0"
    return content


def make_text(draw: random.Random) -> bytes:
    """AlphaTex or an ASCII tab, of repeated or odd pieces."""
    n = partial(number, draw)
    piece = draw.choice([
        f"\\ts ({n()} {n()}) \\tempo {n()} :16 0.{n()} ", f"r*{n()[:3]} ",
        "(0.1 2.3).8 ", f"\\rc {n()} | ",
        f"3.3.{n()} {{tu {n()[:2]} {n()[:2]}}} ", "\\ro 1.1 | \\rc 99 ", "((((", "0.1{b (0 4)} ",
        "e|--1--12-34|\n", "|-1-2-3-\n", "-" * 50 + "\n", "tuning: " + n() + "\n", "x 99\n",
    ])  # fmt: skip
    more = draw.choice(
        ["e|-1-2-|\nB|-----|\nG|-----|\nD|-----|\nA|-----|\nE|-----|\n", "1.1 2.2 | "]
    )
    text = piece * times_within(piece, draw.choice([1, 50, 3000])) + more
    return (text * times_within(text, draw.choice([1, 3, 60]))).encode()


GUITAR: dict[str, Callable[[random.Random], bytes]] = {
    "musicxml": make_musicxml,
    "gp": make_gpif,
    "mid": make_midi,
    "atex": make_text,
    "tab": make_text,
    "txt": make_text,
    "gpx": lambda draw: pack_gpx(make_gpif(draw), draw),
    "gp3": partial(make_guitar_pro, version=3),
    "gp4": partial(make_guitar_pro, version=4),
    "gp5": partial(make_guitar_pro, version=5),
}


def hostile_guitar_file(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Make a guitar file, and return a command on it."""
    kind = draw.choice(sorted(GUITAR))
    content = GUITAR[kind](draw)
    path = folder / "trial" / f"a.{kind}"
    if kind == "gp":
        pack(path, "Content/score.gpif", content, draw)
    elif kind == "musicxml" and draw.random() < 0.3:
        path = path.with_suffix(".mxl")
        pack(path, "a.xml", content, draw)
    else:
        path.write_bytes(content)
    words = ["tab", str(path)]
    if draw.random() < 0.7:
        words = ["convert", str(path), "-o", str(folder / f"out.{draw.choice(OUTPUTS)}")]
    return words, kind, path


# --- Published tokenizers and configurations -----------------------------------------------------


SLOW_PATTERNS = ["(a+)+$", "(.*)*(.*)*\u0100", "(?=(a+)+)a", "(a{99}){99}"]


def part(draw: random.Random, of: str, depth: int = 0) -> dict:
    """A part of a tokenizer: one that grows, or one of all kinds, or a sequence of them."""
    grow = draw.choice([" ", "  ", "ab", "x" * 9, "", "\u0130" * 30])
    pattern = draw.choice([
        {"String": draw.choice([" ", "a", "", "  "])},
        {"Regex": draw.choice([".", "", " ", "(", *SLOW_PATTERNS])},
    ])  # fmt: skip
    replace = {"type": "Replace", "pattern": pattern, "content": grow}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    prepend = {"type": "Prepend", "prepend": "ab" * draw.choice([1, 999, 99_999])}
    digits = {"type": "Digits", "individual_digits": True}
    plain = {
        "normalizers": [replace, replace, prepend, {"type": "NFKD"}, {"type": "Lowercase"}],
        "pretokenizers": [split, split, {"type": "Whitespace"}, digits],
        "decoders": [replace, replace, {"type": "Fuse"}, {"type": "ByteFallback"}],
    }  # fmt: skip
    if depth < 4 and draw.random() < 0.4:
        count = draw.choice([1, 2, 40, 2000 if depth == 0 else 3])
        own = part(draw, of, depth + 1)
        count = times_within(json.dumps(own), count)
        return {"type": "Sequence", of: [own] * count if draw.random() < 0.7 else [own, *plain[of]]}
    return draw.choice(plain[of])


def hostile_tokenizer(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Make a tokenizer.json beside a sound model, and return a command on it."""
    vocab = {chr(i): i for i in range(32, 127)}
    merges = draw.choice([[], ["a b"], [["a", "a"]]])
    content = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    for name, of in [
        ("normalizer",) * 2,
        ("pre_tokenizer", "pretokenizers"),
        ("decoder", "decoders"),
    ]:
        if draw.random() < 0.6:
            content[name] = part(draw, "normalizers" if name == "normalizer" else of)
    if draw.random() < 0.2:
        special = {
            "<s>": {"id": "<s>", "ids": [1] * draw.choice([1, 999, 99_999]), "tokens": ["<s>"]}
        }
        single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}] * draw.choice([1, 999])
        single += [{"Sequence": {"id": "A", "type_id": 0}}]
        content["post_processor"] = {
            "type": "TemplateProcessing", "single": single, "pair": single,
            "special_tokens": special,
        }  # fmt: skip
    path = folder / "trial" / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    if draw.random() < 0.1:
        change_json(path, draw)
    prompt = draw.choice(["hello world", "a" * 40 + "b", "a b c " * 50])
    model = str(folder / "trial")
    words = ["generate", model, "--prompt", prompt, "--max-new-tokens", "4", "--device", "cpu"]
    return draw.choice([words, words, ["info", model]]), "tokenizer", path


def hostile_config(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Change the configuration of a sound model, several times, and return a command on it."""
    path = folder / "trial" / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(draw.choice([1, 1, 3])):
        key = draw.choice(sorted(content))
        content[key] = draw.choice([*ODD, 10**6, 1 << 24, 10**12, 2**63, "model", 3.5])
    if draw.random() < 0.1:
        content["x"] = json.loads("[" * 300 + "]" * 300)
    path.write_text(json.dumps(content), encoding="utf-8")
    words = ["generate", str(path.parent), "--max-new-tokens", "2", "--device", "cpu"]
    return draw.choice([words, ["info", str(path.parent)]]), "configuration", path


OTHERS = [hostile_table, hostile_text, hostile_weights, hostile_template]
MAKERS = [
    maker
    for other in OTHERS
    for maker in (
        *(hostile_guitar_file, hostile_tokenizer, hostile_guitar_file),
        *(hostile_config, hostile_guitar_file, other),
    )
]


def make(folder: Path) -> None:
    """Make a sound model, and load all that the forks then have."""
    torch.manual_seed(0)
    sizes = {"context_length": 16, "model_dim": 8, "num_heads": 1, "num_blocks": 1}
    save_pretrained(TransformerLM(TransformerConfig(vocab_size=128, **sizes)), folder / "sound")
    draw = random.Random(0)
    model = {"type": "BPE", "vocab": {chr(i): i for i in range(32, 127)}, "merges": []}
    tokenizer = {"version": "1.0", "added_tokens": [], "model": model}
    (folder / "sound" / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    for maker in [*dict.fromkeys(MAKERS)] * 3:
        make_room(folder)
        unheard(maker(folder, draw)[0])


def make_room(folder: Path) -> None:
    """Remove what the last command wrote, and give the next one a sound model."""
    for old in (folder / "trial", *folder.glob("out.*")):
        if old.exists():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(folder / "sound", folder / "trial")


def one_trial(folder: Path, count: int, seed: int) -> Trial:
    """Make a hostile file, and give a command to it."""
    draw = random.Random(f"{seed} {count}")
    make_room(folder)
    words, kind, path = MAKERS[count % len(MAKERS)](folder, draw)
    size = path.stat().st_size
    if sys.platform == "linux":  # else a fork finds room in the heap that making the file left
        ctypes.CDLL(None).malloc_trim(0)
    told = f"{size:,} bytes, {' '.join(word[:40] for word in words)}"
    mutations.SECONDS = 5 + 2 * size / 1e6 if kind == "text" else 5.0
    trial = give(words, folder, kind, told, folder / "trial", contents(folder / "trial"))
    if trial.problem:
        shutil.copy(path, f"lost-{seed}-{count}{path.suffix}")
    return trial


if __name__ == "__main__":
    sys.exit(main(__doc__, partial(campaign, make=make, one_trial=one_trial)))
