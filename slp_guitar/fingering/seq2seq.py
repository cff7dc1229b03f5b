"""Pitch to tab as translation: an encoder reads the notes, a decoder writes a place for each.

A source token says how far a note lies above the lowest open string, so that a capo, or a guitar
tuned down, changes nothing; and whether it sounds with the note before it, after it, or after a
while. The decoder reads a note and writes its place, reads the next note and writes its place: so
nothing can be left out or added, and its cross-attention is free for the notes around. What it may
write is what leaves every note of the chord a place, so pitches are kept by construction.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch

from slp_guitar.fingering.grips import Grip, allowed_next_notes
from slp_guitar.fingering.passages import Passage, list_window_starts
from slp_guitar.fretboard import MAX_FRET, Note
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.cache import KVCache
from slp_transformer.data.batches import Batch, values_crc32
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.masks import padding_mask

MAX_STRINGS = 8  # of the largest guitar
NUM_RELATIVE_PITCHES = 64  # semitones above the lowest open string
NOTE_AFTER, NOTE_TOGETHER, NOTE_LATER = range(3)
LONG_GAP_MEDIANS = 1.5  # a gap, in the piece's median, from which on a note comes later
PAD_ID = 0
SOURCE_VOCAB_SIZE = 1 + 3 * NUM_RELATIVE_PITCHES
# Notes are read, places are written.
TARGET_VOCAB_SIZE = SOURCE_VOCAB_SIZE + MAX_STRINGS * (MAX_FRET + 1)


def encode_source(passage: Passage) -> Int[Tensor, "notes"]:
    """The source: a token a note.

    Raises:
        ValueError: if a note lies more than 63 semitones above the lowest open string, or below it.
    """
    lowest = min(passage.tuning.open_pitches) + passage.tuning.capo
    ids = []
    for pitches, gap in zip(passage.moments, passage.relative_gaps(), strict=True):
        for place, pitch in enumerate(pitches):
            height = pitch - lowest
            if not 0 <= height < NUM_RELATIVE_PITCHES:
                raise ValueError(
                    f"Pitch {pitch} lies {height} semitones above the lowest open string; there "
                    f"are tokens for 0 to {NUM_RELATIVE_PITCHES - 1}."
                )
            first = NOTE_LATER if gap is not None and gap > LONG_GAP_MEDIANS else NOTE_AFTER
            ids.append(1 + NUM_RELATIVE_PITCHES * (NOTE_TOGETHER if place else first) + height)
    return torch.tensor(ids)


def note_to_target_id(note: Note) -> int:
    """The token of a place."""
    return SOURCE_VOCAB_SIZE + (MAX_FRET + 1) * (note.string - 1) + note.fret


def encode_target(passage: Passage) -> Int[Tensor, "notes"]:
    """The target: the place of each note, as people wrote it."""
    return torch.tensor([note_to_target_id(note) for grip in passage.grips for note in grip])


def format_target_ids(target_token_ids: Sequence[int]) -> list[str]:
    """Target tokens as string/fret."""
    pairs = [divmod(i - SOURCE_VOCAB_SIZE, MAX_FRET + 1) for i in target_token_ids]
    return [f"{string + 1}/{fret}" for string, fret in pairs]


def interleave_notes_and_targets(
    source_token_ids: Int[Tensor, "notes"], target_token_ids: Int[Tensor, "before"]
) -> Int[Tensor, "both"]:
    """Return the decoder input: note, place, note, place, and so on, to the last note."""
    reads = torch.full((2 * len(source_token_ids) - 1,), PAD_ID)
    reads[::2] = source_token_ids
    reads[1::2] = target_token_ids[: len(source_token_ids) - 1]
    return reads


class FingeringDataset:
    """Windows of notes with their places, for `slp_transformer.training.train`.

    Some of the places that the decoder reads are replaced by another place of the same note: when
    it writes, it will have to go on from its own mistakes.
    """

    def __init__(
        self, passages: Sequence[Passage], window_notes: int = 96, noise_rate: float = 0.0
    ):
        """Make windows.

        Args:
            passages: pieces with written grips.
            window_notes: notes in a window.
            noise_rate: share of the places before that are replaced.

        Raises:
            ValueError: if there is nothing to learn from.
        """
        self.window_notes: int = window_notes
        self.noise_rate: float = noise_rate
        fingered = [passage for passage in passages if passage.grips]
        if not fingered:
            raise ValueError("There is no fingered piece to learn from.")
        self.sources: list[Tensor] = list(map(encode_source, fingered))
        self.targets: list[Tensor] = list(map(encode_target, fingered))
        self.alternative_targets: list[Tensor] = list(map(_nearest_alternative_targets, fingered))
        # Windows begin at any note of a piece from which on one is full, or at its first.
        self.windows: list[tuple[int, int]] = [
            (n, start)
            for n, source in enumerate(self.sources)
            for start in range(max(1, len(source) - window_notes + 1))
        ]

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Random windows, with noise in what the decoder reads."""
        drawn = torch.randint(len(self.windows), (batch_size,), generator=generator)
        return self.make_batch([self.windows[i] for i in drawn.tolist()], generator)

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """All windows that do not overlap, without noise."""
        windows = list_window_starts([len(source) for source in self.sources], self.window_notes)
        for start in range(0, len(windows), batch_size):
            yield self.make_batch(windows[start : start + batch_size])

    def make_batch(
        self, windows: Sequence[tuple[int, int]], generator: torch.Generator | None = None
    ) -> Batch:
        """Windows that begin at a note of a piece."""
        N = min(self.window_notes, max(len(self.sources[n]) - start for n, start in windows))
        source = torch.full((len(windows), N), PAD_ID)
        reads = torch.full((len(windows), 2 * N - 1), PAD_ID)
        says = torch.full((len(windows), 2 * N - 1), IGNORE_INDEX)
        for row, (n, start) in enumerate(windows):
            heard = there = self.targets[n][start : start + N]
            count = len(there)
            if generator is not None and self.noise_rate:
                wrong = torch.rand(count, generator=generator) < self.noise_rate
                heard = torch.where(wrong, self.alternative_targets[n][start : start + N], there)
            source[row, :count] = self.sources[n][start : start + N]
            reads[row, : 2 * count - 1] = interleave_notes_and_targets(source[row, :count], heard)
            says[row, : 2 * count - 1 : 2] = there
        return Batch((source, reads, padding_mask(source, PAD_ID)), says)

    def fingerprint(self) -> dict[str, Any]:
        """Return how many pieces and notes there are, and a checksum of them."""
        ids = torch.cat([torch.cat(self.sources), torch.cat(self.targets)])
        return {
            "pieces": len(self.sources),
            "notes": len(ids) // 2,
            "window": self.window_notes,
            "checksum": values_crc32(ids.tolist()),
        }


