"""Choice of held-out tokens: the end of one text, or chunks of several."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

LEAST = 1024  # tokens of a chunk, unless its document has fewer
PIECES = 50  # chunks of a corpus, at least


@dataclass(frozen=True)
class Document:
    """A text, and the positions of its tokens in a corpus.

    Attributes:
        name: what the text is called.
        tokens: the places of its tokens.
    """

    name: str
    tokens: range


def held_out_pieces(documents: list[Document], share: float) -> list[range]:
    """Return the ranges of the tokens that are held out, in order.

    Of one document they are the end. Of several documents the last by name may be unlike all
    others, so chunks of all of them are drawn with a fixed seed. A chunk is a document, or a
    fiftieth of the corpus where a document is longer.
    """
    count = documents[-1].tokens.stop if documents else 0
    wanted = count - int(count * (1 - share))
    if len(documents) == 1:
        return [range(count - wanted, count)]
    length = max(LEAST, count // PIECES)
    pieces = [piece for document in documents for piece in cut(document.tokens, length)]
    random.Random(0).shuffle(pieces)
    held_out = []
    for piece in pieces:
        if not wanted:
            break
        held_out.append(piece[-min(wanted, len(piece)) :])
        wanted -= len(held_out[-1])
    return sorted(held_out, key=lambda piece: piece.start)


def cut(places: range, length: int) -> list[range]:
    """Cut a range into ranges of at most a length."""
    return [places[first : first + length] for first in range(0, len(places), length)]


def between(pieces: Iterable[range], count: int) -> list[range]:
    """Return the gaps between sorted ranges, up to a total count."""
    gaps, start = [], 0
    for piece in [*pieces, range(count, count)]:
        if start < piece.start:
            gaps.append(range(start, piece.start))
        start = piece.stop
    return gaps


def in_words(pieces: Iterable[range], documents: Iterable[Document]) -> list[str]:
    """Describe each range: a document, or some of its tokens, counted from 1."""
    descriptions, documents = [], list(documents)
    for piece in pieces:
        for document in documents:
            start = document.tokens.start
            if piece == document.tokens:
                descriptions.append(document.name)
            elif start <= piece.start < document.tokens.stop:
                first, last = piece.start - start + 1, piece.stop - start
                of = len(document.tokens)
                descriptions.append(f"{document.name}, tokens {first} to {last} of {of}")
    return descriptions
