"""Every chapter runs as a script from anywhere, and keeps to the form that a reader relies on."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import chapter_source
import execution
import jupytext
import links
import pytest
from chapter_source import number_of
from own_process import environment

from slp_transformer._internal.equations import load_equations

ROOT = Path(__file__).parents[2]


CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.py"))
LABEL = re.compile(r'<span class="eq" id="eq-([^"]+)">\1(?: · [^<]+)?</span>')
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@cache
def read(chapter: Path) -> chapter_source.Chapter:
    return chapter_source.read_chapter(chapter, ROOT)


@cache
def cells(chapter: Path, kind: str) -> list[str]:
    notebook = jupytext.reads(read(chapter).script, fmt="py:percent")  # its exercises left out
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


@cache
def labels(chapter: Path) -> list[str]:
    """The slug of each equation that a chapter labels."""
    return [found for cell in cells(chapter, "markdown") for found in LABEL.findall(cell)]


@pytest.mark.slow
@every_chapter
def test_chapter_runs_and_says_nothing_on_stderr(chapter):
    """The site shows the outputs of this very run."""
    ran = read(chapter)
    outputs = execution.Cache(ROOT / ".cache" / "chapters").run(ran)
    said = [out for cell in outputs for out in cell if out.get("name") == "stderr"]
    assert any(outputs) and not said


@pytest.mark.slow
def test_chapter_runs_as_a_script_from_another_directory(tmp_path):
    """All have run in an empty folder above, and have no magic that Python lacks."""
    result = subprocess.run(
        [sys.executable, str(ROOT / "chapters" / "04_input.py")],
        cwd=tmp_path,
        env={**environment(), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,  # against hanging; what a chapter may take is another matter
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == [], "a chapter leaves nothing behind"


@every_chapter
def test_chapter_begins_with_its_title_and_no_header(chapter):
    text = chapter.read_text(encoding="utf-8")
    number = number_of(chapter.stem)
    first = rf'# %% \[markdown\] tags=\["(path|more)"\]\n# # {number} · '
    assert re.match(first, text), "no header, and the title first"
    assert len(re.findall(r"^# # ", text, flags=re.MULTILINE)) == 1, "one title"
    ast.parse(text)  # a script: no magic, no shell


BOOK = load_equations()
NUMBERED = [slug for slug in BOOK.slugs if BOOK.numbers_of(slug)]


@every_chapter
def test_labels_and_tags_have_the_numbers_of_the_file(chapter):
    found = labels(chapter)
    assert not [slug for slug, count in Counter(found).items() if count > 1], "labeled twice"
    assert set(found) <= set(BOOK.slugs), "unknown equations"
    text = "\n".join(cells(chapter, "markdown"))
    assert text.count('class="eq"') == len(found), "a label holds its slug and its numbers"
    written = chapter.read_text(encoding="utf-8")
    numbered = chapter_source.numbered(written, BOOK)
    assert numbered == written, "run python docs/site_build/number_chapters.py"
    tags = re.findall(r"\\tag\{([^}]*)\}", text)
    own = {" · ".join(n for draft in BOOK.drafts for n in BOOK.numbers_of(s, draft)) for s in found}
    own |= set(BOOK.numbers_of("temperature") if "temperature" in found else [])
    assert set(tags) <= own and len(tags) == len(set(tags)), tags


LINKED = re.compile(r"\[\(([\d., ]+)\)\]\([\w.]*#eq-((?:[^()\s]|\([^()]*\))+)\)")
LINKED_IN_HTML = re.compile(r'<a href="[\w.]*#eq-(?P<slug>[^"]+)">\((?P<numbers>[\d., ]+)\)</a>')
CITED = re.compile(r"\(((?:7|8|9|13)\.\d+(?:, \d+\.\d+)*)\)")


@every_chapter
def test_a_number_in_prose_is_a_link_to_its_equation_and_has_its_number(chapter):
    text = "\n\n".join(cells(chapter, "markdown"))
    text = LINKED_IN_HTML.sub(r"[(\g<numbers>)](#eq-\g<slug>)", text)
    for numbers, slug in LINKED.findall(text):
        assert set(numbers.split(", ")) <= set(BOOK.numbers_of(slug)), (numbers, slug)
    prose = re.sub(r"\$\$.*?\$\$|Figs?\.? [\d., ·()]+", "", LINKED.sub("", text), flags=re.DOTALL)
    assert CITED.findall(prose) == []
    elsewhere = "\n".join([*cells(chapter, "code"), *re.findall(r"(?s)\$\$.*?\$\$", text)])
    elsewhere = re.sub(r"\(\d+\.\d+, [^)]*\)", "", elsewhere)  # a pair of numbers
    known = {number for slug in BOOK.slugs for number in BOOK.numbers_of(slug)}
    assert set(CITED.findall(elsewhere)) <= known


@every_chapter
def test_a_page_has_the_numbers_of_its_equations(chapter):
    text = "\n".join(cell.source for cell in read(chapter).notebook.cells)
    for slug in labels(chapter):
        assert f'<span class="eq" id="eq-{slug}">{slug} · {BOOK.format_place(slug)}</span>' in text


def test_every_equation_is_explained_and_a_numbered_one_in_one_chapter():
    homes = Counter(slug for chapter in CHAPTERS for slug in labels(chapter))
    assert set(homes) == set(BOOK.slugs)
    assert not [slug for slug in NUMBERED if homes[slug] != 1]


EQUATION_TESTS = links.equation_tests(ROOT)


def test_every_numbered_equation_has_a_test_that_is_collected():
    tested = {slug for test in EQUATION_TESTS for slug in test.slugs}
    assert set(NUMBERED) <= tested, sorted(set(NUMBERED) - tested)
    assert tested <= set(BOOK.slugs), sorted(tested - set(BOOK.slugs))
    for test in EQUATION_TESTS:
        assert test.name.startswith("test_") and "assert" in test.source, test.id


MOST_SHOWN = 12  # lines of the package's code in one place; the rest is a link


@every_chapter
def test_a_dozen_lines_of_source_are_shown_at_most(chapter):
    names: dict = {}
    for node in ast.parse("\n".join(cells(chapter, "code"))).body:
        source = ast.unparse(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            exec(source, names)
        elif re.fullmatch(r"\w+ = \[('[^']*'(, )?)+\]", source):  # what is to be shown has a name
            exec(source, names)
        elif source.startswith("plotting.show_source("):
            shown = str(eval(source, names)).splitlines()
            assert sum(bool(line) for line in shown) <= MOST_SHOWN, source
