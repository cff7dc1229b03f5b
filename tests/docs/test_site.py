"""The built site: its links lead somewhere, it asks nothing of other hosts, its figures have words.

The site is built once, strictly; chapters that did not change come from the cache. To check a site
that is built already, name its folder: SLP_SITE=site python -m pytest tests/docs/test_site.py
"""

import gzip
import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from chapter_source import module_name, package_files
from reference import full_name, short_name
from test_chapters import BOOK, every_chapter, execution, read

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # one process builds it
ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("[0-9]*.py"))
PAGE_LIMIT = 60_000  # bytes of one page as it travels, figures and formulas included
VISIT_LIMIT = 250_000  # of a first visit: the page, styles, scripts and fonts; the search waits
API_LIMIT = 600_000  # of a page of the reference, as it is read
SITE_LIMIT = 40_000_000
SEARCH_LIMIT = 120_000  # of the search's index, as it travels


@dataclass
class Page:
    """What the tests ask of a page."""

    ids: list = field(default_factory=list)
    links: list = field(default_factory=list)
    loads: list = field(default_factory=list)  # what the browser fetches by itself
    headings: list = field(default_factory=list)
    undescribed: list = field(default_factory=list)  # figures without alt text
    shown: list = field(default_factory=list)  # the text outside code


class Reader(HTMLParser):
    """Reads a page; only the article counts for headings and text, and templates are not shown."""

    def __init__(self):
        super().__init__()
        self.page, self.article, self.verbatim, self.template = Page(), 0, 0, 0

    def handle_starttag(self, tag, attributes):
        self.template += tag == "template"
        if self.template:
            return
        given = dict(attributes)
        page = self.page
        if "id" in given:
            page.ids.append(given["id"])
        if given.get("href") and (tag == "a" or given.get("rel") == "expect"):
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
        if tag == "div" and "slp-figure" in (given.get("class") or "").split():
            if not (given.get("role") == "img" and given.get("aria-label")):
                page.undescribed.append(self.get_starttag_text()[:60])
        if self.article and tag == "svg" and given.get("aria-hidden") != "true":
            if not (given.get("role") in ("img", "group") and given.get("aria-label")):
                page.undescribed.append(self.get_starttag_text()[:60])

    def handle_endtag(self, tag):
        if self.template:
            self.template -= tag == "template"
            return
        self.article -= tag == "article"
        self.verbatim -= tag in ("pre", "code", "script", "style", "svg")

    def handle_data(self, data):
        if self.article and not self.verbatim:
            self.page.shown.append(data)


@pytest.fixture(scope="session")
def pages(site):
    found = {}
    for path in sorted(site.rglob("*.html")):
        reader = Reader()
        html = path.read_text(encoding="utf-8")
        # What a formula looks like is hidden from readers that cannot see: they have its MathML.
        seen = r'<span class="katex-html" aria-hidden="true">.*?<!-- /tex -->'
        html = re.sub(seen, "", html, flags=re.DOTALL)
        reader.feed(re.sub(r"<annotation\b.*?</annotation>", "", html, flags=re.S))
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


def test_every_chapter_and_every_module_of_the_package_has_a_page(pages):
    for stem in CHAPTERS:
        assert f"chapters/{stem}/index.html" in pages
    for module in modules_of_the_package():
        name, *inner = module.split(".")
        while inner and f"api/{name}.{inner[0]}/index.html" in pages:
            name, inner = f"{name}.{inner[0]}", inner[1:]
        page = pages[f"api/{name}/index.html"]
        anchor = full_name(module)
        assert not inner or anchor in page.ids or "practice." in module, module


def modules_of_the_package():
    """The modules that the reference describes, as it calls them."""
    for path in package_files(ROOT):
        if path.name[0].islower():
            yield short_name(module_name(path, ROOT))


def test_what_a_package_offers_is_on_its_page_under_that_name_and_leads_to_its_modules(pages):
    for package, name in (("generation", "generate"), ("training", "train"), ("slp_guitar", "Tab")):
        page = pages[f"api/{package}/index.html"]
        assert f"{full_name(package)}.{name}" in page.ids
        assert len([link for link in page.links if link.startswith(f"../{package}.")]) >= 4


def test_no_page_of_the_reference_is_long(site):
    sizes = {path.parent.name: path.stat().st_size for path in site.glob("api/*/index.html")}
    assert {name: size for name, size in sizes.items() if size > API_LIMIT} == {}


