"""Text that language models are trained on: corpora, tokenizers and streams of token ids."""

from slp_transformer.text.embedded import moby_dick
from slp_transformer.text.tokenizer import TextStream, TextTokenizer, train_tokenizer

__all__ = [
    "TextStream",
    "TextTokenizer",
    "moby_dick",
    "train_tokenizer",
]
