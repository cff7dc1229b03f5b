"""Work on finished pages: formulas drawn, text for the search, fonts cut to size."""

import atexit
import json
import re
import shutil
import tomllib
from collections.abc import Iterable
from functools import cache
from html import escape, unescape
from pathlib import Path
from xml.etree import ElementTree

import notebook_html
from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from py_mini_racer import JSEvalException, MiniRacer
from reference import full_name

KATEX = Path(__file__).parent / "katex" / "katex.min.js"
# What is in these is no formula, whatever dollars it has.
TAGS = "pre|code|script|style|svg|textarea"
VERBATIM = re.compile(rf"(<(?:{TAGS})\b.*?</(?:{TAGS})>)", re.DOTALL)
FORMULA = re.compile(
    r"\$\$(?P<d1>.+?)\$\$|\\\[(?P<d2>.+?)\\\]|"
    r"(?<![\\\w])\$(?P<i1>[^$\s](?:[^$<]*?[^$\s])?)\$(?!\d)|\\\((?P<i2>.+?)\\\)|"
    r"<[^>]*>|\b(?P<size>d_(?:k|v|ff))\b",  # sizes in prose are formulas too
    re.DOTALL,
)
DRAWN = re.compile(r"<!-- tex -->(.*?)<!-- /tex -->", re.DOTALL)
# A browser would break the line between a formula, with or without its link, and what ends it.
ENDED = re.compile(
    r"(?P<a><a\b[^>]*>)?<!-- tex -->(?P<tex>(?:(?!<!--).)*)<!-- /tex -->(?(a)</a>)[.,;:!?)]+",
    re.DOTALL,
)
# It would also break it within a flag, after its hyphens. In a tag, `--slp-figure` is a style.
FLAG = re.compile(r"(?<=[\s>(])--[a-z][\w-]*(?=[^<>]*<)")


class FormulaError(ValueError):
    """A formula that KaTeX cannot read; the message has it, and KaTeX's own words."""


def drawn(html: str, *, keep_unreadable: bool = False) -> str:
    """A page with its formulas drawn.

    Args:
        html: the page's, or a part of it.
        keep_unreadable: whether a formula that KaTeX cannot read stays as it was written.

    Raises:
        FormulaError: for a formula that KaTeX cannot read.
    """

    def draw(match: re.Match) -> str:
        try:
            return _draw(match)
        except FormulaError:
            if not keep_unreadable:
                raise
            return match[0]

    parts = VERBATIM.split(html)
    parts[::2] = [FORMULA.sub(draw, part) for part in parts[::2]]
    held = r'<span class="slp-held">\g<0></span>'
    parts = [FLAG.sub(held, p) if p.startswith(("<pre", "<code")) else p for p in parts]
    return ENDED.sub(_hold, "".join(parts))


def has_formulas(html: str) -> bool:
    """Tell if a page has a formula that was drawn."""
    return DRAWN.search(html) is not None


def as_text(html: str) -> str:
    """A page whose formulas are plain characters, as the search should know them."""

    def words(match: re.Match) -> str:
        math = re.search(r"<math\b.*?</math>", match[1], flags=re.DOTALL)[0]
        text = re.sub(r"\s+", " ", formula_text(ElementTree.fromstring(math)))
        text = re.sub(r"(^|\() ?− ", r"\1−", text)  # a sign, which is no difference
        text = re.sub(f"{APPLIED} ?(?=\\w)", " ", text).replace(APPLIED, "").replace("( ", "(")
        return escape(text, quote=False)

    return DRAWN.sub(words, html)


APPLIED = "\u2061"  # stands between a function's name and what it is a function of
INVISIBLE = re.compile("[\u200b\u2062-\u2064]")
RAISED = str.maketrans("0123456789+-−nTijkdtm⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿᵀⁱʲᵏᵈᵗᵐ⊤")


