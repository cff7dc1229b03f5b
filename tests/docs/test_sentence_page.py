"""The page "One sentence": chapter 5's model, whose every number says how it was made."""

import hashlib
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from model_stage import answering, assert_accessible, on_a_phone, without_javascript

from slp_transformer import TransformerConfig, TransformerLM, record_activations

for library in ("mkdocs", "py_mini_racer", "safetensors"):
    pytest.importorskip(library)
ROOT = Path(__file__).parents[2]
import links  # noqa: E402
import model_pages  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
FOLDER = ASSETS / "model" / "chapter5"
WORDS = json.loads((FOLDER / "words.json").read_text("utf-8"))
MATRICES = [m for matrices in model_pages.groups().values() for m in matrices]


@cache
def model():
    from safetensors.torch import load_file

    spec = json.loads((FOLDER / "config.json").read_text("utf-8"))
    made = TransformerLM(TransformerConfig(**spec["config"])).requires_grad_(False)
    made.load_state_dict(load_file(FOLDER / "model.safetensors"))
    return made


def ids_of(sentence):
    return [WORDS["vocabulary"].index(word) for word in sentence.split()]


def test_the_weights_are_those_of_the_recorded_run():
    run = json.loads((ROOT / "benchmarks/results/page_model/result.json").read_text("utf-8"))
    weights = (FOLDER / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == run["sha256"] and len(weights) == run["bytes"]
    assert sum(W.numel() for W in model().parameters()) == run["weights"] == 38624
    ids = torch.tensor([ids_of(sentence) for sentence in WORDS["sentences"]])
    U = model()(ids[:, :-1])
    loss = torch.nn.functional.cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten()).item()
    assert loss == pytest.approx(run["loss"], abs=2e-3)  # that of the step before the last


def test_each_matrix_has_its_line_of_code_and_its_equations():
    slugs = tomllib.loads((ROOT / "slp_transformer/equations.toml").read_text("utf-8"))["equations"]
    for matrix in MATRICES:
        assert set(matrix.slugs) <= slugs.keys()
        line = model_pages.code_line(links.source_of(matrix.object, ROOT), matrix)
        assert matrix.code in line
    assert model_pages.places()["head-par"] == "m-head"


# --- In a browser ---------------------------------------------------------------------------------


@cache
def answer():
    """Return what answers the page's requests."""
    equations = {
        slug: SimpleNamespace(tex="x", numbers=["8.1", "7.1"])
        for matrix in MATRICES
        for slug in matrix.slugs
    }
    body = model_pages.fill_sentence(
        model_pages.SENTENCE_MARK,
        ROOT,
        equations,
        lambda slug: (f"#eq-{slug}", slug),
        lambda name: links.source_of(name, ROOT),
        "/assets/model/",
    )
    return answering("One sentence", "sentence", body)


@pytest.fixture
def page(browser):
    with on_a_phone(browser, answer(), ".sl-alive") as opened:
        yield opened


def number_of(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


CHECK = """async () => {
  const { inside } = await import("/assets/model/sentence.js");
  const { EXPLAIN, MATRICES, value, look, sizes } = inside, wrong = [];
  const [L, A] = sizes(), all = Array.from({length: L * A}, (_, k) => [Math.floor(k / A), k % A]);
  for (const name of Object.keys(MATRICES)) for (const [l, c] of all) {
    const M = look(name, {l, c});
    for (let k = 0; k < M.data.length; k += 7) {
      const cell = {name, l, c, i: Math.floor(k / M.columns), j: k % M.columns};
      const made = EXPLAIN[name](cell), x = value(cell);
      const near = made.number === x || Math.abs(made.number - x) < 1e-4;
      if (!near || typeof made.figures !== "string") wrong.push([cell, made.number, x]);
    }
  }
  return [Object.keys(EXPLAIN).sort(), Object.keys(MATRICES).sort(), wrong.slice(0, 5)];
}"""


def test_every_explanation_makes_its_number_whatever_is_switched(page):
    def check():
        explained, shown, wrong = page.evaluate(CHECK)
        assert wrong == [] and explained == shown

    check()
    page.uncheck("#sl-scaled")
    page.uncheck("#sl-finalNorm")
    page.select_option("#sl-off", "3")
    check()
    page.check("#sl-finalNorm")
    page.uncheck("#sl-causal")
    page.fill("#sl-tau", "0.5")
    page.fill("#sl-text", "the drummer tuned the drum")
    check()
    assert set(page.evaluate(CHECK)[1]) == {m.key for m in MATRICES} | set(model_pages.WEIGHTS)


def test_a_weight_is_followed_to_the_sum_of_its_score_in_three_touches(page):
    ids = torch.tensor(ids_of(model_pages.FIRST))
    with record_activations(model()) as trace:
        model()(ids)
    page.locator("#sl-block label", has_text="2").click()
    cell = page.locator("#m-alpha td[data-i='7'][data-j='2']")
    cell.click()
    dock = page.locator(".sl-dock")
    assert number_of(cell.inner_text()) == pytest.approx(
        trace[1]["alpha"][0, 7, 2].item(), abs=6e-3
    )
    assert re.search(r"α \[was, tightened\], block 2, head 1", dock.inner_text())
    dock.locator(".sl-strips button").nth(2).click()
    Q, K = trace[1]["Q"][0, 7], trace[1]["K"][0, 2]
    score = (Q @ K / 16**0.5).item()
    said = dock.locator(".sl-figures").inner_text()
    assert number_of(said.rpartition("= ")[2]) == pytest.approx(score, abs=6e-3)
    strips = dock.locator(".sl-strips tr")
    for strip, row in zip(strips.all(), (Q, K, Q * K), strict=True):
        numbers = [number_of(text) for text in strip.locator("td").all_inner_texts()]
        assert numbers == pytest.approx(row.tolist(), abs=6e-3)
    assert "math.sqrt(d_k)" in dock.inner_text() and "8.1 · 7.1" in dock.inner_text()
    assert page.locator("#m-scores .sl-chosen").inner_text() == said.rpartition("= ")[2]
    dock.get_by_role("button", name="Back").click()
    assert "α" in dock.locator(".sl-title").inner_text()
    assert page.locator("#m-scores .sl-lit").count() == 8
    page.keyboard.press("Escape")
    assert not dock.is_visible()


def test_a_sentence_that_the_model_cannot_read_is_refused_in_a_sentence(page):
    note = page.locator("#sl-note")
    for text, said in (
        ("the bassist", "never read “bassist”. It knows . because"),
        ("", "one word at least"),
        ("the " * 11, "10 positions here, and these are 11 tokens"),
    ):
        page.fill("#sl-text", text)
        assert said in note.inner_text()
        assert page.locator(".sl-tokens li").count() == 8  # what was there stays
    page.fill("#sl-text", "The drummer tuned")
    assert note.inner_text() == "" and page.locator(".sl-tokens li").count() == 3


def test_axe_finds_nothing_where_matrices_are_open(page):
    page.evaluate(
        """for (const name of ['X', 'scores', 'masked', 'y', 'u'])
          document.getElementById(`m-${name}`).open = true"""
    )
    page.fill("#sl-text", "the guitarist tuned the")
    page.locator("#m-X td[data-i='3'][data-j='4']").click()
    assert_accessible(page)


def test_without_javascript_there_is_a_picture_of_the_sentence(browser):
    with without_javascript(browser, answer()) as page:
        assert page.locator(".sl-still .slp-alpha").count() == 7
        assert page.locator(".sl-still").is_visible() and not page.locator("#sl-text").is_visible()
        assert not page.locator(".sl-dock").is_visible()
