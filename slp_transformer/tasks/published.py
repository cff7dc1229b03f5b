"""Published language models, as a task without training."""

from pathlib import Path
from typing import Any

from slp_transformer.tasks.base import LoadedRun, Report
from slp_transformer.tasks.text import TextTask, add_bits, perplexity

WINDOW = 1024  # maximum tokens that an evaluation reads at once


class PublishedTask(TextTask):
    """Text in the tokens of a model that others have published."""

    name = "published"

    def load(self, folder: Path, device: Any) -> LoadedRun:
        """Load a published model, with its tokenizer.

        Raises:
            ValueError: if one of them is missing, cannot be loaded, or writes no text.
        """
        from slp_transformer.language_model import TransformerLM
        from slp_transformer.modern.hf_tokenizer import load_tokenizer
        from slp_transformer.modern.pretrained import from_pretrained, read_config

        tokenizer = load_tokenizer(folder, read_config(folder))
        model = from_pretrained(folder, device=device)
        if not isinstance(model, TransformerLM):
            raise ValueError(
                f"{folder} holds no language model, but a {type(model).__name__}: it predicts "
                "masked words and cannot continue a text."
            )
        return LoadedRun(self, folder, model, tokenizer, None)

    def session(self, run: LoadedRun, options: Any) -> Any:
        """Return what continues text."""
        from slp_transformer.tasks.generation_session import PublishedSession

        return PublishedSession(run.tokenizer)

    def evaluate(self, run: LoadedRun, options: Any) -> Report:
        """Measure the loss, and bits per character and byte, on a text.

        Raises:
            ValueError: if none is named, or it has fewer than two tokens.
        """
        import torch

        from slp_transformer.data.batches import TokenWindows
        from slp_transformer.data.text_files import read_documents
        from slp_transformer.tasks.evaluation import check_finite, loss_rows, with_samples
        from slp_transformer.training.evaluation import mean_loss

        if options.source is None:
            raise ValueError(f"{run.folder} was not trained here: name a SOURCE to evaluate on.")
        texts = read_documents(options.source)
        stream = torch.tensor([i for text in texts for i in run.tokenizer.encode(text, whole=True)])
        if len(stream) < 2:
            raise ValueError("There is too little to evaluate on: it takes two tokens.")
        length = min(run.model.config.context_length, WINDOW, len(stream) - 1)
        count = (len(stream) - 1) // length * length
        loss = mean_loss(run.model, TokenWindows(stream, length), batch_size=1)
        check_finite(loss, run)
        values: dict[str, Any] = {"loss": loss, "perplexity": perplexity(loss), "tokens": count}
        rows = loss_rows(values)
        said = run.tokenizer.decode(stream[1 : count + 1])
        add_bits(values, rows, said, len(said.encode()))
        return with_samples(self, run, options, values, rows)

    def info(self, folder: Path) -> dict[str, Any]:
        """Return what `info` shows of a published model, without loading its weights.

        Raises:
            ValueError: if it has a part that is not supported.
        """
        from slp_transformer.modern.hf_tokenizer import TOKENIZER_FILE, load_tokenizer
        from slp_transformer.modern.pretrained import build_on_meta, read_config

        config = read_config(folder)
        model = build_on_meta(config)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        about = {
            "model": {"kind": type(model).__name__, **config.to_dict()},
            "parameters": count_by_part(model),
            "files": {"folder": str(folder.resolve()), "megabytes": round(size / 1e6, 2)},
        }
        if (folder / TOKENIZER_FILE).is_file():
            tokenizer = load_tokenizer(folder, config)
            about["tokenizer"] = {"kind": tokenizer.kind, "tokens": tokenizer.vocab_size}
        return about


def count_by_part(model: Any) -> dict[str, int]:
    """Return the number of a model's parameters by the part that they belong to."""
    signs = {
        "attention": ".attention.",
        "feedforward": ".ffn.",
        "norms": "norm",
        "embeddings": "em",
    }
    counts = dict.fromkeys([*signs, "heads"], 0)
    for name, W in model.named_parameters():
        part = next((part for part, sign in signs.items() if sign in name), "heads")
        counts["embeddings" if name == "S" else part] += W.numel()
    return counts | {"total": sum(counts.values())}
