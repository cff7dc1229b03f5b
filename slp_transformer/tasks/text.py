"""The task of modeling text."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from slp_transformer._internal.config_checks import check_size
from slp_transformer.data.text_files import find_text_files, is_stream
from slp_transformer.data.text_tokenizer import TokenType
from slp_transformer.tasks.base import (
    TOKENS,
    Dataset,
    DataSettings,
    LoadedRun,
    Report,
    Task,
    check_split,
    check_windows,
    keep_tokenizer,
)
from slp_transformer.tasks.flag_types import Positional

OTHER = "other"  # folder of the tokens of another source that is held out


@dataclass(frozen=True)
class TextData(DataSettings):
    """The text to train on.

    Attributes:
        source: a file, a folder of .txt files, - for standard input, or the name of a corpus
            (`slp-transformer info` lists them).
        val_split: the share of the source that is held out for validation: the end of one text,
            chunks from all over a folder, always the same.
        val_data: another source to validate on, in place of a share of the first.
        tokenizer: what a token is: "characters", "words", or "bpe" for pieces of words.
        vocab_size: the maximum number of words or pieces; None for no limit.
    """

    task: ClassVar[str] = "text"
    paths: ClassVar[tuple[str, ...]] = ("source", "val_data")

    source: Positional[str | None] = None
    val_split: float = 0.1
    val_data: str | None = None
    tokenizer: TokenType = "characters"
    vocab_size: int | None = None

    def __post_init__(self):
        """Refuse what cannot be split or counted.

        Raises:
            ValueError: naming the setting.
        """
        check_split(self.val_split)
        if self.vocab_size is not None:
            check_size(vocab_size=self.vocab_size)


def check_no_pair_batches(config: Any) -> None:
    """Refuse batches filled up to a number of tokens, which are made of pairs.

    Raises:
        ValueError: naming the setting.
    """
    if config.train.batch_tokens is not None:
        raise ValueError("batch_tokens has no effect here: it is for pairs.")


class TextTask(Task):
    """Language models of text: characters, words or byte pairs."""

    name = "text"
    Data = TextData

    def check(self, config: Any) -> None:
        """Refuse a source that does not exist.

        Raises:
            ValueError: naming it.
        """
        check_no_pair_batches(config)
        if config.data.source is None:
            raise ValueError(
                "Name what to train on: a file, a folder, - for standard input, or a corpus "
                "(`slp-transformer info` lists them)."
            )
        if not is_stream(config.data.source):
            find_text_files(config.data.source)

    def prepare(self, config: Any, folder: Path | None) -> Dataset:
        """Read a text, hold a share out, and turn both parts into tokens.

        Raises:
            ValueError: if it cannot be read, or is too short for a window.
        """
        from slp_transformer.data import prepare_corpus
        from slp_transformer.tasks.loaded_run import load_tokenizer_of

        data = config.data
        tokenizer = config.init_from and load_tokenizer_of(Path(config.init_from))
        share = data.val_split if data.val_data is None else 0.0
        text = prepare_corpus(
            data.source, data.tokenizer, data.vocab_size, share, folder, tokenizer
        )
        val = text.val_data
        if not share:
            other = None if folder is None else folder / OTHER
            unseen = prepare_corpus(
                data.val_data, val_split=0.0, output_dir=other, tokenizer=text.tokenizer
            )
            val = unseen.train_data
        made = Dataset(text.tokenizer, text.train_data, val, val_names=text.val_names)
        check_windows(made, window_of(config), share or None)
        return made

    def open(self, config: Any, folder: Path) -> Dataset:
        """Open the tokens of a run.

        Raises:
            ValueError: if they are damaged or missing.
        """
        from slp_transformer.data import load_corpus
        from slp_transformer.data.token_file import TOKENIZER_FILE

        if not (folder / TOKENIZER_FILE).exists():
            return self.prepare(keep_tokenizer(config, folder), folder)
        text = load_corpus(folder)
        val = text.val_data
        return Dataset(
            text.tokenizer,
            text.train_data,
            load_corpus(folder / OTHER).train_data if val is None else val,
        )

    def next_command(self, folder: Path) -> list[str | Path]:
        """Return a command that continues two words of the training text."""
        from slp_transformer.data import load_corpus

        text = load_corpus(folder / TOKENS)
        words = text.tokenizer.decode(text.train_data[:200].tolist()).split()
        return ["generate", folder, "--prompt", " ".join(words[:2])]

    def load_tokenizer(self, content: Any) -> Any:
        """Return the tokenizer that a checkpoint holds as JSON."""
        from slp_transformer.data import TextTokenizer

        return TextTokenizer.from_json(content)

    def tokenizer_to_json(self, tokenizer: Any) -> Any:
        """Return a tokenizer as JSON."""
        return tokenizer.to_json()

    def tokenizer_settings(self, content: Any) -> dict[str, Any]:
        """Return what a token is."""
        return {"tokenizer": content.get("token_type")}

    def tokenizer_info(self, content: Any) -> dict[str, Any]:
        """Return what a token is, and how many there are."""
        tokenizer = self.load_tokenizer(content)
        return {"kind": tokenizer.token_type, "tokens": tokenizer.vocab_size}

    def session(self, run: LoadedRun, options: Any) -> Any:
        """Return what continues text."""
        from slp_transformer.tasks.generation_session import TextSession

        return TextSession(run.tokenizer)

    def evaluate(self, run: LoadedRun, options: Any) -> Report:
        """Measure the loss, and bits per character and byte, on held-out text or another source.

        Raises:
            ValueError: if there is none, or too little.
        """
        from slp_transformer.data import prepare_corpus
        from slp_transformer.data.text_tokenizer import UNKNOWN_TOKEN
        from slp_transformer.tasks.evaluation import (
            loss_rows,
            mean_window_loss,
            val_data,
            with_samples,
        )

        tokenizer = run.tokenizer
        if options.source is None:
            stream = val_data(run).val
        else:
            stream = prepare_corpus(options.source, val_split=0.0, tokenizer=tokenizer).train_data
        values = mean_window_loss(run, stream)
        rows = loss_rows(values)
        said = stream[1 : values["tokens"] + 1].tolist()
        if unknown := said.count(tokenizer.unknown_id):
            values["unknown"] = unknown
            rows["bits per byte"] = (
                f"none: {unknown:,} of the tokens are {UNKNOWN_TOKEN}, whose bytes the model does "
                "not predict"
            )
        else:
            add_bits(
                values,
                rows,
                tokenizer.decode(said),
                sum(len(tokenizer.token_bytes(i)) for i in said),
            )
        return with_samples(self, run, options, values, rows)


def add_bits(values: dict[str, Any], rows: dict[str, str], text: str, num_bytes: int) -> None:
    """Add bits per character and per byte of a text to the results of an evaluation."""
    bits = values["loss"] * values["tokens"] / math.log(2)
    sizes = {"character": len(text), "byte": num_bytes}
    values |= {f"{unit}s": size for unit, size in sizes.items()}
    for unit, size in sizes.items():
        if size:
            values[f"bits_per_{unit}"] = bits / size
            rows[f"bits per {unit}"] = f"{bits / size:.4f}"


def window_of(config: Any) -> int:
    """Return the number of tokens in a training window."""
    return config.train.sequence_length or config.model.context_length


def perplexity(loss: float) -> float | None:
    """Return the exponential of a loss; None if it is too large for a float."""
    return math.exp(loss) if loss < math.log(sys.float_info.max) else None
