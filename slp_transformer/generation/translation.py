"""Translating with a trained encoder-decoder, and BLEU and chrF of the translations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slp_transformer._internal.extras import import_extra
from slp_transformer.data.pair_tokenizer import PairTokenizer
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.decoding import generate

TRANSLATE_BATCH_SIZE = 32  # sentences that are translated at once
SENTENCES_PER_SUM = 1024  # that are scored at once


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: the sentence, in one line.
        score: its log probability a token, or as the length penalty has it; 0 for an empty line.
        finished: whether the model ended it, rather than its window.
        ids: its tokens, [EOS] included if the model ended it.
    """

    text: str
    score: float
    finished: bool
    ids: tuple[int, ...] = ()


class Translator:
    """A model and the tokenizer of its two languages."""

    def __init__(self, model: EncoderDecoder, tokenizer: PairTokenizer):
        """Translate with a model.

        Raises:
            ValueError: if the tokenizer is not the model's.
        """
        config = model.config
        sizes = config.source_vocab_size or config.vocab_size, config.vocab_size
        own = tokenizer.source.vocab_size, tokenizer.target.vocab_size
        if sizes != own:
            raise ValueError(
                f"The model knows {sizes[0]} and {sizes[1]} tokens, the tokenizer {own[0]} and "
                f"{own[1]}: they do not belong together."
            )
        self.model: EncoderDecoder = model
        self.tokenizer: PairTokenizer = tokenizer

    def encode_source(self, sentence: str, label: str = "The sentence") -> list[int]:
        """The ids that the encoder reads; just [EOS] for a sentence of nothing but spaces.

        Raises:
            ValueError: if it is longer than the model's window.
        """
        ids, window = self.tokenizer.encode_source(sentence), self.model.config.context_length
        if len(ids) > window:
            raise ValueError(
                f"{label} has {len(ids)} tokens, [EOS] included, and the model reads {window} at "
                "the most: split it."
            )
        return ids

    def __call__(
        self,
        sentences: Sequence[str],
        *,
        num_beams: int = 1,
        length_penalty: float = 1.0,
        max_new_tokens: int | None = None,
    ) -> list[list[Translation]]:
        """Translate sentences.

        Args:
            sentences: in the source language.
            num_beams: hypotheses of a beam search; with 1, each next word is the most probable one.
            length_penalty: α, as `generate` takes it.
            max_new_tokens: of a translation; None for as many as the window holds.

        Returns:
            Of each sentence up to `num_beams` translations, best first; of an empty one an empty
            one.

        Raises:
            ValueError: if a sentence is longer than the window, or an option out of its range.
        """
        rows = [
            self.encode_source(sentence, f"Sentence {n}") for n, sentence in enumerate(sentences, 1)
        ]
        found = [[Translation("", 0.0, True)] for _ in rows]
        decode = self.tokenizer.decode_target
        for places in iter_length_sorted_batches(rows):
            written = generate(
                self.model,
                [[self.tokenizer.begin_id]] * len(places),
                max_new_tokens,
                sources=[rows[i] for i in places],
                num_beams=num_beams,
                length_penalty=length_penalty,
                stop=self.tokenizer.end_id,
            )
            for i, best in zip(places, written, strict=True):
                found[i] = [
                    Translation(
                        decode(beam.new_ids),
                        beam.score or 0.0,
                        beam.finish_reason == "stop",
                        tuple(beam.new_ids),
                    )
                    for beam in (best, *best.other_beams)
                ]
        return found

    def best_translations(self, sentences: Sequence[str], **options: Any) -> list[str]:
        """The best translation of each sentence, for options as `__call__` takes them.

        Raises:
            ValueError: as `__call__`.
        """
        return [translations[0].text for translations in self(sentences, **options)]


def iter_length_sorted_batches(rows: Sequence[list[int]]) -> Iterator[list[int]]:
    """Places of rows that are read at once, alike in length; those of just [EOS] are left out."""
    order = sorted((i for i, row in enumerate(rows) if len(row) > 1), key=lambda i: len(rows[i]))
    for first in range(0, len(order), TRANSLATE_BATCH_SIZE):
        yield order[first : first + TRANSLATE_BATCH_SIZE]


@dataclass(frozen=True)
class TranslationMetrics:
    """Scores of a corpus of translations, computed by sacrebleu.

    Scores can be compared only where their signatures, the settings of the metrics, are the same.

    Attributes:
        bleu: BLEU, from 0 to 100 (Papineni et al. 2002).
        chrf: chrF2, from 0 to 100 (Popović 2015), the fairer one for languages without spaces.
        bleu_signature: settings of BLEU.
        chrf_signature: settings of chrF.
    """

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str

    def format_scores(self) -> dict[str, str]:
        """Return the scores with their signatures, for printing."""
        return {
            "BLEU": f"{self.bleu:.2f}  ({self.bleu_signature})",
            "chrF2": f"{self.chrf:.2f}  ({self.chrf_signature})",
        }


def compute_translation_metrics(
    translations: Sequence[str], references: Sequence[str]
) -> TranslationMetrics:
    """Compute BLEU and chrF of a corpus of translations, with sacrebleu's default settings.

    Raises:
        ValueError: if there is not one reference for each translation, or none at all.
        ImportError: if sacrebleu is not installed.
    """
    if len(translations) != len(references) or not references:
        raise ValueError(
            f"Each translation is judged by one reference, but there are {len(translations)} and "
            f"{len(references)}."
        )
    library = import_extra("sacrebleu.metrics", "BLEU and chrF", "translation")
    bleu, chrf = library.BLEU(), library.CHRF()
    return TranslationMetrics(
        _score_corpus(bleu, translations, references),
        _score_corpus(chrf, translations, references),
        str(bleu.get_signature()),
        str(chrf.get_signature()),
    )


def _score_corpus(metric: Any, translations: Sequence[str], references: Sequence[str]) -> float:
    """Return what sacrebleu's `corpus_score` does, in memory that does not grow with the corpus.

    Both metrics are functions of sums over sentences; `corpus_score` first keeps all their n-grams,
    about 10 KB a sentence.
    """
    sums: list[list[int]] = []
    for first in range(0, len(references), SENTENCES_PER_SUM):
        part = slice(first, first + SENTENCES_PER_SUM)
        rows = metric._extract_corpus_statistics(translations[part], [references[part]])
        sums = [[sum(column) for column in zip(*rows, *sums, strict=True)]]
        metric._force = True  # a remark on text that looks tokenized is made once
    return metric._aggregate_and_compute(sums).score
