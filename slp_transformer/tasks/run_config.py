"""The configuration of a training run, and the TOML file that repeats it.

    task = "text"

    [data]
    source = "my-texts"

    [model]
    num_blocks = 6

    [train]
    steps = 5000

The tables are the fields of the task's data settings, of `ModelSettings`, and of
`slp_transformer.training.train_config.TrainConfig`. What a file leaves out is taken from the
preset of its task. TOML has no word for None: "none" stands for it. A path in a file is relative to
the file's own folder.
"""

import inspect
import os
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.choices import allowed_values_of
from slp_transformer._internal.config_checks import SIZE
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.settings import (
    check_settings,
    help_of,
    setting,
    settings,
    settings_of,
)
from slp_transformer.config import TransformerConfig
from slp_transformer.data.text_files import is_stream, list_corpora
from slp_transformer.modern.config import ModernConfig
from slp_transformer.tasks.data_settings import DataSettings
from slp_transformer.training.run_folder import flatten_dict
from slp_transformer.training.train_config import EPOCH, NO_EPOCHS, TrainConfig

CONFIG_FILE = "config.toml"  # in a run's folder
NONE = "none"
GROUPS = ("data", "model", "train")  # tables of a configuration
TOKENIZER_SETTINGS = ("tokenizer", "vocab_size", "shared_vocabulary")  # of a task's data
FROM_DATA = ("vocab_size", "source_vocab_size", "num_encoder_blocks")  # fields that no file sets
DataT = TypeVar("DataT", bound=DataSettings)
Tables = dict[str, Any]


class ModelTable:
    """A model's settings without those that follow from the data; the book's are the defaults.

    A setting that the book's block does not have, at another value than its default, makes a model
    of today's blocks.
    """

    def __post_init__(self: Any) -> None:
        """Refuse sizes and choices that no model can have.

        Raises:
            ValueError: naming the setting.
        """
        check_settings(self)
        if self.modern_parts():
            self.to_config(1)

    def modern_parts(self: Any) -> list[str]:
        """Name the settings that the book's block does not know; any of them makes a `ModernLM`."""
        book = get_type_hints(TransformerConfig, include_extras=True)
        return [
            field.name
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
            and (
                field.name not in book
                or value not in (allowed_values_of(book[field.name]) or [value])
            )
        ]

    def to_config(
        self: Any, vocab_size: int, source_vocab_size: int | None = None
    ) -> TransformerConfig:
        """Return the configuration of the model, once the data is known.

        Raises:
            ValueError: if no model can be made from it.
        """
        settings: dict[str, Any] = dict(vars(self))
        settings |= {"vocab_size": vocab_size, "source_vocab_size": source_vocab_size}
        if self.modern_parts():
            return ModernConfig(**settings)
        book = [field.name for field in fields(TransformerConfig)]
        return TransformerConfig(**{n: value for n, value in settings.items() if n in book})


def make_model_settings() -> type:
    """Return the dataclass of the book's settings, and of those of today that have a book's value.

    Their types are those of `ModernConfig`, which knows more choices.
    """
    book = {each.name: each.default for each in fields(TransformerConfig)}
    hints = get_type_hints(ModernConfig, include_extras=True)
    rows = []
    for name, about in settings_of(ModernConfig).items():
        default = book.get(name, about.book)
        if name not in FROM_DATA and default is not MISSING:
            metadata = {"setting": replace(about, example=MISSING, no_example="its config has one")}
            rows.append((name, hints[name], field(default=default, metadata=metadata)))
    made = make_dataclass("ModelSettings", rows, bases=(ModelTable,), frozen=True)
    made.__module__, help = __name__, help_of(ModernConfig)  # Python 3.11 says "types"
    lines = [f"    {name}: {help.get(name)}" for name, *_ in rows]
    made.__doc__ = "\n".join((inspect.cleandoc(ModelTable.__doc__ or ""), "\nAttributes:", *lines))
    return settings(made)


if TYPE_CHECKING:

    class ModelSettings(ModelTable, ModernConfig):
        """The class below, to a type checker."""

else:
    ModelSettings = make_model_settings()


