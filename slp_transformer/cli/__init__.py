"""The command line: `slp-transformer train | generate | translate | evaluate | info | merge | tab`.

It ends with 0 if all went well; 2 after bad input, with one sentence on stderr; 130 after Ctrl-C
(143 after SIGTERM, 129 after SIGHUP), with the command that goes on; 141 if nobody read on; 1 if
another process of the run has died. A traceback, also with 1, is a mistake of the package.
"""

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence

import slp_transformer
from slp_transformer._internal.atomic_write import reason_of
from slp_transformer._internal.signals import StopSignals
from slp_transformer.cli.arguments import COMMANDS
from slp_transformer.cli.check_args import look
from slp_transformer.cli.console import (
    BAD_INPUT,
    BROKEN_PIPE,
    FAILED,
    FINE,
    PROGRAM,
    SIGNALLED,
    failure,
    is_of_the_compiler,
    is_out_of_memory,
    nobody_listens,
    rank,
    speak_utf8,
    what_needs_no_compiler,
    what_takes_less,
)
from slp_transformer.cli.flags import Parser
from slp_transformer.cli.torch_loading import loading
from slp_transformer.tasks.setting_fields import nearest

ABOUT = """Train small language models on your own text or guitar tabs, and have them write.

  slp-transformer train my-texts --run runs/mine        a file or a folder of .txt files
  slp-transformer generate runs/mine --prompt "It was"  have the model write on
  slp-transformer evaluate runs/mine                    how well it predicts text it never saw
  slp-transformer info runs/mine                        what it is made of
  slp-transformer tab song.mid                          guitar tab that can be played
"""


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(prog=PROGRAM, description=ABOUT, usage=f"{PROGRAM} COMMAND ...")
    parser.add_argument("--version", action="version", version=slp_transformer.__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (about, add_arguments) in COMMANDS.items():
        own = commands.add_parser(
            name, prog=f"{PROGRAM} {name}", help=about, description=about + "."
        )
        add_arguments(own)
        own.set_defaults(parser=own, command=name)
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
    # A process that has said its last word has an exit code that no further Ctrl-C should spoil.
    with StopSignals(wait=False, for_good=arguments is None):
        return answer(sys.argv[1:] if arguments is None else arguments)


def answer(arguments: Sequence[str]) -> int:
    """Do what a command line says, whatever comes of it; the exit code."""
    try:
        known = parse(arguments)
        look(known)
        with loading(getattr(known, "quiet", False) or known.command == "tab"):
            command = importlib.import_module(f"slp_transformer.cli.{known.command}")
        command.act(known)
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
        return SIGNALLED + getattr(stopped, "number", signal.SIGINT)
    except (MemoryError, RuntimeError) as error:
        if is_of_the_compiler(error):
            failure(what_needs_no_compiler(arguments[0]))
        elif is_out_of_memory(error):
            failure(what_takes_less(arguments[0]))
        else:
            raise
        return BAD_INPUT
    except ConnectionError as error:  # another process of the run has died
        failure(str(error))
        return FAILED
    except OSError as error:
        where = f"{error.filename} could not be read or written: " if error.filename else ""
        failure(f"{where}{reason_of(error)}.")
        return BAD_INPUT
    except ValueError as error:
        failure(str(error))
        return BAD_INPUT
    except ImportError as error:
        if error.name is not None:  # a module of ours that is not there, rather than an extra
            raise
        failure(str(error))
        return BAD_INPUT
