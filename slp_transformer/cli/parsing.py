"""From the words of a command to its options. Nothing here needs PyTorch.

The names of flags are checked here, so that a wrong one is answered with the nearest right one.
tyro turns their values into the fields of a dataclass, and says itself what is wrong with one.
"""

import contextlib
import difflib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pkgutil import resolve_name
from traceback import walk_tb
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from slp_transformer._internal.choices import tyro_registry
from slp_transformer._internal.plugins import Command
from slp_transformer.cli.commands import COMMANDS
from slp_transformer.cli.console import PROGRAM, rank
from slp_transformer.tasks.run_config import closest_match

T = TypeVar("T")
FLAG = re.compile(r"(--[\w-]+)(=.*)?", re.DOTALL)


def parse(args: Sequence[str]) -> tuple[Command, object]:
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
        raise ValueError(f'There is no command "{name}": {closest_match(name, COMMANDS)}')
    command = COMMANDS[name]
    options = resolve_name(command.options)
    options = parse_flags(options, name, rest) if isinstance(options, type) else options(rest)
    if hasattr(options, "check"):
        options.check()
    return command, options


def parse_flags(options: type[T], name: str, args: Sequence[str], default: T | None = None) -> T:
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

    check_flags(options, name, args)
    config: list[Any] = [tyro.conf.OmitArgPrefixes]
    how: dict[str, Any] = {"prog": f"{PROGRAM} {name}", "registry": tyro_registry()}
    if default is not None:
        how["default"] = default
    else:  # only `train` has presets, whose values None takes back
        config += [tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return tyro.cli(
                options, args=args, config=tuple(config), console_outputs=rank() == 0, **how
            )
    except SystemExit as ended:
        if refusal := find_refusal(ended):
            raise ValueError(str(refusal)) from None
        sys.stderr.write(printed.getvalue())
        raise


def find_refusal(ended: SystemExit) -> ValueError | None:
    """Return why a dataclass refused its values, which tyro has caught; None if none did."""
    error = ended.__context__
    while error is not None:
        frames = (frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__))
        if isinstance(error, ValueError) and "__post_init__" in frames:
            return error
        error = error.__context__
    return None


# --- The names of flags --------------------------------------------------------------------------


def check_flags(options: Any, name: str, args: Sequence[str]) -> None:
    """Refuse flags that a command does not have.

    Args:
        options: the class of its options.
        name: the command's name.
        args: the words after it.

    Raises:
        ValueError: naming the first of them, and the nearest right one.
    """
    known = {"--help": bool} | dict(iter_flags(options))
    names = [*known, *(f"--no-{flag[2:]}" for flag, kind in known.items() if kind is bool)]
    for word in args:
        flag = FLAG.fullmatch(word)
        if flag and (given := flag[1].replace("_", "-")) not in names:
            meant = difflib.get_close_matches(given, names, n=1)
            end = f": did you mean {meant[0]}?" if meant else f" (see {PROGRAM} {name} --help)."
            raise ValueError(f"There is no option {flag[1]}{end}")


def iter_flags(options: Any) -> Iterator[tuple[str, Any]]:
    """Yield the flags of a dataclass, and of dataclasses in it, with the types of their values."""
    kind = get_origin(options) or options
    types = dict(zip(getattr(kind, "__parameters__", ()), get_args(options), strict=False))
    hints = get_type_hints(kind)
    for field in fields(kind):
        hint = types.get(hints[field.name], hints[field.name])
        inner: Any = get_origin(hint)
        if inner and is_dataclass(inner):  # RunConfig[DataT], once DataT is known
            hint = inner[tuple(types.get(each, each) for each in get_args(hint))]  # type: ignore[index]  # a class
        if is_dataclass(inner or hint):
            yield from iter_flags(hint)
        else:
            yield f"--{field.name.replace('_', '-')}", hint
