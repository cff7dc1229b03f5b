"""The interface of a task to trainer and command line. Nothing here needs PyTorch."""

import importlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.sampling_table import SAMPLING
from slp_transformer.data.dataset import Dataset

T = TypeVar("T")
try:
    from tyro.conf import Positional, UseAppendAction, arg
except ImportError:  # only commands need tyro
    Positional = UseAppendAction = Annotated[T, "no flag"]

    def arg(**options: Any) -> Any:  # type: ignore[no-redef]  # where tyro's own is missing
        """Return a mark without effect."""
        return options


if TYPE_CHECKING:
    from torch import nn

    from slp_transformer.config import TransformerConfig
    from slp_transformer.tasks.generation_session import GenerationSession
    from slp_transformer.tasks.run_config import RunConfig

TASKS = {
    "text": "slp_transformer.tasks.text:TextTask",
    "pairs": "slp_transformer.tasks.pairs:PairTask",
    "tabs": "slp_transformer.tasks.tabs:TabTask",
    **{entry.name: entry.value for entry in entry_points(group="slp_transformer.tasks")},
}
"""Each task's class, as "module:name". Other packages add theirs as entry points of this group."""
TOKENS = "tokens"  # a run's tokens, in its folder


@dataclass(frozen=True)
class LoadedRun:
    """A run loaded from its folder.

    Attributes:
        task: the task that it was trained for.
        folder: the run's folder.
        model: its model, in evaluation mode.
        tokenizer: what the model's tokens mean.
        config: the configuration of the run; None if it was trained from Python.
    """

    task: "Task"
    folder: Path
    model: Any
    tokenizer: Any
    config: "RunConfig[Any] | None"


@dataclass(frozen=True)
class Report:
    """The results of an evaluation.

    Attributes:
        values: as JSON.
        text: as a person reads them.
    """

    values: dict[str, Any]
    text: str


