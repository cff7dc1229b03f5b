"""Translation: pairs of sentences that say the same in two languages, and what is made from them.

`read_pairs` reads them, `prepare_pairs` makes tokens of them, `Translator` translates with a model
that has learned from them. A small corpus of numbers and dates, in English and Spanish, comes with
the package.
"""

from typing import TYPE_CHECKING

from slp_transformer.offers import offered

if TYPE_CHECKING:
    from slp_transformer.translation.judging import judge
    from slp_transformer.translation.numbers import (
        english_date,
        english_number,
        number_pairs,
        spanish_date,
        spanish_number,
    )
    from slp_transformer.translation.pictures import attention_pictures
    from slp_transformer.translation.preparing import (
        EncodedPairs,
        PairCorpus,
        load_pairs,
        prepare_pairs,
        reopen_pairs,
    )
    from slp_transformer.translation.reading import read_pairs
    from slp_transformer.translation.tokenizer import PairTokenizer, train_pair_tokenizer
    from slp_transformer.translation.translating import Translation, Translator

__all__ = [
    "EncodedPairs",
    "PairCorpus",
    "PairTokenizer",
    "Translation",
    "Translator",
    "attention_pictures",
    "english_date",
    "english_number",
    "judge",
    "load_pairs",
    "number_pairs",
    "prepare_pairs",
    "read_pairs",
    "reopen_pairs",
    "spanish_date",
    "spanish_number",
    "train_pair_tokenizer",
]

__getattr__, __dir__ = offered(__name__)
