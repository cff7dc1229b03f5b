"""Which numbers in prose are those of equations, and where they lead."""

import json

import pytest

pytest.importorskip("mkdocs")

import previews  # noqa: E402

from slp_transformer._internal.equations import Equations  # noqa: E402

BOOK = Equations(
    """
    [drafts]
    2025-01 = "Jan 2025 draft"
    2026-08 = "Aug 2026 draft"
    [equations]
    early = { title = "Early", 2025-01 = "8.6", 2026-08 = "7.6" }
    late = { title = "Late", 2025-01 = "8.11", 2026-08 = "7.13" }
    rest = { title = "Rest", 2025-01 = "section 7.4", 2026-08 = "7.50-7.51" }
    """
)


def linked(text):
    return previews.linked(text, lambda slug: (f"#eq-{slug}", ""), BOOK)


@pytest.mark.parametrize(
    ("text", "words", "slug"),
    [
        ("<p>as (8.6) says", "8.6", "early"),
        ("<p>as 8.11 · 7.13 says", "8.11 · 7.13", "late"),
        ("<p>(in 8.6 to 8.11, i counts)", "8.6 to 8.11", "early"),
        ("<p>(<code>rest</code> · section 7.4 · 7.50-7.51)", "7.50-7.51", "rest"),
        ("<p>it is 7.6 in the Aug 2026 draft", "7.6", "early"),
        ('<span class="eq">late · 8.11 · 7.13</span>', "8.11 · 7.13", "late"),
    ],
)
def test_numbers_of_equations_lead_to_them(text, words, slug):
    assert linked(text) == text.replace(words, f'<a href="#eq-{slug}">{words}</a>')


@pytest.mark.parametrize(
    "text",
    [
        "<p>a loss of 7.6 nats",
        "<p>(Fig. 8.6 · 7.6)",
        "<p>in Fig. 8.11 (7.13)",
        "<p>Sections 8.6 (2025-26 drafts) and 7.6",
        "<p>exercise 7.50",
        "<p>(8.7) is no number",
        "<p>version (8.6.1)",
        "<pre>(8.6)</pre><h2>The sum (8.6)</h2>",
        '<a href="x">(8.6)</a>',
        "<!-- tex --><span>(8.6)</span><!-- /tex -->",
        '<div class="slp-output"><p>(8.6)</p><!-- /output -->',
    ],
)
def test_other_numbers_stay_as_they_are(text):
    assert linked(text) == text


def test_a_number_is_known_by_its_equation_and_its_twins():
    shown = json.loads(previews.as_json({}, BOOK, lambda slug: [], {}))
    assert shown["numbers"]["7.13"] == {
        "slug": "late", "draft": "2026-08", "twins": {"2025-01": "8.11", "2026-08": "7.13"},
    }  # fmt: skip
    assert shown["numbers"]["7.51"]["twins"] == {"2026-08": "7.51"}


NOTATION = """
| letter | shape | what it is | in the code | chapter |
|---|---|---|---|---|
| $p$ | | a number | `p` | <a href="../chapters/06_decoding/">6</a> |
| $\\mathbf q_i,\\mathbf k_j$ | $[1\\times d]$ | query, key | `q` | <a href="../chapters/1_a/">1</a> |
"""


def test_the_first_use_of_a_symbol_leads_to_its_row_of_the_notation():
    known = previews.symbols(NOTATION)
    text = "<p>$p$ and $\\mathbf k_j$, then $\\mathbf q_i$ and $$\\mathbf k_j$$"
    link = '<a class="slp-symbol" href="n/#symbol-1">$\\mathbf k_j$</a>'
    assert previews.with_symbols(text, known, "n/") == text.replace("$\\mathbf k_j$", link, 1)
    assert 'id="symbol-1"></span>$\\mathbf q_i' in previews.with_anchors(NOTATION)
    shown = json.loads(previews.as_json({}, BOOK, lambda slug: [], known))["equations"]["symbol-1"]
    assert shown["title"] == "query, key" and shown["place"] == "q"
    assert shown["links"] == [["Notation", "notation/#symbol-1"], ["Chapter", "chapters/1_a/"]]
