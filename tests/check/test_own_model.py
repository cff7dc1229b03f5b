"""A Transformer of a reader's own functions: put together, trained, and compared."""

import json
import math
import os
import re
from itertools import chain
from pathlib import Path

import diagrams
import pytest
import torch
from foreign import foreign
from own_process import python
from sampled import mostly_slow

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.check import CHECKS
from slp_transformer.check import __main__ as command
from slp_transformer.check.own import own_model, own_writing, wrong_part
from slp_transformer.check.own.own_model import NEEDED, OwnModel, Parts
from slp_transformer.check.own.progress_page import PART_FUNCTIONS, TEMPLATE
from slp_transformer.check.own.wrong_part import follow
from slp_transformer.check.student_file import read_functions
from slp_transformer.interpret import patch_activations
from slp_transformer.modern import from_pretrained

PLACES = sorted(wrong_part.PLACES)
MINE = """
import math
from pathlib import Path
import torch

eps = 1e-5


def my_ffn(x, W_1, b_1, W_2, b_2):
    return torch.relu(x @ W_1 + b_1) @ W_2 + b_2


def layer_norm(x, gain, offset):
    mean, centered = x.mean(-1, keepdim=True), x - x.mean(-1, keepdim=True)
    return gain * centered / torch.sqrt((centered**2).mean(-1, keepdim=True) + eps) + offset


def block(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_1(X))
    return O + ffn(norm_2(O))


def causal_mask(N):
    return [[0.0 if j <= i else -math.inf for j in range(N)] for i in range(N)]


def attention(Q, K, V, mask):
    return torch.softmax(Q @ K.T / K.shape[1] ** 0.5 + mask, -1) @ V


def split_heads(X, A):
    return X.view(len(X), A, -1).transpose(0, 1)


def join_heads(heads):
    return torch.cat(list(heads), -1)


def multi_head_attention(X, W_Q, W_K, W_V, W_O, A):
    Q, K, V = (split_heads(X @ W, A) for W in (W_Q, W_K, W_V))
    mask = torch.tensor(causal_mask(len(X)))
    return join_heads([attention(*one, mask) for one in zip(Q, K, V)]) @ W_O


def input_encoding(ids, E, P, start):
    return E[ids] + P[start : start + len(ids)]


def stack(X, blocks, final_norm):
    for one in blocks:
        X = one(X)
    return final_norm(X)


def lm_head(H, E):
    return H @ E.T


def cached_step(x, W_Q, W_K, W_V, K, V):
    K, V = torch.cat([K, (x @ W_K)[None]]), torch.cat([V, (x @ W_V)[None]])
    return attention((x @ W_Q)[None], K, V, 0)[0], K, V


raise SystemExit("no line but definitions is run")
"""
NO_MASK = MINE.replace("mask = torch.tensor(causal_mask(len(X)))", "mask = 0")


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def random_model():
    torch.manual_seed(0)
    model = TransformerLM(TransformerConfig(17, 11, model_dim=12, num_heads=3, num_blocks=2)).eval()
    for W in model.parameters():
        W.data.normal_(0, 0.4)
    return model


def parts_of(text, folder):
    path = folder / "other.py"
    path.write_text(text, encoding="utf-8")
    return Parts(read_functions(path))


def test_functions_with_the_package_s_weights_say_what_it_says(mine):
    model = random_model()
    own, count, gap = own_model.compare(Parts(read_functions(mine)), model)
    assert own.additions == [] and count == 11 and gap < 1e-4


def test_a_published_gpt2_in_the_reader_s_functions(mine, tmp_path, capsys):
    foreign("gpt2", tmp_path / "gpt2")
    assert command.main([str(mine), "--run", str(tmp_path / "gpt2")]) == 0
    said = capsys.readouterr().out
    assert "biases of attention, GELU" in said and "all 24 next words are the package's" in said
    foreign("llama", tmp_path / "llama")
    model = from_pretrained(tmp_path / "llama")
    with pytest.raises(ValueError, match="other parts than the book's"):
        OwnModel(model, Parts(read_functions(mine)))


@pytest.mark.parametrize("biased", [False, True])
def test_the_weights_of_the_reader_s_heads_are_the_package_s(mine, tmp_path, biased):
    """Also of a published model whose queries and keys have biases."""
    model = random_model()
    if biased:
        foreign("gpt2", tmp_path / "gpt2")
        model = from_pretrained(tmp_path / "gpt2")
        torch.nn.init.normal_(model.stack.blocks[0].attention.b_QKV)
    ids = torch.arange(7)
    with torch.no_grad(), patch_activations(model, ["0.alpha"]) as seen:
        model(ids)
    found = OwnModel(model, Parts(read_functions(mine))).attention_weights(ids)
    torch.testing.assert_close(found, seen["0.alpha"])


