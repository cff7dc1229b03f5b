"""The practice corpus: guitar studies made from music theory, so a first run downloads nothing.

Every study is a real exercise of a few bars: a scale in a position, an arpeggio through a
progression, a picking pattern, a twelve-bar blues. Steps are sixteenths, or triplet eighths where a
bar has twelve steps and swings. All of it can be played: every note is on the fretboard, and no
chord asks for more than one hand.
"""

from slp_transformer.guitar.fretboard import MAX_FRET
from slp_transformer.guitar.practice.blues import shuffle_study, solo_study, walking_study
from slp_transformer.guitar.practice.chords import (
    drone_study,
    picking_study,
    riff_study,
    strumming_study,
)
from slp_transformer.guitar.practice.lines import (
    arpeggio_study,
    double_stop_study,
    scale_study,
)
from slp_transformer.guitar.practice.study import Draw, Study
from slp_transformer.guitar.tab import Tab

_MAKERS = {
    "scale": (scale_study, 5),
    "arpeggio": (arpeggio_study, 3),
    "double stops": (double_stop_study, 2),
    "picking": (picking_study, 6),
    "strumming": (strumming_study, 3),
    "riff": (riff_study, 1),
    "drone": (drone_study, 3),
    "shuffle": (shuffle_study, 2),
    "walking bass": (walking_study, 2),
    "solo": (solo_study, 3),
}
KINDS = tuple(_MAKERS)
"""The families of studies."""

_TURNS = tuple(make for make, share in _MAKERS.values() for _ in range(share))


def practice_studies(seed: int = 0, pieces: int = 600) -> list[Study]:
    """Practice studies with their kind and the harmony of every bar; no two pieces are alike.

    Args:
        seed: what the choices are made from. The same seed gives the same studies everywhere, and
            fewer pieces are the beginning of more.
        pieces: how many.

    Raises:
        ValueError: if `pieces` is negative, or more than there is variety for.
    """
    if pieces < 0:
        raise ValueError(f"A corpus cannot have {pieces} pieces: ask for 0 or more.")
    draw, studies, seen = Draw(seed), [], set()
    for _ in range(20 * pieces):
        if len(studies) == pieces:
            break
        study = draw.pick(_TURNS)(draw)
        key = (study.tab.tuning, study.tab.bars)
        if key not in seen and fits(study.tab):
            seen.add(key)
            studies.append(study)
    if len(studies) < pieces:
        raise ValueError(
            f"{pieces} pieces are too many: only {len(studies)} different ones came up."
        )
    return studies


def fits(tab: Tab) -> bool:
    """Whether every note lies on the neck: a capo leaves fewer frets."""
    top = MAX_FRET - tab.tuning.capo
    return all(0 <= note.fret <= top for event in tab.events() for note in event.notes)


def practice_corpus(seed: int = 0, pieces: int = 600) -> list[Tab]:
    """The tabs of `practice_studies`: a corpus to train on, made in about a second.

    Raises:
        ValueError: as `practice_studies`.
    """
    return [study.tab for study in practice_studies(seed, pieces)]
