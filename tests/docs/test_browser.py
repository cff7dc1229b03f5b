"""The built site in a real browser: axe finds nothing, figures fit, controls do what they say.

Where no Chromium is found the tests are skipped; SLP_CHROMIUM names one.
"""

import gzip
import json
import os
import re
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from threading import Thread

import pytest
from model_stage import DEED

# One process builds the site and opens it; a built one is opened by all of them.
IS_BUILT = "SLP_SITE" in os.environ
pytestmark = [pytest.mark.slow, *([] if IS_BUILT else [pytest.mark.xdist_group("site")])]
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.base")
pdf = pytest.importorskip("pdf")  # docs/site_build, which needs Playwright
serving = pytest.importorskip("serving")  # beside it

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("[0-9]*.py"))
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
TOUCHED = {
    **{"01_attention": 4, "02_block": 2, "03_one_matrix": 1, "04_input": 1},
    **{"05_language_model": 1, "06_decoding": 2, "06b_cache": 1, "07_training": 1, "08_scale": 2},
    **{"09_inside": 2, "10_encoder_decoder": 2, "11_translation": 2, "12_guitar_tab": 1},
    **{"13_pitch_to_tab": 1, "14_todays_block": 2},
}


@pytest.fixture(scope="session")
def address(site):
    with pdf.serving(site) as found:
        yield found


SHOW_ALL = "localStorage.setItem('slp-sections', 'all')"  # what the short path leaves out as well


@contextmanager
def opened(browser, url, size=DESK, whole=True, **how):
    """A page at an address, which keeps what it has asked for."""
    with browser.new_context(viewport=size, **how) as context:
        if whole:
            context.add_init_script(SHOW_ALL)
        page = context.new_page()
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(url, wait_until="load")
        yield page


@pytest.mark.parametrize("name", ["hear/", "fingering/", "chapters/01_attention/"])
def test_what_the_server_forbids_no_page_of_ours_needs(name, site, browser):
    with serving.PageServer(("127.0.0.1", 0), site) as server, browser.new_context() as context:
        Thread(target=server.serve_forever, daemon=True).start()
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.goto(server.url + name)
        page.evaluate(DEED)
        if not name.startswith("chapters"):
            page.wait_for_selector("#slp-hear[data-drawn=yes]", timeout=60_000)
        if name == "hear/":
            page.click("#slp-hear-play")
            page.wait_for_selector("#slp-hear[data-position]", timeout=60_000)
        assert [text for text in said if "Content Security Policy" in text] == []
        page.close()
        server.close()


RULES = [
    *("color-contrast", "scrollable-region-focusable", "target-size", "link-name", "label"),
    *("button-name", "image-alt", "svg-img-alt", "role-img-alt", "aria-dialog-name", "select-name"),
    *("link-in-text-block", "empty-table-header", "label-content-name-mismatch"),
    *("landmark-one-main", "tabindex"),
]


def every_page(site):
    """The address of each page, from the top of the site."""
    found = [path.parent.relative_to(site).as_posix() for path in sorted(site.rglob("index.html"))]
    return ["" if one == "." else f"{one}/" for one in found]


def listed(site):
    """All pages, of the reference one; if SLP_AXE is set, all of those too, which takes long."""
    alike = () if "SLP_AXE" in os.environ else ("api/",)
    pages = every_page(site)
    pages = [one for one in pages if not one.startswith(alike) or one == "api/attention/"]
    return [*pages, "404.html"]


def axe_finds(page, rules, part="document"):
    """What axe says of a page or of a part: the rule, how often, and where first."""
    how = {"runOnly": {"type": "rule", "values": rules}, "resultTypes": ["violations"]}
    for found in page.evaluate(f"how => axe.run({part}, how)", how)["violations"]:
        where = [node["target"] for node in found["nodes"][:3]]
        yield found["id"], len(found["nodes"]), where


# Marks the first text of each look that is not known yet: contrast, most of axe's time, is the same
# for those that look alike, on whatever page.
LOOKS = """known => {
  const behind = new Map(), seen = new Set(known), first = new Map();
  const look = (e) => { // the surfaces that a text lies on
    if (!e) return "";
    if (!behind.has(e)) {
      const s = getComputedStyle(e), special = [s.backgroundImage, s.opacity, s.filter].join();
      const own = [s.backgroundColor, special, s.mixBlendMode, s.position];
      const plain = "rgba(0, 0, 0, 0),none,1,none,normal,static";
      behind.set(e, look(e.parentElement) + (own.join() === plain ? "" : own.join()));
    }
    return behind.get(e);
  };
  for (const e of document.body.querySelectorAll("*")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const s = getComputedStyle(e), { color, fill, fontSize, fontWeight, textShadow } = s;
    const key = [look(e), color, fill, fontSize, fontWeight, textShadow].join();
    if (!seen.has(key)) first.set(key, first.get(key) ?? e);
  }
  for (const e of document.querySelectorAll("[data-new-look]")) e.removeAttribute("data-new-look");
  for (const e of first.values()) e.setAttribute("data-new-look", "");
  return [...first.keys()];
}"""
CONTRAST = ["color-contrast"]
OF_NEW_LOOKS = "axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-new-look]' }] })"


