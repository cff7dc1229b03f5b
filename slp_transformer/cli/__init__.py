"""The command line: `slp-transformer train | generate | translate | evaluate | info | merge | tab`.

It ends with 0 if all went well; 2 after bad input, with a message on stderr; 130 after Ctrl-C
(143 after SIGTERM, 129 after SIGHUP), with the command that resumes; 141 if nobody read on; 1 if
another process of the run has died. A traceback, also with 1, is a bug of the package.
"""

import importlib
import signal
import sys
from collections.abc import Sequence
from typing import Any

import slp_transformer
from slp_transformer._internal.atomic_write import error_message, require_extra
from slp_transformer._internal.signals import SignalHandler
from slp_transformer.cli.console import (
    BAD_INPUT,
    BROKEN_PIPE,
    EXIT_OK,
    FAILED,
    PROGRAM,
    SIGNALLED,
    compiler_hint,
    is_compiler_error,
    is_out_of_memory,
    out_of_memory_hint,
    print_error,
    print_result,
    rank,
    set_utf8_output,
    silence_broken_pipe,
)
from slp_transformer.cli.torch_loading import torch_import_notice

USAGE = f"""usage: {PROGRAM} COMMAND ...

Train small language models on your own text or guitar tabs, and generate with them.

  {PROGRAM} train text my-texts --out-dir runs/mine    a file or a folder of .txt files
  {PROGRAM} train tabs --out-dir runs/tabs             guitar tabs
  {PROGRAM} train pairs --out-dir runs/pairs           pairs of sentences
  {PROGRAM} generate runs/mine --prompt "It was"       continue a prompt
  {PROGRAM} translate runs/pairs "A sentence."         translate with a model trained on pairs
  {PROGRAM} evaluate runs/mine                         on data that it was not trained on
  {PROGRAM} info runs/mine                             its model, tokenizer and progress
  {PROGRAM} merge runs/lora --out-dir runs/merged      a LoRA run with its base
  {PROGRAM} tab song.mid                               guitar tab that can be played

{PROGRAM} COMMAND --help lists the options of a command."""


def parse(args: Sequence[str]) -> tuple[str, Any]:
    """Parse the arguments.

    Returns:
        The command's name, and its options.

    Raises:
        SystemExit: with 2 if they are wrong, after a message; with 0 after help.
        ValueError: if an option is impossible.
    """
    if not args or args[0] in ("-h", "--help", "--version"):
        print_result(slp_transformer.__version__ if args and args[0] == "--version" else USAGE)
        raise SystemExit(EXIT_OK if args else BAD_INPUT)
    tyro = require_extra("tyro", "Commands")
    from slp_transformer.cli.options import COMMANDS
    from slp_transformer.tasks.run_config import closest_match

    command = args[0]
    if command not in COMMANDS:
        raise ValueError(f'There is no command "{command}": {closest_match(command, COMMANDS)}')
    if command == "train":
        from slp_transformer.cli.train_options import parse_train

        return command, parse_train(args[1:])
    quiet = rank() > 0
    prog = f"{PROGRAM} {command}"
    options = tyro.cli(COMMANDS[command], args=args[1:], prog=prog, console_outputs=not quiet)
    if getattr(options, "run", None) is not None:
        check_run(command, options)
    return command, options


def check_run(command: str, options: Any) -> None:
    """Refuse a folder without a run, and options that its task has no use for, without PyTorch.

    Raises:
        ValueError: saying what is wrong.
    """
    from slp_transformer.modern.published_folders import is_pretrained_folder
    from slp_transformer.tasks.loaded_run import find_task
    from slp_transformer.training.run_folder import checkpoint_folder

    task = find_task(options.run)
    if command == "generate":
        task.check_generate(options)
    elif command == "evaluate":
        task.check_evaluate(options)
    if not is_pretrained_folder(options.run):
        checkpoint_folder(options.run, getattr(options, "checkpoint", "last"))


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        args: the words after the program's name; those of the process if None.

    Returns:
        The exit code.
    """
    set_utf8_output()
    # The exit code of a process that has finished should not be changed by another Ctrl-C.
    with SignalHandler(defer=False, ignore_afterwards=args is None):
        return run(sys.argv[1:] if args is None else args)


def run(args: Sequence[str]) -> int:
    """Run a command line, and return the exit code, whatever comes of it."""
    try:
        command, options = parse(args)
        with torch_import_notice(getattr(options, "quiet", False) or command == "tab"):
            module = importlib.import_module(f"slp_transformer.cli.{command}")
        module.execute(options)
        sys.stdout.flush()
        return EXIT_OK
    except SystemExit as ended:  # the reason has been printed
        return int(ended.code or EXIT_OK)
    except BrokenPipeError:
        silence_broken_pipe()
        return BROKEN_PIPE
    except KeyboardInterrupt as stopped:
        if rank() == 0:
            print_error(str(stopped) or "Stopped.")
        return SIGNALLED + getattr(stopped, "signal_number", signal.SIGINT)
    except (MemoryError, RuntimeError) as error:
        if is_compiler_error(error):
            print_error(compiler_hint(args[0]))
        elif is_out_of_memory(error):
            print_error(out_of_memory_hint(args[0]))
        else:
            raise
        return BAD_INPUT
    except ConnectionError as error:  # another process of the run has died
        print_error(str(error))
        return FAILED
    except OSError as error:
        where = f"{error.filename} could not be read or written: " if error.filename else ""
        print_error(f"{where}{error_message(error)}.")
        return BAD_INPUT
    except ValueError as error:
        print_error(str(error))
        return BAD_INPUT
    except ImportError as error:
        if error.name is not None:  # a module of ours that is not there, rather than an extra
            raise
        print_error(str(error))
        return BAD_INPUT
