"""The page "Open your chapter" in a browser, with PDFs that the tests write."""

import hashlib
import json
import re
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import figures
import model_pages
import pytest
from js_engines import DOCS
from serving import PageServer
from small_pdf import chapter, encrypted, hostile, pages_of

from slp_transformer._internal.equations import load_equations

BOOK = load_equations()
VENDORED = DOCS / "assets" / "book" / "pdfjs"
ROOT = DOCS.parent
OURS = [f"8.{k}" for k in range(6, 55)]
HEAD = (
    "<!doctype html><html lang=en><head><title>T</title><style>html { font-size: 125% }</style>"
    '<link rel=stylesheet href="/assets/site.css">'
    '<link rel=stylesheet href="/assets/book/book.css">'
    '<script src="/assets/page.js"></script><link rel=next href="/next/"></head>'
    "<body data-md-color-scheme=default><header class=md-header><a href=/next/>site</a></header>"
)


def test_a_caption_tells_the_figures_of_each_draft():
    def told(caption):
        return figures.of_the_book(caption, BOOK)

    both = [("2026-01", "8.1"), ("2026-01", "8.7"), ("2026-08", "7.1"), ("2026-08", "7.7")]
    assert told("The block (Figs 8.1 and 8.7 · 7.1 and 7.7)") == both
    assert told("Shape (Fig. 8.6 · 7.6: the heads)") == [("2026-01", "8.6"), ("2026-08", "7.6")]
    assert told("LoRA (Fig. 8.19)") == [("2026-01", "8.19")]  # its own chapter, before the other's
    assert told("Two stacks (Fig. 13.5)") == [("2026-08", "13.5")]
    assert told("Ours alone") == []


