"""The numbers that "Open your chapter" finds in PDFs of forms that nobody tuned to.

    python benchmarks/book_numbers.py make pdfs
    python benchmarks/book_numbers.py measure pdfs --third manuals --out FOLDER

    python benchmarks/book_numbers.py layers pdfs --out tests/docs/text_layers

`make` writes a made-up chapter in each form, with texts of its own, and beside each PDF the places
that TeX, the browser or the office program wrote down; it needs TeX, Ghostscript, poppler, Chromium
and LibreOffice. `measure` compares what the page's own scripts find, run in Node, with these
places. With `--third`, PDFs of other people are looked at, too: there hyperref's destinations are
the truth, and the finder does not see them. Nothing of them is kept but counts. `layers` writes the
text of some pages of our own, with the places, for the tests.
"""

import argparse
import json
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHAPTER, FIRST_EQUATION, LAST_EQUATION, FIGURES = 8, 4, 44, 12
CLAUSES = (
    "the ferry leaves the northern quay a little before the tide turns",
    "each crate is weighed twice and the smaller figure is written down",
    "a baker who starts at three has warm loaves by half past five",
    "the orchard was divided into twelve rows of unequal length",
    "no two of the clocks in the hall agree on the hour",
    "the surveyor measured the slope again from the other bank",
    "letters that arrive after noon are sorted on the next morning",
    "a kettle of this size holds enough tea for nine people",
    "the apprentice mixed the final coat of varnish from four parts",
    "snow fell on the upper fields but not in the valley",
    "the choir sings the second verse half a tone lower",
    "every tram on this line stops at the fish market",
    "her notebook lists the wind and the pressure for every day of the year",
    "the difference between both tables is smaller than one would expect",
)
SHORT = (
    r"y_i = \sum_{j\le i} w_{ij}x_j",
    r"s(x_i,x_j) = x_i\cdot x_j",
    r"w_{ij} = \frac{\exp s(x_i,x_j)}{\sum_{k=1}^{i}\exp s(x_i,x_k)}",
    r"m = \frac{1}{n}\sum_{i=1}^{n} x_i",
    r"r = \sqrt{\frac{1}{n}\sum_{i=1}^{n}(x_i-m)^2}",
    r"f(x) = \max(0, xA+a)B+b",
    r"h = z + g(2.5)",
)
LONG = (
    r"\mathrm{Tide}(\mathbf{X}) = \left(\mathrm{quay}_1\oplus\mathrm{quay}_2\oplus\cdots"
    r"\oplus\mathrm{quay}_M\right)W\quad\text{for all }(i,j)",
    r"p(v_1,\ldots,v_n) = p(v_1)\,p(v_2\mid v_1)\,p(v_3\mid v_1,v_2)\cdots"
    r"p(v_n\mid v_1,\ldots,v_{n-1})",
)
SEVERAL = (
    r"\begin{split} O &= X+\mathrm{M}(\mathrm{N}(X))\\ H &= O+\mathrm{F}(\mathrm{N}(O))\end{split}",
    r"u = \begin{cases} 0 & \text{if } j\le i\\ -\infty & \text{otherwise}\end{cases}",
)


@dataclass(frozen=True)
class Form:
    """A way in which a chapter becomes a PDF.

    Attributes:
        tex: the document class with its options.
        engine: pdflatex, lualatex, xelatex, or dvips, which Ghostscript goes on from.
        extra: the preamble.
        narrow: whether there is room for short formulas alone.
        by_section: whether equations are numbered by sections, in a class without chapters.
        after: what becomes of the PDF then: "gs" or "cairo".
    """

    tex: str
    engine: str = "pdflatex"
    extra: str = ""
    narrow: bool = False
    by_section: bool = False
    after: str = ""


