"""The command line: `slp-transformer train | generate | translate | ... | tab | convert`.

It ends with 0 if all went well; 2 after bad input, with a message on stderr; 130 after Ctrl-C
(143 after SIGTERM, 129 after SIGHUP), with the command that resumes; 141 if nobody read on; 1 if
another process of the run has died. A traceback, also with 1, is a bug of the package.
"""

import importlib
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import slp_transformer
from slp_transformer._internal.atomic_write import error_message
from slp_transformer._internal.signals import SignalHandler
from slp_transformer.cli.console import (
    BAD_INPUT,
    BROKEN_PIPE,
    EXIT_OK,
    FAILED,
    PROGRAM,
    SIGNALLED,
    is_broken_pipe,
    print_error,
    print_result,
    rank,
    resource_hint,
    set_utf8_output,
    silence_broken_pipe,
    torch_import_notice,
)

LIBRARIES = {
    "text": "tyro pydantic safetensors numpy filelock tomli_w tokenizers tqdm".split(),
    "guitar": ["tyro", "mido", "guitarpro"],
}
"""The libraries of each extra that commands take for granted."""
GUITAR_COMMANDS = ("tab", "convert")
GUITAR_SUFFIXES = (".mid", ".gp3", ".gp4", ".gp5")  # of files that a library writes
USAGE = f"""usage: {PROGRAM} COMMAND ...

Train small language models on your own text or guitar tabs, and generate with them.

  {PROGRAM} train text my-texts --out-dir runs/mine    a file or a folder of .txt files
  {PROGRAM} train tabs --out-dir runs/tabs             guitar tabs
  {PROGRAM} train pairs --out-dir runs/pairs           pairs of sentences
  {PROGRAM} generate runs/mine --prompt "the "         continue a prompt
  {PROGRAM} translate runs/pairs "A sentence."         translate with a model trained on pairs
  {PROGRAM} evaluate runs/mine                         on data that it was not trained on
  {PROGRAM} info runs/mine                             its model, tokenizer and progress
  {PROGRAM} merge runs/lora --out-dir runs/merged      a LoRA run with its base
  {PROGRAM} tab song.mid                               guitar tab that can be played
  {PROGRAM} convert song.gp5 -o song.musicxml          guitar music as another kind of file

{PROGRAM} COMMAND --help lists the options of a command."""


def check_libraries(command: str, output: Path | None = None) -> None:
    """Refuse to begin what would end for want of a library.

    Raises:
        ImportError: naming all that are missing, and how to install them.
    """
    extras = ["guitar" if command in GUITAR_COMMANDS else "text"]
    if output is not None and output.suffix.lower() in GUITAR_SUFFIXES and extras == ["text"]:
        extras.append("guitar")
    names = dict.fromkeys(name for extra in extras for name in LIBRARIES[extra])
    if missing := [name for name in names if find_spec(name) is None]:
        raise ImportError(
            f"{command} needs {', '.join(missing)}, which can be installed by: "
            f'python -m pip install "slp-transformer[{",".join(extras)}]".'
        )


def check_utf8(args: Sequence[str]) -> None:
    """Refuse words that cannot be written as UTF-8; names of guitar files may be anything.

    Raises:
        ValueError: showing the first of them.
    """
    for word in args if args[0] not in GUITAR_COMMANDS else ():
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise ValueError(
                f"{ascii(word)} is not UTF-8: write it as UTF-8, and in a terminal of another "
                "encoding set PYTHONUTF8=1."
            )


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
        if not args or args[0] in ("-h", "--help", "--version"):
            print_result(slp_transformer.__version__ if args[:1] == ["--version"] else USAGE)
            return EXIT_OK if args else BAD_INPUT
        check_utf8(args)
        if not all(map(find_spec, ("tyro", "pydantic"))):  # nothing can be parsed
            check_libraries(args[0])
        from slp_transformer.cli.options import parse

        command, options = parse(args)
        check_libraries(command, getattr(options, "output", None))
        with torch_import_notice(getattr(options, "quiet", False) or command in GUITAR_COMMANDS):
            module = importlib.import_module(f"slp_transformer.cli.{command}")
        module.execute(options)
        sys.stdout.flush()
        return EXIT_OK
    except SystemExit as ended:  # the reason has been printed
        return int(ended.code or EXIT_OK)
    except KeyboardInterrupt as stopped:
        if rank() == 0:
            print_error(str(stopped) or "Stopped.")
        return SIGNALLED + getattr(stopped, "signal_number", signal.SIGINT)
    except (MemoryError, RuntimeError) as error:
        if not (hint := resource_hint(error, args[0])):
            raise
        print_error(hint)
        return BAD_INPUT
    except OSError as error:
        if is_broken_pipe(error):
            silence_broken_pipe()
            return BROKEN_PIPE
        if isinstance(error, ConnectionError):  # another process of the run has died
            print_error(str(error))
            return FAILED
        where = f"{error.filename} could not be read or written: " if error.filename else ""
        print_error(f"{where}{error_message(error)}.")
        return BAD_INPUT
    except (ValueError, ImportError) as error:
        if isinstance(error, ImportError) and error.name is not None:  # a module of ours
            raise
        print_error(str(error))
        return BAD_INPUT
