"""The book's equations: one file has their numbers, and a new draft is one more column."""

import pytest

from slp_transformer._internal.equations import Equations, load_equations

FILE = """
[drafts]
2026-01 = "Jan 2026 draft"
2026-08 = "Aug 2026 draft"
[equations]
ln-mean = { title = "Mean", 2026-01 = "8.22", 2026-08 = "7.23" }
ln-std = { title = "Deviation", 2026-01 = "8.23", 2026-08 = "7.24" }
ln = { title = "Layer norm", 2026-01 = "8.25", 2026-08 = "7.26" }
temperature = { title = "Temperature", 2026-01 = "section 7.4", 2026-08 = "7.50-7.52" }
swish = { title = "Swish", 2026-08 = "7.21" }
"L(N)" = { title = "Loss", 2026-01 = "8.49" }
sinusoid = { title = "Sinusoids", where = "Vaswani et al. 2017" }
"""
BOOK = Equations(FILE)


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("`ln`", "ln (8.25 · 7.26)"),
        ("`ln-mean` to `ln`, with ε", "ln-mean to ln (8.22-8.25 · 7.23-7.26), with ε"),
        ("`ln-mean` and `ln`", "ln-mean and ln (8.22, 8.25 · 7.23, 7.26)"),
        ("`swish`", "swish (7.21 in the Aug 2026 draft)"),
        ("`L(N)`", "L(N) (8.49 in the Jan 2026 draft)"),
        ("`sinusoid`", "sinusoid (Vaswani et al. 2017)"),
        ("`temperature`", "temperature (section 7.4 · 7.50-7.52)"),
        ("with `W_Q` and no slug", "with `W_Q` and no slug"),
        ("`ln` and `W_Q`, one of them a slug", "`ln` and `W_Q`, one of them a slug"),
    ],
)
def test_slugs_in_a_text_get_their_numbers(text, cited):
    assert BOOK.add_numbers_to(text) == cited


def test_a_range_of_slugs_names_those_between():
    assert BOOK.slugs_named_in("see `ln-mean` to `ln`, and `swish`") == [
        "ln-mean",
        "ln",
        "swish",
        "ln-std",
    ]
    assert BOOK.numbers_of("temperature") == ["7.50", "7.51", "7.52"]
    assert BOOK.numbers_of("ln") == ["8.25", "7.26"] and BOOK.numbers_of("sinusoid") == []


def test_a_new_draft_is_one_more_column():
    moved = FILE.replace("[equations]", '2027-01 = "Jan 2027 draft"\n[equations]')
    moved = moved.replace('"7.26" }', '"7.26", 2027-01 = "6.1" }')
    assert Equations(moved).format_place("ln") == "8.25 · 7.26 · 6.1"
    assert (
        Equations(moved).format_place("ln-std")
        == "8.23 in the Jan 2026 draft, 7.24 in the Aug 2026 draft"
    )


def test_every_equation_has_a_title_and_a_place():
    book = load_equations()
    for slug, columns in book.slugs.items():
        assert columns["title"] and book.format_place(slug), slug
        assert set(columns) <= {"title", "where", *book.drafts}, slug
    for draft in book.drafts:
        numbers = [
            c[draft] for s, c in book.slugs.items() if c.get(draft, "") in book.numbers_of(s)
        ]
        assert len(numbers) == len(set(numbers)), f"a number stands twice in {draft}"


def test_the_column_of_a_draft_is_filled():
    """A column with few numbers would change how all equations are cited."""
    book = load_equations()
    for draft in book.drafts:
        assert sum(draft in one for one in book.slugs.values()) > len(book.slugs) / 2, draft
