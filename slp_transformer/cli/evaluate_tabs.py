"""What a model of guitar tabs is like beside the people whose tabs it did not learn from."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from slp_transformer._internal.eval_mode import evaluating
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.cli.generation_session import Writing
from slp_transformer.cli.loaded_run import TOKENS, Run
from slp_transformer.data.ngrams import NGrams
from slp_transformer.guitar import Tab, TabTokenizer
from slp_transformer.guitar.corpus_statistics import Likeness, likeness
from slp_transformer.guitar.memorization import Copies
from slp_transformer.language_model import TransformerLM
from slp_transformer.tasks.datasets import Stream, reopen_data

ORDERS = 1, 3, 5
ROWS = {
    "chords among moments": ("chords", "share"),
    "playable moments": ("playable_events", "share"),
    "playable chords": ("playable_chords", "share"),
    "jumps over four frets": ("jumps", "share"),
    "open strings among notes": ("open_strings", "share"),
    "bars that return": ("returning_bars", "share"),
    "eight moments, under four different": ("monotonous", "share"),
    "notes in one scale": ("one_scale", "share"),
    "pieces that end": ("ended", "share"),
    "moments a piece": ("length", "mean"),
    "longest run copied, moments": ("longest_copy", "count"),
    "the same, mean of pieces": ("mean_copy", "mean"),
    "pieces": ("pieces", "count"),
}


def pieces_in(stream: Stream, begin_id: int) -> list[list[int]]:
    """The pieces of a stream, each from the token that begins one."""
    ids = stream[: len(stream)].tolist()
    begins = [place for place, token in enumerate(ids) if token == begin_id]
    return [ids[a:b] for a, b in zip(begins, [*begins[1:], len(ids)], strict=True)]


def read_pieces(pieces: Sequence[list[int]], tokenizer: TabTokenizer) -> list[Tab]:
    """The music of some pieces."""
    return [tokenizer.decode(piece).tab for piece in pieces]


def learned_pieces(run: Run) -> list[list[int]]:
    """The pieces that a run learned from; none if it does not say."""
    if run.recipe is None:
        return []
    data = reopen_data(run.recipe.data, run.folder / TOKENS)
    return pieces_in(data.learned, run.tokenizer.bos_id)


# --- Bits a note -------------------------------------------------------------------------------


def bits_a_note(
    run: Run, held_out: Sequence[list[int]], learned: Sequence[list[int]]
) -> dict[str, float]:
    """What whole pieces cost, all their tokens but the first, by the notes that sound in them.

    Args:
        run: the model.
        held_out: pieces to measure on.
        learned: pieces to count n-grams in, on the same tokens; none for the model alone.

    Returns:
        Bits a note by the model and, if there are learned pieces, by uni-, 3- and 5-gram; nothing
        if no note sounds.
    """
    tabs = read_pieces(held_out, run.tokenizer)
    notes = sum(len(event.sounding()) for tab in tabs for event in tab.events())
    if not notes:
        return {}
    bits = {"model": sum(piece_bits(run.model, piece) for piece in held_out) / notes}
    for order in ORDERS if learned else ():
        counted = NGrams(learned, order, run.tokenizer.vocab_size)
        bits[f"{order}-gram"] = sum(map(counted.bits, held_out)) / notes
    return bits


@torch.no_grad()
def piece_bits(model: TransformerLM, piece: Sequence[int]) -> float:
    """What a piece costs, in bits.

    A piece longer than the window is read in windows that go on by half of one; each token counts
    once, with at least half a window before it.
    """
    ids = torch.tensor(piece, device=next(model.parameters()).device)
    N, told, bits = model.config.context_length, 1, 0.0
    step = max(1, N // 2)
    with evaluating(model):
        while told < len(ids):
            first = 0 if told < N else told - step
            window = ids[first : first + N + 1]
            costs = costs_of(model, window)[told - first - 1 :]
            bits += float(costs.double().sum()) / math.log(2)
            told = first + len(window)
    return bits


def costs_of(model: TransformerLM, window: Int[Tensor, "N1"]) -> Tensor:
    """Nats of each token of a window but the first."""
    u = model(window[:-1].unsqueeze(0))[0].float()
    return torch.nn.functional.cross_entropy(u, window[1:], reduction="none")


# --- The table ---------------------------------------------------------------------------------


def figures_of(
    tokenizer: TabTokenizer,
    held_out: Sequence[list[int]],
    learned: Sequence[list[int]],
    written: dict[str, Sequence[Writing]],
) -> dict[str, dict[str, Any]]:
    """Figures of the held-out pieces and of each group of what was written.

    Of what was written there is also "well_formed", the share of its tokens that may stand where
    they stand.
    """
    copies = Copies(read_pieces(learned, tokenizer)) if learned else None
    ends = [piece[-1] == tokenizer.eos_id for piece in held_out]
    figures = {"people": likeness(read_pieces(held_out, tokenizer), copies, ends).figures()}
    for group, writings in written.items():
        decoded = [tokenizer.decode(writing.ids) for writing in writings]
        ended = [writing.ended == "stop" for writing in writings]
        told: Likeness = likeness([each.tab for each in decoded], copies, ended)
        length = sum(each.length for each in decoded)
        wrong = sum(each.ill_formed for each in decoded)
        figures[group] = told.figures() | {"well_formed": 1 - wrong / length if length else None}
    return figures


def table_of(figures: dict[str, dict[str, Any]]) -> str:
    """Figures as a table, a column for each group."""
    shown = [["", *figures]]
    for row, (name, kind) in {**ROWS, "tokens in place": ("well_formed", "share")}.items():
        shown.append([row, *(WORDS[kind](group.get(name)) for group in figures.values())])
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in shown
    )
    return "\n".join(line.rstrip() for line in lines)


def share_in_words(value: float | None) -> str:
    """A share in percent."""
    return "–" if value is None else f"{value:.1%}"


WORDS: dict[str, Callable[[Any], str]] = {
    "share": share_in_words,
    "mean": lambda value: "–" if value is None else f"{value:.1f}",
    "count": lambda value: "–" if value is None else f"{value:,}",
}
