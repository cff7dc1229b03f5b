"""Chapter 5's model with one line wrong: what the tests see, what the loss says, what it writes.

    python benchmarks/mistakes --out benchmarks/results/mistakes/mistakes.json

Each mistake is a changed line of `plain_model.py`. The model is trained as in chapter 5, with
several seeds. "loss" is the last loss of training. "prefix_loss" is measured with each beginning by
itself, as when writing, so that no later word can be seen. "floor" is the lowest loss that a model
can have that does not see ahead. "alpha" is the first head's attention in the first block, of the
first seed.
"""

import argparse
import ast
import math
import platform
import statistics
import types
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import torch
from table import MISTAKES
from torch.nn.functional import cross_entropy

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal.json_files import write_json

HERE = Path(__file__).resolve().parent
SOURCE = (HERE / "plain_model.py").read_text("utf-8")
SAMPLES = 200


def chapter_text() -> list[list[str]]:
    """The eight sentences of chapter 5."""
    chapter = (HERE.parents[1] / "chapters" / "05_language_model.py").read_text("utf-8")
    for node in ast.parse(chapter).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "text":
            return [line.split() for line in ast.literal_eval(node.value).splitlines()]
    raise SystemExit("Chapter 5 has no text any more.")


SENTENCES = chapter_text()
VOCABULARY = sorted({word for sentence in SENTENCES for word in sentence})
IDS = torch.tensor([[VOCABULARY.index(word) for word in s] for s in SENTENCES])


def floor() -> float:
    """The loss of the shares with which words follow each beginning in the text."""
    seen = Counter(tuple(s[:i]) for s in SENTENCES for i in range(1, len(s) + 1))
    pairs = [(tuple(s[:i]), tuple(s[: i + 1])) for s in SENTENCES for i in range(1, len(s))]
    return -sum(math.log(seen[longer] / seen[shorter]) for shorter, longer in pairs) / len(pairs)


def plain_model(mistake: dict | None) -> types.ModuleType:
    """The module of `plain_model.py` with the mistake's lines changed."""
    source = SOURCE
    for right, wrong in mistake["lines"] if mistake else []:
        if source.count(right) != 1:
            raise SystemExit(f"{mistake['name']}: {right!r} stands {source.count(right)} times.")
        source = source.replace(right, wrong)
    module = types.ModuleType("plain_model")
    exec(compile(source, "plain_model.py", "exec"), module.__dict__)
    return module


def new_model(seed: int) -> TransformerLM:
    """Chapter 5's model before training."""
    torch.manual_seed(seed)
    config = TransformerConfig(len(VOCABULARY), 10, model_dim=32, num_heads=2, num_blocks=3)
    model = TransformerLM(config)
    with torch.no_grad():
        model.embedding.tokens.E *= 5
        model.embedding.positions.P *= 5
    return model


def weights(model: TransformerLM) -> dict:
    """The model's weights by the names of `plain_model.py`."""
    blocks = []
    for block in model.stack.blocks:
        mha, ffn = block.attention, block.ffn
        blocks.append(
            {
                "norm_1": (block.norm_1.gamma, block.norm_1.beta),
                "mha": (mha.W_Q, mha.W_K, mha.W_V, mha.W_O),
                "norm_2": (block.norm_2.gamma, block.norm_2.beta),
                "ffn": (ffn.W_1, ffn.b_1, ffn.W_2, ffn.b_2),
            }
        )
    norm = model.stack.final_norm
    embedding = model.embedding
    return {
        "E": embedding.tokens.E,
        "P": embedding.positions.P,
        "A": model.config.num_heads,
        "blocks": blocks,
        "final_norm": (norm.gamma, norm.beta),
    }