def test_a_weight_that_is_taken_for_another_is_noticed(mine, tmp_path):
    model = random_model()
    wrong = parts_of(MINE.replace("x @ W_1 + b_1", "x @ W_1 - 9"), tmp_path)
    with pytest.raises(ValueError, match="The next word differs after"):
        own_model.compare(wrong, model)


def test_the_lowest_loss_is_that_of_counting():
    # Who: ln 2 once; how it was tuned: two of four, (3/2) ln 2; flat or sharp: half the time ln 2.
    assert own_model.compute_lowest_loss() == pytest.approx((1 + 1.5 + 0.5) * math.log(2) / 9)
    assert own_model.describe_loss_problem(0.235) == ""
    assert "sees the word that it predicts" in own_model.describe_loss_problem(0.005)
    assert "should be 0.24 at the most" in own_model.describe_loss_problem(0.5)


@pytest.mark.parametrize(
    ("loss", "words"), [(0.5, "should be 0.24 at the most"), (0.005, "the word that it predicts")]
)
def test_a_model_of_such_a_loss_is_not_used(mine, monkeypatch, loss, words):
    monkeypatch.setattr(own_model, "fit", lambda *given: loss)
    with pytest.raises(ValueError, match=words):
        own_model.train(Parts(read_functions(mine)), print)


def test_looking_ahead_and_a_cache_that_differs_are_seen(mine, tmp_path):
    model = random_model()
    ids = torch.arange(7)
    own_model.check_causality(OwnModel(model, Parts(read_functions(mine))), ids)
    blind = OwnModel(model, parts_of(NO_MASK, tmp_path))
    with pytest.raises(ValueError, match="A word before place 1 changes"):
        own_model.check_causality(blind, ids)
    X = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    own_model.check_cache(OwnModel(model, Parts(read_functions(mine))), X)
    wrong = parts_of(MINE.replace("[V, (x @ W_V)", "[V, (x @ W_K)"), tmp_path)
    with pytest.raises(ValueError, match="the output of head 1 differs at row 1"):
        own_model.check_cache(OwnModel(model, wrong), X)


def test_a_part_without_gradient_is_named(tmp_path):
    wrong = parts_of(
        MINE.replace("torch.relu(x @ W_1 + b_1)", "torch.relu(x @ W_1.data)"), tmp_path
    )
    with pytest.raises(ValueError, match=r"No gradient reaches stack\.blocks\.0\.ffn\.W_1"):
        own_model.train(wrong, lambda line: None)


WRITES = """
def draw(y, dart):
    return int((dart >= y.cumsum(0)).sum())


def next_token_loss(U, ids):
    return -torch.log_softmax(U[:-1], -1).gather(-1, ids[1:, None]).mean()
"""


@pytest.fixture
def writer(mine):
    """A file whose functions also have a loss, and write."""
    text = mine.read_text(encoding="utf-8").replace(
        "raise SystemExit", WRITES + "\nraise SystemExit"
    )
    mine.write_text(text, encoding="utf-8")
    return mine


def test_the_reader_s_draw_chooses_each_word_from_what_fits_the_window(writer):
    parts, asked = Parts(read_functions(writer)), []
    own = OwnModel(random_model(), parts)

    def draw(y, dart):
        asked.append((y, dart))
        return len(y)  # past the end, as searchsorted may say

    parts.functions["draw"] = draw
    ids = torch.arange(13) % 17  # longer than the window of 11
    longer = own_writing.append_drawn_id(own, ids, torch.Generator().manual_seed(3))
    assert longer.tolist() == [*ids.tolist(), 16]
    (y, dart), *_ = asked
    torch.testing.assert_close(y, own.model(ids[-11:])[-1].softmax(-1))
    assert dart == torch.rand((), generator=torch.Generator().manual_seed(3)).item()


def test_the_reader_s_loss_trains_as_pytorch_s_does(writer):
    losses = []
    for own_loss in (False, True):
        own = own_model.make_random_model(Parts(read_functions(writer)), 17, 11)
        rows = torch.arange(33).view(3, 11) % 17
        losses.append(own_model.fit(own, lambda _: rows, 3, lambda _: None, "word", own_loss))  # noqa: B023  used at once
    assert losses[0] == pytest.approx(losses[1], abs=1e-4) and losses[0] < 8