def test_the_navigation_names_packages_and_no_internals(site):
    html = (site / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'href="(?:\./)?api/([\w.]*)/"[^>]*class="md-nav__link"', html)
    assert {"attention", "multi_head", "generation", "training"} <= set(named)
    assert not [name for name in named if name.startswith(("cli", "_")) or "." in name]
    assert len(named) < 40


def test_each_place_that_the_book_page_leads_to_exists(site, pages):
    rows = json.loads((site / "equations.json").read_text("utf-8"))
    found = json.loads((site / "figures.json").read_text("utf-8"))
    for kind, drafts in found.items():
        assert any(drafts.values()), kind  # exercises have numbers in one draft alone
    shown = [
        each["at"] for d in found.values() for one in d.values() for s in one.values() for each in s
    ]
    places = [*shown, *(place for row in rows for place in row["chapters"])]
    missing = []
    for place in places:
        path, anchor = target(site, "index.html", place)
        if anchor not in pages[path].ids:
            missing.append(place)
    assert len(places) > 100 and missing == []


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


def test_each_page_says_what_it_is_about(site, pages):
    found = {}
    for name in (one for one in pages if not one.startswith("api/")):
        html = (site / name).read_text(encoding="utf-8")
        (said,) = re.findall(r'<meta name="description" content="([^"]+)"', html)
        assert 20 < len(said) <= 400 and "$" not in said and "<" not in said, name
        assert f'<meta property="og:description" content="{said}">' in html, name
        assert re.search(r'<meta property="og:title" content="[^"<>]+">', html), name
        found.setdefault(said, []).append(name)
    assert [names for names in found.values() if len(names) > 1] == []


def test_home_shows_the_numbers_of_one_draft(site):
    html = (site / "index.html").read_text(encoding="utf-8")
    newest = list(BOOK.drafts)[-1]
    cards = re.findall(rf'slp-card-eq"[^>]*data-of-{newest}="([^"]*)"[^>]*>([^<]*)<', html)
    assert len(cards) == len(CHAPTERS) and all(own == shown for own, shown in cards)
    assert "7.49–7.52, 13.15–13.16" in [shown for _, shown in cards]  # two chapters of the book
    (label,) = re.findall(r'<span class="eq">(.*?)</span>', html)
    assert re.sub("<[^>]+>", "", label) == "head-par · 7.34"
    assert re.search(rf'id="slp-draft"><option value="{newest}">', html)
    assert "(8.21, Jan 2026 draft) in chapter 2" in html  # which the newest does not have


def test_a_missing_page_leads_on(site):
    html = (site / "404.html").read_text(encoding="utf-8")
    assert html.count("<h1>") == 1
    links = re.findall(r'<li><a href="/([^"]*)">', html)
    assert links and all((site / link / "index.html").is_file() for link in links)


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


def test_a_page_that_opens_computes_its_styles_once(site):
    """A rule for all elements whose attribute comes and goes would have them computed anew."""
    (palette,) = site.glob("assets/stylesheets/palette.*.css")
    assert "data-md-color-scheme" in palette.read_text("utf-8")
    assert "data-md-color-switching" not in palette.read_text("utf-8")
    assert (site / "index.html").read_text("utf-8").count('<meta name="color-scheme"') == 1
    (bundle,) = site.glob("assets/javascripts/bundle.*.min.js")
    (second,) = re.findall(r'"color-scheme"\}\);(.{25})', bundle.read_text("utf-8"))
    assert "appendChild" not in second


def test_ids_are_unique(pages):
    for name, page in pages.items():
        assert [i for i, n in Counter(page.ids).items() if n > 1] == [], name


def sent(path):
    """Bytes that travel: text is sent gzipped by any host, fonts and pictures as they are."""
    content = path.read_bytes()
    return len(content) if path.suffix in (".woff2", ".png") else len(gzip.compress(content))


def test_pages_are_light(site, pages):
    heavy = {name: sent(site / name) for name in pages if not name.startswith("api/")}
    assert {name: size for name, size in heavy.items() if size > PAGE_LIMIT} == {}
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < SITE_LIMIT
    assert sent(site / "search.json") <= SEARCH_LIMIT


