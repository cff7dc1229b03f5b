"""The trained models of the pages "One sentence" and "Write with it", as files.

    python benchmarks/page_model.py
    python benchmarks/page_model.py --writers runs/page --music runs/mutopia
    python benchmarks/page_model.py --writers runs/page --music runs/mutopia --only tab

Without an option, chapter 5's own lines are run, up to the end of its training. Written are the
model as a run keeps it (config.json, model.safetensors) with its words, into
docs/assets/model/chapter5, and what was measured into benchmarks/results/page_model.

With `--writers`, `slp-transformer train` makes two runs in that folder, or finishes those that are
there, and chapter 9's own lines train the model in which induction heads arise. All three are
rounded to float16, the best checkpoint of each run, into docs/assets/model/text and letters, and
into slp_guitar/model.
The tab model reads what `mutopia_tabs.py` wrote into the folder of `--music`; LICENSE.txt beside
its weights names those pieces.
"""

import argparse
import ast
import contextlib
import hashlib
import io
import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name
from string import ascii_lowercase
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from slp_transformer import TransformerLM
from slp_transformer._internal.checksums import file_crc32
from slp_transformer._internal.json_files import read_json, write_json
from slp_transformer.cli import main as slp_transformer
from slp_transformer.data.text_tokenizer import TextTokenizer
from slp_transformer.tasks.saved_runs import load_run, open_run
from slp_transformer.training.checkpoints import make_model_spec
from slp_transformer.training.run_folder import MODELS as MODEL_CLASSES
from slp_transformer.training.run_folder import load_model_spec

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "docs" / "assets" / "model"
FOLDER = MODELS / "chapter5"
TAB_RUN = ROOT / "slp_guitar" / "model"
FOLDERS = {"tab": TAB_RUN / "step-00000800", "text": MODELS / "text"}
RESULT = ROOT / "benchmarks" / "results" / "page_model" / "result.json"
WRITERS = {
    "text": (
        "train text moby-dick --model-dim 96 --num-blocks 4 --num-heads 4 --context-length 192 "
        "--dropout 0.15 --steps 2000 --eval-interval 250 --max-eval-samples 128"
    ),
    "tab": (
        "train tabs MUSIC/train --val-data MUSIC/valid --model-dim 96 --num-blocks 3 --num-heads 4 "
        "--context-length 288 --dropout 0.15 --positions rotary --normalization rms --qk-norm "
        "--activation relu2 --no-ffn-bias --zero-init --schedule linear --batch-size 8 --steps 800 "
        "--eval-interval 200"
    ),
}
BEGINNING = "Call me Ishmael. "
PUBLISHER = "https://www.mutopiaproject.org"
LICENSE = "https://creativecommons.org/licenses/by/3.0/"
SOURCES = """What the model of guitar tab in this folder was trained on

The weights (model.safetensors) were fitted to the {count} pieces below, published by the Mutopia
Project ({publisher}): solo pieces for guitar whose editions are in the public
domain, or under Creative Commons Attribution 3.0 ({license}), as
each line says. They were changed: strings and frets were chosen by this package, each piece was
transposed to up to seven keys, and grace notes and the lengths of notes were left out
(benchmarks/mutopia_tabs.py). Neither the publisher nor the typesetters endorse the model.

Title; composer; who typeset the edition; its license; its place at the publisher
"""


def run_chapter(stem: str, until: str) -> dict[str, Any]:
    """Run a chapter's statements until a name has a value, and return its names."""
    names: dict[str, Any] = {"__name__": "chapter"}
    for statement in ast.parse((ROOT / "chapters" / f"{stem}.py").read_text("utf-8")).body:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(ast.Module([statement], []), stem, "exec"), names)
        if names.get(until):
            return names
    raise SystemExit(f"Chapter {stem} has no {until} any more.")


def rounding_error(model: TransformerLM, ids: torch.Tensor, dtype: torch.dtype) -> float:
    """Return how far a logit moves when the weights are rounded."""
    rounded = TransformerLM(model.config).eval()
    rounded.load_state_dict({n: W.to(dtype).float() for n, W in model.state_dict().items()})
    with torch.no_grad():
        return (rounded(ids) - model(ids)).abs().max().item()


