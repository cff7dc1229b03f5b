"""The site's hook: what makes a chapter run again, and the message when one fails."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import chapter_source
import execution
import figures
import links
import nbformat
import notebook_html
import postprocess
import pytest
import reference

ROOT = Path(__file__).parents[2]


CHAPTER = """\
# %% [markdown]
# # 7 · A small chapter (8.1)
#
# Sections 8.1 and 7.1
#
# What `f` does, and *why*. More of it.
#
# <span class="eq" id="eq-one">one</span>
# $$x_1$$

# %%
from slp_transformer.middle import f

f(1)

# %% alt="A box."
from slp_transformer import plotting

plotting.box()
"""

PACKAGE = {
    "__init__": "from slp_transformer.low import g\nfrom slp_transformer.aside import h\n",
    "low": 'def g(x):\n    """Adds.\n\n    Source: `one` to `three`.\n    """\n    return x + 1\n',
    "middle": "from .low import g\n\n\ndef f(x):\n    return g(x)\n",
    "aside": "def h(x):\n    return x\n",
    "plotting": "class Box:\n    def _repr_html_(self):\n        return '<svg></svg>'\n\n\n"
    "def box():\n    return Box()\n",
}


EQUATIONS = """\
[drafts]
2026-01 = "Jan 2026 draft"
2026-08 = "Aug 2026 draft"
[equations]
one = { title = "One", 2026-01 = "8.6", 2026-08 = "7.6" }
two = { title = "Two", 2026-01 = "8.7", 2026-08 = "7.7" }
three = { title = "Three", 2026-01 = "8.8", 2026-08 = "7.8" }
four = { title = "Four", 2026-01 = "8.9", 2026-08 = "7.9" }
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "slp_transformer").mkdir()
    (tmp_path / "chapters").mkdir()
    (tmp_path / "slp_transformer" / "equations.toml").write_text(EQUATIONS, encoding="utf-8")
    for name, text in PACKAGE.items():
        (tmp_path / "slp_transformer" / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def chapter(project, text=CHAPTER, name="07_small"):
    path = project / "chapters" / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return chapter_source.read_chapter(path, project)


def key(project, text=CHAPTER):
    return chapter_source.key_of(chapter(project, text), {"slp_transformer/low.py": ["f"]})


@pytest.mark.parametrize(
    ("old", "new"),
    [("More of it.", "Less of it."), ("# # 7 ·", "# # 8 ·"), ("A box.", "A square box."),
     ("# $$x_1$$", "# $$x_2$$\n#\n# And so on."), ("f(1)", "f(2)")],
)  # fmt: skip
def test_code_runs_again_and_prose_and_alt_texts_do_not(project, old, new):
    assert (key(project, CHAPTER.replace(old, new)) == key(project)) == (old != "f(1)")


RECORDED = """\
from slp_transformer import aside


def called():
    return aside.h(0)


def idle():
    return 1


class Box:
    size = 2

    @property
    def full(self):
        def inner():
            return 3

        return inner()

    def other(self):
        return 4
"""


def test_what_ran_or_is_shown_runs_a_chapter_again_and_nothing_else(project):
    path = project / "slp_transformer" / "recorded.py"
    path.write_text(RECORDED, encoding="utf-8")
    cell = "from slp_transformer.recorded import Box, called\n\n(called(), Box().full)\n"
    shown = "print('<autoref identifier=\"slp_transformer.low.g\">')\n"
    small, cache = (
        chapter(project, f"# %%\n{cell}\n# %%\n{shown}"),
        execution.Cache(project / "kept"),
    )
    outputs = cache.run(small)
    assert outputs[0][0]["data"]["text/plain"] == "(0, 3)" and len(outputs) == 2
    edits = [
        *(("recorded", "aside.h(0)", "1", True), ("recorded", "return 1", "return 0", False)),
        *(("recorded", "size = 2", "size = 3", True), ("recorded", "return 3", "return 0", True)),
        *(("recorded", "return 4", "return 0", False), ("recorded", "idle()", "idle(a)", True)),
        *(("aside", "return x", "return 7", True), ("low", "x + 1", "x + 2", True)),
        *(("middle", "f(x)", "f(y)", False), ("plotting", "", "pass\n", False)),
    ]
    for module, old, new, again in edits:
        path = project / "slp_transformer" / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert (cache.load(small) is None) == again, (module, old)
        path.write_text(text, encoding="utf-8")
        assert cache.load(small) == outputs


def test_where_no_letter_has_changed_nothing_is_parsed(project, monkeypatch):
    cell = "from slp_transformer.recorded import idle\n\nidle()\n"
    (project / "slp_transformer" / "recorded.py").write_text(RECORDED, encoding="utf-8")
    small, cache = chapter(project, f"# %%\n{cell}"), execution.Cache(project / "kept")
    cache.store(small, [[]], {"slp_transformer/recorded.py": ["idle"]})
    path = project / "slp_transformer" / "recorded.py"
    path.write_text(RECORDED + "# a remark\n", encoding="utf-8")
    assert execution.Cache(project / "kept").load(small) == [[]]  # which it now knows to the letter
    monkeypatch.delattr(execution, "key_of")
    assert execution.Cache(project / "kept").load(small) == [[]]


def test_data_next_to_an_imported_module_runs_its_importers_again(project):
    data, inner = project / "slp_transformer" / "words.txt", project / "slp_transformer" / "inner"
    data.write_text("one", encoding="utf-8")
    before = key(project)
    inner.mkdir()
    (inner / "words.txt").write_text("not imported", encoding="utf-8")
    (data.parent / ".words.txt.swp").write_text("an editor's", encoding="utf-8")
    assert key(project) == before
    data.write_text("two", encoding="utf-8")
    assert key(project) != before


@pytest.mark.parametrize(
    ("code", "again"),
    [
        ('open(root / "benchmarks" / "results" / "ladder" / "losses.csv")', True),
        ('folder = "results"', True),
        ('open(f"{root}/results/{name}/losses.csv")', True),
        ("f(1)  # and what results", True),  # a run too many does no harm
        ("f(1)", False),
        ("my_results = f(1)", False),
    ],
)
def test_recorded_runs_run_the_chapters_again_whose_code_names_them(project, code, again):
    text = CHAPTER.replace("f(1)", code).replace("More of it.", "From `benchmarks/results/ladder`.")
    keys = [key(project, text)]
    recorded = project / "benchmarks" / "results" / "ladder" / "losses.csv"
    recorded.parent.mkdir(parents=True)
    recorded.with_name("README.md").write_text("Prose, which no code reads.", encoding="utf-8")
    for change in ("1.5", "1.4"):
        recorded.write_text(change, encoding="utf-8")
        keys.append(key(project, text))
    recorded.rename(recorded.with_name("renamed.csv"))
    keys.append(key(project, text))
    recorded.with_name("renamed.csv").unlink()
    keys.append(key(project, text))
    assert len(set(keys)) == (4 if again else 1)
    assert keys[-1] == keys[0]


def test_another_version_of_the_libraries_runs_again(project, monkeypatch):
    before = key(project)
    monkeypatch.setattr(chapter_source, "version", lambda library: "0")
    assert key(project) != before


def test_a_cell_s_place_is_its_number_and_line(project):
    text = CHAPTER + "\n# %%\nf(1)\n"
    small = chapter(project, text)
    assert [small.place(index) for index in range(3)] == [(2, 12), (3, 17), (4, 22)]
    assert text.splitlines()[21] == "f(1)"


BROKEN = "# %% [markdown]\n# # Bad\n\n# %%\nstart = 1\n\n# %%\n"  # the last cell begins at line 8


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        pytest.param(
            "x = 1\n\ny = x / 0\n",
            "line 10 (cell 3): ZeroDivisionError: division by zero",
            marks=pytest.mark.slow,
        ),
        ("def inner():\n    raise KeyError('k')\n\n\ninner()\n", "line 12 (cell 3): KeyError: 'k'"),
        pytest.param("x = 1\ny = = 2\n", "line 9 (cell 3): SyntaxError", marks=pytest.mark.slow),
    ],
)
def test_a_chapter_that_raises_names_file_line_and_cell(project, cell, message):
    with pytest.raises(execution.ChapterError) as raised:
        execution.run_chapter(chapter(project, BROKEN + cell))
    assert str(raised.value).startswith(f"chapters/07_small.py, {message}")
    assert len(raised.value.outputs) == 2