def formula_text(node: ElementTree.Element) -> str:
    """Return a part of a formula, in MathML, as one line that says the same.

    What is drawn by a line or by a place becomes a character: √ and a slash, and parentheses where
    more than one letter stands below a root, above or below a line, or is raised.
    """
    kind = node.tag.rpartition("}")[2]
    if kind in ("annotation", "mspace", "mphantom"):
        return ""
    parts = [formula_text(child) for child in node]
    if kind == "mfrac":
        return f" {'/'.join(map(_grouped, parts))}"
    if kind == "msqrt":
        return "√" + _grouped("".join(parts))
    if kind == "mroot":
        return f"{_grouped(parts[1])}√{_grouped(parts[0])}"
    if kind in ("msub", "munder", "msubsup", "munderover"):
        parts[1:2] = [_lowered(parts[1], kind)]
    if kind in ("msup", "msubsup", "mover", "munderover") and node.get("accent") != "true":
        parts[-1:] = [_raised(parts[-1])]
    if kind in ("mtr", "mtext"):
        text = " ".join(parts) + INVISIBLE.sub("", node.text or "")
        return "" if not text.strip() and INVISIBLE.search(node.text or "") else f" {text} "
    if kind == "mo" and (node.text or "").strip() in "=<>≤≥≈+−∈→↦≠∝·×":
        return f" {(node.text or '').strip()} " if node.text else ""
    return INVISIBLE.sub("", node.text or "") + "".join(parts)


def _grouped(text: str) -> str:
    """Return a part that is one number, name, root or function of one thing, or parentheses."""
    text = text.strip()
    is_one = re.fullmatch(rf"√?(?:[\w⊤^′]+|.)|\w+{APPLIED}?\([^()]*\)", text)
    return text if is_one else f"({text})"


def _lowered(text: str, kind: str) -> str:
    """Return an index: `dk`, as words have it, and `x_(i + 1)`."""
    text = text.strip()
    return (
        text if re.fullmatch(r"\w+", text) and kind in ("msub", "msubsup") else f"_{_grouped(text)}"
    )


def _raised(text: str) -> str:
    text = text.strip()
    if text and all(ord(letter) in RAISED for letter in text):
        return text.translate(RAISED)
    if re.fullmatch(r"\([^()]*\)", text):
        return f"^{text}"
    return f"^{_grouped(text)}" if text else ""


def _draw(match: re.Match) -> str:
    displayed = match["d1"] or match["d2"]
    tex = displayed or match["i1"] or match["i2"] or match["size"]
    if not tex:
        return match[0]  # a tag, whose attributes have no formulas
    tex = unescape(tex).strip().replace("_ff", "_{ff}")
    html = _katex(tex, bool(displayed))
    # A browser leaves room for one that it has not drawn yet: a line of text, or its tallest part.
    height = max(1.2, *map(float, re.findall(r'katex-strut" style="height:([\d.]+)em', html)), 0)
    html = html.replace('"katex-display"', f'"katex-display" style="--em: {height:.2f}"', 1)
    return f"<!-- tex -->{html}<!-- /tex -->"


def _hold(match: re.Match) -> str:
    """Keep a formula and what ends it in one line, unless it may be wider than a phone."""
    if "katex-display" in match["tex"] or match["tex"].count('class="katex-base"') > 3:
        return match[0]
    return f'<span class="slp-held">{match[0]}</span>'


@cache
def _katex(tex: str, display: bool) -> str:
    settings = {"displayMode": display, "strict": False}
    try:
        return _engine().call("katex.renderToString", tex, settings)
    except JSEvalException as error:
        reason = re.search(r"KaTeX parse error: ([^\n]*)", str(error))
        raise FormulaError(f"{reason[1] if reason else error}, in the formula {tex}") from None


@cache
def _engine() -> MiniRacer:
    engine = MiniRacer()
    atexit.register(engine.close)  # its threads would keep Python from ending
    engine.eval(KATEX.read_text(encoding="utf-8"))
    return engine


# The theme counts a word in a title a thousandfold, and the reference is all titles.
BOOST = {"chapter": 8.0, "page": 1.0, "equations": 0.1, "reference": 0.002}
# Who looks for a thing wants it explained: no section that only asks is known.
ASKS = re.compile(
    r'<h([23]) id="(?:exercise|try-it|test-yourself).*?(?=<h[1-3]\b(?! id="exercise)|$)', re.DOTALL
)


