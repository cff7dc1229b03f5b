"""Text as token ids and back: tokenizers, and how their vocabularies are learned.

Every world that reads text shares them. It knows nothing of models.
"""

from typing import TYPE_CHECKING

from slp_transformer.offers import offered

if TYPE_CHECKING:
    from slp_transformer.tokens.tokenizer import SENTENCE, TextStream, TextTokenizer
    from slp_transformer.tokens.vocabulary import train_tokenizer

__all__ = ["SENTENCE", "TextStream", "TextTokenizer", "train_tokenizer"]

__getattr__, __dir__ = offered(__name__)
