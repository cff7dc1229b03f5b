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
        self.order, self.vocab_size = order, vocab_size
        grams = Counter(gram for row in rows for gram in self.iter_ngrams(row))
        if not grams:
            raise ValueError("There is nothing to count: no row has two tokens.")
        self.levels: list[NGramCounts] = []
        for _ in range(order):
            self.levels.append(NGramCounts(grams))
            grams = Counter(gram[1:] for gram in grams)

    def iter_ngrams(self, row: Sequence[int]) -> list[NGram]:
        """Return the n-grams that end with each token of a row but the first, padded in front."""
        padded = (*[PAD_ID] * (self.order - 2), *row) if self.order > 1 else tuple(row[1:])
        return [padded[i : i + self.order] for i in range(len(padded) - self.order + 1)]

    def probability(self, ngram: NGram) -> float:
        """Return the probability of the last token of an n-gram, given those before it."""
        probability = 1 / self.vocab_size
        for level in reversed(self.levels):
            probability = level.probability(ngram[len(ngram) - level.n :], probability)
        return probability

    def total_bits(self, row: Sequence[int]) -> float:
        """Return the cross-entropy of a row, summed over all tokens but the first, in bits."""
        return -sum(math.log2(self.probability(gram)) for gram in self.iter_ngrams(row))


class NGramCounts:
    """The counts of grams of one length."""

    def __init__(self, grams: Counter[NGram]):
        """Take counts over, and sum them up by what comes before the last token."""
        self.grams, self.n = grams, len(next(iter(grams)))
        self.context_counts: Counter[NGram] = Counter()
        self.num_continuations: Counter[NGram] = Counter()
        for gram, count in grams.items():
            self.context_counts[gram[:-1]] += count
            self.num_continuations[gram[:-1]] += 1
        times = Counter(grams.values())
        once, twice = times[1], times[2]
        self.discount = once / (once + 2 * twice) if once and twice else 0.5

    def probability(self, gram: NGram, backoff_probability: float) -> float:
        """Return the probability of the last token, given that of the shorter n-gram."""
        if not (total := self.context_counts.get(gram[:-1], 0)):
            return backoff_probability
        left = self.discount * self.num_continuations[gram[:-1]]
        return (
            max(self.grams.get(gram, 0) - self.discount, 0) + left * backoff_probability
        ) / total
