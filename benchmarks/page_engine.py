"""How fast the page's engine writes, and how near it is to PyTorch: Chromium, in a worker.

    python benchmarks/page_engine.py --out benchmarks/results/page_engine/result.json

A model of a million random weights, and those of the page "Write with it", are loaded from their
files and write up to 200 tokens with their cache, several times; their logits are compared with
PyTorch's in float32.
"""

import argparse
import gzip
import json
import platform
import shutil
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from page_model import load_rounded
from playwright.sync_api import Route, sync_playwright

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal.json_files import write_json
from slp_transformer.training.checkpoints import save_checkpoint

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site_build"))
import constants  # noqa: E402

FOLDER = ROOT / "docs" / "assets" / "model"
CONFIG = TransformerConfig(96, 256, model_dim=144, num_heads=6, num_blocks=4)
IDS = [k * 37 % 71 for k in range(101)]
WORKER = """
import { readModel } from "/checkpoint.js";
import { readJSON } from "/refusals.js";
import { generate, seeded } from "/sampling.js";
onmessage = async ({ data: { ids, rounds } }) => {
  const begin = performance.now();
  const read = async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer());
  const [config, weights] = await Promise.all(["/config.json", "/model.safetensors"].map(read));
  const model = readModel(readJSON(config, "config.json"), weights);
  const [first] = generate(model, [1], { count: 1 });
  const start_ms = performance.now() - begin, tokens_per_second = [];
  for (let seed = 0; seed < rounds; seed++) {
    const from = performance.now();
    const written = [...generate(model, [1], { count: 200, random: seeded(seed) })];
    tokens_per_second.push((1000 * written.length) / (performance.now() - from));
  }
  postMessage({ start_ms, tokens_per_second, logits: [...model.forward(ids).data] });
};"""
RUN = """given => new Promise((done) => {
  const worker = new Worker("/worker.js", { type: "module" });
  worker.onmessage = ({ data }) => done(data);
  worker.postMessage(given);
})"""


def in_chromium(files: dict[str, bytes], rounds: int) -> tuple[dict, str]:
    """Run the worker in a page that has these files, and return what it says."""
    kinds = {".js": "text/javascript", "": "text/html"}

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        kind = kinds.get(Path(name).suffix, "application/octet-stream")
        route.fulfill(body=files.get(name, b"<!doctype html>"), content_type=kind)

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"))
        context = browser.new_context()
        context.route("**/*", answer)
        page = context.new_page()
        page.goto("http://engine.test/")
        found = page.evaluate(RUN, {"ids": IDS, "rounds": rounds})
        version = browser.version
        browser.close()
    return found, version


def measure(run: Path, rounds: int) -> dict[str, Any]:
    """Let the model in a folder write, and compare its logits with PyTorch's."""
    files = {n: (run / n).read_bytes() for n in ("config.json", "model.safetensors")}
    files |= {path.name: path.read_bytes() for path in FOLDER.glob("*.js")}
    files |= {"worker.js": WORKER.encode()}
    files["constants.js"] = constants.as_module().encode()
    found, version = in_chromium(files, rounds)
    model = load_rounded(run)
    with torch.no_grad():
        U = model(torch.tensor(IDS))
    return {
        "chromium": version,
        "weights": sum(W.numel() for W in model.parameters()),
        "bytes": len(files["model.safetensors"]),
        "start_ms": round(found["start_ms"]),
        "tokens_per_second": sorted(round(speed) for speed in found["tokens_per_second"]),
        "median": round(statistics.median(found["tokens_per_second"])),
        "largest_difference": (torch.tensor(found["logits"]).view(U.shape) - U).abs().max().item(),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        random = save_checkpoint(folder, 0, TransformerLM(CONFIG))
        runs = {
            "random": random,
            "text": FOLDER / "text",
            "tab": ROOT / "slp_guitar" / "model" / "step-00000800",
        }
        measured = {name: measure(run, options.rounds) for name, run in runs.items()}
    sizes = {path.name: path.read_bytes() for path in sorted(FOLDER.glob("*.*s"))}
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "models": measured,
        "bytes_gzipped": {name: len(gzip.compress(text)) for name, text in sizes.items()},
    }
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, result)


if __name__ == "__main__":
    main()