def test_all_chapters_are_tried_and_the_good_ones_kept(project):
    good, bad = chapter(project), chapter(project, BROKEN + "1 / 0\n", "08_bad")
    cache, message = execution.Cache(project / ".cache"), []
    failures = execution.run_all([bad, good], cache, message.append)
    assert [str(failure)[:32] for failure in failures] == ["chapters/08_bad.py, line 8 (cell"]
    outputs = cache.load(good)
    assert outputs[0][0]["data"]["text/plain"] == "2"
    assert cache.load(bad) is None
    assert "Running chapters/07_small.py" in message and "Failed chapters/08_bad.py" in message


def test_a_chapter_on_the_guitar_depends_on_its_package(project):
    """What it imports, what ran, when a file was written: all of `slp_guitar`, too."""
    module = project / "slp_guitar" / "tab.py"
    module.parent.mkdir()
    (module.parent / "__init__.py").write_text("from slp_guitar.tab import f\n", encoding="utf-8")
    module.write_text('def f():\n    """It."""\n    return 7\n', encoding="utf-8")
    assert module in links.modules(project)
    cell = "from slp_guitar import f\n\nf()"
    played = chapter(project, f"# %% [markdown]\n# # 12 · Tab\n\n# %%\n{cell}\n", "12_tab")
    assert chapter_source.objects_named(played) == ["slp_guitar.tab.f"]
    assert "slp_guitar/tab.py" in execution._times(played)
    cache = execution.Cache(project / "kept")
    outputs = cache.run(played)
    assert outputs[0][0]["data"]["text/plain"] == "7" and cache.load(played) == outputs
    module.write_text(module.read_text("utf-8").replace("7", "8"), encoding="utf-8")
    assert cache.load(played) is None