WIDE_MARGIN = (
    r"\usepackage[paperwidth=21cm,paperheight=29.7cm,textwidth=11cm,left=2.5cm,textheight=22cm]{geometry}"
    r"\everydisplay{\displaywidth=\dimexpr\textwidth+4cm\relax}"
)
FORMS = {
    "article, A4, 11 pt": Form(r"\documentclass[11pt,a4paper]{article}", by_section=True),
    "memoir, numbers in a wide margin": Form(
        r"\documentclass[10pt,oneside]{memoir}", extra=WIDE_MARGIN, narrow=True
    ),
    "tufte-book, XeLaTeX": Form(
        r"\documentclass[nobib]{tufte-book}", "xelatex",
        r"\setcounter{secnumdepth}{2}", narrow=True,
    ),
    "IEEEtran, two columns": Form(
        r"\documentclass[10pt,letterpaper]{IEEEtran}",
        extra=r"\renewcommand\thesection{\arabic{section}}", narrow=True, by_section=True,
    ),
    "amsbook, numbers at the left, LuaLaTeX": Form(
        r"\documentclass[11pt,leqno]{amsbook}", "lualatex",
        r"\numberwithin{equation}{chapter}\numberwithin{figure}{chapter}",
    ),
    "scrbook, formulas at the left, A4, 12 pt": Form(
        r"\documentclass[12pt,a4paper,fleqn]{scrbook}", extra=r"\usepackage{mathpazo}"
    ),
    "report, Letter, 12 pt, dvips and Ghostscript": Form(
        r"\documentclass[12pt,letterpaper]{report}", "dvips", r"\usepackage{mathptmx}"
    ),
    "book, STIX-like fonts of unicode-math, LuaLaTeX, then Ghostscript": Form(
        r"\documentclass[10pt]{book}", "lualatex",
        r"\usepackage{unicode-math}\setmathfont{latinmodern-math.otf}"
        r"\numberwithin{equation}{chapter}",
        after="gs",
    ),
    "extarticle, two columns, 9 pt, numbers at the left": Form(
        r"\documentclass[9pt,twocolumn,a4paper,leqno]{extarticle}", narrow=True, by_section=True
    ),
    "revtex4-2, two columns, Letter": Form(
        r"\documentclass[aps,pre,twocolumn,10pt]{revtex4-2}",
        extra=r"\renewcommand\thesection{\arabic{section}}\renewcommand\thefigure{\thesection.\arabic{figure}}",
        narrow=True, by_section=True,
    ),
    "acmart, two columns": Form(
        r"\documentclass[sigconf,nonacm,screen=false]{acmart}", narrow=True, by_section=True
    ),
    "book, ragged right, 10 pt, saved again by cairo": Form(
        r"\documentclass[10pt,oneside]{book}",
        extra=r"\usepackage[T1]{fontenc}\usepackage{lmodern}\raggedright",
        after="cairo",
    ),
    "elsarticle, two columns": Form(
        r"\documentclass[5p,times]{elsarticle}", narrow=True, by_section=True
    ),
    "scrreprt, Charter, 11 pt, A4": Form(
        r"\documentclass[11pt,a4paper,twoside]{scrreprt}", extra=r"\usepackage{charter}"
    ),
    "amsart, numbers at the left, 12 pt": Form(
        r"\documentclass[12pt,leqno]{amsart}", extra=r"\numberwithin{figure}{section}",
        by_section=True,
    ),
    "extbook, 9 pt, A5, sans serif, XeLaTeX": Form(
        r"\documentclass[9pt,twoside,a5paper]{extbook}", "xelatex",
        r"\usepackage{fontspec}\setmainfont{lmsans10-regular.otf}", narrow=True,
    ),
    "memoir, Letter, 12 pt, saved again by Ghostscript": Form(
        r"\documentclass[12pt,letterpaper,twoside]{memoir}", after="gs"
    ),
    "report, formulas and numbers at the left, dvips": Form(
        r"\documentclass[11pt,fleqn,leqno]{report}", "dvips", r"\usepackage{mathptmx}"
    ),
    "book with hyperref and microtype": Form(
        r"\documentclass[10pt,twoside]{book}",
        extra=r"\usepackage[T1]{fontenc}\usepackage{lmodern}\usepackage{microtype}\usepackage[hidelinks]{hyperref}",
    ),
}  # fmt: skip
OTHERS = (
    "Chromium prints KaTeX, ragged right",
    "LibreOffice, tabs",
    "LibreOffice, a table for each",
)