def test_a_first_visit_is_light(site, pages):
    fonts = "Main-Regular Main-Bold Math-Italic Size1-Regular Size2-Regular Size3-Regular".split()
    always = [*site.glob("assets/fonts/*.woff2"), *site.glob("assets/javascripts/workers/*.js")]
    always += [site / "assets" / "katex" / "fonts" / f"KaTeX_{name}.woff2" for name in fonts]
    for name, page in ((n, p) for n, p in pages.items() if not n.startswith("api/")):
        loads = {target(site, name, load)[0] for load in page.loads if not load.startswith("data:")}
        visit = {site / name, *always, *(site / load for load in loads)}
        assert sum(map(sent, visit)) <= VISIT_LIMIT, name


def test_formulas_are_drawn_and_numbered_without_javascript(site):
    for stem in CHAPTERS:
        page = (site / "chapters" / stem / "index.html").read_text(encoding="utf-8")
        written = (ROOT / "chapters" / f"{stem}.py").read_text(encoding="utf-8")
        tags = re.findall(r"\\tag\{([^}]*)\}", written)
        drawn = re.findall(r"<mtext>\(([\d.–-]+)\)</mtext>", page)
        assert drawn == [tag.partition(" · ")[0] for tag in tags], stem
        assert page.count('class="katex-tag"') == len(tags)
        assert ("katex.min.css" in page) == ('class="katex"' in page)


def test_no_raw_markdown_is_left_in_chapters(pages):
    left = r"\$|\\\\[(\[]|^\s*!!! \w+|\]\[slp_|\]\(\w+\.py|^#{1,6} |\*\*\w|<autoref"
    left += r"|\bd_(?:k|v|ff)\b"  # in prose each size is drawn
    for stem in CHAPTERS:
        text = "".join(pages[f"chapters/{stem}/index.html"].shown)
        assert re.findall(left, text, flags=re.MULTILINE) == [], stem


def test_chapters_have_run_and_can_be_downloaded(site, pages):
    for stem in CHAPTERS:
        folder = site / "chapters" / stem
        script = (folder / f"{stem}.py").read_text(encoding="utf-8")
        assert script == (ROOT / "chapters" / f"{stem}.py").read_text(encoding="utf-8")
        notebook = json.loads((folder / f"{stem}.ipynb").read_text(encoding="utf-8"))
        assert any(cell.get("outputs") for cell in notebook["cells"]), stem
        assert {f"{stem}.py", f"{stem}.ipynb"} <= set(pages[f"chapters/{stem}/index.html"].links)
        html = (folder / "index.html").read_text(encoding="utf-8")
        assert "slp-cell" not in html and "/_live/" not in html, stem  # a server's alone


def test_chapters_and_reference_link_both_ways(pages):
    for stem in CHAPTERS:
        links = pages[f"chapters/{stem}/index.html"].links
        modules = {m[1] for link in links if (m := re.match(r"\.\./\.\./api/([^/]+)/", link))}
        shown = {m for m in modules if f"../../api/{m}/#" in " ".join(links)}
        own = f"../../chapters/{stem}/"
        back = {m for m in modules if own in pages[f"api/{m}/index.html"].links}
        assert back and shown <= back, stem


def typed(text):
    """The types in a text that hold a shape or a choice of words, on one line each."""
    found = re.findall(r"\b(?:Bool|Float|Int|Literal)\[[^\]]*\]", text)
    return {re.sub(r"(?<=\[) |,? (?=\])", "", " ".join(one.split())) for one in found}


def test_types_in_the_reference_read_as_in_the_source(site):
    shown_anywhere = set()
    for path in sorted((site / "api").glob("*/index.html")):
        own = ROOT.joinpath(*full_name(path.parent.name).split("."))
        modules = sorted(own.rglob("*.py")) if own.is_dir() else [own.with_suffix(".py")]
        offers = re.findall(r"from (slp_[\w.]+) import", modules[0].read_text("utf-8"))
        places = [ROOT / f"{name.replace('.', '/')}.py" for name in offers]
        modules += [path for path in places if path.exists()]
        page = path.read_text(encoding="utf-8")
        page = re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)  # the source itself
        shown = typed(unescape(re.sub(r"<[^>]+>", "", page)))
        written = typed("\n".join(module.read_text(encoding="utf-8") for module in modules))
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


