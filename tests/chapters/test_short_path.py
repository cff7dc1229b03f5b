"""The short path: what belongs to it, how long it takes, and that it runs alone."""

import ast
import builtins
import re
import subprocess
import sys
from pathlib import Path

import chapter_source
import jupytext
import nbformat
import pytest
import short_path
from own_process import environment

ROOT = Path(__file__).parents[2]
CHAPTERS = {path.stem: path for path in sorted((ROOT / "chapters").glob("[0-9]*.py"))}
ON_PATH = {
    *("01_attention", "02_block", "03_one_matrix", "04_input", "05_language_model"),
    *("06_decoding", "07_training", "12_guitar_tab"),
}


def read(stem):
    return chapter_source.read_chapter(CHAPTERS[stem], ROOT)


SCRIPT = """\
# %% [markdown] tags=["path"]
# # 1 · One
#
# five words are in here

# %% [markdown] tags=["more"] gist="cats"
# ## Cats

# %%
cats = 1

# %% [markdown]
# ### Small cats

# %%
kittens = 2

# %% [markdown]
# ## Dogs

# %% [markdown] tags=["more"] gist="puppies"
# no heading

# %% [markdown] tags=["more"] gist="old dogs"
# none either

# %% [markdown] tags=["path"]
# goes on

# %%
dogs = 3
"""


def marks(text):
    return short_path.marks_of(jupytext.reads(text, fmt="py:percent").cells)


def test_what_is_left_out_ends_at_a_heading_of_its_level_or_a_cell_of_the_path():
    found = marks(SCRIPT)
    assert [mark.on_path for mark in found] == [True, *[False] * 4, True, False, False, True, True]
    gists = {place: mark.gist for place, mark in enumerate(found) if mark.gist}
    assert gists == {1: "cats", 6: "puppies", 7: "old dogs"}
    assert [place for place, mark in enumerate(found) if mark.ends] == [5, 7, 8]


def test_of_a_chapter_off_the_path_nothing_is_on_it():
    assert not any(mark.on_path or mark.gist for mark in marks(SCRIPT.replace("path", "more", 1)))


def test_a_fold_says_what_one_gets():
    with pytest.raises(ValueError, match="gist.*Cats"):
        marks(SCRIPT.replace(' gist="cats"', ""))


def test_minutes_count_words_and_lines_of_code_but_no_formulas():
    text = "a b <b>c</b>\n$$\nx + y\n$$\n" + '<span class="eq" id="eq-x">x · 8.1</span>'
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("a = 1\n\nb = 2")]
    assert short_path.minutes_of(cells) == pytest.approx(3 / 100 + 2 / 6)


def test_the_path_takes_an_afternoon():
    times = {stem: short_path.times_of(read(stem)) for stem in CHAPTERS}
    assert {stem for stem, time in times.items() if time.short} == ON_PATH
    assert sum(time.short for time in times.values()) <= 250


@pytest.mark.parametrize("stem", CHAPTERS)
def test_every_section_is_on_the_path_or_not_and_a_fold_begins_and_ends_with_cells(stem):
    cells = short_path.cells_of(read(stem))
    assert cells[0].metadata["tags"] in ([short_path.PATH], [short_path.MORE])
    for cell, mark in zip(cells, short_path.marks_of(cells), strict=True):
        assert len(cell.metadata.get("gist", "")) <= 110
        if not mark.on_path and stem in ON_PATH and cell.cell_type == "markdown":
            assert not re.search(r"(?<!^)^##? ", cell.source, re.MULTILINE), "a section within"


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_chapter_says_what_the_rule_counts(stem):
    cells = short_path.cells_of(read(stem))
    said = re.search(r"(\d+)\s+minutes\b", cells[0].source.rpartition("About")[2])
    assert int(said[1]) == short_path.rounded(short_path.minutes_of(cells))


@pytest.mark.parametrize("stem", sorted(ON_PATH))
def test_marks_survive_jupyter(stem):
    cells = short_path.cells_of(read(stem))
    notebook = jupytext.reads(read(stem).script, fmt="py:percent")
    there = nbformat.reads(nbformat.writes(notebook), as_version=4)
    back = jupytext.reads(jupytext.writes(there, fmt="py:percent"), fmt="py:percent").cells
    assert short_path.marks_of(back) == short_path.marks_of(cells)


@pytest.mark.parametrize("stem", sorted(ON_PATH))
def test_the_path_uses_no_name_that_a_folded_cell_makes(stem):
    """Told from the code, since the models of chapters 7 and 12 take a minute each to train."""
    code = [cell.source for cell in short_path.path_cells(read(stem)) if cell.cell_type == "code"]
    nodes = [node for cell in code for node in ast.walk(ast.parse(cell))]
    made, used = set(dir(builtins)), set()
    for node in nodes:
        match node:
            case ast.Name(name, ast.Load()):
                used.add(name)
            case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name) | ast.ClassDef(name):
                made.add(name)
            case ast.alias(name, asname):
                made.add(asname or name.partition(".")[0])
    assert used - made == set()


# Training is cut short: that it learns is asserted where the whole chapter runs, and not here (-OO,
# for which other tests need PyTorch's bytecode, too).
# PyTorch is imported once for all chapters, each of which then runs with no name of another.
BRIEFLY = """\
import runpy, sys
from slp_transformer import training

whole = training.train


def train(*data, **how):
    return whole(*data, **(how | {"steps": 2} if "steps" in how else how))


training.train = train
for chapter in sys.argv[1:]:
    print(chapter, file=sys.stderr)
    runpy.run_path(chapter, run_name="__main__")
"""


@pytest.mark.slow
def test_the_path_runs_alone(tmp_path):
    for stem in ON_PATH:
        code = [c.source for c in short_path.path_cells(read(stem)) if c.cell_type == "code"]
        (tmp_path / f"{stem}.py").write_text("\n\n".join(code), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-OO", "-c", BRIEFLY, *sorted(map(str, tmp_path.iterdir()))],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,  # against hanging
    )
    assert ran.returncode == 0, ran.stderr
