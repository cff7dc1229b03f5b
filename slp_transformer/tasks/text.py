"""The task of modeling text, by a model trained here or by one that others have published."""

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from slp_transformer._internal.config_checks import OPEN_SHARE, SIZE
from slp_transformer._internal.settings import setting, settings
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_files import TEXT_FIELD, find_texts, is_json_lines, is_stream
from slp_transformer.data.text_tokenizer import TokenType
from slp_transformer.tasks.base import (
    EvaluateOptions,
    LoadedRun,
    Report,
    SavedRun,
    Task,
    check_windows,
)
from slp_transformer.tasks.data_settings import DataSettings, NoFlags, Positional
from slp_transformer.tasks.generation_session import Chat, GenerationSession
from slp_transformer.tasks.run_config import RunConfig

TEXT_SUFFIXES = ("", ".txt", ".md")  # of what `generate` writes
OTHER = "other"  # folder of the tokens of another source that is held out


@settings
@dataclass(frozen=True)
class TextData(DataSettings):
    """The text to train on.

    Attributes:
        source: a file of text (.txt, .md, .jsonl, or one of these and .gz), a folder of them, - for
            standard input, or the name of a corpus (`slp-transformer info` lists them).
        val_split: the share of the source that is held out for validation: the end of one text,
            chunks from all over a folder, always the same.
        val_data: another source to validate on, in place of a share of the first.
        tokenizer: what a token is: "characters", "words", or "bpe" for pieces of words.
        vocab_size: the maximum number of words or pieces; None for no limit.
        text_field: the field of each line of .jsonl that holds the text.
    """

    task: ClassVar[str] = "text"
    paths: ClassVar[tuple[str, ...]] = ("source", "val_data")

    source: Positional[str | None] = setting(None, no_example="a file")
    val_split: float = setting(0.1, OPEN_SHARE, example=0.3)
    val_data: str | None = setting(None, no_example="a file")
    tokenizer: TokenType = setting("characters", example="words")
    vocab_size: int | None = setting(None, SIZE, example=9, given={"tokenizer": "words"})
    text_field: str = setting(TEXT_FIELD, example="title")


