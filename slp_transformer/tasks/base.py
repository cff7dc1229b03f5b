"""The interface of a task to trainer and command line. Nothing here needs PyTorch.

What is imported `as` itself is for tasks of other packages.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from slp_transformer._internal.config_checks import NUM_WRITTEN, SEED
from slp_transformer._internal.config_checks import OPEN_SHARE as OPEN_SHARE
from slp_transformer._internal.plugins import Command as Command
from slp_transformer._internal.plugins import Libraries
from slp_transformer._internal.plugins import Options as Options
from slp_transformer._internal.plugins import Plugin as Plugin
from slp_transformer._internal.plugins import TaskEntry as TaskEntry
from slp_transformer._internal.settings import setting as setting
from slp_transformer._internal.settings import settings
from slp_transformer.data.dataset import Dataset as Dataset
from slp_transformer.tasks.data_settings import DataSettings as DataSettings
from slp_transformer.tasks.data_settings import NoFlags as NoFlags
from slp_transformer.tasks.data_settings import Positional as Positional
from slp_transformer.tasks.data_settings import UseAppendAction as UseAppendAction
from slp_transformer.tasks.data_settings import arg as arg
from slp_transformer.tasks.generation_session import GenerationSession
from slp_transformer.tasks.reports import Report as Report
from slp_transformer.tasks.reports import format_table as format_table
from slp_transformer.tasks.reports import to_json as to_json
from slp_transformer.tasks.run_config import RunConfig
from slp_transformer.tasks.sampling_options import SamplingOptions
from slp_transformer.training.run_folder import Checkpoint

if TYPE_CHECKING:
    from torch import nn

    from slp_transformer.config import TransformerConfig

DataT = TypeVar("DataT", bound=DataSettings)
GenerateT = TypeVar("GenerateT")
EvaluateT = TypeVar("EvaluateT")
TOKENS = "tokens"  # a run's tokens, in its folder


@dataclass(frozen=True)
class SavedRun:
    """A run, or a published model, opened: what its files of JSON and TOML say at one moment.

    Attributes:
        task: the task that it was trained for.
        folder: the run's folder.
        config: the configuration of the run; None if it was trained from Python.
        checkpoint: the checkpoint that is used; None of a published model.
    """

    task: "Task[Any, Any, Any]"
    folder: Path
    config: RunConfig[Any] | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class LoadedRun(SavedRun):
    """An opened run whose model is loaded.

    Attributes:
        model: its model, in evaluation mode.
        tokenizer: what the model's tokens mean.
    """

    model: Any = field(kw_only=True)
    tokenizer: Any = field(kw_only=True)


@settings
@dataclass(frozen=True)
class EvaluateOptions(Generic[EvaluateT]):
    """What is asked of an evaluation.

    Attributes:
        source: what to evaluate on: a file, a folder, - for standard input, the name of a corpus;
            the run's held-out data if None.
        samples: generate this many texts too.
        max_new_tokens: maximum number of tokens of a sample [500].
        seed: random seed of the samples [0].
        sampling: how the tokens of samples are drawn.
        flags: options of the task alone.
    """

    source: Positional[str | None] = setting(None, no_example="a file")
    samples: int | None = setting(None, NUM_WRITTEN, example=2)
    max_new_tokens: int | None = setting(None, NUM_WRITTEN, example=7, given={"samples": 1})
    seed: int | None = setting(None, SEED, example=1, given={"samples": 1})
    sampling: SamplingOptions = setting(SamplingOptions(), no_example="`SAMPLING` has its examples")
    flags: EvaluateT = setting(MISSING, no_example="each task has its own", kw_only=True)

    def refuse_sampling_flags(self, why: str) -> None:
        """Refuse the flags that say how samples are drawn.

        Raises:
            ValueError: naming the first that is given, and why it has no effect.
        """
        given = {"max_new_tokens": self.max_new_tokens, "seed": self.seed, **vars(self.sampling)}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"--{name.replace('_', '-')} has no effect here: {why}.")


class Task(ABC, Generic[DataT, GenerateT, EvaluateT]):
    """A kind of data, with the model that is trained on it.

    A task is a class with these attributes and methods, which a plug-in names in its `tasks`.
    Its module imports PyTorch inside its methods, so that `--help` does not wait for it.

    Attributes:
        name: as on the command line, and in a run's config.toml.
        Data: the settings of its data, a dataclass whose fields are flags of `train`.
        GenerateFlags: a dataclass whose fields are flags of `generate` for its runs alone; each
            takes one value or none.
        EvaluateFlags: the same for `evaluate`.
        model_kind: the class of its model, "TransformerLM" or "EncoderDecoder".
        unit: what its data are counted in.
        initial: the opened run that training begins with: another, or itself when it is resumed.
    """

    name: ClassVar[str]
    Data: type[DataT]
    GenerateFlags: type[GenerateT] = NoFlags  # type: ignore[assignment]  # unless a task has its own
    EvaluateFlags: type[EvaluateT] = NoFlags  # type: ignore[assignment]
    model_kind: ClassVar[str] = "TransformerLM"
    unit: ClassVar[str] = "tokens"
    initial: "SavedRun | None" = None

    def libraries(self, output: Path | None = None) -> Libraries:
        """Return what the task takes for granted, beyond what commands do.

        Args:
            output: the file that is to be written, if any.
        """
        return {}

    # --- training ---

    def check(self, config: RunConfig[DataT]) -> None:
        """Refuse settings that have no meaning for this task, and files that do not exist.

        Raises:
            ValueError: saying which.
        """
        if config.train.batch_tokens is not None:
            raise ValueError("batch_tokens has no effect here: it is for pairs.")
        length, context = config.train.sequence_length, config.model.context_length
        if length is not None and length > context:
            raise ValueError(
                f"sequence_length = {length} is more than the {context} tokens that the model can "
                "read (context_length): choose a smaller one, or a larger context_length."
            )

    @abstractmethod
    def prepare(self, config: RunConfig[DataT], folder: Path) -> Dataset:
        """Read the data, split it, turn it into tokens, and keep these in a folder.

        Raises:
            ValueError: if there is no data, or too little.
        """

    def open(self, config: RunConfig[DataT], folder: Path) -> Dataset:
        """Open the tokens that `prepare` kept by `write_token_folder`.

        Raises:
            ValueError: if they are damaged or missing.
        """
        from slp_transformer.data.token_file import open_token_folder

        return open_token_folder(folder, self.load_tokenizer)

    def initial_tokenizer(self, config: RunConfig[DataT]) -> Any:
        """Return the tokenizer of the run to begin with; None if there is none.

        Raises:
            ValueError: if nobody has opened it.
        """
        if (config.init_from is None) != (self.initial is None):
            raise ValueError("A task needs the opened run that init_from names, as its initial.")
        return None if self.initial is None else self.tokenizer_of(self.initial)

    def model_config(self, config: RunConfig[DataT], tokenizer: Any) -> "TransformerConfig":
        """Return the model's configuration for a tokenizer."""
        sizes = tokenizer.vocab_size, getattr(tokenizer, "source_vocab_size", None)
        return config.model.to_config(*sizes)

    def build_model(self, config: "TransformerConfig") -> "nn.Module":
        """Build the model: the book's, or one of today's parts."""
        from slp_transformer.language_model import TransformerLM
        from slp_transformer.modern import ModernConfig, ModernLM

        return ModernLM(config) if isinstance(config, ModernConfig) else TransformerLM(config)

    def sources(self, config: RunConfig[DataT], data: Dataset) -> tuple[Any, Any]:
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

    def tokenizer_of(self, run: SavedRun) -> Any:
        """Return an opened run's tokenizer.

        Raises:
            ValueError: if it was saved without one.
        """
        assert run.checkpoint is not None, "only a published model has none"
        path = run.checkpoint.folder
        if run.checkpoint.tokenizer is None:
            raise ValueError(f"{path} was saved without a tokenizer, so its tokens have no names.")
        try:
            return self.load_tokenizer(run.checkpoint.tokenizer)
        except ValueError as error:
            raise ValueError(f"{path / 'tokenizer.json'}: {error}") from None

    def load(self, run: SavedRun, device: Any) -> LoadedRun:
        """Load the model and the tokenizer of an opened run.

        Raises:
            ValueError: if its parts do not fit together.
        """
        from slp_transformer.lora import merge_lora
        from slp_transformer.training.checkpoints import load_checkpoint_model

        assert run.checkpoint is not None, "only a published model has none"
        tokenizer, model = self.tokenizer_of(run), load_checkpoint_model(run.checkpoint)
        vocab_size = getattr(model.config, "vocab_size", None)
        if self.model_kind not in [kind.__name__ for kind in type(model).__mro__]:
            raise ValueError(
                f"{run.folder} holds no {self.model_kind}, as the task {self.name} has, but a "
                f"{type(model).__name__}."
            )
        merge_lora(model)  # the same matrices, made once rather than for each token
        if not self.fits(tokenizer, vocab_size):
            raise ValueError(
                f"{run.checkpoint.folder} is damaged: its tokenizer has "
                f"{tokenizer.vocab_size} tokens, and its model {vocab_size}."
            )
        return LoadedRun(**vars(run), model=model.to(device), tokenizer=tokenizer)

    def fits(self, tokenizer: Any, vocab_size: int | None) -> bool:
        """Return whether a model of a number of words can have a tokenizer."""
        return bool(tokenizer.vocab_size == vocab_size)

    def tokenizer_info(self, tokenizer: Any) -> dict[str, Any]:
        """Return what `info` shows of a tokenizer."""
        return {"tokens": tokenizer.vocab_size}

    def check_generate(self, run: SavedRun, output: Path | None, flags: GenerateT) -> None:
        """Refuse flags of `generate` and a file to write that are not for this run.

        Args:
            run: the run, its model not loaded yet.
            output: the file to write to in a format of the task; None for text or JSON.
            flags: those of the task.

        Raises:
            ValueError: naming the first one.
        """

    def session(self, run: LoadedRun, flags: GenerateT) -> GenerationSession:
        """Return what continues prompts with a run.

        Raises:
            ValueError: if the model does not know what is asked for.
        """
        raise ValueError(f"{run.folder} holds no model that continues prompts.")

    def check_evaluate(self, options: EvaluateOptions[EvaluateT]) -> None:
        """Refuse options of `evaluate` that this task has no use for.

        Raises:
            ValueError: naming the first one.
        """
        if options.samples is None:
            options.refuse_sampling_flags("it is for --samples N, which is not given")

    @abstractmethod
    def evaluate(self, run: LoadedRun, options: EvaluateOptions[EvaluateT]) -> Report:
        """Evaluate a run.

        Raises:
            ValueError: if there is no data to evaluate on, or too little.
        """


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
        f"validation tokens, {needed}: give more text, or choose a shorter window by "
        "sequence_length, or by the context_length of a new model."
    )
