"""A server after an edit: what it shows is what a fresh build shows."""

import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
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
    """Builds a small site as its server does; returns every file of it."""
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
        execution.Cache(root / ".cache" / "chapters").store(chapter, [[]], {})
    shutil.copy(ROOT / "mkdocs.yml", root)
    monkeypatch.chdir(root)
    state.site.__init__()  # what another test may have left

    def again(afresh=False):
        if afresh:
            state.site.__init__()
            shutil.rmtree(root / ".cache" / "pages")
            (root / ".cache" / "reference.json").unlink()
        config = load_config(str(root / "mkdocs.yml"), site_dir=str(tmp_path / "site"))
        config.plugins.on_startup(command="serve", dirty=False)
        build(config, serve_url="http://127.0.0.1:8000/")
        files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
        # What is packed has the time in it.
        return {path: path.read_bytes() for path in files if path.suffix != ".gz"}

    yield again
    state.site.__init__()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("chapters/01_one.py", "Some prose", "Other prose"),
        ("docs/index.md", "Words on", "Thoughts about"),
        ("chapters/02_one.py", "What it is about", "What it tells"),
        ("chapters/02_one.py", "x_2", "y_2"),
        ("slp_transformer/high.py", "no chapter", "not one chapter"),
    ],
)
def test_a_server_shows_an_edit_as_a_fresh_build_does(build, path, old, new):
    build()
    text = Path(path).read_text(encoding="utf-8")
    assert old in text
    Path(path).write_text(text.replace(old, new), encoding="utf-8")
    quick = build()
    assert new.encode() in b"".join(quick.values())
    assert build(afresh=True) == quick


def test_a_published_page_is_shown_elsewhere_with_a_picture_of_its_own(
    build, monkeypatch, tmp_path
):
    fonts = tmp_path / "project" / "docs" / "assets" / "fonts"
    shutil.copytree(ROOT / "docs" / "assets" / "fonts", fonts)
    monkeypatch.setenv("SITE_URL", "https://a.org/book/")
    built = build()
    pictures = set()
    for name in ("index.html", "chapters/01_one/index.html", "chapters/02_one/index.html"):
        page = built[tmp_path / "site" / name].decode()
        (url,) = re.findall(r'property="og:image" content="https://a.org/book/([^"]+)"', page)
        with Image.open(tmp_path / "site" / url) as card:
            assert card.size == (1200, 630)
            margin = card.crop((1120, 0, 1200, 630))
            assert len(card.getcolors(10_000)) > 20 and len(margin.getcolors()) == 1
            pictures.add(card.tobytes())
    assert len(pictures) == 3
