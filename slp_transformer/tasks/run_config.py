"""The configuration of a training run, the TOML file that repeats it, and runs in their folders.

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

import difflib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.extras import require_extra
from slp_transformer._internal.json_files import validate_json
from slp_transformer.data.text_files import is_stream, list_corpora
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.base import TASKS, DataSettings, LoadedRun, Task, load_task
from slp_transformer.tasks.model_settings import ModelSettings
from slp_transformer.tasks.text import PublishedTask
from slp_transformer.training.run_folder import (
    CheckpointChoice,
    checkpoint_folder,
    flatten_dict,
    load_lora_base,
    load_model_spec,
    load_tokenizer,
    retry_while_run_changes,
)
from slp_transformer.training.train_config import EPOCH, NO_EPOCHS, TrainConfig

PRESETS = {p.stem: p for p in sorted((Path(__file__).parent / "presets").glob("*.toml"))}
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
        init_from: a run whose best weights and tokenizer to begin with.
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
            check_size(lora_rank=self.lora_rank)
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

    def to_toml(self) -> str:
        """Return the configuration as a TOML file.

        Raises:
            ImportError: if tomli_w is not installed.
        """
        head = "# slp-transformer train --config THIS-FILE --out-dir NEW-FOLDER repeats the run."
        tables = replace_values({"task": self.data.task} | self.to_dict(), None, NONE)
        content = require_extra("tomli_w", "Run configurations").dumps(tables)
        return f"{head}\n\n{content}"

    def save(self, path: Path) -> None:
        """Write the configuration to a file."""
        write_file(path, self.to_toml())

    def initial_tokenizer(self) -> Any:
        """Return the tokenizer of the run to begin with; None if there is none."""
        return self.init_from and load_tokenizer_of(Path(self.init_from))

    def resolve_paths(self, folder: Path) -> "RunConfig[Any]":
        """Return the same configuration with absolute paths, taken as relative to a folder."""
        found = {
            n: resolve_source(v, folder) for n in self.data.paths if (v := getattr(self.data, n))
        }
        start = self.init_from and str((folder / self.init_from).resolve())
        return replace(self, data=replace(self.data, **found), init_from=start)


def resolve_source(source: str, folder: Path) -> str:
    """Return a source by a name that is valid anywhere: corpora as they are, paths absolute."""
    if source in list_corpora() or is_stream(source):
        return source
    return str((folder / source).resolve())


def replace_values(tables: Tables, old: Any, new: Any) -> Tables:
    """Return tables with each value `old` replaced by `new`."""
    return {
        name: replace_values(value, old, new)
        if isinstance(value, dict)
        else (new if value == old else value)
        for name, value in tables.items()
    }


# --- Reading -----------------------------------------------------------------------------------


def load_config(*files: str | Path, task: str | None = None) -> RunConfig[Any]:
    """Load a run's configuration from presets and TOML files, later ones overriding earlier ones.

    Args:
        *files: names of presets, or files.
        task: the task's name; that of the last file, or "text", if None.

    Raises:
        ValueError: if there is no such preset or file, it is not TOML, is of another task, or a
            setting has an unknown name or an impossible value.
    """
    tables = [(read_tables(file), Path(PRESETS.get(str(file), file))) for file in files]
    named = [table["task"] for table, _ in tables if "task" in table]
    task = task or (named[-1] if named else "text")
    if wrong := [path for table, path in tables if table.get("task", task) != task]:
        raise ValueError(f"{wrong[0]} configures another task than {task}.")
    data_type = load_task(task).Data
    config = RunConfig(data_type(), ModelSettings(), TrainConfig(steps=2000))
    if task in PRESETS:
        tables.insert(0, (read_tables(task), PRESETS[task]))
    for table, path in tables:
        try:
            config = override(config, table).resolve_paths(path.parent)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return config


def read_tables(file: str | Path) -> Tables:
    """Read a preset or a TOML file.

    Raises:
        ValueError: if there is none, or it is not TOML.
    """
    path = PRESETS.get(str(file), Path(file))
    if path.suffix != ".toml" and not path.is_file():
        raise ValueError(
            f'There is no preset "{file}": {closest_match(str(file), PRESETS)} A configuration of '
            "your own is a TOML file."
        )
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"The configuration {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"The configuration {path} is not TOML: {error}.") from None
    if tables.get("task", "text") not in list(TASKS):  # a table cannot be looked up
        names = closest_match(str(tables["task"]), TASKS)
        raise ValueError(f'{path}: there is no task "{tables["task"]}": {names}')
    return replace_values(tables, NONE, None)


def override(config: RunConfig[Any], tables: Tables) -> RunConfig[Any]:
    """Return a configuration with the settings of some tables in place of its own.

    Raises:
        ValueError: if a name is unknown, or a value of the wrong type or impossible.
    """
    settings = config.to_dict()
    check_names(tables, ("task", *settings), "A configuration")
    for name, value in tables.items():
        if isinstance(value, dict) and isinstance(settings[name], dict):
            check_names(value, settings[name], f"[{name}]")
            settings[name] |= value
        elif name != "task":
            settings[name] = value
    content = json.dumps(settings, default=str).encode()
    return validate_json(RunConfig[type(config.data)], content, "The configuration")  # type: ignore[misc]  # a class at run time


def check_names(names: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse names that no setting has.

    Raises:
        ValueError: naming the first one, and the closest right one.
    """
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(f'{where} has no "{name}": {closest_match(name, known)}')


