"""What tells a tokenizer of pairs from others; nothing here needs PyTorch."""

from collections.abc import Mapping
from typing import Any

FORMAT = "slp-transformer pair tokenizer 1"


def is_pair_tokenizer(content: Any) -> bool:
    """Whether JSON is what `PairTokenizer.to_json` wrote."""
    return isinstance(content, Mapping) and content.get("format") == FORMAT
