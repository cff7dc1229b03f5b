"""A server after an edit: what it shows is what a fresh build shows."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
pytest.importorskip("mkdocs")
pytest.importorskip("mkdocs_jupyter")

import chapter_source  # noqa: E402
import execution  # noqa: E402
import state  # noqa: E402

from slp_transformer._internal.plugins import PACKAGES  # noqa: E402

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
# Some prose of <autoref identifier="slp_transformer.low.g">g</autoref>, with
# <autoref identifier="slp_guitar.read">read</autoref> and
# <span class="eq" id="eq-e{0}">e{0}</span>
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
def root(tmp_path, monkeypatch):
    """A small project, whose two chapters have run."""
    root = tmp_path / "project"
    for name in PAGES:
        page = root / "docs" / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# The {name}\n\nWords on {name}.\n\n<!-- equations -->\n", "utf-8")
    shutil.copytree(ROOT / "docs" / "site_build", root / "docs" / "site_build")
    (root / "docs" / "assets").mkdir()
    (root / "slp_transformer").mkdir()
    (root / "slp_transformer" / "__init__.py").touch()
    text = 'r"""Low."""\n\n\ndef g(x):\n    r"""It, with $\\frac{x}{d_k}$, or d_k."""\n'
    (root / "slp_transformer" / "low.py").write_text(text, encoding="utf-8")
    (root / "slp_transformer" / "high.py").write_text('"""What no chapter imports."""\n')
    (root / "slp_transformer" / "equations.toml").write_text(EQUATIONS, encoding="utf-8")
    (root / "slp_guitar").mkdir()
    (root / "slp_guitar" / "__init__.py").write_text(
        'from slp_guitar.tab import read\n\n__all__ = ["read"]\n'
    )
    (root / "slp_guitar" / "model" / "step-1").mkdir(parents=True)
    (root / "slp_guitar" / "model" / "LICENSE.txt").touch()
    text = '"""What guitarists read."""\n\n\ndef read():\n    """Read `slp_guitar.read`."""\n'
    (root / "slp_guitar" / "tab.py").write_text(text, encoding="utf-8")
    (root / "chapters").mkdir()
    for number in (1, 2):
        path = root / "chapters" / f"0{number}_one.py"
        path.write_text(CHAPTER.format(number), encoding="utf-8")
        chapter = chapter_source.read_chapter(path, root)
        execution.Cache(root / ".cache" / "chapters").store(chapter, [[]], {})
    shutil.copy(ROOT / "mkdocs.yml", root)
    monkeypatch.chdir(root)
    state.site.__init__()  # what another test may have left
    yield root
    state.site.__init__()


def build_site(root, folder, command="serve"):
    """Builds a project as its server does."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    # port 0, which no other program of the machine can have
    config = load_config(str(root / "mkdocs.yml"), site_dir=str(folder), dev_addr="127.0.0.1:0")
    config.plugins.on_startup(command=command, dirty=False)
    build(config, serve_url="http://127.0.0.1:8000/" if command == "serve" else None)


def build_whole_site(root, folder, command="serve"):
    """Builds a project as its server does, and what that leaves for later."""
    import live_build

    build_site(root, folder, command)
    later = live_build.last.later if command == "serve" and state.site.live is None else {}
    for file in later.values():
        live_build.write_page(file)
    if later:
        later.clear()
        live_build.last.config.plugins.on_post_build(config=live_build.last.config)


def files_in(folder):
    """Returns every file of a built site; what is packed has the time in it.

    Not mkdocstrings' styles, which it writes only where it has rendered a page of the reference.
    """
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".gz"]
    files = [path for path in files if path.name != "_mkdocstrings.css"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def build(root, tmp_path):
    """Builds a small site as its server does; returns every file of it."""

    def again(afresh=False, command="serve"):
        if afresh:
            state.site.__init__()
            shutil.rmtree(root / ".cache" / "pages")
            (root / ".cache" / "reference.json").unlink()
        build_whole_site(root, tmp_path / "site", command)
        return files_in(tmp_path / "site")

    return again


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("chapters/01_one.py", "Some prose", "Other prose"),
        ("docs/index.md", "Words on", "Thoughts about"),
        ("chapters/02_one.py", "What it is about", "What it tells"),
        ("chapters/02_one.py", "x_2", "y_2"),
        ("slp_transformer/high.py", "no chapter", "not one chapter"),
        ("slp_guitar/tab.py", "guitarists read", "guitarists play"),
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


def test_a_server_watches_the_chapters_the_recorded_runs_and_all_our_packages(root):
    from mkdocs.config import load_config

    config = load_config(str(root / "mkdocs.yml"))
    config.plugins.on_startup(command="serve", dirty=False)
    (root / "benchmarks" / "results").mkdir(parents=True)
    watched = config.plugins.on_config(config).watch
    folders = ("chapters", *PACKAGES, "benchmarks/results")
    assert {str(root.joinpath(name)) for name in folders} <= set(watched)


def test_a_port_in_use_is_said_before_anything_is_built():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"]
        env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=ROOT, env=env, encoding="utf-8", stdout=-1, stderr=-2, timeout=120
        )
    assert done.returncode == 2
    assert f"Port {port} is in use: mkdocs serve -a 127.0.0.1:" in done.stdout
    assert "Traceback" not in done.stdout and len(done.stdout.splitlines()) < 5


