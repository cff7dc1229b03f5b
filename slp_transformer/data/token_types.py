"""Kinds of tokens and of tokenizer files; nothing here needs PyTorch."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

Kind = Literal["characters", "words", "bpe"]
PAIR_TOKENIZER_FORMAT = "slp-transformer pair tokenizer 1"


def check_kind(kind: str) -> None:
    """Refuse a kind that there is not.

    Raises:
        ValueError: naming those there are.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}.")


def is_pair_tokenizer(content: Any) -> bool:
    """Return whether JSON content is what `PairTokenizer.to_json` returned."""
    return isinstance(content, Mapping) and content.get("format") == PAIR_TOKENIZER_FORMAT
