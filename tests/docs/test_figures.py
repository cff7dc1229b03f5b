"""The site's figures: numbered, captioned, drawn with letters to read, and true when touched."""

import ast
import json
import re
from pathlib import Path

import diagrams
import figures
import jupytext
import links
import pytest
import torch
from chapter_source import number_of
from test_chapters import CHAPTERS, every_chapter, read

from slp_transformer import next_word_probabilities, plotting
from slp_transformer.masks import causal_mask
from slp_transformer.plotting.canvas import (
    MAX_WIDTH_PX,
    MIN_SCALE,
    max_text_width_px,
    text_width_px,
)
from slp_transformer.sampling import SAMPLING, filter_logits

ROOT = Path(__file__).parents[2]


WORDS = "the guitarist tuned the string because it was flat".split()


def link(slug):
    return f"#eq-{slug}", f"({slug})"


def test_a_wide_matrix_goes_on_below_and_loses_no_column():
    html = plotting.heatmap(torch.arange(34.0).view(2, 17) + 100, None, range(17))._repr_html_()
    assert html.count("<svg") > 1
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", html)
    assert [t for t in texts if len(t) == 3] and {str(n) for n in range(17)} <= set(texts)
    assert sorted(t for t in texts if len(t) == 3) == [str(n) for n in range(100, 134)]


def test_a_leaner_drawing_has_the_same_boxes_letters_and_colors_in_fewer_bytes():
    figure = plotting.heatmap(torch.tensor([[3.0, 0.0, -2.0]]), ["row"], ["a", "b", "c"])
    html = figure._repr_html_()
    svg = figures.DRAWING.search(html)[0]
    lean = figures.leaner(svg)
    assert len(lean) < 0.85 * len(svg)
    for pattern in (r"<text[^>]*>([^<]*)</text>", r"fill: ?(#\w+|currentColor)"):
        assert re.findall(pattern, lean) == re.findall(pattern, svg), pattern
    corners = [
        [float(number) for number in re.findall(r"[\d.]+", box)[:2]]
        for box in re.findall(r' d="(M[^"]*)"', svg)
    ]
    boxes = re.findall(r' d="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H\1z"', lean)
    assert [[float(x), float(y)] for x, y, *_ in boxes] == corners and len(boxes) >= 5
    paint = '<path d="" style="opacity: {}"/>'
    faint = f"<svg >{paint.format('0.0015')}{paint.format('0.06')}</svg>"
    assert figures.leaner(faint).count("<path") == 1


def test_negative_bars_point_left_of_a_zero_line():
    figure = plotting.bars([0.75, -0.5, -0.25], ["a", "b", "c"]).figure
    line = figure.axes[0].lines[0].get_xdata()
    boxes = [patch for patch in figure.axes[0].patches if patch.get_alpha() > 0.5]
    up, down, less = ((box.get_x(), box.get_x() + box.get_width()) for box in boxes)
    assert line[0] == line[1] == pytest.approx(up[0]) == pytest.approx(down[1])
    assert less[1] == pytest.approx(line[0]) and down[0] < less[0] < line[0] < up[1]
    assert (up[1] - up[0]) / (down[1] - down[0]) == pytest.approx(1.5)
    assert not list(plotting.bars([0.75, 0.5], ["a", "b"]).figure.axes[0].lines)


def test_long_labels_of_bars_are_not_cut():
    figure = plotting.bars([1.0], ["a label that is far too long to fit next to its bar"]).figure
    left = min(text.get_position()[0] for text in figure.axes[0].texts)
    right = max_text_width_px(["a label that is far too long to fit next to its bar"])
    assert left >= 0 and left + right <= MAX_WIDTH_PX / MIN_SCALE


def all_figures():
    taken, found = set(), {}
    for path in CHAPTERS:
        found[path.stem] = figures.of(read(path), taken)
        taken |= {figure.slug for figure in found[path.stem]}
    return found


@every_chapter
def test_figures_are_numbered_in_order_and_have_captions(chapter):
    found = all_figures()[chapter.stem]
    first = number_of(chapter.stem)
    assert [figure.number for figure in found] == [f"{first}.{k + 1}" for k in range(len(found))]
    assert len({figure.name for figure in found}) == len(found)
    for figure in found:
        assert 8 < len(figure.caption) < 100 or first in ("10", "11", "13"), figure.caption
        assert len(figure.alt) > len(figure.caption) or figure.slug, figure.number


FIGURE = re.compile(r"plotting\.(?!show_source)\w+\(|_figure\(")  # in a cell's last statement


