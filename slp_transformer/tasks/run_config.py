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

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.choices import allowed_values_of
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.parts import (
    ROTARY_SETTINGS,
    Activation,
    Initialization,
    Normalization,
    NormOrder,
    Positions,
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


@dataclass(frozen=True)
class ModelSettings:
    """The sizes and options of a model, but for those that follow from the data.

    The defaults make a small model in the book's own form. A setting that the book's block does not
    have, at another value than its default, makes a model of today's blocks.

    Attributes:
        context_length: N, the longest sequence that has positions.
        model_dim: d, the size of a token's row.
        num_heads: A, attention heads in each block.
        num_blocks: L, blocks in the stack (in the decoder, for an encoder-decoder).
        key_dim: d_k of each head; d/A if None.
        value_dim: d_v of each head; d/A if None.
        hidden_dim: d_ff; 4d if None (8d/3 for "swiglu").
        activation: of the feedforward layers.
        norm: where the norms stand in a block.
        positions: how the model knows where its tokens stand.
        dropout: share dropped in training; not in the book.
        eps: epsilon of the norms; the book has none.
        scaled_embeddings: multiply the tokens' rows by √d (Vaswani et al. 2017); not in the book.
        initialization: how matrices begin; the book leaves it open.
        normalization: the norms.
        qk_norm: whether each head's queries and keys go through an RMSNorm (Qwen3).
        zero_init: whether the matrices that write to the residual stream begin with zeros, so that
            every block begins as the identity.
        tied: whether the head's matrix is E (the book's), or one of its own.
        num_kv_heads: how many heads have keys and values of their own, which the others share; as
            many as there are heads if None.
        ffn_bias: whether the feedforward layers have biases.
        rope_base: base of the rotary frequencies.
    """

    context_length: int = 128
    model_dim: int = 128
    num_heads: int = 4
    num_blocks: int = 4
    key_dim: int | None = None
    value_dim: int | None = None
    hidden_dim: int | None = None
    activation: Activation = "relu"
    norm: NormOrder = "pre"
    positions: Positions = "learned"
    dropout: float = 0.0
    eps: float = 1e-5
    scaled_embeddings: bool = False
    initialization: Initialization = "gpt2"
    normalization: Normalization = "layer"
    qk_norm: bool = False
    zero_init: bool = False
    tied: bool = True
    num_kv_heads: int | None = None
    ffn_bias: bool = True
    rope_base: float = 10000.0

    def __post_init__(self) -> None:
        """Refuse sizes and choices that no model can have.

        Raises:
            ValueError: naming the setting.
        """
        self.to_config(1)
        for each in fields(self) if self.positions != "rotary" else ():
            if each.name in ROTARY_SETTINGS and getattr(self, each.name) != each.default:
                raise ValueError(
                    f'{each.name} belongs to positions = "rotary", not to "{self.positions}".'
                )

    def modern_parts(self) -> list[str]:
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

    def to_config(self, vocab_size: int, source_vocab_size: int | None = None) -> TransformerConfig:
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
