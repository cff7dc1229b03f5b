"""A Transformer of the reader's own functions: guided, assembled, trained, compared; a class."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.check import __main__ as command
from slp_transformer.check import mine, own_model
from slp_transformer.check.class_report import has_memory_limit, report_on_folder
from slp_transformer.modern import ModernConfig, ModernLM, save_pretrained
from slp_transformer.training.checkpoints import save_checkpoint

CHAPTERS = Path(__file__).parents[2] / "chapters"


def write_notebook(path: Path, *scripts: str) -> Path:
    cells = [{"cell_type": "code", "source": [script]} for script in scripts]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """The exercises of chapters 1 to 6, solved, as notebooks; they are not run, only read."""
    folder = tmp_path_factory.mktemp("notebooks")
    paths = sorted((CHAPTERS / "exercises").glob("0[1-6]*.py"))
    return [write_notebook(folder / f"{p.stem}.ipynb", p.read_text("utf-8")) for p in paths]


@pytest.fixture(scope="module")
def functions(notebooks):
    found, verdicts = mine.check_functions(notebooks)
    assert all(verdicts[name] for name in mine.PARTS), verdicts
    return found


def test_a_new_file_begins_empty_and_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "mine.py"
    assert command.main(["--new", str(path)]) == 0
    assert command.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "0 of 19 parts are right." in out and "Next, my_softmax (exercise 1.1)" in out
    before = path.read_bytes()
    assert command.main(["--new", str(path)]) == 2
    assert path.read_bytes() == before and "is not overwritten" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.py"]


def test_notebooks_are_exported_and_a_mistake_is_named_where_it_stands(notebooks, tmp_path, capsys):
    path = tmp_path / "mine.py"
    assert command.main(["--new", str(path), *map(str, notebooks)]) == 0
    text = path.read_text("utf-8")
    path.write_text(text.replace("len(k_j)\n    return", "len(k_j)**2\n    return"), "utf-8")
    assert text != path.read_text("utf-8")
    assert command.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "17 of 19 parts are right." in out and "Next, my_scaled_score" in out
    assert out.count("not yet: scaled by d_k") == 2, "the head that uses it as well"


@pytest.mark.parametrize(
    "text, words",
    [("def (:", "line 1: this is not Python"), ("1 / 0", "stops: ZeroDivisionError")],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(text, words, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    assert command.main([str(tmp_path / "mine.py")]) == 2
    assert words in capsys.readouterr().err
    assert command.main([str(tmp_path / "none.py")]) == 2


def test_sentences_and_least_loss_are_chapter_5s():
    text = (CHAPTERS / "05_language_model.py").read_text("utf-8")
    told = text.split('text = """')[1].split('"""')[0]
    sentences = [line.split() for line in told.splitlines()]
    assert sentences == own_model.SENTENCES
    seen = Counter(tuple(s[:i]) for s in sentences for i in range(11))
    losses = [
        -math.log(seen[tuple(s[: i + 1])] / seen[tuple(s[:i])])
        for s in sentences
        for i in range(1, 10)
    ]
    assert own_model.BEST_LOSS == pytest.approx(sum(losses) / len(losses))


@pytest.mark.slow
def test_a_model_of_right_parts_learns_and_is_tried(functions, tmp_path):
    page = tmp_path / "attention.html"
    said = "\n".join(own_model.run_own_model(functions, True, page))
    assert "It learned: loss 0.2" in said and "It cannot see ahead" in said
    assert "with its cache it says what" in said and "block 3" in said
    assert "<svg" in page.read_text("utf-8")


def small_model():
    torch.manual_seed(0)
    config = TransformerConfig(13, 11, model_dim=10, num_heads=2, num_blocks=2)
    model = TransformerLM(config)
    for W in model.parameters():
        W.data += 0.5 * torch.randn_like(W)
    return model


def test_weights_of_a_run_and_of_gpt2_say_the_same_words(functions, tmp_path):
    save_checkpoint(tmp_path / "run", 1, small_model())
    assert "the same next word at all 11 places" in "".join(
        own_model.compare_with_weights(functions, tmp_path / "run")
    )
    options = dict(activation="gelu_tanh", positions="learned", normalization="layer", eps=1e-5)
    config = ModernConfig(13, 11, 10, 2, 2, attention_bias=True, ffn_bias=True, **options)
    model = ModernLM(config)
    for W in model.parameters():
        W.data += 0.5 * torch.randn_like(W)
    save_pretrained(model, tmp_path / "gpt2")
    said = "".join(own_model.compare_with_weights(functions, tmp_path / "gpt2"))
    assert "biases" in said and "GELU" in said and "at all 11 places" in said
    wrong = functions | {"my_layer_norm": lambda x, gamma, beta: gamma * x + beta}
    with pytest.raises(mine.BrokenPart, match="a probability differs by"):
        list(own_model.compare_with_weights(wrong, tmp_path / "run"))


def test_a_model_that_is_not_the_books_is_refused(functions, tmp_path):
    config = TransformerConfig(13, 11, model_dim=10, num_heads=2, num_blocks=1, norm="post")
    save_checkpoint(tmp_path, 1, TransformerLM(config))
    with pytest.raises(
        mine.BrokenPart, match="norm = 'post'; the book's model, or GPT-2, has 'pre'"
    ):
        list(own_model.compare_with_weights(functions, tmp_path))


def test_looking_ahead_a_wrong_cache_and_a_lost_gradient_are_found(functions):
    ids = torch.tensor([3, 1, 4, 1, 5])
    ahead = functions | {"my_block": lambda X, *layers: X + X.mean(0)}
    with pytest.raises(mine.BrokenPart, match="before word 1 move"):
        own_model.check_causality(own_model.OwnModel(ahead, small_model()), ids)
    step = functions["my_cached_step"]
    forgetful = functions | {
        "my_cached_step": lambda x, W_Q, W_K, W_V, K, V: step(x, W_Q, W_K, W_V, K[:0], V[:0])
    }
    with pytest.raises(mine.BrokenPart, match="after word 1 differ"):
        own_model.check_cache(own_model.OwnModel(forgetful, small_model()), ids)
    detached = functions | {"my_lm_head": lambda H, E: (H @ E.T).detach()}
    with pytest.raises(mine.BrokenPart, match="my_lm_head returns .* without their gradient"):
        own_model.OwnModel(detached, small_model())(ids)


def test_a_loss_below_the_least_is_cheating(functions, monkeypatch):
    monkeypatch.setattr(own_model, "cross_entropy", lambda U, ids: 0 * U.sum())
    config = TransformerConfig(16, 10, model_dim=4, num_heads=1, num_blocks=1)
    with pytest.raises(mine.BrokenPart, match="no model can go below 0.231"):
        list(own_model.train(own_model.OwnModel(functions, TransformerLM(config))))


@pytest.mark.slow
def test_a_class_report_says_who_passed_what_whatever_they_wrote(tmp_path, capsys):
    softmax = "import torch\ndef my_softmax(scores):\n    return torch.softmax(scores, -1)"
    (tmp_path / "anna.py").write_text(softmax, encoding="utf-8")
    top_k = "import torch\ndef mine(u, k):\n    return torch.softmax(u, -1)\ncheck.top_k(mine)"
    write_notebook(tmp_path / "ben.ipynb", top_k, "%timeit 1", "1 / 0")
    (tmp_path / "large.py").write_text("x = bytearray(9 * 2**30)", encoding="utf-8")
    (tmp_path / "leaves.py").write_text("import os; os._exit(3)", encoding="utf-8")
    report = report_on_folder(tmp_path, timeout_s=120, memory_mib=1024)
    found = {one["file"]: one for one in report["students"]}
    assert found["anna.py"]["functions"]["my_softmax"]["is_right"]
    assert found["ben.ipynb"]["functions"]["mine"]["mistakes"] == ["ordered all"]
    assert report["mistakes"] == [{"function": "mine", "mistake": "ordered all", "students": 1}]
    assert report["passed"] == {"my_softmax": 1} and "exit code 3" in found["leaves.py"]["error"]
    if has_memory_limit():
        assert "MemoryError" in found["large.py"]["error"]
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "eve.py").write_text("while True: pass", encoding="utf-8")
    assert command.main(["--json", str(tmp_path / "loop"), "--timeout", "5"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["students"][0]["error"] == "It took more than 5 seconds."
    assert "runs students' code" in out.err
