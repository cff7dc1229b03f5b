"""What can be set in a recipe: the fields of the settings classes, with their own explanations."""

import ast
import dataclasses
import difflib
import importlib.util
import inspect
import re
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from slp_transformer.config import TransformerConfig
from slp_transformer.tasks.data_settings import DataSettings
from slp_transformer.training.train_config import TrainConfig

TABLES = {"data": DataSettings, "model": TransformerConfig, "training": TrainConfig}
NONE = "none"  # TOML has no word for None
# The tokenizer says how large the vocabulary is; the others are of an encoder-decoder's source.
NOT_TO_CHOOSE = {("model", n) for n in ("vocab_size", "source_vocab_size", "num_encoder_blocks")}
SIMPLE = {"int": int, "float": float, "int | None": int | None, "float | None": float | None}
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@dataclass(frozen=True)
class Setting:
    """One thing that can be set.

    Attributes:
        table: the recipe's table that it stands in.
        name: its name there.
        kinds: the types that a value may have, of bool, int, float and str.
        choices: the words that it may be; none if it may be any.
        optional: whether it may be "none".
        help: what it is.
    """

    table: str
    name: str
    kinds: tuple[type, ...]
    choices: tuple[str, ...]
    optional: bool
    help: str

    def read(self, value: Any) -> Any:
        """The value that a recipe gives.

        Raises:
            ValueError: if it is of another type than the setting's, or not one of its choices.
        """
        if self.optional and value == NONE:
            return None
        for kind in self.kinds:
            chosen = kind is not str or not self.choices or value in self.choices
            if type(value) is kind and chosen:
                return value
        if float in self.kinds and type(value) is int and abs(value) < 1 << 53:
            return float(value)
        wanted = [WORDS[k] for k in self.kinds if k is not str or not self.choices]
        wanted += [f'"{choice}"' for choice in self.choices]
        wanted += [f'"{NONE}"'] * self.optional
        told = " or ".join(wanted)
        raise ValueError(f"[{self.table}] {self.name} must be {told}, not {value!r}.")

    def parse(self, text: str) -> Any:
        """The value that a word on the command line stands for.

        Raises:
            ValueError: as `read`.
        """
        for kind in self.kinds:
            if kind is not bool and not (kind is str and len(self.kinds) > 1):
                try:
                    return self.read(kind(text))
                except ValueError:
                    continue
        return self.read(text)


@cache
def all_settings() -> tuple[Setting, ...]:
    """Every setting, in the order of the tables."""
    told = {table: explanations(owner.__doc__, "Attributes") for table, owner in TABLES.items()}
    return tuple(
        make_setting(table, field.name, field.type, told[table][field.name])
        for table, owner in TABLES.items()
        for field in dataclasses.fields(owner)
        if (table, field.name) not in NOT_TO_CHOOSE
    )


def make_setting(table: str, name: str, annotation: Any, help: str) -> Setting:
    """The setting that an annotated name makes."""
    union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    parts = typing.get_args(annotation) if union else (annotation,)
    optional = types.NoneType in parts
    parts = [part for part in parts if part is not types.NoneType]
    choices = [c for p in parts if typing.get_origin(p) is Literal for c in typing.get_args(p)]
    kinds = tuple(str if typing.get_origin(part) is Literal else part for part in parts)
    return Setting(table, name, kinds, tuple(choices), optional, help)


def read_signature(module: str, function: str) -> dict[str, tuple[Any, str]]:
    """Type and explanation of each argument of a function that takes builtin types.

    They are read from its source, since to import it may mean to import PyTorch.
    """
    source = Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8")
    definition = next(
        d for d in ast.parse(source).body if isinstance(d, ast.FunctionDef) and d.name == function
    )
    told = explanations(ast.get_docstring(definition), "Args")
    given = (*definition.args.args, *definition.args.kwonlyargs)
    types = {a.arg: ast.unparse(a.annotation) for a in given}
    return {name: (SIMPLE.get(types[name]), help) for name, help in told.items()}


def explanations(docstring: str, section: str) -> dict[str, str]:
    """What a section of a docstring says of each name."""
    text = inspect.cleandoc(docstring).partition(f"{section}:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", text, re.MULTILINE)
    return {name: " ".join(told.split()) for name, told in found}


def check_names(wrong_or_right: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse names that nothing is called by.

    Raises:
        ValueError: naming the first one, and the nearest right one.
    """
    known = list(known)
    for name in wrong_or_right:
        if name not in known:
            raise ValueError(f'{where} has no "{name}": {nearest(name, known)}')


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant, as the end of a sentence."""
    known = sorted(known)
    meant = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f'did you mean "{meant[0]}"?' if meant else f"there are {', '.join(known)}."
