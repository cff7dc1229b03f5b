"""Hostile files that are no scores: tables of pairs, texts, weights, chat templates.

`hostile.py` gives each to a command; a maker returns the command, its kind, and the file.
"""

import gzip
import json
import random
import struct
from pathlib import Path

from slp_guitar.formats.guitar_pro import format_guitar_pro
from slp_guitar.practice import make_practice_corpus

TRAIN = """--model-dim 8 --num-heads 1 --num-blocks 1 --steps 1 --batch-size 2 --device cpu
    --quiet""".split()
ODD_TEXTS = [
    "\n" * 100_000, "a" * 3_000_000, " " * 1_000_000, "\0" * 9999, "a\r" * 50_000,
    "\u202e\x1b]0;x\x07" * 999, "".join(map(chr, range(32, 0xD800, 7))), "é" * 99_999, "\ufeff" * 9,
    "a\u0301" * 9999 + "\n", "a b " * 200_000, "",
]  # fmt: skip
ODD_BYTES = [b"\xff\xfe" + b"a\0" * 999, b"\xed\xa0\x80", b"\x1f\x8b\x08", b"PK\x03\x04", b"\x80"]
CELLS = ["a", "", '"', '""', '"a\nb"', "a" * 200_000, "\x1b[2J", "\0", "é", "1,2", "\t", "=1+1"]
MAX_MADE_BYTES = 24 << 20  # of what is made, which is more than any reader takes
MAX_PROMPTS = 1000  # of a file, each of which is answered
TEMPLATES = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% macro f(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "{{ 'ab' * 9999999 }}{{ 'ab' * 99999999 }}", "{{ range(10**9) | list }}", "{{ [0] * 10**8 }}",
    "{% set x = namespace(a='ab') %}{% for i in range(99) %}{% set x.a = x.a ~ x.a %}{% endfor %}",
    "{{ messages.__class__.__mro__ }}", "{{ ''.join(['a' * 999999] * 999) }}",
    "{{ 'x' | center(10 ** 10) }}", "{{ '%099999999d' | format(1) }}", "{{ ((9 ** 9) ** 9) ** 9 }}",
    "{{ cycler.__init__.__globals__ }}", "{% include '/etc/passwd' %}", "{{ raise_exception(7) }}",
    "{{ 'a' | indent(99999999) }}", "{{ messages | tojson(indent=99999999) }}", "{{" * 9999,
    "{{ '{:>999999999}'.format(1) }}", "{{ 'a\nb' | wordwrap(0) }}", "{% for m in messages %}x",
]  # fmt: skip