def closest_match(name: str, known: Iterable[str]) -> str:
    """Return what somebody may have meant, as the end of a sentence."""
    known = sorted(known)
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f'did you mean "{found[0]}"?' if found else f"there are {', '.join(known)}."


# --- A run, or a published model, in its folder ---------------------------------------------------


def find_task(folder: Path) -> Task:
    """Return the task that a run was trained for; of runs without a config.toml, that is text.

    Raises:
        ValueError: if there is no run.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: name the folder of a run.")
    if is_pretrained_folder(folder):
        return PublishedTask()
    path = folder / CONFIG_FILE
    return load_task(read_tables(path).get("task", "text") if path.exists() else "text")


def find_config(folder: Path) -> RunConfig[Any] | None:
    """Return the configuration of a run; None if it has none.

    Raises:
        ValueError: if it cannot be read.
    """
    path = folder / CONFIG_FILE
    return load_config(path) if path.exists() else None


@retry_while_run_changes
def load_tokenizer_of(folder: Path, which: CheckpointChoice = "best") -> Any:
    """Return a run's tokenizer.

    Raises:
        ValueError: if there is no run, or it was saved without a tokenizer.
    """
    task = find_task(folder)
    content, path = load_tokenizer(folder, which), checkpoint_folder(folder, which)
    if content is None and load_model_spec(path).model == "HandModel":
        raise ValueError(
            f"{folder} holds a fingering model, which finds strings and frets for pitches: use "
            f"it by `slp-transformer tab FILE --model {folder}`."
        )
    if content is None:
        raise ValueError(f"{path} was saved without a tokenizer, so its tokens have no names.")
    try:
        return task.load_tokenizer(content)
    except ValueError as error:
        raise ValueError(f"{path / 'tokenizer.json'}: {error}") from None


def load_run(folder: Path, which: CheckpointChoice, device_name: str | None) -> LoadedRun:
    """Load a run's model, and what belongs to it.

    Args:
        folder: the run's folder, or that of a published model.
        which: its checkpoint.
        device_name: where the model is to compute; the best device of this machine if None.

    Raises:
        ValueError: if there is no complete checkpoint, or its parts do not fit together.
    """
    from slp_transformer.lora import merge_lora
    from slp_transformer.training.checkpoints import load_model
    from slp_transformer.training.devices import pick_device

    task, device = find_task(folder), pick_device(device_name)
    if isinstance(task, PublishedTask):
        return task.load(folder, device)
    tokenizer, model = load_tokenizer_of(folder, which), load_model(folder, which)
    config: Any = model.config
    if task.model_kind not in [kind.__name__ for kind in type(model).__mro__]:
        raise ValueError(
            f"{folder} holds no {task.model_kind}, as the task {task.name} has, but a "
            f"{type(model).__name__}."
        )
    merge_lora(model)  # the same matrices, made once rather than for each token
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"{checkpoint_folder(folder, which)} is damaged: its tokenizer has "
            f"{tokenizer.vocab_size} tokens, and its model {config.vocab_size}."
        )
    return LoadedRun(task, folder, model.to(device), tokenizer, find_config(folder))


def config_from_run(config: RunConfig[Any], task: Task, run: Path) -> RunConfig[Any]:
    """Return a configuration with the model and the tokenizer of a run to begin with.

    Raises:
        ValueError: if there is no such run, or it is of another task.
    """
    name, found = find_task(run).name, find_config(run)
    if name != task.name:
        raise ValueError(f"{run} was trained for the task {name}, not {task.name}.")
    if load_lora_base(checkpoint_folder(run, "best")) is not None:
        raise ValueError(
            f"{run} is a LoRA run: merge it with its base first (`slp-transformer merge`)."
        )
    if found is None:
        raise ValueError(f"{run} has no config.toml to say what model and tokenizer it has.")
    same = {name: v for name, v in vars(found.data).items() if name in TOKENIZER_SETTINGS}
    return replace(config, data=replace(config.data, **same), model=found.model)
