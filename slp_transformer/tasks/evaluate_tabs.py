"""Evaluation of tab models: bits per note, and statistics compared with held-out tabs."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.ngrams import NGramModel
from slp_transformer.guitar import Tab, TabTokenizer, compute_playable_share
from slp_transformer.guitar.corpus_statistics import CopyDetector, compute_corpus_statistics
from slp_transformer.language_model import TransformerLM
from slp_transformer.tasks.base import TOKENS, LoadedRun
from slp_transformer.tasks.generation_session import GeneratedText

NGRAM_ORDERS = 1, 3, 5
STATISTICS = {
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


def split_pieces(stream: Any, begin_id: int) -> list[list[int]]:
    """Return the pieces of a stream, each from the token that begins one."""
    ids = stream[: len(stream)].tolist()
    begins = [place for place, token in enumerate(ids) if token == begin_id]
    return [ids[a:b] for a, b in zip(begins, [*begins[1:], len(ids)], strict=True)]


def decode_pieces(pieces: Sequence[list[int]], tokenizer: TabTokenizer) -> list[Tab]:
    """Return pieces as tabs."""
    return [tokenizer.decode(piece).tab for piece in pieces]


def training_pieces(run: LoadedRun) -> list[list[int]]:
    """Return the pieces that a run was trained on; none if it does not say."""
    if run.config is None:
        return []
    data = run.task.open(run.config, run.folder / TOKENS)
    return split_pieces(data.train, run.tokenizer.bos_id)


# --- Bits per note -----------------------------------------------------------------------------


def bits_per_note(
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
    tabs = decode_pieces(held_out, run.tokenizer)
    notes = sum(len(event.sounding_notes()) for tab in tabs for event in tab.iter_events())
    if not notes:
        return {}
    bits = {"model": sum(piece_bits(run.model, piece) for piece in held_out) / notes}
    for order in NGRAM_ORDERS if train_pieces else ():
        counted = NGramModel(train_pieces, order, run.tokenizer.vocab_size)
        bits[f"{order}-gram"] = sum(map(counted.total_bits, held_out)) / notes
    return bits


@torch.no_grad()
def piece_bits(model: TransformerLM, piece: Sequence[int]) -> float:
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
            costs = token_losses(model, window)[done - first - 1 :]
            bits += float(costs.double().sum()) / math.log(2)
            done = first + len(window)
    return bits


def token_losses(model: TransformerLM, window: Int[Tensor, "N1"]) -> Tensor:
    """Return the loss of each token of a window but the first, in nats."""
    u = model(window[:-1].unsqueeze(0))[0].float()
    return torch.nn.functional.cross_entropy(u, window[1:], reduction="none")


# --- The table ---------------------------------------------------------------------------------


def compute_statistics(
    tokenizer: TabTokenizer,
    held_out: Sequence[list[int]],
    train_pieces: Sequence[list[int]],
    written: dict[str, Sequence[GeneratedText]],
) -> dict[str, dict[str, Any]]:
    """Return statistics of the held-out pieces and of each group of generated ones.

    Generated pieces also have "well_formed", the share of their tokens that the grammar allows.
    """
    copies = CopyDetector(decode_pieces(train_pieces, tokenizer)) if train_pieces else None
    ends = [piece[-1] == tokenizer.eos_id for piece in held_out]
    people = decode_pieces(held_out, tokenizer)
    figures = {"people": compute_corpus_statistics(people, copies, ends)}
    for group, texts in written.items():
        decoded = [tokenizer.decode(text.ids) for text in texts]
        ended = [text.finish_reason == "stop" for text in texts]
        done = compute_corpus_statistics([each.tab for each in decoded], copies, ended)
        length = sum(each.num_tokens for each in decoded)
        wrong = sum(each.num_invalid_tokens for each in decoded)
        figures[group] = done | {"well_formed": 1 - wrong / length if length else None}
    return figures


def format_statistics(figures: dict[str, dict[str, Any]]) -> str:
    """Return statistics as a table with a column for each group."""
    shown = [["", *figures]]
    for row, (name, kind) in {**STATISTICS, "well-formed tokens": ("well_formed", "share")}.items():
        shown.append([row, *(FORMATS[kind](group.get(name)) for group in figures.values())])
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in shown
    )
    return "\n".join(line.rstrip() for line in lines)


def format_share(value: float | None) -> str:
    """Return a share in percent."""
    return "–" if value is None else f"{value:.1%}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "share": format_share,
    "mean": lambda value: "–" if value is None else f"{value:.1f}",
    "count": lambda value: "–" if value is None else f"{value:,}",
}


def playable_shares(tabs: Sequence[Tab]) -> dict[str, Any]:
    """Return how many events and chords there are, and the share of each that one hand can play.

    A single note fits any hand, so chords are the test. Of no events there is no share.
    """
    events = [event for tab in tabs for event in tab.iter_events()]
    chords = [event for event in events if len(event.notes) > 1]
    shares: dict[str, Any] = {}
    for name, some in (("events", events), ("chords", chords)):
        shares[name] = len(some)
        shares[f"playable_{name}"] = compute_playable_share(some) if some else None
    return shares
