"""The built site: its links lead somewhere, it asks nothing of other hosts, its figures have words.

The site is built once, strictly; chapters that did not change come from the cache. To check a site
that is built already, name its folder: SLP_SITE=site python -m pytest tests/test_site.py
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("[0-9]*.py"))
PAGE_LIMIT = 900_000  # bytes of one page, figures included
SITE_LIMIT = 40_000_000


@dataclass
class Page:
    """What the tests ask of a page."""

    ids: list = field(default_factory=list)
    links: list = field(default_factory=list)
    loads: list = field(default_factory=list)  # what the browser fetches by itself
    headings: list = field(default_factory=list)
    undescribed: list = field(default_factory=list)  # figures without alt text
    shown: str = ""  # the text outside code


class Reader(HTMLParser):
    """Reads a page; only the article counts for headings and text."""

    def __init__(self):
        super().__init__()
        self.page, self.article, self.verbatim = Page(), 0, 0

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        page = self.page
        if "id" in given:
            page.ids.append(given["id"])
        if tag == "a" and given.get("href"):
            page.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source", "video", "audio") and given.get("src"):
            page.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            page.loads.append(given["href"])
        page.loads += re.findall(r"url\(([^)]+)\)", given.get("style") or "")
        if tag == "article":
            self.article += 1
        if tag in ("pre", "code", "script", "style", "svg"):
            self.verbatim += 1
        if self.article and re.fullmatch("h[1-6]", tag):
            page.headings.append(int(tag[1]))
        if self.article and (tag == "img" and not given.get("alt")):
            page.undescribed.append(given.get("src", "")[:60])
        if self.article and tag == "svg" and given.get("aria-hidden") != "true":
            if not (given.get("role") == "img" and given.get("aria-label")):
                page.undescribed.append(self.get_starttag_text()[:60])

    def handle_endtag(self, tag):
        self.article -= tag == "article"
        self.verbatim -= tag in ("pre", "code", "script", "style", "svg")

    def handle_data(self, data):
        if self.article and not self.verbatim:
            self.page.shown += data


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    if "SLP_SITE" in os.environ:
        return Path(os.environ["SLP_SITE"]).resolve()
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return folder


@pytest.fixture(scope="session")
def pages(site):
    found = {}
    for path in sorted(site.rglob("*.html")):
        reader = Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        found[path.relative_to(site).as_posix()] = reader.page
    assert "index.html" in found
    return {name: page for name, page in found.items() if name != "404.html"}


def target(site, page, link):
    """The file that a link leads to, and its anchor."""
    address, anchor = urldefrag(urljoin(f"http://site/{page}", link))
    path = unquote(urlsplit(address).path).strip("/")
    if (site / path).is_dir():
        path = f"{path}/index.html".lstrip("/")
    return path, unquote(anchor)


def test_every_chapter_and_module_has_a_page(pages):
    for stem in CHAPTERS:
        assert f"chapters/{stem}/index.html" in pages
    for path in (ROOT / "slp_transformer").rglob("[a-z]*.py"):
        module = ".".join(path.relative_to(ROOT / "slp_transformer").with_suffix("").parts)
        assert f"api/{module}/index.html" in pages


def test_links_and_anchors_resolve(site, pages):
    broken = []
    for name, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            path, anchor = target(site, name, link)
            if not (site / path).is_file():
                broken.append(f"{name}: {link}")
            elif anchor and path in pages and anchor not in pages[path].ids:
                broken.append(f"{name}: {link} (no such anchor)")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site, pages):
    loads = {(name, load) for name, page in pages.items() for load in page.loads}
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        for load in re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", text):
            loads.add((path.relative_to(site).as_posix(), "".join(load)))
    assert loads
    for name, load in loads:
        if load.startswith(("data:", "#")):
            continue
        assert not urlsplit(load).scheme and not load.startswith("//"), f"{name} loads {load}"
        path, _ = target(site, name, load)
        assert (site / path).is_file(), f"{name} loads {load}, which is missing"


def test_figures_have_alt_text(pages):
    assert {name: page.undescribed for name, page in pages.items() if page.undescribed} == {}


def test_headings_begin_with_one_title_and_skip_no_level(pages):
    wrong = {}
    for name, page in pages.items():
        levels = page.headings
        steps = zip(levels, levels[1:], strict=False)
        if levels[:1] != [1] or levels.count(1) != 1 or any(b > a + 1 for a, b in steps):
            wrong[name] = levels
    assert not wrong


def test_ids_are_unique(pages):
    for name, page in pages.items():
        assert [i for i, n in Counter(page.ids).items() if n > 1] == [], name


def test_pages_are_light(site, pages):
    heavy = {name: (site / name).stat().st_size for name in pages}
    assert {name: size for name, size in heavy.items() if size > PAGE_LIMIT} == {}
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < SITE_LIMIT


def test_no_raw_markdown_is_left_in_chapters(pages):
    left = r"^\s*!!! \w+|\]\[slp_|\]\(\w+\.py|^#{1,6} |\*\*\w|<autoref"
    for stem in CHAPTERS:
        text = re.sub(r"\$[^$]*\$", "", pages[f"chapters/{stem}/index.html"].shown)
        assert re.findall(left, text, flags=re.MULTILINE) == [], stem


def test_chapters_have_run_and_can_be_downloaded(site, pages):
    for stem in CHAPTERS:
        folder = site / "chapters" / stem
        script = (folder / f"{stem}.py").read_text(encoding="utf-8")
        assert script == (ROOT / "chapters" / f"{stem}.py").read_text(encoding="utf-8")
        notebook = json.loads((folder / f"{stem}.ipynb").read_text(encoding="utf-8"))
        assert any(cell.get("outputs") for cell in notebook["cells"]), stem
        assert {f"{stem}.py", f"{stem}.ipynb"} <= set(pages[f"chapters/{stem}/index.html"].links)


def test_chapters_and_reference_link_both_ways(pages):
    for stem in CHAPTERS:
        links = pages[f"chapters/{stem}/index.html"].links
        modules = {m[1] for link in links if (m := re.match(r"\.\./\.\./api/([^/]+)/", link))}
        shown = {m for m in modules if f"../../api/{m}/#" in " ".join(links)}
        back = {
            m for m in modules if f"../../chapters/{stem}/" in pages[f"api/{m}/index.html"].links
        }
        assert back and shown <= back, stem


def typed(text):
    """The types in a text that hold a shape or a choice of words, on one line each."""
    found = re.findall(r"\b(?:Bool|Float|Int|Literal)\[[^\]]*\]", text)
    return {re.sub(r"(?<=\[) |,? (?=\])", "", " ".join(one.split())) for one in found}


def test_types_in_the_reference_read_as_in_the_source(site):
    shown_anywhere = set()
    for path in sorted((site / "api").glob("**/index.html")):
        module = ROOT.joinpath("slp_transformer", *path.parent.name.split(".")).with_suffix(".py")
        if not module.is_file():
            continue
        page = path.read_text(encoding="utf-8")
        page = re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)  # the source itself
        shown = typed(unescape(re.sub(r"<[^>]+>", "", page)))
        written = typed(module.read_text(encoding="utf-8"))
        assert shown <= written, path
        shown_anywhere |= shown
    for shape in ('"... #N #M"', '"*batch N d"', '"N d"', '"N"', '""'):
        assert any(f"[Tensor, {shape}]" in one for one in shown_anywhere), shape


def test_the_index_leads_to_each_equation_of_the_chapters(pages):
    links = pages["equations/index.html"].links
    for stem in CHAPTERS:
        labels = [i for i in pages[f"chapters/{stem}/index.html"].ids if i.startswith("eq-")]
        for label in labels:
            assert f"../chapters/{stem}/#{label}" in links


def test_search_knows_prose_and_not_outputs(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    text = " ".join(entry["text"] for entry in index["docs"])
    assert "row vectors" in text.lower() and "slp-text" not in text
    assert len(text) < 2_000_000