def times_within(piece: str | bytes, times: int) -> int:
    """How often a piece is repeated, so that what is made of it stays within its bound.

    Without one, a list of lists of parts became a tokenizer.json of gigabytes in this process.
    """
    return max(1, min(times, MAX_MADE_BYTES // len(piece)))


def make_guitar_pro(draw: random.Random, version: int) -> bytes:
    """A Guitar Pro 3 to 5 file that says to have many bars and tracks, and has next to nothing."""
    content = format_guitar_pro(make_practice_corpus(0, 1)[0], version=version)
    bars = len(make_practice_corpus(0, 1)[0].bars)
    counts = struct.pack("<II", bars, 1)
    at = content.find(counts)
    many = [1, 2, 127, 9_999, 100_000, 1_000_000, 4_000_000, 2**31 - 1, 2**32 - 1]
    head = content[:at] + struct.pack("<II", draw.choice(many), draw.choice(many[:5]))
    rest = draw.choice([
        content[at + 8 :], bytes(draw.choice([9, 99_999, 4_000_000 - len(head)])),
        draw.choice([b"\1", b"\x80", b"\xff", b"\x20"]) * 1_000_000, draw.randbytes(99_999),
        content[at + 8 :] * 300,
    ])  # fmt: skip
    return head + rest[:4_000_000]


def pack_gpx(content: bytes, draw: random.Random) -> bytes:
    """The container of Guitar Pro 6, compressed or not, whose sectors may name each other."""
    sectors = [content[i : i + 4096].ljust(4096, b"\0") for i in range(0, len(content), 4096)]
    sectors = sectors[:900]
    places = [*range(2, 2 + len(sectors)), 0]
    if draw.random() < 0.3:
        places = [draw.choice([1, 2, 10**6]) for _ in range(980)] + [0]
    size = draw.choice([len(content)] * 5 + [0, 2**32 - 1, 4096 * len(places)])
    entry = struct.pack("<I", 2) + b"score.gpif".ljust(0x88, b"\0") + struct.pack("<II", size, 0)
    entry += struct.pack(f"<{len(places)}I", *places)
    system = b"BCFS" + bytes(4096) + entry[:4096].ljust(4096, b"\0") + b"".join(sectors)
    if draw.random() < 0.5:
        return system
    if draw.random() < 0.5:  # bits that copy what was there, as long as they can
        bits = "0" + "11" + "01000010" * 3 + draw.choice(["1" + "1111" + "1" * 30, "1"]) * 60_000
    else:  # as it is, three bytes at a time
        parts = (system[i : i + 3] for i in range(0, min(len(system), 300_000), 3))
        bits = "".join(f"0{f'{len(p):02b}'[::-1]}{int.from_bytes(p):0{8 * len(p)}b}" for p in parts)
    bits += "0" * (-len(bits) % 8)
    packed = int(bits, 2).to_bytes(len(bits) // 8)
    return b"BCFZ" + struct.pack("<I", draw.choice([len(system), 64 << 20, 2**32 - 1])) + packed


def table(draw: random.Random) -> bytes:
    """A table of strange cells, many columns, or many rows."""
    sign = draw.choice(",;\t")
    if draw.random() < 0.3:
        return draw.choice([draw.choice(ODD_BYTES), draw.choice(ODD_TEXTS).encode()])
    columns = ["a", "b"] + ["c"] * draw.choice([0, 0, 1, 30_000])
    rows = [sign.join(draw.choice(CELLS) for _ in range(draw.choice([0, 1, 2, 2, 2, 3])))]
    rows = rows * times_within(rows[0] or "a", draw.choice([1, 30, 30_000])) + [
        f"x{sign}y"
    ] * draw.choice([0, 40, 30_000])
    return "\n".join([sign.join(columns), *rows]).encode()


def hostile_table(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Make a table of pairs, packed or not, and return a command that learns from it."""
    path = folder / "trial" / draw.choice(["a.csv", "a.tsv", "a.csv.gz", "a.tsv.gz"])
    content = table(draw)
    if path.suffix == ".gz":
        content = content * times_within(content or b"a", draw.choice([1, 1, 1, 100]))
        content = gzip.compress(content, 1)
        content = content if draw.random() < 0.8 else content[: len(content) // 2]
    path.write_bytes(content)
    words = ["train", "pairs", str(path), "--out-dir", str(folder / "out.run"), *TRAIN]
    return [*words, "--tokenizer", draw.choice(["characters", "words", "bpe"])], "pairs", path


def hostile_text(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Make a text, and return a command that learns from it or continues it."""
    path = folder / "trial" / draw.choice(["a.txt", "a.jsonl", "a"])
    text = draw.choice(ODD_TEXTS).encode() + draw.choice(["", *ODD_TEXTS]).encode()
    path.write_bytes(draw.choice([text, text, text, draw.choice(ODD_BYTES) + text[:99]]))
    words = ["train", "text", str(path), "--out-dir", str(folder / "out.run"), *TRAIN]
    words += ["--context-length", "16", "--tokenizer", draw.choice(["characters", "words", "bpe"])]
    more = ["--max-new-tokens", "2", "--device", "cpu"]
    prompt = ["generate", str(folder / "trial"), "--prompts-file", str(path), *more]
    chosen = draw.choice([words, words, prompt])
    if path.read_bytes().count(b"\n") > MAX_PROMPTS:
        chosen = words
    return chosen, "text", path


def hostile_weights(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Make the weights of a model, or the index of their shards, and return a command on it."""
    model = folder / "trial"
    path = model / "model.safetensors"
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + size])
    names = [name for name in head if name != "__metadata__"]
    own = head[draw.choice(names)]
    for _ in range(draw.choice([1, 1, 3])):
        match draw.randrange(8):
            case 0:
                own["shape"] = draw.choice(
                    [[], [0], [2**40], [-1], [1] * 9999, [2**63, 2**63], [0.5]]
                )
            case 1:
                own["data_offsets"] = draw.choice([[0, 2**63], [8, 4], [-1, 9], [0], [0, 4], []])
            case 2:
                own["dtype"] = draw.choice(["F8_E4M3", "BOOL", "I64", "F64", "", 7, "x" * 9999])
            case 3:
                count = times_within(json.dumps(own), draw.choice([1, 99_999]))
                head |= {f"x{i}": own for i in range(count)}
            case 4:
                head["__metadata__"] = {"a": draw.choice(["b" * 9_000_000, "\x1b[2J", {}, 1])}
            case 5:
                head[draw.choice(["../x", "\x1b[2J", "a" * 99_999, "", "\ud800"])] = own
            case 6:
                own["shape"], own["data_offsets"] = [0, 10**9], [0, 0]
            case 7:
                head = {name: own for name in names}
    text = json.dumps(head).encode()
    if draw.random() < 0.1:
        text = b'{"a":' * 99_999
    claimed = draw.choice([len(text)] * 6 + [0, 2**63, 2**64 - 1, 100_000_001, len(text) - 1])
    path.write_bytes(struct.pack("<Q", claimed) + text + content[8 + size :])
    if draw.random() < 0.3:
        kept = path.rename(model / "model-00001-of-00001.safetensors")
        where = [kept.name, "../sound/model.safetensors", "/dev/zero", "", 7, "x" * 9999]
        listed = {name: draw.choice(where[:1] * 5 + where) for name in names}
        listed |= {f"x{i}": kept.name for i in range(draw.choice([0, 0, 99_999]))}
        path = model / "model.safetensors.index.json"
        path.write_text(json.dumps({"weight_map": draw.choice([listed, [], 7])}), encoding="utf-8")
    words = ["generate", str(model), "--max-new-tokens", "2", "--device", "cpu"]
    return draw.choice([words, ["info", str(model)]]), "weights", path


def hostile_template(folder: Path, draw: random.Random) -> tuple[list[str], str, Path]:
    """Make a chat template, alone or among settings, and return a command that renders it."""
    source = draw.choice(TEMPLATES)
    if draw.random() < 0.3:
        source += draw.choice(TEMPLATES)
    path = folder / "trial" / draw.choice(["chat_template.jinja", "tokenizer_config.json"])
    if path.suffix == ".json":
        named = [{"name": "default", "template": source}]
        settings = {"chat_template": draw.choice([source, named]), "bos_token": "x" * 99_999}
        source = json.dumps(settings)
    path.write_text(source, encoding="utf-8")
    words = ["generate", str(folder / "trial"), "--chat", "--prompt", "a"]
    return [*words, "--max-new-tokens", "2", "--device", "cpu"], "template", path
