"""Chat templates of published models: from messages to the text that a model was trained on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slp_transformer._internal.bounded_process import BoundedProcess, TookTooMuch
from slp_transformer._internal.bounds import WAITS
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.extras import import_extra

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"
MAX_SECONDS = 3  # of a processor, for all conversations together
MAX_MEMORY_BYTES = 2**29  # of address space


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
        }
        process = BoundedProcess()
        try:
            content = json.dumps(asked).encode()
            _, texts = process.exchange("render", content, {}, MAX_SECONDS, MAX_MEMORY_BYTES)
        except ValueError as error:
            reason = str(error)
            if isinstance(error, TookTooMuch):
                reason = WAITS["strangers' programs"].says.format(MAX_SECONDS)
                if error.of_memory:  # as where it was refused to Python
                    reason = "it needs more memory or more depth than a template may take"
            raise ValueError(
                f"The chat template cannot be used: {reason.rstrip('.')}.{see('chats')}"
            ) from None
        finally:
            process.end()
        return list(json.loads(texts))
