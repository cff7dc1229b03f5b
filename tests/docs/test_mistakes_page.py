"""The page "Break it" says what its recorded run says."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("jinja2")
import model_pages  # noqa: E402

RUN = json.loads((ROOT / "benchmarks/results/mistakes/mistakes.json").read_text("utf-8"))
TRAINED = {m["name"]: m for m in RUN["mistakes"] if m["loss"]}
LOSS = {name: median(m["loss"]) for name, m in TRAINED.items()}
PAGE = (ROOT / "docs" / "break-it.md").read_text("utf-8")


def test_seven_see_ahead_and_their_losses_are_those_of_the_page():
    below = {name for name, loss in LOSS.items() if loss < RUN["floor"] - 0.005}
    ahead = {name for name in below if not TRAINED[name]["witnesses"]["causal"]}
    assert below - ahead == {"targets not shifted"} and len(ahead) == 7
    assert max(LOSS[name] for name in ahead) < 0.0035
    alone = [median(TRAINED[name]["prefix_loss"]) for name in ahead]
    assert (f"{min(alone):.2f}", f"{max(alone):.2f}") == ("0.79", "1.79")
    assert "0.79 to 1.79" in PAGE and f"{RUN['floor']:.3f}" in PAGE


def test_eleven_end_near_the_right_one_and_equality_misses_two():
    near = [n for n, x in LOSS.items() if abs(x - LOSS["right"]) < 0.005 and n != "right"]
    assert len(near) == 11 and all(LOSS[name] > RUN["floor"] - 0.001 for name in near)
    unseen = {m["name"] for m in RUN["mistakes"] if m["witnesses"]["equal"]} - {"right"}
    assert unseen == {"positions from 0 with a cache", "targets not shifted"}
    assert LOSS["no final norm"] < LOSS["right"]
    shares = TRAINED["no mask"]["sentences_of_the_text"]
    assert [round(200 * share) for share in shares] == [16, 183, 162]
    assert "16, 183 and 162 of the 200 texts" in " ".join(PAGE.split())


def test_every_mistake_has_a_row_and_three_have_no_name_above_their_answer():
    page = model_pages.fill_mistakes(PAGE, ROOT)
    rows = page.count('<details id="mistake-')
    assert rows == len(RUN["mistakes"]) and page.count("<details>") == 3
    for name in model_pages.UNNAMED:
        shown = {key for key, passed in TRAINED[name]["witnesses"].items() if not passed}
        alike = [
            m["name"]
            for m in RUN["mistakes"]
            if {key for key, passed in m["witnesses"].items() if not passed} == shown
            and m["loss"]
            and (median(m["loss"]) < RUN["floor"] - 0.005) == (LOSS[name] < RUN["floor"] - 0.005)
            and sees_next(m) == sees_next(TRAINED[name])
        ]
        assert alike == [name]  # tests, loss and map tell it from all others
    models = page.partition("Three mistakes to find")[2]
    assert [re.sub(r"\W", "", m) for m in re.findall(r">Model (\w)<", models)] == ["A", "B", "C"]


def test_an_answer_is_judged(browser):
    with browser.new_context(java_script_enabled=True) as context:
        page = context.new_page()
        page.set_content(model_pages.fill_mistakes(model_pages.QUIZ_MARK, ROOT))
        for section, right in zip(page.locator("section").all(), model_pages.UNNAMED, strict=True):
            said, solution = section.locator("output"), section.locator("details")
            section.locator("select").select_option(label="mask after the softmax")
            assert said.inner_text().startswith("No. With that line wrong, rows, causality,")
            assert solution.get_attribute("open") is None
            section.locator("select").select_option(label=right)
            assert said.inner_text() == "Right." and solution.get_attribute("open") is not None


def sees_next(mistake):
    """Return which later words the first head looks at: none, the next one, or any."""
    rows = [[float(a) for a in row.split()] for row in mistake["alpha"]]
    later = {j - i for i, row in enumerate(rows) for j, a in enumerate(row) if j > i and a > 0.005}
    return max(later, default=0)