def witnesses(plain: types.ModuleType, model: TransformerLM) -> dict[str, bool | None]:
    """For each test whether it passes; None where the model cannot be run so far."""
    w, ids = weights(model), IDS[:, :-1]
    say: dict[str, bool | None] = dict.fromkeys(("shape", "rows", "causal", "equal", "cache"))
    try:
        U, maps = plain.model(w, ids)
    except (RuntimeError, IndexError):
        return say | {"shape": False}
    say["shape"] = U.shape == (*ids.shape, len(VOCABULARY)) and not U.isnan().any().item()
    say["rows"] = all(torch.allclose(a.sum(-1), torch.ones(a.shape[:-1])) for a in maps)
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % len(VOCABULARY)
    moved = (plain.model(w, changed)[0] - U).abs().amax(dim=(0, 2))[:-1]
    say["causal"] = moved.max().item() < 1e-5
    say["equal"] = torch.allclose(U, model(ids), atol=1e-4)
    try:
        cache = [None] * len(w["blocks"])
        first = plain.model(w, ids[:, :1], cache)[0]
        rest = [plain.model(w, ids[:, i : i + 1], cache)[0] for i in range(1, ids.shape[1])]
        say["cache"] = torch.allclose(torch.cat([first, *rest], dim=1), U, atol=1e-4)
    except (RuntimeError, IndexError, TypeError):
        say["cache"] = False
    return say


def train(plain: types.ModuleType, model: TransformerLM) -> float:
    """Chapter 5's loop; the loss of the last step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(350):
        loss = plain.loss(weights(model), IDS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def prefix_loss(plain: types.ModuleType, model: TransformerLM) -> float:
    """The loss of each next word when the model is given what comes before it, and no more."""
    w = weights(model)
    last = [plain.model(w, IDS[:, :i])[0][:, -1] for i in range(1, IDS.shape[1])]
    return cross_entropy(torch.stack(last, dim=1).flatten(0, 1), IDS[:, 1:].flatten()).item()


@torch.no_grad()
def write(plain: types.ModuleType, model: TransformerLM, seed: int) -> list[str]:
    """Sentences sampled from "the" on."""
    w, generator = weights(model), torch.Generator().manual_seed(seed)
    ids = torch.full((SAMPLES, 1), VOCABULARY.index("the"))
    for _ in range(IDS.shape[1] - 1):
        y = plain.model(w, ids)[0][:, -1].softmax(dim=-1)
        ids = torch.cat([ids, torch.multinomial(y, 1, generator=generator)], dim=1)
    return [" ".join(VOCABULARY[i] for i in row) for row in ids.tolist()]


def run(mistake: dict | None, seeds: int) -> dict:
    """Train with the mistake and report."""
    plain = plain_model(mistake)
    losses, prefix, right, texts, seen_by = [], [], [], [], []
    seen = witnesses(plain, new_model(0))
    known = {" ".join(s) for s in SENTENCES}
    for seed in range(seeds if seen["shape"] else 0):
        model = new_model(seed)
        losses.append(train(plain, model))
        prefix.append(prefix_loss(plain, model))
        written = write(plain, model, seed)
        right.append(sum(text in known for text in written) / SAMPLES)
        if seed == 0:
            texts = written[:3]
            with torch.no_grad():
                maps = plain.model(weights(model), IDS[:1, :-1])[1]
            seen_by = [" ".join(f"{a:.2f}" for a in row) for row in maps[0][0, 0].tolist()]
    return {
        "name": mistake["name"] if mistake else "right",
        "lines": mistake["lines"] if mistake else [],
        "why": mistake["why"] if mistake else "",
        "witnesses": seen,
        "loss": losses,
        "prefix_loss": prefix,
        "sentences_of_the_text": right,
        "writes": texts,
        "alpha": seen_by,
    }


def main() -> None:
    """Run all and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="part of a mistake's name")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(
        1
    )  # a model this small is fastest on one core, and its digits are the same
    table = []
    for mistake in [None, *MISTAKES]:
        if options.only and (mistake is None or options.only not in mistake["name"]):
            continue
        row = run(mistake, options.seeds)
        table.append(row)
        loss = f"{statistics.median(row['loss']):.3f}" if row["loss"] else "-"
        honest = f"{statistics.median(row['prefix_loss']):.3f}" if row["loss"] else "-"
        right = f"{statistics.median(row['sentences_of_the_text']):.0%}" if row["loss"] else "-"
        seen = " ".join(k for k, passed in row["witnesses"].items() if passed is False)
        print(f"{row['name']:34} {loss:>7} {honest:>7} {right:>5}  {seen}", flush=True)
    if options.out:
        about = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{platform.machine()}, {platform.system()}, one thread",
            "torch": torch.__version__,
        }
        about |= {"floor": floor(), "sentence": SENTENCES[0][:-1]}
        write_json(options.out, about | {"mistakes": table})


if __name__ == "__main__":
    main()