@pytest.fixture
def live(root, tmp_path, monkeypatch):
    """A server's builds, with what it would tell open pages."""
    import live_build

    monkeypatch.setattr(live_build, "OPENED_S", 0)  # no page is opened first

    class Pages:
        folder = tmp_path / "site"
        opened: list = []
        told: list = []

        def announce(self, urls):
            self.told.append(urls)

        def release(self, name):
            """No request waits."""

    build_whole_site(root, Pages.folder)
    pages = Pages()
    pages.told = []
    made = live_build.LiveBuild(lambda: build_site(root, state.site.live.spare), pages)
    made.pages = pages
    state.site.live = made
    yield made
    made.close()


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path.resolve()


def after_quiet(live, monkeypatch):
    monkeypatch.setattr("live_build.QUIET_S", 0)
    live.step(set())
    return files_in(live.pages.folder)


@pytest.mark.parametrize(
    ("path", "old", "new", "url"),
    [
        ("chapters/01_one.py", "Some prose", "Other prose", "chapters/01_one/"),
        ("docs/notation.md", "Words on", "Thoughts about", "notation/"),
        ("docs/index.md", "Words on", "Thoughts about", "./"),
    ],
)
def test_an_edit_is_shown_by_its_page_alone_and_the_rest_follows(
    live, root, tmp_path, monkeypatch, path, old, new, url
):
    before = files_in(live.pages.folder)
    live.step({edit(root / path, old, new)})
    now = files_in(live.pages.folder)
    page = f"{url.removeprefix('./')}index.html"
    assert live.pages.told == [[url]]
    changed = {name for name in now if now[name] != before.get(name)}
    assert page in changed and changed <= {page, f"{url}01_one.ipynb", "assets/_mkdocstrings.css"}
    assert new.encode() in now[page]
    built = after_quiet(live, monkeypatch)
    assert live.pages.told == [[url], None]
    assert built[page] == now[page]  # one page alone is as it is in a build of everything
    live.step(set())
    assert live.pages.told == [[url], None]  # once
    state.site.__init__()
    build_whole_site(root, tmp_path / "fresh")
    assert files_in(tmp_path / "fresh") == built


def test_what_concerns_more_than_a_page_is_built_at_once_and_elsewhere(live, root):
    folder = live.pages.folder
    before = files_in(folder)
    live.step({edit(root / "slp_transformer" / "high.py", "no chapter", "not one chapter")})
    assert live.pages.told == [None]
    assert live.pages.folder != folder and files_in(folder) == before
    assert b"not one chapter" in b"".join(files_in(live.pages.folder).values())


def test_an_edit_is_shown_before_a_build_of_everything_that_goes_on(live, root, monkeypatch):
    monkeypatch.setattr("live_build.LOOK_S", 0)
    live.step({edit(root / "docs" / "notation.md", "Words on", "Thoughts about")})
    changed, looks = set(), []

    def has_changes():
        looks.append(len(looks))
        if len(looks) == 9:
            changed.add(edit(root / "chapters" / "01_one.py", "Some prose", "Other prose"))
        return bool(changed)

    live.has_changes = has_changes
    folder = live.pages.folder
    after_quiet(live, monkeypatch)
    assert len(looks) == 9 and live.pages.folder == folder, "it has ended, and is not served"
    live.step(set(changed))
    assert live.pages.told == [["notation/"], ["chapters/01_one/"]]
    assert b"Other prose" in files_in(folder)["chapters/01_one/index.html"]
    changed.clear()
    built = after_quiet(live, monkeypatch)
    assert live.pages.told[2:] == [None] and b"Other prose" in built["search.json"]


def test_an_error_leaves_the_pages_as_they_were(live, root, caplog):
    before = files_in(live.pages.folder)
    good = (root / "mkdocs.yml").read_text(encoding="utf-8")
    path = edit(root / "mkdocs.yml", "theme:", "theme")
    live.step({path})
    assert files_in(live.pages.folder) == before and live.pages.told == []
    assert "stay as they were" in caplog.text
    path.write_text(good, encoding="utf-8")
    live.step({path})
    assert live.pages.told == [None]


