"""The practice corpus: guitar studies made from music theory, so a first run downloads nothing.

Every study is a real exercise of a few bars: a scale in a position, an arpeggio through a
progression, a picking pattern, a twelve-bar blues. Steps are sixteenths, or triplet eighths where a
bar has twelve steps and swings. All of it can be played: every note is on the fretboard, and no
chord asks for more than one hand.
"""

from dataclasses import dataclass

from slp_transformer.guitar.fretboard import MAX_FRET
from slp_transformer.guitar.practice import chords, lines
from slp_transformer.guitar.practice.parts import SeededChooser
from slp_transformer.guitar.tab import Tab

_MAKERS_AND_WEIGHTS = {
    "scale": (lines.make_scale_study, 5),
    "arpeggio": (lines.make_arpeggio_study, 3),
    "double stops": (lines.make_double_stop_study, 2),
    "picking": (chords.make_picking_study, 6),
    "strumming": (chords.make_strumming_study, 3),
    "riff": (chords.make_riff_study, 1),
    "drone": (lines.make_drone_study, 3),
    "shuffle": (chords.make_shuffle_study, 2),
    "walking bass": (chords.make_walking_bass_study, 2),
    "solo": (lines.make_solo_study, 3),
}
STUDY_KINDS = tuple(_MAKERS_AND_WEIGHTS)
"""The families of studies."""


@dataclass(frozen=True)
class PracticeStudy:
    """A practice piece, and what it practises.

    Attributes:
        tab: the piece.
        kind: the family that it belongs to, one of `STUDY_KINDS`.
        harmony_by_bar: for every bar the scale (``"A minor pentatonic"``) or chord (``"A7"``) that
            it is made from, named as the hand sees it: a capo or a guitar tuned down by a half step
            moves what sounds, not the name.
    """

    tab: Tab
    kind: str
    harmony_by_bar: tuple[str, ...]


def make_practice_studies(seed: int = 0, num_pieces: int = 600) -> list[PracticeStudy]:
    """Practice studies with their kind and the harmony of every bar; no two pieces are alike.

    Args:
        seed: what the choices are made from. The same seed gives the same studies everywhere, and
            fewer pieces are the beginning of more.
        num_pieces: how many.

    Raises:
        ValueError: if `num_pieces` is negative, or more than there is variety for.
    """
    if num_pieces < 0:
        raise ValueError(f"A corpus cannot have {num_pieces} pieces: ask for 0 or more.")
    kinds = [kind for kind, (_, weight) in _MAKERS_AND_WEIGHTS.items() for _ in range(weight)]
    draw, seen = SeededChooser(seed), set()
    studies: list[PracticeStudy] = []
    for _ in range(20 * num_pieces):
        if len(studies) == num_pieces:
            break
        kind = draw.draw_item(kinds)
        tab, harmony = _MAKERS_AND_WEIGHTS[kind][0](draw)
        top = MAX_FRET - tab.tuning.capo  # a capo leaves fewer frets
        on_neck = all(0 <= note.fret <= top for event in tab.iter_events() for note in event.notes)
        if on_neck and (tab.tuning, tab.bars) not in seen:
            seen.add((tab.tuning, tab.bars))
            studies.append(PracticeStudy(tab, kind, harmony))
    if len(studies) < num_pieces:
        raise ValueError(f"{num_pieces} pieces are too many: only {len(studies)} are different.")
    return studies


def make_practice_corpus(seed: int = 0, num_pieces: int = 600) -> list[Tab]:
    """The tabs of `make_practice_studies`: a corpus to train on, made in about a second.

    Raises:
        ValueError: as `make_practice_studies`.
    """
    return [study.tab for study in make_practice_studies(seed, num_pieces)]
