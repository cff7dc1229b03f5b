r"""Draws formulas while the site is built: $…$ and $$…$$, or \(…\) and \[…\].

A page then has its formulas in the first paint, without JavaScript, and moves no more. Two ways
were measured on the largest chapter (45 KB gzipped with raw TeX): KaTeX's HTML with MathML inside
makes it 54 KB and needs 15 KB of fonts, cut to what the site uses; MathML alone makes it 48 KB,
but each browser draws it with the fonts that its system happens to have. So KaTeX, which looks the
same everywhere; a screen reader gets the MathML within. Drawing takes 0.2 s for the whole site.
KaTeX is JavaScript: mini-racer runs it where no Node is installed.
"""

import atexit
import re
from functools import cache
from html import unescape
from pathlib import Path

from py_mini_racer import JSEvalException, MiniRacer

KATEX = Path(__file__).parent / "katex" / "katex.min.js"
# What stands in these is no formula, whatever dollars it has.
TAGS = "pre|code|script|style|svg|textarea"
VERBATIM = re.compile(rf"(<(?:{TAGS})\b.*?</(?:{TAGS})>)", re.DOTALL)
FORMULA = re.compile(
    r"\$\$(?P<d1>.+?)\$\$|\\\[(?P<d2>.+?)\\\]|"
    r"(?<![\\\w])\$(?P<i1>[^$\s](?:[^$<]*?[^$\s])?)\$(?!\d)|\\\((?P<i2>.+?)\\\)",
    re.DOTALL,
)
DRAWN = re.compile(r"<!-- tex -->(.*?)<!-- /tex -->", re.DOTALL)


class FormulaError(ValueError):
    """A formula that KaTeX cannot read; the message has it, and KaTeX's own words."""


def drawn(html: str) -> str:
    """A page with its formulas drawn.

    Raises:
        FormulaError: for a formula that KaTeX cannot read.
    """
    parts = VERBATIM.split(html)
    return "".join(part if at % 2 else FORMULA.sub(_draw, part) for at, part in enumerate(parts))


def has_formulas(html: str) -> bool:
    """Whether a page has a formula that was drawn."""
    return DRAWN.search(html) is not None


def as_text(html: str) -> str:
    """A page whose formulas are plain characters, as the search should know them."""

    def words(match: re.Match) -> str:
        inside = re.search(r"<math\b.*?(?=<annotation)", match[1], flags=re.DOTALL)[0]
        inside = re.sub(r"(<(?=mtext|mo\b|mtr)|</mo>)", r" \1 ", inside)
        plain = re.sub(r"<[^>]*>?|[\u200b\u2061-\u2064]", "", inside)
        return re.sub(r"\s+", " ", plain)

    return DRAWN.sub(words, html)


def _draw(match: re.Match) -> str:
    displayed = match["d1"] or match["d2"]
    tex = unescape(displayed or match["i1"] or match["i2"]).strip()
    return f"<!-- tex -->{_katex(tex, bool(displayed))}<!-- /tex -->"


@cache
def _katex(tex: str, display: bool) -> str:
    settings = {"displayMode": display, "strict": False}
    try:
        return _engine().call("katex.renderToString", tex, settings)
    except JSEvalException as error:
        said = re.search(r"KaTeX parse error: ([^\n]*)", str(error))
        raise FormulaError(f"{said[1] if said else error}, in the formula {tex}") from None


@cache
def _engine() -> MiniRacer:
    engine = MiniRacer()
    atexit.register(engine.close)  # its threads would keep Python from ending
    engine.eval(KATEX.read_text(encoding="utf-8"))
    return engine
