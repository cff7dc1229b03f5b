"""BLEU and chrF of translations, computed by sacrebleu.

Scores can be compared only where their signatures, the settings of the metrics, are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slp_transformer._internal.atomic_write import require_extra


@dataclass(frozen=True)
class TranslationMetrics:
    """Scores of a corpus of translations.

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
    library, told = require_extra("sacrebleu.metrics", "BLEU and chrF", "translation"), []
    for metric in (library.BLEU(), library.CHRF()):
        score = metric.corpus_score(list(translations), [list(references)]).score
        told.append((score, str(metric.get_signature())))
    (bleu, its_signature), (chrf, other_signature) = told
    return TranslationMetrics(bleu, chrf, its_signature, other_signature)
