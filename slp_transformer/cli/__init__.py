"""The command line: `slp-transformer train | generate | translate | ...`.

It ends with 0 if all went well; 2 after bad input, with a message on stderr; 130 after Ctrl-C
(143 after SIGTERM, 129 after SIGHUP), with the command that resumes; 141 if nobody read on; 1 if
another process of the run has died. A traceback, also with 1, is a bug of the package.
"""

import importlib
import mmap
import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import slp_transformer
from slp_transformer._internal.atomic_write import NotSyncedError, error_message
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.plugins import (
    TEXT_EXTRA,
    Libraries,
    import_object,
    pop_plugin_problems,
)
from slp_transformer._internal.signals import SignalHandler
from slp_transformer._internal.terminal import discard_unwritten_output, open_closed_streams
from slp_transformer.cli.commands import COMMANDS
from slp_transformer.cli.console import (
    BAD_INPUT,
    BROKEN_PIPE,
    EXIT_OK,
    FAILED,
    PROGRAM,
    SIGNALLED,
    explain_resource_error,
    is_broken_pipe,
    print_error,
    print_result,
    print_status,
    rank,
    set_utf8_output,
    torch_import_notice,
)
from slp_transformer.tasks.registry import TASKS

TORCH_BYTES = 640 << 20  # of addresses, which its libraries take at least

INTRODUCTION = f"""usage: {PROGRAM} COMMAND ...

Train small language models on your own data, and generate with them."""


def format_usage() -> str:
    """Return the help on all tasks and commands."""
    entries = [*(task.usage for task in TASKS.values()), *(c.usage for c in COMMANDS.values())]
    lines = [usage for usage in entries if usage is not None]
    width = max(len(example) for example, _ in lines)
    rows = (f"  {PROGRAM} {example:<{width}}  {what}" for example, what in lines)
    end = f"{PROGRAM} COMMAND --help lists the options of a command."
    return "\n".join([INTRODUCTION, "", *rows, "", end])


def print_plugin_problems() -> None:
    """Say which plug-ins were left out, and why."""
    for sentence in pop_plugin_problems():
        print_status(sentence)


def check_libraries(name: str, needed: Libraries) -> None:
    """Refuse to begin what would end for want of a library.

    Args:
        name: the command's name.
        needed: what it takes for granted.

    Raises:
        ImportError: naming all that are missing, and how to install them.
    """
    missing = {
        requirement: [library for library in libraries if find_spec(library) is None]
        for requirement, libraries in needed.items()
    }
    if libraries := dict.fromkeys(library for some in missing.values() for library in some):
        requirements = " ".join(f'"{name}"' for name, some in missing.items() if some)
        raise ImportError(
            f"{name} needs {', '.join(libraries)}, which can be installed by: "
            f"python -m pip install {requirements}.{see('install')}"
        )


def check_utf8_arguments(args: Sequence[str]) -> None:
    """Refuse words that cannot be written as UTF-8.

    Raises:
        ValueError: showing the first of them.
    """
    for word in args:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise ValueError(
                f"{ascii(word)} is not UTF-8: write it as UTF-8, and in a terminal of another "
                "encoding set PYTHONUTF8=1."
            )


def _check_before_torch() -> None:
    """Refuse to load PyTorch where its libraries would end the process without a sentence.

    Raises:
        ValueError: if the current folder was deleted, or a limit leaves too little memory.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        raise ValueError(
            "The current folder was deleted: change to another one, as by cd, and try again."
        ) from None
    try:
        if os.name == "posix":  # addresses alone, of which nothing is used
            mmap.mmap(-1, TORCH_BYTES, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
    except OSError:
        raise ValueError(
            "There is not enough memory to load PyTorch: raise the limit of this process."
        ) from None


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        args: the words after the program's name; those of the process if None.

    Returns:
        The exit code.
    """
    open_closed_streams()
    set_utf8_output()
    # The exit code of a process that has finished should not be changed by another Ctrl-C.
    with SignalHandler(defer=False, ignore_afterwards=args is None):
        code = run_command_line(sys.argv[1:] if args is None else args)
        discard_unwritten_output()
        return code


def run_command_line(args: Sequence[str]) -> int:
    """Run a command line, and return the exit code, whatever comes of it."""
    try:
        print_plugin_problems()
        if not args or args[0] in ("-h", "--help", "--version"):
            print_result(
                slp_transformer.__version__ if args[:1] == ["--version"] else format_usage()
            )
            return EXIT_OK if args else BAD_INPUT
        name, known = args[0], COMMANDS.get(args[0])
        if known is None or not known.any_bytes:
            check_utf8_arguments(args)
        if not all(map(find_spec, ("tyro", "pydantic"))):  # nothing can be parsed
            check_libraries(name, known.libraries if known else TEXT_EXTRA)
        from slp_transformer.cli.parsing import parse_command_line

        command, options = parse_command_line(args)
        print_plugin_problems()
        check_libraries(name, {**command.libraries, **options.libraries()})
        with torch_import_notice(getattr(options, "quiet", False) or not command.loads_torch):
            if command.loads_torch:
                _check_before_torch()
                importlib.import_module("torch")
            execute = import_object(command.execute, f"The command {name}")
        execute(options)
        sys.stdout.flush()
        return EXIT_OK
    except SystemExit as ended:  # the reason has been printed
        return int(ended.code or EXIT_OK)
    except KeyboardInterrupt as stopped:
        if rank() == 0:
            print_error(str(stopped) or "Stopped.")
        return SIGNALLED + getattr(stopped, "signal_number", signal.SIGINT)
    except (MemoryError, RuntimeError) as error:
        if not (hint := explain_resource_error(error, args[0])):
            raise
        print_error(hint)
        return BAD_INPUT
    except OSError as error:
        if is_broken_pipe(error):
            return BROKEN_PIPE
        if isinstance(error, ConnectionError):  # another process of the run has died
            print_error(str(error))
            return FAILED
        where = f"{error.filename} could not be read or written: " if error.filename else ""
        if isinstance(error, BlockingIOError) and not error.filename:
            where = "No further process or thread could be started: "
        if isinstance(error, NotSyncedError):
            where = f"{error.filename} is written, but the disk did not confirm that it stays: "
        print_error(f"{where}{error_message(error)}.")
        return BAD_INPUT
    except (ValueError, ImportError) as error:
        if isinstance(error, ImportError) and error.name is not None:
            if "failed to map" not in str(error):  # a module of ours
                raise
            error = ValueError(f"There is not enough memory to load PyTorch ({error}).")
        print_error(str(error))
        return BAD_INPUT
