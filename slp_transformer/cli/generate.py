"""Have a trained model write on after a prompt."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.cli.arguments import TEMPERATURE
from slp_transformer.cli.console import as_json, note, result
from slp_transformer.cli.generation_session import (
    Tablature,
    Text,
    World,
    Writing,
    world_of,
    write_on,
)
from slp_transformer.cli.loaded_run import load_run
from slp_transformer.cli.samples import (
    listed,
    numbered,
    say_what_was_forgotten,
)
from slp_transformer.guitar.formats.registry import TIMELESS, check_name, with_time_for, write_piece
from slp_transformer.guitar.timing import fitted
from slp_transformer.training.devices import pick_device


def act(arguments: argparse.Namespace) -> None:
    """Write, as the tokens come if there is one text, else all at the end.

    Raises:
        ValueError: if there is no such run, or the prompt or an option will not do.
    """
    texts = prompts(arguments)
    run = load_run(arguments.run, arguments.checkpoint, pick_device(arguments.device))
    asked = {kind: getattr(arguments, kind.lower()) for kind in ("KEY", "METRE", "STYLE")}
    asked = {kind: value for kind, value in asked.items() if value is not None}
    world = world_of(run.tokenizer, arguments.tuning or "standard", arguments.capo or 0, **asked)
    if isinstance(world, Tablature) and as_piece(arguments):
        check_name(arguments.output)
    rows = [world.begin(text) for text in texts for _ in range(arguments.num_samples)]
    alone = len(rows) == 1 and not (arguments.json or arguments.output)
    live = alone and isinstance(world, Text) and "decoding.num_beams" not in arguments
    printer = Printer(world, rows[0]) if live else None
    written = write_on(
        run.model,
        world,
        rows,
        arguments.tokens,
        arguments.seed,
        on_token=printer.add if printer else None,
        **chosen(arguments),
    )
    if printer:
        printer.finish()
    else:
        deliver(arguments, world, written)
    say_what_was_forgotten(run.model, written)


def prompts(arguments: argparse.Namespace) -> list[str | None]:
    """The prompts; one that is None if none is given.

    Raises:
        ValueError: if a prompt file cannot be read.
    """
    texts: list[str | None] = list(arguments.prompt or [])
    if arguments.prompt_file is not None:
        texts.append(read_prompt(arguments.prompt_file))
    return texts or [None]


def read_prompt(name: str) -> str:
    """A prompt from a file or from standard input, without the line break at its end.

    Raises:
        ValueError: if it cannot be read.
    """
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode("utf-8").replace("\r\n", "\n").removesuffix("\n")
    except OSError as error:
        raise ValueError(f"The prompt {name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"The prompt {name} is not text in UTF-8.") from None


def chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of decoding that were given; at the usual temperature, if none was."""
    given = {
        dest.partition(".")[2]: value
        for dest, value in vars(arguments).items()
        if dest.startswith("decoding.")
    }
    return given if "num_beams" in given else {"temperature": TEMPERATURE} | given


# --- Showing it --------------------------------------------------------------------------------


class Printer:
    """Prints a text as it comes."""

    def __init__(self, world: Text, prompt: list[int]):
        """Print the prompt first."""
        self.stream = world.tokenizer.stream()
        result("".join(map(self.stream.add, prompt)), end="")

    def add(self, row: int, token: int) -> None:
        """Print what a token says."""
        result(self.stream.add(token), end="")

    def finish(self) -> None:
        """Print what is left, and end the line."""
        result(self.stream.finish())


def as_piece(arguments: argparse.Namespace) -> bool:
    """Whether a file was asked for whose name says what kind of file it is, and none of text."""
    suffix = "" if arguments.output is None else arguments.output.suffix.lower()
    return bool(suffix) and not arguments.json and suffix not in (*TIMELESS, ".md")


def deliver_pieces(arguments: argparse.Namespace, world: Tablature, written: list[Writing]) -> None:
    """Write each tab to a file of its own; several have numbers.

    Raises:
        ValueError: if a file of that kind cannot hold what was written.
    """
    path = arguments.output
    for number, writing in enumerate(written, start=1):
        own = path if len(written) == 1 else path.with_stem(f"{path.stem}-{number}")
        tab = world.tokenizer.decode(writing.ids).tab
        timed = with_time_for(replace(tab, title=own.stem), own)
        if timed.steps_per_quarter is not None:
            timed, changed = fitted(timed)
            if changed:
                note(f"Bars without a metre are lengthened, long ones cut: {numbers_in(changed)}.")
        if tab.steps_per_quarter is None:
            note("The steps of this model are columns of a text; they are taken for sixteenths.")
        write_piece(timed, own)
        note(f"Written to {own}.")


def numbers_in(numbers: list[int]) -> str:
    """The first ten numbers, and how many more."""
    more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return ", ".join(map(str, numbers[:10])) + more


def deliver(arguments: argparse.Namespace, world: World, written: list[Writing]) -> None:
    """Print texts, or write them to a file, whole or not at all."""
    if isinstance(world, Tablature) and as_piece(arguments):
        return deliver_pieces(arguments, world, written)
    content = numbered(world, written)
    if arguments.json:
        content = as_json(listed(world, written, arguments.seed)) + "\n"
    if arguments.output is None:
        result(content, end="")
        return
    with whole_file(arguments.output) as unfinished:
        unfinished.write_text(content, encoding="utf-8", newline="\n")
    note(f"Written to {arguments.output}.")