def test_each_equation_leads_to_its_code_and_to_its_test(site, pages):
    rows = json.loads((site / "equations.json").read_text(encoding="utf-8"))
    by_slug = {row["slug"]: row for row in rows}
    assert set(by_slug) == set(BOOK.slugs)
    words = {"induction"}  # which the book has no formula for
    older = {"score-unscaled"}  # of the Feb 2024 draft: the chapter says what became of it
    for slug, row in by_slug.items():
        assert row["chapters"] and (row["tex"] or slug in words), row
        assert (row["tests"] and row["code"]) or slug in older, row
        for test in row["tests"]:
            file, name = test.split("::")
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
            assert name in pages["tests/index.html"].ids
            assert f"../tests/#{name}" in pages["equations/index.html"].links
        for place in row["chapters"]:
            chapter = place.partition("#")[0] + "index.html"
            assert any("tests/#test_" in link for link in pages[chapter].links)
    assert len({by_slug[slug]["tex"] for slug in ("L(N)", "L(D)", "L(C)")}) == 3


def test_notebooks_run_on_their_own(site):
    for stem in CHAPTERS:
        text = (site / "chapters" / stem / f"{stem}.ipynb").read_text(encoding="utf-8")
        assert "pip install" in json.loads(text)["cells"][0]["source"][0]
        assert "<autoref" not in text and " at 0x" not in text


def test_search_knows_prose_and_not_outputs(site):
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    text = " ".join(row[2] for row in index["sections"])
    assert "residual stream" in text and "softmax(mask(QK⊤/√dk))V" in text.replace(" (", "(")
    assert "slp-text" not in text and "torch.manual_seed(" not in text and "<annotation" not in text


@pytest.fixture(scope="session")
def search(site, request):
    """Asks the site's own search, as the page does: groups of sections, best first."""
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    request.addfinalizer(engine.close)  # else the process would not end
    engine.eval((site / "assets" / "search.js").read_text(encoding="utf-8"))
    index = (site / "search.json").read_text(encoding="utf-8")
    engine.eval(f"const known = SiteSearch.prepare({index})")

    def ask(words):
        found = engine.eval(f"JSON.stringify(SiteSearch.find(known, {json.dumps(words)}))")
        pages = {}
        for hit in json.loads(found):
            pages.setdefault(hit["page"], []).append(hit["place"])
        return list(pages.values())

    return ask


QUERIES = {
    "softmax": "chapters/01_attention/",
    "multi-head attention": "chapters/01_attention/#several-heads",
    "cross-attention": "chapters/10_encoder_decoder/",
    "(8.33)": "chapters/03_one_matrix/#eq-head-par",
    "7.34": "chapters/03_one_matrix/#eq-head-par",
    "(8.53)": "chapters/06b_cache/#eq-",
    "head-par": "chapters/03_one_matrix/",
    "causal mask": "chapters/03_one_matrix/#the-mask",
    "layer norm": "chapters/02_block/#layer-norm",
    "LayerNorm": "chapters/02_block/#layer-norm",
    "residual stream": "chapters/02_block/#the-residual-stream",
    "feedforward": "chapters/02_block/#the-feedforward-layer",
    "sinusoidal": "chapters/04_input/",
    "logits": "chapters/05_language_model/",
    "temperature": "chapters/06_decoding/#temperature",
    "top-p": "chapters/06_decoding/#top-p",
    "beam search": "chapters/06_decoding/#beam-search",
    "KVCache": "chapters/06b_cache/",
    "perplexity": "chapters/07_training/#perplexity",
    "encoder decoder": "chapters/10_encoder_decoder/",
    "guitar": "chapters/12_guitar_tab/",
    "torchrun": "cluster/",
    "masked_softmax": "chapters/01_attention/#all-tokens-in-the-package",
    "slp_transformer.training.train": "api/training/#slp_transformer.training.train",
    "why divide by sqrt d_k": "chapters/01_attention/#query-key-and-value",
    "sqrt": "chapters/01_attention/#query-key-and-value",
    "RoPE": "chapters/14_todays_block/#positions-as-rotations",
    "BLEU": "chapters/11_translation/#what-beam-search-buys",
    "capo": "chapters/12_guitar_tab/#from-tab-to-tokens",
    "skip connection": "chapters/02_block/#the-residual-stream",
    "MLP": "chapters/02_block/#the-feedforward-layer",
    "weight tying": "chapters/05_language_model/#the-head",
    "positional encoding": "chapters/04_input/#one-row-of-p-for-each",
    "cross-entropy": "chapters/07_training/#one-word",
    "learning rate": "chapters/07_training/#one-step-spelled-out",
    "chinchilla": "chapters/08_scale/#three-laws",
    "low-rank": "chapters/08_scale/#lora",
    "fine-tuning": "chapters/08_scale/#lora",
    "nucleus": "chapters/06_decoding/#top-p",
    "GQA": "chapters/14_todays_block/#keys-and-values-that-heads-share",
    "Viterbi": "chapters/13_pitch_to_tab/#the-hand-has-a-position",
    "query key value": "chapters/01_attention/#query-key-and-value",
    "flash attention": "chapters/03_one_matrix/#what-it-costs",
    "embedding": "chapters/04_input/#one-row-of-e-for-each-word",
    "context length": "chapters/04_input/#tokens-without-a-row",
    "how many parameters does gpt-3 have": "chapters/05_language_model/#how-large-is-it",
    "speculative decoding": "chapters/06b_cache/#a-small-model-drafts-the-large-one-checks",
    "backpropagation": "chapters/07_training/#the-gradient-of-the-loss",
    "gradient clipping": "chapters/07_training/#one-step-spelled-out",
    "FLOPs": "chapters/08_scale/#compute",
    "logit lens": "chapters/09_inside/#the-residual-stream-sublayer-by-sublayer",
    "label smoothing": "chapters/11_translation/#the-transformer-of-2017",
    "overfitting": "chapters/12_guitar_tab/#training",
    "tab to midi": "chapters/12_guitar_tab/#your-own-tabs",
    "rmsnorm": "chapters/14_todays_block/#the-norm-without-its-mean",
    "hugging face": "chapters/14_todays_block/#the-same-as-everybodys",
}


