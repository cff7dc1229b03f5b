"""Text that language models are trained on: corpora, tokenizers and streams of token ids.

`prepare` does it all, from a file, a folder, standard input or a named corpus to token ids; the
rest are its parts. Named corpora are downloaded to the folder that the environment variable
`SLP_TRANSFORMER_DATA` names, or else where the system keeps such files. With
`SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded.
"""

from typing import TYPE_CHECKING

from slp_transformer.offers import offered

if TYPE_CHECKING:
    from slp_transformer.text.corpora import CORPORA, corpus_names, fetch
    from slp_transformer.text.embedded import moby_dick
    from slp_transformer.text.preparing import TokenCorpus, prepare, reopen
    from slp_transformer.text.reading import find_texts, read_documents, read_pieces
    from slp_transformer.tokens.tokenizer import TextStream, TextTokenizer
    from slp_transformer.tokens.vocabulary import train_tokenizer

__all__ = [
    "CORPORA",
    "TextStream",
    "TextTokenizer",
    "TokenCorpus",
    "corpus_names",
    "fetch",
    "find_texts",
    "moby_dick",
    "prepare",
    "read_documents",
    "read_pieces",
    "reopen",
    "train_tokenizer",
]

__getattr__, __dir__ = offered(__name__)
