"""From the words of a command to its options. Nothing here needs PyTorch.

Each command's options are one dataclass, whose fields are flags and whose docstring is the help.

The names of flags are checked here, so that a wrong one is answered with the nearest right one.
tyro turns their values into the fields of a dataclass, and says itself what is wrong with one.
"""

import contextlib
import inspect
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from traceback import walk_tb
from typing import Any, TypeVar, get_origin

from slp_transformer._internal.choices import make_tyro_registry
from slp_transformer._internal.config_checks import suggest_closest_match
from slp_transformer._internal.plugins import Command, Options, import_object
from slp_transformer._internal.settings import check_values
from slp_transformer._internal.terminal import escape_controls
from slp_transformer.cli.commands import COMMANDS
from slp_transformer.cli.console import PROGRAM, rank
from slp_transformer.cli.flags import check_flags, collect_flag_types

T = TypeVar("T")
_MIN_COLUMNS = 20


def parse_command_line(args: Sequence[str]) -> tuple[Command, Options]:
    """Parse the words after the program's name.

    Returns:
        The command, and its options.

    Raises:
        SystemExit: with 0 after help, or if there is nothing to do; with 2 after tyro has said what
            is wrong with a value.
        ValueError: if an option is unknown, impossible, or has no effect on this run.
    """
    name, rest = args[0], args[1:]
    if name not in COMMANDS:
        raise ValueError(f'There is no command "{name}": {suggest_closest_match(name, COMMANDS)}')
    command = COMMANDS[name]
    found = import_object(command.options, f"The command {name}")
    options: Options = parse_flags(found, name, rest) if isinstance(found, type) else found(rest)
    check_values(options)
    options.check()
    return command, options


def parse_flags(
    options: Callable[..., T], name: str, args: Sequence[str], default: T | None = None
) -> T:
    """Parse the flags of a command.

    Args:
        options: the class of the options.
        name: the command's name.
        args: the words after it.
        default: the values of what is not among them, instead of the class's own.

    Raises:
        SystemExit: with 0 after help; with 2 after tyro has said what is wrong with a value.
        ValueError: if there is no such flag, or a dataclass refuses its values.
    """
    import tyro

    check_flags(collect_flag_types(options), name, args)
    config: list[Any] = [tyro.conf.OmitArgPrefixes]
    how: dict[str, Any] = {"prog": f"{PROGRAM} {name}", "registry": make_tyro_registry()}
    # tyro by itself would leave the docstring's examples out of the help, and what follows them.
    text = inspect.cleandoc((get_origin(options) or options).__doc__ or "")
    how["description"] = text.partition("\n\nAttributes:")[0]
    if default is not None:
        how["default"] = default
    else:  # only `train` has presets, whose values None takes back
        config += [tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), _wide_enough_terminal():
            return tyro.cli(
                options, args=args, config=tuple(config), console_outputs=rank() == 0, **how
            )
    except SystemExit as ended:
        if refusal := find_dataclass_error(ended):
            raise ValueError(str(refusal)) from None
        sys.stderr.write(escape_controls(printed.getvalue()))  # a shell's * may have named files
        raise


@contextlib.contextmanager
def _wide_enough_terminal() -> Iterator[None]:
    """Have help laid out for 20 columns at least: tyro never ends where there are a few."""
    stated = os.environ.get("COLUMNS")
    if shutil.get_terminal_size().columns < _MIN_COLUMNS:
        os.environ["COLUMNS"] = str(_MIN_COLUMNS)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS", None)
        if stated is not None:
            os.environ["COLUMNS"] = stated


def find_dataclass_error(ended: SystemExit) -> ValueError | None:
    """Return why a dataclass refused its values, which tyro has caught; None if none did."""
    error = ended.__context__
    while error is not None:
        functions = (frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__))
        if isinstance(error, ValueError) and "__post_init__" in functions:
            return error
        error = error.__context__
    return None
