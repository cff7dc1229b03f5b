"""Chapter 13's encoder-decoder over three seeds: with noise or none, greedy or by beam search.

Usage::

    python benchmarks/practice_fingering.py

Trained on the practice corpus, and measured on its held-out pieces. Printed as JSON lines: shares
of strings and chords that are right, and the validation loss; and what it is if the notes to come
are hidden from encoder and cross-attention, over all notes and over the first note of a window.
"""

import json

import torch
from torch.nn.functional import cross_entropy

from slp_guitar import prepare_tab_dataset
from slp_guitar.fingering import seq2seq
from slp_guitar.fingering.grips import place_on_lowest_frets
from slp_guitar.fingering.lattice import find_cheapest_fingering
from slp_guitar.fingering.passages import (
    compare_fingerings,
    passage_from_tab,
    sum_metrics,
)
from slp_transformer import EncoderDecoder, TransformerConfig
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.training import train

N = 32  # notes in a window


def make_model(seed: int) -> EncoderDecoder:
    """The chapter's model with random weights."""
    torch.manual_seed(seed)
    sizes = {"model_dim": 48, "num_heads": 4, "num_blocks": 1, "initialization": "xavier"}
    vocabulary = {"source_vocab_size": seq2seq.SOURCE_VOCAB_SIZE}
    return EncoderDecoder(
        TransformerConfig(seq2seq.TARGET_VOCAB_SIZE, 2 * N, **sizes, **vocabulary)
    )


@torch.no_grad()
def losses(model: EncoderDecoder, data: seq2seq.FingeringDataset, hide: bool) -> list[float]:
    """The validation loss, and that of the first note of each window."""
    found = []
    for batch in data.iter_eval(16):
        source, reads, mask = batch.inputs
        M = source.shape[1]
        to_come = torch.full((M, M), -torch.inf).triu(1) if hide else torch.zeros(M, M)
        H_enc = model.encode(source, mask + to_come)
        rows = to_come.repeat_interleave(2, 0)[: 2 * M - 1]
        U = model.decode(reads, H_enc, mask + rows)
        each = cross_entropy(U.mT, batch.targets, reduction="none", ignore_index=IGNORE_INDEX)
        found += [each[batch.targets != IGNORE_INDEX], each[:, 0]]
    return [round(torch.cat(found[k::2]).mean().item(), 3) for k in (0, 1)]


def main() -> None:
    """Print a line for each way."""
    torch.set_num_threads(1)
    data = prepare_tab_dataset(val_split=0.1)
    training, held_out = (list(map(passage_from_tab, t)) for t in (data.train_tabs, data.val_tabs))
    unseen = seq2seq.FingeringDataset(held_out, N)

    def say(name: str, way, **more) -> None:
        parts = [compare_fingerings(p.grips, way(p), p.tuning) for p in held_out]
        shares = sum_metrics(parts).to_shares()
        row = {key: round(shares[key], 4) for key in ("strings", "chords")}
        print(json.dumps({"way": name, **more, **row}), flush=True)

    say("lowest fret", lambda p: place_on_lowest_frets(p.moments, p.tuning))
    say("hand-written costs", find_cheapest_fingering)
    for noise in (0.0, 0.1):
        for seed in range(3):
            model, learned = make_model(seed), seq2seq.FingeringDataset(training, N, noise)
            how = {"steps": 500, "batch_size": 16, "learning_rate": 3e-3, "eval_interval": 500}
            train(model, learned, unseen, **how)
            row = {"noise": noise, "seed": seed}
            for hide in (False, True):
                loss, first = losses(model.eval(), unseen, hide)
                print(json.dumps({**row, "to come hidden": hide, "loss": loss, "first": first}))
            for beams in (1, 4):
                say(
                    "encoder-decoder",
                    lambda p, b=beams, m=model: seq2seq.translate_passage(m, p, N, b),
                    **row,
                    beams=beams,
                )


if __name__ == "__main__":
    main()
