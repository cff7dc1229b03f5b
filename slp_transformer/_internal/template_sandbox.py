"""Renders a chat template that others wrote, in a process of its own.

`python -c "...; main()"` reads a template and its values as JSON from standard input, and writes
what it renders, or why it cannot, as JSON. A template is a program: Jinja's sandbox keeps it from
Python's insides, but not from `'a' * 10**9` or a loop without end, so memory and time are bounded.
"""

import contextlib
import json
import math
import sys
from datetime import datetime
from typing import Any

MAX_MEMORY_BYTES = 2**29  # of address space, Python's own included
MAX_TEXT = 2**24  # characters that an operator may make, or a template render


def limit_resources(seconds: float) -> None:
    """Bound what this process may take from here on, where the system can.

    Linux has both limits. macOS may refuse that of memory, below its own use. Windows has none:
    there are the bound on operators below, and the clock of whoever waits.

    Args:
        seconds: of processor time.
    """
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(used.ru_utime + used.ru_stime + seconds)
    limits = {
        resource.RLIMIT_CPU: (until, until + 1),  # the signal comes at the first, and says why
        resource.RLIMIT_AS: (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES),
    }
    for kind, limit in limits.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, limit)


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
        """Refuses to make long strings and large numbers by an operator."""

        intercepted_binops = frozenset(["*", "**", "%", "<<"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "**" or (operator == "%" and isinstance(left, str)):
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


def main() -> None:
    """Render the template of standard input for each of its conversations."""
    asked = json.loads(sys.stdin.buffer.read())
    environment = make_environment()
    limit_resources(asked["seconds"])
    try:
        template, texts, length = environment.from_string(asked["template"]), [], 0
        for messages in asked["chats"]:
            pieces = []
            for piece in template.generate(messages=messages, **asked["values"]):
                pieces.append(piece)
                length += len(piece)
                if length > MAX_TEXT:
                    raise ValueError(f"it makes more than {MAX_TEXT:,} characters")
            texts.append("".join(pieces))
        answer: dict[str, Any] = {"texts": texts}
    except MemoryError:
        answer = {"error": "it needs more memory than a template may take"}
    except Exception as error:  # whatever a template does wrong
        answer = {"error": str(error) or type(error).__name__}
    sys.stdout.buffer.write(json.dumps(answer).encode())
