"""The page "Hear it": which pieces it has, and the stage on which alphaTab draws and plays them."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from slp_transformer.guitar import (
    Bar,
    Event,
    Note,
    Tab,
    TabNote,
    Tuning,
    columns_to_steps,
    format_tab,
    read_tab_file,
)
from slp_transformer.guitar.fingering.fingering_pieces import (
    FingeringOptions,
    finger_piece,
    piece_from_tab,
)
from slp_transformer.guitar.formats.alphatex import format_alphatex
from slp_transformer.guitar.practice import make_practice_studies
from slp_transformer.guitar.timing import fit_bars_to_time_signature

MARK = "<!-- heard -->"
STAGE = 'id="slp-hear"'
KINDS = ("picking", "shuffle", "solo", "drone")
# Beethoven's Ode to Joy: pitches and their eighths, a bar each; and its bass.
JOY = (
    ((64, 2), (64, 2), (65, 2), (67, 2)), ((67, 2), (65, 2), (64, 2), (62, 2)),
    ((60, 2), (60, 2), (62, 2), (64, 2)), ((64, 3), (62, 1), (62, 4)),
    ((64, 2), (64, 2), (65, 2), (67, 2)), ((67, 2), (65, 2), (64, 2), (62, 2)),
    ((60, 2), (60, 2), (62, 2), (64, 2)), ((62, 3), (60, 1), (60, 4)),
)  # fmt: skip
BASS = (*[((pitch, 8),) for pitch in (48, 43, 48, 43, 48, 43, 48)], ((43, 4), (48, 4)))


@dataclass(frozen=True)
class Heard:
    """A piece of the page, and what there is to say of it."""

    name: str
    how: str
    tab: Tab


def pieces(root: Path) -> list[Heard]:
    """The pieces, in their order."""
    return [_generated(root), _fingered(), *_practice()]


def _generated(root: Path) -> Heard:
    """Return the piece of a model, as `benchmarks/results/guitar_lm` keeps it."""
    (tab,), _ = read_tab_file(root / "benchmarks" / "results" / "guitar_lm" / "sample.txt")
    timed, _ = fit_bars_to_time_signature(columns_to_steps(tab, 4))
    how = (
        "Written by a model that had learned 403 files of classical guitar tabs. Of twenty-four "
        "pieces it is, of those that came to an end by themselves after 200 moments or more and "
        "can be played throughout, the one in which most bars return. It learned columns of text, "
        "not time; each step of the tab is played as a sixteenth."
    )
    return Heard("A model's piece", how, timed)


def _fingered() -> Heard:
    """A melody with a bass, to which strings and frets were found."""
    bars = []
    for number, parts in enumerate(zip(JOY, BASS, strict=True)):
        moments: dict[int, list[TabNote]] = {}
        for string, part in enumerate(parts, start=1):
            now = 0
            for pitch, eighths in part:
                moments.setdefault(now, []).append(TabNote(Note(string, pitch), eighths))
                now += eighths
        events = tuple(Event.from_notes(step, moments[step]) for step in sorted(moments))
        bars.append(Bar(8, events, *((4, 4), 112)[: 0 if number else 2]))
    unfingered = Tab("Ode to Joy", Tuning((0, 0)), tuple(bars), steps_per_quarter=2)
    ((tab, _),), _ = finger_piece(piece_from_tab(unfingered), FingeringOptions())
    how = (
        "Given were pitches and times alone. Strings and frets are the path on which the hand "
        "moves least, as `slp-transformer tab` finds them without a trained model."
    )
    return Heard("Ode to Joy, from its pitches", how.replace("`", ""), tab)


def _practice() -> list[Heard]:
    """The first study of some kinds in the practice corpus."""
    studies = make_practice_studies(0, 80)
    first = {kind: next(study for study in studies if study.kind == kind) for kind in KINDS}
    how = "The first study of its kind in the practice corpus, made from music theory: {}."
    return [
        Heard(f"Practice: {kind}", how.format(study.tab.title), study.tab)
        for kind, study in first.items()
    ]


def stage(heard: list[Heard], assets: str) -> str:
    """The stage as HTML, with every piece as text below it."""
    data = [{"how": each.how, "tex": format_alphatex(each.tab)} for each in heard]
    buttons = "".join(
        f'<button type="button" data-piece="{i}" aria-pressed="false">{escape(each.name)}</button>'
        for i, each in enumerate(heard)
    )
    speeds = "".join(
        f'<option value="{speed}"{" selected" if speed == 1 else ""}>{speed:g} ×</option>'
        for speed in (0.5, 0.75, 1, 1.25)
    )
    texts = "".join(
        f"<details><summary>{escape(each.name)}, as text</summary>"
        f'<pre class="slp-hear-text" tabindex="0">{escape(format_tab(each.tab))}</pre></details>'
        for each in heard
    )
    shown = json.dumps(data).replace("<", "\\u003c")
    return (
        f'<div {STAGE} data-assets="{assets}" hidden>'
        f'<div class="slp-hear-pieces" role="group" aria-label="Pieces">{buttons}</div>'
        '<p id="slp-hear-how" aria-live="polite"></p>'
        '<p class="slp-hear-controls"><button type="button" id="slp-hear-play" disabled>Play'
        '</button> <button type="button" id="slp-hear-stop" disabled>Stop</button> '
        f'<label>Speed <select id="slp-hear-speed">{speeds}</select></label> '
        '<output id="slp-hear-time">0:00</output></p>'
        '<div id="slp-hear-stage"></div></div>'
        f'<script type="application/json" id="slp-hear-pieces">{shown}</script>{texts}'
    )
