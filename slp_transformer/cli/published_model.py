"""Models that others have published, used like a run of one's own: folders in their layout."""

import math
from pathlib import Path
from typing import Any

import torch

from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.cli.loaded_run import Run
from slp_transformer.data.batches import TokenWindows
from slp_transformer.data.text_files import read_documents
from slp_transformer.modern.hf_tokenizer import FILE, PretrainedTokenizer, load_tokenizer
from slp_transformer.modern.pretrained import empty_model, read_config
from slp_transformer.training.evaluation import mean_loss

WINDOW = 1024  # tokens at the most that a measurement reads at once, however long the window is


def tokens_of(source: str, tokenizer: PretrainedTokenizer) -> Int[Tensor, "tokens"]:
    """All of a source, document after document.

    Raises:
        ValueError: if there is no such source, or it cannot be read.
    """
    ids = [i for text in read_documents(source) for i in tokenizer.encode(text, whole=True)]
    return torch.tensor(ids)


def measure(run: Run, stream: Int[Tensor, "tokens"]) -> dict[str, Any]:
    """Loss and what follows from it.

    Raises:
        ValueError: if there are not two tokens.
    """
    if len(stream) < 2:
        raise ValueError("There is too little to measure on: it takes two tokens.")
    N = min(run.model.config.context_length, WINDOW, len(stream) - 1)
    count = (len(stream) - 1) // N * N
    loss = mean_loss(run.model, TokenWindows(stream, N), batch_size=1)
    said = run.tokenizer.decode(stream[1 : count + 1])
    bits, sizes = loss * count / math.log(2), {"character": len(said), "byte": len(said.encode())}
    measured = {"loss": loss, "perplexity": math.exp(loss), "tokens": count}
    measured |= {f"{what}s": size for what, size in sizes.items()}
    return measured | {f"bits_per_{what}": bits / size for what, size in sizes.items() if size}


def about(folder: Path) -> dict[str, Any]:
    """What a published model is made of, without loading its weights.

    Raises:
        ValueError: if it has a part that is not there.
    """
    config = read_config(folder)
    model = empty_model(config)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    told = {
        "model": {"kind": type(model).__name__, **config.to_dict()},
        "parameters": parameters(model),
        "files": {"folder": str(folder.resolve()), "megabytes": round(size / 1e6, 2)},
    }
    if (folder / FILE).is_file():
        tokenizer = load_tokenizer(folder, config)
        told["tokenizer"] = {"kind": tokenizer.kind, "tokens": tokenizer.vocab_size}
    return told


def parameters(model: torch.nn.Module) -> dict[str, int]:
    """How many parameters there are, by what they do."""
    signs = {
        "attention": ".attention.",
        "feedforward": ".ffn.",
        "norms": "norm",
        "embeddings": "em",
    }
    counts = dict.fromkeys([*signs, "heads"], 0)
    for name, W in model.named_parameters():
        part = next((part for part, sign in signs.items() if sign in name), "heads")
        counts["embeddings" if name == "S" else part] += W.numel()
    return counts | {"total": sum(counts.values())}
