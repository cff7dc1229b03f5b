"""Data that models are trained on: corpora, sentence pairs, tokenizers, and batches made from them.

`prepare` leads from a file, a folder, standard input or a named corpus to token ids; `read_pairs`
and `prepare_pair_corpus` do the same for pairs of sentences. Named corpora are downloaded to the
folder that the environment variable `SLP_TRANSFORMER_DATA` names, or else where the system keeps
such files. With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.data.batches import Batch as Batch
    from slp_transformer.data.batches import DataSource as DataSource
    from slp_transformer.data.bundled_pairs import make_number_pairs as make_number_pairs
    from slp_transformer.data.pair_batches import PaddedPairSource as PaddedPairSource
    from slp_transformer.data.pair_corpus import prepare_pair_corpus as prepare_pair_corpus
    from slp_transformer.data.pair_corpus import read_pairs as read_pairs
    from slp_transformer.data.pair_tokenizer import PairTokenizer as PairTokenizer
    from slp_transformer.data.pair_tokenizer import train_pair_tokenizer as train_pair_tokenizer
    from slp_transformer.data.text_corpus import load_corpus as load_corpus
    from slp_transformer.data.text_corpus import prepare_corpus as prepare_corpus
    from slp_transformer.data.text_files import CORPORA as CORPORA
    from slp_transformer.data.text_files import fetch_corpus as fetch_corpus
    from slp_transformer.data.text_files import iter_documents as iter_documents
    from slp_transformer.data.text_files import list_corpora as list_corpora
    from slp_transformer.data.text_files import load_moby_dick as load_moby_dick
    from slp_transformer.data.text_files import resolve_text_source as resolve_text_source
    from slp_transformer.data.text_tokenizer import TextTokenizer as TextTokenizer
    from slp_transformer.data.text_tokenizer import train_tokenizer as train_tokenizer

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
