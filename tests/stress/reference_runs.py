"""Record what the program computes, to the last bit, and compare two records.

    python tests/stress/reference_runs.py record --out new.json
    python tests/stress/reference_runs.py compare OLD.json new.json

A record holds, of small runs, a SHA-256 of every weight, every measured loss, and a SHA-256 of what
the runs print and write afterwards. They must not change when code is only moved and renamed, and
`compare` ends with 1 if they do.

RUNS holds every command line. Edit it when flags or modules are renamed, and keep the keys: records
are compared by key. The bits hold for one machine, one PyTorch and one thread.
It takes a system that can fork: each command runs in a fork of this process, which has loaded
PyTorch already.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import runpy
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mido
import torch

import slp_transformer
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.guitar import make_practice_corpus, write_tab
from slp_transformer.training import load_model, train

# --- Every command line --------------------------------------------------------------------------

MODULES = {  # what the first word of a line runs, as `python -m` does
    "slp": "slp_transformer",
    "torchrun": "torch.distributed.run",
}
SIZES = "--model-dim 32 --num-blocks 2 --num-heads 4"
STEPS = "--steps 200 --eval-interval 50 --max-eval-samples 100 --learning-rate 0.01 --device cpu"
SMALL = f"{SIZES} {STEPS} --dropout 0.1"
TEXT = f"moby-dick {SIZES} {STEPS} --context-length 32"

# Each key is a run, and the folder that it is kept in. The first line makes it.
RUNS = {
    "characters": {
        "train": f"slp train text {TEXT} --out-dir characters --seed 3 --dropout 0",
        "generate": "slp generate characters --prompt 'It was' --max-new-tokens 200 --seed 1",
        "two samples": "slp generate characters --prompt The --prompt Call --max-new-tokens 40 "
        "--num-samples 2 --temperature 1 --top-k 20 --top-p 0.9 --repetition-penalty 1.2 --json",
        "most probable": "slp generate characters --prompt 'It was' --temperature 0 "
        "--max-new-tokens 40",
        "evaluate": "slp evaluate characters",
        "evaluate, JSON": "slp evaluate characters --json --samples 2 --max-new-tokens 50",
        "evaluate elsewhere": "slp evaluate characters warm.txt --checkpoint last",
    },
    "bpe": {
        "train": f"slp train text {TEXT} --out-dir bpe --tokenizer bpe --vocab-size 400 "
        "--gradient-accumulation-steps 2 --batch-size 8 --keep-last 3 --dropout 0.1",
        "generate": "slp generate bpe --prompt 'It was' --max-new-tokens 100 --seed 2",
        "evaluate, JSON": "slp evaluate bpe --json",
        "evaluate the average": "slp evaluate bpe --json --checkpoint average",
    },
    "words": {  # with all that is not the default
        "train": f"slp train text {TEXT} --out-dir words --tokenizer words --vocab-size 500 "
        "--activation swiglu --norm post --positions sinusoidal --scaled-embeddings "
        "--initialization xavier --key-dim 6 --value-dim 10 --hidden-dim 48 --max-grad-norm None "
        "--schedule inverse-sqrt --warmup-steps 20 --adam-beta2 0.98 --weight-decay 0.2 --seed 7 "
        "--label-smoothing 0.1 --sequence-length 24 --dropout 0.1",
        "generate": "slp generate words --prompt 'It was' --max-new-tokens 40",
        "evaluate, JSON": "slp evaluate words --json",
    },
    "pairs": {
        "train": f"slp train pairs --out-dir pairs {SMALL} --batch-tokens 512 "
        "--vocab-size 300 --keep-last 3",
        "translate": "slp translate pairs --input numbers.en --n-best 2 --scores",
        "translate, greedy": "slp translate pairs --num-beams 1 < numbers.en",
        "translate, JSON": "slp translate pairs five --length-penalty 0.6 --json "
        "--checkpoint average",
        "attention": "slp translate pairs 'five hundred' --attention heads.svg",
        "evaluate": "slp evaluate pairs numbers.en --target numbers.es --samples 2",
        "evaluate, JSON": "slp evaluate pairs --json --num-beams 1",
    },
    "lines": {
        "train": "slp train pairs numbers.en --target numbers.es --out-dir lines "
        f"{SMALL} --val-split 0.2 --tokenizer words --no-shared-vocabulary "
        "--batch-size 4 --batch-tokens None",
        "translate": "slp translate lines 'one hundred and two' --output two.es",
        "evaluate, JSON": "slp evaluate lines --json",
    },
    "tabs": {
        "train": f"slp train tabs --out-dir tabs {SMALL} --context-length 64",
        "generate": "slp generate tabs --max-new-tokens 120 --seed 4 --tuning drop-D --key Am",
        "Guitar Pro": "slp generate tabs --max-new-tokens 60 --seed 5 --output piece.gp5",
        "MIDI": "slp generate tabs --max-new-tokens 60 --seed 5 --output piece.mid",
        "MusicXML": "slp generate tabs --max-new-tokens 60 --seed 5 --output piece.musicxml",
        "alphaTex": "slp generate tabs --max-new-tokens 60 --seed 5 --output piece.atex",
        "continue": "slp generate tabs --prompt-file tabs-in/03.txt --max-new-tokens 30 --capo 2",
        "evaluate": "slp evaluate tabs --samples 2 --max-new-tokens 100",
        "evaluate, JSON": "slp evaluate tabs --samples 2 --max-new-tokens 100 --json",
    },
    "lora": {
        "train": f"slp train text warm.txt --init-from characters --lora-rank 4 --out-dir lora "
        f"{STEPS}",
        "generate": "slp generate lora --prompt 'It was' --max-new-tokens 100 --seed 1",
        "evaluate, JSON": "slp evaluate lora --json",
        "merge": "slp merge lora --out-dir merged",
        "generate merged": "slp generate merged --prompt 'It was' --max-new-tokens 100 --seed 1",
    },
    "two-processes": {
        "train": "torchrun --standalone --nproc-per-node=2 -m -- slp_transformer train "
        f"text {TEXT} --out-dir two-processes --seed 3 --dropout 0.1",
        "generate": "slp generate two-processes --prompt 'It was' --max-new-tokens 100",
        "evaluate, JSON": "slp evaluate two-processes --json",
    },
    "costs": {  # no model: the fingering that asks least of a hand
        "tab": "slp tab song.mid",
        "wishes": "slp tab song.mid -o song.txt --position 7 --open-strings less "
        "--alternatives 3 --max-span 5 --capo 2 --tuning drop-D",
        "pin": "slp tab song.mid --pin 1:2=6/7 --open-strings more --max-fret 15",
        "other guitar": "slp tab tabs-in/03.txt -o dadgad.gp5 --tuning DADGAD",
        "octaves": "slp tab low.mid --unplayable octave -o low.musicxml",
    },
}

LOSSES = ("step", "train_loss", "val_loss", "full_val_loss", "learning_rate")  # of metrics.json

# --- Material ------------------------------------------------------------------------------------

SONG = [40, 47, 52, 56, 59, 64, 67, 64, 62, 59, 57, 55, 52, 48, 45, 43]  # MIDI pitches, in eighths
NUMBERS = {
    "one": "uno", "two": "dos", "three": "tres", "four": "cuatro", "five": "cinco",
    "six": "seis", "seven": "siete", "eight": "ocho", "nine": "nueve", "ten": "diez",
}  # fmt: skip


def make_material() -> None:
    """Write the files that the command lines name into the current folder."""
    texts = {
        "warm.txt": "It was a warm evening, and the guitarist tuned the old guitar.\n" * 60,
        "numbers.en": "".join(f"{a} and {b}\n" for a in NUMBERS for b in NUMBERS),
        "numbers.es": "".join(f"{a} y {b}\n" for a in NUMBERS.values() for b in NUMBERS.values()),
    }
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("tabs-in").mkdir()
    for n, tab in enumerate(make_practice_corpus(seed=0, num_pieces=30)):
        write_tab(tab, f"tabs-in/{n:02}.txt")
    write_midi("song.mid", SONG)
    write_midi("low.mid", [28, *SONG])


def write_midi(name: str, pitches: Iterable[int]) -> None:
    """Write a melody in eighth notes to a MIDI file."""
    song = mido.MidiFile(ticks_per_beat=480)
    song.tracks.append(mido.MidiTrack())
    for pitch in pitches:
        song.tracks[0].append(mido.Message("note_on", note=pitch, velocity=80, time=0))
        song.tracks[0].append(mido.Message("note_off", note=pitch, velocity=0, time=240))
    song.save(name)


# --- Recording -----------------------------------------------------------------------------------


def record() -> dict[str, Any]:
    """Run every command line in a new folder, and return the machine and the results by run.

    Raises:
        SystemExit: if a line fails, as after a flag was renamed.
    """
    before = Path.cwd()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="reference-") as folder:
        os.chdir(folder)
        try:
            make_material()
            for key, lines in RUNS.items():
                results[key] = {"outputs": {}}
                for name, line in lines.items():
                    there = files_here()
                    code, printed, error = perform(line)
                    if code != 0:
                        raise SystemExit(f"This should work: {line}\n{error}")
                    if name == "train":
                        results[key] |= learned_by(Path(key))
                    else:
                        text = printed.decode("utf-8", "replace")
                        numbers = re.findall(r"-?\d+\.\d+(?:e[-+]?\d+)?", text)
                        said = {"stdout": digest(printed), "numbers": numbers}
                        results[key]["outputs"][name] = said | new_files(there)
            results["python"] = from_python()
        finally:
            os.chdir(before)
    return {"machine": machine(), "results": results}


def perform(line: str) -> tuple[int, bytes, str]:
    """Run a command line in a fork, and return its exit code and what it printed.

    Args:
        line: the first word is one of MODULES; what follows a "<" is read as standard input.
    """
    begun, words, source = time.perf_counter(), shlex.split(line), os.devnull
    if "<" in words:
        *words, _, source = words
    files = (tempfile.TemporaryFile(), tempfile.TemporaryFile())
    with open(source, "rb") as stdin, files[0] as stdout, files[1] as stderr:
        child = os.fork()
        if child == 0:
            for number, stream in enumerate((stdin, stdout, stderr)):
                os.dup2(stream.fileno(), number)
            os._exit(run_module(MODULES[words[0]], words[1:]))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stdout.seek(0)
        stderr.seek(0)
        printed, error = stdout.read(), stderr.read().decode("utf-8", "replace")
    print(f"{time.perf_counter() - begun:5.1f} s  {code}  {line[:80]}", file=sys.stderr)
    return code, printed, error


def run_module(module: str, arguments: list[str]) -> int:
    """Run a module as `python -m` does, and return its exit code."""
    code: Any = 0
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 1


def learned_by(run: Path) -> dict[str, Any]:
    """Return the digests of a run's last weights, and its losses."""
    rows = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["evaluations"]
    losses = [[row[name] for name in LOSSES] for row in rows]
    return {"losses": losses} | weights_of(load_model(run, "last").parameters())


