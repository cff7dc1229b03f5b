"""A server after an edit: only what the edit changes is rendered anew, and all of it is right."""

import json
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site_build"))
pytest.importorskip("mkdocs")
pytest.importorskip("mkdocs_jupyter")

import chapter_source  # noqa: E402
import execution  # noqa: E402
import state  # noqa: E402

pytestmark = pytest.mark.slow
PAGES = ("index", "equations", "notation", "pytorch", "teachers", "contributing", "api/index")
CHAPTER = """\
# %% [markdown]
# # {0} · Chapter {0}
#
# What it is about. Its first words.
#
# ## A part
#
# Some prose, with <span class="eq" id="eq-e{0}">e{0}</span>
#
# $$x_{0} \\tag{{e{0}}}$$

# %%
from slp_transformer.low import g
"""

EQUATIONS = """\
[drafts]
2026-01 = "Jan 2026 draft"
[equations]
e1 = { title = "One", 2026-01 = "8.1" }
e2 = { title = "Two", 2026-01 = "8.2" }
"""


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Builds a small site as its server does; returns the pages rendered anew."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    root = tmp_path / "project"
    for name in PAGES:
        page = root / "docs" / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# The {name}\n\nWords on {name}.\n\n<!-- equations -->\n", "utf-8")
    shutil.copytree(ROOT / "docs" / "site_build", root / "docs" / "site_build")
    (root / "docs" / "assets").mkdir()
    (root / "slp_transformer").mkdir()
    (root / "slp_transformer" / "__init__.py").touch()
    (root / "slp_transformer" / "low.py").write_text('"""Low."""\n\n\ndef g(x):\n    """It."""\n')
    (root / "slp_transformer" / "high.py").write_text('"""What no chapter imports."""\n')
    (root / "slp_transformer" / "equations.toml").write_text(EQUATIONS, encoding="utf-8")
    (root / "chapters").mkdir()
    for number in (1, 2):
        path = root / "chapters" / f"0{number}_one.py"
        path.write_text(CHAPTER.format(number), encoding="utf-8")
        chapter = chapter_source.read_chapter(path, root)
        execution.Cache(root / ".cache" / "chapters").store(
            chapter, chapter_source.key_of(chapter), [[]]
        )
    shutil.copy(ROOT / "mkdocs.yml", root)
    monkeypatch.chdir(root)
    state.site.__init__()  # what another test may have left

    def again(afresh=False):
        if afresh:
            state.site.keeper.__init__()
        config = load_config(str(root / "mkdocs.yml"), site_dir=str(tmp_path / "site"))
        config.plugins.on_startup(command="serve", dirty=False)
        build(config, serve_url="http://127.0.0.1:8000/")
        return sorted(state.site.keeper.rendered)

    yield again
    state.site.__init__()


def built():
    """Every file of the site by its path; what is packed has the time in it."""
    site = Path("../site")
    found = {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.endswith(".gz")}


def replace(path, old, new):
    text = Path(path).read_text(encoding="utf-8")
    assert old in text
    Path(path).write_text(text.replace(old, new), encoding="utf-8")


def test_an_edit_renders_what_it_changes_and_leaves_the_site_as_a_build_makes_it(build):
    everything = build()
    assert {"index.md", "chapters/01_one.ipynb", "api/low.md", "proofs.md"} - {*everything} == {
        "proofs.md"  # there are no tests
    }
    assert build() == []  # nothing has changed
    for edit, rendered in [
        (("chapters/01_one.py", "Some prose", "Other prose"), ["chapters/01_one.ipynb"]),
        (("docs/index.md", "Words on", "Thoughts about"), ["index.md"]),
        (("docs/notation.md", "Words on", "Thoughts about"), ["notation.md"]),
        # What other pages show, too.
        (("chapters/02_one.py", "What it is about", "What it tells"), None),
        (("chapters/02_one.py", "x_2", "y_2"), None),
        (("docs/teachers.md", "The teachers", "For teachers"), None),
        (("slp_transformer/high.py", "no chapter", "not one chapter"), None),
    ]:
        replace(*edit)
        assert build() == (everything if rendered is None else rendered), edit
        quick = built()
        assert edit[2].encode() in b"".join(quick.values())
        assert build(afresh=True) == everything
        assert built() == quick, edit
    index = json.loads(built()["search/search_index.json"])
    assert "Other prose" in " ".join(entry["text"] for entry in index["docs"])
