"""The pages that compute or play: "One sentence", "Write with it", "Finger a piece", and others."""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from html import escape, unescape
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import constants
import diagrams
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markdown.extensions.toc import slugify

from slp_guitar import (
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
from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.formats.alphatex import format_alphatex
from slp_guitar.formats.guitar_pro import format_guitar_pro
from slp_guitar.formats.midi_writer import format_midi
from slp_guitar.formats.musicxml_writer import format_musicxml
from slp_guitar.formats.registry import read_any_tab_file
from slp_guitar.fretboard import MAX_FRET, TUNINGS
from slp_guitar.practice import make_practice_studies
from slp_guitar.timing import fit_bars_to_time_signature
from slp_transformer._internal.equations import Equations
from slp_transformer._internal.sampling_table import SAMPLING

SENTENCE_MARK, WRITE_MARK, HEAR_MARK = "<!-- sentence -->", "<!-- write -->", "<!-- heard -->"
HOME_PIECE_MARK, HOME_PLAYER_MARK = "<!-- piece -->", "<!-- player -->"
FINGERING_MARK = "<!-- fingering -->"
MISTAKES_MARK, QUIZ_MARK = "<!-- mistakes -->", "<!-- unnamed -->"
STAGES = {f'id="slp-{name}"': name for name in ("sentence", "write", "fingering")}
"""By their names, the stages that have a script and styles of their own."""
HEAR_STAGE = 'id="slp-hear"'
BOOK_MARK, BOOK_STAGE = "<!-- book -->", 'id="slp-book"'


def template(name: str) -> Template:
    """Return a template of this folder."""
    folder = FileSystemLoader(Path(__file__).parent / "templates")
    return Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    ).get_template(name)


# --- One sentence ---------------------------------------------------------------------------------

FIRST = "the guitarist tightened the string because it was"


TITLES = {"input": "The input", "block": "A block", "top": "The top"}
WEIGHTS = {
    "W_Q": "W<sup>Q</sup>",
    "W_K": "W<sup>K</sup>",
    "W_V": "W<sup>V</sup>",
    "W_O": "W<sup>O</sup>",
    "W_1": "W<sub>1</sub>",
    "W_2": "W<sub>2</sub>",
}


class Matrix(NamedTuple):
    """A matrix of the page.

    Attributes:
        key: its name in sentence.js.
        letter: its name in the book, as HTML.
        what: what it is, in a few words.
        slugs: its equations; the first one's formula is shown.
        object: what computes it in the package.
        code: a part of the line that does, which no other line of the object has.
    """

    key: str
    letter: str
    what: str
    slugs: list[str]
    object: str
    code: str


@cache
def groups() -> dict[str, list[Matrix]]:
    """Return the matrices of each part of the page."""
    table = tomllib.loads(Path(__file__).with_name("sentence.toml").read_text("utf-8"))
    return {part: [Matrix(**entry) for entry in table[part]] for part in TITLES}


# Where a part of the map leads, if not to the matrix that shows its equation.
ON_THE_MAP = {
    **{"t4": "m-T4", "mh-par-out": "m-alpha", "O": "m-T3", "ffn": "m-T5", "H": "m-H"},
    **{"top-p": "next-word", "probs": "m-y"},
}


def map_link(slug: str) -> tuple[str, str] | None:
    """Return where a part of the map leads on this page."""
    place = ON_THE_MAP.get(slug) or places().get(slug)
    return (f"#{place}", "its numbers") if place else None


def places() -> dict[str, str]:
    """Return the matrix that shows an equation, by the equation's slug."""
    found: dict[str, str] = {}
    for matrices in groups().values():
        for matrix in matrices:
            for slug in matrix.slugs:
                found.setdefault(slug, f"m-{matrix.key}")
    return found


