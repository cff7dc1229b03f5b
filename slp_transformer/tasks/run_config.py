"""The configuration of a training run, and the TOML file that repeats it.

    task = "text"

    [data]
    source = "my-texts"

    [model]
    num_blocks = 6

    [train]
    steps = 5000

The tables are the fields of the task's data settings, of
`slp_transformer.tasks.model_settings.ModelSettings`, and of
`slp_transformer.training.train_config.TrainConfig`. What a file leaves out is taken from the
preset of its task. TOML has no word for None: "none" stands for it. A path in a file is relative to
the file's own folder.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.extras import import_extra
from slp_transformer.data.text_files import is_stream, list_corpora
from slp_transformer.tasks.data_settings import DataSettings
from slp_transformer.tasks.model_settings import ModelSettings
from slp_transformer.training.run_folder import flatten_dict
from slp_transformer.training.train_config import EPOCH, NO_EPOCHS, TrainConfig

CONFIG_FILE = "config.toml"  # in a run's folder
NONE = "none"
GROUPS = ("data", "model", "train")  # tables of a configuration
TOKENIZER_SETTINGS = ("tokenizer", "vocab_size", "shared_vocabulary")  # of a task's data
DataT = TypeVar("DataT", bound=DataSettings)
Tables = dict[str, Any]


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

    data: DataT
    model: ModelSettings
    train: TrainConfig
    init_from: str | None = None
    lora_rank: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other.

        Raises:
            ValueError: naming them.
        """
        if self.train.eval_interval == EPOCH and self.train.batch_tokens is None:
            raise ValueError(NO_EPOCHS)
        if self.lora_rank is not None:
            check_positive_sizes(lora_rank=self.lora_rank)
            if self.init_from is None:
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
        found = {
            n: resolve_source(v, folder) for n in self.data.paths if (v := getattr(self.data, n))
        }
        start = self.init_from and os.path.realpath(folder / self.init_from)
        return replace(self, data=replace(self.data, **found), init_from=start)


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
