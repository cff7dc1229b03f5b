"""Exercises: their solutions are right by themselves, and what a reader gets is without them."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import chapter_source
import exercises
import jupytext
import nbformat
import notebook_html
import pytest

ROOT = Path(__file__).parents[2]

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.py"))
SETS = [path for path in map(exercises.path_of, CHAPTERS) if path.is_file()]
FEWEST = {"06b_cache": 2}  # half a chapter
every_set = pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)


def cells(path: Path) -> list:
    return jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent").cells


def trains(source: str) -> bool:
    """Whether a cell trains a model, or prepares what it is trained on."""
    return (
        re.search(r"TransformerConfig|TransformerLM|pairs|Deep|train\(|deep\.", source) is not None
    )


def run(sources: list[str]) -> list:
    """Run cells in one fresh place, and what the last line of each gives, as a notebook would."""
    place: dict = {}
    shown = []
    for source in sources:
        *body, last = ast.parse(source).body
        exec(compile(ast.Module(body, []), "<cell>", "exec"), place)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "<cell>", "eval"), place))
        else:
            exec(compile(ast.Module([last], []), "<cell>", "exec"), place)
    return shown


def code(path: Path, training: bool = True) -> list[str]:
    found = [cell for cell in cells(path) if cell.cell_type == "code"]
    return [c.source for c in found if training or not trains(c.source)]


def test_chapters_have_exercises():
    assert CHAPTERS and len(SETS) == len(CHAPTERS), "each chapter has a set"
    orphans = {p.name for p in (ROOT / "exercises").glob("*.py")} - {p.name for p in CHAPTERS}
    assert not orphans, "exercises without a chapter"


def test_the_books_own_exercises_are_among_them():
    text = "\n".join(path.read_text(encoding="utf-8") for path in SETS)
    named = re.findall(r"\(exercise (7\.\d) in the Aug 2026 draft\)", text)
    assert sorted(named) == ["7.1", "7.2", "7.3", "7.4", "7.5"]


@every_set
def test_each_set_has_several_in_order_each_with_a_check(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# ## Exercises\n")
    numbers = [int(n) for n in re.findall(r"^# ### Exercise (\d+) · ", text, flags=re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= FEWEST.get(path.stem, 4)
    solved = [cell.source for cell in cells(path) if "# solution" in cell.source]
    assert len(solved) == len(numbers)
    for source in solved:
        assert "check." in source.splitlines()[-1]


@every_set
def test_cells_are_short_and_marked(path):
    for cell in cells(path):
        if cell.cell_type != "code":
            continue
        assert len(exercises.unmarked(cell.source).splitlines()) <= 15, cell.source
        assert all(len(line) < 80 for line in cell.source.splitlines()), cell.source
        assert ("# solution" in cell.source) == ("# end" in cell.source)
        assert ("# solution" in cell.source) == exercises.is_exercise(cell)


@every_set
def test_solutions_are_right_by_themselves(path):
    """Without the chapter before them, as in the notebook that a reader gets."""
    sources = code(path, training=False)
    shown = run([s for s in sources if "forgetful" not in s or "torch" in s])
    verdicts = [v for v in shown if v is not None]
    wrong = [str(v) for v in verdicts if not v]
    assert len(wrong) == sum("forgetful" in source for source in sources), wrong
    assert len(verdicts) >= FEWEST.get(path.stem, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [p for p in SETS if "check.at_most" in p.read_text("utf-8")], ids=lambda p: p.stem
)
def test_the_number_to_beat_is_beaten_by_the_solution_and_not_by_what_is_given(path):
    sources = code(path)
    asked = [source for source in sources if "check." in source]
    # Counted from the end: cells above may ask for something else.
    to_beat = [place - len(asked) for place, s in enumerate(asked) if "check.at_most" in s]
    assert all(run(sources)[place] for place in to_beat)
    given = run([exercises.cut(source) for source in sources])
    assert not any(given[place] for place in to_beat)


@every_set
def test_what_a_reader_gets_has_no_solution_and_says_so_kindly(path):
    text = path.read_text(encoding="utf-8")
    made = exercises.notebook(text, "1 · Attention")
    nbformat.validate(made)
    assert made.cells[0].source.startswith("# Exercises: 1 · Attention\n")
    blanks = [cell.source for cell in made.cells if cell.cell_type == "code"]
    for solved, blank in zip(code(path), blanks, strict=True):
        assert "# solution" not in blank and "# end" not in blank
        if "# solution" in solved:
            taken = re.search(r"# solution\n(.*?)\n *# end", solved, flags=re.DOTALL)[1]
            assert taken not in blank and "...  # your lines here" in blank
    shown = [v for v in run([b for b in blanks if not trains(b)]) if v is not None]
    assert shown and not any(shown), "nothing passes before anything is written"
    for verdict in shown:
        assert "Traceback" not in str(verdict)


def test_an_exercise_notebook_installs_the_package_where_its_repository_is_known():
    text, repository = SETS[0].read_text(encoding="utf-8"), "https://example.org/some/project"
    first, install, *_ = exercises.notebook(text, "1", repository=repository).cells
    wanted = f'%pip install -q "slp-transformer[docs] @ git+{repository}"'
    assert first.cell_type == "markdown" and install.source == wanted
    for cell in exercises.notebook(text, "1").cells:
        assert "%pip" not in cell.source and "git+" not in cell.source
    chapter = notebook_html.to_take_away(nbformat.v4.new_notebook(), repository, "", {})
    assert chapter.cells[0].source == wanted


def test_a_notebook_on_its_own_leads_to_the_site():
    links = "[a](02_two.py#x) [b](../docs/reuse.md#y) [c](../benchmarks/results/speed/README.md)"
    cells = [nbformat.v4.new_markdown_cell(links)]
    own = nbformat.v4.new_notebook(cells=cells)
    taken = notebook_html.to_take_away(own, "", "https://x.org/", {}).cells[1].source
    assert re.findall(r"org/([^)]*)", taken) == [
        "chapters/02_two/#x",
        "reuse/#y",
        "measurements/speed/",
    ]


def test_a_page_says_where_its_exercises_are_solved(monkeypatch):
    pages = pytest.importorskip("pages")
    chapter = SimpleNamespace(path=Path("01_one.py"), exercises="some")
    body = '<h2 id="exercises">Exercises</h2><p>First</p><h2 id="try-it">Try it</h2>'

    def shown(**how):
        for name, value in {"repository": "", "serving": False, **how}.items():
            monkeypatch.setattr(pages.site, name, value)
        made = pages.with_ways_to_solve(body, chapter)
        assert made.index("Exercises</h2>") < made.index("Solve them") < made.index("First")
        return made

    assert 'href="01_one_exercises.ipynb"' in shown() and "colab" not in shown()
    assert "mkdocs serve" in shown() and "git+" not in shown()
    published = shown(repository="https://github.com/some/project")
    place = "github/some/project/blob/gh-pages/chapters/01_one/01_one_exercises.ipynb"
    assert f'href="https://colab.research.google.com/{place}"' in published
    served = shown(serving=True)
    assert "Run" in served and "mkdocs serve" not in served
    chapter.exercises = ""
    assert pages.with_ways_to_solve(body, chapter) == body


def test_solution_is_shown_without_its_marks():
    source = "def f(x):\n    # solution\n    return x\n    # end\n\n\nf(1)"
    assert exercises.unmarked(source) == "def f(x):\n    return x\n\n\nf(1)"
    assert exercises.cut(source) == "def f(x):\n    ...  # your lines here\n\n\nf(1)"


def test_notebooks_are_written_by_one_command(tmp_path):
    written = exercises.write_all(ROOT, tmp_path)
    assert [path.name for path in written] == [f"{p.stem}_exercises.ipynb" for p in SETS]
    for path in written:
        nbformat.validate(nbformat.read(path, as_version=4))
    for cell in nbformat.read(written[0], as_version=4).cells:
        if "(`simple-softmax`)" in cell.source:
            assert "*simple-softmax* (8.8 · 7.8)" in cell.source
            assert cell.source.count("$$") == 2 and "tag" not in cell.source
            return
    raise AssertionError("no exercise shows its equation")


# --- A site without answers ---------------------------------------------------------------------


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_answers_are_left_out_where_they_are_not_wanted(path, monkeypatch):
    chapter = chapter_source.read_chapter(path, ROOT)
    outputs = [[{"output_type": "stream", "name": "stdout", "text": "Right."}]] * len(
        chapter.code_cells
    )

    def made(wish: str) -> tuple[str, str, str]:
        monkeypatch.setenv("SLP_ANSWERS", wish)
        page = notebook_html.filled(chapter.notebook, outputs)
        handed = exercises.notebook(chapter.exercises, "Title")
        return nbformat.writes(page), exercises.handed_out(chapter.script), nbformat.writes(handed)

    solutions = exercises.SOLUTION.findall(chapter.exercises)
    for with_answers, without in zip(made("on"), made("off"), strict=True):
        folds = with_answers.count("<summary>") - with_answers.count("<summary>The proof")
        left = without.count("<summary>") - without.count("<summary>The proof")
        assert left == 0 and len(with_answers) - len(without) >= 100 * folds
        assert without.count("</details>") == without.count("<details>")
    whole, short = (made(wish)[1] for wish in ("on", "off"))
    questions = r"(?m)^# (?:#+|\d+\.) .*"
    assert re.findall(questions, short) == re.findall(questions, whole)
    assert {*short.splitlines()} <= {*whole.splitlines()}
    page = made("off")[0]
    for before, cell in zip(chapter.notebook.cells, nbformat.reads(page, 4).cells, strict=True):
        if exercises.is_exercise(before):
            assert cell.source == exercises.cut(before.source) != before.source
            assert not cell.outputs and not exercises.is_exercise(cell)
    assert len(solutions) == page.count("# your lines here")


def test_another_wish_is_refused(monkeypatch):
    monkeypatch.setenv("SLP_ANSWERS", "no")
    with pytest.raises(ValueError, match="SLP_ANSWERS is on or off, not 'no'."):
        exercises.hides_answers()
