"""The built site in a real browser: axe finds nothing, figures fit, controls do what they say.

Where no Chromium is found the tests are skipped; SLP_CHROMIUM names one.
"""

import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # one process builds it
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.base")
pdf = pytest.importorskip("pdf")  # docs/site_build, which needs Playwright

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("[0-9]*.py"))
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
TOUCHED = {"01_attention": 2, "03_one_matrix": 1, "06_decoding": 1, "14_todays_block": 1}


@pytest.fixture(scope="session")
def address(site):
    with pdf.serving(site) as found:
        yield found


@contextmanager
def opened(browser, url, size=DESK, **how):
    with browser.new_context(viewport=size, **how) as context:
        page = context.new_page()
        page.goto(url, wait_until="load")
        yield page


RULES = [
    *("color-contrast", "scrollable-region-focusable", "target-size", "link-name", "label"),
    *("button-name", "image-alt", "svg-img-alt", "role-img-alt", "aria-dialog-name", "select-name"),
    *("link-in-text-block", "empty-table-header", "label-content-name-mismatch"),
    *("landmark-one-main", "tabindex", "heading-order", "page-has-heading-one"),
]


def every_page(site):
    """The address of each page, from the top of the site."""
    found = [path.parent.relative_to(site).as_posix() for path in sorted(site.rglob("index.html"))]
    return ["" if one == "." else f"{one}/" for one in found]


def listed(site):
    """All pages, of the reference one; if SLP_AXE is set, all of those too, which takes long."""
    alike = () if "SLP_AXE" in os.environ else ("api/",)
    pages = every_page(site)
    return [one for one in pages if not one.startswith(alike) or one == "api/attention/"]


def axe_finds(page, rules):
    """What axe says of a page: the rule, how often, and where first."""
    how = {"runOnly": {"type": "rule", "values": rules}, "resultTypes": ["violations"]}
    for found in page.evaluate("how => axe.run(how)", how)["violations"]:
        where = [node["target"] for node in found["nodes"][:3]]
        yield found["id"], len(found["nodes"]), where


FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def walked(site, browser, address):
    """Pages, each loaded once: what axe says on a phone, and which widths are too narrow for it.

    On a phone most boxes scroll and targets are close together. Colors are looked at in both
    schemes, all else in one.
    """
    violations, too_wide = {}, {}
    with browser.new_context(viewport=PHONE) as context:
        page = context.new_page()
        for name in listed(site):
            page.emulate_media(color_scheme="light")
            page.set_viewport_size(PHONE)
            page.goto(address + name, wait_until="load")
            page.add_style_tag(content="* { content-visibility: visible !important; }")
            page.evaluate("dispatchEvent(new Event('resize')), new Promise(requestAnimationFrame)")
            page.evaluate(axe.AXE_SCRIPT)
            found = list(axe_finds(page, RULES))
            page.emulate_media(color_scheme="dark")
            page.wait_for_selector("body[data-md-color-scheme=slate]")
            found += [("dark", *one) for one in axe_finds(page, ["color-contrast"])]
            if found:
                violations[name] = found
            for width in (390, 1024, 1440):
                page.set_viewport_size({"width": width, "height": 900})
                try:  # what moves on a change of size needs a moment
                    page.wait_for_function(FITS, timeout=5000)
                except playwright.TimeoutError:
                    too_wide.setdefault(name, []).append(width)
    return violations, too_wide


def test_axe_finds_nothing(walked):
    assert walked[0] == {}


def test_no_page_scrolls_sideways(walked):
    assert walked[1] == {}


SMALL_LETTERS = """() => [...document.querySelectorAll(
    '.slp-figure svg text, .slp-wiring text')].filter(t => t.getClientRects().length).map(t => {
      const { a, b } = t.getScreenCTM(); // some words stand upright
      return [parseFloat(getComputedStyle(t).fontSize) * Math.hypot(a, b), t.textContent];
    }).filter(([size]) => size < (innerWidth < 720 ? 10.9 : 10))"""
WIDE_BOXES = """() => [...document.querySelectorAll('.slp-figure, .slp-drawing, .slp-map')]
    .filter(b => b.scrollWidth > b.clientWidth + 1 &&
      !(innerWidth < 720 && b.classList.contains('slp-scrolls')))
    .map(b => [b.scrollWidth, b.clientWidth, b.getAttribute('aria-label')])"""

CUT = """() => [...document.querySelectorAll('.katex-display')].filter(box => {
      box.style.contentVisibility = 'visible'; // one off the screen has no width yet
      return box.scrollWidth > box.clientWidth + 2;
    }).length"""


def test_formulas_are_broken_for_a_phone_rather_than_cut(browser, address):
    cut = {}
    for stem in CHAPTERS:
        with opened(browser, f"{address}chapters/{stem}/", PHONE) as page:
            cut[stem] = page.evaluate(CUT)
    # Three formulas in a row, three rows below each other: it scrolls, and says so.
    assert {stem: count for stem, count in cut.items() if count} == {"10_encoder_decoder": 1}


APART = """() => [...document.querySelectorAll('.slp-figure[style*="--slp-fit"]')].filter(f => {
      if (!f.clientWidth) return false; // it waits behind one that can be touched
      const [first, ...rest] = [...f.querySelectorAll(':scope > svg')].map(s =>
        s.getBoundingClientRect());
      return innerWidth > 720 && rest.some(r => r.top >= first.bottom || r.bottom <= first.top);
    }).map(f => ["one is below another", f.getAttribute('aria-label')])"""


