"""What a model of translation makes of held-out sentences, shown while it trains."""

from collections.abc import Callable

from slp_transformer._internal.progress_bar import beside_bars
from slp_transformer.data.batches import all_over
from slp_transformer.data.translation_metrics import judge
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.translation import Translator
from slp_transformer.tasks.datasets import Data
from slp_transformer.training.trainer_state import EvalRecord

SHOWN = 3  # sentences
JUDGED = 128  # sentences that BLEU is counted over while a model trains


def translations_of(model: EncoderDecoder, data: Data) -> Callable[[EvalRecord], None]:
    """What to call with each measurement: shows sentences, their references and translations.

    Each next word is the most probable one. BLEU and chrF are those of a fixed part of what is held
    out, from all over it; where sacrebleu is not installed they are left out, which is said once.
    """
    texts = [data.texts[i] for i in all_over(len(data.texts), min(JUDGED, len(data.texts)))]
    sources, references = zip(*texts, strict=True)
    translator = Translator(model, data.tokenizer)
    window = model.config.context_length
    fits = [i for i, s in enumerate(sources) if len(data.tokenizer.encode_source(s)) <= window]
    if not fits:  # all of them are cut
        return lambda record: None
    sources, references = [sources[i] for i in fits], [references[i] for i in fits]
    longest = max(len(data.tokenizer.encode_target(text)) for text in references)
    most = min(2 * longest + 2, window - 1)  # of which a model that knows nothing makes use

    def tell(record: EvalRecord) -> None:
        written = translator.best(sources, max_new_tokens=most)
        lines = []
        for each in list(zip(sources, references, written, strict=True))[:SHOWN]:
            lines += [f"  {name:<11}{text}" for name, text in zip(NAMES, each, strict=True)]
            lines.append("")
        try:
            scores = judge(written, references).in_words()
            told = "; ".join(f"{name} {score}" for name, score in scores.items())
            lines[-1] = f"  {told}, of {len(written)} sentences"
        except ImportError as error:
            lines[-1] = f"  {error}"
        beside_bars("\n".join([f"Translations after step {record.step}:", *lines]))

    return tell


NAMES = ("source", "reference", "prediction")
