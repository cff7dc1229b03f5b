"""Measure how well a trained model predicts what it did not learn from."""

import argparse
import math
from typing import Any

from slp_transformer.batches import TokenWindows
from slp_transformer.command_line.console import result, result_json, table
from slp_transformer.command_line.runs import TOKENS, Run, add_run, load_run
from slp_transformer.command_line.samples import (
    TEMPERATURE,
    add_writing,
    check_count,
    listed,
    numbered,
    playability,
    say_what_was_forgotten,
)
from slp_transformer.command_line.writing import Tablature, World, Writing, world_of, write_on
from slp_transformer.loss import mean_loss
from slp_transformer.recipes.data import Stream, encode_source, reopen_data
from slp_transformer.text import TextTokenizer
from slp_transformer.training_settings import TrainingSettings, pick_device

USAGE = "slp-transformer evaluate RUN [SOURCE] [--samples N] [--json]"
EXAMPLES = """examples:
  slp-transformer evaluate runs/mine                 on what the run held out
  slp-transformer evaluate runs/mine other.txt       on another text
  slp-transformer evaluate runs/mine --samples 3     and three texts that the model writes
  slp-transformer evaluate runs/mine --json

The samples are those of `generate` with its defaults, the same --tokens and the same --seed. For
guitar tabs, the share of their events, and of the chords among them, that one hand can play.

A loss in nats per token depends on what a token is. Bits per character and per byte do not: they
compare models with different tokenizers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what `evaluate` takes."""
    parser.usage, parser.epilog = USAGE, EXAMPLES
    add_run(parser)
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="what to measure on, all of it: a file, a folder, - for standard input, the name of a "
        "corpus; what the run held out, if there is none",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group("samples")
    group.add_argument(
        "--samples", type=int, metavar="N", help="also have the model write N texts, and show them"
    )
    add_writing(group)


def act(arguments: argparse.Namespace) -> None:
    """Measure, and print what came of it.

    Raises:
        ValueError: if there is no such run or source, too little in it, or an option will not do.
    """
    if arguments.samples is not None:
        for name in ("samples", "tokens"):
            check_count(name, getattr(arguments, name))
    run = load_run(arguments.run, arguments.checkpoint, pick_device(arguments.device))
    told = {"run": str(arguments.run), "checkpoint": arguments.checkpoint}
    told |= {"source": arguments.source or "held out"}
    measured = measure(run, find_stream(run, arguments.source))
    world = world_of(run.tokenizer, "standard", 0)
    written = [] if arguments.samples is None else write_samples(run, world, arguments)
    if written and isinstance(world, Tablature):
        measured |= playability(world, written)
    if arguments.json:
        samples = {"samples": listed(world, written, arguments.seed)} if written else {}
        result_json(told | measured | samples)
        return
    result(table(in_words(measured)))
    if written:
        result("\n" + numbered(world, written), end="")


def in_words(measured: dict[str, Any]) -> dict[str, str]:
    """What was measured, as a reader wants it."""
    rows = {
        "loss": f"{measured['loss']:.4f} nats per token",
        "perplexity": f"{measured['perplexity']:.3f}",
        "tokens": f"{measured['tokens']:,}",
    }
    for unit in ("character", "byte"):
        if f"bits_per_{unit}" in measured:
            rows[f"bits per {unit}"] = f"{measured[f'bits_per_{unit}']:.4f}"
    for what in ("events", "chords"):
        if what in measured:
            share = measured[f"playable_{what}"]
            told = "none written" if share is None else f"{share:.1%} of {measured[what]:,}"
            rows[f"playable {what}"] = told
    return rows


def write_samples(run: Run, world: World, arguments: argparse.Namespace) -> list[Writing]:
    """What `generate` would write without a prompt."""
    rows = [world.begin(None) for _ in range(arguments.samples)]
    written = write_on(
        run.model, world, rows, arguments.tokens, arguments.seed, temperature=TEMPERATURE
    )
    say_what_was_forgotten(run.model, written)
    return written


def find_stream(run: Run, source: str | None) -> Stream:
    """The tokens to measure on.

    Raises:
        ValueError: if there is no source, or it cannot be read.
    """
    if source is not None:
        return encode_source(source, run.tokenizer)
    if run.recipe is None:
        raise ValueError(
            f"{run.folder} has no recipe.toml to tell what was held out: name a SOURCE to measure "
            "on."
        )
    return reopen_data(run.recipe.data, run.folder / TOKENS).held_out


def measure(run: Run, stream: Stream) -> dict[str, Any]:
    """Loss and what follows from it, over the windows that a training run measures on too.

    Raises:
        ValueError: if the stream is too short for one window.
    """
    settings = run.recipe.training if run.recipe else TrainingSettings(steps=1)
    N = settings.context_length or run.model.config.context_length
    windows = TokenWindows(stream, N)
    count = (len(stream) - 1) // N * N
    loss = mean_loss(run.model, windows, batch_size=settings.batch_size)
    measured = {"loss": loss, "perplexity": math.exp(loss), "tokens": count}
    if isinstance(run.tokenizer, TextTokenizer):
        bits = loss * count / math.log(2)
        said = stream[1 : count + 1].tolist()
        size = sum(len(run.tokenizer.bytes_of(i)) for i in said)
        characters = len(run.tokenizer.decode(said))
        measured |= {"characters": characters, "bytes": size}
        measured |= {"bits_per_character": bits / characters, "bits_per_byte": bits / size}
    return measured