def code_line(source: str, matrix: Matrix) -> str:
    """Return the line of an object's source that computes a matrix.

    Raises:
        ValueError: if no line, or more than one, has the words that it is known by.
    """
    lines = [line.strip() for line in source.splitlines() if matrix.code in line]
    if len(lines) != 1:
        raise ValueError(
            f"{matrix.object} has {len(lines)} lines with {matrix.code!r}, which the page "
            f'"One sentence" shows for {matrix.key}: change sentence.toml.'
        )
    return lines[0]


@cache
def still(folder: Path) -> dict[str, Any]:
    """Compute what a page without JavaScript shows of the first sentence."""
    import torch
    from safetensors.torch import load_file

    from slp_transformer import TransformerConfig, TransformerLM, record_activations

    spec = json.loads((folder / "config.json").read_text("utf-8"))
    words = json.loads((folder / "words.json").read_text("utf-8"))
    model = TransformerLM(TransformerConfig(**spec["config"]))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    ids = torch.tensor([words["vocabulary"].index(word) for word in FIRST.split()])
    with torch.no_grad(), record_activations(model) as trace:
        y = model(ids)[-1].softmax(dim=-1)
    return {
        "words": FIRST.split(),
        "vocabulary": words["vocabulary"],
        "y": y.tolist(),
        "alpha": [steps["alpha"].tolist() for steps in trace],
    }


def fill_sentence(
    content: str,
    root: Path,
    equations: dict[str, Any],
    link: Callable[[str], tuple[str, str] | None],
    source_of: Callable[[str], str],
    assets: str,
) -> str:
    """Return the page with its matrices in their place.

    Args:
        content: the page as Markdown made it.
        root: the top of the repository.
        equations: what is known of each equation, by slug.
        link: where an equation is found.
        source_of: the source of an object of the package.
        assets: the address of the engine's folder.

    Raises:
        ValueError: if a line of code that the page shows is gone.
    """

    def shown(matrix: Matrix) -> dict[str, Any]:
        first = equations[matrix.slugs[0]]
        cited = [(equations[slug], link(slug)) for slug in matrix.slugs]
        return {
            **matrix._asdict(),
            "line": code_line(source_of(matrix.object), matrix),
            "tex": first.tex,
            "displayed": first.tex.startswith("\\begin{align"),
            "equations": [(one.numbers, where and where[0]) for one, where in cited],
        }

    page = template("sentence.html").render(
        groups={key: (TITLES[key], map(shown, some)) for key, some in groups().items()},
        weights=WEIGHTS,
        still=still(root / "docs" / "assets" / "model" / "chapter5"),
        first=FIRST,
        assets=assets,
        maps=[diagrams.drawing(map_link, frozenset(), upright) for upright in (False, True)],
    )
    return content.replace(SENTENCE_MARK, page)


# --- The first screen -----------------------------------------------------------------------------

_BLOCK = 1  # its two heads look back at the word that decides
_LEAST = 0.05  # a weight below this is not drawn
_LINE, _GAP = 112.0, 9.0  # where the words stand, and what is between two


