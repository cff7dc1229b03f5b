"""The page "Write with it": two models of text and tab, and a reader's own, read and write on."""

import base64
import hashlib
import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from model_stage import (
    ADDRESS,
    answering,
    assert_accessible,
    model_of,
    on_a_phone,
    without_scripts,
)

from slp_guitar import TabTokenizer, make_practice_corpus
from slp_guitar.bar_lengths import take_columns_as_time
from slp_guitar.formats.alphatex import format_alphatex, parse_alphatex_tabs
from slp_guitar.formats.gpif import read_gp_tabs
from slp_guitar.timing import fit_bars_to_time_signature
from slp_transformer import record_activations
from slp_transformer.cli import main
from slp_transformer.interpret.head_scores import induction_score
from slp_transformer.interpret.lens import logit_lens
from slp_transformer.sampling import SAMPLING
from slp_transformer.tasks.text import TextTask
from slp_transformer.training.checkpoints import load_model

for library in ("mkdocs", "safetensors"):
    pytest.importorskip(library)
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site_build"))
import model_pages  # noqa: E402

RUN = ROOT / "benchmarks" / "results" / "page_model" / "writers.json"
TOKENIZER = TabTokenizer()


@cache
def answer():
    assets = "/assets/model/", "/assets/alphatab/"
    body = model_pages.fill_write(model_pages.WRITE_MARK, ROOT, *assets)
    return answering("Write with it", "write", body)


def test_the_page_has_a_slider_for_every_sampling_option():
    body = model_pages.fill_write(model_pages.WRITE_MARK, ROOT, "", "")
    assert re.findall(r'data-option="(\w+)"', body) == list(SAMPLING)


# Its tests share one page.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("write page")]


@pytest.fixture(scope="module")
def opened(browser):
    with on_a_phone(browser, answer(), ".w-alive .w-heads td") as page:
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        yield page


# Takes the text model again, with the sliders where they are at first.
AFRESH = """() => {
  for (const name of ["temperature", "top_k", "top_p", "seed", "riff"]) {
    const field = document.getElementById(`w-${name}`);
    field.value = field.defaultValue;
  }
  document.getElementById("w-text").value = "";
  document.querySelector("[name=w-model][value=text]").dispatchEvent(new Event("change"));
}"""


@pytest.fixture
def page(opened):
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    opened.evaluate(AFRESH)
    opened.wait_for_function(
        """() => document.getElementById("w-text").value &&
          document.querySelectorAll(".w-heads tbody tr").length === 16 &&
          !document.getElementById("w-note").textContent"""
    )
    return opened


def settled(page):
    """Wait until nothing is written any more."""
    page.wait_for_function("document.getElementById('w-stop').disabled")


