"""The page "One sentence": chapter 5's model, whose every number says how it was made."""

import hashlib
import json
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from js_engines import Racer
from model_stage import answering, assert_accessible, model_of, on_a_phone, without_scripts

from slp_transformer import record_activations
from slp_transformer.cli import main
from slp_transformer.tasks.text import TextTask
from slp_transformer.training.checkpoints import load_model

for library in ("mkdocs", "py_mini_racer", "safetensors"):
    pytest.importorskip(library)
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site_build"))
import links  # noqa: E402
import model_pages  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
FOLDER = ASSETS / "model" / "chapter5"
MODEL = model_of("chapter5")
WORDS = json.loads((FOLDER / "words.json").read_text("utf-8"))
MATRICES = [m for matrices in model_pages.groups().values() for m in matrices]


def ids_of(sentence):
    return [WORDS["vocabulary"].index(word) for word in sentence.split()]


def test_the_weights_are_those_of_the_recorded_run():
    run = json.loads((ROOT / "benchmarks/results/page_model/result.json").read_text("utf-8"))
    weights = (FOLDER / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == run["sha256"] and len(weights) == run["bytes"]
    assert sum(W.numel() for W in MODEL.parameters()) == run["weights"] == 38624
    ids = torch.tensor([ids_of(sentence) for sentence in WORDS["sentences"]])
    U = MODEL(ids[:, :-1])
    loss = torch.nn.functional.cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten()).item()
    assert loss == pytest.approx(run["loss"], abs=2e-3)  # that of the step before the last


def test_the_engine_computes_chapter_5_s_numbers():
    engine = Racer()
    files = {path.name: list(path.read_bytes()) for path in FOLDER.iterdir()}
    ids = ids_of(model_pages.FIRST)
    found = engine.run(
        """(M, {files, ids}) => {
          const config = M.readJSON(Uint8Array.from(files["config.json"]), "config.json");
          const model = M.readModel(config, Uint8Array.from(files["model.safetensors"]));
          const seen = {};
          const hook = (name, X, l) => { seen[`${l} ${name}`] = [...X.data] };
          seen.U = [...model.forward(ids, {hook}).data];
          return seen;
        }""",
        {"files": files, "ids": ids},
    )
    engine.close()
    with record_activations(MODEL) as trace:
        U = MODEL(torch.tensor(ids))
    torch.testing.assert_close(torch.tensor(found["U"]).view(U.shape), U, atol=1e-4, rtol=0)
    for l, steps in enumerate(trace):
        for name, X in steps.items():
            theirs = torch.tensor(found[f"{l} {name}"]).view(X.shape)
            torch.testing.assert_close(theirs, X, atol=1e-4, rtol=0)


def test_each_matrix_has_its_line_of_code_and_its_equations():
    slugs = tomllib.loads((ROOT / "slp_transformer/equations.toml").read_text("utf-8"))["equations"]
    for matrix in MATRICES:
        assert set(matrix.slugs) <= slugs.keys()
        line = model_pages.code_line(links.source_of(matrix.object, ROOT), matrix)
        assert matrix.code in line
    assert model_pages.places()["head-par"] == "m-head"


def test_a_line_of_code_that_is_gone_is_named():
    matrix = MATRICES[0]._replace(code="no such words")
    with pytest.raises(ValueError, match=r"0 lines with 'no such words', .* shows for E"):
        model_pages.code_line(links.source_of(matrix.object, ROOT), matrix)


@cache
def answer():
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


pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("sentence page"),
]  # most of its tests share one page


def open_page(browser):
    with on_a_phone(browser, answer(), ".sl-alive") as page:
        yield page


own_page, opened = pytest.fixture(open_page), pytest.fixture(open_page, scope="module")


@pytest.fixture
def page(opened):
    """The page with its first sentence, compared with nothing, and its model as trained."""
    opened.keyboard.press("Escape")
    opened.fill("#sl-text", model_pages.FIRST)
    opened.evaluate(
        """for (const name of ["trained", "pin"]) document.getElementById(`sl-${name}`).click()"""
    )
    return opened


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
    with record_activations(MODEL) as trace:
        MODEL(ids)
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


def test_what_changes_is_marked_with_what_it_was(page):
    assert page.locator(".sl-new").count() == 0
    page.fill("#sl-text", "the guitarist loosened the string because it was")
    rows = page.locator("#m-alpha tbody tr")
    marked = [row.locator(".sl-new").count() for row in rows.all()]
    assert marked[:2] == [0, 0] and marked[2] and marked[-1]  # no word before it has changed
    cell = page.locator("#m-alpha .sl-new").first
    once = re.fullmatch(r"was (\S+)", cell.get_attribute("title"))[1]
    assert once in cell.text_content() and once != cell.text_content().partition(",")[0]
    cell.click()
    assert f"was {once}" in page.locator(".sl-dock").inner_text()
    assert "sharp 0.99" in page.locator(".sl-said").inner_text()
    page.get_by_role("button", name="Compare with this sentence and model").click()
    assert page.locator(".sl-new").count() == 0
    page.uncheck("#sl-causal")
    assert page.locator("#m-alpha .sl-new").count() > 20
    assert "as trained" in page.locator(".sl-compared").inner_text()
    page.get_by_role("button", name="As trained").click()
    assert page.locator(".sl-new").count() == 0


