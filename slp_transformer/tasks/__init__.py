"""Recipes: all that a training run is told, in one TOML file that repeats it.

    [data]
    source = "my-texts"

    [model]
    num_blocks = 6

    [training]
    steps = 5000

The tables are the fields of `slp_transformer.tasks.datasets.DataSettings`,
`slp_transformer.config.TransformerConfig` and
`slp_transformer.training.train_config.TrainConfig`. What a recipe does not say is taken from the
built-in recipe of its kind, "text", "guitar" or "translation". TOML has no word for None: "none"
stands for it. A path in a recipe is seen from the recipe's own folder.
"""

import logging
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import from_text_extra, whole_file
from slp_transformer.config import TransformerConfig
from slp_transformer.data.corpora import corpus_names
from slp_transformer.data.pair_files import HUGGING_FACE
from slp_transformer.data.text_files import is_read_once
from slp_transformer.tasks.data_settings import DataSettings
from slp_transformer.tasks.setting_fields import NONE, TABLES, all_settings, check_names, nearest
from slp_transformer.training.train_config import TrainConfig

BUILT_IN = {path.stem: path for path in sorted((Path(__file__).parent / "presets").glob("*.toml"))}

LOG = logging.getLogger("slp_transformer")
RECIPE = "recipe.toml"  # in a run's folder
PLACES = ("source", "target", "held_out", "held_out_target", "start")  # that may be paths
Tables = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Recipe:
    """All that a training run is told.

    Attributes:
        data: what is learned from.
        model: what the model is made of, as `TransformerConfig` takes it, but for `vocab_size`:
            that follows from the data.
        training: how it is trained.
    """

    data: DataSettings
    model: dict[str, Any]
    training: TrainConfig

    def config(self, vocab_size: int, source_vocab_size: int | None = None) -> TransformerConfig:
        """What the model is made of, once the data is known."""
        return TransformerConfig(vocab_size, source_vocab_size=source_vocab_size, **self.model)

    def tables(self) -> Tables:
        """Every setting, by table and name."""
        owners = {"data": self.data, "training": self.training}
        tables: Tables = {table: {} for table in TABLES}
        for setting in all_settings():
            owner = owners.get(setting.table, self.config(1))
            tables[setting.table][setting.name] = getattr(owner, setting.name)
        return tables

    def to_toml(self) -> str:
        """The recipe as a TOML file.

        Raises:
            ImportError: if tomli_w is not installed.
        """
        written = {
            table: {name: NONE if value is None else value for name, value in settings.items()}
            for table, settings in self.tables().items()
        }
        head = "# slp-transformer train --recipe THIS-FILE --run NEW-FOLDER repeats the run.\n\n"
        return head + from_text_extra("tomli_w", "Recipes").dumps(written)

    def save(self, path: Path) -> None:
        """Write the recipe to a file, whole or not at all; what lies beside it, as seen from it."""
        text = replace(self, data=self.data.seen_from(path.parent)).to_toml()
        with whole_file(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8", newline="\n")


def make_recipe(
    recipe: str | Path | None = None, changes: Tables | None = None, *, kept: bool = False
) -> Recipe:
    """The recipe of a file or a name, with changes.

    Args:
        recipe: a built-in recipe's name, or a TOML file; None for nothing but defaults.
        changes: settings by table and name, which win over the recipe.
        kept: whether it was kept with a run, maybe by another version of this package: settings
            that are not known are then told and left out, rather than refused as misspelt.

    Raises:
        ValueError: if there is no such recipe, it is no TOML, or a setting has an unknown name or
            an impossible value.
    """
    said = {} if recipe is None else read_recipe(recipe, kept)
    changes = changes or {}
    kind = (said.get("data", {}) | changes.get("data", {})).get("kind", "text")
    layers = [read_recipe(kind) if kind in BUILT_IN else {}, said, changes]
    tables = {
        table: {k: v for layer in layers for k, v in layer.get(table, {}).items()}
        for table in TABLES
    }
    made = Recipe(
        DataSettings(**tables["data"]), tables["model"], TrainConfig(**tables["training"])
    )
    made.config(1)  # refuses what no model can be made from
    return made


def read_recipe(recipe: str | Path, kept: bool = False) -> Tables:
    """What a built-in recipe or a TOML file says, by table and name.

    Args:
        recipe: its name, or the file.
        kept: as `make_recipe` takes it.

    Raises:
        ValueError: if there is no such recipe, it is no TOML, or a name or a type is wrong.
    """
    path = BUILT_IN.get(str(recipe), Path(recipe))
    if path.suffix != ".toml" and not path.is_file():
        raise ValueError(
            f'There is no recipe "{recipe}": {nearest(str(recipe), BUILT_IN)} A recipe of your '
            "own is a TOML file."
        )
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        if kept:
            leave_out_unknown(tables, path)
        return check_tables(tables, path.parent)
    except OSError as error:
        raise ValueError(f"The recipe {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"The recipe {path} is no TOML: {error}.") from None
    except RecursionError:
        raise ValueError(
            f"The recipe {path} is no TOML of ours: it is nested too deeply."
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def leave_out_unknown(tables: dict[str, Any], path: Path) -> None:
    """Take what this version does not know out of a recipe, and say so in one sentence."""
    known = {(setting.table, setting.name) for setting in all_settings()}
    unknown = [
        (table, name)
        for table, settings in tables.items()
        for name in (settings if isinstance(settings, dict) else ())
        if table in TABLES and (table, name) not in known
    ]
    for table, name in unknown:
        del tables[table][name]
    if unknown:
        names = ", ".join(f"{table}.{name}" for table, name in unknown)
        LOG.warning(
            f"{path} has settings that this version does not know, and leaves out: {names}."
        )


def check_tables(tables: dict[str, Any], folder: Path) -> Tables:
    """The settings of a recipe, checked one by one.

    Args:
        tables: what the TOML file says.
        folder: the recipe's own folder, which paths are seen from.

    Raises:
        ValueError: if a name is unknown or a value of the wrong type.
    """
    check_names(tables, TABLES, "A recipe")
    known = {(setting.table, setting.name): setting for setting in all_settings()}
    checked: Tables = {}
    for table, settings in tables.items():
        if not isinstance(settings, dict):
            raise ValueError(f"{table} must be a table: write [{table}] and its settings below.")
        names = [name for at, name in known if at == table]
        check_names(settings, names, f"[{table}]")
        checked[table] = {name: known[table, name].read(v) for name, v in settings.items()}
    paths = checked.get("data", {})
    for name in PLACES:
        if isinstance(paths.get(name), str):
            paths[name] = place_of(paths[name], folder)
    return checked


def place_of(source: str, folder: Path) -> str:
    """A source as it can be named from anywhere: a path in full, as seen from a folder."""
    if source in corpus_names() or is_read_once(source) or source.startswith(HUGGING_FACE):
        return source
    return str((folder / source).resolve())