def test_old_outputs_stay_until_a_chapter_has_run_again_and_it_runs_once(live, root, monkeypatch):
    chapter = root / "chapters" / "01_one.py"
    ran = threading.Semaphore(0)
    go = threading.Event()
    runs = []

    def run(chapter):
        runs.append(chapter.path.stem)
        go.wait(60)
        ran.release()
        told = [{"output_type": "stream", "name": "stdout", "text": f"run {len(runs)}"}]
        return [told for _ in chapter.code_cells], {}

    monkeypatch.setattr(execution, "run_chapter", run)
    page = "chapters/01_one/index.html"

    def shown():
        return files_in(live.pages.folder)[page].decode()

    def finish():
        go.set()
        assert ran.acquire(timeout=60)
        end = time.monotonic() + 60
        while not live.wake.is_set() and time.monotonic() < end:
            time.sleep(0.01)
        live.wake.clear()
        go.clear()
        live.step(set())

    live.step({edit(chapter, "# %%\n", "# %%\n1 + 1\n\n# %%\n")})
    assert "Running again" in shown() and 'class="slp-chapter slp-stale"' in shown()
    live.step(set())
    finish()
    assert runs == ["01_one"] and shown().count("run 1") == 2 and "Running" not in shown()
    live.step({edit(chapter, "1 + 1", "2 + 2")})
    assert shown().count("run 1") == 1  # of the cell that is as it was
    assert "slp-stale" in shown()
    finish()
    assert runs == ["01_one"] * 2 and shown().count("run 2") == 2
    live.step({edit(chapter, "2 + 2", "2 + 2  # a comment")})
    live.step(set())
    assert "Running" not in shown() and "a comment" in shown()
    assert len(runs) == 2


def test_a_published_page_is_shown_elsewhere_with_a_picture_of_its_own(
    build, monkeypatch, tmp_path
):
    fonts = tmp_path / "project" / "docs" / "assets" / "fonts"
    shutil.copytree(ROOT / "docs" / "assets" / "fonts", fonts)
    monkeypatch.setenv("SITE_URL", "https://a.org/book/")
    built = build(command="build")
    pictures = set()
    for name in ("index.html", "chapters/01_one/index.html", "chapters/02_one/index.html"):
        page = built[name].decode()
        (url,) = re.findall(r'property="og:image" content="https://a.org/book/([^"]+)"', page)
        with Image.open(tmp_path / "site" / url) as card:
            assert card.size == (1200, 630)
            margin = card.crop((1120, 0, 1200, 630))
            assert len(card.getcolors(10_000)) > 20 and len(margin.getcolors()) == 1
            pictures.add(card.tobytes())
    assert len(pictures) == 3


@pytest.mark.parametrize("has_run", [False, True])
def test_a_start_answers_with_two_pages_and_builds_the_rest_when_it_is_asked(
    has_run, root, tmp_path, monkeypatch, caplog
):
    import live_build
    import serving

    if not has_run:
        (root / ".cache" / "chapters" / "02_one.json").unlink()
    folder = tmp_path / "site"
    build_site(root, folder)
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("index.html")}
    assert pages == {"index.html", "chapters/01_one/index.html"}
    assert [path.name for path in (root / ".cache" / "pages").rglob("*.ipynb")] == ["01_one.ipynb"]
    server = serving.PageServer(("127.0.0.1", 0), folder)
    state.site.live = live = live_build.LiveBuild(lambda: None, server)
    live.run_chapters = lambda: None
    written = []
    page = live_build.write_page
    monkeypatch.setattr(
        "live_build.write_page", lambda file: (written.append(file.url), page(file))
    )
    waiting = [
        threading.Thread(target=server.wait_for, args=(place,), daemon=True)
        for place in ("pytorch", "search.json")
    ]
    for one in waiting:
        one.start()
    assert live.wake.wait(10)
    while live_build.last.later:
        live.step(set())
    # A page that is not rendered yet has its names, and no other page has them.
    assert "Could not find" not in caplog.text and "Multiple" not in caplog.text
    for one in waiting:
        one.join(10)
        assert not one.is_alive()
    assert written[0] == "pytorch/" and len(written) == len(set(written))
    now = files_in(folder)
    server.server_close()
    state.site.__init__()
    state.site.live = live  # its builds of everything leave nothing for later
    (root / ".cache" / "reference.json").unlink()
    build_site(root, folder)
    at_once = files_in(live.spare)
    live.close()
    for built in (now, at_once):
        search = json.loads(built.pop("search.json"))
        built["search"] = sorted(map(str, search["sections"])), search["equations"]
        del built["sitemap.xml"]
    assert now == at_once