def mark_new_looks(page, known):
    """Mark the texts that look like none before, which are then known, and return how many."""
    new = page.evaluate(LOOKS, [*known])
    known |= set(new)
    return len(new)


def look_at_all_boxes(page):
    """Have a page look at what is far from the screen, too, as it does at a reader's first key."""
    page.keyboard.press("Shift")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.mark.parametrize("half", [0, 1])
def test_axe_finds_nothing_and_no_page_scrolls_sideways(half, site, browser, address):
    """Pages, each loaded once: what axe says on a phone, and which widths are too narrow for it.

    On a phone most boxes scroll and targets are close together. Colors are looked at in both
    schemes, all else in one. Two processes share the pages.
    """
    violations, too_wide, light, dark = {}, {}, set(), set()
    with browser.new_context(viewport=PHONE) as context:
        context.add_init_script(SHOW_ALL)
        page = context.new_page()
        for name in listed(site)[half::2]:
            page.emulate_media(color_scheme="light")
            page.set_viewport_size(PHONE)
            page.goto(address + name, wait_until="load")
            finished = "* { content-visibility: visible !important; transition: none !important; }"
            page.add_style_tag(content=finished)
            look_at_all_boxes(page)
            page.evaluate(axe.AXE_SCRIPT)
            page.evaluate(OF_NEW_LOOKS)
            mark_new_looks(page, light)
            found = list(axe_finds(page, RULES))  # at once: axe looks at places but once
            page.emulate_media(color_scheme="dark")
            page.wait_for_selector("body[data-md-color-scheme=slate]")
            if mark_new_looks(page, dark):
                found += [("dark", *one) for one in axe_finds(page, CONTRAST)]
            if found:
                violations[name] = found
            for width in (390, 1024, 1440):
                page.set_viewport_size({"width": width, "height": 900})
                try:  # what moves on a change of size needs a moment
                    page.wait_for_function(FITS, timeout=30_000)
                except playwright.TimeoutError:
                    too_wide.setdefault(name, []).append(width)
    assert not violations
    assert not too_wide


def test_keys_reach_what_scrolls_before_a_page_s_script_has_come(browser, address):
    found = {}
    with browser.new_context(viewport=PHONE) as context:
        page = context.new_page()
        page.route("**/assets/**/*.js", lambda route: route.abort())
        for name in ("hear/", "fingering/", "write/", "break-it/", "model/"):
            page.goto(address + name, wait_until="load")
            page.evaluate(axe.AXE_SCRIPT)
            found[name] = list(axe_finds(page, ["scrollable-region-focusable"]))
    assert not {name: said for name, said in found.items() if said}


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


APART = """() => [...document.querySelectorAll('.slp-figure[style*="--slp-fit"]')].filter(f => {
      if (!f.clientWidth) return false; // it waits behind one that can be touched
      const [first, ...rest] = [...f.querySelectorAll(':scope > svg')].map(s =>
        s.getBoundingClientRect());
      return innerWidth > 720 && rest.some(r => r.top >= first.bottom || r.bottom <= first.top);
    }).map(f => ["one is below another", f.getAttribute('aria-label')])"""