class Writer:
    """Writes a made-up chapter, the same for all forms but for its width."""

    def __init__(self, seed: int, narrow: bool) -> None:
        """Begin one."""
        self.random = random.Random(seed)
        self.narrow = narrow

    def sentences(self, count: int) -> list[str]:
        """Return some sentences."""
        found = []
        for _ in range(count):
            first, second = self.random.sample(CLAUSES, 2)
            text = f"{first}, and {second}" if self.random.random() < 0.5 else first
            found.append(text[0].upper() + text[1:] + ".")
        return found

    def citation(self) -> str:
        """Return a mention of an equation or a figure, as prose has them."""
        k = self.random.randint(FIRST_EQUATION, LAST_EQUATION)
        figure = self.random.randint(1, FIGURES)
        last = min(k + 2, LAST_EQUATION)
        return self.random.choice(
            [
                f"as Eq. ({CHAPTER}.{k}) says",
                f"by ({CHAPTER}.{k})",
                f"(Eq. {CHAPTER}.{k})",
                f"(see Fig. {CHAPTER}.{figure})",
                f"from ({CHAPTER}.{k}) to ({CHAPTER}.{last})",
                f"of Eq. ({CHAPTER - 1}.{k})",
                f"that is, ({CHAPTER}.{k}),",
                f"in Figure {CHAPTER}.{figure}",
            ]
        )

    def paragraph(self) -> str:
        """Return a paragraph with citations, some of them at its beginning and its end."""
        found = self.sentences(self.random.randint(2, 5))
        for _ in range(self.random.randint(0, 3)):
            at = self.random.randrange(len(found))
            words = found[at].split(" ")
            words.insert(self.random.randrange(2, len(words)), self.citation())
            found[at] = " ".join(words)
        k = self.random.randint(FIRST_EQUATION, LAST_EQUATION)
        chance = self.random.random()
        if chance < 0.1:
            found.insert(0, f"({CHAPTER}.{k}) is what the harbor master goes by.")
        elif chance < 0.2:
            found.insert(0, f"Figure {CHAPTER}.{self.random.randint(1, FIGURES)} shows the quay.")
        elif chance < 0.35:
            found[-1] = f"{found[-1][:-1]}, which follows from ({CHAPTER}.{k})"
        return " ".join(found)

    def parts(self) -> Iterator[tuple[str, str | int]]:
        """Yield the parts of the chapter: each its kind and its text."""
        figures = iter(range(1, FIGURES + 1))
        for k in range(1, LAST_EQUATION + 1):
            if k < FIRST_EQUATION:
                yield "example", self.sentences(1)[0]
                continue
            if (k - FIRST_EQUATION) % 8 == 0:
                yield "section", self.random.choice(("Tides", "Loaves", "Rows", "Clocks"))
            yield "text", self.paragraph()
            if self.random.random() < 0.45 and next(figures, None):
                yield "figure", self.sentences(1)[0]
            if self.random.random() < 0.12:
                yield "table", ""
            if self.random.random() < 0.1:
                yield "footnote", f"{self.sentences(1)[0]} See ({CHAPTER}.{k})."
            pool = SHORT if self.narrow else (*SHORT, *LONG)
            yield "equation", self.random.choice(SEVERAL if self.random.random() < 0.2 else pool)
            if self.random.random() < 0.6:
                yield "text", self.paragraph()
        for _ in figures:
            yield "figure", self.sentences(1)[0]
            yield "text", self.paragraph()


