"""Chapter 6's ways to decode, over several models and several draws from each: slips and repeats.

    python benchmarks/decoding_draws.py

A slip is a token that the grammar of tab refuses; a repeat is a run of four tokens that stands in
its piece already. Both are shares of 40 pieces, for each seed of the draws.
"""

import argparse
from collections.abc import Sequence

import torch

import slp_guitar as guitar
from slp_transformer import TransformerConfig, TransformerLM, generate
from slp_transformer.training import train

WAYS: dict[str, dict[str, float]] = {
    "top-k, k = 3": {"top_k": 3},
    "top-k, k = 10": {"top_k": 10},
    "τ = 0.75": {"temperature": 0.75},
    "τ = 1.5, p = 0.5": {"temperature": 1.5, "top_p": 0.5},
}
PIECES = 40


def repeated_share(ids: Sequence[int]) -> float:
    """The share of runs of four tokens that stand in the piece already."""
    runs = list(zip(ids, ids[1:], ids[2:], ids[3:], strict=False))
    return 1 - len(set(runs)) / len(runs)


def main() -> None:
    """Train the models, draw from each, and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = guitar.TabTokenizer()
    pieces = guitar.make_practice_corpus(seed=0, num_pieces=200)
    stream = torch.tensor(guitar.encode_all_tabs(pieces, tokenizer))
    val, stream = stream[:3000], stream[3000:]
    unseen = guitar.make_practice_corpus(seed=1, num_pieces=PIECES)
    prompts = [tokenizer.encode(piece)[:12] for piece in unseen]
    for seed in range(options.models):
        torch.manual_seed(seed)
        model = TransformerLM(TransformerConfig(len(tokenizer), 96, 96, num_blocks=2))
        model.embedding.tokens.E.data *= 5
        model.embedding.positions.P.data *= 5
        how = {"steps": 450, "batch_size": 12, "learning_rate": 6e-3, "eval_interval": 450}
        train(model, stream, val, **how)
        model.requires_grad_(False)
        for name, way in WAYS.items():
            shares = []
            for draw in range(options.draws):
                luck = torch.Generator().manual_seed(draw)
                found = generate(model, prompts, stop=tokenizer.eos_id, generator=luck, **way)
                texts = [one.ids for one in found]
                wrong = sum(tokenizer.decode(ids).num_invalid_tokens for ids in texts)
                written = sum(len(one.new_ids) for one in found)
                again = sum(map(repeated_share, texts)) / PIECES
                shares.append(f"{wrong / written:.1%} slips {again:.1%} repeats")
            print(f"model {seed}  {name:17} {' | '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