@every_chapter
def test_a_cell_that_shows_a_figure_says_what_it_shows(chapter):
    """Told before the site is built, which looks at what was drawn."""
    for cell in jupytext.reads(read(chapter).script, fmt="py:percent").cells:
        if cell.cell_type != "code" or not (body := ast.parse(cell.source).body):
            continue
        last = body[-1]
        shows = isinstance(last, ast.Expr) and FIGURE.search(ast.unparse(last)) is not None
        assert shows == bool(cell.metadata.get("alt", "").strip()), cell.source


def test_a_caption_is_the_first_sentence_where_none_is_given():
    assert figures.first_sentence("Bars of u. Flat is largest.") == "Bars of u"


def test_references_get_the_numbers_of_their_figures():
    known = {"01_a": [figures.Figure("1.2", "strip", "A strip", "…")], "02_b": []}
    here = figures.with_references('<a href="#fig-strip">Figure</a>', "01_a", known)
    there = figures.with_references('<a href="../01_a/#fig-strip">Figure</a>', "02_b", known)
    assert ">Figure 1.2<" in here and ">Figure 1.2<" in there
    with pytest.raises(ValueError, match="There is no figure 'other' in 01_a"):
        figures.with_references('<a href="#fig-other">Figure</a>', "01_a", known)


@pytest.mark.parametrize("slug", diagrams.BEFORE)
def test_wiring_stands_before_its_equation_and_leads_to_equations(slug):
    homes = {one: path.stem for path in CHAPTERS for one, _ in labels_of(path)}
    assert slug in homes
    asked = []
    svg = diagrams.BEFORE[slug].svg(lambda one: asked.append(one) or link(one))
    assert len(asked) >= 3 and set(asked) <= set(homes), set(asked) - set(homes)
    width = float(re.search(r'viewBox="0 0 (\d+)', svg)[1])
    assert width <= 350 and svg.count("<a ") == len(asked)
    for x in re.findall(r'<(?:rect|text)[^>]* x="(-?\d+)"', svg):
        assert 0 <= float(x) <= width
    body = f'<p>a</p><p><span id="eq-{slug}"></span></p>'
    placed = figures.Figure("1.1", "w", "W", "…", slug=slug)
    assert figures.with_wirings(body, [placed], link).startswith('<p>a</p><figure class="slp-fig"')


def labels_of(path):
    return links.declared(read(path))


@pytest.mark.parametrize("upright", [False, True])
def test_each_part_of_the_whole_leads_to_its_equation(upright):
    svg = diagrams.drawing(link, frozenset({"mha"}), upright)
    led = set(re.findall(r'href="#eq-([^"]+)"', svg))
    parts = [part for part in (*diagrams.CHAIN, *diagrams.SIDE_PARTS) if part.slugs]
    assert led == {part.slugs[0] for part in parts}
    assert svg.count('class="w-here"') == 1 and 'role="group"' in svg and "aria-label=" in svg


def test_a_chapter_is_where_its_equations_are():
    places = {}
    for path in CHAPTERS:
        declared = {slug for slug, _ in labels_of(path)}
        places[number_of(path.stem)] = diagrams.here(number_of(path.stem), declared)
    assert places["1"] == {"mha"} and {"ffn", "add1", "lnf"} <= places["2"]
    assert places["4"] == {"E", "sum", "P"} and {"head", "softmax"} <= places["5"]
    assert places["6"] == {"choose"} and places["6b"] == {"cache"}
    assert places["7"] == {"loss"} and places["8"] == {"lora"}
    assert all(places.values()) and "encoder" in places["10"]
    assert "positions" in diagrams.named(places["4"])


@pytest.fixture(scope="module")
def touch():
    """Asks the functions that the page's controls call."""
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    engine.eval((ROOT / "docs" / "assets" / "touch.js").read_text(encoding="utf-8"))

    def ask(name, *values):
        given = ", ".join(json.dumps(value) for value in values)
        return json.loads(engine.eval(f"JSON.stringify(Figures.{name}({given}))"))

    yield ask
    engine.close()


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("p", [0.05, 0.8, 1.0])
@pytest.mark.parametrize("least", [0.2, 0.9])
def test_the_page_samples_as_the_package_does(tau, k, p, least, touch):
    u = torch.tensor([1.2, 0.9, 0.1, -0.5, 0.9, -3.0, 2.0])
    options = {"temperature": tau, "top_k": k, "top_p": p, "min_p": least}
    (ours,) = next_word_probabilities(filter_logits(u[None], torch.tensor([[0]]), **options))
    theirs = torch.tensor(touch("filtered", u.tolist(), options)).float()
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-4)


