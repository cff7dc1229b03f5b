"""Parts of evaluations: the loss over windows or pairs, samples, translations, tables."""

import math
import sys
from collections.abc import Sequence
from typing import Any

from slp_transformer._internal.progress_bar import progress_bar
from slp_transformer.data.batches import TokenWindowSource
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.pair_batches import PaddedPairSource
from slp_transformer.generation.translation import compute_translation_metrics
from slp_transformer.tasks.base import (
    TOKENS,
    EvaluateOptions,
    LoadedRun,
    Report,
    Task,
    format_table,
)
from slp_transformer.tasks.generation_session import (
    BATCH_SIZE,
    GeneratedText,
    GenerationSession,
    continue_prompts,
    describe_filled_window,
    format_samples,
    samples_to_json,
)
from slp_transformer.training.evaluation import mean_metrics
from slp_transformer.training.metrics import format_number

PROGRESS_BATCH = 256  # sentences translated before the bar moves
MAX_WINDOW = 1024  # tokens in a window, of models that were not trained by a command


def open_run_data(run: LoadedRun) -> Dataset:
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


def compute_window_metrics(run: LoadedRun, stream: Any) -> dict[str, Any]:
    """Return the means of all metrics over the windows that validation reads in training.

    Raises:
        ValueError: if the stream is too short for one window, or the loss is not finite.
    """
    if run.config is None:
        length = min(run.model.config.context_length, MAX_WINDOW, len(stream) - 1)
    else:
        length = run.config.window()
    windows = TokenWindowSource(stream, length)
    with progress_bar("Evaluate", len(windows), " sequences") as on_batch:
        batch_size = run.config.train.batch_size if run.config else 1
        means = mean_metrics(run.model, windows, batch_size=batch_size, on_batch=on_batch)
    count = (len(stream) - 1) // length * length
    return means_with_perplexity(means, run) | {"tokens": count}


def means_with_perplexity(means: dict[str, float], run: LoadedRun) -> dict[str, Any]:
    """Return metrics and the perplexity, which is None if it is too large for a float.

    Raises:
        ValueError: if the loss is not finite.
    """
    loss = means["loss"]
    if not math.isfinite(loss):
        raise ValueError(
            f"The loss is {loss}: the weights of {run.folder} are too large to compute with; try "
            "its other checkpoint."
        )
    small = loss < math.log(sys.float_info.max)
    return {"loss": loss, "perplexity": math.exp(loss) if small else None} | means


def format_rows(values: dict[str, Any]) -> dict[str, str]:
    """Return each number of an evaluation as a row of its table, a dict of numbers as a few."""
    rows: dict[str, str] = {}
    for name, value in values.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            rows |= {f"{label}, {key}": format_number(key, each) for key, each in value.items()}
        elif value is None or isinstance(value, int | float):
            rows[label] = format_number(name, value)
    rows["loss"] += " nats per token"
    perplexity = values["perplexity"]
    rows["perplexity"] = "above 1e308" if perplexity is None else f"{perplexity:.3f}"
    return rows


def generate_samples(
    session: GenerationSession, run: LoadedRun, options: EvaluateOptions[Any]
) -> list[GeneratedText]:
    """Generate the samples of an evaluation, as `generate` would without a prompt."""
    count, texts = options.samples or 0, list[GeneratedText]()
    for first in range(0, count, BATCH_SIZE):
        texts += continue_prompts(
            run.model,
            session,
            [session.begin(None) for _ in range(min(BATCH_SIZE, count - first))],
            options.max_new_tokens or 500,
            (options.seed or 0) + first,
            **options.sampling.to_dict(),
        )
    return texts


def add_samples_to_report(
    report: Report,
    run: LoadedRun,
    session: GenerationSession,
    texts: list[GeneratedText],
    seed: int | None,
) -> Report:
    """Return a report with samples, and a note if they filled the model's window."""
    samples: dict[str, Any] = {"samples": samples_to_json(session, texts, seed or 0)}
    parts = [report.text, format_samples(session, texts).rstrip("\n")]
    if note := describe_filled_window(run.model, texts):
        parts.append(note)
        samples["note"] = note
    return Report(report.values | samples, "\n\n".join(parts))


def build_report(
    task: Task[Any, Any, Any],
    run: LoadedRun,
    options: EvaluateOptions[Any],
    values: dict[str, Any],
    **notes: str,
) -> Report:
    """Return the report of an evaluation, with samples if they are asked for.

    Args:
        task: the task.
        run: the run.
        options: what was asked.
        values: what was measured, by name; each number is a row of the table.
        notes: further rows, in words.
    """
    report = Report(values, format_table(format_rows(values) | notes))
    if options.samples is None:
        return report
    session = task.session(run, task.GenerateFlags())
    return add_samples_to_report(
        report, run, session, generate_samples(session, run, options), options.seed
    )


# --- Translations ---------------------------------------------------------------------------------


def compute_pair_metrics(
    run: LoadedRun, rows: Sequence[tuple[list[int], list[int]]], special: dict[str, int]
) -> dict[str, float]:
    """Return the means of all metrics over the targets of encoded pairs."""
    data = PaddedPairSource(sorted(rows, key=lambda row: (len(row[1]), len(row[0]))), **special)
    with progress_bar("Evaluate", len(rows), " pairs") as on_batch:
        return mean_metrics(run.model, data, on_batch=on_batch)


def translate_all(translator: Any, sources: list[str], num_beams: int) -> list[str]:
    """Return the best translation of each source."""
    found: list[str] = []
    with progress_bar("Translate", len(sources), " sentences") as on_batch:
        for first in range(0, len(sources), PROGRESS_BATCH):
            batch = sources[first : first + PROGRESS_BATCH]
            found += translator.best_translations(batch, num_beams=num_beams)
            on_batch(len(batch))
    return found


def score_translations(
    predictions: list[str], references: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return BLEU and chrF as JSON and as rows; without sacrebleu, a remark in their place."""
    try:
        metrics = compute_translation_metrics(predictions, references)
    except ImportError as error:
        return {}, {"BLEU and chrF": f"none: {error}"}
    return vars(metrics), metrics.format_scores()
