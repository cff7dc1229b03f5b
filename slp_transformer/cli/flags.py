"""The names of a command's flags: the fields of its options. Nothing here needs PyTorch."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from slp_transformer._internal.setting_names import find_flags_of_ours
from slp_transformer.cli.console import PROGRAM
from slp_transformer.tasks.data_settings import Positional

FLAG = re.compile(r"(--[\w-]+)(=.*)?", re.DOTALL)  # any other word is a value, or an alias
HELP = ("-h", "--help")
POSITIONAL = Positional[int].__metadata__[0]  # type: ignore[attr-defined]  # marks what has no name


def parse_flag(word: str) -> str | None:
    """Return the flag of a word, `--top-p` for `--top_p=0.9`; None if it is not one."""
    found = FLAG.fullmatch(word)
    return found[1].replace("_", "-") if found else None


def collect_flag_types(options_class: Any) -> dict[str, Any]:
    """Return the flags of a dataclass, and of dataclasses in it, with the types of their values."""
    kind = get_origin(options_class) or options_class
    types = dict(zip(getattr(kind, "__parameters__", ()), get_args(options_class), strict=False))
    hints, found = get_type_hints(kind, include_extras=True), dict[str, Any]()
    for field in (field for field in fields(kind) if field.init):
        hint = types.get(hints[field.name], hints[field.name])
        generic: Any = get_origin(hint)
        if generic and is_dataclass(generic):  # RunConfig[DataT], once DataT is known
            hint = generic[tuple(types.get(each, each) for each in get_args(hint))]  # type: ignore[index]
        if is_dataclass(generic or hint):
            found |= collect_flag_types(hint)
        elif POSITIONAL not in getattr(hint, "__metadata__", ()):
            found[f"--{field.name.replace('_', '-')}"] = hint
    return found


def check_task_flags(task: str, own: Any, general: Any, name: str) -> None:
    """Refuse flags of a task that have the name of another flag.

    Args:
        task: the task's name.
        own: the class of its flags.
        general: the class of the command's options without them.
        name: the command's name.

    Raises:
        ValueError: naming the first of them.
    """
    if twice := sorted(collect_flag_types(own).keys() & collect_flag_types(general).keys()):
        raise ValueError(
            f"The task {task} has an option {twice[0]}, but so has {name} for every task: that of "
            f"{task} needs another name."
        )


def check_flags(known: Mapping[str, Any], name: str, args: Sequence[str]) -> None:
    """Refuse flags that a command does not have.

    Args:
        known: its flags, with the types of their values.
        name: the command's name.
        args: the words after it.

    Raises:
        ValueError: naming the first of them, and the nearest right one.
    """
    names = ["--help", *known, *(f"--no-{flag[2:]}" for flag in known if known[flag] is bool)]
    for flag in filter(None, map(parse_flag, args)):
        if flag not in names:
            elsewhere = [ours for ours in find_flags_of_ours(flag) if ours in names]
            meant = elsewhere or difflib.get_close_matches(flag, names, n=1)
            end = f": did you mean {meant[0]}?" if meant else f" (see {PROGRAM} {name} --help)."
            raise ValueError(f"There is no option {flag}{end}")


def find_run_argument(args: Sequence[str], known: Iterable[tuple[str, Any]]) -> str | None:
    """Return the first word that is neither a flag nor its value: the run.

    Args:
        args: the words after the command's name.
        known: the flags that may come before it, with the types of their values.

    Raises:
        ValueError: if a flag comes before it that takes a value in one task, and none in another.
    """
    words, takes_value = iter(args), {(flag, kind is not bool) for flag, kind in known}
    for word in words:
        if word in HELP:
            continue
        flag = parse_flag(word)
        if flag is None:
            return word
        if {(flag, True), (flag, False)} <= takes_value:
            raise ValueError(f"Name the run before {flag}, which means another thing in each task.")
        if "=" not in word and (flag, False) not in takes_value:
            next(words, None)
    return None