MARK = r"""
\makeatletter
\ifdefined\savepos\let\pdfsavepos\savepos\let\pdflastxpos\lastxpos\let\pdflastypos\lastypos\fi
\def\placed#1#2#3#4{}
\def\mark@here#1#2{\pdfsavepos\edef\mark@now{\write\@auxout{\string\placed{#1}{#2}{\noexpand\the\noexpand\c@page}%
{\noexpand\the\noexpand\pdflastypos}}}\mark@now}
\AtBeginDocument{\def\tagform@#1{\maketag@@@{\mark@here{equation}{\theequation}(\ignorespaces#1\unskip\@@italiccorr)}}%
\let\own@fnum\fnum@figure\def\fnum@figure{\mark@here{figure}{\thefigure}\own@fnum}}
\newcommand\ex[1]{\par\smallskip\refstepcounter{equation}\noindent\makebox[3em][l]{\mark@here{example}{\theequation}%
(\theequation)}#1\par\smallskip}
\makeatother
"""


def tex_of(form: Form, seed: int) -> str:
    """Return the chapter as a TeX document."""
    body = []
    for kind, text in Writer(seed, form.narrow).parts():
        if kind == "text":
            body.append(f"{text}\n\n")
        elif kind == "example":
            body.append(f"\\ex{{{text}}}\n")
        elif kind == "section":
            body.append(f"\\{'sub' * form.by_section}section{{{text}}}\n")
        elif kind == "equation":
            body[-1] = body[-1].rstrip("\n") + "\n"  # a formula ends no paragraph
            body.append(f"\\begin{{equation}}{text}\\end{{equation}}\n")
        elif kind == "figure":
            box = r"\fbox{\parbox{.7\linewidth}{\vspace{2cm}\centering quay (8.9)\vspace{1cm}}}"
            body.append(
                f"\n\\begin{{figure}}[t]\\centering{box}\\caption{{{text}}}\\end{{figure}}\n\n"
            )
        elif kind == "table":
            first, second = (f"({CHAPTER}.{seed % 9 + k})" for k in (5, 7))
            wide = r"tabular*}{\linewidth}{l@{\extracolsep{\fill}}rr", "tabular*"
            begin, end = wide if len(body) % 2 else ("tabular}{lrr", "tabular")
            rows = rf"line & stops & by\\ ferry & 3.2 & {first}\\ tram & 1.0 & {second}"
            table = f"\\begin{{{begin}}}{rows}\\end{{{end}}}"
            body.append(f"\n\\begin{{center}}{table}\\end{{center}}\n\n")
        elif kind == "footnote":
            body.append(f"A note.\\footnote{{{text}}}\n\n")
    within = (
        r"\numberwithin{equation}{section}\numberwithin{figure}{section}" if form.by_section else ""
    )
    head = (
        rf"\setcounter{{section}}{{{CHAPTER - 1}}}\section{{Harbors and Bakeries}}"
        if form.by_section
        else rf"\setcounter{{chapter}}{{{CHAPTER - 1}}}\chapter{{Harbors and Bakeries}}"
    )
    return "\n".join([
        form.tex, r"\usepackage{amsmath}", form.extra, within, MARK,
        r"\begin{document}", head, *body, r"\end{document}",
    ])  # fmt: skip


def run(*command: str, folder: Path) -> None:
    """Run a program, and end with what it said if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode and command[0] not in ("pdflatex", "lualatex", "xelatex", "latex"):
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def make_tex(name: str, form: Form, folder: Path, seed: int) -> None:
    """Write the PDF of a form, and the places of its numbers."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "a.tex").write_text(tex_of(form, seed), encoding="utf-8")
    engine = "latex" if form.engine == "dvips" else form.engine
    for _ in range(2):
        run(engine, "-interaction=nonstopmode", "a.tex", folder=work)
    if form.engine == "dvips":
        run("dvips", "-q", "a.dvi", folder=work)
        run("ps2pdf", "a.ps", "a.pdf", folder=work)
    if form.after == "gs":
        run(
            "gs",
            "-q",
            "-dNOPAUSE",
            "-dBATCH",
            "-sDEVICE=pdfwrite",
            "-sOutputFile=b.pdf",
            "a.pdf",
            folder=work,
        )
    if form.after == "cairo":
        run("pdftocairo", "-pdf", "a.pdf", "b.pdf", folder=work)
    if not (work / "a.pdf").is_file():
        sys.exit(f"{name}: TeX made no PDF; see {work / 'a.log'}")
    places = re.findall(
        r"\\placed ?\{(\w+)\}\{([\d.]+)\}\{(\d+)\}\{(-?\d+)\}", (work / "a.aux").read_text("utf-8")
    )
    keep(name, folder, work / ("b.pdf" if form.after else "a.pdf"), [
        {"kind": kind, "number": number, "page": int(page), "up": int(y) / 65781.76}
        for kind, number, page, y in places
    ])  # fmt: skip


