"""Have a trained model write on after a prompt."""

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any

from slp_transformer import decoding
from slp_transformer.command_line.console import note, result, result_json
from slp_transformer.command_line.flags import add_setting
from slp_transformer.command_line.runs import add_run, load_run
from slp_transformer.command_line.samples import (
    TEMPERATURE,
    add_writing,
    check_count,
    listed,
    numbered,
    say_what_was_forgotten,
)
from slp_transformer.command_line.writing import Text, World, Writing, world_of, write_on
from slp_transformer.guitar import TUNINGS
from slp_transformer.recipes.settings import Setting, explanations, make_setting
from slp_transformer.storage import whole_file
from slp_transformer.training_settings import pick_device

HOW = "top_k", "top_p", "repetition_penalty", "num_beams", "length_penalty"
"""Arguments of `slp_transformer.decoding.generate` that are flags of the same meaning."""

USAGE = "slp-transformer generate RUN [--prompt TEXT] [--tokens N] [--seed N] [more]"
EXAMPLES = """examples:
  slp-transformer generate runs/mine --prompt "It was"
  slp-transformer generate runs/mine --prompt-file beginning.txt --tokens 2000 > story.txt
  echo "It was" | slp-transformer generate runs/mine --prompt-file -
  slp-transformer generate runs/tabs --tuning drop-D --output piece.txt

A model sees a window of its last tokens. Where a text is longer than that, the model goes on with
the last half window as its prompt, and forgets what was before."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what `generate` takes."""
    parser.usage, parser.epilog = USAGE, EXAMPLES
    add_run(parser)
    parser.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="what to go on from; may be given several times, and all are written on at once",
    )
    parser.add_argument(
        "--prompt-file",
        metavar="FILE",
        help="a file to go on from, or - for standard input; for guitar an ASCII tab",
    )
    add_writing(parser)
    parser.add_argument(
        "--num-samples", type=int, default=1, metavar="N", help="of each prompt [1]"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file instead")
    parser.add_argument("--json", action="store_true", help="print a list of texts as JSON")
    guitar = parser.add_argument_group("guitar")
    guitar.add_argument("--tuning", choices=tuple(TUNINGS), default="standard", metavar="NAME",
                        help=f"{', '.join(TUNINGS)} [standard]")  # fmt: skip
    guitar.add_argument("--capo", type=int, default=0, metavar="FRET", help="of a capo [0]")
    group = parser.add_argument_group("how a word is chosen")
    for setting in choosing():
        add_setting(group, setting, {"temperature": str(TEMPERATURE)}.get(setting.name))


def choosing() -> list[Setting]:
    """The options of decoding, explained as `generate` explains them."""
    signature = inspect.signature(decoding.generate)
    told = explanations(decoding.generate, "Args")
    return [
        make_setting("decoding", name, signature.parameters[name].annotation, told[name])
        for name in ("temperature", *HOW)
    ]


def act(arguments: argparse.Namespace) -> None:
    """Write, as the tokens come if there is one text, else all at the end.

    Raises:
        ValueError: if there is no such run, or the prompt or an option will not do.
    """
    for name in ("tokens", "num_samples"):
        check_count(name, getattr(arguments, name))
    texts = prompts(arguments)
    run = load_run(arguments.run, arguments.checkpoint, pick_device(arguments.device))
    world = world_of(run.tokenizer, arguments.tuning, arguments.capo)
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


def deliver(arguments: argparse.Namespace, world: World, written: list[Writing]) -> None:
    """Print texts, or write them to a file, whole or not at all."""
    if arguments.json:
        result_json(listed(world, written, arguments.seed))
        return
    content = numbered(world, written)
    if arguments.output is None:
        result(content, end="")
        return
    with whole_file(arguments.output) as unfinished:
        unfinished.write_text(content, encoding="utf-8", newline="\n")
    note(f"Written to {arguments.output}.")