@pytest.mark.parametrize("name", ["", *(f"chapters/{stem}/" for stem in CHAPTERS)])
def test_figures_fit_their_letters_can_be_read_and_formulas_are_broken(name, browser, address):
    wrong = {}
    with opened(browser, address + name, PHONE) as page:
        cut = page.evaluate(CUT)
        compared = page.locator('.slp-figure[style*="--slp-fit"]').count()
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        look_at_all_boxes(page)
        for width in (390, 1024, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(500)  # what moves on a change of size needs a moment
            found = [found for look in (WIDE_BOXES, APART) for found in page.evaluate(look)]
            found += page.evaluate(SMALL_LETTERS)[:3]
            wide = page.evaluate("document.documentElement.scrollWidth")
            if found or wide > width:
                wrong[width] = (found, wide)
    assert not wrong
    # Three formulas in a row, three rows below each other: it scrolls, and says so.
    assert cut == (name == "chapters/10_encoder_decoder/")
    assert compared >= 3 or name != "chapters/09_inside/", "what is to be compared is side by side"


CODE_CUT = """() => [...document.querySelectorAll('article pre > code')].filter(code => {
      code.style.contentVisibility = 'visible'; // one off the screen has no width yet
      return code.scrollWidth > code.clientWidth + 1;
    }).map(code => code.textContent.slice(0, 60))"""


@pytest.mark.parametrize(
    "name", ["chapters/02_block/", "chapters/06_decoding/", "tests/", "reuse/", "api/attention/"]
)
def test_code_is_as_wide_as_its_box_on_a_desk(name, browser, address):
    with opened(browser, address + name) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert page.evaluate(CODE_CUT) == []


def test_the_whole_leads_to_an_equation_its_code_and_its_test(browser, address):
    with opened(browser, address) as page:
        assert page.locator(".slp-map svg:visible").count() == 1
        page.locator(".slp-lying a[aria-label^='multi-head attention']").click()
        page.wait_for_url("**/03_one_matrix/#eq-mh-par-out")
        label = page.locator("#eq-mh-par-out + .slp-ways-on")
        assert label.get_by_text("test").count() == label.get_by_text("code").count() == 1
        label.get_by_text("test").click()
        page.wait_for_url("**/tests/#test_*")


@pytest.mark.parametrize(
    ("column", "there"),
    [
        ("Chapter", "**/chapters/03_one_matrix/#eq-head-par"),
        ("Code", "**/api/attention/#slp_transformer.attention.attention"),
        ("Tests", "**/tests/#test_head_par*"),
    ],
)
def test_who_has_8_33_reaches_it_its_code_and_its_test_in_two_clicks(
    column, there, browser, address
):
    with opened(browser, address) as page:
        page.locator(".md-tabs").get_by_role("link", name="Equations").click()
        page.locator(".slp-equations th").first.wait_for()
        place = page.locator(".slp-equations th").all_inner_texts().index(column) + 1
        row = page.locator(".slp-equations tr:has(#head-par)")
        assert "8.33" in row.inner_text()
        row.locator(f"td:nth-child({place}) a").first.click()
        page.wait_for_url(there)
        anchor = page.url.partition("#")[2]
        assert 0 <= page.locator(f"[id='{anchor}']").bounding_box()["y"] < DESK["height"]


STEPS = """figure => {
      const at = figure.querySelector(".slp-controls :is(input, select)");
      const place = figure.querySelector(".slp-touched");
      const states = JSON.parse(figure.dataset.values), seen = [], first = at.value;
      const go = (k) => {
        at.value = k;
        at.dispatchEvent(new Event(at.options ? "change" : "input"));
      };
      states.labels.forEach((label, k) => {
        go(k);
        const shown = at.options ? at.selectedOptions[0].text : at.previousSibling.textContent;
        seen.push([shown, figure.querySelector("[role=status]").textContent,
          place.firstChild.getAttribute("aria-label"), place.innerHTML.length > 500,
          place.scrollWidth <= place.clientWidth + 1]);
      });
      go(first);
      return [states, seen];
    }"""


def assert_each_step_has_a_figure_that_fits_and_a_sentence(page):
    figures = page.locator(".slp-touch[data-kind=steps]").all()
    for size, figure in product((PHONE, DESK), figures):
        page.set_viewport_size(size)
        figure.scroll_into_view_if_needed()
        states, seen = figure.evaluate(STEPS)
        told = states["said"]
        assert seen == [
            [label, said, said, True, True]
            for label, said in zip(states["labels"], told, strict=True)
        ]
        assert all(one != after for one, after in pairwise(told))


@pytest.mark.parametrize("stem", TOUCHED)
def test_figures_to_touch_fit_at_each_step_and_answer_the_keyboard_in_words(stem, browser, address):
    with opened(browser, f"{address}chapters/{stem}/", PHONE) as page:
        assert_each_step_has_a_figure_that_fits_and_a_sentence(page)
        page.set_viewport_size(DESK)
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
                slider = value.locator("+ input")
                assert value.inner_text() == slider.get_attribute("aria-valuetext")
                assert slider.bounding_box()["height"] >= 24
            control = controls.last
            control.focus()
            kind = control.evaluate("c => c.type")
            key = "ArrowDown" if control.input_value() != "0" or kind != "range" else "ArrowUp"
            page.keyboard.press({"checkbox": "Space"}.get(kind, key))
            page.wait_for_function("([s, t]) => s.innerText !== t", arg=[
                status.element_handle(), first
            ])  # fmt: skip
            assert not figure.locator("> .slp-figure").is_visible()
        page.emulate_media(media="print")
        assert figures.first.locator("> .slp-figure").is_visible()
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


def test_the_search_fetches_its_index_when_it_is_wanted(browser, address):
    with opened(browser, address) as page:
        page.wait_for_load_state("networkidle")
        assert not [url for url in page.asked if "search" in url and url.endswith(".json")]
        page.keyboard.press("/")
        page.keyboard.type("perplexity")
        page.wait_for_selector(".slp-search-box a[href*='07_training']")
        assert len([url for url in page.asked if url.endswith("search.json")]) == 1
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/07_training/#perplexity")


def test_who_comes_to_a_page_that_is_missing_can_search(browser, address):
    with opened(browser, f"{address}404.html") as page:
        page.click(".slp-search-open")
        page.keyboard.type("perplexity")
        page.wait_for_selector(".slp-search-box a[href*='07_training']")


@pytest.mark.parametrize("width", [390, 768, 1024, 1280])
def test_no_column_of_the_equations_stands_off_the_screen(browser, address, width):
    with opened(browser, f"{address}equations/", {"width": width, "height": 844}) as page:
        room = page.locator(".slp-equations").bounding_box()
        for cell in page.locator(".slp-equations tbody tr:first-child td").all():
            at = cell.bounding_box()
            assert room["x"] <= at["x"] and at["x"] + at["width"] <= room["x"] + room["width"] + 1


def test_the_search_works_offline_once_it_has_worked(browser, address):
    with opened(browser, address) as page:
        page.click(".slp-search-open")
        page.fill(".slp-search-box input", "equation 8.20")
        page.wait_for_selector(".slp-search-box a[href$='01_attention/#eq-mh-def']")
        page.keyboard.press("Escape")
        page.goto(f"{address}notation/")
        page.context.set_offline(True)
        page.click(".slp-search-open")
        page.fill(".slp-search-box input", "atention")
        page.wait_for_selector(".slp-search-box a[href*='01_attention']")


def test_the_search_says_that_it_is_offline(browser, address):
    with opened(browser, address) as page:
        page.context.set_offline(True)
        page.click(".slp-search-open")
        page.fill(".slp-search-box input", "softmax")
        page.get_by_text("are you offline?").wait_for()


def test_drawings_and_the_buttons_of_code_come_with_the_screen(browser, address):
    with opened(browser, f"{address}chapters/11_translation/") as page:
        drawing = page.locator("#fig-11-5 svg")
        assert page.locator("meta[name=color-scheme]").count() == 1
        drawn = "e => e.checkVisibility({ contentVisibilityAuto: true })"
        assert not drawing.locator("rect").first.evaluate(drawn)
        size = drawing.bounding_box()
        drawing.scroll_into_view_if_needed()
        first = drawing.locator("rect").first.element_handle()
        page.wait_for_function(drawn, arg=first)
        after = drawing.bounding_box()
        assert (after["width"], after["height"]) == (size["width"], size["height"])
        code = page.locator(".slp-chapter > .highlight pre").last
        assert code.locator("button").count() == 0
        code.scroll_into_view_if_needed()
        code.locator("button").wait_for()


def test_boxes_that_scroll_are_reached_by_the_keyboard_and_others_are_not(browser, address):
    wrong = """() => [...document.querySelectorAll(
        '.slp-text, .slp-figure, .slp-wide, .katex-display')].filter(b =>
          (b.scrollWidth > b.clientWidth + 1) !== (b.tabIndex === 0))"""
    with opened(browser, f"{address}chapters/03_one_matrix/", PHONE) as page:
        near = f"({wrong})().filter(b => b.getBoundingClientRect().top < innerHeight).length"
        assert page.evaluate(near) == 0
        page.keyboard.press("Tab")  # all of them, as soon as somebody may come to them
        page.evaluate("new Promise(requestAnimationFrame)")
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate(f"({wrong})().length") == 0


def test_paper_has_figures_and_no_frame(browser, address):
    with opened(browser, f"{address}chapters/01_attention/", color_scheme="dark") as page:
        page.emulate_media(media="print")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.querySelector('.md-typeset')).color")
        assert sum(map(int, re.findall(r"\d+", back)[:3])) > 600
        assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 200
        assert page.locator(".slp-map .slp-lying").is_visible()
        assert not page.locator(".md-header").is_visible()


