"""The practice corpus: guitar studies made from music theory, so a first run downloads nothing.

Every study is a real exercise of a few bars: a scale in a position, an arpeggio through a
progression, a picking pattern, a twelve-bar blues. Steps are sixteenths, or triplet eighths where a
bar has twelve steps and swings. All of it can be played: every note is on the fretboard, and no
chord asks for more than one hand.
"""

from slp_transformer.guitar.fretboard import MAX_FRET
from slp_transformer.guitar.practice.blues import (
    make_shuffle_study,
    make_solo_study,
    make_walking_bass_study,
)
from slp_transformer.guitar.practice.chords import (
    make_drone_study,
    make_picking_study,
    make_riff_study,
    make_strumming_study,
)
from slp_transformer.guitar.practice.lines import (
    make_arpeggio_study,
    make_double_stop_study,
    make_scale_study,
)
from slp_transformer.guitar.practice.study import PracticeStudy, SeededChooser
from slp_transformer.guitar.tab import Tab

_STUDY_MAKERS = {
    "scale": (make_scale_study, 5),
    "arpeggio": (make_arpeggio_study, 3),
    "double stops": (make_double_stop_study, 2),
    "picking": (make_picking_study, 6),
    "strumming": (make_strumming_study, 3),
    "riff": (make_riff_study, 1),
    "drone": (make_drone_study, 3),
    "shuffle": (make_shuffle_study, 2),
    "walking bass": (make_walking_bass_study, 2),
    "solo": (make_solo_study, 3),
}
STUDY_KINDS = tuple(_STUDY_MAKERS)
"""The families of studies."""

_WEIGHTED_MAKERS = tuple(make for make, share in _STUDY_MAKERS.values() for _ in range(share))


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
    draw, studies, seen = SeededChooser(seed), [], set()
    for _ in range(20 * num_pieces):
        if len(studies) == num_pieces:
            break
        study = draw.draw_item(_WEIGHTED_MAKERS)(draw)
        key = (study.tab.tuning, study.tab.bars)
        if key not in seen and is_on_neck(study.tab):
            seen.add(key)
            studies.append(study)
    if len(studies) < num_pieces:
        raise ValueError(f"{num_pieces} pieces are too many: only {len(studies)} are different.")
    return studies


def is_on_neck(tab: Tab) -> bool:
    """Return whether every note lies on the neck: a capo leaves fewer frets."""
    top = MAX_FRET - tab.tuning.capo
    return all(0 <= note.fret <= top for event in tab.iter_events() for note in event.notes)


def make_practice_corpus(seed: int = 0, num_pieces: int = 600) -> list[Tab]:
    """The tabs of `make_practice_studies`: a corpus to train on, made in about a second.

    Raises:
        ValueError: as `make_practice_studies`.
    """
    return [study.tab for study in make_practice_studies(seed, num_pieces)]
