"""Cells of an open page: what runs for each, and that no solution ever does."""

from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("mkdocs_jupyter")

import live_cells  # noqa: E402
from cell_names import find_bases  # noqa: E402
from state import site  # noqa: E402

SOLUTION = "# solution\n    return {0}\n    # end"
EXERCISE = "def {0}(x):\n    " + SOLUTION + "\n\n\ncheck({0})"


def cell(source, *tags):
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})


@dataclass(frozen=True)
class Chapter:
    path: Path = Path("01_one.py")
    script: str = "# %%\na = 1\n\n# %%\nb = 2\n"
    code_cells: list = field(
        default_factory=lambda: [
            cell("a = 1"),
            cell("b = 2"),
            cell("given"),
            *(cell(EXERCISE.format(name), "exercise") for name in ("one", "two", "three")),
            cell("between"),
        ],
        hash=False,
    )

    @property
    def notebook(self):
        return nbformat.v4.new_notebook(cells=self.code_cells)


class Kernels:
    """Notes what it is asked to run."""

    def __init__(self, events=()):
        self.asked, self.events = [], events

    def run(self, key, above, source, called, exercise):
        self.asked.append((key, above, source, called, exercise))
        yield from (dict(event) for event in self.events)

    def interrupt(self, key):
        self.asked.append(("stop", key))

    def restart(self, key):
        self.asked.append(("restart", key))


@pytest.fixture
def live(monkeypatch):
    monkeypatch.setattr(site, "chapters", [Chapter()], raising=False)
    made = live_cells.LiveCells(Path())
    made.kernels = Kernels()
    return made


def ask(live, number, action="run", **texts):
    asked = {"chapter": "01_one", "cell": number}
    asked["texts"] = {name.removeprefix("cell_"): text for name, text in texts.items()}
    events = list(live.answer(action, asked))
    return live.kernels.asked[-1], events


def test_a_cell_of_the_chapter_runs_after_those_above_it_as_the_page_shows_them(live):
    key = ("01_one", "chapter")
    assert ask(live, 1)[0] == (key, ["a = 1"], "b = 2", {}, None)
    assert ask(live, 1, cell_0="a = 5", cell_1="b")[0] == (key, ["a = 5"], "b", {}, None)


def test_no_solution_ever_runs(live):
    for number in range(3, 7):
        (key, above, source, called, _), _ = ask(live, number)
        assert key == ("01_one", "exercises")
        assert "return" not in "".join([*above, source, *called.values()])
    assert "your lines here" in ask(live, 4)[0][2]


def test_the_reader_s_own_exercises_run_where_they_are_called(live):
    one, two = "def one(x):\n    return 1", "def two(x):\n    return one(x)"
    mine = {"cell_3": one, "cell_4": two, "cell_5": "def three(x):\n    return two(x)"}
    assert ask(live, 5, **mine)[0][3:] == ({3: one, 4: two}, 5)
    assert ask(live, 4, **mine)[0][3:] == ({3: one}, 4)
    assert ask(live, 5, **mine | {"cell_5": "def three(x): ..."})[0][3:] == ({}, 5)
    assert ask(live, 6, **mine)[0][1:] == (["given"], "between", {}, None)


@pytest.mark.parametrize("text", ["one = abs", "from math import exp as one", "a, one = 1, abs"])
def test_an_exercise_may_give_its_function_in_any_way(live, text, monkeypatch):
    two = "def two(x):\n    return one(given, x)"
    assert ask(live, 4, cell_3=text, cell_4=two)[0][3:] == ({3: text}, 4)
    cells = Chapter().code_cells
    cells[2] = cell("import given")
    monkeypatch.setattr(site, "chapters", [Chapter(code_cells=cells)])
    # what stands above the exercises needs none of them
    assert ask(live, 4, cell_3="import given", cell_4=two)[0][3:] == ({}, 4)


@pytest.mark.parametrize("options", ["", ", one_row=True"])
def test_a_wrong_function_is_followed_after_its_verdict(live, options):
    text = f"def own(x):\n    return x\n\n\ncheck.softmax(own{options})"
    asked = {"chapter": "01_one", "cell": 3, "texts": {"3": text}, "follows": True}
    live.kernels.events = [{"kind": "end", "state": "ok"}]
    (end,) = live.answer("run", asked)
    assert end["has_part"]
    source = live.kernels.asked[-1][2]
    assert source == text.replace("check.", "display(check.") + (
        ')\nfrom slp_transformer.check.own.wrong_part import follow\nprint(follow("softmax", own))'
    )