def test_a_text_of_the_reader_s_is_learned_and_written_on(writer, monkeypatch):
    monkeypatch.setattr(own_writing, "TEXT_STEPS", 2)
    monkeypatch.setattr(own_writing, "WRITTEN", 7)
    said, text = [], "la do re mi " * 6
    own, letters = own_writing.train_on_text(Parts(read_functions(writer)), text, said.append, True)
    assert letters == sorted(set(text)) and "nats a character" in said[-1]
    written = own_writing.write_text(own, letters, text[:5])
    assert written.startswith(text[:5]) and len(written) == 12 and set(written) <= set(text)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"short", "should have 64"), (b"\xff" * 99, "is not UTF-8"), (None, "cannot be read")],
)
def test_a_text_that_cannot_be_learned_is_refused_first(writer, tmp_path, capsys, content, words):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    assert command.main([str(writer), "--text", str(path)]) == 2
    assert words in capsys.readouterr().err
    assert command.main([str(writer), "--text", str(path), "--run", str(tmp_path)]) == 2


@pytest.mark.slow  # 350 steps
def test_the_reader_s_model_writes_sentences(writer):
    result = python(
        "-m", "slp_transformer.check", writer
    )  # where no shape is checked, it is faster
    assert result.returncode == 0, result.stderr
    said = result.stdout
    assert "The loss is yours, too." in said and "No word sees those after it." in said
    same = int(re.search(r"It writes 40 sentences, of which (\d+) are of the eight", said)[1])
    assert same >= 30 and said.count("because it was") >= 3


def test_the_reader_s_model_is_trained_without_a_loss_of_its_own(mine, capsys, monkeypatch):
    monkeypatch.setattr(own_model, "STEPS", 3)  # that it learns is seen above
    monkeypatch.setattr(own_model, "TARGET", 9.0)
    assert command.main([str(mine)]) == 0
    said = capsys.readouterr().out
    assert "No word sees those after it." in said and "a head's output is the same" in said
    assert "head 1" in said and "█" in said


def test_the_drawing_of_attention_marks_every_visible_cell(mine):
    model = random_model()
    model.stack.blocks[0].attention.W_Q.data.zero_()  # equal weights
    words = list("abcdefghijklmnopq")
    lines = own_model.attention_as_text(
        OwnModel(model, Parts(read_functions(mine))), words[:11], words
    )
    assert "".join(lines[1].split()) == 3 * "1234567891011"
    for i, shade in ((1, "█"), (2, "▓"), (3, "▒"), (5, "░"), (11, "·")):  # weights of 1/i
        assert lines[1 + i].split() == [str(i), words[i - 1], *3 * [2 * i * shade]]
    assert lines[-1].strip() == "· below 0.1, ░ from 0.1, ▒ from 0.25, ▓ from 0.5, █ from 0.75"


@pytest.fixture
def quick(monkeypatch):
    """Models that hardly learn, and write one text."""
    monkeypatch.setattr(wrong_part, "TRAINING_STEPS", 2)
    monkeypatch.setattr(wrong_part, "NUM_WRITTEN", 1)
    wrong_part.learn_right.cache_clear()
    yield
    wrong_part.learn_right.cache_clear()


@pytest.mark.parametrize("name", mostly_slow(PLACES, *PLACES[::3]))
def test_the_right_function_in_its_part_s_place_makes_no_difference(quick, name):
    assert follow(name, CHECKS[name].solve).endswith("or it lies elsewhere.")


def test_what_a_wrong_function_does_stands_beside_the_right_one(quick):
    def attention(Q, K, V, mask):
        return torch.eye(len(K)).flip(0) @ V

    shown = follow("attention", attention)
    first, *lines = shown.splitlines()  # which takes two
    assert first.endswith("from the same weights,")
    assert re.search(r"loss, nats a word +right \d\.\d{3}   yours \d\.\d{3}$", lines[1])
    assert lines[3].split() == ["right", "yours"]
    assert lines[5].split()[-1] == 16 * "·" + "██" and lines[13].split()[-1] == "██" + 16 * "·"
    assert sum("of 1 texts" in line for line in lines) == 2


@pytest.mark.parametrize(("more", "told"), [(-0.01, True), (-1e-5, False), (0.01, False)])
def test_a_loss_below_the_lowest_is_told_but_not_what_is_below_by_rounding(more, told):
    yours = {"loss": own_model.compute_lowest_loss() + more}
    said = wrong_part._compare("attention", {"loss": 1.0}, yours)
    assert told == any("No honest model is below 0.2" in line for line in said)