FONTS = """[...document.fonts].filter((one) => /KaTeX/.test(one.family) && one.status === "loaded")
    .map((one) => [one.family.replaceAll('"', ""), one.style, one.weight].join(" "))"""


@pytest.mark.parametrize(
    "name", ["chapters/01_attention/", "chapters/13_pitch_to_tab/", "equations/"]
)
def test_what_is_printed_before_it_was_on_the_screen_has_all_its_letters(name, browser, address):
    with opened(browser, f"{address}{name}") as page:
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(1000)
        at_once = set(page.evaluate(FONTS))
        page.add_style_tag(content="* { content-visibility: visible !important }")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(500)
        needed = {"KaTeX_Main normal 400", "KaTeX_Math italic 400"}
        if name == "chapters/01_attention/":
            needed.add("KaTeX_Size2 normal 400")  # of large sums
        assert at_once == set(page.evaluate(FONTS)) >= needed


@pytest.mark.parametrize("name", ["break-it/", "chapters/07_training/", "model/", "write/"])
def test_what_is_folded_is_open_on_paper_and_closed_after(name, browser, address):
    closed = "article details:not([open], .slp-map-small, .mkdocstrings-source)"
    with opened(browser, f"{address}{name}", whole=False) as page:
        before = page.locator(closed).count()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(closed).count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator(closed).count() == before