@pytest.mark.parametrize(
    "line", ["check.weighted_sum(own)", "check.at_most(train(own), floor=0.6)", "own(1)"]
)
def test_what_has_no_place_in_the_model_is_not_followed(live, line):
    text = f"def own(x):\n    return x\n\n\n{line}"
    asked = {"chapter": "01_one", "cell": 3, "texts": {"3": text}, "follows": True}
    live.kernels.events = [{"kind": "end", "state": "ok"}]
    (end,) = live.answer("run", asked)
    assert not end["has_part"] and live.kernels.asked[-1][2] == text


def test_a_failure_is_told_with_the_number_of_its_cell(live):
    live.kernels.events = [{"kind": "end", "state": "failed above", "at": 1}]
    texts = {"cell_3": "def one(x): 1 / 0", "cell_4": "def two(x): return one(x)"}
    _, (end,) = ask(live, 4, **texts)
    assert end["at"] == 3


def test_an_exercise_that_checks_nothing_says_which_line_does(live, monkeypatch):
    monkeypatch.setattr(
        "exercises.cut", lambda source: "def f(): ...\n\n\ncheck.softmax(f, one_row=True)"
    )
    monkeypatch.setattr(live, "as_html", lambda chapter, number, outputs, _: outputs)
    ended = {"kind": "end", "state": "ok"}
    live.kernels.events = [{"kind": "outputs", "outputs": "<p>7</p>"}, ended]
    line = "its last line is to be check.softmax(f, one_row=True)"
    assert line in ask(live, 3, cell_3="def f(): return 7\nf()")[1][-1]["text"]
    live.kernels.events = [ended | {"text": "More."}]  # a verdict that no line shows is none
    said = ask(live, 3, cell_3="check.softmax(f, one_row=True)\nx = 1")[1][-1]["text"]
    assert line in said and said.endswith(" More.")
    live.kernels.events = [{"kind": "outputs", "outputs": '<div class="slp-verdict">'}, ended]
    assert "text" not in ask(live, 3)[1][-1]
    assert "text" not in ask(live, 3, cell_3="f = 1\ncheck.softmax( f,one_row = True )")[1][-1]
    of_another = ask(live, 3, cell_3="def f(): ...\ncheck.softmax(lambda x: x, one_row=True)")
    assert line in of_another[1][-1]["text"]
    live.kernels.events = [ended]
    assert "text" not in ask(live, 0)[1][-1]
    live.kernels.events = [ended | {"state": "error"}]
    assert "text" not in ask(live, 3)[1][-1]


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("run", {"chapter": "02", "cell": 0}),
        ("run", {"chapter": "01_one", "cell": 7}),
        ("run", {"chapter": "01_one", "cell": -1}),
        ("run", {"chapter": "01_one", "cell": "0"}),
        ("open", {"chapter": "01_one", "cell": 0}),
    ],
)
def test_what_there_is_not_is_refused(live, action, asked):
    with pytest.raises(ValueError, match="There is no such"):
        list(live.answer(action, asked))


def test_stop_and_restart_are_of_the_cell_s_own_kernel(live):
    assert ask(live, 4, "stop")[0] == ("stop", ("01_one", "exercises"))
    assert ask(live, 0, "restart")[0] == ("restart", ("01_one", "chapter"))


CELLS = [
    "import torch\nfrom m import plotting\nx = torch.ones(3)",
    "def f(y):\n    z = y + k\n    return z",
    "k = 2",
    "z = f(1)\nz",
    "w = x + 1\n%timeit w\nw.add_(1)",
    "plotting.show(w)",
    "plotting.show(k)\nx = 3",
    "print(x)",
]


