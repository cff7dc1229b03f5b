"""Settings: fields of a dataclass, each with its range, its help and an example that acts.

    @settings
    @dataclass(frozen=True)
    class Config:
        # In the docstring, below Attributes: "steps: number of training steps."
        steps: int = setting(100, SIZE, example=3)

        def __post_init__(self) -> None:
            check_settings(self)

Flags, tables of config.toml, refusals and the reference are made from it, and a test tries every
example. When the class is made, a field that is no `setting` is refused, and so is one that the
docstring leaves out, a number without a range, and what has neither an example nor a reason for
that. Nothing here needs PyTorch.
"""

import inspect
import operator
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import NoneType
from typing import Any, TypeVar, get_type_hints

from slp_transformer._internal.choices import check_choice_fields, union_members
from slp_transformer._internal.config_checks import Range, check_range, is_integer

MadeT = TypeVar("MadeT", bound=type)
DECLARED: list[type] = []  # all classes whose fields are settings; a test goes through them
HELP = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)  # of a docstring's Attributes


@dataclass(frozen=True)
class Setting:
    """What is known of a setting besides its name, type, default and help.

    Attributes:
        range: what its values fulfil, and this in words.
        example: another value than the default, which changes something that is computed: a logit,
            a gradient, a drawn token, a value of a schedule.
        given: other settings that the example needs to act.
        no_example: why there is no example.
        resumable: whether a run may be resumed with another value.
        book: its value in the book's model, of a setting that the book's block does not have.
    """

    range: Range | None = None
    example: Any = field(default_factory=lambda: MISSING)
    given: Mapping[str, Any] = field(default_factory=dict)
    no_example: str = ""
    resumable: bool = False
    book: Any = field(default_factory=lambda: MISSING)


def setting(
    default: Any, range: Range | None = None, *, kw_only: Any = MISSING, **about: Any
) -> Any:
    """Return a field; `about` is as in `Setting`, and without a default it is `MISSING`."""
    metadata = {"setting": Setting(range, **about)}
    return field(default=default, metadata=metadata, kw_only=kw_only)


def settings_of(made: type) -> dict[str, Setting]:
    """Return the settings of a class; with another default or type they are what they were."""
    found: dict[str, Setting] = {}
    for base in reversed(made.__mro__):
        for name, each in base.__dict__.get("__dataclass_fields__", {}).items():
            found |= {name: each.metadata["setting"]} if "setting" in each.metadata else {}
    return found


def help_of(made: type) -> dict[str, str]:
    """Return what docstrings say of each setting, that of a class before those of its bases."""
    found: dict[str, str] = {}
    for base in reversed(made.__mro__):
        text = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2]
        found |= {match[1]: " ".join(match[2].split()) for match in HELP.finditer(text)}
    return found


def list_numbers_without_range(made: type) -> list[str]:
    """Return the fields of a dataclass that are numbers and have no range."""
    known, hints = settings_of(made), get_type_hints(made)
    numbers = [f.name for f in fields(made) if {int, float} & {*union_members(hints[f.name])}]
    return [name for name in numbers if known.get(name, Setting()).range is None]


def settings(made: MadeT) -> MadeT:
    """Check that each field of a dataclass is declared in full.

    Raises:
        TypeError: naming a field that is no `setting`, or lacks its help, a range or an example.
    """
    known, hints, help = settings_of(made), get_type_hints(made, include_extras=True), help_of(made)
    for each in (each for each in fields(made) if each.init):
        name, about = f"{made.__name__}.{each.name}", known.get(each.name)
        noted = any(hasattr(n, "help") for n in getattr(hints[each.name], "__metadata__", ()))
        has_help = each.name in help or noted or sys.flags.optimize > 1  # without docstrings
        if about is None or not has_help:
            raise TypeError(f"{name} needs a setting(...), and a line in the docstring.")
        # Without a setting in its metadata it is a base's, with another default or type.
        same = "setting" in each.metadata and about.example == each.default is not MISSING
        if same or (about.example is MISSING) != bool(about.no_example):
            raise TypeError(f"{name} needs an example, not its default, or a reason why not.")
    for wrong in list_numbers_without_range(made):
        raise TypeError(f"{made.__name__}.{wrong} is a number, so its setting needs a range.")
    DECLARED.append(made)
    return made


def check_settings(made: Any, *, flags: bool = False) -> None:
    """Refuse values out of their ranges, and names of no choice; whole numbers become Python's own.

    Args:
        made: a frozen dataclass.
        flags: name a setting as a flag, `--top-p` for `top_p`.

    Raises:
        ValueError: naming the first setting, its range and what it was.
    """
    hints = get_type_hints(type(made), include_extras=True)
    for name, about in settings_of(type(made)).items():
        value = getattr(made, name)
        if type(value) is not int and is_integer(value):  # NumPy's, which JSON cannot write
            object.__setattr__(made, name, operator.index(value))
        if about.range and not (value is None and NoneType in union_members(hints[name])):
            check_range(about.range, **{f"--{name.replace('_', '-')}" if flags else name: value})
    check_choice_fields(made)


def check_values(options: Any) -> None:
    """Refuse flags out of their ranges, and whole numbers that neither TOML nor PyTorch has.

    Args:
        options: a dataclass, whose fields may be dataclasses themselves.

    Raises:
        ValueError: naming the first of them.
    """
    check_settings(options, flags=True)
    for each in (each for each in fields(options) if each.init):
        value = getattr(options, each.name)
        if is_dataclass(value):
            check_values(value)
        for number in value if isinstance(value, tuple) else (value,):
            if type(number) is int and not -(2**63) <= number < 2**63:
                flag = f"--{each.name.replace('_', '-')}"
                raise ValueError(f"{flag} must be between -2**63 and 2**63, not {number}.")
