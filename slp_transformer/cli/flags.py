"""Flags that are made from the settings classes, and a parser that complains in one sentence.

argparse reads them. Libraries that make flags from dataclasses (jsonargparse, tyro,
pydantic-settings) do not name the nearest flag in one sentence, tell a default for each built-in
recipe, or write "none" for None in TOML and on the command line alike.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, get_args

from slp_transformer.cli.console import BAD_INPUT, rank
from slp_transformer.tasks import Recipe, Tables, make_recipe
from slp_transformer.tasks.data_settings import Kind
from slp_transformer.tasks.setting_fields import NONE, Setting, all_settings, nearest
from slp_transformer.training.train_config import RESUMABLE_SETTINGS

FIRST = (
    "start",
    "lora",
    "tokenizer",
    "steps",
    "context_length",
    "model_dim",
    "num_blocks",
    "learning_rate",
)
"""What most people change, in the order in which it is shown."""


FLAGS = {"start": "from"}  # whose name is a word of Python's


class Parser(argparse.ArgumentParser):
    """Tells of a mistake in one sentence, with the nearest right flag, and exits with 2."""

    def __init__(self, *args: Any, **options: Any):
        """As `argparse.ArgumentParser`; a flag has to be written out."""
        options = {"allow_abbrev": False, "formatter_class": Help} | options
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and leave.

        Raises:
            SystemExit: always, with 2.
        """
        if rank() == 0:
            end = "" if message.endswith(("?", ".")) else "."
            more = f"(`{self.prog} --help` tells more.)"
            print(f"{self.prog}: {message}{end} {more}", file=sys.stderr)
        self.exit(BAD_INPUT)

    def parse_all(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Read the arguments, of which none may be left over.

        Raises:
            SystemExit: with 2, if one is wrong or left over.
        """
        known, left = self.parse_known_args(arguments)
        if hasattr(known, "sentences") and not any(word.startswith("-") for word in left):
            known.sentences += left  # argparse gives "*" only what stands before the first flag
            left = []
        if left:
            parser = known.parser
            flags = [flag for action in parser._actions for flag in action.option_strings]
            word = left[0].partition("=")[0]
            meant = nearest(word.lstrip("-"), [flag.lstrip("-") for flag in flags])
            guess = ": " + meant.replace(' "', ' "--') if word.startswith("-") else ""
            parser.error(f"there is no use for {left[0]}{guess if '?' in guess else ''}")
        return known


class Help(argparse.RawDescriptionHelpFormatter):
    """Wide enough for the longest flags to stand beside their explanations."""

    def __init__(self, *args: Any, **options: Any):
        """As argparse's own."""
        super().__init__(*args, **options | {"max_help_position": 30})


# --- Settings as flags -------------------------------------------------------------------------


def flag_name(setting: Setting) -> str:
    """The flag of a setting; one whose name two tables have is the model's, or says its table."""
    same = [other.table for other in all_settings() if other.name == setting.name]
    table = f"{setting.table}-" if same and setting.table != same[0] else ""
    return f"--{table}{FLAGS.get(setting.name, setting.name).replace('_', '-')}"


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Give a parser a flag for each setting but the source, which is an argument by itself.

    A flag's value is kept as "table.name", if it is given at all.
    """
    settings = [setting for setting in all_settings() if setting.name not in ("source", "kind")]
    built_in = {kind: make_recipe(kind).tables() for kind in get_args(Kind)}
    first = sorted((s for s in settings if is_first(s)), key=lambda s: FIRST.index(s.name))
    group = parser.add_argument_group("what most people change")
    for setting in first:
        add_setting(group, setting, defaults(setting, built_in))
    for table in ("data", "model", "training"):
        group = parser.add_argument_group(f"more of the {table}")
        for setting in settings:
            if setting.table == table and setting not in first:
                add_setting(group, setting, defaults(setting, built_in))


def is_first(setting: Setting) -> bool:
    """Whether most people know what to do with a setting."""
    return setting.name in FIRST


def add_setting(
    group: argparse._ArgumentGroup, setting: Setting, default: str | None = None
) -> None:
    """Give a group one flag; its help says the default, if one is named."""
    said = f" [{default}]" if default else ""
    options: dict[str, Any] = {
        "dest": f"{setting.table}.{setting.name}",
        "default": argparse.SUPPRESS,
        "help": f"{in_words(setting.help)}{said}".replace("%", "%%"),
    }
    if setting.kinds == (bool,):
        group.add_argument(flag_name(setting), action=argparse.BooleanOptionalAction, **options)
        return
    metavars = {int: "N", float: "X", str: "NAME"}
    if setting.choices:
        metavars[str] = "{" + ",".join(setting.choices) + "}"
    options |= {
        "type": reader(setting),
        "metavar": "|".join(metavars[kind] for kind in setting.kinds),
    }
    group.add_argument(flag_name(setting), **options)


def reader(setting: Setting):
    """What reads a flag's value.

    Raises:
        ArgumentTypeError: by what is returned, saying what is wrong with a value.
    """

    def read(text: str) -> Any:
        try:
            return setting.parse(text)
        except ValueError as error:
            sentence = str(error).partition("] ")[2].rstrip(".")
            raise argparse.ArgumentTypeError(sentence.partition(" ")[2]) from None

    return read


def in_words(help: str) -> str:
    """An explanation without the marks of a docstring."""
    return re.sub(r"\bNone\b", NONE, help).replace("`", "").rstrip(".")


def defaults(setting: Setting, recipes: dict[str, Tables]) -> str:
    """What some recipes have, by their names: one value, or that of each."""
    values = {name: shown(tables[setting.table][setting.name]) for name, tables in recipes.items()}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{name} {value}" for name, value in values.items())


def shown(value: Any) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None else str(value)


def given_settings(arguments: argparse.Namespace) -> Tables:
    """The settings that flags gave, by table and name."""
    tables: Tables = {}
    for dest, value in vars(arguments).items():
        table, dot, name = dest.partition(".")
        if dot:
            tables.setdefault(table, {})[name] = value
    return tables


def refuse_changes(recipe: Recipe, given: Tables) -> None:
    """Refuse flags that say something else than the recipe of a run to be resumed.

    Raises:
        ValueError: naming the first of them.
    """
    tables = recipe.tables()
    for setting in all_settings():
        before = tables[setting.table][setting.name]
        now = given.get(setting.table, {}).get(setting.name, before)
        if now != before and setting.name not in RESUMABLE_SETTINGS:
            raise ValueError(
                f"The run was begun with {setting.name} {shown(before)}, which {shown(now)} "
                f"contradicts: resume it without {flag_name(setting)}, or begin another run in "
                "another folder."
            )
