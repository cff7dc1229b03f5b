"""A trained encoder-decoder at work: it writes the places of pieces, or weighs another fingering.

What it may write is what leaves every note of the chord a place (`next_notes`), so pitches are kept
by construction.
"""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.cache import KVCache
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.guitar.fingering.alone import DecoderAlone
from slp_transformer.guitar.fingering.grips import Grip, next_notes, reachable_grips
from slp_transformer.guitar.fingering.hand_inference import Hand
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.translating import PAD, in_turn, source_ids, target_id
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Tuning
from slp_transformer.masks import padding_mask

SHARE = 0.3  # of an encoder-decoder, in the lattice of a hand


class Writing:
    """A piece whose places are being written, note by note.

    Attributes:
        passage: the piece.
        source: its notes as tokens.
        written: the tokens of the places so far.
        grips: the moments that are finished.
    """

    def __init__(self, passage: Passage, max_fret: int = MAX_FRET, max_span: int = MAX_SPAN):
        """Begin with nothing written."""
        self.passage, self.reach = passage, (max_fret, max_span)
        self.source = source_ids(passage)
        self.written: list[int] = []
        self.grips: list[Grip] = []
        self.begun: Grip = ()

    @property
    def done(self) -> bool:
        """Whether every note has its place."""
        return len(self.written) == len(self.source)

    def write(self, u: Sequence[float]) -> None:
        """Write the next place: the likeliest that leaves the rest of the chord a place.

        Args:
            u: logits of all tokens.

        Raises:
            OutOfReach: if no hand can play the moment.
        """
        pitches, tuning = self.passage.moments[len(self.grips)], self.passage.tuning
        max_fret, max_span = self.reach
        span = _span(pitches, tuning, max_fret, max_span)
        places = next_notes(self.begun, pitches, tuning, max_fret, span)
        best = max(places, key=lambda note: u[target_id(note)])
        self.written.append(target_id(best))
        self.begun = (*self.begun, best)
        if len(self.begun) == len(pitches):
            self.grips.append(self.begun)
            self.begun = ()


def translate(
    model: EncoderDecoder | DecoderAlone,
    passage: Passage,
    window: int = 96,
    max_fret: int = MAX_FRET,
    max_span: int = MAX_SPAN,
) -> list[Grip]:
    """Write the places of one piece, as `translate_all` does."""
    return translate_all(model, [passage], window, max_fret, max_span)[0]


@torch.no_grad()
def translate_all(
    model: EncoderDecoder | DecoderAlone,
    passages: Sequence[Passage],
    window: int = 96,
    max_fret: int = MAX_FRET,
    max_span: int = MAX_SPAN,
) -> list[list[Grip]]:
    """Write the places of pieces, one note after the other, the pieces side by side.

    Beyond a window of notes the model goes on from its last half window.

    Raises:
        OutOfReach: if no hand can play a moment.
    """
    model.eval()
    every = [Writing(passage, max_fret, max_span) for passage in passages]
    n = 0
    while rows := [writing for writing in every if not writing.done]:
        start = max(0, n - window // 2)
        notes = pad_sequence([w.source[start : start + window] for w in rows], True, PAD)
        mask = padding_mask(notes, PAD)
        # Notes and places in turn; a decoder alone keeps the notes before them, too.
        H_enc, cache = model.encode(notes, mask), KVCache(3 * window)
        reads = torch.stack(
            [
                in_turn(row[: n - start + 1], torch.tensor(w.written[start:], dtype=torch.long))
                for w, row in zip(rows, notes, strict=True)
            ]
        )
        for place in range(n - start, notes.shape[1]):
            u = model.decode(reads, H_enc, mask, cache=cache)[:, -1].tolist()
            for writing, logits in zip(rows, u, strict=True):
                if not writing.done:
                    writing.write(logits)
            last = torch.tensor([writing.written[-1] for writing in rows])
            after = notes[:, min(place + 1, notes.shape[1] - 1)]
            reads = torch.stack([last, after], dim=1)
        n = start + notes.shape[1]
    return [writing.grips for writing in every]


@torch.no_grad()
def hears(
    model: EncoderDecoder,
    passage: Passage,
    path: Sequence[Grip],
    window: int = 96,
    max_fret: int = MAX_FRET,
    max_span: int = MAX_SPAN,
) -> list[Float[Tensor, "grips"]]:
    """How probable the model holds each grip of each moment, having read another fingering so far.

    Its own places are not written: the decoder reads those of `path`, so that all of a piece is
    one batch, and the scores can be weighed beside those of a lattice. (In a chord, too, it reads
    the notes before as `path` has them.)

    Args:
        model: an encoder-decoder.
        path: a fingering of the passage.
        passage: the piece.
        window: notes that it reads at a time; windows overlap by half.
        max_fret: last fret of the neck.
        max_span: of a grip.

    Returns:
        For each moment the logarithm of the probability of each of its `reachable_grips`.

    Raises:
        OutOfReach: if no hand can play a moment.
    """
    model.eval()
    source = source_ids(passage)
    places = torch.tensor([target_id(note) for grip in path for note in grip])
    half, last = window // 2, max(0, len(source) - window)
    starts = [*range(0, last, half), last]
    reads = torch.stack([in_turn(source[s : s + window], places[s:]) for s in starts])
    notes = torch.stack([source[s : s + window] for s in starts])
    u = model(notes, reads)[:, ::2]
    rows = torch.empty(len(source), u.shape[-1])
    for start, row in zip(starts, u, strict=True):
        skip = half if start else 0  # a later window has read too little at its beginning
        rows[start + skip : start + len(row)] = row[skip:]
    found, n = [], 0
    for pitches in passage.moments:
        choice = reachable_grips(pitches, passage.tuning, max_fret, max_span)
        score = torch.zeros(len(choice))
        for k, pitch in enumerate(pitches):
            own = [target_id(note) for note in passage.tuning.positions(pitch, max_fret)]
            free = rows[n, own].logsumexp(0)
            score += rows[n, [target_id(grip[k]) for grip in choice]] - free
            n += 1
        found.append(score)
    return found


def _span(pitches: tuple[int, ...], tuning: Tuning, max_fret: int, max_span: int) -> int:
    """The span that a moment needs: the hand's, or the least that goes beyond it."""
    frets = [
        [note.fret for note in grip if note.fret]
        for grip in reachable_grips(pitches, tuning, max_fret, max_span)
    ]
    least = min(max(own) - min(own) if own else 0 for own in frets)
    return max(max_span, least)


def together(
    hand: Hand, model: EncoderDecoder, passage: Passage, window: int = 96, share: float = SHARE
) -> list[Grip]:
    """Finger a piece by a hand that also hears what an encoder-decoder says of its first choice.

    Args:
        hand: trained models of the hand.
        model: a trained encoder-decoder.
        passage: the piece.
        window: notes that the encoder-decoder reads at a time.
        share: what its logarithms of probabilities count in the lattice of the hand.

    Raises:
        ValueError: if the guitar is not one that the models can know.
        OutOfReach: if no hand can play a moment.
    """
    heard = hears(model, passage, hand.finger(passage), window)
    return hand.finger(passage, [share * score for score in heard])