def test_figures_fit_and_their_letters_can_be_read(browser, address):
    wrong = {}
    for name in ["", *(f"chapters/{stem}/" for stem in CHAPTERS)]:
        with opened(browser, address + name, PHONE) as page:
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
            for width in (390, 1024, 1440):
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_timeout(500)  # what moves on a change of size needs a moment
                found = [
                    *page.evaluate(SMALL_LETTERS)[:3],
                    *page.evaluate(WIDE_BOXES),
                    *page.evaluate(APART),
                ]
                wide = page.evaluate("document.documentElement.scrollWidth")
                if found or wide > width:
                    wrong[name, width] = (found, wide)
    assert not wrong


@pytest.mark.parametrize("stem", TOUCHED)
def test_figures_to_touch_answer_the_keyboard_in_words(stem, browser, address):
    with opened(browser, f"{address}chapters/{stem}/") as page:
        figures = page.locator(".slp-touch")
        assert figures.count() == TOUCHED[stem]
        for figure in figures.all():
            status = figure.locator("[role=status]")
            first = status.inner_text()
            controls = figure.locator(".slp-controls :is(select, input, button:enabled)")
            for control in controls.all():
                label = control.evaluate("c => c.labels?.[0]?.textContent || c.textContent")
                assert label.strip()
            for value in figure.locator("output").all():
                assert value.inner_text() == value.locator("+ input").input_value()
            control = controls.last
            control.focus()
            kind = control.evaluate("c => c.type")
            page.keyboard.press({"button": "Enter", "checkbox": "Space"}.get(kind, "ArrowDown"))
            page.wait_for_function("([s, t]) => s.innerText !== t", arg=[
                status.element_handle(), first
            ])  # fmt: skip
            assert not figure.locator(".slp-figure").is_visible()
        page.emulate_media(media="print")
        assert figures.first.locator(".slp-figure").is_visible()
        assert not figures.first.locator(".slp-controls").is_visible()


@pytest.mark.parametrize("stem", TOUCHED)
def test_without_javascript_a_page_is_whole(stem, browser, address):
    url = f"{address}chapters/{stem}/"
    with opened(browser, url, java_script_enabled=False) as page:
        # The page runs no script, but may be asked.
        figures = page.locator("article .slp-figure, article .slp-drawing")
        assert figures.count() and all(figure.is_visible() for figure in figures.all())
        formulas = page.locator("article :not(details *) > .katex .katex-html")
        assert formulas.count() and formulas.first.is_visible()
        assert page.locator(".slp-touch .slp-figure").count() >= TOUCHED[stem]
        assert page.locator(".slp-touch .slp-controls").count() == 0


def test_paper_has_figures_and_no_frame(browser, address):
    with opened(browser, f"{address}chapters/01_attention/", color_scheme="dark") as page:
        page.emulate_media(media="print")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.querySelector('.md-typeset')).color")
        assert sum(map(int, re.findall(r"\d+", back)[:3])) > 600
        assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 200
        assert page.locator(".slp-map .slp-lying").is_visible()
        assert not page.locator(".md-header").is_visible()


ONE_NUMBER = "article p a[href*='#eq-']:not(.eq a)"


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_number_of_an_equation_shows_it_on_hover_focus_and_tap(size, browser, address):
    url = f"{address}chapters/14_todays_block/"
    with opened(browser, url, size, has_touch=size == PHONE) as page:
        link = page.locator(ONE_NUMBER, has_text="8.36").first
        shown = page.locator(".slp-preview:popover-open")
        link.scroll_into_view_if_needed()
        link.tap() if size == PHONE else link.hover()
        shown.wait_for()
        assert page.url == url
        words = shown.inner_text()
        assert "Output of each head, all tokens" in words
        assert "8.36 in the Jan 2026 draft · 7.37 in the Aug 2026 draft" in words
        assert shown.locator(".katex-html").is_visible()
        box = shown.bounding_box()
        assert 0 <= box["x"] and box["x"] + box["width"] <= size["width"]
        assert list(axe_after(page)) == []
        page.keyboard.press("Escape")
        assert shown.count() == 0
        link.blur()
        link.focus()  # by the keyboard, which was used last
        shown.wait_for()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Chapter 3"
        page.keyboard.press("Enter")
        page.wait_for_url("**/03_one_matrix/#eq-mh-par-head")


def axe_after(page):
    page.evaluate(axe.AXE_SCRIPT)
    return axe_finds(page, RULES)


def test_the_numbers_of_one_draft_are_kept_on_all_pages(browser, address):
    with opened(browser, f"{address}equations/") as page:
        page.select_option("#slp-draft", "2026-08")
        page.wait_for_selector("html[data-draft]")
        row = page.locator(".slp-equations tr:has(#head-par)").inner_text()
        assert "7.34" in row and "8.33 ·" not in row
        page.goto(f"{address}chapters/03_one_matrix/")
        page.wait_for_selector("html[data-draft]")
        assert page.inner_text("#eq-head-par") == "head-par · 7.34"
        assert page.inner_text("#eq-QK\\^T") == "QK^T · Fig. 8.9 · Fig. 7.9"
        assert "(7.34)" in (tags := page.locator(".katex-tag").all_text_contents())
        assert "(8.33)" not in tags
        assert "(8.33)" not in page.inner_text("article")