def test_a_chapter_is_printed_on_white_with_its_answers_at_the_back(browser, address, tmp_path):
    names = ["01_attention", "02_block"]
    with opened(browser, f"{address}chapters/{names[1]}/") as page:
        page.emulate_media(media="print")
        before, text = page.inner_html("article"), page.text_content("article")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        answers, last = page.locator(".slp-back details"), "article > :last-child"
        assert answers.count() == before.count("<details><summary>") + before.count("slp-solution")
        assert page.locator(last).get_attribute("class") == "slp-back"
        assert page.locator(".slp-back h4").all_inner_texts()[:2] == ["Try it 1", "Try it 2"]
        assert answers.last.is_visible()
        color = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(color) == "rgb(255, 255, 255)"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.text_content("article") == text and page.locator(".slp-solution").count()
        pdf.print_chapters(page, address, names, tmp_path)
        assert page.locator("article > .slp-chapter").count() == 2
    sizes = {path.stem: len(path.read_bytes()) for path in sorted(tmp_path.glob("*.pdf"))}
    assert list(sizes) == [*names, "all"] and sizes["all"] > max(map(sizes.get, names)) > 100_000


def test_a_long_call_that_draws_is_folded_with_its_first_line_and_printed_whole(browser, address):
    with opened(browser, f"{address}chapters/03_one_matrix/") as page:
        first_heading = page.locator("article h2").first.bounding_box()["y"]
        modules = page.locator(".slp-links a[href*='/api/']")
        assert modules.first.bounding_box()["y"] > first_heading  # below what is read
        fold = page.locator(".slp-fold").first
        code = fold.locator("pre code")
        assert fold.locator("summary").inner_text() == "plotting.panels(…)"
        assert not code.is_visible()
        fold.locator("summary").press("Enter")
        code.wait_for(state="visible")
        assert code.text_content().startswith("plotting.panels(")
        fold.locator("summary").press("Enter")
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert code.is_visible() and not fold.locator("summary").is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert fold.get_attribute("open") is None


def test_what_the_short_path_leaves_out_is_folded_until_somebody_wants_it(browser, address):
    url, shown = f"{address}chapters/01_attention/", "details.slp-more[open]"
    with opened(browser, url, whole=False) as page:
        folds, label = page.locator("details.slp-more").count(), page.locator("#eq-score-unscaled")
        assert folds >= 4 and page.locator(shown).count() == 0 and not label.is_visible()
        page.locator(".slp-rest summary").click()
        hours = page.locator(".slp-path").inner_text()
        assert re.match(r"Short path · \d+ min\s*All · \d+ min", hours)
        assert "The short path goes on with 2 · " in hours
        page.evaluate("location.hash = '#eq-score-unscaled'")
        label.wait_for(state="visible")
        assert page.locator(shown).count() == 1
        assert 0 <= label.bounding_box()["y"] < DESK["height"]
        page.get_by_role("button", name="All ·").click()
        assert page.locator(shown).count() == folds
        page.goto(url.replace("01_attention", "02_block"))
        assert page.get_by_role("button", name="All ·", pressed=True).count() == 1
        assert page.locator(shown).count() == page.locator("details.slp-more").count() > 0
        page.get_by_role("button", name="Short path ·").click()
        page.evaluate("localStorage.setItem('slp-draft', '2026-08')")  # it alone has SwiGLU
        page.reload()
        assert page.locator(shown).count() == 1 and page.locator("#eq-swiglu").is_visible()
        page.evaluate("localStorage.removeItem('slp-draft')")
        page.goto(f"{url}#eight-steps-for-one-token")
        assert page.locator(shown).count() == 0
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(shown).count() == folds
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator(shown).count() == 0
        made = "Object.assign(document.createElement('details'), { className: 'slp-more' })"
        new = f"document.dispatchEvent(new CustomEvent('slp:replaced', {{ detail: [{made}] }}))"
        page.evaluate(new)  # as a server tells of a block that it has replaced
        assert page.locator(shown).count() == 0