def looking(root: Path, model: str) -> str:
    """Return the picture of what each word of the first sentence reads.

    Args:
        root: the top of the repository.
        model: the address of the page "One sentence".
    """
    from slp_transformer.plotting.canvas import text_width_px

    shown = still(root / "docs" / "assets" / "model" / "chapter5")
    words, end, places = shown["words"], 6.0, []
    for word in words:
        width = text_width_px(word, 11)
        places.append((end, width))
        end += width + _GAP
    x = [left + width / 2 for left, width in places]
    rows = []
    for i, word in enumerate(words):
        arcs = []
        for head, alpha in enumerate(shown["alpha"][_BLOCK]):
            for j in range(i):
                if (weight := alpha[i][j]) >= _LEAST:
                    side, top = (head - 0.5) * 6, _LINE - 20
                    rise = min(88.0, 14 + 0.34 * (x[i] - x[j])) + side
                    d = f"M{x[i] + side:.0f} {top:.0f}C{x[i]:.0f} {top - rise:.0f} "
                    d += f"{x[j]:.0f} {top - rise:.0f} {x[j] + side:.0f} {top:.0f}"
                    arcs.append({"head": head, "d": d, "wide": f"{0.6 + 6 * weight:.1f}"})
        left, width = places[i]
        rows.append({"word": word, "x": f"{x[i]:.0f}", "left": left, "width": width, "arcs": arcs})
    chance, guess = max(zip(shown["y"], shown["vocabulary"], strict=True))
    strongest = max(range(len(words)), key=lambda j: shown["alpha"][_BLOCK][1][-1][j])
    return template("looking.html").render(
        rows=rows,
        words=words,
        width=f"{end:.0f}",
        height=f"{_LINE + 40:.0f}",
        line=_LINE,
        guess=guess,
        guess_x=f"{end - 52:.0f}",
        chance=chance,
        model=model,
        said=f"“{words[-1]}” looks back at “{words[strongest]}”, and the model expects “{guess}”.",
    )


# --- Write with it --------------------------------------------------------------------------------

MODELS = {
    "text": ("Moby-Dick, in characters", "Call me Ishmael. "),
    "tab": ("guitar tab", ""),
    "letters": ("chapter 9's, of letters in any order", "qkhbxmtfadsw"),
}
"""The models of the page, with their names and a beginning."""


def model_folder(root: Path, name: str) -> Path:
    """Return where a page's model is: that of tab is the package's, which the site serves too."""
    if name == "tab":
        return next((root / "slp_guitar" / "model").glob("step-*"))
    return root / "docs" / "assets" / "model" / name


RIFFS = {
    "thirds in G": "(0.3 0.2).4 (2.3 1.2).4 (4.3 3.2).4 (5.3 5.2).4",
    "bass and chords in A": "0.5.4 (2.4 2.3 2.2).4 0.6.4 (2.4 1.3 0.2).4",
    "E minor, upwards": "0.6 3.6 0.5 2.5 0.4 2.4 0.3 2.3",
    "picking in C": "3.5 2.4 0.3 1.2 0.1 1.2 0.3 2.4",
}
PIECE = Path("benchmarks", "results", "page_model", "piece.atex")
"""A piece of the tab model, by the rule of `benchmarks/written_tabs.py`."""


MOST_TOKENS = 41  # on a slider, where it stands for all


def fill_write(content: str, root: Path, assets: str, player_assets: str) -> str:
    """Return the page "Write with it" with its stage."""
    run = json.loads(
        (root / "benchmarks" / "results" / "page_model" / "writers.json").read_text("utf-8")
    )
    begin = {
        name: MOST_TOKENS if (off := option.slider.off) is None else off
        for name, option in SAMPLING.items()
        if option.slider
    }
    begin |= {name: o.flag_default for name, o in SAMPLING.items() if o.flag_default is not None}
    begin["top_p"] = 0.95  # as the still text was written
    page = template("write.html").render(
        assets=assets,
        models=MODELS,
        riffs=RIFFS,
        sampling=SAMPLING,
        begin=begin,
        most=MOST_TOKENS,
        player=player(player_assets),
        still=run["still"],
        piece=format_tab(written_piece(root)),
    )
    return content.replace(WRITE_MARK, page)


@cache
def written_piece(root: Path) -> Tab:
    """Return the piece of the tab model that the site lets people hear."""
    ((tab,), _) = read_any_tab_file(root / PIECE)
    return tab


def fill_home_piece(content: str, root: Path, player_assets: str) -> str:
    """Return the home page with the button that lets a piece be heard, and what plays it."""
    button = template("home_piece.html").render(tex=format_alphatex(written_piece(root)))
    stage = f"<div data-search-exclude>{player(player_assets)}</div>"
    return content.replace(HOME_PIECE_MARK, button).replace(HOME_PLAYER_MARK, stage)