@dataclass(frozen=True)
class DataSettings:
    """The settings of a task's data: its fields are flags of `train`, and keys of config.toml.

    Attributes:
        task: the task's name.
        paths: names of the fields that hold files.
    """

    task: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Refuse an impossible share of held-out data, or size of the vocabulary.

        Raises:
            ValueError: naming the setting.
        """
        share, size = getattr(self, "val_split", 0.1), getattr(self, "vocab_size", None)
        if not 0 < share < 1:
            raise ValueError(f"val_split must be a share between 0 and 1, not {share}.")
        if size is not None:
            check_size(vocab_size=size)


class Task(ABC):
    """A kind of data, with the model that is trained on it.

    A task is a class with these attributes and methods, named in `TASKS`.
    Its module imports PyTorch inside its methods, so that `--help` does not wait for it.

    Attributes:
        name: as on the command line, and in a run's config.toml.
        Data: the settings of its data.
        model_kind: the class of its model, "TransformerLM" or "EncoderDecoder".
        unit: what its data are counted in.
    """

    name: ClassVar[str]
    Data: ClassVar[type[DataSettings]]
    model_kind: ClassVar[str] = "TransformerLM"
    unit: ClassVar[str] = "tokens"

    # --- training ---

    def check(self, config: "RunConfig[Any]") -> None:
        """Refuse settings that have no meaning for this task, and files that do not exist.

        Raises:
            ValueError: saying which.
        """
        if config.train.batch_tokens is not None:
            raise ValueError("batch_tokens has no effect here: it is for pairs.")

    @abstractmethod
    def prepare(self, config: "RunConfig[Any]", folder: Path) -> Dataset:
        """Read the data, split it, turn it into tokens, and keep these in a folder.

        Raises:
            ValueError: if there is no data, or too little.
        """

    @abstractmethod
    def open(self, config: "RunConfig[Any]", folder: Path) -> Dataset:
        """Open the tokens that `prepare` kept.

        Raises:
            ValueError: if they are damaged or missing.
        """

    def model_config(self, config: "RunConfig[Any]", tokenizer: Any) -> "TransformerConfig":
        """Return the model's configuration for a tokenizer."""
        sizes = tokenizer.vocab_size, getattr(tokenizer, "source_vocab_size", None)
        return config.model.to_config(*sizes)

    def build_model(self, config: "TransformerConfig") -> "nn.Module":
        """Build the model: the book's, or one of today's parts."""
        from slp_transformer.language_model import TransformerLM
        from slp_transformer.modern import ModernConfig, ModernLM

        return ModernLM(config) if isinstance(config, ModernConfig) else TransformerLM(config)

    def sources(self, config: "RunConfig[Any]", data: Dataset) -> tuple[Any, Any]:
        """Return what training and validation draw their batches from."""
        return data.train, data.val

    def on_eval(self, model: Any, data: Dataset) -> Callable[[Any], None] | None:
        """Return what is called after each evaluation, to show samples; None for nothing."""
        return None

    def next_command(self, folder: Path) -> list[str | Path]:
        """Return the words of a command that uses the trained model."""
        return ["generate", folder]

    # --- a run that is there already ---

    @abstractmethod
    def load_tokenizer(self, content: Any) -> Any:
        """Return the tokenizer that a checkpoint holds as JSON.

        Raises:
            ValueError: if it is not one of this task.
        """

    def tokenizer_info(self, tokenizer: Any) -> dict[str, Any]:
        """Return what `info` shows of a tokenizer."""
        return {"tokens": tokenizer.vocab_size}

    def check_generate(self, options: Any) -> None:
        """Refuse options of `generate` that this task has no use for.

        Raises:
            ValueError: naming the first one.
        """
        reject_unused_flags(
            options,
            ("tuning", "capo", "key", "time_signature", "style", "ending", "one_channel"),
            f"{options.run} writes text, not tabs",
        )

    def session(self, run: LoadedRun, options: Any) -> "GenerationSession":
        """Return what continues prompts with a run.

        Raises:
            ValueError: if the model does not know what is asked for.
        """
        raise ValueError(f"{run.folder} holds no model that continues prompts.")

    @abstractmethod
    def evaluate(self, run: LoadedRun, options: Any) -> Report:
        """Evaluate a run.

        Raises:
            ValueError: if there is no data to evaluate on, or too little.
        """

    def check_evaluate(self, options: Any) -> None:
        """Refuse options of `evaluate` that this task has no use for.

        Raises:
            ValueError: naming the first one.
        """
        why = f"{options.run} does not translate"
        reject_unused_flags(options, ("target", "num_beams"), why)
        if options.samples is None:
            why = "it is for --samples N, which is not given"
            reject_unused_flags(options, ("max_new_tokens", "seed"), why)
            reject_unused_flags(options.sampling, tuple(SAMPLING), why)


def load_task(name: str) -> Task:
    """Import the module of a task, and return the task.

    Raises:
        KeyError: if there is no such task.
    """
    module, _, attribute = TASKS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()


def reject_unused_flags(options: Any, names: Sequence[str], why: str) -> None:
    """Refuse flags that would have no effect.

    Raises:
        ValueError: naming the first of them.
    """
    for name in names:
        value = getattr(options, name, None)
        if value is not None and value is not False:
            raise ValueError(f"--{name.replace('_', '-')} has no effect here: {why}.")


def check_windows(data: Dataset, length: int, val_split: float | None) -> None:
    """Refuse token streams that do not fill a window, in either part.

    Args:
        data: the streams.
        length: tokens in a window.
        val_split: the share that was to be held out, if any.

    Raises:
        ValueError: saying how many tokens there are and how many are needed.
    """
    if min(len(data.train), len(data.val)) > length:
        return
    needed = f"and a window of {length} and its next token need {length + 1} in each part"
    if val_split is not None:
        total = math.ceil((length + 1) / min(val_split, 1 - val_split)) + 1
        needed += f", so about {total:,} in all"
    raise ValueError(
        f"There is too little data: {len(data.train):,} training tokens and {len(data.val):,} "
        f"validation tokens, {needed}: give more text, or choose a shorter context_length."
    )


def format_table(rows: Mapping[str, Any]) -> str:
    """Return names and values in two columns."""
    width = max(map(len, rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows.items())


def to_json(content: Any) -> str:
    """Return a result as JSON, which has no NaN."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
