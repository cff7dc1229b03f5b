"""Learn to translate Multi30k from scratch: ours in two forms, and Hugging Face's Marian.

Usage::

    python benchmarks/multi30k.py FOLDER --steps 1200 --save result.json

`FOLDER` holds task 1 of github.com/multi30k/dataset, raw: train.en.gz, train.de.gz, val.en.gz and
val.de.gz. All models have the same sizes, tokens, batches in the same order, loss and optimizer.
Marian is post-norm, has sines and cosines for positions and begins with equally small numbers; ours
has that form too, without its biases, and once more the book's, with Xavier's start and twice the
learning rate, which pre-norm bears. They take turns, some steps each, so that whatever else the
machine does slows all alike; seconds of CPU count what each did itself. BLEU is sacrebleu's of
greedy translations of the validation set.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from timing import keep
from torch import nn
from translators import HuggingFace, Size, bart_sizes

from slp_transformer import EncoderDecoder, TransformerConfig
from slp_transformer.data import prepare_pair_corpus, read_pairs
from slp_transformer.data.batches import Batch
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.pair_batches import LengthBucketedPairSource
from slp_transformer.generation.translation import (
    Translator,
    compute_translation_metrics,
    iter_length_sorted_batches,
)
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.step import training_step
from slp_transformer.training.train_config import TrainConfig

WINDOW, PIECES = 96, 5000
SIZE = Size(blocks=4, width=128, heads=4, positions=WINDOW, dropout=0.15)
TURN = 20  # steps

# --- The contenders ----------------------------------------------------------------------------


FORMS = {
    "slp_transformer": {"norm": "post", "positions": "sinusoidal", "initialization": "bert"},
    "slp_transformer, the book's form": {"initialization": "xavier"},
}
FASTER = {"slp_transformer, the book's form": 2.0}  # times the learning rate


def ours(words: int, **form: str) -> EncoderDecoder:
    """This package's, with rows of the embedding times √d as Marian's."""
    sizes = {"model_dim": SIZE.width, "num_heads": SIZE.heads, "num_blocks": SIZE.blocks}
    how = {"dropout": SIZE.dropout, "scaled_embeddings": True, **form}
    return EncoderDecoder(TransformerConfig(words, WINDOW, **sizes, **how))


class Marian(nn.Module):
    """Hugging Face's Marian, called as ours is."""

    def __init__(self, words: int, pad_id: int, begin_id: int, end_id: int):
        """Make it."""
        from transformers import MarianConfig, MarianMTModel

        super().__init__()
        special = {"pad_token_id": pad_id, "bos_token_id": begin_id, "eos_token_id": end_id}
        sizes = bart_sizes(SIZE) | special | {"vocab_size": words}
        sizes["decoder_start_token_id"] = begin_id
        self.inner = HuggingFace(MarianMTModel(MarianConfig(**sizes, scale_embedding=True)))

    def forward(self, source, target, mask):
        """Logits for the word after each position of the target."""
        return self.inner(source, target, mask.squeeze(1) != 0)


def translated_by_ours(model: EncoderDecoder, corpus: Dataset) -> list[str]:
    """Greedy translations of what is held out."""
    translator = Translator(model, corpus.tokenizer)
    return translator.best_translations([source for source, _ in corpus.val_texts])


def translated_by_marian(model: Marian, corpus: Dataset) -> list[str]:
    """The same with `generate`, in the same batches."""
    tokenizer, found = corpus.tokenizer, [""] * len(corpus.val_texts)
    rows = [tokenizer.encode_source(source) for source, _ in corpus.val_texts]
    model.eval()
    for places in iter_length_sorted_batches(rows):
        longest = max(len(rows[i]) for i in places)
        ids = [rows[i] + [tokenizer.pad_id] * (longest - len(rows[i])) for i in places]
        source = torch.tensor(ids)
        mask = (source != tokenizer.pad_id).long()
        how = {"max_new_tokens": WINDOW - 1, "num_beams": 1, "do_sample": False}
        written = model.inner.model.generate(input_ids=source, attention_mask=mask, **how)
        for i, target in zip(places, written[:, 1:].tolist(), strict=True):
            found[i] = tokenizer.decode_target(until(target, tokenizer.end_id))
    return found


def until(ids: list[int], end_id: int) -> list[int]:
    """Return the ids before the end."""
    return ids[: ids.index(end_id)] if end_id in ids else ids


# --- Learning ----------------------------------------------------------------------------------