# --- Break it -------------------------------------------------------------------------------------

TESTS = {
    "shape": "shape",
    "rows": "rows",
    "causal": "causality",
    "equal": "equality",
    "cache": "cache",
}
UNNAMED = ("positions from 0 with a cache", "mask one too late", "targets not shifted")
WIDEST = 0.6  # nats at the right end of a bar


@cache
def mistakes(root: Path) -> dict[str, Any]:
    """Return the recorded run, with the medians that the page shows."""
    run = json.loads(
        (root / "benchmarks" / "results" / "mistakes" / "mistakes.json").read_text("utf-8")
    )
    for mistake in run["mistakes"]:
        mistake["id"] = f"mistake-{slugify(mistake['name'], '-')}"
        if mistake["loss"]:
            for key in ("loss", "prefix_loss"):
                mistake[key] = median(mistake[key])
            mistake["width"] = min(100, 100 * mistake["loss"] / WIDEST)
            mistake["cheats"] = mistake["loss"] < run["floor"] - 0.005
    return run


def fill_mistakes(content: str, root: Path) -> str:
    """Return the page with the mistakes, and those without a name, in their places."""
    run = mistakes(root)
    named = {mistake["name"]: mistake for mistake in run["mistakes"]}
    parts = template("mistakes.html").module
    shown = {"run": run, "tests": TESTS, "floor": 100 * run["floor"] / WIDEST}
    table = parts.table(run["mistakes"], **shown)
    choices = [mistake for name, mistake in named.items() if name != "right"]
    quiz = parts.quiz([named[name] for name in UNNAMED], named=choices, **shown)
    return content.replace(MISTAKES_MARK, str(table)).replace(QUIZ_MARK, str(quiz))


# --- Finger a piece -------------------------------------------------------------------------------

EXAMPLE_HALF_STEPS = -3  # in A, the first position, whose open strings leave the hand a choice


def fill_fingering(content: str, player_assets: str) -> str:
    """Return the page "Finger a piece" with its stage."""
    page = template("fingering.html").render(
        example=format_alphatex(_fingered(EXAMPLE_HALF_STEPS).tab),
        tunings=TUNINGS,
        max_fret=MAX_FRET,
        suffixes=constants.file_kinds(),
        player=player(player_assets, format_tab(_fingered(EXAMPLE_HALF_STEPS).tab)),
    )
    return content.replace(FINGERING_MARK, page)


# --- Open your chapter ----------------------------------------------------------------------------


def fill_book(content: str, book: Equations) -> str:
    """Return the page "Open your chapter" with its stage."""
    drafts = [{"key": key, "name": name} | book.chapters[key] for key, name in book.drafts.items()]
    return content.replace(BOOK_MARK, template("book.html").render(drafts=drafts))


# --- Hear it --------------------------------------------------------------------------------------

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

    @property
    def files(self) -> str:
        """What its files are called, less their endings."""
        return slugify(self.name, "-")


FILES: dict[str, Callable[[Tab], str | bytes]] = {
    "gp5": format_guitar_pro,
    "mid": format_midi,
    "musicxml": format_musicxml,
    "atex": format_alphatex,
}
"""What a piece can be taken away as."""


def is_steady(tab: Tab) -> bool:
    """Tell if all bars but the first and the last, which may be cut, are equally long."""
    return len({bar.steps for bar in tab.bars[1:-1]}) == 1


@cache
def pieces(root: Path) -> list[Heard]:
    """The pieces, in their order: those in one meter throughout come first."""
    found = [_generated(root), _of_the_page(root), _fingered(), *_practice()]
    return sorted(found, key=lambda piece: not is_steady(piece.tab))


@cache
def files(root: Path) -> dict[str, bytes]:
    """The pieces as files, by their places in the site."""
    made = {
        f"hear/{piece.files}.{kind}": written(piece.tab)
        for piece in pieces(root)
        for kind, written in FILES.items()
    }
    return {name: one.encode() if isinstance(one, str) else one for name, one in made.items()}