def test_the_figure_has_every_sampling_option_that_needs_no_text(touch):
    """At first each is where it changes nothing, and then each changes something."""
    u = [1.2, 0.9, 0.1, -0.5]
    figure = plotting.interactive_sampling(u, ["all", "the", "your", "that"])
    options = figure.values["options"]
    names = [name for name, option in SAMPLING.items() if not option.reads_ids]
    assert [option["name"] for option in options] == names
    first = {option["name"]: option["off"] for option in options}
    y = pytest.approx(torch.tensor(u).softmax(-1).tolist(), abs=1e-6)
    assert touch("filtered", u, first) == y
    for name in names:
        own = {name: SAMPLING[name].example}
        (ours,) = next_word_probabilities(
            filter_logits(torch.tensor([u]), torch.tensor([[0]]), **own)
        )
        theirs = touch("filtered", u, first | own)
        assert theirs != y and theirs == pytest.approx(ours.tolist(), abs=1e-5)
    assert touch("filtered", u, first | {"temperature": 0}) == [1, 0, 0, 0]


def test_the_page_scores_as_the_package_does(touch):
    X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.tensor(touch("scores", X.tolist(), 3)), X[:4] @ X[3])


def test_an_axis_has_a_few_round_numbers(touch):
    assert touch("ticks", 0, 18.75) == [0, 5, 10, 15]
    assert touch("ticks", 1.95, 2.66) == [2, 2.2, 2.4, 2.6]
    assert touch("ticks", 0, 0) == [0]


def touchables():
    alpha = torch.softmax(torch.randn(2, 9, 9) + causal_mask(9), dim=-1)
    yield "weights", plotting.interactive_weights(alpha, WORDS, start=6)
    yield "sampling", plotting.interactive_sampling([1.2, 0.9, 0.1], ["all", "the", "your"])
    yield "scores", plotting.interactive_scores(torch.eye(9)[:, :4], WORDS, list("abcd"))
    states = {k: (plotting.bars([k, 1], ["a", "b"]), f"{k} now") for k in (3, 5, 7)}
    yield "steps", plotting.interactive_steps("size", states, start=1)
    curves = {"a": [[0, 2], [3, 1]], "b": [[1, 3], [2, 2]]}
    yield "lines", plotting.interactive_lines(curves, ["b"], x="seconds", y="nats")


@pytest.mark.parametrize(("kind", "figure"), list(touchables()))
def test_a_figure_to_touch_carries_its_numbers_and_a_still_figure(kind, figure):
    from html import unescape

    html = figure._repr_html_()
    values = json.loads(unescape(re.search(r'data-values="([^"]*)"', html)[1]))
    assert f'data-kind="{kind}"' in html and values == figure.values
    assert '<div class="slp-figure"' in html and "<svg" in html
    script = (ROOT / "docs" / "assets" / "touch.js").read_text(encoding="utf-8")
    assert f"    {kind}({{" in script


def test_steps_carry_each_figure_once_behind_the_one_that_stands_still():
    figure = dict(touchables())["steps"]
    still, _, behind = figure._repr_html_().partition("<template>")
    assert still.count("<svg") == 1 and behind.count("<svg") == 3 and "6.000" not in still
    assert "5.000" in still and [f"{k}.000" in behind for k in (3, 5, 7)] == [True] * 3
    described = figures.described(figure._repr_html_(), figures.Figure("1.1", "a", "A", "All."))
    assert described.count('aria-label="All."') == 1
    assert described.index("All.") < described.index("<template>")


def test_what_cannot_be_touched_is_refused():
    with pytest.raises(ValueError, match=r"for 9 words, but the weights came with shape \(9, 9\)"):
        plotting.interactive_weights(torch.eye(9), WORDS)
    with pytest.raises(ValueError, match="at least two states to choose from, but got 1"):
        plotting.interactive_steps("size", {"a": (plotting.bars([1], ["a"]), "one")})
    with pytest.raises(ValueError, match="no curve 'c', only a"):
        plotting.interactive_lines({"a": [[0, 1]]}, ["c"], x="", y="")


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_what_is_wider_than_its_cells_is_not_cut(columns):
    figure = plotting.heatmap(torch.ones(2, columns), title="A title wider than its cells").figure
    axes, wide = figure.axes[0], text_width_px
    left, right = axes.get_xlim()
    for text in axes.texts:
        bold = text.get_fontweight() == "bold"
        half = wide(text.get_text(), text.get_fontsize(), bold) / 2
        assert left <= text.get_position()[0] - half <= text.get_position()[0] + half <= right