def known(content: str, kind: str) -> str:
    """Return the part of a page's content that the search is given."""
    content = notebook_html.without_outputs(content)
    content = re.sub(r"<(pre|figure)\b.*?</\1>", "", content, flags=re.DOTALL)
    content = re.sub(r"<td data-search-exclude>.*?</td>", "", content, flags=re.DOTALL)
    content = as_text(content)
    if kind == "chapter":
        content = notebook_html.without_folds(content)
        content = ASKS.sub("", content)
        content = re.sub(r"<details\b.*?</details>", "", content, flags=re.DOTALL)
    return _names(content) if kind == "reference" else content


def _names(content: str) -> str:
    """Each function and class on a page of the reference, with the first sentence about it."""
    parts = re.split(r"(<h[1-6]\b.*?</h[1-6]>)", content, flags=re.DOTALL)
    found = []
    for heading, below in zip(parts[1::2], parts[2::2], strict=True):
        if re.search(r'id="slp_[^"]*\.[A-Z]\w*\.\w+"', heading):
            continue  # a method or an attribute: its class is found
        below = re.sub(r'<p class="slp-explained".*?</p>', "", below, flags=re.DOTALL)
        first = re.search(r"<p>(.*?(?:[.:](?=\s)|(?=</p>)))", below, flags=re.DOTALL)
        words = re.sub(r"<[^>]+>", "", first[1]) if first else ""
        words = words[:40].rpartition(" ")[0] if len(words) > 40 else words
        found.append(f"{heading}<p>{words}</p>")
    return "".join(found)


def write_search(site: Path, equations: Iterable[tuple[str, list[str], str]]) -> None:
    """Write the index of the site's own search from the one that MkDocs has made.

    Args:
        site: the built site.
        equations: of each its address, its numbers, and its title.
    """
    path = site / "search" / "search_index.json"
    if not path.is_file():  # the search is switched off
        return
    table = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text("utf-8"))
    known = {
        place: said if isinstance(said, list) else said.split() for place, said in table.items()
    }
    kinds = {"chapter": 0, "page": 1, "equations": 2, "reference": 3}
    of_boost = {BOOST[kind]: number for kind, number in kinds.items()}
    rows = [
        [
            _short_place(section["location"], _plain(section["title"])),
            _plain(section["title"]),
            _plain(section["text"]),
            of_boost.get(section.get("boost", BOOST["page"]), kinds["page"]),
            "|".join(known.get(section["location"], [])),
        ]
        for section in sorted(json.loads(path.read_text("utf-8"))["docs"], key=_page_of)
    ]
    places: dict[str, list[str]] = {}
    for place, numbers, title in equations:
        for number in numbers:
            places.setdefault(number, [place, title])
    text = json.dumps(
        {"sections": rows, "equations": places}, ensure_ascii=False, separators=(",", ":")
    )
    (site / "search.json").write_text(text, "utf-8")
    shutil.rmtree(path.parent)


def _page_of(section: dict[str, str]) -> str:
    """A server builds pages in any order; their sections have that of the page."""
    return section["location"].partition("#")[0]


def _short_place(location: str, title: str) -> str:
    """Return an object's address without the name that its title says again; the search adds it."""
    page = location.removeprefix("api/").partition("/")[0]
    is_said = location == f"api/{page}/#{full_name(page)}.{title}"
    return f"api/{page}/#." if is_said else location


def _plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


DRAWN_HTML = re.compile(r'<span class="katex-html" aria-hidden="true">.*?<!-- /tex -->', re.DOTALL)
ALWAYS = {chr(code) for code in range(0x20, 0x7F)}  # what scripts on a page may write
WEIGHTS = (400, 700)


def cut(site: Path) -> None:
    """Cuts the fonts in a built site, in place."""
    text, formulas = set(ALWAYS), set()
    for path in site.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        for formula in DRAWN_HTML.findall(html):
            formulas |= _characters(formula)
        text |= _characters(re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL))
    for path in site.glob("assets/fonts/*.woff2"):
        _cut(path, text)
    for path in site.glob("assets/katex/fonts/*.woff2"):
        _cut(path, formulas)


# What has the color of the code around it, and what is empty.
UNCOLORED = re.compile(r'<span class="[nw]">([^<]*)</span>|<span></span>')