def printed(*words: str) -> str:
    """Return what a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if code := slp_transformer(words):
            raise SystemExit(code)
    return out.getvalue().strip()


def keep_rounded(model: TransformerLM, tokenizer: Any, folder: Path) -> dict[str, Any]:
    """Write a model in float16 with its tokenizer, and return its size and checksum."""
    folder.mkdir(exist_ok=True)
    rounded = {name: W.half() for name, W in model.state_dict().items()}
    save_file(rounded, folder / "model.safetensors")
    write_json(folder / "config.json", make_model_spec(model))
    write_json(folder / "tokenizer.json", tokenizer)
    weights = (folder / "model.safetensors").read_bytes()
    return {
        "weights": sum(W.numel() for W in model.parameters()),
        "bytes": len(weights),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }


def keep_manifest(folder: Path, step: int) -> None:
    """Make a folder a checkpoint, which commands open; how it was trained stays behind."""
    write_json(folder / "training.json", None)
    names = ("config.json", "model.safetensors", "tokenizer.json", "training.json")
    sizes = {name: (folder / name).stat().st_size for name in names}
    sums = {name: file_crc32(folder / name) for name in names}
    content = {"format": 1, "step": step, "files": sizes, "crc32": sums}
    write_json(folder / "checkpoint.json", content)


def load_rounded(folder: Path) -> Any:
    """Return a model of the site from its folder, in float32."""
    spec = load_model_spec(folder)
    model = resolve_name(MODEL_CLASSES[spec.model][0])(spec.config)
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({name: W.float() for name, W in weights.items()})
    return model.eval()


def make_writer(name: str, runs: Path, music: Path | None) -> dict[str, Any]:
    """Train a model that writes, or finish its training, round it, and return what it does."""
    if music is None and "MUSIC" in WRITERS[name]:
        raise SystemExit("The tab model is trained on the folder of --music.")
    words = [word.replace("MUSIC", str(music)) for word in WRITERS[name].split()]
    resume = ["--resume"] if (runs / name).exists() else []
    printed(*words, "--out-dir", str(runs / name), "--quiet", *resume)
    run = load_run(open_run(runs / name), "cpu")
    assert run.checkpoint is not None, "it was trained here"
    made = {
        "command": WRITERS[name],
        "step": run.checkpoint.step,
        **keep_rounded(run.model, run.checkpoint.tokenizer, FOLDERS[name]),
        "held_out": json.loads(printed("evaluate", str(runs / name), "--json")),
    }
    del made["held_out"]["run"]
    if music and "MUSIC" in WRITERS[name]:
        keep_manifest(FOLDERS[name], made["step"])
        (TAB_RUN / "LICENSE.txt").write_text(name_sources(music), encoding="utf-8")
    return made


def name_sources(music: Path) -> str:
    """Return whose pieces a model has read, and under which licenses."""
    pieces = [piece for piece in read_json(music / "pieces.json") if piece["split"] == "train"]
    pieces.sort(key=lambda piece: piece["id"])
    lines = [
        f"{piece['title']}; {piece['composer']}; typeset by {piece['typesetter']}; "
        f"{piece['license']}; {PUBLISHER}/ftp/{piece['id'].rpartition('/')[0]}"
        for piece in pieces
    ]
    return SOURCES.format(count=len(pieces), publisher=PUBLISHER, license=LICENSE) + "\n".join(
        [*lines, ""]
    )


def make_letters() -> dict[str, Any]:
    """Train chapter 9's model, round it, and return what it does."""
    names = run_chapter("09_inside", "points")
    letters = TextTokenizer("characters", list(ascii_lowercase[: names["V"]])).to_json()
    kept = keep_rounded(names["finder"], letters, MODELS / "letters")
    return {**kept, "loss_by_step": names["points"]}


def show_still(runs: Path) -> dict[str, Any]:
    """Return what the page shows of the text model where no script runs."""
    run = load_run(open_run(runs / "text"), "cpu")
    with torch.no_grad():
        y = run.model(torch.tensor(run.tokenizer.encode(BEGINNING)))[-1].softmax(dim=-1)
    most = y.topk(12)
    options = ("--seed", "1", "--temperature", "0.8", "--top-p", "0.95")
    prompt = ("--prompt", BEGINNING, "--max-new-tokens", "400")
    return {
        "next": [
            [run.tokenizer.decode([i]), p]
            for p, i in zip(*map(torch.Tensor.tolist, most), strict=True)
        ],
        "text": printed("generate", str(runs / "text"), *prompt, *options),
    }


def make_writers(runs: Path, music: Path | None, names: list[str]) -> None:
    """Make models of the page "Write with it", and write what they do."""
    place = RESULT.with_name("writers.json")
    result: dict[str, Any] = read_json(place) if place.exists() else {}
    for name in names:
        made = make_letters() if name == "letters" else make_writer(name, runs, music)
        result[name] = environment() | made
        if name == "text":
            result["still"] = show_still(runs)
    write_json(place, result)
    print(json.dumps({name: result[name] for name in names}, indent=1))


def environment() -> dict[str, str]:
    """Return when and with what a run was made."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--writers", type=Path, metavar="FOLDER")
    parser.add_argument("--music", type=Path, metavar="FOLDER")
    parser.add_argument("--only", choices=(*WRITERS, "letters"))
    arguments = parser.parse_args()
    if arguments.writers:
        names = [arguments.only] if arguments.only else [*WRITERS, "letters"]
        return make_writers(arguments.writers, arguments.music, names)
    names = run_chapter("05_language_model", "losses")
    model = names["model"].eval()
    sentences = [" ".join(words) for words in names["sentences"]]
    ids = torch.stack([names["to_ids"](sentence) for sentence in sentences])
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), FOLDER / "model.safetensors")
    write_json(FOLDER / "config.json", make_model_spec(model))
    words = {"vocabulary": names["vocabulary"], "sentences": sentences}
    (FOLDER / "words.json").write_text(json.dumps(words, indent=1) + "\n", encoding="utf-8")
    weights = (FOLDER / "model.safetensors").read_bytes()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    result = {
        **environment(),
        "weights": sum(W.numel() for W in model.parameters()),
        "bytes": len(weights),
        "sha256": hashlib.sha256(weights).hexdigest(),
        "loss": names["losses"][-1],
        "logits_moved_by_float16": rounding_error(model, ids, torch.float16),
        "logits_moved_by_bfloat16": rounding_error(model, ids, torch.bfloat16),
    }
    write_json(RESULT, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