class TextTask(Task[TextData, NoFlags, NoFlags]):
    """Language models of text: characters, words or byte pairs."""

    name = "text"
    Data = TextData

    def check(self, config: RunConfig[TextData]) -> None:
        """Refuse a source that does not exist, and a field where no file has any.

        Raises:
            ValueError: naming it.
        """
        super().check(config)
        data = config.data
        if data.source is None:
            raise ValueError(
                "Name what to train on: a file, a folder, - for standard input, or a corpus "
                "(`slp-transformer info` lists them)."
            )
        sources = [source for source in (data.source, data.val_data) if source is not None]
        files = [path for s in sources if not is_stream(s) for path in find_texts(s)[0]]
        if data.text_field != TEXT_FIELD and not any(map(is_json_lines, files)):
            raise ValueError(
                f'text_field = "{data.text_field}" has no effect: no file here is of JSON lines '
                "(.jsonl), which alone have fields."
            )

    def prepare(self, config: RunConfig[TextData], folder: Path) -> Dataset:
        """Read a text, hold a share out, and turn both parts into tokens.

        Raises:
            ValueError: if it cannot be read, or is too short for a window.
        """
        from slp_transformer.data import prepare_corpus

        data, tokenizer = config.data, self.initial_tokenizer(config)
        assert data.source is not None, "check has refused it"
        share = data.val_split if data.val_data is None else 0.0
        kind = data.tokenizer, data.vocab_size
        text = prepare_corpus(
            data.source, *kind, share, folder, tokenizer, text_field=data.text_field
        )
        if data.val_data is not None:
            other, known = folder / OTHER, text.tokenizer
            unseen = prepare_corpus(
                data.val_data, *kind, 0.0, other, known, text_field=data.text_field
            )
            text = replace(text, val=unseen.train)
        check_windows(text, config.window(), share or None)
        return text

    def open(self, config: RunConfig[TextData], folder: Path) -> Dataset:
        """Open the tokens of a run.

        Raises:
            ValueError: if they are damaged or missing.
        """
        from slp_transformer.data import load_corpus

        text = load_corpus(folder, self.load_tokenizer)
        if text.val is None:
            text = replace(text, val=load_corpus(folder / OTHER, self.load_tokenizer).train)
        return text

    def model_config(self, config: RunConfig[TextData], tokenizer: Any) -> Any:
        """Return the model's configuration: that of the model to begin with, if it was published.

        (A published model may have parts that no setting of a run has.)
        """
        if is_published(tokenizer) and self.initial is not None:
            from slp_transformer.modern.pretrained import read_config

            found = self.initial.checkpoint
            return read_config(self.initial.folder) if found is None else found.spec.config
        return super().model_config(config, tokenizer)

    def load_tokenizer(self, content: Any) -> Any:
        """Return the tokenizer that a checkpoint holds as JSON, ours or a published model's."""
        from slp_transformer.data import TextTokenizer
        from slp_transformer.modern.hf_tokenizer import PUBLISHED, PretrainedTokenizer

        if isinstance(content, dict) and content.get("kind") == PUBLISHED:
            return PretrainedTokenizer.from_json(content)
        return TextTokenizer.from_json(content)

    def tokenizer_of(self, run: SavedRun) -> Any:
        """Return the tokenizer of a run, or of a published model.

        Raises:
            ValueError: if there is none.
        """
        if run.checkpoint is not None:
            return super().tokenizer_of(run)
        from slp_transformer.modern.hf_tokenizer import load_tokenizer
        from slp_transformer.modern.pretrained import read_config

        return load_tokenizer(run.folder, read_config(run.folder))

    def fits(self, tokenizer: Any, vocab_size: int | None) -> bool:
        """Return whether a model can have a tokenizer; a published one may have rows to spare."""
        if is_published(tokenizer) and vocab_size is not None:
            return bool(tokenizer.vocab_size <= vocab_size)
        return super().fits(tokenizer, vocab_size)

    def check_generate(self, run: SavedRun, output: Path | None, flags: NoFlags) -> None:
        """Refuse files that do not hold text.

        Raises:
            ValueError: naming the file.
        """
        if output is not None and output.suffix.lower() not in TEXT_SUFFIXES:
            raise ValueError(
                f"{run.folder} writes text, and {output.name} is no file of text: let it end in "
                ".txt or .md."
            )

    def session(self, run: LoadedRun, flags: NoFlags) -> GenerationSession:
        """Return what continues text."""
        if is_published(run.tokenizer):
            return PublishedSession(run.tokenizer, run.tokenizer.end_ids)
        return TextSession(run.tokenizer, run.tokenizer.end_id)

    @contextmanager
    def open_stream(self, run: LoadedRun, source: str | None) -> Iterator[Any]:
        """Yield the tokens to evaluate on: of a source, in a file until then, or the held-out ones.

        Raises:
            ValueError: if there are none.
            OSError: if there is no room for the file.
        """
        from slp_transformer.data import prepare_corpus
        from slp_transformer.tasks.evaluation import open_run_data

        if source is None:
            yield open_run_data(run).val
            return
        with TemporaryDirectory(prefix="slp-transformer-", ignore_cleanup_errors=True) as folder:
            field = TEXT_FIELD if run.config is None else run.config.data.text_field
            how = {"val_split": 0.0, "output_dir": folder, "tokenizer": run.tokenizer}
            yield prepare_corpus(source, **how, text_field=field).train

    def evaluate(self, run: LoadedRun, options: EvaluateOptions[NoFlags]) -> Report:
        """Measure the loss, and bits per character and byte, on held-out text or another source.

        Raises:
            ValueError: if there is none, or too little.
        """
        from slp_transformer.data.text_corpus import split_range
        from slp_transformer.data.token_file import CHUNK_TOKENS
        from slp_transformer.tasks.evaluation import (
            build_report,
            compute_window_metrics,
        )

        with self.open_stream(run, options.source) as stream:
            values = compute_window_metrics(run, stream)
            targets = split_range(range(1, values["tokens"] + 1), CHUNK_TOKENS)
            size = run.tokenizer.measure_text(stream[t.start : t.stop].tolist() for t in targets)
        if size.unknown:
            values["unknown"] = size.unknown
            why = "none: the model does not predict the bytes of unknown words"
            return build_report(self, run, options, values, **{"bits per byte": why})
        bits = values["loss"] * values["tokens"] / math.log(2)
        for unit, count in {"character": size.characters, "byte": size.bytes}.items():
            values[f"{unit}s"] = count
            if count:
                values[f"bits_per_{unit}"] = bits / count
        return build_report(self, run, options, values)