@pytest.mark.parametrize("edited", [False, True])
def test_an_edit_while_a_chapter_runs_is_seen_by_any_clock(project, monkeypatch, edited):
    small, module = chapter(project), project / "slp_transformer" / "low.py"
    os.utime(module, (2**32, 2**32))

    def run(_):
        if edited:
            os.utime(module, (1, 1))
        return [[]], {"slp_transformer/low.py": ["low"]}

    monkeypatch.setattr(execution, "run_chapter", run)
    cache = execution.Cache(project / ".cache")
    assert cache.run(small) == [[]]
    assert cache.load(small) == (None if edited else [[]])


def test_in_the_background_a_failure_is_kept_and_not_tried_again(project, monkeypatch):
    tried, done = [], threading.Semaphore(0)

    def run(small):
        tried.append(small.name)
        if "bad" in small.name:
            raise execution.ChapterError(f"{small.name}, line 1")
        return [[], []], {}

    monkeypatch.setattr(execution, "run_chapter", run)
    good, bad = chapter(project), chapter(project, CHAPTER, "08_bad")
    cache = execution.Cache(project / ".cache")
    background = execution.Background(cache, lambda _: None, lambda *_: done.release())
    for finished in (2, 1):  # the second time the good one alone, from the cache
        background.want(good, "g")
        background.want(bad, "b")
        assert all(done.acquire(timeout=300) for _ in range(finished))
        background.forget(good)
        background.forget(bad)
    assert str(background.failures["b"]) == "chapters/08_bad.py, line 1"
    assert cache.load(good) == [[], []]
    assert sorted(tried) == ["chapters/07_small.py", "chapters/08_bad.py"]