@pytest.mark.parametrize("name", model_pages.MODELS)
def test_the_weights_are_those_of_the_recorded_run_and_small(name):
    run = json.loads(RUN.read_text("utf-8"))[name]
    weights = (model_pages.model_folder(ROOT, name) / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == run["sha256"]
    assert len(weights) == run["bytes"] < 1_500_000


@pytest.fixture(scope="module")
def modules(browser):
    """Return a page that has imported the engine, the worker's functions and those of tab."""
    with browser.new_context() as context:
        opened = context.new_page()
        opened.route("**/*", answer())
        opened.goto("http://page.test/assets/model/write.css")
        opened.evaluate(
            """async () => {
              const from = (name) => import(`/assets/model/${name}.js`);
              for (const name of ["engine", "checkpoint", "sampling", "tokenizer", "tab", "writer"])
                Object.assign(window, await from(name));
            }"""
        )
        yield opened


@cache
def corpus():
    return make_practice_corpus(seed=5, num_pieces=30)


def test_tab_is_notated_as_the_package_notates_it(modules):
    ids = [TOKENIZER.encode(tab) for tab in corpus()]
    for begin in ("OPEN<64> OPEN<60> OPEN<55> OPEN<50> OPEN<45> OPEN<40>", "TUNING<DADGAD>"):
        tokens = f"<bos> {begin} CAPO<2> STEPS<3> METRE<3/4> KEY<C> BAR<9> POS<1> TAB<6,3> "
        tokens += "WITH<1,12> POS<2> TAB<2,0> SAME<1> BAR<7> BAR<112> LONGER TAB<3,5>"
        ids.append(TOKENIZER.to_ids(tokens.split()))
    for told in ("3/4> KEY<C> BAR<18>", "none> KEY<C> BAR<32>", "4/4> KEY<C> BAR<17>"):
        tokens = f"<bos> {begin} CAPO<0> COLUMNS METRE<{told} TAB<6,3> POS<11> TAB<2,0> SAME<1>"
        ids.append(TOKENIZER.to_ids(tokens.split()))
    texts = modules.evaluate(
        """([settings, all]) => {
          const tokenizer = readTokenizer(settings);
          return all.map((ids) => alphaTex(tabOf(tokenizer, ids)));
        }""",
        [TOKENIZER.to_json(), ids],
    )
    for one, text in zip(ids, texts, strict=True):
        tab = TOKENIZER.decode(one).tab
        tab = tab if tab.steps_per_quarter else take_columns_as_time(tab)[0]
        tab, _ = fit_bars_to_time_signature(tab, max_bar_quarters=99)
        assert text == format_alphatex(tab)


def test_what_may_follow_is_what_the_package_s_grammar_says(modules):
    pieces = [TOKENIZER.encode(tab) for tab in corpus()[:5]]
    tokens = "<bos> OPEN<64> OPEN<60> OPEN<55> OPEN<50> OPEN<45> OPEN<40> CAPO<1> COLUMNS "
    tokens += "METRE<none> KEY<none> BAR<3> LONGER POS<128> TAB<6,2> LONG POS<2> TAB<3,1> "
    tokens += "WITH<2,1> BAR<9> SAME<2> <eos>"
    more = "<bos> TUNING<standard> CAPO<0> STEPS<24> METRE<6/4> KEY<C> BAR<16> LONGER"
    columns = "<bos> TUNING<standard> CAPO<0> COLUMNS METRE<3/4> KEY<C> BAR<24> SAME<1> BAR<24>"
    pieces += [TOKENIZER.to_ids(text.split()) for text in (tokens, more, columns)]
    starts = [piece[:k] for piece in pieces for k in range(len(piece) + 1)]
    found = modules.evaluate(
        """([settings, all]) => {
          const tokenizer = readTokenizer(settings);
          return all.map((ids) => allowedNext(tokenizer, ids));
        }""",
        [TOKENIZER.to_json(), starts],
    )
    for ids, allowed in zip(starts, found, strict=True):
        expected = TOKENIZER.allowed_next_ids(ids, fill_bars=True)
        if not any(TOKENIZER.vocabulary[i].startswith("BAR") for i in ids):
            expected -= {TOKENIZER.eos_id}
        assert set(allowed) == expected


def test_a_riff_becomes_tokens_and_what_is_none_is_named(modules):
    riff = "0.6.4 (2.4 2.5).8 r 3.1.2 | 12.2.1"
    tokens = modules.evaluate("riffTokens", riff)
    assert " ".join(tokens) == (
        "BAR<16> TAB<6,0> POS<4> TAB<5,2> WITH<4,2> POS<8> TAB<1,3> BAR<16> TAB<2,12>"
    )
    (music,), _ = parse_alphatex_tabs("0.6.4 (2.4 2.5).8 r.8 3.1.2 | 12.2.1")
    header = "<bos> TUNING<standard> CAPO<0> STEPS<4> METRE<none> KEY<none>".split()
    ours = TOKENIZER.decode(TOKENIZER.to_ids([*header, *tokens])).tab
    assert [e.notes for e in ours.iter_events()] == [e.notes for e in music.iter_events()]
    refused = "(text) => { try { riffTokens(text); } catch (error) { return error.message; } }"
    for wrong in ("7", "3.7", "(2.4 3.4)", "3.6.3", "0.6.4 0.6.1", "<b>"):
        assert "“" in modules.evaluate(refused, wrong), wrong


# The numbers of a reading, of a text that is read at once, in parts, and after a change.
READ = """async ([settings, parts, off]) => {
  const names = ["config.json", "tokenizer.json", "model.safetensors"], files = {};
  for (const name of names) {
    files[name] = new Uint8Array(await (await fetch(`text/${name}`)).arrayBuffer());
  }
  const { model } = readRun(files), reading = new Reading(model, off);
  for (const ids of parts) reading.read(ids);
  const rows = (f) => reading.rows.map((row) => f(row));
  return {
    alpha: rows(({ alpha }) => alpha.map((heads) => heads.map((a) => [...a]))),
    u: rows(({ u }) => [...u]),
    lens: reading.lens().map((y) => [...y]),
    begin: reading.begin,
    loss: reading.loss(),
    period: reading.period(),
    induction: reading.period() ? reading.induction(reading.period()) : null,
  };
}"""


def test_a_reading_is_the_package_s_in_whatever_parts_it_is_read(modules):
    line = [k * 37 % 71 for k in range(41)]
    parts = [line[:7], [*line[:5], 3, 4, 9], line[:29], line + line]
    found = modules.evaluate(READ, [None, parts, []])
    ids = torch.tensor(line + line)
    with record_activations(model_of("text")) as trace:
        U = model_of("text")(ids)
    close = {"atol": 1e-4, "rtol": 0}
    torch.testing.assert_close(torch.tensor(found["u"]), U, **close)
    for l, steps in enumerate(trace):
        last = torch.tensor([row[l] for row in [found["alpha"][-1]]])[0]
        torch.testing.assert_close(last, steps["alpha"][:, -1], **close)
        score = induction_score(steps["alpha"], 41)
        assert found["induction"][l] == pytest.approx(score.tolist(), abs=1e-4)
        y = logit_lens(model_of("text"), steps["H"][-1]).softmax(dim=-1)
        torch.testing.assert_close(torch.tensor(found["lens"][l + 1]), y, **close)
    loss = torch.nn.functional.cross_entropy(U[:-1], ids[1:]).item()
    assert found["loss"] == pytest.approx(loss, abs=1e-4) and found["period"] == 41


def test_a_text_beyond_the_window_loses_its_beginning(modules):
    ids = [k * 37 % 71 for k in range(200)]
    found = modules.evaluate(READ, [None, [ids[:190], ids], []])
    assert found["begin"] == 96
    U = model_of("text")(torch.tensor(ids[96:]))
    torch.testing.assert_close(torch.tensor(found["u"]), U, atol=1e-4, rtol=0)


def test_the_same_seed_writes_the_same_and_the_address_brings_it_back(page, browser):
    page.check("[value=letters]")  # the smallest model
    page.wait_for_function("document.querySelectorAll('.w-heads tbody tr').length === 4")
    page.fill("#w-temperature", "2")
    page.fill("#w-text", "ahab")
    page.fill("#w-seed", "7")
    page.click("#w-many")
    settled(page)
    text = page.input_value("#w-text")
    assert text.startswith("ahab") and len(text) == len("ahab") + 200
    assert "seed=7" in page.url and page.locator("#w-share").get_attribute("href") in page.url
    for seed, same in (("8", False), ("7", True)):
        page.fill("#w-text", "ahab")
        page.fill("#w-seed", seed)
        page.click("#w-many")
        settled(page)
        assert (page.input_value("#w-text") == text) == same
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_function("t => document.getElementById('w-text').value === t", arg=text)
    other.close()


def test_the_bars_follow_the_sliders_and_write(page):
    page.fill("#w-text", "the whal")
    bars = page.locator(".w-next button")
    characters = json.loads(
        (model_pages.model_folder(ROOT, "text") / "tokenizer.json").read_text("utf-8")
    )["vocabulary"]
    u = model_of("text")(torch.tensor([characters.index(c) for c in "the whal"]))[-1]
    best = characters[u.argmax()]
    first = "c => document.querySelector('.w-next span').textContent === c"
    page.wait_for_function(first, arg=best)
    page.fill("#w-top_p", "1")
    for tau in ("1", "2", "0.5"):
        page.fill("#w-temperature", tau)
        y = (u / float(tau)).softmax(dim=-1).topk(12).values
        shown = [
            float(text.split("\n")[-1]) for text in bars.all_inner_texts() if "removed" not in text
        ]
        assert shown == pytest.approx(y.tolist()[: len(shown)], abs=6e-3)
    page.fill("#w-top_k", "2")
    assert sum("removed" in text for text in bars.all_inner_texts()) == 10
    assert "2 of 74" in page.inner_text("#w-kept")
    page.fill("#w-temperature", "0")
    assert "1 of 74" in page.inner_text("#w-kept")
    bars.first.click()
    written = "t => document.getElementById('w-text').value === t"
    page.wait_for_function(written, arg=f"the whal{best}")


def test_a_head_that_is_off_changes_the_loss_and_a_repetition_is_found(page):
    def loss():
        return page.inner_text("#w-loss")

    page.fill("#w-text", "It was the whale, the whale!")
    page.wait_for_function("document.getElementById('w-loss').textContent.includes('nats')")
    assert "with all heads" not in loss()
    page.uncheck("[data-head='0 2']")
    page.wait_for_function("document.getElementById('w-loss').textContent.includes('all heads')")
    one, other = (part.split(" nats")[0].split()[-1] for part in loss().split(";"))
    assert one != other
    page.check("[data-head='0 2']")
    page.wait_for_function("!document.getElementById('w-loss').textContent.includes('all heads')")
    page.click("#w-repeat")
    page.wait_for_function("document.getElementById('w-copies').textContent.includes('last 28')")
    assert page.locator("td.w-induction").count() == 16


def test_chapter_9_s_induction_heads_are_found_by_repeating(page):
    page.check("[value=letters]")
    page.wait_for_function("document.getElementById('w-text').value === 'qkhbxmtfadsw'")
    page.wait_for_function("document.querySelectorAll('.w-heads tbody tr').length === 4")
    page.click("#w-repeat")
    page.wait_for_selector("td.w-induction")
    scores = [float(text) for text in page.locator("td.w-induction").all_inner_texts()]
    assert max(scores[:2]) < 0.2 and max(scores[2:]) > 0.5  # the second block's, as in the chapter
    said = re.search(r"is (\S+) in the first copy and (\S+) in", page.inner_text("#w-copies"))
    first, second = map(float, said.groups())
    assert second < first
    assert_accessible(page)


def test_what_cannot_be_read_is_refused_in_a_sentence(page):
    for text, said in (("漢", "not trained on the character"), ("", "one character at least")):
        page.fill("#w-text", text)
        page.wait_for_function(
            "s => document.getElementById('w-note').textContent.includes(s)", arg=said
        )
    page.fill("#w-text", "Ahab")
    page.wait_for_function("!document.getElementById('w-note').textContent")


def test_a_tab_obeys_its_header_and_is_drawn_when_asked_for(page, tmp_path):
    page.check("[name=w-model][value=tab]")
    page.wait_for_function("document.getElementById('w-about').textContent.includes('tab tokens')")
    assert not any("alphaTab" in url for url in page.asked)
    page.select_option("#w-TUNING", "drop-D")
    page.select_option("#w-KEY", "Dm")
    page.fill("#w-riff", "0.6 0.5 0.4 3.6")
    page.click("#w-many")
    page.wait_for_selector("#slp-hear[data-drawn=yes]", timeout=90_000)
    drawn = page.inner_text("#w-plain").splitlines()
    assert drawn[5].startswith("D |-0-----------3") and drawn[4].startswith("A |-----0---")
    page.wait_for_selector("#w-files a >> nth=2")
    with page.expect_download() as download:
        page.click("#w-files a[download='written.gp']")
    saved = tmp_path / "written.gp"
    download.value.save_as(saved)
    (again,), _ = read_gp_tabs(saved)
    assert [note.fret for note in again.bars[0].events[0].notes] == [0]
    assert again.tuning.open_pitches[-1] == 38
    for part in ("model=tab", "TUNING=drop-D", "KEY=Dm", "seed=1"):
        assert part in page.url
    page.fill("#w-riff", "7")
    page.wait_for_function("document.getElementById('w-note').textContent.includes('“7” is no')")
    assert_accessible(page)
    outside = [url for url in page.asked if not url.startswith(("http://page.test/", "blob:"))]
    assert outside == []


DROP = """(files) => {
  const entry = (name, content) => ({
    isFile: typeof content === "string",
    isDirectory: typeof content !== "string",
    fullPath: name,
    file: (done) => done(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name)),
    createReader: () => {
      const all = Object.entries(content).map(([own, inside]) => entry(`${name}/${own}`, inside));
      return { readEntries: (done) => done(all.splice(0, 2)) };
    },
  });
  const event = new Event("drop", { bubbles: true, cancelable: true });
  event.dataTransfer = { items: [{ webkitGetAsEntry: () => entry("/run", files) }] };
  document.getElementById("w-drop").dispatchEvent(event);
}"""


MODERN = (
    "--normalization rms --positions rotary --num-kv-heads 1 --key-dim 8 --qk-norm --no-tied "
    "--activation swiglu --no-ffn-bias"
)


@pytest.fixture(scope="module", params=["", MODERN], ids=["book", "modern"])
def run(request, tmp_path_factory):
    """Return a run of text that the command line made, whose best checkpoint is not its last."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    source = folder.with_suffix(".txt")
    source.write_text("one two three four five six seven. " * 60, encoding="utf-8")
    words = "--tokenizer words --model-dim 14 --num-heads 2 --num-blocks 3 --context-length 11"
    steps = "--steps 3 --eval-interval 1 --keep-last 3 --learning-rate 0.02 --quiet --device cpu"
    command = f"{words} {steps} {request.param}".split()
    assert main(["train", "text", str(source), "--out-dir", str(folder), *command]) == 0
    state = folder / "step-00000003" / "training.json"
    content = json.loads(state.read_text("utf-8"))
    for record in content["eval_history"]:
        record["val_loss"] = abs(record["step"] - 2)
    state.write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_run_of_one_s_own_is_read_from_its_best_checkpoint(page, run):
    page.set_input_files("#w-folder", str(run))
    page.wait_for_function("document.getElementById('w-about').textContent.startsWith('Your run')")
    assert "3 blocks of 2 heads" in page.inner_text("#w-about")
    page.fill("#w-text", "two three four")
    page.fill("#w-temperature", "1")
    page.fill("#w-top_p", "1")
    page.wait_for_function("document.querySelectorAll('.w-heads tbody tr').length === 6")
    page.wait_for_function("document.querySelector('.w-strip').childElementCount === 3")
    model = load_model(run, "best")
    content = json.loads((run / "step-00000002" / "tokenizer.json").read_text("utf-8"))
    tokenizer = TextTask().load_tokenizer(content)
    y = model(torch.tensor(tokenizer.encode("two three four")))[-1].softmax(dim=-1)
    shown = [text.split("\n") for text in page.locator(".w-next button").all_inner_texts()]
    best = y.topk(len(shown)).values.tolist()
    assert [float(p) for _, p in shown] == pytest.approx(best, abs=6e-3)
    assert not page.locator("#w-share").is_visible()
    page.click("#w-many")
    settled(page)


def test_a_folder_that_is_dropped_is_walked_and_what_is_no_run_is_refused(page, run):
    def tree(folder):
        return {
            path.name: tree(path) if path.is_dir() else base64.b64encode(path.read_bytes()).decode()
            for path in folder.iterdir()
        }

    note = "s => document.getElementById('w-note').textContent.includes(s)"
    page.evaluate(DROP, {"tokens": tree(run / "tokens")})
    count = sum(path.is_file() for path in (run / "tokens").rglob("*"))
    page.wait_for_function(note, arg=f"no config.json in these {count} files")
    damaged = tree(run / "step-00000001")
    damaged["model.safetensors"] = damaged["model.safetensors"][:400]
    page.evaluate(DROP, damaged)
    page.wait_for_function(note, arg="model.safetensors is")
    assert page.inner_text("#w-about").startswith("Moby-Dick")
    page.evaluate(DROP, tree(run))
    page.wait_for_function("document.getElementById('w-about').textContent.startsWith('Your run')")


def test_without_javascript_there_is_a_picture(browser):
    with without_scripts(browser, answer()) as page:
        assert "tuning:" in page.inner_text(".w-still pre")
        assert page.locator(".w-still .slp-alpha").is_visible()
        assert not page.locator("#w-text").is_visible()


@pytest.mark.parametrize("button", ["one", "many", "repeat"])
@pytest.mark.parametrize("text", ["", "Ω ≠ ω"])
def test_a_text_that_cannot_be_read_is_not_written_on_from(text, button, page):
    page.fill("#w-text", text)
    said = "Write one character at least." if not text else 'not trained on the character "Ω"'
    told = "said => document.getElementById('w-note').textContent.includes(said)"
    page.wait_for_function(told, arg=said)
    page.click(f"#w-{button}")
    page.wait_for_timeout(200)
    assert said in page.inner_text("#w-note") and page.input_value("#w-text") == text
    assert page.locator("#w-stop").is_disabled()
    page.fill("#w-text", "the whale")  # and afterwards it writes again
    page.click("#w-one")
    page.wait_for_function("document.getElementById('w-text').value.length === 10")
    assert page.inner_text("#w-note") == ""


@pytest.mark.parametrize("place", ["#model=text&text=Ωω&write=40", "#model=tab&riff=x.y&write=9"])
def test_an_address_that_cannot_be_read_says_so_in_a_sentence(place, browser):
    with browser.new_context() as context:
        opened, wrong = context.new_page(), []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        context.route("**/*", answer())
        opened.goto(f"{ADDRESS}{place}")
        opened.wait_for_selector(".w-alive")
        opened.wait_for_function("document.getElementById('w-note').textContent")
        said = opened.inner_text("#w-note")
        assert said.endswith(".") and "undefined" not in said and wrong == [], said
