"""Numbers of equations in the text of a PDF: own ones are found, others not; and which draft it is.

`text_layers/` has the text of some pages, as `benchmarks/book_numbers.py layers` writes it.
"""

import json
from pathlib import Path

import pytest
from js_engines import DOCS, as_expression

from slp_transformer._internal.equations import load_equations

pytest.importorskip("py_mini_racer", reason="the finder runs in V8")

LAYERS = sorted((Path(__file__).parent / "text_layers").glob("*.json"))
BOOK = DOCS / "assets" / "book"
READ = """(pages) => {
  let inExercises = false;
  const read = pages.map(({ items, view, ...given }) => {
    const full = items.map(([str, transform, width, font]) =>
      ({ str, transform, width, fontName: `f${font}` }));
    const page = F.readPage(full, view, { ...given, inExercises });
    ({ inExercises } = page);
    return page;
  });
  return { read, chosen: F.choose(read, pages.destinations ?? []) };
}"""


@pytest.fixture(scope="module")
def engine():
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    for name, script in (("F", "finder.js"), ("C", "chapter.js")):
        code = (BOOK / script).read_text("utf-8")
        engine.eval(f"const {name} = {as_expression(code)};")
    engine.eval(f"const read = {READ};")
    yield engine
    engine.close()


@pytest.fixture
def run(engine):
    """Run an expression of some values in V8."""

    def ask(expression, **given):
        names, values = ",".join(given), ",".join(json.dumps(value) for value in given.values())
        return json.loads(
            engine.eval(f"JSON.stringify((({names}) => ({expression}))({values}) ?? null)")
        )

    return ask


@pytest.fixture
def find(run):
    """Return what is found on some pages, as sorted (page, kind, number)."""

    def ask(*pages, destinations=()):
        expression = "read(Object.assign(pages, { destinations })).chosen"
        chosen = run(expression, pages=pages, destinations=destinations)
        return sorted(
            (c["page"], c["kind"], f"{c['chapter']}.{c['index']}{c['suffix']}") for c in chosen
        )

    return ask


@pytest.mark.parametrize("path", LAYERS, ids=lambda path: path.stem)
def test_all_own_numbers_of_a_form_are_found_and_nothing_else(path, find):
    kept = json.loads(path.read_text("utf-8"))
    found = [(page, number) for page, kind, number in find(*kept["layers"])]
    assert sorted(found) == sorted((one["page"], one["number"]) for one in kept["own"])
    assert len(found) >= 4


# --- pages by hand --------------------------------------------------------------------------------

SIZE, LETTER, LEFT, RIGHT, TOP = 10.0, 5.0, 72.0, 400.0, 60.0
PROSE = "the ferry leaves the quay before the tide turns and every crate is weighed"


class Page:
    """A page that is written line by line: each letter is half as wide as it is high."""

    def __init__(self, number=1, width=500, left=LEFT, right=RIGHT):
        self.number, self.width, self.left, self.right = number, width, left, right
        self.items, self.y = [], TOP

    def at(self, x, text, size=SIZE, font=0, width=None):
        """Write something at a place of the line."""
        wide = len(text) * LETTER * size / SIZE if width is None else width
        self.items.append([text, [size, 0, 0, size, x, 700 - self.y], wide, font])
        return self

    def line(self, text="", **how):
        """Write a line of prose, which ends at the margin, as if it were justified."""
        self.at(self.left, text, width=self.right - self.left, **how)
        return self.down()

    def prose(self, lines=4):
        for _ in range(lines):
            self.line(PROSE)
        return self

    def down(self, by=12):
        self.y += by
        return self

    def equation(self, number, formula="y = f(x) + b", end=None):
        """Write a formula in the middle, and its number at the right margin."""
        self.down(8).at(self.left + 90, formula, font=1)
        self.at((end or self.right) - len(number) * LETTER, number)
        return self.down(20)

    @property
    def layer(self):
        view = [1, 0, 0, -1, 0, 700]
        return {"page": self.number, "width": self.width, "height": 700, "view": view,
                "items": self.items}  # fmt: skip


def numbers(found):
    return [number for _, kind, number in found if kind in ("equation", "example")]


def test_a_number_at_the_margin_is_one_s_own_and_citations_are_not(find):
    page = Page().prose().equation("(8.14)").prose()
    page.line("so that by (8.15) the crates are weighed and (8.16) is what the baker")
    page.line("(8.13) is what the harbor master goes by, who has never seen a ledger")
    page.line("before the ferry leaves the quay the sum is what follows from (8.12)")
    page.line("and the first word of the line after this one is its last, see Eq.")
    page.at(LEFT, "(8.17)").down()
    assert numbers(find(page.layer)) == ["8.14"]