class Learner:
    """A model that learns, and how long it has taken."""

    def __init__(self, model: nn.Module, settings: TrainConfig):
        """Begin."""
        self.model, self.settings = model, settings
        self.optimizer = make_optimizer(model, settings)
        self.losses: list[float] = []
        self.cpu = self.wall = 0.0

    def learn(self, turn: Sequence[Batch]) -> None:
        """Some steps, one a batch."""
        self.model.train()
        cpu, wall = time.process_time(), time.perf_counter()
        for batch in turn:
            how = self.optimizer, len(self.losses), self.settings, torch.device("cpu")
            self.losses.append(training_step(self.model, batch, *how).item())
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall


def told(
    learner: Learner, translate: Callable[[nn.Module, Dataset], list[str]], corpus: Dataset
) -> dict:
    """Return the outcome."""
    cpu = time.process_time()
    written = translate(learner.model, corpus)
    cpu = time.process_time() - cpu
    judged = compute_translation_metrics(written, [reference for _, reference in corpus.val_texts])
    curve = {
        step: round(sum(some := learner.losses[max(0, step - 50) : step]) / len(some), 4)
        for step in range(50, len(learner.losses) + 50, 50)
        if learner.losses[max(0, step - 50) : step]
    }
    return {
        "parameters": sum(W.numel() for W in learner.model.parameters()),
        "cpu seconds of steps": round(learner.cpu, 1),
        "seconds of steps by the clock": round(learner.wall, 1),
        "BLEU": round(judged.bleu, 2),
        "chrF2": round(judged.chrf, 2),
        "cpu seconds of translating": round(cpu, 1),
        "signature": judged.bleu_signature,
        "loss": curve,
    }


def pairs_of(folder: Path, name: str) -> list[tuple[str, str]]:
    """The pairs of one part."""
    return read_pairs(str(folder / f"{name}.en.gz"), str(folder / f"{name}.de.gz"))[0]


def main() -> None:
    """Have all learn, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch-tokens", type=int, default=2048, help="of a batch, on each side")
    parser.add_argument("--warmup-steps", type=int, default=400)
    parser.add_argument("--val-pairs", type=int, help="validation pairs to translate [all]")
    parser.add_argument("--save", type=Path, help="JSON file to write the table to")
    asked = parser.parse_args()
    rate = {"learning_rate": 3e-3, "warmup_steps": asked.warmup_steps, "adam_beta2": 0.98}
    size = {"batch_size": 512, "batch_tokens": asked.batch_tokens, "weight_decay": 0.01}
    settings = TrainConfig(asked.steps, label_smoothing=0.1, **rate, **size)
    learned, unseen = pairs_of(asked.folder, "train"), pairs_of(asked.folder, "val")
    how = {"val_split": unseen[: asked.val_pairs], "vocab_size": PIECES}
    corpus = prepare_pair_corpus(learned, ("en", "de"), WINDOW, **how)
    special = {n: getattr(corpus.tokenizer, n) for n in ("pad_id", "begin_id", "end_id")}
    source = LengthBucketedPairSource(corpus.train, max_tokens=asked.batch_tokens, **special)
    words, special = corpus.tokenizer.vocab_size, (source.pad_id, source.begin_id, source.end_id)
    torch.manual_seed(0)
    learners = {}
    for name, form in FORMS.items():
        faster = replace(settings, learning_rate=settings.learning_rate * FASTER.get(name, 1.0))
        learners[name] = Learner(ours(words, **form), faster)
    learners["Marian"] = Learner(Marian(words, *special), settings)
    generator = torch.Generator().manual_seed(0)
    for begun in range(0, asked.steps, TURN):
        count = min(TURN, asked.steps - begun)
        turn = [source.draw(settings.batch_size, generator) for _ in range(count)]
        for learner in learners.values():
            learner.learn(turn)
        line = (f"{name} {x.losses[-1]:.3f}, {x.cpu:.0f} s" for name, x in learners.items())
        print(f"{begun + count:6}", *line, sep="   ", flush=True)
    ways = {"Marian": translated_by_marian}
    table = {
        name: told(learner, ways.get(name, translated_by_ours), corpus)
        for name, learner in learners.items()
    }
    for name, row in table.items():
        print(f"{name:32}", *(f"{k} {v}" for k, v in row.items() if k != "loss"), sep="  ")
    keep(asked, table, settings=settings.to_dict())


if __name__ == "__main__":
    main()
