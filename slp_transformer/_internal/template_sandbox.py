"""Renders a chat template that others wrote, in a process of its own.

A template is a program: Jinja's sandbox keeps it from Python's insides, but not from `'a' * 10**9`
or a loop without end, so its process has bounds of memory and time.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

MAX_TEXT = 2**24  # characters that an operator may make, or a template render


def make_environment() -> Any:
    """Return the environment that Hugging Face's templates are written for."""
    from jinja2 import nodes
    from jinja2.exceptions import SecurityError, TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """{% generation %}: marks what an assistant said, for training; here it says nothing."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    class Environment(ImmutableSandboxedEnvironment):
        """Refuses to make long strings and large numbers by an operator, and unknown ones."""

        intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            known = operator in ("+", "-", "*", "/", "//", "%")
            if not known or (operator == "%" and isinstance(left, str)):
                raise SecurityError(f"the operator {operator} is not for templates")
            for some, times in ((left, right), (right, left)):
                if operator == "*" and hasattr(some, "__len__") and len(some) * times > MAX_TEXT:
                    raise SecurityError(f"more than {MAX_TEXT:,} characters at once")
            return super().call_binop(context, operator, left, right)

    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, indent: int | None = None, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent, **options)

    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def render(template: str, chats: Sequence[Any], values: dict[str, Any]) -> list[str]:
    """Return a template's text for each conversation.

    Raises:
        Exception: whatever a template does wrong.
    """
    program, texts, length = make_environment().from_string(template), [], 0
    for messages in chats:
        pieces = []
        for piece in program.generate(messages=messages, **values):
            pieces.append(piece)
            length += len(piece)
            if length > MAX_TEXT:
                raise ValueError(f"it makes more than {MAX_TEXT:,} characters")
        texts.append("".join(pieces))
    return texts
