"""What readers rely on: each chapter ends alike, and the other pages are true."""

import ast
import re
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import chapter_source
import pages
import pytest
from test_chapters import CHAPTERS, cells, every_chapter

import slp_transformer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDED = re.compile(r"<details><summary>([^<]+)</summary>\n\n(.+?)\n\n *</details>", re.DOTALL)
ENDING = ["Try it", "To remember", "Test yourself"]


def parts(chapter: Path) -> dict[str, str]:
    """The text below each heading of the second level."""
    text = "\n\n".join(cells(chapter, "markdown"))
    pieces = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def points(text: str, mark: str) -> list[str]:
    return re.split(rf"^{mark} ", text, flags=re.MULTILINE)[1:]


@every_chapter
def test_chapter_ends_with_what_to_try_to_remember_and_to_ask_oneself(chapter):
    titles = [title for title in parts(chapter) if title != "Exercises"]
    if chapter == CHAPTERS[-1]:  # which leads out of the book
        assert titles.pop() == "What to read next"
    assert titles[-3:] == ENDING


@every_chapter
def test_questions_stand_open_and_their_outcomes_are_folded(chapter):
    for title, label in (("Try it", "What happens"), ("Test yourself", "Answer")):
        questions = points(parts(chapter)[title], r"\d\.")
        assert len(questions) == 3 if title == "Test yourself" else len(questions) >= 3
        for question in questions:
            ((summary, answer),) = FOLDED.findall(question)
            assert summary == label and len(answer.split()) >= 3, question
            asked = question[: question.index("<details>")]
            assert "?" in asked, f"this gives no question to think about: {asked}"


@every_chapter
def test_what_to_remember_are_five_points(chapter):
    remembered = points(parts(chapter)["To remember"], "-")
    assert len(remembered) == 5
    assert all(len(point.split()) <= 45 for point in remembered)


@every_chapter
def test_chapter_says_how_long_it_takes(chapter):
    opening = cells(chapter, "markdown")[0]
    assert re.search(r"\d+ minutes|two hours|\(about \d+ minutes\)", opening), opening


@every_chapter
def test_cells_are_not_clever(chapter):
    for node in ast.walk(ast.parse("\n".join(cells(chapter, "code")))):
        where = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
        assert not isinstance(node, ast.NamedExpr), f"an assignment inside an expression: {where}"
        if isinstance(node, ast.Subscript):
            inside = ast.walk(node.slice)
            assert not any(isinstance(part, ast.Starred) for part in inside), where
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            sliced = [t for t in node.targets if isinstance(t, ast.Subscript)]
            assert not any(isinstance(t.slice, ast.Slice) for t in sliced), where


def test_ten_minutes_of_pytorch_run():
    text = (DOCS / "pytorch.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 8 and sum("assert" in block for block in blocks) >= 8
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/pytorch.md", "exec"), names)


@pytest.mark.parametrize("anchor", ["the-product", "axes-dim", "broadcasting", "gradients"])
def test_pytorch_is_explained_where_the_first_chapter_uses_it(anchor):
    assert f"../docs/pytorch.md#{anchor})" in "\n".join(cells(CHAPTERS[0], "markdown"))


def notation() -> list[list[str]]:
    """The cells of every row of the tables of letters."""
    text = (DOCS / "notation.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| $")]
    return [[cell.strip() for cell in row] for row in rows]


def test_letters_are_introduced_in_the_chapter_that_is_named():
    assert len(notation()) >= 40
    for letter, *_, chapter in notation():
        (stem,) = re.findall(r"\.\./chapters/(\w+)/", chapter)
        text = (ROOT / "chapters" / f"{stem}.py").read_text(encoding="utf-8")
        for symbol in re.findall(r"\\mathbf [A-Zxkquvyh](?:\^[QKVO])?|\\[a-z]+", letter):
            if symbol in ("\\lvert", "\\rvert", "\\dots", "\\mathbf"):
                continue
            plain = symbol.replace("\\mathbf ", "")
            greek = {"\\alpha": "α", "\\tau": "τ", "\\theta": "θ", "\\varepsilon": "ε"}
            greek |= {"\\lambda": "λ", "\\eta": "η"}
            assert symbol in text or plain in text or greek.get(symbol, "?") in text, (symbol, stem)


