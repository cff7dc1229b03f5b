"""Chat templates: the text that transformers makes of them, and bounds on what one may do."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from slp_transformer._internal import bounded_process
from slp_transformer.modern import chat_template
from slp_transformer.modern.chat_template import ChatTemplate

CHATML = """{% if messages[0]['role'] != 'system' %}{{ bos_token }}<|im_start|>system
You are a guitarist.<|im_end|>
{% endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] | trim + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
UNUSUAL = """{% set ns = namespace(seen=0) %}
{% for m in messages %}
    {% if m.role == 'tool' %}{% continue %}{% endif %}
    {% if ns.seen > 5 %}{% break %}{% endif %}
    {% set ns.seen = ns.seen + 1 %}
    {% generation %}{{ m | tojson }}{{ eos_token * 2 }}{% endgeneration %}

{% endfor %}
{{ tools is none }}{{ ns.seen }}"""
CHATS = [
    [{"role": "user", "content": " Is this „E minor“? "}],
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which key?\n"},
        {"role": "tool", "content": "unseen"},
        {"role": "assistant", "content": "Am."},
    ],
]
SEVERAL = {"name": "default", "template": "{{ bos_token }}"}
CONFIG = {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>"}


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"})


@pytest.mark.parametrize("source", [CHATML, UNUSUAL])
@pytest.mark.parametrize("add", [True, False])
def test_the_text_is_that_of_transformers(source, add):
    library = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "u": 2}, unk_token="u"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    how = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": source}
    theirs = PreTrainedTokenizerFast(tokenizer_object=library, **how)
    expected = theirs.apply_chat_template(CHATS, tokenize=False, add_generation_prompt=add)
    assert template(source).render(CHATS, add_generation_prompt=add) == expected


@pytest.mark.parametrize(
    "files",
    [
        {"chat_template.jinja": "{{ bos_token }}"},
        {"tokenizer_config.json": {"chat_template": "{{ bos_token }}"}},
        {"tokenizer_config.json": {"chat_template": [SEVERAL, SEVERAL | {"name": "tool_use"}]}},
    ],
)
def test_a_template_is_found_where_folders_have_it(files):
    config = CONFIG | files.get("tokenizer_config.json", {})
    files = files | {"tokenizer_config.json": json.dumps(config)}
    found = ChatTemplate.from_files(files)
    assert found.source == "{{ bos_token }}"
    assert found.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize("files", [{}, {"tokenizer_config.json": "{}"}])
def test_without_one_there_is_none(files):
    assert ChatTemplate.from_files(files) is None
    with pytest.raises(ValueError, match="tokenizer_config.json cannot be read"):
        ChatTemplate.from_files({"tokenizer_config.json": "{"})


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ 'a' * 10**9 }}", "not for templates"),
        ("{{ 'a' * 1000000000 }}", "more than 16,777,216 characters"),
        ("{{ 1000000000 * [0] }}", "more than 16,777,216 characters"),
        ("{{ '%1000000000d' % 1 }}", "not for templates"),
        ("{% for i in range(10**9) %}{% endfor %}", "not for templates"),
        ("{% for i in range(1000000000) %}{% endfor %}", "[Rr]ange"),
        ("{% for i in range(999) %}{{ 'a' * 99999 }}{% endfor %}", "makes more than 16,777,216"),
        ("{{ ''.__class__.__mro__ }}", "unsafe|no attribute|undefined"),
        ("{{ messages.append(1) }}", "not safely callable|unsafe"),
        ("{{ raise_exception('Roles must alternate') }}", "Roles must alternate"),
        ("{% for %}", "[Ee]xpected"),
        ("{{ cycler.__init__.__globals__.os.system('true') }}", "unsafe|undefined|no attribute"),
    ],
)
def test_what_a_template_may_not_do_is_refused(source, reason):
    with pytest.raises(ValueError, match=rf"The chat template cannot be used: .*({reason})"):
        ChatTemplate(source).render(CHATS)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has no bound of the system's")
@pytest.mark.parametrize(
    "source", ["{{ 'a' | center(4000000000) }}", "{{ 'a'.ljust(4000000000) }}"]
)
def test_memory_is_bounded(source):
    with pytest.raises(ValueError, match="cannot be used: .*memory"):
        ChatTemplate(source).render(CHATS)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP is not known there")
def test_a_process_that_takes_no_time_of_a_processor_is_ended_by_the_clock(monkeypatch):
    wait = bounded_process.WAITS["strangers' programs"]._replace(seconds=-2.8)
    monkeypatch.setitem(bounded_process.WAITS, "strangers' programs", wait)
    start = subprocess.Popen

    def stopped(*given, **named):
        process = start(*given, **named)
        os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr(subprocess, "Popen", stopped)
    with pytest.raises(ValueError, match="takes more than 3 seconds"):
        ChatTemplate("a").render(CHATS)


@pytest.mark.slow
def test_time_is_bounded(monkeypatch):
    monkeypatch.setattr(chat_template, "MAX_SECONDS", 1)
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    begun = time.monotonic()
    with pytest.raises(ValueError, match="takes more than 1 seconds"):
        ChatTemplate(endless).render(CHATS)
    assert time.monotonic() - begun < 30  # it was ended, rather than waited for