# Written down before they were tried: what students type, and where it should lead.
TASKS = {
    "how to install": ("reuse/#install",),
    "export to huggingface": ("reuse/#export", "chapters/14_todays_block/#and-back"),
    "resume training": ("command-line/#stop-and-resume",),
    "MIDI to tab": ("fingering/", "command-line/#pitch-to-tab"),
    "what is a token": ("chapters/04_input/#words-become-numbers",),
    "gradient accumulation": ("cluster/",),
    "out of memory": ("cluster/",),
    "atention": ("chapters/01_attention/",),
    "colab": ("#run-it",),
    "8.20": ("chapters/01_attention/#eq-mh-def",),
    "equation 8.20": ("chapters/01_attention/#eq-mh-def",),
    "7.20": ("chapters/01_attention/#eq-mh-def",),
    "eq. (7.20)": ("chapters/01_attention/#eq-mh-def",),
    "how do I train my own model": ("command-line/#training-data", "reuse/#a-model-of-your-own"),
    "use my own text": ("reuse/#a-model-of-your-own-texts",),
    "generate text": ("chapters/06_decoding/#a-model-that-writes",),
    "run on gpu": ("cluster/",),
    "stop training early": ("chapters/07_training/#the-loop",),
    "load pretrained gpt2": ("chapters/14_todays_block/", "reuse/#a-published-model"),
    "why is my loss nan": ("break-it/",),
    "plot attention weights": ("chapters/09_inside/#what-heads-look-at", "model/"),
    "check my exercise": ("reuse/#a-check-of-your-own-code",),
    "solutions to exercises": ("teachers/#exercises",),
    "softmax temperature": ("chapters/06_decoding/#temperature",),
    "difference between encoder and decoder": ("chapters/10_encoder_decoder/",),
    "how many parameters": ("chapters/08_scale/#how-many-parameters",),
    "what is a head": ("chapters/01_attention/#one-head",),
    "why layer norm": ("chapters/02_block/#layer-norm",),
    "mask future tokens": ("chapters/03_one_matrix/#the-mask",),
    "kv cache": ("chapters/06b_cache/",),
    "translate sentences": ("chapters/11_translation/",),
    "fine tune with lora": ("chapters/08_scale/#lora", "command-line/#fine-tuning-by-lora"),
    "convert guitar pro to musicxml": ("command-line/#guitar-files",),
    "notation of symbols": ("notation/",),
    "tensor shapes": ("pytorch/#a-tensor-and-its-shape",),
    "broadcasting": ("pytorch/#broadcasting",),
    "byte pair encoding": ("command-line/#training-data",),
    "multiple gpus": ("cluster/#one-machine-several-gpus",),
    "evaluate perplexity": ("command-line/#evaluation", "chapters/07_training/#perplexity"),
    "repeat penalty": ("chapters/06_decoding/#a-penalty-for-repetition",),
    "schedule for a course": ("teachers/",),
    "own task plugin": ("own-task/",),
    "tempreature": ("chapters/06_decoding/#temperature",),
    "residul stream": ("chapters/02_block/#the-residual-stream",),
    "softmax": ("chapters/01_attention/#the-simplest-attention",),
    "softmx": ("chapters/01_attention/#the-simplest-attention",),
    "how to hide the future": ("chapters/03_one_matrix/#the-mask",),
    "vanishing gradient": ("chapters/02_block/#why-blocks-add",),
    "download notebook": ("#run-it",),
    "grouped query attention": ("chapters/14_todays_block/#keys-and-values-that-heads-share",),
    "language model head": ("chapters/05_language_model/#the-head",),
    "overfitting": ("chapters/12_guitar_tab/#training",),
    "einsum": ("pytorch/#the-product",),
    "shape mismatch error": ("pytorch/#a-tensor-and-its-shape",),
    "mask at inference": ("chapters/06b_cache/#why-the-old-rows-stay-valid",),
    "why tie weights": ("chapters/05_language_model/#the-head",),
    "generation is slow": ("chapters/06b_cache/#what-it-saves",),
    "upper triangular minus infinity": ("chapters/03_one_matrix/#the-mask",),
    "where is dropout applied": ("chapters/02_block/#all-tokens-and-the-package",),
}