def keep(name: str, folder: Path, pdf: Path, places: list[dict]) -> None:
    """Put a PDF and its truth under the name of its form."""
    stem = folder / re.sub(r"\W+", "-", name.lower()).strip("-")
    shutil.move(pdf, stem.with_suffix(".pdf"))
    truth = {"form": name, "places": places}
    stem.with_suffix(".json").write_text(json.dumps(truth), encoding="utf-8")
    print(f"{name}: {len(places)} places")


def html_of(seed: int, katex: Any) -> str:
    """Return the chapter as a page of HTML with formulas drawn by KaTeX."""
    number, figure = 0, 0
    body = [f"<h1>{CHAPTER} Harbors and Bakeries</h1>"]
    ids = []
    for kind, text in Writer(seed, True).parts():
        if kind in ("example", "equation"):
            number += 1
            ids.append(f"{kind}-{CHAPTER}-{number}")
        if kind == "example":
            body.append(f'<p id="{ids[-1]}"><span class="n">({CHAPTER}.{number})</span>{text}</p>')
        elif kind == "equation":
            drawn = katex.call(
                "katex.renderToString",
                f"{text}\\tag{{{CHAPTER}.{number}}}",
                {"displayMode": True, "output": "html"},
            )
            body.append(f'<div id="{ids[-1]}">{drawn}</div>')
        elif kind == "figure":
            figure += 1
            ids.append(f"figure-{CHAPTER}-{figure}")
            body.append(
                f'<figure><div class="box"></div><figcaption id="{ids[-1]}">'
                f"<b>Figure {CHAPTER}.{figure}.</b> {text}</figcaption></figure>"
            )
        elif kind == "table":
            row = f"<tr><td>ferry</td><td>3.2</td><td>({CHAPTER}.12)</td></tr>"
            body.append(f"<table>{row}{row.replace('12', '15')}</table>")
        elif kind == "section":
            body.append(f"<h2>{text}</h2>")
        else:
            body.append(f"<p>{text}</p>")
    links = "".join(f'<a href="#{one}">.</a>' for one in ids)
    styles = (
        "body { font: 11pt/1.4 serif } .n { display: inline-block; width: 4em } "
        "table { margin: auto } .box { height: 3cm; border: 1px solid } "
        "figcaption { font-size: 10pt } td { padding: 0 1em }"
    )
    head = f"<meta charset=utf-8><link rel=stylesheet href=katex.min.css><style>{styles}</style>"
    return f"<!doctype html>{head}{''.join(body)}<p>{links}</p>"


def make_chromium(name: str, folder: Path, seed: int) -> None:
    """Print the chapter by Chromium, which makes its anchors destinations of the PDF."""
    from playwright.sync_api import sync_playwright
    from py_mini_racer import MiniRacer

    katex = MiniRacer()
    katex.eval(
        (ROOT / "docs" / "site_build" / "katex" / "katex.min.js").read_text(encoding="utf-8")
    )
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "assets" / "katex", work)
    # The site's own names of KaTeX's classes
    (work / "a.html").write_text(html_of(seed, katex), encoding="utf-8")
    katex.close()
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto((work / "a.html").as_uri())
        page.pdf(
            path=str(work / "a.pdf"),
            format="Letter",
            margin=dict.fromkeys(("top", "bottom", "left", "right"), "2.5cm"),
        )
        browser.close()
    keep(name, folder, work / "a.pdf", [])


