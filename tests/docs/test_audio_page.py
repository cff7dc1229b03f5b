"""The page "Hear it": its pieces are what it says, and a browser draws and plays them."""

import functools
import html
import json
import re
import shutil
from pathlib import Path

import model_pages
import pytest

from slp_guitar import compute_playable_share
from slp_guitar.formats.alphatex import parse_alphatex_tabs

pytest.importorskip("mkdocs", reason="the site needs the docs extra")

ROOT = Path(__file__).parents[2]


ASSETS = ROOT / "docs" / "assets" / "alphatab"


@functools.cache
def heard():
    return model_pages.pieces(ROOT)


def test_every_piece_can_be_played_and_stands_there_as_text():
    stage = model_pages.stage(heard(), "assets/")
    shown = re.search(r'id="slp-hear-pieces">(.*?)</script>', stage)[1]
    for piece, data in zip(heard(), json.loads(shown), strict=True):
        (tab,), problems = parse_alphatex_tabs(data["tex"])
        assert problems == [] and tab.title == " ".join(piece.tab.title.split())
        assert [e.notes for e in tab.iter_events()] == [e.notes for e in piece.tab.iter_events()]
        assert compute_playable_share(tab.iter_events()) == 1.0
    texts = [html.unescape(text) for text in re.findall(r"<pre[^>]*>(.*?)</pre>", stage, re.DOTALL)]
    assert texts[0] == texts[1]  # the first stands in place of its score, too, until that is drawn
    assert len(texts[1:]) == len(heard()) and all("tuning: " in text for text in texts)
    assert stage.count("<button") == len(heard()) + 3  # Play, Stop, Print


def test_pieces_in_one_meter_come_first():
    steady = [len({bar.steps for bar in piece.tab.bars[1:-1]}) == 1 for piece in heard()]
    assert steady[0] and steady == sorted(steady, reverse=True)


def test_the_generated_piece_is_the_kept_sample():
    sample = (ROOT / "benchmarks" / "results" / "guitar_lm" / "sample.txt").read_text(
        encoding="utf-8"
    )
    frets = sum(len(re.findall(r"\d+", line)) for line in sample.splitlines() if "|" in line)
    (written,) = [piece.tab for piece in heard() if piece.name == "A model's piece"]
    assert sum(len(event.notes) for event in written.iter_events()) == frets
    assert written.steps_per_quarter == 4


def test_what_is_fetched_has_its_license_and_is_no_larger_than_the_page_says():
    sizes = {path.name: path.stat().st_size for path in ASSETS.iterdir()}
    assert set(sizes) == {
        "alphaTab.min.js", "Bravura.woff2", "sonivox.sf3", "hear.js", "LICENSE.txt",
    }  # fmt: skip
    assert sum(sizes.values()) < 2_600_000
    licences = (ASSETS / "LICENSE.txt").read_text(encoding="utf-8")
    for name in ("Mozilla Public License", "SIL OPEN FONT LICENSE", "Apache License"):
        assert name in licences
    assert "http" not in (ASSETS / "hear.js").read_text(encoding="utf-8")


@pytest.fixture
def served(tmp_path):
    """The stage as a page of its own, at an address on this machine."""
    stage = model_pages.stage(heard(), "alphatab/").replace('href="/', 'href="')
    shutil.copy(ASSETS.parent / "site.css", tmp_path)
    script = '<link rel="stylesheet" href="site.css"><script src="alphatab/hear.js" defer></script>'
    page = f"<!doctype html><meta charset=utf-8><title>x</title>{script}{stage}"
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    shutil.copytree(ASSETS, tmp_path / "alphatab")
    (tmp_path / "model").mkdir()
    for name in ("tab.js", "text_tab.js", "refusals.js"):
        shutil.copy(ASSETS.parent / "model" / name, tmp_path / "model")
    constants = model_pages.constants.as_module()
    (tmp_path / "model" / "constants.js").write_text(constants, encoding="utf-8")
    with pytest.importorskip("pdf").serving(tmp_path) as address:  # which needs Playwright
        yield address


DROP_TEXT = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  const given = { bubbles: true, cancelable: true, dataTransfer: files };
  document.body.dispatchEvent(new DragEvent("drop", given));
}"""


@pytest.mark.slow
def test_a_browser_draws_and_plays(served, browser):
    page = browser.new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(served)
    page.evaluate("dispatchEvent(new PointerEvent('pointermove'))")  # a mouse that rests there
    assert "tuning: " in page.inner_text("#slp-hear-still")
    assert not [url for url in asked if "alphaTab" in url], "a score comes when a reader is there"
    page.mouse.move(9, 9, steps=3)
    page.wait_for_selector("#slp-hear[data-drawn=yes]", timeout=90_000)
    assert page.locator("#slp-hear-still").count() == 0
    assert page.inner_text("#slp-hear-title") == "A waltz by a model"
    second = heard()[1].tab
    page.click("[data-piece='1']")
    page.wait_for_function(  # until then the piece before it is drawn
        """title => document.getElementById("slp-hear-title").innerText === title &&
            document.getElementById("slp-hear").dataset.drawn === "yes" """,
        arg=second.title,
        timeout=90_000,
    )
    page.check("#slp-hear-loop")
    assert page.inner_text("#slp-hear-time") == "0:00"
    assert page.locator("#slp-hear-seek").is_disabled()
    assert not [url for url in asked if url.endswith(".sf3")], "sounds come when they are wanted"
    page.route("**/*.sf3", lambda route: route.abort())
    page.click("#slp-hear-play")
    page.wait_for_function(
        "document.getElementById('slp-hear-how').innerText.startsWith('The sounds cannot be')"
    )
    page.unroute("**/*.sf3")
    page.click("#slp-hear-play")
    page.wait_for_function(
        "Number(document.getElementById('slp-hear').dataset.position || 0) > 300", timeout=90_000
    )
    assert page.inner_text("#slp-hear-play") == "Pause"
    page.locator("#slp-hear-stage").evaluate("s => scrollTo(0, s.offsetTop + 250)")
    assert page.evaluate("scrollY") > 250  # and the controls stay
    assert page.locator("#slp-hear-play").bounding_box()["y"] >= 0
    is_above = """controls => {
        const { left, top } = controls.getBoundingClientRect();
        const cursor = document.querySelector(".at-cursor-bar");
        cursor.parentElement.style.pointerEvents = cursor.style.pointerEvents = "auto";
        const at = cursor.getBoundingClientRect();
        cursor.style.translate = `${left - at.left}px ${top - at.top}px`; // over the controls
        const found = document.elementFromPoint(left + 3, top + 3);
        cursor.style.translate = "";
        return controls.contains(found);
    }"""
    assert page.locator(".slp-hear-controls").evaluate(is_above), "the cursor passes below"
    page.locator("#slp-hear-seek").fill("9000")
    page.wait_for_function("document.getElementById('slp-hear').dataset.position >= 8900")
    page.check("#slp-hear-metronome")
    page.click("#slp-hear-stop")
    page.evaluate(DROP_TEXT, ["riff.txt", "\n".join(f"|-{n}-3-|" for n in range(6))])
    page.wait_for_function("document.getElementById('slp-hear-title').innerText === 'riff.txt'")
    page.evaluate(DROP_TEXT, ["riff.txt", "no tab"])
    page.wait_for_function(
        "document.getElementById('slp-hear-how').innerText.includes('no rows of tab')"
    )
    page.close()
    outside = [url for url in asked if not url.startswith((served, "blob:", "data:"))]
    assert outside == [] and errors == []
