"""Data that models are trained on: corpora, sentence pairs, tokenizers, and batches made from them.

`prepare` leads from a file, a folder, standard input or a named corpus to token ids; `read_pairs`
and `prepare_pair_corpus` do the same for pairs of sentences. Named corpora are downloaded to the
folder that the environment variable `SLP_TRANSFORMER_DATA` names, or else where the system keeps
such files. With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.data.batches import Batch, DataSource, PaddedPairs
    from slp_transformer.data.bundled_pairs import (
        date_to_english,
        date_to_spanish,
        make_number_pairs,
        number_to_english,
        number_to_spanish,
    )
    from slp_transformer.data.corpora import CORPORA, fetch_corpus, list_corpora, load_moby_dick
    from slp_transformer.data.pair_corpus import (
        EncodedPairs,
        PairCorpus,
        load_pair_corpus,
        prepare_pair_corpus,
        read_pairs,
        read_pairs_or_bundled,
    )
    from slp_transformer.data.pair_tokenizer import PairTokenizer, train_pair_tokenizer
    from slp_transformer.data.text_corpus import TokenCorpus, load_corpus, prepare_corpus
    from slp_transformer.data.text_files import find_text_files, read_documents, read_pieces
    from slp_transformer.data.text_tokenizer import (
        SENTENCE_TOKENS,
        StreamDecoder,
        TextTokenizer,
        train_tokenizer,
    )

__all__ = [
    "CORPORA",
    "SENTENCE_TOKENS",
    "Batch",
    "DataSource",
    "EncodedPairs",
    "PaddedPairs",
    "PairCorpus",
    "PairTokenizer",
    "StreamDecoder",
    "TextTokenizer",
    "TokenCorpus",
    "list_corpora",
    "date_to_english",
    "number_to_english",
    "fetch_corpus",
    "find_text_files",
    "read_pairs_or_bundled",
    "load_moby_dick",
    "make_number_pairs",
    "prepare_corpus",
    "prepare_pair_corpus",
    "read_documents",
    "read_pairs",
    "read_pieces",
    "load_corpus",
    "load_pair_corpus",
    "date_to_spanish",
    "number_to_spanish",
    "train_pair_tokenizer",
    "train_tokenizer",
]

__getattr__, __dir__ = attach(__name__)