def test_chapters_that_are_read_run_first_and_no_other_meanwhile(project, monkeypatch):
    begun, read, ended = [], [None], threading.Semaphore(0)
    go = {name: threading.Event() for name in ("01", "02", "03", "04", "05", "06")}

    def run(small):
        begun.append(small.path.stem)
        assert go[small.path.stem].wait(60)
        return [[], []], {}

    monkeypatch.setattr(execution, "run_chapter", run)
    cache = execution.Cache(project / ".cache")
    background = execution.Background(
        cache, lambda _: None, lambda *_: ended.release(), lambda: read[0]
    )

    def begun_are(*names):
        end = time.monotonic() + 30
        while sorted(begun) != sorted(names) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)
        assert sorted(begun) == sorted(names)

    for name in go:
        background.want(chapter(project, CHAPTER, name), name)
    begun_are()
    read[0] = []
    background.begin()
    begun_are("01", "02")
    read[0] = ["05"]
    background.begin()
    begun_are("01", "02", "05")
    read[0] = ["04", "05"]  # in another tab
    background.begin()

    def end_is_followed_by(name, *begun):
        go[name].set()
        assert ended.acquire(timeout=30)
        begun_are(*begun)

    end_is_followed_by("01", "01", "02", "04", "05")
    end_is_followed_by("02", "01", "02", "04", "05")  # two are read
    end_is_followed_by("04", "01", "02", "04", "05")  # one is
    end_is_followed_by("05", "01", "02", "03", "04", "05", "06")
    end_is_followed_by("03", *go)
    end_is_followed_by("06", *go)


PICTURE = {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<p><svg></svg>"}}
PNG = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA"}}
TEXT = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "<svg>"}}


def test_a_figure_without_alt_text_is_named(project):
    without = chapter(project, CHAPTER.replace(' alt="A box."', ""))
    for shown in (PICTURE, PNG):
        (sentence,) = execution.missing_alts(without, [[], [shown]])
        assert sentence.startswith("chapters/07_small.py, line 17 (cell 3): shows a figure")
        assert execution.missing_alts(chapter(project), [[], [shown]]) == []
    assert execution.missing_alts(without, [[], [TEXT]]) == []


def test_the_alt_text_is_put_on_the_figure(project):
    quoted = chapter(project, CHAPTER.replace("A box.", "A <box> & more."))
    notebook = notebook_html.filled(quoted.notebook, [[], [PICTURE]], figures=figures.of(quoted))
    html = notebook.cells[2].outputs[0].data["text/html"]
    assert '<p><svg role="img" aria-label="A &lt;box&gt; &amp; more."></svg>' in html
    assert html.startswith('<figure class="slp-fig" id="fig-7-1">') and "Figure 7.1</a>. A" in html
    nbformat.validate(notebook)
    assert "outputs" not in quoted.notebook.cells[2] or not quoted.notebook.cells[2].outputs


def test_headings_get_ids_of_their_own_and_tables_a_box():
    html, headings = notebook_html.finished(
        "<style>x</style><h1>One</h1><h2>Two <code>f</code></h2><h2>Two f</h2><table></table>"
    )
    found = [(each["level"], each["id"], each["name"]) for each in headings]
    assert found == [(1, "one", "One"), (2, "two-f", "Two f"), (2, "two-f_1", "Two f")]
    assert "<style" not in html and '<div class="slp-wide" tabindex="0"><table>' in html


def test_source_on_the_landing_page_is_the_package_s(project):
    assert links.source_of("slp_transformer.low.g", project) == "def g(x):\n    return x + 1"
    with pytest.raises(KeyError):
        links.source_of("slp_transformer.low.missing", project)


def test_what_is_imported_is_named_where_it_is_defined(project):
    code = "import slp_transformer.plotting\nfrom slp_transformer import g\n"
    small = chapter(project, f"# %%\n{code}")
    assert chapter_source.objects_named(small) == ["slp_transformer.low.g"]
    assert chapter_source.modules_named(small) == [
        "slp_transformer.low",
        "slp_transformer.plotting",
    ]


@pytest.mark.parametrize(
    "written", ["$x_i$", "$$x_i$$", r"\(x_i\)", r"\[x_i\]", "$$\nx_i\n$$", "($x_i$)"]
)
def test_a_formula_is_drawn_with_what_a_screen_reader_says(written):
    html = postprocess.drawn(f"<p>Let {written} be</p>")
    assert postprocess.has_formulas(html)
    assert "<msub><mi>x</mi><mi>i</mi></msub>" in html and 'class="katex-html" aria-hidden' in html
    assert ('display="block"' in html) == (written[1] in "$[" and written[0] != "(")
    text = re.sub(r"[()]|</?span[^>]*>", "", postprocess.as_text(html))
    assert " ".join(text.split()) == "<p>Let xi be</p>"