def forgets_to_add(*given):
    raise KeyError("beta")


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("lm_head", lambda H, E: H @ E, "Yours stops at step 1, in line"),
        ("ffn", lambda x, *W: x * math.nan, "Yours goes no further. The loss is nan at step 1."),
        ("layer_norm", forgets_to_add, "KeyError: 'beta'."),
        ("lm_head", lambda H, E: (H @ E.T).detach(), "No gradient reaches"),
        ("draw", lambda y, dart: 1 / 0, "Yours stops when it writes, in line"),
        ("ffn", lambda x: x, "It is called as ffn(x, W_1, b_1, W_2, b_2), but yours takes (x)."),
        ("rotary", forgets_to_add, "Chapter 5's model has no rotary: nothing can be seen there."),
    ],
)
def test_where_a_wrong_function_cannot_train_it_is_said_at_which_step(quick, name, function, words):
    assert words in follow(name, function)


def test_a_wrong_function_without_end_is_ended(quick, monkeypatch):
    monkeypatch.setattr(wrong_part, "TIMEOUT_S", 1)

    def ffn(x, W_1, b_1, W_2, b_2):
        while True:
            pass

    assert "Yours has not ended after 1 seconds. It was at step 1, in line" in follow("ffn", ffn)


def test_a_file_s_wrong_functions_are_followed_when_that_is_asked(quick, mine, capsys):
    mine.write_text(NO_MASK, encoding="utf-8")
    assert command.main([str(mine), "--follow"]) == 1
    assert "with the right multi_head_attention and with yours" in capsys.readouterr().out


def test_progress_names_mistakes_and_what_is_missing(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("def lm_head(H, E):\n    return H @ E.T.softmax(-1)\n", encoding="utf-8")
    assert command.main([str(path)]) == 1
    said = capsys.readouterr().out
    assert f"0 of the {len(NEEDED)} parts" in said and "not there yet" in said
    assert "5 * lm_head" in said and "lm_head                right" not in said


def test_following_says_where_it_has_no_effect(quick, tmp_path, capsys):
    assert command.main(["softmax", "--follow"]) == 2
    assert "--follow is for a file: softmax is the name of a check." in capsys.readouterr().err
    command.main(["--new", str(path := tmp_path / "mine.py")])
    command.main([str(path), "--follow"])
    assert "No function is wrong, so there is nothing to follow." in capsys.readouterr().out


@pytest.mark.parametrize("name", ["draw", "top_k"])
def test_of_a_part_that_only_writes_what_is_written_alone_is_compared(quick, name):
    shown = follow(name, lambda *arguments: CHECKS[name].solve(*arguments))
    assert "right: of" in shown and "nats a word" not in shown and "looks" not in shown


def test_what_has_no_line_of_code_is_not_there_yet(tmp_path, capsys):
    path, page = tmp_path / "mine.py", tmp_path / "progress.html"
    command.main(["--new", str(path)])
    forgotten = "\ndef softmax(scores):\n    powers = scores.exp()\n"  # no return
    path.write_text(path.read_text(encoding="utf-8") + forgotten, encoding="utf-8")
    assert command.main([str(path), "--html", str(page)]) == 1
    said = capsys.readouterr().out
    assert said.count("not there yet") == len([*chain(*command.CHAPTERS.values())]) - 1
    assert said.count("It returns nothing yet") == 1
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r'<a href="#([^"]+)" data-state="wrong"', text)) == {"probs"}
    assert [name for name, one in command.judge_file(path)[1].items() if one] == []
    assert command.main(["--html", str(page)]) == 2
    assert "Name the file" in capsys.readouterr().err


def test_solutions_of_the_exercises_can_be_pasted_below_the_stubs(tmp_path):
    path = tmp_path / "mine.py"
    command.main(["--new", str(path)])
    pasted = "\ndef my_softmax(u):\n    return u\n\n\ndef my_lookup(ids, E):\n    return E[ids]\n"
    path.write_text(path.read_text(encoding="utf-8") + pasted, encoding="utf-8")
    found = read_functions(path)
    assert [(n, f.__name__) for n, f in found.items()] == [
        ("softmax", "my_softmax"), ("one_hot_lookup", "my_lookup")
    ]  # fmt: skip
    own = pasted + "\ndef softmax(u):\n    return 2 * u\n"
    path.write_text(own, encoding="utf-8")
    assert read_functions(path)["softmax"].__name__ == "softmax"