def test_a_sentence_that_the_model_cannot_read_is_refused_in_a_sentence(page):
    note = page.locator("#sl-note")
    for text, said in (
        ("the bassist", "never read “bassist”. It knows . because"),
        ("", "one word at least"),
        ("the " * 11, "10 positions here, and these are 11 tokens"),
        ("<b>", "never read “<b>”"),
    ):
        page.fill("#sl-text", text)
        assert said in note.inner_text()
        assert page.locator(".sl-tokens li").count() == 8  # what was there stays
    page.fill("#sl-text", "The drummer tuned")
    assert note.inner_text() == "" and page.locator(".sl-tokens li").count() == 3
    page.locator(".sl-next button", has_text="the").first.click()
    assert page.input_value("#sl-text") == "the drummer tuned the"
    page.locator("#sl-back").click()
    assert page.input_value("#sl-text") == "the drummer tuned"


def test_a_matrix_is_walked_by_the_keyboard(page):
    first = page.locator("#m-alpha td[tabindex='0']")
    assert first.count() == 1
    first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    focused = "[document.activeElement.dataset.i, document.activeElement.dataset.j]"
    assert page.evaluate(focused) == ["2", "1"]
    page.keyboard.press("Enter")
    assert "[tightened, guitarist]" in page.locator(".sl-title").inner_text()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.sl-dock') !== null")
    page.locator("#m-alpha td[tabindex='0']").focus()
    page.keyboard.press("End")
    assert page.evaluate(focused) == ["2", "7"]
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == ["2", "1"]
    assert page.locator("#m-alpha td[tabindex='0']").count() == 1


OWN = "--tokenizer words --model-dim 12 --num-heads 3 --num-blocks 2 --context-length 7 --steps 2"


def test_a_run_of_one_s_own_is_explained_too(own_page, tmp_path):
    page = own_page

    def trained(name, *more):
        (tmp_path / "text.txt").write_text("one two <b> & three four. " * 60, encoding="utf-8")
        command = ["train", "text", str(tmp_path / "text.txt"), "--out-dir", str(tmp_path / name)]
        assert main([*command, *OWN.split(), "--quiet", "--device", "cpu", *more]) == 0
        return str(tmp_path / name)

    before = page.inner_text("#sl-which")
    said = "s => document.getElementById('sl-note').textContent.includes(s)"
    for refused, why in (
        (trained("rotary", "--positions", "rotary"), "positions = learned; this model has rotary"),
        (trained("wide", "--hidden-dim", "4001"), "has 48012 numbers"),
    ):
        page.set_input_files("#sl-folder", refused)
        page.wait_for_function(said, arg=why)
        assert page.inner_text("#sl-which") == before
    run = trained("mine")
    page.set_input_files("#sl-folder", run)
    page.wait_for_function("document.getElementById('sl-which').textContent.startsWith('Your run')")
    assert "2 blocks of 3 heads" in page.inner_text("#sl-which")
    assert page.locator(".sl-tokens li").count()
    page.fill("#sl-text", "one two <b> & three four. one two")
    assert "7 positions here" in page.inner_text("#sl-note")
    page.fill("#sl-text", "two <b> & three")
    page.select_option("#sl-off", "4")
    explained, shown, wrong = page.evaluate(CHECK)
    assert wrong == [] and explained == shown
    page.select_option("#sl-off", "")
    model = load_model(run, "best")
    content = next(Path(run).glob("step-*/tokenizer.json")).read_text("utf-8")
    ids = TextTask().load_tokenizer(json.loads(content)).encode("two <b> & three")
    y = model(torch.tensor(ids))[-1].softmax(dim=-1)
    numbers = page.locator(".sl-next button > span:nth-child(2)")
    shown = [float(re.match(r"[\d.]+", text)[0]) for text in numbers.all_inner_texts()]
    assert shown == pytest.approx(y.tolist()[: len(shown)], abs=6e-3)
    rows = page.locator("#m-alpha tbody th").all_inner_texts()
    assert rows == page.locator(".sl-tokens b").all_inner_texts()


def test_an_address_opens_its_matrix(page):
    page.goto("http://page.test/#m-T5")
    page.wait_for_selector("#m-T5[open] td[data-i]")


def test_axe_finds_nothing_where_matrices_are_open(page):
    page.evaluate(
        """for (const name of ['X', 'scores', 'masked', 'y', 'u'])
          document.getElementById(`m-${name}`).open = true"""
    )
    page.fill("#sl-text", "the guitarist tuned the")
    page.locator("#m-X td[data-i='3'][data-j='4']").click()
    assert_accessible(page)


def test_without_javascript_there_is_a_picture_of_the_sentence(browser):
    with without_scripts(browser, answer()) as page:
        assert page.locator(".sl-still .slp-alpha").count() == 7
        assert page.locator(".sl-still").is_visible() and not page.locator("#sl-text").is_visible()
        assert not page.locator(".sl-dock").is_visible()