@pytest.mark.parametrize(
    ("place", "text", "resting"),
    [
        (0, "import torch\nfrom m import plotting\nx = torch.zeros(3)", {4, 5}),
        (0, "from m import plotting\nimport numpy as torch\nx = torch.ones(3)", {4, 5}),
        (1, "def f(y):\n    return y", {3}),
        (2, "k = 3", {3, 6}),  # a function reads it when it is called
        (4, "x.add_(2)", {5}),  # which no longer assigns w; x is assigned anew before it is used
        (4, "w = x + 1\n%timeit w\nw.add_(1)\nplotting.show(w, 1)", set()),
        (6, "x += 3", {7}),
        (0, "x = (", {1, 2, 3, 4, 5, 6, 7}),
        (3, "!ls", set()),
    ],
)
def test_results_that_rest_on_a_change_are_found_by_names(place, text, resting):
    found = find_bases(CELLS, {place: text})
    assert {at for at, basis in enumerate(found) if basis} == resting
    assert find_bases(CELLS, {}) == [""] * len(CELLS)


def test_a_second_change_makes_another_basis():
    one, both, other = (
        find_bases(CELLS, texts) for texts in ({2: "k = 3"}, {2: "k = 3", 1: ""}, {2: "k = 5"})
    )
    assert one[3] != other[3] and one[6] == both[6] and one[3] != both[3]


def test_the_page_is_told_them_by_the_cells_numbers_of_a_part(live):
    texts = {"0": "given = 2", "3": "given = 1"}
    for number, places in ((0, range(2)), (6, range(2, 7))):
        asked = {"chapter": "01_one", "cell": number, "texts": texts}
        ((_, told),) = [
            (event.pop("kind"), event["bases"]) for event in live.answer("bases", asked)
        ]
        assert told == dict.fromkeys(places, "")
    assert live.kernels.asked == []


def test_formulas_and_moving_pictures_of_a_cell_are_shown(live, monkeypatch):
    monkeypatch.setattr(site, "figures", {"01_one": []}, raising=False)
    shown = [
        {"text/latex": r"$\frac{a}{b} < 1$", "text/plain": "<Latex>"},
        {"text/markdown": r"so $x^2$, not $\nope{$", "text/plain": "<Markdown>"},
        {"image/gif": "R0lGOD==", "text/plain": "<Image>"},
    ]
    outputs = [nbformat.v4.new_output("display_data", data) for data in shown]
    html = live.as_html(Chapter(), 0, outputs)
    assert html.count("<math") == 2 and r"$\nope{$" in html
    assert '<img src="data:image/gif;base64,R0lGOD=="' in html
    assert not any(data["text/plain"] in html for data in shown)


def test_a_caption_is_of_the_figure_that_the_page_s_own_text_draws(live, monkeypatch):
    figures = pytest.importorskip("figures")
    drawn = figures.Figure("1.1", "f", "What the cell draws.", "A box.", 0)
    monkeypatch.setattr(site, "figures", {"01_one": [drawn]}, raising=False)
    own = [nbformat.v4.new_output("display_data", {"text/html": "<b>bold</b><svg></svg>"})]
    assert "What the cell draws" in live.as_html(Chapter(), 0, own, is_built=True)
    html = live.as_html(Chapter(), 0, own, is_built=False)
    assert "bold" in html and "What the cell draws" not in html


@pytest.mark.slow
def test_a_page_is_exported_as_by_nbconvert_s_own_exporter(live):
    """Which sends it through a parser: the same elements, attributes and texts."""
    bs4 = pytest.importorskip("bs4")
    said = "<p data-a='{\"b\": 1}' title=\"it's &lt; 7\">7 &lt; 11 &amp; “x” isn't</p><br>"
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# 1 · *It's* & \"so\"\n\n$a < b$ and `x > 'y'`"),
            cell("a = \"it's\" < '&amp;'  # <b>"),
        ]
    )
    notebook.cells[1].outputs = [
        nbformat.v4.new_output("stream", text="<7 & \"'\n"),
        nbformat.v4.new_output("display_data", {"text/html": said}),
    ]
    ours, _ = live._exporter.from_notebook_node(notebook)
    parent = super(live_cells.notebook_html.ChapterExporter, live._exporter)
    theirs, _ = parent.from_notebook_node(notebook)
    ours, theirs = (live_cells.notebook_html.finished(html)[0] for html in (ours, theirs))
    parsed = [bs4.BeautifulSoup(html, "html.parser").decode() for html in (ours, theirs)]
    assert parsed[0] == parsed[1]
    assert "isn't" in ours and "&#" not in ours
