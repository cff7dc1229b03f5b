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
from whole import whole

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
    added = "Added to your functions, since the book has none: biases of attention, GELU.\n"
    agrees = (
        f"With the weights of {tmp_path / 'gpt2'}, all 24 next words are the package's; no logit\n"
    )
    right = "\nAll parts of the model (*) are right. They are put together.\n"
    assert right + added + agrees in said
    assert re.search(r"^is further than \d\.\de-0[5-9] from it\.\n\Z", said, re.MULTILINE)
    foreign("llama", tmp_path / "llama")
    model = from_pretrained(tmp_path / "llama")
    with pytest.raises(
        ValueError, match=whole("This model has other parts than the book's and GPT-2's.")
    ):
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
    with pytest.raises(ValueError, match=r"^The next word differs after 1 words\.$"):
        own_model.compare(wrong, model)


def test_the_lowest_loss_is_that_of_counting():
    # Who: ln 2 once; how it was tuned: two of four, (3/2) ln 2; flat or sharp: half the time ln 2.
    assert own_model.compute_lowest_loss() == pytest.approx((1 + 1.5 + 0.5) * math.log(2) / 9)
    assert own_model.describe_loss_problem(0.235) == ""
    assert own_model.describe_loss_problem(0.24) == ""
    assert own_model.describe_loss_problem(0.2404) == "The loss 0.240 should be 0.24 at the most."
    assert own_model.describe_loss_problem(0.005) == (
        "The loss 0.005 is below 0.231, which no model of these sentences can reach: it sees the "
        "word that it predicts."
    )


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
    with pytest.raises(
        ValueError, match=whole("A word before place 1 changes when the word there does.")
    ):
        own_model.check_causality(blind, ids)
    X = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    own_model.check_cache(OwnModel(model, Parts(read_functions(mine))), X)
    wrong = parts_of(MINE.replace("[V, (x @ W_V)", "[V, (x @ W_K)"), tmp_path)
    with pytest.raises(
        ValueError, match=whole("With the cache, the output of head 1 differs at row 1.")
    ):
        own_model.check_cache(OwnModel(model, wrong), X)


def test_a_part_without_gradient_is_named(tmp_path):
    wrong = parts_of(
        MINE.replace("torch.relu(x @ W_1 + b_1)", "torch.relu(x @ W_1.data)"), tmp_path
    )
    with pytest.raises(
        ValueError,
        match=whole(
            "No gradient reaches stack.blocks.0.ffn.W_1: a function on its way uses .item(), "
            ".detach(), .data, NumPy, or a new tensor made of numbers."
        ),
    ):
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


