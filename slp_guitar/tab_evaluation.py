"""Evaluation of tab models: bits per note, and statistics compared with held-out tabs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from slp_guitar import Tab, TabTokenizer
from slp_guitar.corpus_statistics import CopyDetector, compute_corpus_statistics
from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer.data.ngrams import NGramModel
from slp_transformer.language_model import TransformerLM
from slp_transformer.tasks.base import TOKENS, LoadedRun
from slp_transformer.tasks.generation_session import GeneratedText

NGRAM_ORDERS = 1, 3, 5
STATISTICS = {
    "chords among moments": ("chords", ".1%"),
    "playable moments": ("playable_events", ".1%"),
    "playable chords": ("playable_chords", ".1%"),
    "jumps over four frets": ("jumps", ".1%"),
    "open strings among notes": ("open_strings", ".1%"),
    "bars that return": ("returning_bars", ".1%"),
    "eight moments, under four different": ("monotonous", ".1%"),
    "bars in the rhythm of the bar before": ("same_rhythm", ".1%"),
    "bars as long as most of their piece": ("usual_length", ".1%"),
    "chords with a semitone inside": ("clashes", ".1%"),
    "endings on the tonic": ("tonic_endings", ".1%"),
    "notes in one scale": ("one_scale", ".1%"),
    "pieces that end": ("ended", ".1%"),
    "moments a piece": ("length", ".1f"),
    "longest run copied, moments": ("longest_copy", ",d"),
    "the same, mean of pieces": ("mean_copy", ".1f"),
    "pieces": ("pieces", ",d"),
    "well-formed tokens": ("well_formed", ".1%"),
}
"""The rows of the table: their names there, in the statistics, and their formats."""


def split_stream_into_pieces(stream: Any, begin_id: int) -> list[list[int]]:
    """Return the pieces of a stream, each from the token that begins one."""
    ids = stream[: len(stream)].tolist()
    begins = [place for place, token in enumerate(ids) if token == begin_id]
    return [ids[a:b] for a, b in zip(begins, [*begins[1:], len(ids)], strict=True)]


def decode_to_tabs(pieces: Sequence[list[int]], tokenizer: TabTokenizer) -> list[Tab]:
    """Return pieces as tabs."""
    return [tokenizer.decode(piece).tab for piece in pieces]


def load_training_pieces(run: LoadedRun) -> list[list[int]]:
    """Return the pieces that a run was trained on; none if it does not say."""
    if run.config is None:
        return []
    data = run.task.open(run.config, run.folder / TOKENS)
    return split_stream_into_pieces(data.train, run.tokenizer.bos_id)


# --- Bits per note -----------------------------------------------------------------------------


def compute_bits_per_note(
    run: LoadedRun, held_out: Sequence[list[int]], train_pieces: Sequence[list[int]]
) -> dict[str, float]:
    """Return the bits of whole pieces, without their first tokens, divided by their notes.

    Args:
        run: the model.
        held_out: pieces to evaluate on.
        train_pieces: pieces to count n-grams in, on the same tokens; none for the model alone.

    Returns:
        Bits per note of the model and, with training pieces, of uni-, 3- and 5-gram; nothing
        if no note sounds.
    """
    tabs = decode_to_tabs(held_out, run.tokenizer)
    notes = sum(len(event.sounding_notes()) for tab in tabs for event in tab.iter_events())
    if not notes:
        return {}
    bits = {"model": sum(compute_piece_bits(run.model, piece) for piece in held_out) / notes}
    for order in NGRAM_ORDERS if train_pieces else ():
        counted = NGramModel(train_pieces, order, run.tokenizer.vocab_size)
        bits[f"{order}-gram"] = sum(map(counted.total_bits, held_out)) / notes
    return bits


@torch.no_grad()
def compute_piece_bits(model: TransformerLM, piece: Sequence[int]) -> float:
    """Return the bits of a piece.

    A piece longer than the window is read in windows that go on by half of one; each token counts
    once, with at least half a window before it.
    """
    ids = torch.tensor(piece, device=next(model.parameters()).device)
    N, done, bits = model.config.context_length, 1, 0.0
    step = max(1, N // 2)
    with eval_mode(model):
        while done < len(ids):
            first = 0 if done < N else done - step
            window = ids[first : first + N + 1]
            u = model(window[:-1].unsqueeze(0))[0].float()
            losses = torch.nn.functional.cross_entropy(u, window[1:], reduction="none")
            bits += float(losses[done - first - 1 :].double().sum()) / math.log(2)
            done = first + len(window)
    return bits


# --- The table ---------------------------------------------------------------------------------


def compute_statistics(
    tokenizer: TabTokenizer,
    held_out: Sequence[list[int]],
    train_pieces: Sequence[list[int]],
    generated: Mapping[str, Sequence[GeneratedText]],
) -> dict[str, dict[str, Any]]:
    """Return statistics of the held-out pieces and of each group of generated ones.

    Generated pieces also have "well_formed", the share of their tokens that the grammar allows.
    """
    copies = CopyDetector(decode_to_tabs(train_pieces, tokenizer)) if train_pieces else None
    tabs, ends = decode_to_tabs(held_out, tokenizer), [p[-1] == tokenizer.eos_id for p in held_out]
    statistics = {"people": compute_corpus_statistics(tabs, copies, ends)}
    for group, texts in generated.items():
        decoded = [tokenizer.decode(text.ids) for text in texts]
        ends = [text.finish_reason == "stop" for text in texts]
        found = compute_corpus_statistics([each.tab for each in decoded], copies, ends)
        length = sum(each.num_tokens for each in decoded)
        wrong = sum(each.num_invalid_tokens for each in decoded)
        statistics[group] = found | {"well_formed": 1 - wrong / length if length else None}
    return statistics


def format_statistics(statistics: dict[str, dict[str, Any]]) -> str:
    """Return statistics as a table with a column for each group."""
    rows = [f"{'':38}" + "".join(f"{group:>15}" for group in statistics)]
    for row, (name, spec) in STATISTICS.items():
        values = [group.get(name) for group in statistics.values()]
        cells = ["–" if value is None else format(value, spec) for value in values]
        rows.append(f"{row:38}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(rows)