def test_names_in_the_notation_are_those_of_the_package():
    config = slp_transformer.TransformerConfig(5, 7, 6, num_heads=3, num_blocks=2)
    model = slp_transformer.TransformerLM(config)
    named = " ".join(row[-2] for row in notation())
    for setting in ("context_length", "model_dim", "num_heads", "num_blocks", "vocab_size"):
        assert f"`{setting}`" in named and hasattr(config, setting)
    for setting in ("key_dim", "value_dim", "hidden_dim", "eps"):
        assert f"`{setting}`" in named and hasattr(config, setting)
    for path in re.findall(r"`(embedding\.[\w.]+)`", named):
        assert reduce(getattr, path.split("."), model) is not None
    for letter in ("W_Q", "W_K", "W_V", "W_O"):
        assert f"`{letter}`" in named and hasattr(model.stack.blocks[0].attention, letter)


def test_pages_for_teachers_and_contributors_name_what_there_is():
    for page in ("teachers.md", "contributing.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        for stem in re.findall(r"\.\./chapters/(\w+)/", text):
            assert (ROOT / "chapters" / f"{stem}.py").is_file(), stem
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            ast.parse(block)
            for name in re.findall(r"check\.(\w+)", block):
                assert callable(getattr(__import__("slp_transformer.check").check, name)), name


def test_recorded_runs_have_a_page_each_and_their_names_lead_there(tmp_path, monkeypatch):
    results = tmp_path / "benchmarks/results"
    (results / "speed").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/one.md").write_text("See `benchmarks/results/speed`.\n", "utf-8")
    (tmp_path / "chapters").mkdir()
    said = "# It [grows](../benchmarks/results/growth/README.md).\n"
    (tmp_path / "chapters/01_one.py").write_text(said, "utf-8")
    index = "# All\n\n| `speed` | how fast |\n| `growth` | G |\n| `size` | no page has it |\n"
    (results / "README.md").write_text(index, "utf-8")
    (results / "speed/README.md").write_text("# Fast\n\n```\n# run\n```\n### Again\n", "utf-8")
    monkeypatch.setattr(pages.site, "root", tmp_path, raising=False)
    head = "| folder | what | |---|---| | [`speed`](measurements/speed.md) | how fast |"
    head += " | [`growth`](measurements/growth.md) | G |"
    assert " ".join(pages.measurements().split()) == head
    made = pages.measurement_page("speed")
    assert "exclude: true" in made and "\n# Fast\n" in made and "# run\n```\n## Again" in made
    assert "[recorded runs](../measurements.md): `benchmarks/results/speed`" in made
    here = SimpleNamespace(url="chapters/one/")
    body = "<code>benchmarks/results/speed</code> <code>benchmarks/results/gone</code>"
    linked = pages.with_measurements(body, here)
    assert linked.count("<a ") == 1
    assert linked.startswith('<a href="../../measurements/speed/"><code>')
    assert "<a " not in pages.with_measurements(body, SimpleNamespace(url="measurements/speed/"))


def test_a_fold_whose_equations_one_draft_alone_has_is_marked_as_that_drafts():
    book = chapter_source.Equations(
        '[drafts]\nold = "O"\nnew = "N"\n[chapters]\nold = { number = "8" }\n'
        'new = { number = "7" }\n'
        '[equations]\nboth = { old = "8.2", new = "7.2" }\nown = { new = "7.3" }\n'
        'far = { new = "13.4" }\n'
    )

    def marked(*slugs):
        labels = "".join(f'<span class="eq" id="eq-{slug}">' for slug in slugs)
        fold = f'<details class="slp-more"><p>{labels}</p></details><!-- /more -->'
        return pages.with_drafts(fold, book).partition(">")[0]

    assert marked("own") == '<details class="slp-more" data-draft="new"'
    others = marked(), marked("both"), marked("own", "both"), marked("far")
    assert set(others) == {'<details class="slp-more"'}
