"""Kinds of tokens and of tokenizer files; nothing here needs PyTorch."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

TokenType = Literal["characters", "words", "bpe"]
PAIR_TOKENIZER_FORMAT = "slp-transformer pair tokenizer 1"


def check_token_type(token_type: str) -> None:
    """Refuse a kind that there is not.

    Raises:
        ValueError: naming those there are.
    """
    if token_type not in get_args(TokenType):
        raise ValueError(
            f"kind must be one of {', '.join(get_args(TokenType))}, not {token_type!r}."
        )


def is_pair_tokenizer(content: Any) -> bool:
    """Return whether JSON content is what `PairTokenizer.to_json` returned."""
    return isinstance(content, Mapping) and content.get("format") == PAIR_TOKENIZER_FORMAT