def test_a_footnote_is_no_place_for_a_number(find):
    page = Page().prose().equation("(8.14)").prose().down(30)
    page.at(LEFT, "See the ledger.", size=7).at(RIGHT - 21, "(8.15)", size=7)
    assert numbers(find(page.layer)) == ["8.14"]


def test_numbers_in_a_table_are_not_taken_even_at_the_margin(find):
    page = Page().prose().equation("(8.14)").prose()
    for ship, stops, by in (("line", "stops", "by"), ("ferry", "3.2", "(8.15)"),
                            ("tram", "1.0", "(8.19)")):  # fmt: skip
        page.at(200, ship).at(300, stops).at(RIGHT - len(by) * LETTER, by).down()
    assert numbers(find(page.prose().layer)) == ["8.14"]


def test_aligned_formulas_each_have_their_number(find):
    page = Page().prose().down(8)
    for k in range(40, 45):
        page.at(LEFT + 90, f"T{k} = LayerNorm(X)", font=1).at(RIGHT - 30, f"(8.{k})").down()
    assert numbers(find(page.down(8).prose().layer)) == [f"8.{k}" for k in range(40, 45)]


@pytest.mark.parametrize(
    ("pieces", "number"),
    [
        ([(-30, "(8.14)")], "8.14"),
        ([(-30, "(8"), (-20, "."), (-15, "14)")], "8.14"),
        ([(-35, "( 8.14"), (-5, ")")], "8.14"),
        ([(-30, "(8:14)")], "8.14"),
        ([(-35, "(8.14a)")], "8.14a"),
        ([(-25, "(A.3)")], "A.3"),
    ],
)
def test_a_number_may_be_split_joined_and_written_otherwise(pieces, number, find):
    page = Page().prose().down(8).at(LEFT + 90, "y = f(x)", font=1)
    for shift, text in pieces:
        page.at(RIGHT + shift, text)
    assert numbers(find(page.down(20).prose().layer)) == [number]


def test_a_number_in_one_piece_with_its_formula_is_found(find):
    page = Page().prose().down(8)
    blanks = " " * 20
    text = f"y = f(x) + b{blanks}(8.14)"
    page.at(RIGHT - len(text) * LETTER, text)
    assert numbers(find(page.down(20).prose().layer)) == ["8.14"]


def test_a_formula_of_several_lines_has_one_number_between_them(find):
    page = Page().prose().down(8).at(LEFT + 90, "O = X + MH(X)", font=1).down(7)
    page.at(RIGHT - 30, "(8.38)").down(7).at(LEFT + 90, "H = O + FFN(O)", font=1)
    assert numbers(find(page.down(20).prose().layer)) == ["8.38"]


def test_numbers_may_stand_at_the_left(find):
    page = Page().prose().down(8).at(LEFT, "(8.14)").at(LEFT + 120, "y = f(x)", font=1)
    page.down(20).prose().line("(8.13) is what the harbor master goes by, as it was read")
    assert numbers(find(page.layer)) == ["8.14"]


def test_numbers_and_formulas_may_both_stand_at_the_left_a_word_s_blank_apart(find):
    page, wide = Page().prose(), 6 * LETTER
    formula = "T(X) = (q1 + q2 + ... + qM) W for all (i, j)"
    for rest, at in ((formula, 14), ("and (8.17), too.", 16), ("turns.", 17)):
        blank = (0.43 if at < 17 else 0.6) * SIZE
        page.at(LEFT, f"(8.{at})").at(LEFT + wide + blank, rest, font=1).down().prose()
    assert numbers(find(page.layer)) == ["8.14"]


def test_both_columns_of_a_page_have_numbers_and_are_read_one_after_the_other(find):
    page = Page(width=600)
    for left, first in ((50, 14), (310, 16)):
        page.left, page.right, page.y = left, left + 240, TOP
        for k in (first, first + 1):
            page.prose(3).down(8).at(left + 60, "y = f(x)", font=1)
            page.at(page.right - 30, f"(8.{k})").down(20).prose(2)
    assert numbers(find(page.layer)) == ["8.14", "8.15", "8.16", "8.17"]


def test_numbers_in_a_wide_margin_make_an_edge_of_their_own(find):
    pages = []
    for number in (1, 3, 5):
        page = Page(number).prose(6)
        for k in range(2):
            page.equation(f"(8.{number + k})", end=RIGHT + 70).prose(3)
        pages.append(page.layer)
    assert numbers(find(*pages)) == [f"8.{k}" for k in range(1, 7)]


def test_margins_of_left_and_right_pages_differ_and_help_a_page_with_little_text(find):
    pages = [Page(1).prose(8), Page(2, left=100, right=428).prose(8), Page(3).prose(8)]
    last = Page(4, left=100, right=428)
    last.equation("(8.14)")
    assert numbers(find(*[one.layer for one in (*pages, last)])) == ["8.14"]


