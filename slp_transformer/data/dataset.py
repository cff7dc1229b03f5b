"""Data ready to train on, of whatever kind. Nothing here needs PyTorch."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """Data ready to train on.

    Attributes:
        tokenizer: what the tokens mean.
        train: tokens, or pairs of them, to train on.
        val: the same, held out; None if nothing is.
        warnings: what could not be read, or was left out, a sentence each.
        val_names: the held-out documents, if the data was just split.
        val_texts: for pairs, the held-out sentences as they were written.
    """

    tokenizer: Any
    train: Any
    val: Any
    warnings: list[str] = field(default_factory=list)
    val_names: list[str] = field(default_factory=list)
    val_texts: list[tuple[str, str]] = field(default_factory=list)
