"""The task of modeling text by models that others have published."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slp_transformer.tasks.base import LoadedRun
from slp_transformer.tasks.text import TextTask
from slp_transformer.training.run_folder import CheckpointChoice


class PublishedTask(TextTask):
    """Text in the tokens of a model that others have published."""

    name = "published"

    def load(self, run: Path, which: CheckpointChoice, device: Any) -> LoadedRun:
        """Load a published model, with its tokenizer.

        Raises:
            ValueError: if one of them is missing, cannot be loaded, or writes no text.
        """
        from slp_transformer.language_model import TransformerLM
        from slp_transformer.modern.pretrained import from_pretrained

        tokenizer = self.tokenizer_of(run)
        model = from_pretrained(run, device=device)
        if not isinstance(model, TransformerLM):
            raise ValueError(
                f"{run} holds no language model, but one of class {type(model).__name__}, which "
                "cannot continue a text."
            )
        return LoadedRun(self, run, model, tokenizer, None)

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