def test_the_vendored_reader_is_the_version_that_is_named_and_evaluates_nothing():
    for name in ("pdf.min.mjs", "pdf.worker.min.mjs"):
        script = (VENDORED / name).read_text("utf-8")
        version = re.search(r"pdfjsVersion = ([\d.]+)", script)[1]
        for file in ("THIRD_PARTY.md", "package.json"):
            assert version in (ROOT / file).read_text("utf-8"), file
        assert not re.search(r"\beval\(|new Function\(", script)
    names = {path.name for path in VENDORED.iterdir()}
    licenses = {"LICENSE.txt", "core-js.LICENSE.txt"}
    assert names == licenses | {"pdf.min.mjs", "pdf.worker.min.mjs"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A site of this page and a chapter that shows each equation."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS / "assets", folder / "assets", ignore=shutil.ignore_patterns("model"))
    stage = model_pages.fill_book(model_pages.BOOK_MARK, BOOK)
    script = '<script type=module src="/assets/book/book.js"></script>'
    pages = {
        "book": f"<main class=md-typeset><h1>Open your chapter</h1>{stage}</main>{script}",
        "next": "the next page",
        "chapters/01_x": "<article class=md-typeset><div class=slp-chapter><h1>A chapter</h1>"
        + "".join(
            f'<p><span class="eq" id="eq-{slug}">{slug}</span></p><div style="height: 40rem"></div>'
            for slug in BOOK.slugs
        )
        + "<input id=field></div></article>"
        + "<script src=/assets/book/way_back.js defer></script>",
    }
    for name, body in pages.items():
        (folder / name).mkdir(parents=True)
        html = HEAD + body
        (folder / name / "index.html").write_text(html, encoding="utf-8")
    rows = [
        {"slug": slug, "title": entry["title"], "chapters": [f"chapters/01_x/#eq-{slug}"],
         "drafts": {draft: BOOK.numbers_of(slug, draft) for draft in BOOK.drafts}}
        for slug, entry in BOOK.slugs.items()
    ]  # fmt: skip
    (folder / "equations.json").write_text(json.dumps(rows), encoding="utf-8")
    empty = {kind: {draft: {} for draft in BOOK.drafts} for kind in ("figures", "exercises")}
    (folder / "figures.json").write_text(json.dumps(empty), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    server = PageServer(("127.0.0.1", 0), folder)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()


def until(page, expression, seconds=40):
    """Wait for something; the page's policy lets no text be evaluated by itself."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        said = page.evaluate("document.getElementById('b-says')?.textContent")
        assert time.monotonic() < end, f"{expression}: {said}"
        page.wait_for_timeout(50)


@contextmanager
def opened(server, browser, width=1440, height=900, **how):
    size = {"width": width, "height": height}
    with TemporaryDirectory() as folder, browser.new_context(viewport=size, **how) as context:
        page = context.new_page()
        page.asked, page.wrong, page.folder = [], [], Path(folder)
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.goto(f"{server.url}book/", wait_until="load")
        yield page
        assert page.wrong == []


END = """(() => {
  const said = document.getElementById("b-says").textContent;
  return document.getElementById("b-refused").textContent ||
    (said && !/^Opening|Reading page/.test(said) ? said : "");
})()"""


def give(page, data, name="chapter.pdf"):
    """Let the page open a PDF, and return what it says in the end."""
    page.evaluate("document.getElementById('b-says').textContent = ''")
    path = page.folder / name
    path.write_bytes(data)
    page.set_input_files("#b-file", str(path))  # bytes would be decoded by the page itself
    until(page, END)
    return page.evaluate(END)


@pytest.mark.slow
def test_a_pdf_opens_and_each_number_leads_to_its_place_in_the_frame(server, browser):
    with opened(server, browser) as page:
        before = set(page.asked)
        assert not [url for url in before if "pdfjs" in url]  # it comes with the first file
        assert give(page, chapter(OURS)).startswith("49 of 49 equations found · Jan 2026 draft")
        assert page.locator(".b-mark").count() == 49
        assert page.evaluate("localStorage.getItem('slp-draft')") == "2026-01"
        page.locator('.b-mark[aria-label^="(8.14)"]').click()
        until(page, "document.getElementById('b-frame').contentDocument?.readyState === 'complete'")
        frame = page.frame("slp-panel")
        assert frame.url.endswith("chapters/01_x/#eq-head-out")
        assert frame.evaluate("document.documentElement.matches('.slp-framed')")
        assert not frame.locator("header").is_visible()
        assert page.locator("#b-title").inner_text() == "(8.14) Output matrix of one head"
        # and back: a chapter's equation leads to its place in the PDF
        until(page, "frames[0].document.querySelectorAll('.slp-in-pdf').length === 49")
        frame.locator('[data-of="eq-lora"]').evaluate("button => button.click()")
        page.wait_for_timeout(300)
        assert page.input_value("#b-page") == "10"
        # which is the current one from now on, for the title, the markers and the keys
        assert page.locator("#b-title").inner_text().startswith("(8.54)")
        assert page.locator('.b-mark[aria-expanded="true"]').count() == 1
        page.keyboard.press("k")
        assert page.locator("#b-title").inner_text().startswith("(8.53)")
        # Nothing went elsewhere, and nothing of the file went anywhere.
        asked = [url for url in page.asked if url not in before]
        assert {url for url in asked if not url.startswith((server.url, "blob:", "data:"))} == set()
        names = [url.removeprefix(server.url) for url in asked if url.startswith(server.url)]
        own = (
            r"(equations|figures)\.json|assets/.*|chapters/01_x/|_live/(live\.js|cells\.js|events)"
        )
        assert [name for name in names if not re.fullmatch(own, name)] == []
        kept = page.evaluate("[Object.keys(localStorage), Object.keys(sessionStorage)].flat()")
        assert [key for key in kept if key != "slp-draft" and not key.startswith("slp-live")] == []


FOCUSED = "document.activeElement.getAttribute('aria-label')"


@pytest.mark.slow
def test_a_chapter_of_its_own_leads_back_to_the_tab_of_the_pdf(server, browser):
    with opened(server, browser) as page:
        give(page, chapter(OURS))
        with page.context.expect_page() as found:
            page.locator(".b-mark").first.click()
            page.get_by_role("link", name="Open in the chapter").click()
        near = found.value
        far = page.context.new_page()  # which nothing of the PDF's tab has opened
        far.goto(f"{server.url}chapters/01_x/")
        for tab, slug, at in ((near, "lora", "10"), (far, "head-out", "2")):
            link = tab.locator(f'[data-of="eq-{slug}"]')
            link.click()
            until(page, f"document.getElementById('b-page').value === '{at}'")
            assert page.locator("#b-title").inner_text().endswith(BOOK.slugs[slug]["title"])
            assert link.inner_text() == (
                "in your PDF" if tab is near else "shown in the tab of your PDF"
            )
        assert near.evaluate("opener.name") == page.evaluate("name")
        assert len(page.context.pages) == 3  # none has come to stand for the PDF's
        page.click("#b-leave")
        far.wait_for_function("!document.querySelector('.slp-in-pdf')")


@pytest.mark.slow
def test_the_pdf_is_not_lost_by_a_click_beside_it(server, browser):
    with opened(server, browser) as page:
        give(page, chapter(OURS))
        with page.context.expect_page() as found:
            page.locator("header a").click()
        found.value.wait_for_url("**/next/")
        assert page.locator(".b-mark").count() == 49
        page.locator(".b-mark").first.click()
        leave, shut = (page.locator(one).bounding_box() for one in ("#b-leave", "#b-shut"))
        assert leave["x"] + leave["width"] < shut["x"] / 2
        page.click("#b-leave")
        page.locator("header a").click()
        page.wait_for_url("**/next/")
        page.go_back()
        until(page, "/nothing of it is kept/.test(document.getElementById('b-refused').innerText)")


@pytest.mark.slow
def test_a_chapter_is_shown_once_it_stands_at_its_place(server, browser):
    with opened(server, browser) as page:
        give(page, chapter(OURS))
        page.evaluate(
            """() => {
            window.tops = [];
            const frame = document.getElementById("b-frame");
            const look = () => {
              const label = frame.contentDocument?.getElementById("eq-lora");
              const isShown = getComputedStyle(frame).visibility === "visible";
              if (isShown) window.tops.push(label ? label.getBoundingClientRect().top : 1e9);
              requestAnimationFrame(look);
            };
            document.addEventListener("click", look, { once: true });
            }"""
        )
        page.locator('.b-mark[aria-label^="(8.54)"]').evaluate("button => button.click()")
        until(page, "window.tops.length > 5")
        assert page.evaluate("window.tops.filter((top) => top < 0 || top > 400)") == []
        # What can be done with its cells is said above it.
        note = page.locator("#b-note")
        assert note.inner_text() == "Its cells run under mkdocs serve."
        say = """html => {
        const doc = frames[0].document;
        doc.querySelector("article").insertAdjacentHTML("beforeend", html);
        doc.dispatchEvent(new CustomEvent("slp:replaced", { detail: [] }));
        }"""
        page.evaluate(say, "<div class=slp-cell></div>")
        assert "from the link that the terminal shows" in note.inner_text()
        page.evaluate(say, "<div class=slp-cell><p class=slp-cell-bar></div>")
        assert "also runs those above it" in note.inner_text()
        page.evaluate(say, "<div class=slp-cell-output>done</div>")
        assert note.inner_text() == ""


@pytest.mark.slow
def test_the_keyboard_is_enough(server, browser):
    with opened(server, browser) as page:
        give(page, chapter(OURS))
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.locator("#b-title").inner_text().startswith("(8.7)")
        page.keyboard.press("k")
        assert page.locator("#b-title").inner_text().startswith("(8.6)")
        until(page, "frames[0].document.querySelectorAll('.slp-in-pdf').length === 49")
        frame = page.frame("slp-panel")
        frame.locator("#field").focus()
        page.keyboard.type("jkj")
        assert frame.locator("#field").input_value() == "jkj"
        assert page.locator("#b-title").inner_text().startswith("(8.6)")
        frame.locator("#field").evaluate("field => field.blur()")
        page.keyboard.press("j")
        assert page.locator("#b-title").inner_text().startswith("(8.7)")
        page.keyboard.press("Escape")
        assert page.locator("#b-panel").is_hidden()
        assert page.evaluate(FOCUSED).startswith("(8.7)")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator("#b-title").inner_text().startswith("(8.8)")
        page.keyboard.press("j")  # the focus goes along
        assert page.evaluate(FOCUSED).startswith("(8.9)")
        page.locator("#b-shut").click()
        page.keyboard.press("j")
        assert page.locator("#b-title").inner_text().startswith("(8.10)")
        assert page.evaluate(FOCUSED).startswith("(8.10)")
        # The theme's keys for the next page would lose the file.
        assert page.locator("link[rel=next]").count() == 0


@pytest.mark.slow
def test_words_are_found_on_all_pages_and_pages_are_drawn_as_they_are_seen(server, browser):
    with opened(server, browser) as page:
        give(page, chapter(OURS))
        until(page, "document.querySelectorAll('.b-page canvas').length")
        assert page.locator(".b-page canvas").count() < 6
        page.fill("#b-words", "as (8.50) says")
        page.keyboard.press("Enter")
        until(page, "document.getElementById('b-hits').textContent")
        assert page.locator("#b-hits").inner_text() == "1 of 1"
        assert page.input_value("#b-page") == "9"
        page.fill("#b-page", "2")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('[aria-label=\"Page 2\"] .b-text span')")
        text = page.locator('[aria-label="Page 2"] .b-text').inner_text()
        assert "the ferry leaves" in text and "(8.11)" in text


SAYS = {
    "not a PDF": (b"PK\x03\x04 something else", "is not a PDF"),
    "a password": (encrypted(), "asks for a password"),
    "a picture": (pages_of(["0 0 9 9 re f"] * 3), "These pages are pictures"),
    "another book": (chapter([f"3.{k}" for k in range(1, 30)]), "another book"),
    "damaged": (b"%PDF-1.7\nnothing at all", "is damaged"),
    "too many pages": (pages_of(["BT ET"] * 2001), "2,001 pages; a PDF may have 2,000 here"),
}


@pytest.mark.slow
def test_what_cannot_be_shown_is_said(server, browser):
    with opened(server, browser) as page:
        for name, (data, words) in SAYS.items():
            assert words in give(page, data, f"{name}.pdf"), name
        assert "another draft" in give(page, chapter([f"8.{k}" for k in range(1, 10)]))
        page.select_option("#b-draft", "2026-08")
        until(page, f"{END}.startsWith('1 of 1 equation found · Aug 2026 draft')")
        assert page.locator(".b-mark").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1440, 900), (1024, 768), (390, 844)])
def test_axe_finds_nothing_beside_an_open_pdf(size, server, browser):
    axe = pytest.importorskip("axe_playwright_python.base")
    with opened(server, browser, *size, bypass_csp=True) as page:
        give(page, chapter(OURS))
        page.locator(".b-mark").first.click()
        until(page, "frames[0].document.querySelectorAll('.slp-in-pdf').length")
        page.evaluate(axe.AXE_SCRIPT)
        for scheme in ("default", "slate"):
            page.evaluate(f"document.body.dataset.mdColorScheme = '{scheme}'")
            found = page.evaluate(
                """axe.run("#slp-book", { resultTypes: ["violations"], iframes: false,
                runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"] })"""
            )
            wrong = [(each["id"], each["nodes"][0]["target"]) for each in found["violations"]]
            assert wrong == [], scheme
        assert page.evaluate("document.getElementById('b-stage').scrollWidth <= innerWidth")


@pytest.mark.slow
def test_a_page_of_ours_may_frame_it_and_no_other(server, folder, browser):
    other = PageServer(("127.0.0.1", 0), folder)
    Thread(target=other.serve_forever, daemon=True).start()
    try:
        with browser.new_context() as context:
            page = context.new_page()
            for host, is_shown in ((server, True), (other, False)):
                page.goto(f"{host.url}next/")
                page.evaluate(
                    """url => new Promise((go) => {
                    const frame = document.createElement("iframe");
                    frame.addEventListener("load", go);
                    frame.src = url;
                    document.body.append(frame);
                    })""",
                    f"{server.url}chapters/01_x/",
                )
                assert ("A chapter" in page.frames[-1].content()) == is_shown
    finally:
        other.close()


BEAT = """() => {
  window.longest = 0;
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    window.longest = Math.max(window.longest, now - last);
    last = now;
  }, 20);
}"""


@pytest.mark.slow
def test_fifty_hostile_pdfs_freeze_nothing_run_nothing_and_ask_for_nothing(server, browser):
    with opened(server, browser) as page:
        give(page, chapter(OURS[:5]))  # pdf.js has come
        page.evaluate(BEAT)
        said, slow = {}, {}
        found = hostile()
        assert len(found) == 50
        for name, data in found.items():
            page.evaluate("window.longest = 0")
            said[name] = give(page, data, "hostile.pdf")
            page.wait_for_timeout(150)
            if (longest := page.evaluate("window.longest")) > 3000:
                slow[name] = longest
        assert all(said.values()) and not slow
        assert page.evaluate("window.hit") is None
        assert {url for url in page.asked if "elsewhere" in url} == set()
        assert give(page, chapter(OURS)).startswith("49 of 49")  # and it works as before


def test_the_vendored_reader_is_as_its_publisher_has_it():
    """Who updates it writes these down anew."""
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(VENDORED.glob("*.mjs"))
    }
    assert digests == {"pdf.min.mjs": "522ad2c83bc8a001", "pdf.worker.min.mjs": "b4c8353ded0d88d2"}
