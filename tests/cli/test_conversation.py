"""A conversation at a terminal: each answer after all that was said, and what ends what."""

import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from commands import output, refused
from foreign import MODELS, foreign
from published_tokenizers import V, make_tokenizer

from slp_transformer._internal.signals import StoppedBySignal
from slp_transformer.cli import conversation, main
from slp_transformer.modern.chat_template import ChatTemplate
from slp_transformer.tasks.generation_session import GeneratedText
from slp_transformer.tasks.text import PublishedSession

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}<pad>{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
HOW = ["--max-new-tokens", "5", "--seed", "3"]


@pytest.fixture
def published(at, monkeypatch):
    """A folder as others publish it; its model has a window of 97 tokens."""
    kind, config, sizes = MODELS["llama"]
    sizes = sizes | {"vocab_size": V, "max_position_embeddings": 97}
    monkeypatch.setitem(MODELS, "llama", (kind, config, sizes))
    foreign("llama", at / "model")
    make_tokenizer().save(str(at / "model" / "tokenizer.json"))
    (at / "model" / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return at / "model"


def typed(monkeypatch, content: bytes) -> None:
    def no_file() -> int:
        raise OSError("no file")

    stdin = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: True, fileno=no_file)
    monkeypatch.setattr(sys, "stdin", stdin)


def talk(capsys, monkeypatch, *lines: str, code: int = 0, more=()) -> tuple[list[str], str]:
    """The answers, of a line each here, and what is said beside them."""
    typed(monkeypatch, "".join(f"{line}\n" for line in lines).encode())
    capsys.readouterr()
    assert main(["generate", "model", "--chat", *HOW, *more]) == code
    printed = capsys.readouterr()
    return printed.out.split("\n")[:-1], printed.err


@pytest.fixture
def told(monkeypatch):
    """Answers are words; the conversations as the template got them, and the other arguments."""
    begin, chats, asked = PublishedSession.begin_chats, [], []

    def render(self, given):  # as the template does, without its process
        texts = ["".join(f"{m['role']}: {m['content']}<pad>" for m in chat) for chat in given]
        return [f"{text}assistant:" for text in texts]

    def begin_chats(self, given):
        chats.extend(json.loads(json.dumps(given)))
        return begin(self, given)

    def answer(model, session, prompts, room, seed, on_text, **options):
        asked.append((len(prompts[0]), room, seed, options))
        on_text(0, f"answer {len(asked)}")
        return [GeneratedText([], 0, 0)]

    monkeypatch.setattr(ChatTemplate, "render", render)
    monkeypatch.setattr(PublishedSession, "begin_chats", begin_chats)
    monkeypatch.setattr(conversation, "continue_prompts", answer)
    return SimpleNamespace(chats=chats, asked=asked)


@pytest.mark.slow
def test_each_answer_is_that_of_all_before(published, capsys, monkeypatch):
    """As `generate` answers the same messages from a file, of which the template makes one text."""
    said = ["A fox?", "", "Why?"]
    answers, beside = talk(capsys, monkeypatch, *said, more=["--temperature", "0"])
    assert len(answers) == 2 and beside.count("> ") == 4 and "Ctrl-D the conversation" in beside
    chat = [{"role": "user", "content": "A fox?"}]
    for n, answer in enumerate(answers):
        (published.parent / "c.jsonl").write_text(json.dumps({"messages": chat}), encoding="utf-8")
        how = ["--prompts-file", "c.jsonl", "--chat", *HOW, "--temperature", "0"]
        assert json.loads(output(capsys, "generate", "model", *how))["text"] == answer, n
        chat += [{"role": "assistant", "content": answer}, {"role": "user", "content": "Why?"}]


def test_what_no_longer_fits_the_window_is_forgotten_and_told(published, told, capsys, monkeypatch):
    """Windows of 97 tokens: of three messages of thirty with their answers the first two go."""
    lines = ["Z" * 30, "Q" * 30, "X" * 30, "W" * 120, "short"]
    answers, beside = talk(capsys, monkeypatch, *lines)
    assert answers == ["answer 1", "answer 2", "answer 3", "answer 4"]
    assert "messages and answers at its beginning (2) are forgotten." in beside
    assert "This message has 1" in beside and "do not fit the model's window of 97" in beside
    assert all(length + 5 <= 97 and room == 5 for length, room, _, _ in told.asked)
    roles = [[one["role"] for one in chat] for chat in told.chats]
    assert all(each[0] == "user" and each[-1] == "user" for each in roles)
    last = told.chats[-1]
    assert last[-1]["content"] == "short" and not any("W" in one["content"] for one in last)


def test_an_answer_ends_where_the_window_does(published, told, capsys, monkeypatch):
    talk(capsys, monkeypatch, "Z" * 60, more=["--max-new-tokens", "400"])
    ((length, room, _, _),) = told.asked
    assert length > 97 // 2 and room == 97 - length


def test_the_flags_reach_each_answer(published, told, capsys, monkeypatch):
    more = ["--stop", "E", "--top-k", "3"]
    talk(capsys, monkeypatch, "a", "b", more=more)
    assert [seed for _, _, seed, _ in told.asked] == [3, 4]
    assert all(options["stop_texts"] == ("E",) for _, _, _, options in told.asked)
    assert all(options["top_k"] == 3 and options["answers"] for _, _, _, options in told.asked)


def test_ctrl_c_ends_an_answer_and_sigterm_the_program(published, told, capsys, monkeypatch):
    answer, numbers = conversation.continue_prompts, [signal.SIGINT, signal.SIGINT]

    def stopped(*args, **options):
        answer(*args, **options)
        if numbers:
            signal.raise_signal(numbers.pop())

    monkeypatch.setattr(conversation, "continue_prompts", stopped)
    answers, _ = talk(capsys, monkeypatch, "a", "b", "c")
    assert answers == ["answer 1", "answer 2", "answer 3"]
    assert [one["content"] for one in told.chats[-1]] == ["a", "answer 1", "b", "answer 2", "c"]
    numbers.append(signal.SIGTERM)
    answers, _ = talk(capsys, monkeypatch, "a", "b", code=143)
    assert answers == ["answer 4"]


def test_ctrl_c_at_the_prompt_ends_the_program(published, told, capsys, monkeypatch):
    def lines():
        yield "a"
        raise StoppedBySignal

    monkeypatch.setattr(conversation, "iter_stdin_lines", lines)
    answers, beside = talk(capsys, monkeypatch, code=130)
    assert answers == ["answer 1"] and "Stopped." in beside


def test_without_a_template_nothing_is_asked(published, capsys, monkeypatch):
    (published / "chat_template.jinja").unlink()
    typed(monkeypatch, b"")
    assert "no chat template" in refused(capsys, "generate", "model", "--chat")


@pytest.mark.parametrize("more", [["--json"], ["--num-samples", "2"], ["--output", "a.txt"]])
def test_what_has_no_effect_in_a_conversation_needs_a_prompt(more, published, capsys, monkeypatch):
    typed(monkeypatch, b"")
    message = refused(capsys, "generate", "model", "--chat", *more)
    assert "--chat answers a prompt: give --prompt or --prompts-file" in message


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("end", ["Ctrl-D", "SIGTERM"])
def test_at_a_terminal(end, published):
    """An answer, and the end: by a key, or by a signal that is heard while it waits for a line."""
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "slp_transformer", "generate", "model", "--chat", *HOW]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)

    def read_until_it_asks() -> bytes:
        seen, late = b"", time.monotonic() + 60
        while not seen.endswith(b"> ") and time.monotonic() < late:
            if select.select([ours], [], [], 1)[0]:
                seen += os.read(ours, 4096)
        assert seen.endswith(b"> "), seen
        return seen

    try:
        assert b"Ctrl-D the conversation" in read_until_it_asks()
        os.write(ours, b"A fox?\n")
        assert read_until_it_asks().count(b"\r\n") >= 2  # the echo of the line, and an answer
        if end == "Ctrl-D":
            os.write(ours, b"\x04")
        else:
            process.terminate()
        assert process.wait(60) == (0 if end == "Ctrl-D" else 143)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