def test_a_wrong_part_that_another_uses_and_a_change_in_place_are_said(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(BOTH_WRONG, encoding="utf-8")
    command.main([str(path)])
    said = capsys.readouterr().out
    assert "head                   " in said and "It uses causal_mask, which is not right" in said
    assert "block                  right (It changes X in place.)" in said


BOTH_WRONG = """
import torch

def causal_mask(N):
    return torch.full((N, N), -torch.inf).triu(2)

def head(X, W_Q, W_K, W_V, W_O):
    scores = X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5
    return torch.softmax(scores + causal_mask(len(X)), -1) @ X @ W_V @ W_O

def block(X, attention, ffn, norm_1, norm_2):
    X += attention(norm_1(X))
    X += ffn(norm_2(X))
    return X
"""


def test_the_progress_page_marks_the_parts_of_the_site_s_own_drawing(tmp_path, capsys):
    path, page = tmp_path / "mine.py", tmp_path / "progress.html"
    whole = MINE.split("def lm_head")[0].replace("/ torch.sqrt", "* torch.sqrt")
    head = "def lm_head(H, E):\n    return H @ E.T.softmax(-1)\n"
    path.write_text(whole + head, encoding="utf-8")
    assert command.main([str(path), "--html", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    states = dict(re.findall(r'<a href="#([^"]+)" data-state="(\w+)"', text))
    assert states.keys() == PART_FUNCTIONS.keys()
    by_state = {s: {slug for slug in states if states[slug] == s} for s in states.values()}
    assert by_state == {
        "right": {"X", "mh-par-out", "O", "ffn", "H", "final-ln"},
        "wrong": {"ln", "logits"},
        "empty": {"onehot", "probs", "top-p", "kv-attn"},
    }
    assert all(text.count(f'id="{slug}"') == 1 for slug in states)
    assert text.count("<svg") == 2 and "<!--" not in text and "9 of the 11" in text
    assert not re.findall(r'(?:src|href)="(?!#)|url\(|@import', text), "no outside request"
    assert command.main([str(path), "--html", str(tmp_path / "no" / "p.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    for over in (path, tmp_path / "other.ipynb"):
        assert command.main([str(path), "--html", str(over)]) == 2
        assert "--html would write over" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == whole + head and not over.exists()


def test_the_progress_page_has_the_site_s_drawing():
    drawing = diagrams.progress_drawing()
    assert drawing in TEMPLATE.read_text(encoding="utf-8"), "python docs/site_build/diagrams.py"


def test_a_new_file_has_every_part_and_overwrites_nothing(tmp_path, capsys):
    path = tmp_path / "mine.py"
    assert command.main(["--new", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    defined = re.findall(r"(?m)^def (\w+)", text)
    assert defined == [n for names in own_model.CHAPTERS.values() for n in names]
    assert command.main(["--new", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX's")
def test_what_never_ends_is_no_file_to_check(mine, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    for name, kind in ((os.devnull, "device"), (str(tmp_path / "pipe"), "pipe")):
        for words in ([name], [str(mine), "--gradescope", name]):
            assert command.main(words) == 2
            assert f"{name} is a {kind}, not a file." in capsys.readouterr().err


def test_a_flag_that_another_leaves_no_use_for_is_refused(mine, tmp_path, capsys):
    page = ["--html", str(tmp_path / "page.html")]
    for words in (["--json", *page], ["--json", "--tabs"], ["--new", "--json"]):
        assert command.main([str(mine), *words]) == 2
        assert "give one of the two" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_what_a_check_knows_is_printed_alone(capsys):
    assert command.main(["lm_head"]) == 0
    said = capsys.readouterr().out
    assert "lm_head(H, E)" in said and "attention(" not in said
    assert command.main(["nothing.py"]) == 2
    assert "There is no check and no file named nothing.py" in capsys.readouterr().err


def test_the_exercises_functions_are_found_by_the_checks_that_they_are_handed_to(tmp_path):
    exercises = Path(__file__).parents[2] / "chapters" / "exercises"
    for name in ("01_attention", "04_input"):
        source = (exercises / f"{name}.py").read_text("utf-8")
        parts = re.split(r"^# %%.*$", source, flags=re.MULTILINE)
        cells = [{"cell_type": "code", "source": [part]} for part in parts]
        path = tmp_path / f"{name}.ipynb"
        path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
        verdicts = command.judge_file(path)[1]
        assert all(verdicts[one] for one in verdicts if verdicts[one] is not None), verdicts
        expected = {"01_attention": "softmax", "04_input": "input_encoding"}[name]
        assert verdicts[expected]