def make_office(name: str, folder: Path, seed: int) -> None:
    """Export the chapter by LibreOffice, with bookmarks at its numbers."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    number, figure, body = 0, 0, []
    is_table = "table" in name
    for kind, text in Writer(seed, True).parts():
        plain = (
            re.sub(r"\\[a-zA-Z]+|[{}$^&\\]", " ", str(text)) if kind == "equation" else str(text)
        )
        plain = plain.replace("&", "&amp;").replace("<", "&lt;")

        def anchor(kind: str, k: int) -> str:
            return f'<text:bookmark text:name="{kind}-{CHAPTER}-{k}"/>'

        if kind in ("example", "equation"):
            number += 1
            mark = f"{anchor(kind, number)}({CHAPTER}.{number})"
        if kind == "example":
            body.append(f'<text:p text:style-name="Ex">{mark}<text:tab/>{plain}</text:p>')
        elif kind == "equation" and is_table:
            cell = '<table:table-cell><text:p text:style-name="{}">{}</text:p></table:table-cell>'
            columns = "".join(
                f'<table:table-column table:style-name="{c}"/>' for c in ("Ca", "Cb", "Ca")
            )
            cells = cell.format("Mid", "") + cell.format("Mid", plain) + cell.format("Right", mark)
            body.append(
                f'<table:table table:style-name="T">{columns}'
                f"<table:table-row>{cells}</table:table-row></table:table>"
            )
        elif kind == "equation":
            body.append(
                f'<text:p text:style-name="Eq"><text:tab/>{plain}<text:tab/>{mark}</text:p>'
            )
        elif kind == "figure":
            figure += 1
            body.append(
                f'<text:p text:style-name="Cap">{anchor("figure", figure)}'
                f"Figure {CHAPTER}.{figure}: {plain}</text:p>"
            )
        elif kind == "section":
            body.append(f'<text:h text:outline-level="2">{plain}</text:h>')
        elif plain:
            body.append(f'<text:p text:style-name="Body">{plain}</text:p>')
    names = ("office", "style", "text", "table", "fo")
    spaces = {n: n for n in names} | {"fo": "xsl-fo-compatible"}
    declared = " ".join(
        f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{spaces[n]}:1.0"' for n in names
    )

    def style(name: str, size: int, inside: str = "", **given: str) -> str:
        said = " ".join(f'fo:{key.replace("_", "-")}="{value}"' for key, value in given.items())
        return (
            f'<style:style style:name="{name}" style:family="paragraph">'
            f"<style:paragraph-properties {said}>{inside}</style:paragraph-properties>"
            f'<style:text-properties fo:font-size="{size}pt"/></style:style>'
        )

    def tabs(*stops: tuple[str, str]) -> str:
        found = (f'<style:tab-stop style:position="{at}" style:type="{how}"/>' for at, how in stops)
        return f"<style:tab-stops>{''.join(found)}</style:tab-stops>"

    widths = "".join(
        f'<style:style style:name="{name}" style:family="table-column">'
        f'<style:table-column-properties style:column-width="{width}cm"/></style:style>'
        for name, width in (("Ca", 2), ("Cb", 12.5))
    )
    page = " ".join(
        f'fo:{key}="{value}"'
        for key, value in (
            *(("page-width", "21cm"), ("page-height", "29.7cm")),
            *((f"margin-{side}", "2.25cm") for side in ("left", "right", "top", "bottom")),
        )
    )
    styles = (
        style("Body", 11, text_align="start" if is_table else "justify", margin_bottom="0.2cm")
        + style("Eq", 11, tabs(("8.2cm", "center"), ("16.5cm", "right")), margin_bottom="0.2cm")
        + style("Ex", 11, tabs(("1.6cm", "left")))
        + style("Cap", 9)
        + style("Mid", 11, text_align="center")
        + style("Right", 11, text_align="end")
        + '<style:style style:name="T" style:family="table">'
        + '<style:table-properties style:width="16.5cm"/></style:style>'
        + widths
        + '<style:page-layout style:name="P">'
        + f"<style:page-layout-properties {page}/></style:page-layout>"
    )
    document = (
        f'<?xml version="1.0"?><office:document {declared} office:version="1.2" '
        'office:mimetype="application/vnd.oasis.opendocument.text">'
        f"<office:automatic-styles>{styles}</office:automatic-styles><office:master-styles>"
        '<style:master-page style:name="Standard" style:page-layout-name="P"/>'
        "</office:master-styles><office:body><office:text>"
        f"{''.join(body)}</office:text></office:body></office:document>"
    )
    (work / "a.fodt").write_text(document, encoding="utf-8")
    how = json.dumps({"ExportBookmarksToPDFDestination": {"type": "boolean", "value": "true"}})
    run(
        "soffice",
        "--headless",
        "--convert-to",
        f"pdf:writer_pdf_Export:{how}",
        "a.fodt",
        folder=work,
    )
    keep(name, folder, work / "a.pdf", [])


def make(folder: Path, only: str, first_seed: int) -> None:
    """Write all forms."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, form) in enumerate(FORMS.items(), start=first_seed):
        if only in name:
            make_tex(name, form, folder, seed)
    makers = (make_chromium, make_office, make_office)
    for seed, (name, maker) in enumerate(zip(OTHERS, makers, strict=True), start=first_seed + 50):
        if only in name:
            maker(name, folder, seed)
    shutil.rmtree(folder / "work", ignore_errors=True)


