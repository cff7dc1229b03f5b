"""A piece by a Transformer of the reader's own functions, with random weights."""

import math

import pytest
import torch
from torch.nn.functional import layer_norm, relu

from slp_guitar import (
    STANDARD,
    Bar,
    Event,
    Note,
    Tab,
    TabTokenizer,
    encode_all_tabs,
    own_tabs,
)
from slp_guitar.formats.registry import read_any_tab_file
from slp_guitar.tab_dataset import TabDataset
from slp_transformer._internal import plugins
from slp_transformer.check import __main__ as command
from slp_transformer.check.own import own_model, own_writing
from slp_transformer.check.own.own_model import Parts


def draw(y, dart):
    return int((y.cumsum(0) < dart).sum())


def multi_head_attention(X, W_Q, W_K, W_V, W_O, A):
    Q, K, V = ((X @ W).view(len(X), A, -1).transpose(0, 1) for W in (W_Q, W_K, W_V))
    hidden = torch.full((len(X), len(X)), -torch.inf).triu(1)
    alpha = torch.softmax(Q @ K.mT / math.sqrt(Q.shape[-1]) + hidden, -1)
    return (alpha @ V).transpose(0, 1).flatten(1) @ W_O


def block(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_1(X))
    return O + ffn(norm_2(O))


def stack(X, blocks, final_norm):
    for one in blocks:
        X = one(X)
    return final_norm(X)


PARTS = Parts(
    {
        "draw": draw,
        "multi_head_attention": multi_head_attention,
        "block": block,
        "stack": stack,
        "input_encoding": lambda ids, E, P, start: E[ids] + P[start : start + len(ids)],
        "layer_norm": lambda x, gain, offset: layer_norm(x, gain.shape, gain, offset),
        "ffn": lambda x, W_1, b_1, W_2, b_2: relu(x @ W_1 + b_1) @ W_2 + b_2,
        "lm_head": lambda H, E: H @ E.T,
    }
)


def small_model(tokenizer):
    return own_model.make_random_model(PARTS, len(tokenizer), 13, 16)


def test_a_piece_keeps_to_the_grammar_and_has_some_bars(monkeypatch):
    tokenizer, written = TabTokenizer(), []
    monkeypatch.setattr(own_tabs, "MAX_BARS", 3)
    monkeypatch.setattr(own_tabs, "MIN_BARS", 2)
    monkeypatch.setattr(own_tabs, "MAX_TOKENS", 60)

    def append_drawn_id(*given):
        written.append(own_writing.append_drawn_id(*given))
        return written[-1]

    monkeypatch.setattr(own_tabs, "append_drawn_id", append_drawn_id)
    tab = own_tabs.write_piece(small_model(tokenizer), tokenizer)
    decoded = tokenizer.decode(written[-1].tolist())
    assert decoded.num_invalid_tokens == 0 and tab.tuning == STANDARD and tab.steps_per_quarter == 4
    assert {bar.steps for bar in tab.bars} == {16}
    assert tab.bars == decoded.tab.bars[:3] and (len(tab.bars) >= 2 or len(written[-1]) == 60)


def test_a_lesson_learns_tabs_and_leaves_a_file_that_can_be_played(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mido", reason="MIDI needs the guitar extra")
    path, tokenizer = tmp_path / "mine.mid", TabTokenizer()
    bar = Bar(4, (Event(0, (Note(6, 3), Note(1, 2))), Event(3, (Note(2, 5),))))
    tabs = [Tab("", STANDARD, (bar,) * 7, steps_per_quarter=1)]
    ids = torch.tensor(encode_all_tabs(tabs, tokenizer))
    data = TabDataset(tokenizer, ids, ids, tabs, tabs, [])
    monkeypatch.setattr(own_tabs, "prepare_tab_dataset", lambda: data)
    for name, value in {"TAB_STEPS": 1, "WINDOW": 13, "MODEL_DIM": 16, "MAX_TOKENS": 30}.items():
        monkeypatch.setattr(own_tabs, name, value)
    learn = own_tabs.begin_lesson(path)
    assert not path.exists()
    learn(PARTS, print, False)
    said = capsys.readouterr().out
    assert "step   1" in said and "e|" in said and f"Written to {path}" in said
    (tab,), _ = read_any_tab_file(path)
    assert tab.tuning == STANDARD and sum(len(event.notes) for event in tab.iter_events())


def test_what_cannot_be_written_is_refused_before_anything_is_learned(tmp_path, capsys):
    mine = tmp_path / "mine.py"
    mine.write_text("", encoding="utf-8")
    for words, said in [
        (["--tabs", str(mine)], "does not say what to write"),
        (["--tabs", str(tmp_path / "no" / "my.mid")], "There is no folder"),
        (["--tabs", "--run", str(tmp_path)], "give one of the two"),
    ]:
        assert command.main([str(mine), *words]) == 2
        assert said in capsys.readouterr().err
    assert command.main(["--tabs"]) == 2 and "Name the file" in capsys.readouterr().err


def test_a_flag_of_a_plug_in_does_not_take_the_place_of_another(monkeypatch, capsys):
    flag = plugins.CheckFlag("no.module:here", "x.mid", "a flag of somebody's")
    plugin = plugins.Plugin(check_flags={"text": flag, "songs": flag})
    monkeypatch.setattr(plugins, "load_plugins", lambda: {"other": plugin})
    with pytest.raises(SystemExit):
        command.main(["--help"])
    said = capsys.readouterr().out
    assert said.count("a flag of somebody's") == 1 and "--songs [FILE]" in said
    assert any('check flags named "text"' in one for one in plugins.pop_plugin_problems())
