"""Data that models are trained on: corpora, sentence pairs, tokenizers, and batches made from them.

`prepare` leads from a file, a folder, standard input or a named corpus to token ids; `read_pairs`
and `prepare_pairs` do the same for pairs of sentences. Named corpora are downloaded to the folder
that the environment variable `SLP_TRANSFORMER_DATA` names, or else where the system keeps such
files. With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.data.bundled_pairs import (
        english_date,
        english_number,
        number_pairs,
        spanish_date,
        spanish_number,
    )
    from slp_transformer.data.corpora import CORPORA, corpus_names, fetch, moby_dick
    from slp_transformer.data.pair_corpus import (
        EncodedPairs,
        PairCorpus,
        load_pairs,
        prepare_pairs,
        reopen_pairs,
    )
    from slp_transformer.data.pair_files import read_pairs
    from slp_transformer.data.pair_tokenizer import PairTokenizer, train_pair_tokenizer
    from slp_transformer.data.text_corpus import TokenCorpus, prepare, reopen
    from slp_transformer.data.text_files import find_texts, read_documents, read_pieces
    from slp_transformer.data.text_tokenizer import SENTENCE, TextStream, TextTokenizer
    from slp_transformer.data.vocabulary import train_tokenizer

__all__ = [
    "CORPORA",
    "SENTENCE",
    "EncodedPairs",
    "PairCorpus",
    "PairTokenizer",
    "TextStream",
    "TextTokenizer",
    "TokenCorpus",
    "corpus_names",
    "english_date",
    "english_number",
    "fetch",
    "find_texts",
    "load_pairs",
    "moby_dick",
    "number_pairs",
    "prepare",
    "prepare_pairs",
    "read_documents",
    "read_pairs",
    "read_pieces",
    "reopen",
    "reopen_pairs",
    "spanish_date",
    "spanish_number",
    "train_pair_tokenizer",
    "train_tokenizer",
]

__getattr__, __dir__ = attach(__name__)
