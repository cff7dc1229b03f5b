"""Measure how well a trained model translates what it did not learn from."""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import torch

from slp_transformer._internal.progress_bar import work_bar
from slp_transformer.cli.console import note, result, result_json, table
from slp_transformer.cli.loaded_run import TOKENS, find_recipe, load_translator
from slp_transformer.data.batches import PaddedPairs
from slp_transformer.data.pair_corpus import fit, load_pairs
from slp_transformer.data.pair_files import Pair
from slp_transformer.data.translation_metrics import Judgement, judge
from slp_transformer.generation.translation import TOGETHER, Translator
from slp_transformer.loss import perplexity
from slp_transformer.tasks.datasets import reopen_data
from slp_transformer.training.devices import pick_device
from slp_transformer.training.evaluation import mean_loss


def act(arguments: argparse.Namespace) -> None:
    """Measure, and print what came of it.

    Raises:
        ValueError: if there is no such source, too little in it, or an option will not do.
    """
    device = pick_device(arguments.device)
    translator = load_translator(arguments.run, arguments.checkpoint, device)
    pairs = find_pairs(translator, arguments)
    window = translator.model.config.context_length
    rows, pairs, told = fit(pairs, translator.tokenizer, window, "drop")
    if told:
        note(f"Of the pairs, {told}.")
    if not pairs:
        raise ValueError(f"No pair fits the model's window of {window} tokens.")
    loss = loss_of(translator, rows)
    beams = arguments.num_beams or 4
    written = translate(translator, [source for source, _ in pairs], beams, arguments)
    references = [reference for _, reference in pairs]
    exact = sum(a == " ".join(b.split()) for a, b in zip(written, references, strict=True))
    measured = {"loss": loss, "perplexity": perplexity(loss), "pairs": len(pairs)}
    measured |= {"exact": exact / len(pairs), "num_beams": beams}
    judgement = judge(written, references)
    shown = samples(pairs, written)[: arguments.samples or 0]
    if arguments.json:
        told = {"run": str(arguments.run), "checkpoint": arguments.checkpoint}
        told |= {"source": arguments.source or "held out"} | measured | vars(judgement)
        result_json(told | ({"samples": shown} if shown else {}))
        return
    result(table(in_words(measured, judgement)))
    for sample in shown:
        result("\n" + table(sample))


def find_pairs(translator: Translator, arguments: argparse.Namespace) -> list[Pair]:
    """The pairs to measure on.

    Raises:
        ValueError: if they cannot be read, or the run does not say which it held out.
    """
    if arguments.source is not None:
        languages = None, None
        if arguments.target is None:  # of two files nobody needs to say which languages they are
            languages = translator.tokenizer.languages
        return load_pairs(arguments.source, arguments.target, languages)[0]
    if (recipe := find_recipe(arguments.run)) is None:
        raise ValueError(
            f"{arguments.run} has no recipe.toml to tell what was held out: name a SOURCE to "
            "measure on."
        )
    return reopen_data(recipe.data, arguments.run / TOKENS).texts


def loss_of(translator: Translator, rows: Sequence[tuple[list[int], list[int]]]) -> float:
    """Nats per token of the targets.

    Raises:
        ValueError: if it is no number.
    """
    tokenizer = translator.tokenizer
    rows = sorted(rows, key=lambda row: (len(row[1]), len(row[0])))
    pairs = [tuple(torch.tensor(side, dtype=torch.long) for side in row) for row in rows]
    special = {name: getattr(tokenizer, name) for name in ("pad_id", "begin_id", "end_id")}
    with work_bar("Measure", len(pairs), " pairs") as tell:
        loss = mean_loss(translator.model, PaddedPairs(pairs, **special), on_batch=tell)
    if not math.isfinite(loss):
        raise ValueError(f"The loss is no number ({loss}): the weights are too large.")
    return loss


def translate(
    translator: Translator, sources: list[str], beams: int, arguments: argparse.Namespace
) -> list[str]:
    """The best translation of each source, of those alike in length together."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    written = [""] * len(sources)
    penalty = 1.0 if arguments.length_penalty is None else arguments.length_penalty
    with work_bar("Translate", len(sources), " sentences") as tell:
        for first in range(0, len(order), TOGETHER):
            places = order[first : first + TOGETHER]
            some = translator.best(
                [sources[i] for i in places], num_beams=beams, length_penalty=penalty
            )
            for i, text in zip(places, some, strict=True):
                written[i] = text
            tell(len(places))
    return written


def samples(pairs: Sequence[Pair], written: Sequence[str]) -> list[dict[str, str]]:
    """Sources, references and what the model made of them."""
    return [
        {"source": source, "reference": reference, "prediction": prediction}
        for (source, reference), prediction in zip(pairs, written, strict=True)
    ]


def in_words(measured: dict[str, Any], judgement: Judgement) -> dict[str, str]:
    """What was measured, as a reader wants it."""
    return {
        "loss": f"{measured['loss']:.4f} nats per token",
        "perplexity": f"{measured['perplexity']:.3f}",
        "pairs": f"{measured['pairs']:,}, translated with {measured['num_beams']} beams",
        "exact": f"{measured['exact']:.1%} are their reference, word by word",
    } | judgement.in_words()
