"""The command line: `slp-transformer train | generate | evaluate | info`.

It ends with 0 if all went well; 2 after bad input, with one sentence on stderr; 130 after Ctrl-C,
with the command that goes on; 141 if nobody read on; 1 if another process of the run has died. A
traceback, also with 1, is a mistake of the package.
"""

import argparse
import sys
from collections.abc import Sequence

from slp_transformer.command_line import evaluate, generate, info, train
from slp_transformer.command_line.console import (
    BAD_INPUT,
    BROKEN_PIPE,
    FAILED,
    FINE,
    failure,
    nobody_listens,
    rank,
    speak_utf8,
)
from slp_transformer.command_line.flags import Parser
from slp_transformer.recipes.settings import nearest
from slp_transformer.starting import INTERRUPTED, PROGRAM, loaded

COMMANDS = {"train": train, "generate": generate, "evaluate": evaluate, "info": info}
ABOUT = """Train small language models on your own text or guitar tabs, and have them write.

  slp-transformer train my-texts --run runs/mine        a file or a folder of .txt files
  slp-transformer generate runs/mine --prompt "It was"  have the model write on
  slp-transformer evaluate runs/mine                    how well it predicts text it never saw
  slp-transformer info runs/mine                        what it is made of
"""


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(prog=PROGRAM, description=ABOUT, usage=f"{PROGRAM} COMMAND ...")
    parser.add_argument("--version", action="version", version=info.version())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        first = module.__doc__.partition("\n")[0].rstrip(".")
        own = commands.add_parser(
            name, prog=f"{PROGRAM} {name}", help=first, description=first + "."
        )
        module.add_arguments(own)
        own.set_defaults(parser=own, act=module.act)
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments.

    Raises:
        SystemExit: with 2 if they are wrong, after a sentence; with 0 after help.
    """
    parser = make_parser()
    if not arguments:
        parser.print_help()
        raise SystemExit(BAD_INPUT)
    if not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        meant = nearest(arguments[0], COMMANDS)
        parser.error(f'there is no command "{arguments[0]}": {meant}')
    return parser.parse_all(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line says.

    Args:
        arguments: the words after the program's name; those of the process if None.

    Returns:
        The exit code.
    """
    speak_utf8()
    try:
        loaded()
        known = parse(sys.argv[1:] if arguments is None else arguments)
        known.act(known)
        sys.stdout.flush()
        return FINE
    except SystemExit as ended:  # argparse has said why
        return int(ended.code or FINE)
    except BrokenPipeError:
        nobody_listens()
        return BROKEN_PIPE
    except KeyboardInterrupt as stopped:
        if rank() == 0:
            failure(str(stopped) or "Stopped.")
        return INTERRUPTED
    except ConnectionError as error:  # another process of the run has died
        failure(str(error))
        return FAILED
    except (ValueError, OSError) as error:
        failure(str(error))
        return BAD_INPUT
    except ImportError as error:
        if error.name is not None:  # a module of ours that is not there, rather than an extra
            raise
        failure(str(error))
        return BAD_INPUT