def test_a_tab_of_a_chapter_is_drawn_below_it_when_asked_for(browser, address):
    with opened(browser, f"{address}chapters/13_pitch_to_tab/", PHONE) as page:
        assert not page.locator("#slp-hear").is_visible()
        assert not [url for url in page.asked if "alphaTab" in url]
        page.get_by_role("button", name="Hear it").first.click()
        page.wait_for_selector("#slp-hear[data-drawn=yes]", timeout=90_000)
        # alphaTab draws a line once it is in sight
        page.locator(".slp-text + .slp-hear-this + #slp-hear svg").first.wait_for()
        assert page.evaluate(FITS)
        assert list(axe_after(page, "#slp-hear")) == []


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
        assert list(axe_after(page, ".slp-preview")) == []
        page.keyboard.press("Escape")
        assert shown.count() == 0
        link.blur()
        link.focus()  # by the keyboard, which was used last
        shown.wait_for()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Chapter 3"
        page.keyboard.press("Enter")
        page.wait_for_url("**/03_one_matrix/#eq-mh-par-head")


@pytest.mark.parametrize(
    ("link", "words"),
    [(".slp-symbol >> nth=0", "Notation"), ("p a[href='#fig-weights-to-choose']", "Figure 1.")],
)
def test_symbols_and_figures_are_shown_where_they_are_named(link, words, browser, address):
    with opened(browser, f"{address}chapters/01_attention/") as page:
        link = page.locator(link)
        link.scroll_into_view_if_needed()
        link.hover()
        shown = page.locator(".slp-preview:popover-open")
        shown.wait_for()
        assert words in shown.inner_text()
        assert shown.locator("svg, .katex-html").first.is_visible()
        assert list(axe_after(page, ".slp-preview")) == []
        if words == "Notation":
            page.keyboard.press("Escape")
            link.click()
            page.wait_for_url("**/notation/#symbol-*")
            assert page.locator(f"[id='{page.url.partition('#')[2]}']").count() == 1


def axe_after(page, part):
    """What axe says of a part that has come; it says nothing of the page before that, see above."""
    assert page.locator(part).count() == 1
    page.evaluate(axe.AXE_SCRIPT)
    return axe_finds(page, RULES, json.dumps(part))


def test_the_links_of_a_preview_lead_somewhere(site):
    shown = json.loads((site / "previews.json").read_text(encoding="utf-8"))["equations"]
    for slug, equation in shown.items():
        for _, url in equation["links"]:
            path, _, anchor = url.partition("#")
            html = (site / path / "index.html").read_text("utf-8")
            assert f'id="{anchor or "__drawer"}"' in html, slug
    assert len(gzip.compress((site / "previews.json").read_bytes())) < 40_000


def test_who_arrives_at_an_equation_sees_its_picture_above_it(browser, address):
    with opened(browser, f"{address}chapters/03_one_matrix/#eq-head-par") as page:
        page.wait_for_timeout(500)
        for what in ("#fig-wiring-head-par", "#eq-head-par"):
            box = page.locator(what).bounding_box()
            assert 0 <= box["y"] and box["y"] + box["height"] <= DESK["height"]
        figure = page.locator("figure:has(+ p > #eq-head-par), figure:has(+ p #eq-head-par)")
        assert figure.locator(".slp-wiring").count() == 1
        assert re.match(r"Figure 3\.\d+\. ", figure.locator("figcaption").inner_text())


