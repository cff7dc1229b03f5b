"""Measure how well a trained model predicts what it did not learn from."""

import argparse
import math
import sys
from typing import Any

from slp_transformer._internal.progress_bar import work_bar
from slp_transformer.cli import evaluate_tabs, evaluate_translation, published_model
from slp_transformer.cli.arguments import TEMPERATURE
from slp_transformer.cli.check_args import translates
from slp_transformer.cli.console import result, result_json, table
from slp_transformer.cli.generation_session import Tablature, World, Writing, world_of, write_on
from slp_transformer.cli.loaded_run import TOKENS, Run, load_run
from slp_transformer.cli.samples import (
    listed,
    numbered,
    playability,
    say_what_was_forgotten,
)
from slp_transformer.data import TextTokenizer
from slp_transformer.data.batches import TokenWindows
from slp_transformer.data.text_tokenizer import UNKNOWN
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer
from slp_transformer.tasks.datasets import Stream, encode_source, reopen_data
from slp_transformer.training.devices import pick_device
from slp_transformer.training.evaluation import mean_loss
from slp_transformer.training.train_config import TrainConfig


def act(arguments: argparse.Namespace) -> None:
    """Measure, and print what came of it.

    Raises:
        ValueError: if there is no such run or source, too little in it, or an option will not do.
    """
    if translates(arguments.run, arguments.checkpoint):
        evaluate_translation.act(arguments)
        return
    run = load_run(arguments.run, arguments.checkpoint, pick_device(arguments.device))
    told = {"run": str(arguments.run), "checkpoint": arguments.checkpoint}
    told |= {"source": arguments.source or "held out"}
    stream = find_stream(run, arguments.source)
    measured = measure(run, stream)
    world = world_of(run.tokenizer, "standard", 0)
    written = [] if arguments.samples is None else write_samples(run, world, arguments)
    if isinstance(world, Tablature):
        measured |= measure_tabs(run, stream, world, written, arguments)
    if arguments.json:
        samples = {"samples": listed(world, written, arguments.seed)} if written else {}
        result_json(told | measured | samples)
        return
    result(table(in_words(measured)))
    if "figures" in measured:
        result("\n" + evaluate_tabs.table_of(measured["figures"]))
    if written:
        result("\n" + numbered(world, written), end="")


def in_words(measured: dict[str, Any]) -> dict[str, str]:
    """What was measured, as a reader wants it."""
    beyond = measured["perplexity"] is None
    rows = {
        "loss": f"{measured['loss']:.4f} nats per token",
        "perplexity": "beyond 1e308" if beyond else f"{measured['perplexity']:.3f}",
        "tokens": f"{measured['tokens']:,}",
    }
    for unit in ("character", "byte"):
        if f"bits_per_{unit}" in measured:
            rows[f"bits per {unit}"] = f"{measured[f'bits_per_{unit}']:.4f}"
    if "unknown" in measured:
        rows["bits per byte"] = (
            f"none, for {measured['unknown']:,} of the tokens are {UNKNOWN}: the model is spared "
            "the bytes that they stand for, so that it would not compare"
        )
    for name, bits in measured.get("bits_a_note", {}).items():
        rows[f"bits a note, {name}"] = f"{bits:.3f}"
    for what in ("events", "chords"):
        if what in measured:
            share = measured[f"playable_{what}"]
            told = "none written" if share is None else f"{share:.1%} of {measured[what]:,}"
            rows[f"playable {what}"] = told
    return rows


def measure_tabs(
    run: Run,
    stream: Stream,
    world: Tablature,
    written: list[Writing],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Bits a note; with samples what they are like, and others that no grammar keeps in order."""
    held_out = evaluate_tabs.pieces_in(stream, run.tokenizer.bos_id)
    learned = evaluate_tabs.learned_pieces(run)
    told: dict[str, Any] = {"bits_a_note": evaluate_tabs.bits_a_note(run, held_out, learned)}
    if not written:
        return told
    free = Tablature(run.tokenizer, world.tuning, free=True)
    groups = {"model": written, "model without grammar": write_samples(run, free, arguments)}
    figures = evaluate_tabs.figures_of(run.tokenizer, held_out, learned, groups)
    return told | playability(world, written) | {"figures": figures}


def write_samples(run: Run, world: World, arguments: argparse.Namespace) -> list[Writing]:
    """What `generate` would write without a prompt."""
    rows = [world.begin(None) for _ in range(arguments.samples)]
    heat = TEMPERATURE if arguments.temperature is None else arguments.temperature
    written = write_on(run.model, world, rows, arguments.tokens, arguments.seed, temperature=heat)
    say_what_was_forgotten(run.model, written)
    return written


def find_stream(run: Run, source: str | None) -> Stream:
    """The tokens to measure on.

    Raises:
        ValueError: if there is no source, or it cannot be read.
    """
    if source is not None and isinstance(run.tokenizer, PretrainedTokenizer):
        return published_model.tokens_of(source, run.tokenizer)
    if source is not None:
        return encode_source(source, run.tokenizer)
    if run.recipe is None:
        raise ValueError(
            f"{run.folder} has no recipe.toml to tell what was held out: name a SOURCE to measure "
            "on."
        )
    return reopen_data(run.recipe.data, run.folder / TOKENS).held_out


def perplexity(loss: float) -> float | None:
    """The exponential of a loss; None if no number is so large."""
    return math.exp(loss) if loss < math.log(sys.float_info.max) else None


def measure(run: Run, stream: Stream) -> dict[str, Any]:
    """Loss and what follows from it, over the windows that a training run measures on too.

    Raises:
        ValueError: if the stream is too short for one window.
    """
    if isinstance(run.tokenizer, PretrainedTokenizer):
        return published_model.measure(run, stream)
    settings = run.recipe.training if run.recipe else TrainConfig(steps=1)
    N = settings.sequence_length or run.model.config.context_length
    windows = TokenWindows(stream, N)
    count = (len(stream) - 1) // N * N
    with work_bar("Measure", len(windows), " sequences") as tell:
        loss = mean_loss(run.model, windows, batch_size=settings.batch_size, tell=tell)
    if not math.isfinite(loss):
        raise ValueError(
            f"The loss is no number ({loss}): the weights of {run.folder} are too large to compute "
            "with; try its other checkpoint."
        )
    measured = {"loss": loss, "perplexity": perplexity(loss), "tokens": count}
    if isinstance(run.tokenizer, TextTokenizer):
        bits = loss * count / math.log(2)
        said = stream[1 : count + 1].tolist()
        if unknown := said.count(run.tokenizer.unknown_id):
            # What <unk> stands for has bytes that the model never had to predict.
            return measured | {"unknown": unknown}
        size = sum(len(run.tokenizer.bytes_of(i)) for i in said)
        characters = len(run.tokenizer.decode(said))
        measured |= {"characters": characters, "bytes": size}
        measured |= {"bits_per_character": bits / characters, "bits_per_byte": bits / size}
    return measured