@pytest.mark.parametrize(
    ("html", "held"),
    [
        ("<p>Let $x_i$, or <a href='#x'>$y_j$</a>).", ["x", "y"]),
        ("<p><code>train --no-tied</code> and <pre>a --lr 1</pre>", ["no-tied", "lr"]),
        ("<p>Let $x_i$ be $$y_j$$.", []),
        ("<p>$a=b=c=d=e$.", []),  # on a phone it has to break
        ("<svg style='width: calc(var(--a, 1) * 2px)'></svg><script>( --b )</script>", []),
        ("<pre><code style='gap: var(--a, 1)'>x</code></pre>", []),
    ],
)
def test_a_line_breaks_neither_before_what_ends_a_formula_nor_in_a_flag(html, held):
    spans = postprocess.drawn(html).split('<span class="slp-held">')[1:]
    assert len(spans) == len(held)
    assert all(
        re.match(rf"(?:<a[^>]*>)?<!-- tex -->.*{one}.*<!-- /tex -->(?:</a>)?[,)]", span, re.DOTALL)
        or span.startswith(f"--{one}</span>")
        for one, span in zip(held, spans, strict=True)
    )


@pytest.mark.parametrize(
    "html",
    ["<code>$x$</code>", "<pre>$$x$$</pre>", "from $5 to $10", "a$b$c", "$HOME", "<svg>$x$</svg>"],
)
def test_other_dollars_stay(html):
    assert postprocess.drawn(html) == html


def test_an_equation_keeps_its_number_and_signs():
    html = postprocess.drawn(r"$$a &lt; b \tag{8.33}$$")
    assert "<mo>&lt;</mo>" in html and 'class="katex-tag"' in html
    assert postprocess.as_text(html).split() == ["a", "&lt;", "b", "(8.33)"]


def test_a_wrong_formula_is_named():
    with pytest.raises(
        postprocess.FormulaError, match=r"expected '}' .*, in the formula \\frac\{1"
    ):
        postprocess.drawn(r"$\frac{1$")


@pytest.mark.slow  # each builds a site
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BROKEN + "1 / 0\n", "line 8 (cell 3): ZeroDivisionError: division by zero"),
        (BROKEN + 'open("left.txt", "w")\n', "leaves left.txt behind"),
        (CHAPTER.replace("x_1", r"\nosuch"), "Undefined control sequence: \\nosuch"),
        (CHAPTER.replace(' alt="A box."', ""), "line 17 (cell 3): shows a figure without alt"),
    ],
)
def test_a_bad_chapter_fails_the_build(project, text, message):
    chapter(project, text)
    shutil.copy(ROOT / "mkdocs.yml", project)
    shutil.copytree(ROOT / "docs", project / "docs")
    for page in (project / "docs").glob("*.md"):  # some show results that are not here
        page.unlink()
    (project / "docs" / "index.md").write_text("# Home\n", encoding="utf-8")
    (project / "slp_guitar" / "model" / "step-1").mkdir(parents=True)  # a page serves it
    (project / "slp_guitar" / "model" / "LICENSE.txt").touch()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mkdocs", "build", "-d", str(project / "site")],
        cwd=project, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode != 0
    assert "chapters/07_small.py" in done.stdout and message in done.stdout
    assert "Traceback" not in done.stdout


def test_a_page_of_the_reference_is_kept_until_its_module_or_the_settings_change(project):
    module, settings = project / "slp_transformer" / "low.py", project / "mkdocs.yml"
    settings.write_text("a: 1\n", encoding="utf-8")
    first = reference.key_of([module], settings)
    kept = reference.Reference(project / ".cache" / "reference.json")
    kept.keep("api/low.md", first, "<h1>low</h1>", [])
    kept.save()
    again = reference.Reference(project / ".cache" / "reference.json")
    assert again.page("api/low.md", first)["content"] == "<h1>low</h1>"
    for path in (module, settings):
        with open(path, "a", encoding="utf-8") as file:
            file.write("# edited\n")
        assert again.page("api/low.md", reference.key_of([module], settings)) is None
    assert again.page("api/other.md", first) is None