def test_numbers_rise_so_a_stray_one_is_left_out(find):
    page = Page().prose()
    for number in ("(8.12)", "(8.50)", "(8.13)", "(8.14)"):
        page.equation(number).prose(2)
    assert numbers(find(page.layer)) == ["8.12", "8.13", "8.14"]


def test_a_page_that_is_turned_is_read_as_it_is_shown(find):
    page = Page().prose().equation("(8.14)").prose().layer
    for item in page["items"]:  # up the page, from its left edge
        x, y = item[1][4:]
        item[1] = [0, SIZE, -SIZE, 0, 700 - y, x]
    page["view"] = [0, 1, 1, 0, 0, 0]
    assert numbers(find(page)) == ["8.14"]


def test_destinations_tell_a_number_from_a_citation(find):
    """Without them the first of two such places is taken."""
    page = Page().prose().equation("(8.14)").prose(2).equation("(8.14)").prose()
    (second,) = [at[1][5] for at in page.items[-8:] if at[0] == "(8.14)"]
    there = {"page": 1, "kind": "equation", "number": "8.14", "y": 700 - second - 12}
    plain, named = find(page.layer), find(page.layer, destinations=[there])
    assert numbers(plain) == numbers(named) == ["8.14"]


def test_captions_are_taken_and_sentences_that_begin_alike_are_not(find):
    page = Page().prose().down(20)
    page.at(LEFT, "Figure 8.3", font=2).at(LEFT + 60, "A ferry and its quay.", size=9).down(30)
    page.prose(2).line("Figure 8.2 shows the quay, and nothing else that one would expect")
    page.line("in the rows of the orchard, whose twelve rows are not alike in length")
    page.line("Figure 8.4. After that the ferry leaves the quay before the tide turns")
    assert [(kind, n) for _, kind, n in find(page.layer)] == [("figure", "8.3")]


def test_a_caption_in_the_font_of_the_text_is_known_by_its_colon(find):
    page = Page().prose().down(20).at(LEFT, "Figure 8.3: A ferry and its quay.").down(30).prose()
    assert [(kind, n) for _, kind, n in find(page.layer)] == [("figure", "8.3")]


def test_exercises_are_numbered_behind_their_heading_alone(find):
    page = Page().at(LEFT, "7.1 Attention", size=14, font=3).down(30).prose()
    page.down(20).at(LEFT, "Exercises", size=14, font=3).down(30)
    for k in (1, 2):
        page.at(LEFT, f"7.{k}", font=3).at(LEFT + 30, "How many rows has the orchard?").down(30)
    after = Page(2).at(LEFT, "7.3", font=3).at(LEFT + 30, "And how many trees?").down(30)
    found = find(page.layer, after.layer)
    assert [n for _, kind, n in found if kind == "exercise"] == ["7.1", "7.2", "7.3"]


def test_a_page_made_to_be_slow_is_read_at_once(run):
    items = [["(8.1)" * 400, [1, 0, 0, 1, 0, y], 400, 0] for y in range(400)]
    layer = {"page": 1, "width": 500, "height": 700, "view": [1, 0, 0, -1, 0, 700], "items": items}
    assert run("read(pages).read[0].found.length", pages=[layer]) <= 300


# --- which draft ----------------------------------------------------------------------------------

DRAFTS = [
    {"key": key, "name": name} | load_equations().chapters[key]
    for key, name in load_equations().drafts.items()
]
EQUATIONS = [
    {"slug": slug, "title": entry["title"], "chapters": [f"chapters/x/#eq-{slug}"],
     "drafts": {key: load_equations().numbers_of(slug, key) for key in load_equations().drafts}}
    for slug, entry in load_equations().slugs.items()
]  # fmt: skip
REPORT = """(() => {
  const drafts = C.withNumbers(infos, equations);
  const chosen = numbers.map((number, k) => ({
    kind: "equation", chapter: number.split(".")[0], index: Number(number.split(".")[1]),
    page: k + 1, y: 100,
  }));
  const pages = Array.from({ length: total }, (_, k) =>
    ({ text: k ? "" : first, letters, unnamed }));
  const recognized = C.recognize(chosen, drafts, first, wanted);
  const report = C.reportOn({ pages, total, chosen, recognized, drafts });
  return { draft: recognized.draft?.key ?? "", how: recognized.how, text: report.text,
    missing: report.missing.map(({ number }) => number), chapterPage: report.chapterPage };
})()"""


@pytest.fixture
def report(run):
    """Return what is said of a PDF with some numbers."""

    def ask(numbers, first="", wanted="", letters=2000, unnamed=0, total=30):
        given = {"numbers": numbers, "first": first, "wanted": wanted, "letters": letters}
        given |= {"unnamed": unnamed, "total": total, "infos": DRAFTS, "equations": EQUATIONS}
        return run(REPORT, **given)

    return ask


