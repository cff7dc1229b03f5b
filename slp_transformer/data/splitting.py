"""Choice of held-out tokens: the end of one text, or chunks of several."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

MIN_CHUNK_TOKENS = 1024  # tokens of a chunk, unless its document has fewer
MIN_CHUNKS = 50  # chunks of a corpus, at least


@dataclass(frozen=True)
class Document:
    """A text, and the positions of its tokens in a corpus.

    Attributes:
        name: what the text is called.
        token_range: the places of its tokens.
    """

    name: str
    token_range: range


def choose_val_ranges(documents: list[Document], val_split: float) -> list[range]:
    """Return the ranges of the tokens that are held out, in order.

    Of one document they are the end. Of several documents the last by name may be unlike all
    others, so chunks of all of them are drawn with a fixed seed. A chunk is a document, or a
    fiftieth of the corpus where a document is longer.
    """
    count = documents[-1].token_range.stop if documents else 0
    wanted = count - int(count * (1 - val_split))
    if len(documents) == 1:
        return [range(count - wanted, count)]
    length = max(MIN_CHUNK_TOKENS, count // MIN_CHUNKS)
    pieces = [
        piece for document in documents for piece in chunk_range(document.token_range, length)
    ]
    random.Random(0).shuffle(pieces)
    held_out = []
    for piece in pieces:
        if not wanted:
            break
        held_out.append(piece[-min(wanted, len(piece)) :])
        wanted -= len(held_out[-1])
    return sorted(held_out, key=lambda piece: piece.start)


def chunk_range(token_range: range, max_length: int) -> list[range]:
    """Cut a range into ranges of at most a length."""
    return [
        token_range[first : first + max_length] for first in range(0, len(token_range), max_length)
    ]


def gaps_between(ranges: Iterable[range], num_tokens: int) -> list[range]:
    """Return the gaps between sorted ranges, up to a total count."""
    gaps, start = [], 0
    for piece in [*ranges, range(num_tokens, num_tokens)]:
        if start < piece.start:
            gaps.append(range(start, piece.start))
        start = piece.stop
    return gaps


def describe_ranges(ranges: Iterable[range], documents: Iterable[Document]) -> list[str]:
    """Describe each range: a document, or some of its tokens, counted from 1."""
    descriptions, documents = [], list(documents)
    for piece in ranges:
        for document in documents:
            start = document.token_range.start
            if piece == document.token_range:
                descriptions.append(document.name)
            elif start <= piece.start < document.token_range.stop:
                first, last = piece.start - start + 1, piece.stop - start
                of = len(document.token_range)
                descriptions.append(f"{document.name}, tokens {first} to {last} of {of}")
    return descriptions
