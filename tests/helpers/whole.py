"""Messages are compared as a whole: each word of a refusal is meant for somebody to read."""

import re


def whole(message: str) -> str:
    """Return the pattern of just this message, in which "…" stands for a path, say."""
    return r"(?s)\A" + ".*".join(map(re.escape, message.split("…"))) + r"\Z"
