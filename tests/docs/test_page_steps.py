"""Each step of a page's content, alone."""

import re
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocs_jupyter")

import figures  # noqa: E402
import page_steps  # noqa: E402
import pages  # noqa: E402
import state  # noqa: E402


@pytest.fixture
def context(monkeypatch):
    page = SimpleNamespace(
        url="chapters/01_one/", file=SimpleNamespace(src_uri="chapters/01_one.ipynb")
    )
    chapter = SimpleNamespace(path=SimpleNamespace(stem="01_one"), name="chapters/01_one.py")
    site = state.Site()
    site.summaries = {"02_two": SimpleNamespace(number="2", title="Two")}
    site.figures = {"01_one": [figures.Figure("1.1", "strip", caption="C", alt="A", cell=0)]}
    site.symbols = {"X": ["the input", "X"]}
    site.outputs = {"01_one": []}
    site.equations, site.definitions, site.shown_as = {}, {}, {}
    monkeypatch.setattr(pages, "site", site)
    return page_steps.PageContext(page, site, chapter)


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        ("link_chapters", '<a href="02_two.py#a">', '<a href="../02_two/#a">'),
        ("link_chapters", '<a href="03_none.py">', '<a href="03_none.py">'),
        ("link_guide", '<a href="../docs/reuse.md#a">', '<a href="../../reuse/#a">'),
        (
            "link_guide",
            '<a href="../benchmarks/results/speed/README.md">',
            '<a href="../../measurements/speed/">',
        ),
        (
            "number_figures",
            '<a href="#fig-strip">Figure</a>',
            '<a href="#fig-strip">Figure 1.1</a>',
        ),
        ("add_tests", "<p>no equation</p>", "<p>no equation</p>"),
        ("add_player", "<p>no tab</p>", "<p>no tab</p>"),
        ("add_model", "<p>no model</p>", "<p>no model</p>"),
        ("frame_chapter", "<p>x</p>", '<div class="slp-chapter"><p>x</p></div>'),
    ],
)
def test_a_step_changes_what_it_is_for_and_nothing_else(context, step, before, after):
    assert getattr(page_steps, step)(before, context) == after


def test_formulas_are_drawn_and_wrong_ones_refused(context):
    assert "katex" in page_steps.draw_formulas("<p>$x_1$</p>", context)
    menu = page_steps.draw_formulas('<select><option value="">no √d_k</option></select>', context)
    assert re.fullmatch(r'<select><option value="">no √ ?d ?k ?</option></select>', menu)
    with pytest.raises(ValueError, match="frac"):
        page_steps.draw_formulas(r"<p>$\frac{$</p>", context)


def test_every_step_of_the_module_has_its_place_in_an_order():
    listed = {step.__name__ for step in page_steps.CHAPTER_STEPS + page_steps.PAGE_STEPS}
    written = {
        name
        for name, value in vars(page_steps).items()
        if callable(value) and getattr(value, "__module__", "") == "page_steps"
    }
    assert written - {"PageContext"} == listed
