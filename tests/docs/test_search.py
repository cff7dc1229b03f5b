"""The site's search: words that say nothing, a wrong letter, tasks, equations by numbers."""

import json
from pathlib import Path

import pytest

pytest.importorskip("py_mini_racer", reason="the search runs in V8")
SCRIPT = Path(__file__).parents[2] / "docs" / "assets" / "search.js"
INDEX = {
    "sections": [
        ["a/", "Attention", "Who reads whom.", 0, ""],
        ["a/#top-k", "Top-k", "Sampling from the k best tokens.", 0, ""],
        ["a/#stop", "Stop and go on", "A run is saved at each evaluation.", 1, "resume training"],
        ["a/#norm", "Layer norm", "Attention comes after it.", 0, ""],
        ["api/#p.q.LayerNorm", "LayerNorm", "A norm.", 3, ""],
        ["api/generation/#.", "beam_search", "Find the likeliest text.", 3, ""],
    ],
    "equations": {"8.20": ["a/#eq-mh-def", "Multi-head attention"]},
}


@pytest.fixture(scope="module")
def ask():
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    engine.eval(SCRIPT.read_text("utf-8"))
    engine.eval(f"const known = SiteSearch.prepare({json.dumps(INDEX)})")
    yield lambda code: json.loads(engine.eval(f"JSON.stringify({code})"))
    engine.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("attention", "a/"),
        ("how to stop", "a/#stop"),  # "to" does not begin "top"
        ("atention", "a/"),
        ("attentoin", "a/"),
        ("resume training", "a/#stop"),
        ("how do I resume my training?", "a/#stop"),
        ("samplin", "a/#top-k"),
        ("layernorm layer norm", "a/#norm"),
        ("8.20", "a/#eq-mh-def"),
        ("equation (8.20)", "a/#eq-mh-def"),
        ("eq. 8.20", "a/#eq-mh-def"),
        ("p.q.LayerNorm", "api/#p.q.LayerNorm"),
    ],
)
def test_the_best_place_comes_first(query, first, ask):
    found = ask(f"SiteSearch.find(known, {json.dumps(query)})")
    assert found[0]["place"] == first, [hit["place"] for hit in found]


def test_what_is_nowhere_is_not_found(ask):
    assert ask("SiteSearch.find(known, 'zylophone')") == []
    assert ask("SiteSearch.find(known, '9.99')") == []


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "softmax(QK⊤/√dk)V"),
        (r"\sqrt{\sigma^2+\epsilon}", "√(σ² + ϵ)"),
        (r"\sqrt{(d-1)/d}", "√((d − 1)/d)"),
        (r"1/\sqrt{512}", "1/√512"),
        (r"\frac{a+b}{2c}", "(a + b)/2c"),
        (r"x_{i+1}^2", "x_(i + 1)²"),
        (r"\sum_{j=1}^{i}\alpha_{ij}", "∑_(j = 1)ⁱαij"),
        (r"e^{-x/2}", "e^(−x/2)"),
        (r"a^{(l)}", "a^(l)"),
        (r"-\log p", "−log p"),
        (r"a \lt b", "a &lt; b"),
        (r"d_k", "dk"),
        (r"\sqrt[3]{x}", "3√x"),
    ],
)
def test_a_formula_as_text_is_the_same_formula(tex, text):
    postprocess = pytest.importorskip("postprocess")
    assert postprocess.as_text(postprocess.drawn(f"<p>so ${tex}$ is</p>")).replace("  ", " ") == (
        f"<p>so {text} is</p>"
    )


@pytest.mark.parametrize(
    ("a", "b", "near"),
    [
        ("attention", "atention", True), ("attention", "attentions", True),
        ("attention", "attentoin", True), ("attention", "attemtion", True),
        ("attention", "attention", False), ("attention", "atetnoin", False),
        ("mask", "task", True), ("mask", "tasks", False),
    ],
)  # fmt: skip
def test_words_are_near_that_differ_by_one_letter(a, b, near, ask):
    assert ask(f"SiteSearch.isNear({json.dumps(a)}, {json.dumps(b)})") is near


def test_names_are_cut_into_words(ask):
    words = {
        "KVCache": ["kv", "cache"], "MultiHeadAttention": ["multi", "head", "attention"],
        "masked_softmax": ["masked", "softmax"], "(8.33)": ["8.33"], "FLOPs": ["flops"],
        "slp_transformer.training.train": ["slp", "transformer", "training", "train"],
    }  # fmt: skip
    assert {text: ask(f"SiteSearch.words({json.dumps(text)})") for text in words} == words


def test_an_object_is_found_at_its_whole_address(ask):
    (found,) = ask("SiteSearch.find(known, 'beam_search')")
    assert found["place"] == "api/generation/#slp_transformer.generation.beam_search"