def slim(page: str) -> str:
    """Return a page without the spans of code that color nothing, and without blank lines.

    Above its article no line is indented either. Below it the theme's labels of links are compared
    with their words, spaces and all.
    """
    above, article, rest = page.partition("<article")
    above = re.sub(r"\s*\n\s*", "\n", above) if article else above
    shown, end, below = rest.partition("</article>")
    parts = VERBATIM.split(shown)
    parts[::2] = [re.sub(r"\n\s*\n", "\n", part) for part in parts[::2]]
    return above + article + UNCOLORED.sub(r"\1", "".join(parts)) + end + below


def drop_unused(site: Path) -> None:
    """Takes away what the theme brings and no page asks for: maps of its scripts, its search."""
    for path in [*site.glob("assets/javascripts/**/*.map"), *site.glob("assets/stylesheets/*.map")]:
        path.unlink()
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in [*site.glob("assets/javascripts/*.js"), *site.glob("assets/stylesheets/*.css")]:
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\n(?://|/\*)# sourceMappingURL=[^\n]*", "", text)
        path.write_text(text, encoding="utf-8", newline="")


# Parts of the theme. Their styles end with any element, so a browser tries them on each; tabs alone
# have 140 such selectors.
PART = re.compile(r"\.((?:tabbed|grid|cards|keys|critic|footnote|md-(?:search|post|select))[\w-]*)")


def drop_styles(site: Path) -> None:
    """Takes away the styles of the theme's parts that no page has."""
    pages = "".join(path.read_text("utf-8") for path in site.rglob("*.html"))
    used = {name for names in set(re.findall(r'class="([^"]*)"', pages)) for name in names.split()}

    def left(rule: re.Match) -> str:
        selectors = re.split(r",(?![^()]*\))", rule[1])
        kept = [one for one in selectors if used.issuperset(PART.findall(one))]
        return f"{','.join(kept)}{rule[2]}" if kept else ""

    for path in site.glob("assets/stylesheets/main.*.css"):
        css = re.sub(r"([^{}]+)(\{[^{}]*\})", left, path.read_text("utf-8"))
        path.write_text(css, encoding="utf-8", newline="")


def name_landmarks(site: Path) -> None:
    """Makes groups of the theme's landmarks that stand at each block of code and have no name."""
    for path in site.glob("assets/javascripts/bundle.*.min.js"):
        script = path.read_text(encoding="utf-8")
        script = script.replace('"nav",{class:"md-code__nav"', '"div",{class:"md-code__nav"')
        path.write_text(script, encoding="utf-8", newline="")


def _characters(html: str) -> set[str]:
    return set(unescape(re.sub(r"<[^>]+>", "", html)))


def _cut(path: Path, characters: set[str]) -> None:
    font = TTFont(path)
    options = subset.Options(
        flavor="woff2", hinting=False, layout_features=["ccmp", "kern", "liga", "locl"]
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(characters))
    subsetter.subset(font)
    if "fvar" in font:
        instantiateVariableFont(font, {"wght": WEIGHTS}, inplace=True)
    font.flavor = "woff2"
    font.save(path)


SWITCHING = re.compile(r"\[data-md-color-switching\][^{}]*\{[^{}]*\}")
SECOND_SCHEME = re.compile(
    r'(\w+\("meta",\{name:"color-scheme"\}\);)document\.head\.appendChild\(\w\);'
)


def style_once(site_dir: Path) -> None:
    """Let a page of Material's that opens compute its styles once, not three times.

    Its palette has a rule for all elements, for a fade alone, whose attribute its script sets and
    unsets as each page opens; and the script adds the element that says which colors the page has,
    which our pages have already.
    """
    for path in site_dir.glob("assets/stylesheets/palette.*.css"):
        css = SWITCHING.sub("", path.read_text("utf-8"))
        path.write_text(css, encoding="utf-8", newline="")
    for path in site_dir.glob("assets/javascripts/bundle.*.min.js"):
        script = SECOND_SCHEME.sub(r"\1", path.read_text("utf-8"))
        path.write_text(script, encoding="utf-8", newline="")