def weights_of(weights: Iterable[torch.Tensor]) -> dict[str, Any]:
    """Return a digest of each weight, with its place and shape, and one of them all."""
    each = [
        f"{n} {list(W.shape)} {digest(W.detach().contiguous().numpy().tobytes())}"
        for n, W in enumerate(weights)
    ]
    return {"weights": each, "all weights": digest("\n".join(each).encode())}


def from_python() -> dict[str, Any]:
    """Train in Python as chapter 7 does, for 50 steps."""
    torch.manual_seed(0)
    stream = torch.randint(11, (2000,), generator=torch.Generator().manual_seed(1))
    model = TransformerLM(TransformerConfig(11, 16, model_dim=32, num_heads=4, num_blocks=2))
    how = {"steps": 50, "batch_size": 12, "learning_rate": 5e-3, "eval_interval": 10}
    records = train(model, stream[:1800], stream[1800:], **how, sequence_length=16)
    losses = [[r.step, r.train_loss, r.val_loss, r.full_val_loss] for r in records]
    return {"losses": losses, "outputs": {}} | weights_of(model.parameters())


def files_here() -> dict[str, str]:
    """Return a digest of each file in the current folder, by name."""
    return {path.name: digest(path.read_bytes()) for path in Path().iterdir() if path.is_file()}


