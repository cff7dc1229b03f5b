"""Prompts from files, and strings that end what is generated."""

import io
import json
import sys
from pathlib import Path

import pytest
from commands import output, refused, result

from slp_transformer.cli import generate as module

GREEDY = ["--temperature", "0", "--max-new-tokens", "12"]


def written(text: str, name: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_text_ends_before_the_first_of_several_strings(text_run, capsys):
    """Whole and as it is printed; tokens are single characters, so that a string spans several."""
    how = ["generate", "a", "--prompt", "The", "--seed", "6", "--max-new-tokens", "12"]
    whole = output(capsys, *how).removesuffix("\n")
    new = whole[3:]
    assert len(new) == 12
    for first, last in ((2, 5), (0, 1), (10, 12), (4, 12)):
        stop = new[first:last]
        expected = whole[: 3 + new.index(stop)]
        for more in ([], ["--stop", "never seen"]):
            assert output(capsys, *how, "--stop", stop, *more) == expected + "\n"
        (one,) = result(capsys, *how, "--stop", stop)
        assert (one["text"], one["finish_reason"]) == (expected, "stop")
    both = output(capsys, *how, "--stop", new[5:8], "--stop", new[1:3])
    assert both == whole[: 3 + min(new.index(new[5:8]), new.index(new[1:3]))] + "\n"
    (one,) = result(capsys, *how, "--stop", "never seen")
    assert (one["text"], one["finish_reason"]) == (whole, "length")
    assert output(capsys, *how, "--stop", "The").startswith("The")  # in the prompt it ends nothing


def test_a_text_past_the_window_ends_too(text_run, capsys):
    how = ["generate", "a", "--prompt", "The", "--seed", "6", "--max-new-tokens", "40"]
    whole = output(capsys, *how).removesuffix("\n")  # the window is 13
    stop = whole[28:32]
    expected = whole[: whole.index(stop, 3)]
    assert len(expected) == 28
    assert output(capsys, *how, "--stop", stop) == expected + "\n"


@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_each_line_of_a_file_is_a_prompt(batch_size, text_run, capsys, monkeypatch):
    lines = written("The\nfox \nlazy\n", "prompts.txt")
    how = ["--max-new-tokens", "12", "--seed", "5"]
    flags = ["--prompt", "The", "--prompt", "fox ", "--prompt", "lazy"]
    expected = result(capsys, "generate", "a", *how, *flags)
    monkeypatch.setattr(module, "BATCH_SIZE", batch_size)
    assert result(capsys, "generate", "a", *how, "--prompts-file", lines) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"The\nfox \nlazy")))
    assert result(capsys, "generate", "a", *how, "--prompts-file", "-") == expected
    assert [one["seed"] for one in expected] == [5, 6, 7]
    objects = [{"prompt": "The", "id": 3}, {"prompt": "fox "}, {"id": "x", "prompt": "lazy"}]
    lines = written("".join(json.dumps(one) + "\n" for one in objects), "prompts.jsonl")
    answers = [one | more for one, more in zip(objects, expected, strict=True)]
    printed = output(capsys, "generate", "a", *how, "--prompts-file", lines)
    assert [json.loads(line) for line in printed.splitlines()] == answers
    to_file = ["--output", "answers.jsonl"]
    assert output(capsys, "generate", "a", *how, "--prompts-file", lines, *to_file) == ""
    assert Path("answers.jsonl").read_text(encoding="utf-8") == printed


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("p.txt", "The\n\nfox", "p.txt, line 2: there is no prompt."),
        ("p.txt", "", "p.txt has no prompts."),
        ("p.txt", "The\nΩ", "p.txt, line 2: "),
        ("p.jsonl", '{"prompt": "The"}\n{"promt": "a"}', "p.jsonl, line 2: there is no string"),
        ("p.jsonl", '{"prompt": 3}', "p.jsonl, line 1: there is no string"),
        ("p.jsonl", '["The"]', "p.jsonl, line 1: an object is needed"),
        ("p.jsonl", "{", "p.jsonl, line 1: this is no JSON"),
        ("p.jsonl", "[" * 100_000, "p.jsonl, line 1: this is no JSON"),
        ("p.jsonl", '{"messages": "hi"}', "line 1: messages must be a list of objects"),
        ("p.jsonl", '{"messages": []}', "line 1: messages must be a list of objects"),
    ],
)
def test_a_line_that_is_no_prompt_is_named(name, content, sentence, text_run, capsys):
    """Before anything is written, whatever stands in the lines before it."""
    written(content, name)
    how = ["--prompts-file", name, "--output", "out.jsonl" if name == "p.jsonl" else "out.txt"]
    assert sentence in refused(capsys, "generate", "a", *how)
    assert not [path for path in Path().iterdir() if path.name.startswith("out")]


def test_what_does_not_go_together_is_refused(text_run, capsys):
    lines = written('{"prompt": "The"}', "p.jsonl")
    for more, sentence in (
        (["--prompts-file", lines, "--prompt", "The"], "answered line by line: give no other"),
        (["--prompts-file", lines, "--json"], "--json has no effect here"),
        (["--prompts-file", "none.txt"], "none.txt cannot be read"),
        (["--prompt", "The", "--prompts-file", written("", "p.txt")], "p.txt has no prompts."),
        (["--prompt", "The", "--chat"], "--chat has no effect here: the model has no chat"),
        (["--stop", ""], "--stop needs a string of at least a character"),
    ):
        assert sentence in refused(capsys, "generate", "a", *more)
