"""Which tokens of a corpus are held out: the end of one text, or pieces from all over several."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

LEAST = 1024  # tokens of a piece, unless its document has fewer
PIECES = 50  # of a corpus, at the least


@dataclass(frozen=True)
class Document:
    """A text's place among the tokens of a corpus.

    Attributes:
        name: what the text is called.
        tokens: the places of its tokens.
    """

    name: str
    tokens: range


def held_out_pieces(documents: list[Document], share: float) -> list[range]:
    """The places of the tokens that are held out, in order.

    Of one document it is the end. Of several, the end would be whichever comes last by name, which
    may be like none of the others: there, pieces are drawn from all of them, always the same ones.
    A piece is a document, or a fiftieth of the corpus where a document is longer.
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
    """Places in pieces of at most a length."""
    return [places[first : first + length] for first in range(0, len(places), length)]


def between(pieces: Iterable[range], count: int) -> list[range]:
    """What lies between pieces that are in order, of so many places in all."""
    gaps, start = [], 0
    for piece in [*pieces, range(count, count)]:
        if start < piece.start:
            gaps.append(range(start, piece.start))
        start = piece.stop
    return gaps


def in_words(pieces: Iterable[range], documents: Iterable[Document]) -> list[str]:
    """What each piece is: a document, or some of its tokens, which are counted from 1."""
    told, documents = [], list(documents)
    for piece in pieces:
        for document in documents:
            start = document.tokens.start
            if piece == document.tokens:
                told.append(document.name)
            elif start <= piece.start < document.tokens.stop:
                first, last = piece.start - start + 1, piece.stop - start
                of = len(document.tokens)
                told.append(f"{document.name}, tokens {first} to {last} of {of}")
    return told