def test_a_plain_notebook_is_marked_for_the_template(project):
    cells = chapter(project).notebook
    assert notebook_html.filled(cells, None, plain=True).metadata["plain"] is True
    assert "plain" not in notebook_html.filled(cells, None).metadata
    code = '<span></span><span class="n">f</span>(<span class="mi">1</span>)\n&lt;2\n'
    html, _ = notebook_html.finished(f'<div class="highlight"><pre>{code}</pre></div>')
    colored = code.removeprefix("<span></span>")
    code = f'<code style="--lines: 2">{colored}</code>'
    assert html == f'<div class="highlight"><pre>{code}</pre></div>'


ROW = '# <span class="eq" id="eq-one">one</span>\n# <span class="eq" id="eq-two">two · 1.1</span>\n'
LATER = '# <span class="eq" id="eq-three">three</span>\n# $$x\\tag{three}$$\n# $$z\\tag{0.0}$$\n'


def test_chapters_are_numbered_from_the_file_again_and_again(project):
    book = chapter_source.equations_of(project)
    text = chapter_source.numbered(f"{ROW}# $$a\\tag{{one}}$$\n# $$b\\tag{{1.1}}$$\n{LATER}", book)
    assert ">one · 8.6 · 7.6</span>" in text and ">two · 8.7 · 7.7</span>" in text
    tags = ["8.6 · 7.6", "8.7 · 7.7", "8.8 · 7.8", "8.8 · 7.8"]
    assert re.findall(r"tag\{([^}]*)\}", text) == tags
    assert chapter_source.numbered(text, book) == text
    moved = chapter_source.Equations(EQUATIONS.replace('"8.7"', '"8.70"'))
    assert chapter_source.numbered(text, moved) == text.replace("8.7 ·", "8.70 ·")


def test_what_the_short_path_leaves_out_is_folded_below_its_heading():
    body = "<h2>One</h2><p>1</p><!-- more a &lt; b -->\n<h2>Two</h2><p>2</p><!-- /more -->"
    html, headings = notebook_html.finished(body + "<!-- more c --><p>3</p>")
    assert [heading["id"] for heading in headings] == ["one", "two"]
    folds = re.findall(r"(?s)<details class=\"slp-more\">.*?</details>", html)
    summaries = [f"<summary data-search-exclude>{one}</summary>" for one in ("a &lt; b", "c")]
    inside = ["<p>2</p>", "<p>3</p>"]
    assert folds == [
        f'<details class="slp-more">{summary}{text}</details>'
        for summary, text in zip(summaries, inside, strict=True)
    ]
    assert html.index('id="two"') < html.index("<details") and html.count("<!-- /more -->") == 2
    whole = notebook_html.without_folds(html)
    assert "details" not in whole and whole.count("<p>") == 3 and "a &lt; b" not in whole


def test_a_page_has_no_blank_lines_but_in_code_and_no_spans_that_color_nothing():
    code = '<pre><span></span>a\n\n  <span class="n">b</span><span class="p">.</span></pre>'
    rest = "\n\n  <footer>\n\n  a</footer>"
    page = f"<nav>\n  \n    <a>b  c</a>\n\n</nav>\n  <article>\n \n\n  {code}</article>{rest}"
    slim = '<article>\n  <pre>a\n\n  b<span class="p">.</span></pre></article>'
    assert postprocess.slim(page) == f"<nav>\n<a>b  c</a>\n</nav>\n{slim}{rest}"
    assert postprocess.slim("a\n\n  b") == "a\n\n  b"


def test_styles_of_the_theme_s_parts_go_where_no_page_has_them(tmp_path):
    sheet = tmp_path / "assets" / "stylesheets" / "main.1.min.css"
    sheet.parent.mkdir(parents=True)
    (tmp_path / "index.html").write_text('<p class="a grid"></p>')
    here, on_paper = (
        ".grid>*{x:y}.cards,.a:is(.b,.keys) .d{x:y}",
        "@media print{.tabbed-set>a{}.e{}}",
    )
    sheet.write_text(here + on_paper)
    postprocess.drop_styles(tmp_path)
    assert sheet.read_text() == ".grid>*{x:y}@media print{.e{}}"
    sheet.write_text(".cards,.a:is(.b,.c) .d,.md-nav{x:y}")
    postprocess.drop_styles(tmp_path)
    assert sheet.read_text() == ".a:is(.b,.c) .d,.md-nav{x:y}"
