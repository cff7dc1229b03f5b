"""Attention as pictures: the right weights, beside the right words, in files that stand alone."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
from comparing import randomized, some_ids

from slp_transformer import EncoderDecoder, TransformerConfig, record_activations
from slp_transformer.interpret import translation_attention_weights
from slp_transformer.plotting.attention_maps import (
    AttentionFigure,
    AttentionMaps,
    translation_attention_figure,
)

V, M, N = 23, 5, 4
SVG = "{http://www.w3.org/2000/svg}"


def translator(**changes) -> EncoderDecoder:
    sizes = {"num_blocks": 2, "num_encoder_blocks": 3} | changes
    return randomized(EncoderDecoder(TransformerConfig(V, 17, 15, 3, dropout=0.5, **sizes)))


def words(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def test_weights_are_those_of_the_forward_pass():
    model = translator()
    source, target = some_ids(M), some_ids(N, seed=9)
    found = translation_attention_weights(model.train(), source, target)
    assert model.training  # as it was, and no weight was dropped
    with record_activations(model.eval()) as trace:
        model(source, target)
    encoder = torch.stack([steps["alpha"] for steps in trace[:3]])
    decoder = torch.stack([steps["alpha"] for steps in trace[3:]])
    cross = torch.stack([steps["alpha_cross"] for steps in trace[3:]])
    assert torch.equal(found["encoder"], encoder) and encoder.shape == (3, 3, M, M)
    assert torch.equal(found["decoder"], decoder) and decoder.shape == (2, 3, N, N)
    assert torch.equal(found["cross"], cross) and cross.shape == (2, 3, N, M)


def told(svg: str) -> dict[str, float]:
    """What the cells of the drawing say: "row → column" and its weight."""
    titles = [title.text for title in ET.fromstring(svg).iter(f"{SVG}title")]
    return {name: float(weight) for name, weight in (t.rsplit(": ", 1) for t in titles)}


def test_each_weight_stands_beside_its_own_words():
    weights = torch.tensor([[[[0.25, 0.75, 0.0], [0.004, 0.006, 0.99]]]])
    maps = AttentionMaps("Across", "", weights, ["un", "dos"], ["a", "b", "c"])
    svg = AttentionFigure([maps], "Attention").svg()
    expected = {"un → a": 0.25, "un → b": 0.75, "dos → c": 0.99}
    assert told(svg) == expected
    cells = {
        rect.find(f"{SVG}title").text[:-6]: rect
        for rect in ET.fromstring(svg).iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    }
    assert cells["dos → c"].get("fill-opacity") == "0.99"
    assert float(cells["dos → c"].get("x")) == 2 * float(cells["un → b"].get("x"))
    assert float(cells["dos → c"].get("y")) > float(cells["un → b"].get("y")) == 0


def test_a_map_for_every_layer_and_head_of_each_attention():
    ids = [1, *some_ids(N).tolist()]
    picture = translation_attention_figure(
        translator(), some_ids(M).tolist(), ids, words("s", M), words("t", N + 1)
    )
    svg = picture.svg()
    said = [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]
    assert said.count("layer 1, head 3") == 3 and said.count("layer 3, head 1") == 1
    assert said.count("Cross-attention") == 1
    pairs = told(svg).keys()
    assert "t4 → s0" in pairs and "t0 → s0" not in pairs  # the start token is never written
    assert "t0 → t0" in pairs and "t0 → t1" not in pairs  # nor does anybody look ahead
    assert "s0 → s4" in pairs


def test_files_stand_alone_and_say_every_sign_as_it_is(tmp_path):
    weights = torch.full((1, 1, 1, 1), 1.0)
    maps = AttentionMaps("<b>", "", weights, ["&"], ["día</svg>"])
    picture = AttentionFigure([maps], '"Tab" & <b>')
    for name in ("a.html", "a.svg"):
        picture.save(tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "día&lt;/svg&gt;" in text and "<b>" not in text
        addresses = set(re.findall(r"https?://[^\"' ]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, which nobody asks for
    ET.parse(tmp_path / "a.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.svg"]
    assert picture._repr_html_().startswith('<div class="slp-figure"><svg ')


def test_what_cannot_be_drawn_is_named(tmp_path, unchecked):
    maps = AttentionMaps("x", "", torch.ones(1, 1, 2, 3), ["a", "b"], ["a", "b", "c"])
    picture = AttentionFigure([maps], "x")
    with pytest.raises(ValueError, match=r"\.html or \.svg, and a\.pdf is neither"):
        picture.save(tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())
    model = translator()
    with pytest.raises(ValueError, match="a start token and one word more"):
        translation_attention_figure(model, [3], [1], ["a"], ["[SOS]"])
    with pytest.raises(ValueError, match="2 ids of the target and 3 words"):
        translation_attention_figure(model, [3], [1, 2], ["a"], ["[SOS]", "b", "c"])
    with pytest.raises(ValueError, match="1 ids of the source and 2 words"):
        translation_attention_figure(model, [3], [1, 2], ["a", "b"], ["[SOS]", "b"])
    with pytest.raises(ValueError, match="need a token each"):
        translation_attention_weights(model, torch.tensor([], dtype=torch.long), torch.tensor([1]))
