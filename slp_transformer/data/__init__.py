"""Data that models are trained on: corpora, sentence pairs, tokenizers, and batches made from them.

`prepare` leads from a file, a folder, standard input or a named corpus to token ids; `read_pairs`
and `prepare_pair_corpus` do the same for pairs of sentences. Named corpora are downloaded to the
folder that the environment variable `SLP_TRANSFORMER_DATA` names, or else where the system keeps
such files. With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.data.batches import Batch, DataSource
    from slp_transformer.data.bundled_pairs import make_number_pairs
    from slp_transformer.data.pair_batches import PaddedPairSource
    from slp_transformer.data.pair_corpus import prepare_pair_corpus, read_pairs
    from slp_transformer.data.pair_tokenizer import PairTokenizer, train_pair_tokenizer
    from slp_transformer.data.text_corpus import load_corpus, prepare_corpus
    from slp_transformer.data.text_files import (
        CORPORA,
        fetch_corpus,
        iter_documents,
        list_corpora,
        load_moby_dick,
        resolve_text_source,
    )
    from slp_transformer.data.text_tokenizer import TextTokenizer, train_tokenizer

__all__ = [
    "CORPORA",
    "Batch",
    "DataSource",
    "PaddedPairSource",
    "PairTokenizer",
    "TextTokenizer",
    "list_corpora",
    "fetch_corpus",
    "resolve_text_source",
    "load_moby_dick",
    "make_number_pairs",
    "prepare_corpus",
    "prepare_pair_corpus",
    "iter_documents",
    "read_pairs",
    "load_corpus",
    "train_pair_tokenizer",
    "train_tokenizer",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