def find(files: list[Path], how: str) -> Iterator[dict]:
    """Yield what the page's scripts find in some PDFs."""
    command = [
        "node",
        "--no-warnings",
        str(ROOT / "benchmarks" / "book_numbers.mjs"),
        how,
        *map(str, files),
    ]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    for line in done.stdout.splitlines():
        yield json.loads(line)


def compare(places: list[dict], chosen: list[dict], room: float) -> dict:
    """Return how many of some places were found, and how many found ones are none of them."""
    shift = statistics.median(
        [
            p["y"] - c["y"]
            for p in places
            for c in chosen
            if p["number"] == c["number"] and p["page"] == c["page"]
        ]
        or [0]
    )

    def is_same(place: dict, one: dict) -> bool:
        near = abs(place["y"] - one["y"] - shift) < room
        return place["number"] == one["number"] and place["page"] == one["page"] and near

    missed = [p for p in places if not any(is_same(p, one) for one in chosen)]
    wrong = [one for one in chosen if not any(is_same(p, one) for p in places)]
    return {
        "places": len(places), "found": len(places) - len(missed), "wrong": len(wrong),
        "missed": [f"{p['number']} on page {p['page']}" for p in missed],
        "not_own": [f"{one['number']} on page {one['page']}" for one in wrong],
    }  # fmt: skip


def measure_form(result: dict, truth: dict) -> dict:
    """Compare what was found in a PDF of ours with its places."""
    places = truth["places"]
    room = 8.0
    if not places:  # the program has written them into the PDF
        room = 30.0
        places = result["own_places"]
    else:
        for place in places:
            place["y"] = -place["up"]
    numbers = ("equation", "example")
    return {
        "form": truth["form"],
        "pages": result["pages"],
        "cpu_s": round(result["cpu_s"], 2),
        "numbers": compare(
            [p for p in places if p["kind"] in numbers],
            [c for c in result["chosen"] if c["kind"] in numbers],
            room,
        ),
        "captions": compare(
            [p for p in places if p["kind"] == "figure"],
            [c for c in result["chosen"] if c["kind"] == "figure"],
            room + 2,
        ),
        "citations": len(result["all"]) - len(result["chosen"]),
    }


