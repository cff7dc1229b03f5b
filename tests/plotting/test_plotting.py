"""What chapters display: real source, and figures that fit light and dark pages."""

import ast
import inspect
import re
import sys
import textwrap

import pytest
import torch

from slp_transformer import plotting
from slp_transformer.attention import attention
from slp_transformer.block import forward_post_norm, forward_pre_norm
from slp_transformer.cache import LayerCache
from slp_transformer.hooks import HookedModule
from slp_transformer.masks import causal_mask
from slp_transformer.modern.norm_orders import forward_output_norm, forward_parallel
from slp_transformer.multi_head import MultiHeadAttention

INF = float("inf")


def texts(picture):
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.svg())


def without_docstrings_and_types(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            node.decorator_list = [d for d in node.decorator_list if "explain" not in ast.dump(d)]
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(tree)


@pytest.mark.parametrize(
    "thing", [causal_mask, MultiHeadAttention, MultiHeadAttention.forward, HookedModule]
)
def test_source_is_the_package_s_own_less_docstrings_and_types_of_signatures(thing):
    shown = plotting.show_source(thing)
    whole = textwrap.dedent(inspect.getsource(thing))
    assert ast.dump(ast.parse(shown.code)) == without_docstrings_and_types(ast.parse(whole))
    assert '"""' not in str(shown)


def test_a_signature_takes_as_few_lines_as_a_page_has_room_for():
    def head(self, *rows: int, name: str = "it", **rest: float) -> None:
        self.rows = rows, name, rest

    shown = str(plotting.show_source(head)).splitlines()
    assert shown[0] == 'def head(self, *rows, name="it", **rest):' and len(shown) == 2
    forward = str(plotting.show_source(MultiHeadAttention.forward)).splitlines()
    assert forward[0].startswith("def forward(self, X, mask=None, *, causal=False")
    assert forward[1] == "            return_weights=False, cache=None):"
    assert max(map(len, forward[:2])) < 80


@pytest.mark.parametrize(
    ("thing", "most"),
    [
        (attention, 6),
        (MultiHeadAttention.forward, 10),
        (forward_pre_norm, 12),
        (forward_post_norm, 12),
        (forward_output_norm, 12),
        (forward_parallel, 12),
    ],
)
def test_an_equation_is_seen_at_a_glance(thing, most):
    assert len(str(plotting.show_source(thing)).splitlines()) <= most


def test_of_a_long_function_only_what_is_taught_is_shown():
    picked = ["self.K[", "self.V[", "return"]
    code = str(plotting.show_source(LayerCache.update, only=picked))
    body = inspect.getsource(LayerCache.update)
    lines = code.splitlines()
    assert lines[0] == "def update(self, K, V):" and lines[-1].startswith("    return self.K[")
    assert [line for line in lines[1:] if line not in body] == [lines[1], lines[4]]
    assert {lines[1].strip(), lines[4].strip()} == {"# …"}
    assert str(plotting.show_source(causal_mask, only=["M ="])).endswith("\n    # …")
    long = str(plotting.show_source(MultiHeadAttention.forward, only=["A ="])).splitlines()
    assert long[0] == "def forward(…):" and long[2] == "    A = join_heads(head) @ self.W_O"
    with pytest.raises(ValueError, match=r"begins with \['Z ='\]"):
        plotting.show_source(attention, only=["scores", "Z ="])


def test_source_links_to_the_reference_and_tells_methods_apart():
    text = plotting.show_source(causal_mask, MultiHeadAttention.forward)._repr_markdown_()
    assert '<autoref identifier="slp_transformer.masks.causal_mask">' in text
    assert 'identifier="slp_transformer.multi_head.MultiHeadAttention.forward"' in text
    assert "# MultiHeadAttention.forward\n" in text
    assert text.startswith("```python\ndef causal_mask(")


def test_source_of_a_reader_s_own_function_has_no_link():
    def mine():
        return 1

    assert "autoref" not in plotting.show_source(mine)._repr_markdown_()


def test_source_says_what_it_cannot_show():
    with pytest.raises(ValueError, match="at least one"):
        plotting.show_source()
    with pytest.raises(ValueError, match="written in Python"):
        plotting.show_source(torch.relu)


def figures():
    matrix = [[1.0, -2.0, 0.5], [0.25, 3.0, -INF]]
    yield plotting.heatmap(matrix, rows=["a", "b"], columns=["x", "y", "z"], title="S")
    yield plotting.heatmap(torch.eye(40), decimals=None)
    yield plotting.panels(plotting.Panel(matrix, "Q"), "×", plotting.Panel([1, 2, 3], "v"))
    yield plotting.bars([0.7, 0.2, 0.1], ["all", "the", "that"], title="y")
    yield plotting.flow(causal_mask(3) == 0)
    yield plotting.lines({"one": [3.0, 2.0], "two": [3.0, 2.5]}, x="step", levels={"chance": 2.7})


def test_figures_take_the_color_of_their_page_and_share_no_id_with_their_neighbors():
    drawn = [picture.svg() for picture in figures()]
    ids = []
    for svg in drawn:
        assert not re.search(r"#000000|#010203|#ffffff|<style|<\?xml|<!DOCTYPE", svg)
        assert "currentColor" in svg or "<text" not in svg
        ids.append(set(re.findall(r' id="([^"]+)"', svg)))
        assert ids[-1] == set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert sum(map(len, ids)) == len(set.union(*ids)) > 0
    assert drawn == [picture.svg() for picture in figures()]


def test_a_heatmap_writes_its_numbers_and_labels_as_text():
    picture = next(iter(figures()))
    assert texts(picture)[:6] == ["1.00", "−2.00", "0.50", "0.25", "3.00", "−∞"]
    assert texts(picture)[6:] == ["a", "b", "x", "y", "z", "S"]
    assert texts(plotting.heatmap([[1, 0], [-1, 2]])) == ["1", "0", "−1", "2"]
    assert texts(plotting.heatmap([[-0.001]])) == ["0.00"]


def test_panels_name_their_shapes():
    shown = texts(
        plotting.panels(plotting.Panel(torch.ones(2, 3)), "=", plotting.Panel([1, 2], "", "1 × d"))
    )
    assert "[2 × 3]" in shown and "[1 × d]" in shown and "=" in shown


def test_a_figure_changes_no_more_when_its_tensor_does():
    tensor = torch.ones(2, 2, dtype=torch.float64)
    picture = plotting.heatmap(tensor)
    tensor.zero_()
    assert texts(picture) == ["1"] * 4


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: plotting.heatmap(torch.ones(2, 3, 5), title="Q"),
            r"Q came with shape \(2, 3, 5\)",
        ),
        (lambda: plotting.heatmap(torch.ones(2, 3), rows=["a"]), "2 rows, but 1 row labels"),
        (
            lambda: plotting.heatmap(torch.ones(2, 3), columns=["a"]),
            "3 columns, but 1 column labels",
        ),
        (lambda: plotting.bars([0.5, 0.5], ["a"]), "one label for each value"),
        (lambda: plotting.panels("×"), "at least one plotting.Panel"),
        (lambda: plotting.lines([1.0, 2.0], at=[1.0]), "2 values for 1 places"),
    ],
)
def test_bad_input_is_refused_when_it_is_given(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_script_needs_no_matplotlib_and_a_figure_says_where_it_comes_from(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for picture in figures():
        with pytest.raises(ImportError, match=r'"slp-transformer\[docs\]"'):
            picture.svg()
