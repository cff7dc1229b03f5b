"""Chapter 5's trained model as files for the page "One sentence".

    python benchmarks/page_model.py

The chapter's own lines are run, up to the end of its training. Written are the model as a run keeps
it (config.json, model.safetensors) with its words, into docs/assets/model/chapter5, and what was
measured into benchmarks/results/page_model.
"""

import ast
import contextlib
import hashlib
import io
import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from slp_transformer import TransformerLM
from slp_transformer._internal.atomic_write import write_json
from slp_transformer.training.checkpoints import model_spec

ROOT = Path(__file__).resolve().parents[1]
CHAPTER = ROOT / "chapters" / "05_language_model.py"
FOLDER = ROOT / "docs" / "assets" / "model" / "chapter5"
RESULT = ROOT / "benchmarks" / "results" / "page_model" / "result.json"


def run_chapter() -> dict[str, Any]:
    """Run the chapter's statements up to the end of its training, and return its names."""
    names: dict[str, Any] = {"__name__": "chapter"}
    for statement in ast.parse(CHAPTER.read_text("utf-8")).body:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(ast.Module([statement], []), CHAPTER.name, "exec"), names)
        if names.get("losses"):
            return names
    raise SystemExit("Chapter 5 trains no model any more.")


def rounding_error(model: TransformerLM, ids: torch.Tensor, dtype: torch.dtype) -> float:
    """Return how far a logit moves when the weights are rounded."""
    rounded = TransformerLM(model.config).eval()
    rounded.load_state_dict({n: W.to(dtype).float() for n, W in model.state_dict().items()})
    with torch.no_grad():
        return (rounded(ids) - model(ids)).abs().max().item()


def main() -> None:
    """Write the files."""
    names = run_chapter()
    model = names["model"].eval()
    sentences = [" ".join(words) for words in names["sentences"]]
    ids = torch.stack([names["to_ids"](sentence) for sentence in sentences])
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), FOLDER / "model.safetensors")
    write_json(FOLDER / "config.json", model_spec(model))
    words = {"vocabulary": names["vocabulary"], "sentences": sentences}
    (FOLDER / "words.json").write_text(json.dumps(words, indent=1) + "\n", encoding="utf-8")
    weights = (FOLDER / "model.safetensors").read_bytes()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
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