def new_files(before: dict[str, str]) -> dict[str, Any]:
    """Return the digests of the files that were written since."""
    written = dict(sorted(files_here().items() - before.items()))
    return {"files": written} if written else {}


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(content).hexdigest()


def root() -> Path:
    """Return the folder that the package lies in."""
    return Path(slp_transformer.__file__).resolve().parent.parent


def machine() -> dict[str, str]:
    """Return what the bits depend on."""
    model = re.search(r"model name\s*: (.*)", read_if_there(Path("/proc/cpuinfo")))
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": f"{platform.machine()} {model[1] if model else platform.processor()}",
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def read_if_there(path: Path) -> str:
    """Return the text of a file, or nothing if there is no such file."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


# --- Comparing -----------------------------------------------------------------------------------


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each place in which two records differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from differences(old.get(key), new.get(key), f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for n, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{place}/{n}")
    elif old != new:
        yield f"{place[1:]}: was {old!r:.60} and is {new!r:.60}"


def compare(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Print what differs between two records.

    Returns:
        The exit code: 1 if weights, losses or outputs differ.
    """
    for name, value in old["machine"].items():
        if value != new["machine"].get(name):
            print(f"note: {name} was {value} and is {new['machine'].get(name)}")
    found = list(differences(old["results"], new["results"]))
    print("\n".join(found) or "All weights, losses and outputs are the same.")
    return 1 if found else 0


def read(path: Path) -> dict[str, Any]:
    """Return a record that was written to a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> int:
    """Record or compare, as the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run everything, and keep what came of it")
    recording.add_argument("--out", type=Path, required=True, help="a JSON file")
    comparing = commands.add_parser("compare", help="say what differs between two records")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    known = parser.parse_args()
    if known.command == "compare":
        return compare(read(known.old), read(known.new))
    # Set before any fork, so that each command has them.
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "80"}
    os.environ |= {"SLP_TRANSFORMER_OFFLINE": "1", "SLP_TRANSFORMER_DATA": "nothing-downloaded"}
    os.environ["PYTHONPATH"] = str(root())  # of the processes that torchrun starts
    torch.set_num_threads(1)
    out = known.out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"Recording {Path(slp_transformer.__file__).parent}", file=sys.stderr)
    content = json.dumps(record(), indent=1, ensure_ascii=False)
    out.write_text(content + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
