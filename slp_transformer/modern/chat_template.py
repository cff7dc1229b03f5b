"""Chat templates of published models: from messages to the text that a model was trained on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.extras import import_extra

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"
MAX_SECONDS = 3  # of a processor, for all conversations together
MAX_WAIT_SECONDS = 30  # by the clock, where a system has no such limit, or much else to do
RENDER = "from slp_transformer._internal.template_sandbox import main; main()"


@dataclass(frozen=True)
class ChatTemplate:
    """A published model's chat template, in Jinja.

    Attributes:
        source: the template.
        special_tokens: those that it may name, such as "bos_token".
    """

    source: str
    special_tokens: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_files(cls, files: Mapping[str, str]) -> "ChatTemplate | None":
        """Return the template of a model; None if it has none.

        Args:
            files: the content of the files beside its tokenizer.json, by name.

        Raises:
            ValueError: if one cannot be read.
        """
        try:
            config = json.loads(files.get(CONFIG_FILE) or "{}")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{CONFIG_FILE} cannot be read: {error}.") from None
        config = config if isinstance(config, dict) else {}
        source = files.get(TEMPLATE_FILE) or config.get("chat_template")
        if isinstance(source, list):  # several by name, of which one is for plain chats
            named = {
                one.get("name"): one.get("template") for one in source if isinstance(one, dict)
            }
            source = named.get("default")
        if not isinstance(source, str):
            return None
        tokens = {}
        for name, token in config.items():
            token = token.get("content") if isinstance(token, dict) else token
            if name.endswith("_token") and isinstance(token, str):
                tokens[name] = token
        return cls(source, tokens)

    def render(
        self, chats: Sequence[Sequence[Mapping[str, Any]]], add_generation_prompt: bool = True
    ) -> list[str]:
        """Return conversations as text.

        The template runs in Jinja's immutable sandbox, in a process of its own, with bounds on its
        time and memory: whoever publishes a model writes a program with it.

        Args:
            chats: conversations: messages, each with a "role" and a "content".
            add_generation_prompt: end where the assistant is to answer.

        Raises:
            ValueError: if the template refuses them, or takes too long or too much.
            ImportError: if Jinja is not installed.
        """
        import_extra("jinja2", "Chat templates")
        values = {"add_generation_prompt": add_generation_prompt, "tools": None, "documents": None}
        asked = {
            "template": self.source,
            "chats": [list(map(dict, chat)) for chat in chats],
            "values": values | dict(self.special_tokens),
            "seconds": MAX_SECONDS,
        }
        # Where this package was found, the other process finds it too.
        found = os.pathsep.join(map(os.path.abspath, sys.path))
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", RENDER],
                input=json.dumps(asked).encode(),
                capture_output=True,
                timeout=MAX_WAIT_SECONDS,
                env={**os.environ, "PYTHONPATH": found},
            )
            if -done.returncode == getattr(signal, "SIGXCPU", None):
                raise TimeoutError
            answer = json.loads(done.stdout)
        except (TimeoutError, subprocess.TimeoutExpired):
            answer = {"error": f"it takes more than {MAX_SECONDS} seconds"}
        except ValueError:  # it ended without an answer, as where memory was refused to Python
            answer = {"error": "it needs more memory or more depth than a template may take"}
        if "error" in answer:
            raise ValueError(
                f"The chat template cannot be used: {answer['error'].rstrip('.')}.{see('chats')}"
            )
        return list(answer["texts"])
