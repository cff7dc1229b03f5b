"""Scoring continuations: against sums by hand, against transformers, from flags and from lines."""

import json
import math
from pathlib import Path

import pytest
import torch
from commands import fine, output, refused, result
from foreign import MODELS, foreign
from published_tokenizers import V, make_tokenizer
from transformers import PreTrainedTokenizerFast

BOTH = ["--continuation", " fox", "--continuation", "y"]


@pytest.fixture(params=["gpt2", "llama"])
def published(request, at, monkeypatch):
    """A folder as others publish it, and their model."""
    kind, config, sizes = MODELS[request.param]
    monkeypatch.setitem(MODELS, request.param, (kind, config, sizes | {"vocab_size": V}))
    theirs = foreign(request.param, at / "model")
    make_tokenizer(begin=request.param == "llama").save(str(at / "model" / "tokenizer.json"))
    return theirs


@pytest.mark.parametrize("published", ["gpt2"], indirect=True)
def test_a_model_that_knows_nothing_finds_all_tokens_equally_probable(published, capsys):
    """All weights zero: each of 300 tokens has the logarithm of 1/300, whatever was before it."""
    with torch.no_grad():
        for W in published.parameters():
            W.zero_()
    published.save_pretrained("model")
    for text, count in (("Z", 1), ("ZZ", 2), ("Z☕", 4)):
        for prompt in ([], ["--prompt", "fox"]):
            (row,) = result(capsys, "score", "model", *prompt, "--continuation", text)
            assert (row["continuation"], row["tokens"]) == (text, count)
            assert row["log_probability"] == pytest.approx(-count * math.log(300), rel=1e-6)
            assert not row["greedy"]  # of equals the first is greedy, which is no letter


def test_a_row_for_each_continuation(text_run, capsys):
    """What `generate` writes is greedy, and nothing else; spaces before the join are scored."""
    how = ["--prompt", "The", "--max-new-tokens", "4", "--temperature", "0"]
    (written,) = result(capsys, "generate", "a", *how)
    new = written["text"][3:]
    other = "zzzz" if new != "zzzz" else "xxxx"
    given = ["--prompt", "The", "--continuation", new, "--continuation", other]
    first, second = result(capsys, "score", "a", *given)
    assert (first["greedy"], second["greedy"]) == (True, False)
    assert first["prompt"] == "The" and first["tokens"] == second["tokens"] == 4
    assert second["log_probability"] < first["log_probability"] < 0
    table = output(capsys, "score", "a", *given).splitlines()
    assert table[0] == "log P\ttokens\tgreedy\tcontinuation"
    assert table[1] == f"{first['log_probability']:.4f}\t4\tyes\t{json.dumps(new)}"
    assert table[2].endswith(f"\t4\tno\t{json.dumps(other)}")
    (joined,) = result(capsys, "score", "a", "--prompt", "The ", "--continuation", "fox")
    (apart,) = result(capsys, "score", "a", "--prompt", "The", "--continuation", " fox")
    assert joined["log_probability"] == apart["log_probability"] and joined["tokens"] == 4
    fine("score", "a", *given, "--output", "scores.txt")
    assert Path("scores.txt").read_text("utf-8").splitlines() == table


def test_lines_are_answered_by_lines(text_run, capsys):
    asked = [
        {"prompt": "The", "continuation": " fox", "id": 7},
        {"prompt": "", "continuation": "T"},
        {"continuation": "y dog", "prompt": "The laz"},
    ]
    Path("p.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    lines = [
        json.loads(line)
        for line in output(capsys, "score", "a", "--input", "p.jsonl").split("\n")[:-1]
    ]
    for one, line in zip(asked, lines, strict=True):
        prompt = ["--prompt", one["prompt"]] if one["prompt"] else []
        (row,) = result(capsys, "score", "a", *prompt, "--continuation", one["continuation"])
        expected = pytest.approx(row.pop("log_probability"), rel=1e-5)  # alone, and in a batch
        assert line.pop("log_probability") == expected and line == one | row
    assert output(capsys, "score", "a", "--input", "p.jsonl", "--output", "s.jsonl") == ""
    assert len(Path("s.jsonl").read_text("utf-8").splitlines()) == 3


def test_the_scores_are_theirs(published, capsys):
    """On a published model, after the token that `generate` has before a prompt."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file="model/tokenizer.json")
    prompt, ends = "The quick brown", (" fox", "☕", " dog and so")
    flags = [word for end in ends for word in ("--continuation", end)]
    for row, end in zip(
        result(capsys, "score", "model", "--prompt", prompt, *flags), ends, strict=True
    ):
        before, rest = (
            tokenizer(prompt).input_ids,
            tokenizer(end, add_special_tokens=False).input_ids,
        )
        assert tokenizer(prompt + end).input_ids == before + rest
        assert (before[0] == 1) == (published.config.model_type == "llama")
        with torch.no_grad():
            log_y = published(torch.tensor([before + rest])).logits[0].log_softmax(dim=-1)
        expected = sum(log_y[len(before) - 1 + i, w].item() for i, w in enumerate(rest))
        assert row["log_probability"] == pytest.approx(expected, rel=1e-4)
        greedy = log_y[len(before) - 1 : -1].argmax(dim=-1).tolist() == rest
        assert (row["tokens"], row["greedy"]) == (len(rest), greedy)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("", "p.jsonl has no lines."),
        (
            '{"prompt": "The"}',
            'p.jsonl, line 1: two strings are needed, "prompt" and "continuation".',
        ),
        (
            '{"continuation": "The"}',
            'p.jsonl, line 1: two strings are needed, "prompt" and "continuation".',
        ),
        ('{"prompt": 3, "continuation": "T"}', "line 1: two strings are needed"),
        ('{"prompt": "The", "continuation": ""}', "line 1: The continuation of 'The' is empty"),
        ('{"prompt": "T", "continuation": "h"}\n{"prompt": "T", "continuation": "Ω"}', "line 2: "),
        ('{"prompt": "The quick bro", "continuation": "wn"}', "line 1: The prompt has 13 tokens"),
        ("[]", "p.jsonl, line 1: an object is needed"),
    ],
)
def test_a_line_that_cannot_be_scored_is_named(lines, sentence, text_run, capsys):
    Path("p.jsonl").write_text(lines, encoding="utf-8")
    how = ["--input", "p.jsonl", "--output", "out.jsonl"]
    assert sentence in refused(capsys, "score", "a", *how)
    assert not list(Path().glob("*out*"))


def test_what_does_not_go_together_is_refused(text_run, capsys):
    Path("p.jsonl").write_text('{"prompt": "T", "continuation": "h"}', encoding="utf-8")
    for words, sentence in (
        ([], "Name what to score: by --continuation, or by --input FILE.jsonl."),
        (["--input", "p.jsonl", *BOTH], "Name what to score"),
        (["--input", "fox.txt"], "--input reads lines of JSON, and fox.txt is no .jsonl."),
        (["--input", "p.jsonl", "--prompt", "T"], "takes neither --prompt nor --json"),
        (["--input", "p.jsonl", "--json"], "takes neither --prompt nor --json"),
        (["--input", "none.jsonl"], "none.jsonl cannot be read"),
        (["--continuation", ""], "is empty: there is no token to score"),
    ):
        assert sentence in refused(capsys, "score", "a", *words)
    assert "is no model of text, which alone" in refused(capsys, "score", "guitar", *BOTH)