def _generated(root: Path) -> Heard:
    """Return the piece of a model, as `benchmarks/results/guitar_lm` keeps it."""
    (tab,), _ = read_tab_file(root / "benchmarks" / "results" / "guitar_lm" / "sample.txt")
    timed, _ = fit_bars_to_time_signature(columns_to_steps(tab, 4))
    how = (
        "Written by a model that had learned 403 files of classical guitar tabs, and was asked for "
        "3/4. Of the pieces of twenty-four seeds that ended by themselves after 100 moments or "
        "more, on the tonic, and can be played throughout, it is the first in which no chord has "
        "a semitone. Its steps are columns of text, not time; each is played as a sixteenth."
    )
    return Heard("A model's piece", how, replace(timed, title="A waltz by a model"))


def _of_the_page(root: Path) -> Heard:
    """Return the piece of the page's own model."""
    how = (
        "Written by the model of “Write with it”, which has read 111 pieces for guitar, most of "
        "them by Horetzky and Giuliani. Of 100 pieces of at most 280 tokens, those with "
        "forty moments or more, a fifth of them chords, it is the first with fewest semitones in "
        "chords. The tempo is ours."
    )
    return Heard("A small piece by a model", how, written_piece(root))


def _fingered(half_steps: int = 0) -> Heard:
    """A melody with a bass, so many half steps higher, to which strings and frets were found."""
    bars = []
    for number, parts in enumerate(zip(JOY, BASS, strict=True)):
        moments: dict[int, list[TabNote]] = {}
        for string, part in enumerate(parts, start=1):
            now = 0
            for pitch, eighths in part:
                moments.setdefault(now, []).append(
                    TabNote(Note(string, pitch + half_steps), eighths)
                )
                now += eighths
        events = tuple(Event.from_notes(step, moments[step]) for step in sorted(moments))
        bars.append(Bar(8, events, *((4, 4), 112)[: 0 if number else 2]))
    unfingered = Tab("Ode to Joy", Tuning((0, 0)), tuple(bars), steps_per_quarter=2)
    ((tab, _),), _ = find_fingerings(piece_from_tab(unfingered), FingeringOptions())
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
    data = [{"how": p.how, "tex": format_alphatex(p.tab), "files": p.files} for p in heard]
    return template("hear.html").render(
        heard=heard,
        data=data,
        files=FILES,
        assets=assets,
        still=format_tab(heard[0].tab),
        format_tab=format_tab,
    )


SHOWN_TAB = re.compile(r'<pre class="slp-text"[^>]*>([^<]*tuning: [^<]*)</pre>')


def with_player(body: str, assets: str) -> str:
    """Return a chapter with a button below each tab that a cell prints, and what plays it.

    Args:
        body: the page.
        assets: the address of alphaTab's folder.
    """

    def offered(match: re.Match[str]) -> str:
        buttons = ""
        for tab in parse_ascii_tabs(unescape(match[1]))[0]:
            steps = tab.bars[0].steps  # a bar has four quarters, or three
            quarter = next((n for n in (4, 2, 1) if steps in (3 * n, 4 * n)), 4)
            timed, _ = fit_bars_to_time_signature(columns_to_steps(tab, quarter))
            tex = escape(format_alphatex(replace(timed, title="")))
            buttons += f'<button type="button" data-tex="{tex}">Hear it</button> '
        return f'{match[0]}<p class="slp-hear-this" data-search-exclude hidden>{buttons}</p>'

    body, count = SHOWN_TAB.subn(offered, body)
    return f"{body}<div data-search-exclude>{player(assets)}</div>" if count else body


def player(assets: str, still: str = "") -> str:
    """The stage without pieces, which a page's own script shows one; until then a text, if any."""
    return template("hear.html").render(heard=[], data=[], files=[], assets=assets, still=still)