def span(chapter, first, last):
    return [f"{chapter}.{k}" for k in range(first, last + 1)]


@pytest.mark.parametrize(
    ("numbers", "draft"), [(span(8, 1, 54), "2026-01"), (span(7, 6, 59), "2026-08")]
)
def test_a_draft_is_known_by_its_numbers(numbers, draft, report):
    told = report(numbers)
    assert (told["draft"], told["how"], told["missing"]) == (draft, "numbers", [])
    assert "equations found" in told["text"] and "by its numbers" in told["text"]


def test_what_is_missing_is_listed(report):
    told = report([n for n in span(8, 6, 54) if n not in ("8.21", "8.44")])
    assert told["missing"] == ["8.21", "8.44"]
    assert told["text"].startswith("47 of 49 equations found")


def test_another_chapter_with_the_same_numbers_is_not_taken_for_ours(report):
    told = report(span(7, 6, 30), first="7 Large Language Models\n")
    assert told["draft"] == "" and "another chapter, another book or another draft" in told["text"]


TITLES = {
    "2026-01": "Speech and Language Processing. January 6, 2026.\nCHAPTER\n8\nTransformers",
    "2026-08": "Draft of August 19, 2026\nC H A P T E R\n7\nTransformers\nand Pretraining",
}


@pytest.mark.parametrize("draft", TITLES)
def test_a_first_page_tells_the_draft_though_numbers_are_few(draft, report):
    numbers = span(TITLES[draft].count("8\nT") and 8 or 7, 6, 12)
    told = report(numbers, first=TITLES[draft])
    assert (told["draft"], told["how"]) == (draft, "first page")


def test_august_2025_has_the_numbers_of_january_2026(report):
    first = "Draft of August 24, 2025.\nCHAPTER 8\nTransformers"
    assert report(span(8, 6, 12), first=first)["draft"] == "2026-01"


def test_a_first_page_that_the_numbers_contradict_is_not_believed(report):
    assert report(span(8, 70, 120), first=TITLES["2026-01"])["draft"] == ""


def test_a_draft_of_another_month_is_said_to_be_unknown(report):
    told = report(span(9, 1, 40), first="Draft of March 3, 2027\nCHAPTER 9\nTransformers")
    assert told["draft"] == "" and "2027-03" in told["text"] and "not known here" in told["text"]


def test_the_next_chapter_of_a_draft_has_the_numbers_that_are_ours(report):
    first = "Speech and Language Processing\nDraft of August 19, 2026\nCHAPTER 8\nPost-training"
    told = report(span(8, 1, 9), first=first)
    assert told["draft"] == "2026-08" and told["text"].startswith("1 of 1 equation found")
    assert "not the Transformer’s chapter, which is 7" in told["text"]
    # Without a first page it is asked for, and a reader's choice is followed.
    assert report(span(8, 1, 9))["draft"] == ""
    assert report(span(8, 1, 9), wanted="2026-08")["text"].startswith("1 of 1 equation found")


def test_a_choice_is_above_all_and_a_strange_one_is_doubted(report):
    told = report(span(8, 6, 54), wanted="2026-08")
    assert (told["draft"], told["how"]) == ("2026-08", "choice")
    told = report([*span(7, 6, 20), *span(7, 70, 90)], wanted="2026-08")
    assert "is it that draft?" in told["text"]


def test_of_a_whole_book_the_chapter_is_offered(report):
    numbers = [*span(2, 1, 9), *span(5, 1, 30), *span(8, 6, 54), *span(9, 1, 9)]
    told = report(numbers, total=700)
    assert told["draft"] == "2026-01" and told["chapterPage"] == 40
    assert told["text"].startswith("49 of 49") and "whole book" in told["text"]


@pytest.mark.parametrize(
    ("numbers", "how", "words"),
    [
        ([], {"letters": 0}, "These pages are pictures"),
        ([], {"unnamed": 1600}, "letters of this PDF have no names"),
        ([], {}, "No numbered equation was found on 30 pages"),
        (span(10, 1, 59), {}, "Draft"),
        ([*span(2, 1, 9), *span(3, 1, 9), *span(4, 1, 9)], {}, "27 numbered equations in 3 chap"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(numbers, how, words, report):
    told = report(numbers, **how)
    assert told["draft"] == "" and words in told["text"]


def test_while_pages_are_read_it_says_how_far(run):
    expression = """C.reportOn({ pages: [{ text: "", letters: 9, unnamed: 0 }], total: 40,
      chosen: [], recognized: { draft: null }, drafts: [] }).text"""
    assert run(expression) == "Reading page 1 of 40 …"
