"""What a token of text can be; nothing here needs PyTorch."""

from typing import Literal, get_args

Kind = Literal["characters", "words", "bpe"]


def check_kind(kind: str) -> None:
    """Refuse a kind that there is not.

    Raises:
        ValueError: naming those there are.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}.")
