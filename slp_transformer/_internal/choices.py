"""Tables of choices: what a setting may be called and what each name does, in one place.

A table maps a name to a record, which holds the functions that act on the choice, and a summary:

    SCHEDULES = Choices("schedule", {"constant": Schedule(lambda step: 1.0, summary="level")})

    @dataclass(frozen=True)
    class Settings:
        schedule: Annotated[str, SCHEDULES] = "constant"

        def __post_init__(self) -> None:
            check_choice_fields(self)

    SCHEDULES[settings.schedule].share(step)

Refusals, `--help` and the tables in the docs are made from it, and code asks the record what to do
rather than compare names. So a name can't be offered without an entry that says what it does.
Nothing here needs PyTorch.
"""

import functools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)


@runtime_checkable
class Choice(Protocol):
    """An entry of a table; its other attributes are the table's own."""

    @property
    def summary(self) -> str:
        """Return what the choice does, in a phrase for `--help` and the docs."""


ChoiceT = TypeVar("ChoiceT", bound=Choice)


class Phrase(NamedTuple):
    """An entry that says what a name means, where plain code says what it does."""

    summary: str


class Choices(Mapping[str, ChoiceT]):
    """A table of choices, in the order in which they are shown.

    Attributes:
        name: what is chosen, in a word or two: "schedule".
        base: a table whose entries are this one's too.
    """

    # As a part of an `Annotated` type it must be hashable, and it may grow: it equals only itself.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __init__(
        self,
        name: str,
        entries: Mapping[str, ChoiceT],
        base: "Choices[ChoiceT] | None" = None,
    ):
        """Make a table of some entries, and of those of another table before them."""
        self.name: str = name
        self.base: Mapping[str, ChoiceT] = {} if base is None else base
        self._entries: dict[str, ChoiceT] = dict(entries)

    def __getitem__(self, name: str) -> ChoiceT:
        """Return an entry.

        Raises:
            KeyError: if there is none; `check_in_choices` refuses such a name in a sentence.
        """
        return self._entries[name] if name in self._entries else self.base[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return chain(self.base, self._entries)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.base) + len(self._entries)

    def add(self, name: str, entry: ChoiceT) -> None:
        """Add an entry, as a plug-in does.

        Raises:
            ValueError: if the name is taken.
        """
        if name in self:
            raise ValueError(f'There are two entries "{name}" for {self.name}: rename one.')
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Remove an entry that was added."""
        del self._entries[name]

    def describe(self) -> str:
        """Return all choices in a line: `"cosine" (to a tenth), "linear" (to 0)`."""
        return ", ".join(f'"{name}" ({entry.summary})' for name, entry in self.items())

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Let pydantic take any string: `check_choice_fields` refuses it in our words."""
        return handler(str)

    def to_markdown(self) -> str:
        """Return a table for the docs: a row for each choice."""
        rows = [f"| `{name}` | {entry.summary} |" for name, entry in self.items()]
        return "\n".join((f"| {self.name} | what it is |", "|---|---|", *rows))


def allowed_values_of(hint: Any) -> tuple[Any, ...] | None:
    """Return the values that a `Literal`, or a type with a table, allows; None for other types."""
    for note in getattr(hint, "__metadata__", ()):
        if isinstance(note, Choices):
            return tuple(note)
    return get_args(hint) if get_origin(hint) is Literal else None


def union_members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; a type that is none, alone."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def check_in_choices(kind: Any, **choices: Any) -> None:
    """Refuse a choice that is none of those in a table, or that a type names.

    Args:
        kind: a table or a dict by the choices' names, or what `allowed_values_of` takes.
        **choices: the setting's name and its value.

    Raises:
        ValueError: naming the setting, what it was and what would do.
    """
    known = tuple(kind) if isinstance(kind, Mapping) else allowed_values_of(kind) or ()
    for name, choice in choices.items():
        if choice not in known:
            options = " or ".join(f'"{value}"' for value in known)
            raise ValueError(f"{name} must be {options}, not {choice!r}.")


def check_choice_fields(settings: Any) -> None:
    """Refuse a field of a dataclass that is none of the choices which its type names.

    Raises:
        ValueError: naming the first such field, what it was and what would do.
    """
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value, parts = getattr(settings, name, None), union_members(hint)
        others = [part for part in parts if allowed_values_of(part) is None]
        if value is None and NoneType in others:
            continue
        # `bool | Literal["qkv"]` takes no other word, but its numbers have their own checks.
        if len(others) == len(parts) or (set(others) - {NoneType} and not isinstance(value, str)):
            continue
        known = [value for part in parts for value in allowed_values_of(part) or ()]
        check_in_choices(Literal[tuple(known)], **{name: value})


def make_tyro_registry() -> Any:
    """Return what tells tyro of the tables: `tyro.cli(..., registry=make_tyro_registry())`.

    Fields with a table get its names as choices, and its summaries after their own help.
    """
    from tyro.constructors import ConstructorRegistry, StructConstructorSpec

    registry, asked = ConstructorRegistry(), []

    @registry.struct_rule
    def show_choices(info: Any) -> Any:
        if info in asked:  # from the line below: tyro's own rules are to answer
            return None
        asked.append(info)
        try:
            spec = ConstructorRegistry.get_struct_spec(info)
        finally:
            asked.remove(info)
        if not isinstance(spec, StructConstructorSpec):
            return spec
        return replace(spec, fields=tuple(map(field_with_choices, spec.fields)))

    return registry


def field_with_choices(field: Any) -> Any:
    """Return tyro's record of a field, with the names of its table, if it has one."""
    parts = union_members(field.type)
    notes = [note for part in parts for note in getattr(part, "__metadata__", ())]
    tables = [note for note in notes if isinstance(note, Choices)]
    if not tables:
        return field
    shown = [Literal[names] if (names := allowed_values_of(part)) else part for part in parts]
    text = field.helptext() if callable(field.helptext) else field.helptext
    text = " ".join([text or "", *(f"{table.describe()}." for table in tables)]).strip()
    return replace(field, type=functools.reduce(operator.or_, shown), helptext=text)