class PublishedTask(TextTask):
    """Text in the tokens of a model that others have published."""

    name = "published"

    def load(self, run: SavedRun, device: Any) -> LoadedRun:
        """Load a published model, with its tokenizer.

        Raises:
            ValueError: if one of them is missing, cannot be loaded, or writes no text.
        """
        from slp_transformer.language_model import TransformerLM
        from slp_transformer.modern.pretrained import from_pretrained

        tokenizer = self.tokenizer_of(run)
        model = from_pretrained(run.folder, device=device)
        if not isinstance(model, TransformerLM):
            raise ValueError(
                f"{run.folder} holds no language model, but one of class {type(model).__name__}, "
                "which cannot continue a text."
            )
        return LoadedRun(**vars(run), model=model, tokenizer=tokenizer)

    @contextmanager
    def open_stream(self, run: LoadedRun, source: str | None) -> Iterator[Any]:
        """Yield the tokens of a source, in a file until then.

        Raises:
            ValueError: if none is named, or it has fewer than two tokens.
            OSError: if there is no room for the file.
        """
        from slp_transformer.data.text_files import iter_document_pieces
        from slp_transformer.data.token_file import write_tokens

        if source is None:
            raise ValueError(f"{run.folder} was not trained here: name a SOURCE to evaluate on.")
        ids = (
            i
            for pieces in iter_document_pieces(source)
            for i in run.tokenizer.iter_whole_ids(pieces)
        )
        with TemporaryDirectory(prefix="slp-transformer-", ignore_cleanup_errors=True) as folder:
            path, vocab_size = Path(folder, "tokens.npy"), run.model.config.vocab_size
            if len(stream := write_tokens(path, ids, vocab_size)) < 2:
                raise ValueError("There is too little to evaluate on: it takes two tokens.")
            yield stream


class TextSession(GenerationSession):
    """Text: any token may follow any other."""

    def __init__(self, tokenizer: Any, stop: int | Collection[int] | None):
        """Generate a tokenizer's tokens, until one that ends a text."""
        self.tokenizer: Any = tokenizer
        self.stop: int | Collection[int] | None = stop

    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt; without one, of what precedes a new text or line.

        Raises:
            ValueError: if it is empty, or has a character that is not in the vocabulary.
        """
        if prompt is None:
            return [self.first_id()]
        if not (ids := self.encode(prompt)):
            raise ValueError("The prompt is empty: give at least one character.")
        return ids

    def begin_chats(self, chats: Sequence[Chat]) -> list[list[int]]:
        """Return the tokens of conversations, by the chat template of a published tokenizer.

        Raises:
            ValueError: if there is none, or it refuses a conversation.
        """
        from slp_transformer.modern.chat_template import ChatTemplate

        template = ChatTemplate.from_files(getattr(self.tokenizer, "side_files", {}))
        if template is None:
            return super().begin_chats(chats)
        end = self.tokenizer.encode(template.special_tokens.get("eos_token", ""))
        ends = {*self.tokenizer.end_ids, *(end if len(end) == 1 else [])}
        self.stop = ends  # an answer often ends in another token than a text
        # The template writes all special tokens, also the one that begins a text.
        return [self.tokenizer.encode(text) for text in template.render(chats)]

    def first_id(self) -> int:
        """Return the token that precedes a new text, or a new line."""
        end = self.tokenizer.end_id
        return self.tokenizer.ids.get("\n", 0) if end is None else end

    def encode(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt."""
        return self.tokenizer.encode(prompt)

    def render(self, ids: list[int]) -> str:
        """Return tokens as text."""
        return self.tokenizer.decode(ids)

    def stream(self) -> Any:
        """Return what turns one token after the other into text."""
        return self.tokenizer.stream_decoder()


class PublishedSession(TextSession):
    """Text in the tokens of a published model."""

    def first_id(self) -> int:
        """Return the token that precedes a text.

        Raises:
            ValueError: if the model has none.
        """
        for first in (self.tokenizer.begin_id, self.tokenizer.end_id):
            if first is not None:
                return first
        raise ValueError(
            "This model has no token to begin a text with: give `generate` a --prompt, and "
            "`evaluate` no --samples."
        )

    def encode(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt, after the one that begins a text."""
        return self.tokenizer.encode(prompt, whole=True)


def is_published(tokenizer: Any) -> bool:
    """Return whether a tokenizer is that of a published model."""
    from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer

    return isinstance(tokenizer, PretrainedTokenizer)
