"""What translations score that no network made: a floor for BLEU on Multi30k.

Usage::

    python benchmarks/translation_baselines.py FOLDER

`FOLDER` holds task 1 of github.com/multi30k/dataset, raw: train.en.gz, train.de.gz,
test_2016_flickr.en.gz and test_2016_flickr.de.gz. Printed as JSON lines: BLEU and chrF2 of the
English left as it is, of the translation of the most similar English sentence of train (the largest
share of words in common), and of each word translated by itself, by IBM's Model 1 (Brown et al.
1993, expectation maximization from equal probabilities).
"""

import argparse
import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

ROUNDS = 5


def read_lines(path: Path) -> list[str]:
    """The lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


def words_of(sentence: str) -> list[str]:
    """Words and marks."""
    return re.findall(r"\w+|[^\w\s]", sentence)


def most_similar(sources: list[str], sentences: list[str]) -> list[int]:
    """For each sentence, which source has the largest share of words in common."""
    bags, having = [set(words_of(s.lower())) for s in sources], defaultdict(list)
    for number, bag in enumerate(bags):
        for word in bag:
            having[word].append(number)
    nearest = []
    for sentence in sentences:
        own = set(words_of(sentence.lower()))
        shared = Counter(number for word in own for number in having[word])
        share = {n: count / len(own | bags[n]) for n, count in shared.items()}
        nearest.append(max(share, key=lambda n: (share[n], -n), default=0))
    return nearest


def learn_dictionary(sources: list[str], targets: list[str]) -> dict[str, str]:
    """For each word the likeliest translation by Model 1."""
    pairs = [(words_of(s), words_of(t)) for s, t in zip(sources, targets, strict=True)]
    probability: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    for _ in range(ROUNDS):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for source, target in pairs:
            for t in target:
                shares = [probability[s, t] for s in source]
                whole = sum(shares)
                for s, share in zip(source, shares, strict=True):
                    counts[s, t] += share / whole
                    totals[s] += share / whole
        probability = defaultdict(float, {(s, t): c / totals[s] for (s, t), c in counts.items()})
    best: dict[str, tuple[float, str]] = {}
    for (s, t), p in probability.items():
        best[s] = max(best.get(s, (0.0, "")), (p, t))
    return {s: t for s, (_, t) in best.items()}


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description="BLEU without a network.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    names = ("train.en", "train.de", "test_2016_flickr.en", "test_2016_flickr.de")
    sources, targets, asked, references = (read_lines(folder / f"{n}.gz") for n in names)
    dictionary = learn_dictionary(sources, targets)
    ways = {
        "the English as it is": asked,
        "of the most similar sentence": [targets[n] for n in most_similar(sources, asked)],
        "word by word": [" ".join(dictionary.get(w, w) for w in words_of(s)) for s in asked],
    }
    for name, texts in ways.items():
        scores = {type(m).__name__: m.corpus_score(texts, [references]) for m in (BLEU(), CHRF())}
        print(json.dumps({"way": name, **{k: round(s.score, 2) for k, s in scores.items()}}))


if __name__ == "__main__":
    main()