REFUSED = {
    "--json": "Name the file: python -m slp_transformer.check mine.py, then the option.",
    "softmax --follow": "--follow is for a file: softmax is the name of a check.",
    "mine.py --json --html page.html": "--json has no use for --html: give one of the two.",
    "mine.py --json --tabs": "--json has no use for --tabs: give one of the two.",
    "mine.py --new --json": "--new has no use for --json: give one of the two.",
    "mine.py --gradescope points.toml --follow": (
        "--gradescope has no use for --follow: give one of the two."
    ),
    "mine.py --html mine.py": (
        "--html would write over mine.py, a script or notebook: name another."
    ),
    "mine.py --html other.ipynb": (
        "--html would write over other.ipynb, a script or notebook: name another."
    ),
    "mine.py --gradescope points.toml --results mine.py": (
        "--results would write over mine.py, a script or notebook: name another."
    ),
    "mine.py --html no/page.html": "no/page.html cannot be written: No such file or directory.",
    "mine.py --new": "mine.py is there already: name another file.",
    "nothing.py": "There is no check and no file named nothing.py.",
    "mine.py --run run --text text.txt": (
        "--run brings weights, and learning trains new ones: give one of the two."
    ),
    "mine.py --text none.txt": "none.txt cannot be read: No such file or directory.",
    "mine.py --text latin.txt": "latin.txt is not UTF-8 text: save it as UTF-8.",
    "mine.py --text short.txt": (
        "short.txt should have 64 to 1,000,000 characters: a model of this size learns from a few "
        "pages."
    ),
    "wrong.py": "wrong.py cannot be used: ZeroDivisionError, division by zero.",
    "mine.py --gradescope none.toml": "none.toml cannot be read: No such file or directory.",
    "mine.py --gradescope .": ". is a folder, not a file.",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_the_command_cannot_do_is_one_whole_sentence(words, mine, monkeypatch, capsys):
    """And nothing is written."""
    monkeypatch.chdir(mine.parent)
    Path("wrong.py").write_text("class A:\n    1 / 0\n", encoding="utf-8")
    Path("latin.txt").write_bytes(b"\xff" * 99)
    Path("short.txt").write_text("a" * 63, encoding="utf-8")
    Path("points.toml").write_text("softmax = 2\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in mine.parent.iterdir()}
    assert command.main(words.split()) == 2
    said = capsys.readouterr()
    assert said.err.replace("\\", "/") == f"check: {REFUSED[words]}\n"
    assert {path: path.read_bytes() for path in mine.parent.iterdir()} == before


def test_a_text_of_just_the_least_and_the_most_characters_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(own_writing, "MAX_CHARACTERS", 70)
    for size in (64, 70):
        (tmp_path / "text.txt").write_text("é" * size, encoding="utf-8")
        assert own_writing.read_text(tmp_path / "text.txt") == "é" * size
    (tmp_path / "text.txt").write_text("é" * 71, encoding="utf-8")
    with pytest.raises(ValueError, match="should have 64 to 70 characters"):
        own_writing.read_text(tmp_path / "text.txt")


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
    start = MINE.split("def lm_head")[0].replace("/ torch.sqrt", "* torch.sqrt")
    head = "def lm_head(H, E):\n    return H @ E.T.softmax(-1)\n"
    path.write_text(start + head, encoding="utf-8")
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


def test_the_progress_page_has_the_site_s_drawing():
    drawing = diagrams.progress_drawing()
    assert drawing in TEMPLATE.read_text(encoding="utf-8"), "python docs/site_build/diagrams.py"


def test_a_new_file_has_every_part_and_overwrites_nothing(tmp_path, capsys):
    path = tmp_path / "mine.py"
    assert command.main(["--new", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    defined = re.findall(r"(?m)^def (\w+)", text)
    assert defined == [n for names in own_model.CHAPTERS.values() for n in names]
    assert capsys.readouterr().out.split("\n") == [
        f"Written to {path}. Fill in a function, and run:",
        f"  python -m slp_transformer.check {path}",
        "",
    ]
    assert text.startswith('"""My own Transformer."""\n\nimport torch\n\n\n# --- Chapter 1 ---\n')
    for name in ("lm_head", "draw", "swiglu"):
        one, need = CHECKS[name], {"draw": "  (with it the model writes)"}
        need = need.get(name, "" if name in NEEDED else "  (not needed for the model)")
        above, _, below = text.partition(f"def {one.signature_text}:\n")
        source, says = above.rstrip("\n").split("\n")[-2:]
        assert source == f"# {one.source}{need}" and below.startswith("    ...\n")
        assert says[:3] == says[:3].upper() and " ".join(one.__doc__.split()).endswith(says[3:])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX's")
def test_what_never_ends_is_no_file_to_check(mine, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    for name, kind in ((os.devnull, "device"), (str(tmp_path / "pipe"), "pipe")):
        for words in ([name], [str(mine), "--gradescope", name]):
            assert command.main(words) == 2
            assert f"{name} is a {kind}, not a file." in capsys.readouterr().err


def test_what_a_check_knows_is_printed_alone(capsys):
    assert command.main(["lm_head"]) == 0
    one = CHECKS["lm_head"]
    lines = [f"  {mistake}: {sentence}" for mistake, sentence in one.mistakes.items()]
    counted = f"1 check knows {len(lines)} mistakes."
    expected = ["", f"lm_head(H, E): {one.source}", *lines, "", counted, ""]
    assert capsys.readouterr().out.split("\n") == expected


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