def measure(folder: Path, third: Path | None, out: Path | None) -> None:
    """Compare, print a table, and keep it."""
    files = sorted(folder.glob("*.pdf"))
    rows = []
    for result in find(files, "alone"):
        truth = json.loads(Path(result["file"]).with_suffix(".json").read_text("utf-8"))
        rows.append(measure_form(result, truth))
    manuals = []
    for result in find(sorted(third.glob("*.pdf")), "alone") if third else ():
        places = [p for p in result["destinations"] if p["kind"] == "equation"]
        chosen = [c for c in result["chosen"] if c["kind"] == "equation"]
        manuals.append({
            "file": Path(result["file"]).name,
            "pages": result["pages"],
            "cpu_s": round(result["cpu_s"], 2),
            "equations": match_anchors(places, chosen, result["all"]),
        })  # fmt: skip
    for row in [*rows, *manuals]:
        parts = [row.get("numbers") or row["equations"], row.get("captions")]
        said = "; ".join(f"{p['found']}/{p['places']} wrong {p['wrong']}" for p in parts if p)
        print(f"{row.get('form') or row['file']}: {row['pages']} pages, {said}")
        for part in filter(None, parts):
            for word in ("missed", "not_own"):
                if part[word]:
                    print(f"    {word}: {', '.join(part[word][:12])}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        commit = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, cwd=ROOT
        )
        about = {
            "date": datetime.now(UTC).date().isoformat(), "commit": commit.stdout.strip(),
            "machine": f"{platform.system()} {platform.machine()}",
        }  # fmt: skip
        text = json.dumps({**about, "forms": rows, "manuals": manuals}, indent=1) + "\n"
        (out / "numbers.json").write_text(text, encoding="utf-8")


LAYERS = {
    "memoir, numbers in a wide margin": (1, 2, 3),
    "IEEEtran, two columns": (1, 2),
    "extarticle, two columns, 9 pt, numbers at the left": (2, 3),
    "tufte-book, XeLaTeX": (6, 7),
    "report, Letter, 12 pt, dvips and Ghostscript": (4, 5),
    "Chromium prints KaTeX, ragged right": (2, 3),
    "LibreOffice, a table for each": (1, 2),
}
"""Pages whose text the tests have."""


def keep_layers(folder: Path, out: Path) -> None:
    """Write the text of some pages, with what stands on them."""
    out.mkdir(parents=True, exist_ok=True)
    for result in find(sorted(folder.glob("*.pdf")), "layers"):
        path = Path(result["file"])
        truth = json.loads(path.with_suffix(".json").read_text("utf-8"))
        pages = LAYERS.get(truth["form"], ())
        own = [
            {key: one[key] for key in ("page", "kind", "number")}
            for one in truth["places"] or result["own_places"]
            if one["page"] in pages
        ]
        layers = [layer for layer in result["layers"] if layer["page"] in pages]
        if layers:
            kept = {"form": truth["form"], "own": own, "layers": layers}
            text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
            (out / f"{path.stem}.json").write_text(text + "\n", encoding="utf-8")


def match_anchors(places: list[dict], chosen: list[dict], seen: list[dict]) -> dict:
    """Compare with hyperref's anchors, which stand above numbers; what a text lacks is left out."""

    def is_same(place: dict, one: dict) -> bool:
        is_named = one["number"].endswith(place["number"])  # some have a part in front: "I.2.1"
        return is_named and place["page"] == one["page"] and -25 < one["y"] - place["y"] < 260

    there = [p for p in places if any(is_same(p, one) for one in seen)]
    missed = [p for p in there if not any(is_same(p, one) for one in chosen)]
    named = {p["number"] for p in places}
    wrong = [
        c
        for c in chosen
        if c["number"].rstrip("abcdefgh") in named and not any(is_same(p, c) for p in places)
    ]
    return {
        "places": len(there), "found": len(there) - len(missed), "wrong": len(wrong),
        "without_name": sum(c["number"] not in named for c in chosen),
        "missed": [f"{p['number']} on page {p['page']}" for p in missed],
        "not_own": [f"{c['number']} on page {c['page']}" for c in wrong],
    }  # fmt: skip


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("make", "measure", "layers"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a part of a form's name")
    parser.add_argument("--seed", type=int, default=11, help="of the first form's text")
    parser.add_argument("--third", type=Path, help="a folder of other people's PDFs")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder, given.only, given.seed)
    elif given.what == "layers":
        keep_layers(given.folder, given.out)
    else:
        measure(given.folder, given.third, given.out)


if __name__ == "__main__":
    main()