@settings
@dataclass(frozen=True)
class RunConfig(Generic[DataT]):
    """Everything that determines a training run.

    Attributes:
        data: what to train on.
        model: the model's sizes and options.
        train: how to train.
        init_from: the folder of a run, or of a published model, to begin with: its weights (a run's
            best) and its tokenizer.
        lora_rank: fine-tune the model of init_from by LoRA with matrices A and B of this rank;
            None to train all weights.
    """

    data: DataT = setting(MISSING, no_example="its settings have theirs")
    model: ModelSettings = setting(MISSING, no_example="its settings have theirs")
    train: TrainConfig = setting(MISSING, no_example="its settings have theirs")
    init_from: str | None = setting(None, no_example="a folder")
    lora_rank: int | None = setting(None, SIZE, example=2)

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other.

        Raises:
            ValueError: naming them.
        """
        if self.train.eval_interval == EPOCH and self.train.batch_tokens is None:
            raise ValueError(NO_EPOCHS)
        check_settings(self)
        if self.lora_rank is not None and self.init_from is None:
            raise ValueError(
                "lora_rank fine-tunes the model of another run: name that run by init_from."
            )

    def to_dict(self) -> Tables:
        """Return every setting, the three groups of them as dicts."""
        top = {"init_from": self.init_from, "lora_rank": self.lora_rank}
        return top | {name: vars(getattr(self, name)).copy() for name in GROUPS}

    def changes(self, other: "RunConfig[Any]") -> dict[str, tuple[Any, Any]]:
        """Return the settings that another configuration has otherwise: both values by name."""
        mine, theirs = (flatten_dict("", config.to_dict()) for config in (self, other))
        changed = [name for name in mine if mine[name] != theirs[name]]
        return {name.rpartition(".")[2]: (mine[name], theirs[name]) for name in changed}

    def to_toml(self, earlier: Sequence[str] = ()) -> str:
        """Return the configuration as a TOML file.

        Args:
            earlier: comments on settings that were others before the run was resumed.

        Raises:
            ImportError: if tomli_w is not installed.
        """
        head = "# slp-transformer train --config THIS-FILE --out-dir NEW-FOLDER repeats the run."
        if earlier:
            head = "\n".join((f"{head[:-1]}, but for what was changed on the way:", *earlier))
        tables = replace_values({"task": self.data.task} | self.to_dict(), None, NONE)
        content = import_extra("tomli_w", "Run configurations").dumps(tables)
        return f"{head}\n\n{content}"

    def save(self, path: Path, earlier: Sequence[str] = ()) -> None:
        """Write the configuration to a file, with comments as in `to_toml`."""
        write_file(path, self.to_toml(earlier))

    def window(self) -> int:
        """Return the number of tokens in a training window."""
        return int(self.train.sequence_length or self.model.context_length)

    def resolve_paths(self, folder: Path) -> "RunConfig[Any]":
        """Return the same configuration with absolute paths, taken as relative to a folder."""
        tables = self.to_dict()
        resolve_paths(tables, self.data.paths, folder)
        data = replace(self.data, **{name: tables["data"][name] for name in self.data.paths})
        return replace(self, data=data, init_from=tables["init_from"])


def resolve_paths(tables: Tables, names: Sequence[str], folder: Path) -> None:
    """Make paths in a configuration absolute, taken as relative to a folder; no string is none."""
    data, start = tables["data"], tables["init_from"]
    for name in names if isinstance(data, dict) else ():
        if isinstance(data[name], str) and data[name]:
            data[name] = resolve_source(data[name], folder)
    if isinstance(start, str) and start:
        tables["init_from"] = os.path.realpath(folder / start)


def resolve_source(source: str, folder: Path) -> str:
    """Return a source by a name that is valid anywhere: corpora as they are, paths absolute."""
    if source in list_corpora() or is_stream(source):
        return source
    return os.path.realpath(folder / source)  # also of a link in a circle


def replace_values(tables: Tables, old: Any, new: Any) -> Tables:
    """Return tables with each value `old` replaced by `new`."""
    return {
        name: replace_values(value, old, new)
        if isinstance(value, dict)
        else (new if value == old else value)
        for name, value in tables.items()
    }