def test_the_first_screen_s_fonts_are_there_at_once(browser, address):
    with opened(browser, f"{address}chapters/01_attention/") as page:
        faces = "[...document.fonts].filter(f => f.status === 'loaded').map(f => f.style)"
        assert {"normal", "italic"} <= set(page.evaluate(faces))
        assert page.locator("link[rel=preload][as=font]").count() == 2


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_first_screen_has_the_way_in_and_a_picture_that_moves_once(size, browser, address):
    with opened(browser, address, size) as page:
        page.evaluate("document.fonts.ready.then(() => true)")  # others have other widths
        for what in (".slp-start", ".slp-looking svg"):
            box = page.locator(what).bounding_box()
            assert box["y"] + box["height"] <= size["height"], what
        first, last = page.locator(".l-arcs").first, page.locator(".l-arcs").last
        opacity = "e => Number(getComputedStyle(e).opacity)"
        ends = page.evaluate(
            "[...document.querySelectorAll('.l-arcs')].flatMap((e) => e.getAnimations())"
            ".map((each) => each.effect.getComputedTiming().endTime)"
        )
        assert 0 < max(ends) <= 5000  # what WCAG gives what cannot be stopped
        page.wait_for_function(
            "getComputedStyle([...document.querySelectorAll('.l-arcs')].at(-1)).opacity === '1'"
        )
        assert first.evaluate(opacity) == 0
        page.locator(".l-row > text").nth(2).hover()
        assert [e.evaluate(opacity) for e in page.locator(".l-arcs").all()].index(1) == 2
        assert last.evaluate(opacity) == 0
        page.locator(".slp-start").click()
        page.wait_for_url("**/chapters/01_attention/")


@pytest.mark.parametrize("how", [{"reduced_motion": "reduce"}, {"media": "print"}], ids=str)
def test_the_first_picture_rests_for_who_wants_no_motion_and_on_paper(how, browser, address):
    with opened(browser, address) as page:
        page.emulate_media(**how)
        seen = "arcs => arcs.map(e => getComputedStyle(e).opacity)"
        assert page.locator(".l-arcs").evaluate_all(seen) == ["0"] * 7 + ["1"]


def test_the_index_is_filtered_by_number_symbol_words_and_chapter(browser, address):
    with opened(browser, f"{address}equations/") as page:
        rows = page.locator(".slp-equations tbody tr:visible code[id]")

        def left(words="", chapter=""):
            page.fill("#slp-filter-words", words)
            page.select_option("#slp-filter-chapter", chapter)
            return rows.evaluate_all("codes => codes.map(code => code.id)")

        whole = len(left())
        assert left("8.33") == left("7.34") == ["head-par"]
        assert "ce" in left("cross-entropy") and {"ln", "ln-hat"} <= set(left("σ"))
        assert left("loss", "08_scale") == ["L(N)", "L(D)", "L(C)"]
        assert page.inner_text("#slp-filter-count") == f"3 of {whole}"


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


def test_what_is_read_is_remembered_and_the_label_lies_over_no_text(browser, address):
    with opened(browser, f"{address}chapters/01_attention/", PHONE) as page:
        label = page.locator(".md-header .slp-left")
        first = label.inner_text()
        assert re.fullmatch(r"\d\d min left", first)
        page.evaluate("document.querySelector('#one-head').scrollIntoView()")
        page.wait_for_function(f"document.querySelector('.slp-left').textContent !== '{first}'")
        assert page.evaluate(FITS)
        page.goto(address)
        card = page.locator(".slp-cards a").first
        share = float(card.evaluate("c => parseFloat(c.style.getPropertyValue('--read'))"))
        assert 20 < share < 80 and f", {share:.0f} % read" in card.inner_text()
        # nothing is painted over the line of color
        assert card.evaluate("c => getComputedStyle(c).boxShadow") == "none"
        page.goto(f"{address}chapters/01_attention/")
        page.wait_for_selector(".slp-left a[href]")
        assert label.inner_text().startswith("Go on at “")


def test_no_link_leads_nowhere_and_keys_are_soon_at_a_chapter_s_text(browser, address):
    with opened(browser, f"{address}chapters/01_attention/") as page:
        page.wait_for_selector(".slp-left:not(:empty)")
        assert page.locator("a:not([href])").count() == 0
        seen = page.evaluate(
            """() => [...document.querySelectorAll(
            "a[href], button, input, select, summary, [tabindex]")].filter((one) =>
            one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }))
            .findIndex((one) => one.closest("article"))"""
        )
        assert 0 < seen < 40


