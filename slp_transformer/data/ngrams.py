"""Counting as a language model: n-grams with interpolated Kneser-Ney smoothing.

What a model of whole windows has to beat. Libraries that do the same either need a compiler (KenLM)
or minutes for a hundred thousand tokens (nltk); this is the method in its plain form.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

PAD_ID = -1
NGram = tuple[int, ...]


class NGramModel:
    """The probability of a token given the n − 1 before it.

    The probability is what the counts say, less a discount for each, and the discounts together go
    to the model of one token less. Its counts are not how often a gram occurs but how many
    different tokens it occurs after; below the single token all are equally likely. Source:
    Kneser and Ney 1995, in the interpolated form of Chen and Goodman 1999, with one discount
    n₁/(n₁ + 2n₂) an order; n₁ and n₂ are how many grams are counted once and twice.
    """

    def __init__(self, rows: Iterable[Sequence[int]], order: int, vocab_size: int):
        """Count the grams of some rows, none of which reaches from one row into the next.

        Args:
            rows: token ids; the first of a row is given and never predicted.
            order: n, how many tokens a gram has.
            vocab_size: how many tokens there are.

        Raises:
            ValueError: if the order is below 1, or there is nothing to count.
        """
        if order < 1:
            raise ValueError(f"order must be a whole number of 1 or more, not {order!r}.")
        self.order: int = order
        self.vocab_size: int = vocab_size
        grams = Counter(gram for row in rows for gram in self.list_ngrams(row))
        if not grams:
            raise ValueError("There is nothing to count: no row has two tokens.")
        # Of each length from `order` to 1: how often each gram is counted.
        self.levels: list[Counter[NGram]] = []
        for _ in range(order):
            self.levels.append(grams)
            grams = Counter(gram[1:] for gram in grams)
        self.context_counts: list[Counter[NGram]] = [Counter() for _ in self.levels]
        self.num_continuations: list[Counter[NGram]] = [Counter() for _ in self.levels]
        self.discounts: list[float] = []
        for n, level in enumerate(self.levels):
            for gram, count in level.items():
                self.context_counts[n][gram[:-1]] += count
                self.num_continuations[n][gram[:-1]] += 1
            times = Counter(level.values())
            once, twice = times[1], times[2]
            self.discounts.append(once / (once + 2 * twice) if once and twice else 0.5)

    def list_ngrams(self, row: Sequence[int]) -> list[NGram]:
        """Return the n-grams that end with each token of a row but the first, padded in front."""
        padded = (*[PAD_ID] * (self.order - 2), *row) if self.order > 1 else tuple(row[1:])
        return [padded[i : i + self.order] for i in range(len(padded) - self.order + 1)]

    def probability(self, ngram: NGram) -> float:
        """Return the probability of the last token of an n-gram, given those before it."""
        probability = 1 / self.vocab_size
        for n in reversed(range(self.order)):
            gram, discount = ngram[n:], self.discounts[n]
            if total := self.context_counts[n][gram[:-1]]:
                left = discount * self.num_continuations[n][gram[:-1]] * probability
                probability = (max(self.levels[n][gram] - discount, 0) + left) / total
        return probability

    def total_bits(self, row: Sequence[int]) -> float:
        """Return the cross-entropy of a row, summed over all tokens but the first, in bits."""
        return -sum(math.log2(self.probability(gram)) for gram in self.list_ngrams(row))