def _nearest_alternative_targets(passage: Passage) -> Int[Tensor, "notes"]:
    """For each note another of its places; its own where there is no other."""
    nearest = []
    for note in chain(*passage.grips):
        places = passage.tuning.positions_of(passage.tuning.pitch_of(note))
        others = [place for place in places if place != note] or [note]
        # The nearest by fret: what a hand, or a model, would most likely have taken instead.
        nearest.append(min(others, key=lambda place: abs(place.fret - note.fret)))
    return torch.tensor(list(map(note_to_target_id, nearest)))


# --- Writing -----------------------------------------------------------------------------------


class _Hypothesis(NamedTuple):
    """A way to play a piece up to some note: the log probability, tokens, grips, an open grip."""

    log_prob: float
    written: list[int]
    grips: list[Grip]
    grip: Grip

    def extend(self, note: Note, log_y: float, pitches: Sequence[int]) -> "_Hypothesis":
        """Return this one with a note more."""
        grip = (*self.grip, note)
        is_whole = len(grip) == len(pitches)
        return _Hypothesis(
            self.log_prob + log_y,
            [*self.written, note_to_target_id(note)],
            [*self.grips, grip] if is_whole else self.grips,
            () if is_whole else grip,
        )


@torch.no_grad()
def translate_passage(
    model: EncoderDecoder, passage: Passage, window_notes: int = 96, num_beams: int = 1
) -> list[Grip]:
    """Write the places of a piece, one note after the other, each of them legal.

    Args:
        model: a model that was trained on `FingeringDataset`.
        passage: the piece; its written grips are not looked at.
        window_notes: notes in a window; beyond it the model goes on from its last half window.
        num_beams: how many hypotheses of the highest probability are kept; with one, the place is
            the likeliest each time.

    Raises:
        UnplayableError: as `grips.find_grips_or_placements`: of what no hand can take, the
            narrowest placements are written.
    """
    model.eval()
    source = encode_source(passage)
    beam = [_Hypothesis(0.0, [], [], ())]
    while (done := len(beam[0].written)) < len(source):
        start = max(0, done - window_notes // 2)
        notes = source[start : start + window_notes]
        H_enc, cache = model.encode(notes.unsqueeze(0)), KVCache(2 * window_notes)
        before = torch.tensor([one.written[start:] for one in beam], dtype=torch.long)
        heard = notes[: done - start + 1]
        reads = torch.stack([interleave_notes_and_targets(heard, row) for row in before])
        for following in range(done - start + 1, len(notes) + 1):
            H = H_enc.expand(len(beam), -1, -1)
            log_y = model.decode(reads, H, cache=cache)[:, -1].log_softmax(-1).tolist()
            longer: list[tuple[int, _Hypothesis]] = []
            for row, one in enumerate(beam):
                pitches = passage.moments[len(one.grips)]
                longer += [
                    (row, one.extend(note, log_y[row][note_to_target_id(note)], pitches))
                    for note in allowed_next_notes(one.grip, pitches, passage.tuning)
                ]
            longer.sort(key=lambda pair: -pair[1].log_prob)
            rows, beam = map(list, zip(*longer[:num_beams], strict=True))
            cache.reorder(torch.tensor(rows))
            last = torch.tensor([[one.written[-1]] for one in beam])
            note = notes[min(following, len(notes) - 1)].expand(len(beam), 1)
            reads = torch.cat([last, note], dim=1)
    return beam[0].grips
