"""Shared parts of evaluating language models: the loss over windows, samples, tables."""

import math
from typing import Any

from slp_transformer._internal.progress_bar import progress_bar
from slp_transformer.data.batches import TokenWindows
from slp_transformer.tasks.base import TOKENS, Dataset, LoadedRun, Report, Task, format_table
from slp_transformer.tasks.generation_session import (
    GeneratedText,
    GenerationSession,
    continue_prompts,
    format_samples,
    samples_to_json,
)
from slp_transformer.tasks.text import perplexity, window_of
from slp_transformer.training.evaluation import mean_loss

TEMPERATURE = 0.8  # of samples, unless another is asked for


def val_data(run: LoadedRun) -> Dataset:
    """Return the data of a run, to evaluate on its held-out part.

    Raises:
        ValueError: if the run does not say what it was trained on.
    """
    if run.config is None:
        raise ValueError(
            f"{run.folder} has no config.toml to say what was held out: name a SOURCE to evaluate "
            "on."
        )
    return run.task.open(run.config, run.folder / TOKENS)


def mean_window_loss(run: LoadedRun, stream: Any) -> dict[str, Any]:
    """Return the loss over the windows that validation reads in training, and what follows from it.

    Raises:
        ValueError: if the stream is too short for one window, or the loss is not finite.
    """
    length = window_of(run.config) if run.config else run.model.config.context_length
    batch_size = run.config.train.batch_size if run.config else 32
    windows = TokenWindows(stream, length)
    with progress_bar("Evaluate", len(windows), " sequences") as on_batch:
        loss = mean_loss(run.model, windows, batch_size=batch_size, on_batch=on_batch)
    check_finite(loss, run)
    count = (len(stream) - 1) // length * length
    return {"loss": loss, "perplexity": perplexity(loss), "tokens": count}


def check_finite(loss: float, run: LoadedRun) -> None:
    """Refuse to report a loss that is not a number.

    Raises:
        ValueError: saying what to try.
    """
    if not math.isfinite(loss):
        raise ValueError(
            f"The loss is {loss}: the weights of {run.folder} are too large to compute with; try "
            "its other checkpoint."
        )


def loss_rows(values: dict[str, Any]) -> dict[str, str]:
    """Return the first rows of a report."""
    too_large = values["perplexity"] is None
    return {
        "loss": f"{values['loss']:.4f} nats per token",
        "perplexity": "above 1e308" if too_large else f"{values['perplexity']:.3f}",
        "tokens": f"{values['tokens']:,}",
    }


def sample(session: GenerationSession, run: LoadedRun, options: Any) -> list[GeneratedText]:
    """Generate the samples of an evaluation, as `generate` would without a prompt."""
    return continue_prompts(
        run.model,
        session,
        [session.begin(None) for _ in range(options.samples)],
        options.max_new_tokens or 500,
        options.seed or 0,
        temperature=TEMPERATURE if options.temperature is None else options.temperature,
    )


def with_samples(
    task: Task, run: LoadedRun, options: Any, values: dict[str, Any], rows: dict[str, str]
) -> Report:
    """Return the report of an evaluation, with samples if they are asked for."""
    text = format_table(rows)
    if options.samples is not None:
        session = task.session(run, options)
        generated = sample(session, run, options)
        values["samples"] = samples_to_json(session, generated, options.seed or 0)
        text += "\n\n" + format_samples(session, generated).rstrip("\n")
    return Report(values, text)