@pytest.mark.parametrize("words", TASKS)
def test_the_search_knows_what_people_want_to_do(words, search):
    found = search(words)
    assert found[0][0].startswith(TASKS[words]), found[:3]


QUESTIONS = re.findall(
    r'^\| (.+?) \| <a href="\.\./(.+?)">',
    (ROOT / "docs" / "questions.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


def test_the_search_answers_the_questions_of_the_world(search):
    assert len(QUESTIONS) == 30
    found = {words: [group[0] for group in search(words)[:3]] for words, _ in QUESTIONS}
    lost = {words: found[words] for words, place in QUESTIONS if place not in found[words]}
    assert len(lost) <= 3, lost


def test_synonyms_belong_to_sections(site):
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    places = {row[0] for row in index["sections"]}
    path = ROOT / "docs" / "site_build" / "synonyms.toml"
    assert set(tomllib.loads(path.read_text(encoding="utf-8"))) <= places


@pytest.mark.parametrize("words", QUERIES)
def test_the_search_finds_first_what_a_reader_looks_for(words, search):
    found = search(words)
    assert found[0][0].startswith(QUERIES[words]), found[:3]


@pytest.mark.parametrize(
    ("words", "module", "name"),
    [
        ("slp_transformer.generation.generate", "generation", "generate"),
        ("beam_search", "generation.beam_search", "beam_search"),
        ("MultiHeadAttention", "multi_head", "MultiHeadAttention"),
    ],
)
def test_the_search_finds_the_reference_by_a_dotted_or_joined_name(words, module, name, search):
    anchor = f"api/{module}/#slp_transformer.{module}.{name}"
    assert anchor in [section for group in search(words) for section in group]


def shown_numbers(outputs):
    """All numbers that a figure's letters show."""
    html = "".join("".join(out.get("data", {}).get("text/html", "")) for out in outputs)
    letters = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", html)).replace("−", "-")
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", letters)]


@every_chapter
def test_numbers_in_the_words_for_a_figure_are_those_that_it_shows(chapter, site):
    ran = read(chapter)
    outputs = execution.Cache(ROOT / ".cache" / "chapters").load(ran)
    wrong = []
    for cell, shown in zip(ran.code_cells, outputs, strict=True):
        alt = str(cell.metadata.get("alt", "")).replace("minus ", "-").replace("−", "-")
        if "plotting.lines" in cell.source:
            continue  # a curve does not write its values down
        for number in re.findall(r"-?(?<![\d.,])\d*\.\d+", alt):
            places = len(number.partition(".")[2])
            if float(number) not in [round(one, places) for one in shown_numbers(shown)]:
                wrong.append((number, alt[:60]))
    assert not wrong