# Of each cell its least contrast, as WCAG counts it: the color over the page's.
CONTRAST_OF_CELLS = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const light = (colors) => {
    for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
    const part = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(part);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = getComputedStyle(document.body).backgroundColor;
  return [...document.querySelectorAll(".slp-alpha td")].map((cell) => {
    const { color, backgroundColor } = getComputedStyle(cell);
    const [ink, paper] = [light([color]), light([page, backgroundColor])];
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }).filter((one) => one < 4.5);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colors_of_a_mistake_s_weights_let_their_numbers_be_read(scheme, browser, address):
    with opened(browser, f"{address}break-it/", color_scheme=scheme) as page:
        page.evaluate(
            "document.querySelectorAll('article details').forEach((d) => { d.open = true })"
        )
        assert page.locator(".slp-alpha td").count() > 100
        assert page.evaluate(CONTRAST_OF_CELLS) == []


@pytest.mark.parametrize("name", ["model/", "write/", "break-it/", "hear/", "fingering/"])
def test_without_javascript_a_live_page_says_so(name, browser, address):
    with opened(browser, f"{address}{name}", java_script_enabled=False, whole=False) as page:
        said = page.locator("noscript strong").first
        assert said.is_visible() and "needs JavaScript" in said.inner_text()


@pytest.mark.parametrize("name", ["model/", "write/", "break-it/", "hear/", "fingering/"])
def test_live_pages_have_one_layout_and_begin_on_the_first_screen(name, browser, address):
    with opened(browser, f"{address}{name}", whole=False) as page:
        assert round(page.locator("article h1").bounding_box()["x"]) == 86
    what = {"hear/": "#slp-hear-play", "write/": ".w-next button"}.get(name)
    for size in (PHONE, DESK) if what else ():
        with opened(browser, f"{address}{name}", size, whole=False) as page:
            page.locator(what).first.wait_for()
            box = page.locator(what).first.bounding_box()
            assert box["y"] + box["height"] <= size["height"]


@pytest.mark.parametrize("stem", ["01_attention", "06_decoding", "13_pitch_to_tab"])
def test_the_first_screen_of_a_chapter_has_its_first_sentence(stem, browser, address):
    with opened(browser, f"{address}chapters/{stem}/", {"width": 1440, "height": 900}) as page:
        box = page.locator("article .slp-chapter h2 ~ p").first.bounding_box()
        assert box["y"] + 20 <= 900


def test_what_scripts_show_has_its_place_before_the_theme_s_own_has_come(browser, address):
    page = browser.new_page(viewport=PHONE)
    page.route("**/bundle.*.js", lambda route: route.abort())
    page.goto(f"{address}chapters/01_attention/")
    assert page.locator(".slp-lengths").is_visible()  # else all below it moves
    page.close()


STOPS = """() => { const article = document.querySelector("article");
    return [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")]
        .filter((e) => e.tabIndex >= 0 && (e.type !== "radio" || e.checked) &&
            e.checkVisibility({ visibilityProperty: true }) &&
            e.compareDocumentPosition(article) & Node.DOCUMENT_POSITION_FOLLOWING).length }"""


@pytest.mark.parametrize("stem", ["01_attention", "03_one_matrix", "06_decoding"])
def test_a_keyboard_is_soon_at_the_article(stem, browser, address):
    with opened(browser, f"{address}chapters/{stem}/", {"width": 1440, "height": 900}) as page:
        assert page.evaluate(STOPS) < 40


UNNAMED = """() => [...document.querySelectorAll("nav, aside, section[aria-label], [role=region]")]
    .filter(l => l.getClientRects().length && l.closest("article") &&
      !l.getAttribute("aria-label") && !l.getAttribute("aria-labelledby"))
    .map(l => l.outerHTML.slice(0, 80))"""
HIDDEN_STOPS = """() => [...document.querySelectorAll("a[href], button, select, [tabindex]")]
    .filter(e => e.tabIndex >= 0 && e.getClientRects().length && e.offsetHeight === 0 &&
      getComputedStyle(e).visibility !== "hidden").map(e => e.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("stem", ["07_training", "10_encoder_decoder", "14_todays_block"])
def test_fewer_than_forty_stops_of_the_keyboard_come_before_a_chapter(stem, browser, address):
    with opened(browser, f"{address}chapters/{stem}/") as page:
        within = "document.activeElement.closest('article') !== null"
        page.keyboard.press("Tab")
        stops = 0
        while not page.evaluate(within) and stops < 60:
            page.keyboard.press("Tab")
            stops += 1
        assert 20 < stops < 40


@pytest.mark.parametrize(
    "name", ["", "chapters/03_one_matrix/", "api/attention/", "hear/", "fingering/"]
)
def test_landmarks_have_names_and_stops_of_the_keyboard_a_height(name, browser, address):
    with opened(browser, address + name) as page:
        page.wait_for_timeout(500)  # the theme adds to each block of code
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(HIDDEN_STOPS) == []
