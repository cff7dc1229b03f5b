"""The task of translating: pairs of sentences, and an encoder-decoder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from slp_transformer._internal.config_checks import NUM_BEAMS, OPEN_SHARE, SIZE
from slp_transformer._internal.settings import setting, settings
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_tokenizer import TokenType
from slp_transformer.tasks.base import TOKENS, EvaluateOptions, LoadedRun, Report, SavedRun, Task
from slp_transformer.tasks.data_settings import DataSettings, NoFlags, Positional
from slp_transformer.tasks.run_config import RunConfig

if TYPE_CHECKING:
    from slp_transformer.config import TransformerConfig

NUM_SHOWN = 3  # translations shown after each evaluation
NUM_SCORED = 128  # sentences whose BLEU is measured while a model trains


@settings
@dataclass(frozen=True)
class PairData(DataSettings):
    """The pairs of sentences to train on.

    Attributes:
        source: a table (.csv, .tsv) or a file with a sentence in each line; numbers and dates in
            English and Spanish if None.
        target: the file whose lines translate those of the source.
        source_language: what is translated from: a column of the table, or any name.
        target_language: what is translated into.
        val_split: the share of the pairs that is held out for validation, always the same.
        val_data: other pairs to validate on, in place of a share of the first.
        val_target: the file whose lines translate those of val_data.
        overlong: what to do with pairs that are longer than the model's window: "drop" or
            "truncate" them.
        shared_vocabulary: whether both languages share one vocabulary, and one matrix E.
        tokenizer: what a token is: "characters", "words", or "bpe" for pieces of words.
        vocab_size: the maximum number of words or pieces; None for no limit.
    """

    task: ClassVar[str] = "pairs"
    paths: ClassVar[tuple[str, ...]] = ("source", "target", "val_data", "val_target")

    source: Positional[str | None] = setting(None, no_example="a file")
    target: str | None = setting(None, no_example="a file")
    source_language: str | None = setting(None, example="Spanish")
    target_language: str | None = setting(None, example="Spanish")
    val_split: float = setting(0.1, OPEN_SHARE, example=0.3)
    val_data: str | None = setting(None, no_example="a file")
    val_target: str | None = setting(None, no_example="a file")
    overlong: Literal["drop", "truncate"] = setting("drop", example="truncate")
    shared_vocabulary: bool = setting(True, example=False)
    tokenizer: TokenType = setting("bpe", example="words")
    vocab_size: int | None = setting(None, SIZE, example=320)


@settings
@dataclass(frozen=True)
class EvaluatePairs:
    """Translation.

    Attributes:
        target: the file whose lines translate those of SOURCE.
        num_beams: the beam width.
    """

    target: str | None = setting(None, no_example="a file")
    num_beams: int = setting(4, NUM_BEAMS, example=1)


class TranslationTask(Task[PairData, NoFlags, EvaluatePairs]):
    """Encoder-decoders that translate."""

    name = "pairs"
    Data, EvaluateFlags = PairData, EvaluatePairs
    model_kind = "EncoderDecoder"
    unit = "pairs"

    def check(self, config: RunConfig[PairData]) -> None:
        """Refuse what only language models have.

        Raises:
            ValueError: naming what is wrong.
        """
        if config.train.sequence_length is not None:
            raise ValueError("sequence_length has no effect here: pairs are not cut into windows.")
        if config.lora_rank is not None:
            raise ValueError("lora_rank is for language models, not for translation.")
        if parts := config.model.modern_parts():
            raise ValueError(f"Only language models have {' and '.join(parts)}, not translators.")

    def prepare(self, config: RunConfig[PairData], folder: Path) -> Dataset:
        """Read pairs, hold some out, and turn them into tokens.

        Raises:
            ValueError: if they cannot be read, or too few fit the window.
        """
        from slp_transformer.data import prepare_pair_corpus, read_pairs

        data = config.data
        named = data.source_language, data.target_language
        pairs, languages = read_pairs(data.source, data.target, named)
        held_out: Any = data.val_split
        if (data.val_data, data.val_target) != (None, None):
            held_out, _ = read_pairs(data.val_data, data.val_target, languages)
        return prepare_pair_corpus(
            pairs,
            languages,
            config.model.context_length,
            val_split=held_out,
            token_type=data.tokenizer,
            vocab_size=data.vocab_size,
            shared_vocabulary=data.shared_vocabulary,
            overlong=data.overlong,
            tokenizer=self.initial_tokenizer(config),
            output_dir=folder,
        )

    def open(self, config: RunConfig[PairData], folder: Path) -> Dataset:
        """Open the tokens of a run."""
        from slp_transformer.data.pair_corpus import load_pair_corpus

        return load_pair_corpus(folder)

    def build_model(self, config: "TransformerConfig") -> Any:
        """Build the encoder-decoder."""
        from slp_transformer.encoder_decoder import EncoderDecoder

        return EncoderDecoder(config)

    def sources(self, config: RunConfig[PairData], data: Dataset) -> tuple[Any, Any]:
        """Return batches of pairs, of similar length if they are filled to a number of tokens.

        Raises:
            ValueError: if the longest pair does not fit into a batch.
        """
        from slp_transformer.data.pair_batches import LengthBucketedPairSource, PaddedPairSource

        special = special_ids(data.tokenizer)
        if config.train.batch_tokens is None:
            return PaddedPairSource(data.train, **special), PaddedPairSource(data.val, **special)
        tokens = config.train.batch_tokens * config.train.gradient_accumulation_steps
        train, val = (
            LengthBucketedPairSource(p, max_tokens=tokens, **special)
            for p in (data.train, data.val)
        )
        return train, val

    def on_eval(self, model: Any, data: Dataset) -> Callable[[Any], None] | None:
        """Return what shows translations of held-out sentences after each evaluation.

        Each next word is the most probable one. BLEU and chrF are those of a fixed sample of the
        held-out pairs; where sacrebleu is not installed they are left out, with a remark.
        """
        from slp_transformer._internal.progress_bar import write_above_progress_bars
        from slp_transformer.data.batches import evenly_spaced_indices
        from slp_transformer.generation.translation import Translator
        from slp_transformer.tasks.evaluation import score_translations

        window, encode = model.config.context_length, data.tokenizer.encode_source
        count = len(data.val_texts)
        some = [data.val_texts[i] for i in evenly_spaced_indices(count, min(NUM_SCORED, count))]
        texts = [pair for pair in some if len(encode(pair[0])) <= window]
        if not texts:
            return None
        sources, references = map(list, zip(*texts, strict=True))
        translator = Translator(model, data.tokenizer)
        longest = max(len(data.tokenizer.encode_target(text)) for text in references)
        max_new_tokens = min(2 * longest + 2, window - 1)

        def show(record: Any) -> None:
            predictions = translator.best_translations(sources, max_new_tokens=max_new_tokens)
            lines = [f"Translations after step {record.step}:"]
            for row in list(zip(sources, references, predictions, strict=True))[:NUM_SHOWN]:
                for name, text in zip(("source", "reference", "prediction"), row, strict=True):
                    lines.append(f"  {name:<11}{text}")
                lines.append("")
            _, scores = score_translations(predictions, references)
            text = "; ".join(f"{name} {score}" for name, score in scores.items())
            lines[-1] = f"  {text}, of {len(predictions)} sentences"
            write_above_progress_bars("\n".join(lines))

        return show

    def next_command(self, folder: Path) -> list[str | Path]:
        """Return a command that translates a held-out sentence."""
        from slp_transformer.data.pair_corpus import load_pair_corpus

        return ["translate", folder, load_pair_corpus(folder / TOKENS).val_texts[0][0]]

    def load_tokenizer(self, content: Any) -> Any:
        """Return the tokenizer that a checkpoint holds as JSON."""
        from slp_transformer.data import PairTokenizer

        return PairTokenizer.from_json(content)

    def tokenizer_info(self, tokenizer: Any) -> dict[str, Any]:
        """Return the languages, and how many tokens there are."""
        languages = dict(zip(("from", "into"), tokenizer.languages, strict=True))
        own = tokenizer.source_vocab_size
        source = {} if own is None else {"source_tokens": own}
        return languages | {"tokens": tokenizer.vocab_size} | source

    def check_generate(self, run: SavedRun, output: Path | None, flags: NoFlags) -> None:
        """Refuse to generate text with a translator.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"{run.folder} holds no language model: it translates (`slp-transformer translate`)."
        )

    def check_evaluate(self, options: EvaluateOptions[EvaluatePairs]) -> None:
        """Refuse options that are for language models.

        Raises:
            ValueError: naming the first one.
        """
        options.refuse_sampling_flags("a translation ends by itself, and draws nothing")

    def evaluate(self, run: LoadedRun, options: EvaluateOptions[EvaluatePairs]) -> Report:
        """Measure loss, BLEU and chrF of translations of held-out pairs, or of others.

        Raises:
            ValueError: if there are none, or none fits the window.
        """
        from slp_transformer.data.pair_corpus import encode_pairs, read_pairs
        from slp_transformer.tasks import evaluation

        translator = make_translator(run)
        target, beams = options.flags.target, options.flags.num_beams
        if options.source is None and target is None:
            pairs = evaluation.open_run_data(run).val_texts
        else:  # of two files nobody needs to say which languages they are
            languages = run.tokenizer.languages if target is None else (None, None)
            pairs, _ = read_pairs(options.source, target, languages)
        window = run.model.config.context_length
        ids, pairs, warnings = encode_pairs(pairs, run.tokenizer, window, "drop")
        if not pairs:
            raise ValueError(f"No pair fits the model's window of {window} tokens.")
        values = evaluation.means_with_perplexity(
            evaluation.compute_pair_metrics(run, ids, special_ids(run.tokenizer)), run
        )
        predictions = evaluation.translate_all(translator, [source for source, _ in pairs], beams)
        references = [reference for _, reference in pairs]
        exact = sum(a == " ".join(b.split()) for a, b in zip(predictions, references, strict=True))
        scores, score_rows = evaluation.score_translations(predictions, references)
        rows = evaluation.format_rows(values) | {
            "pairs": f"{len(pairs):,}, translated with {beams} beams",
            "exact": f"{exact / len(pairs):.1%} equal their reference word by word",
        }
        values |= {"pairs": len(pairs), "exact": exact / len(pairs), "num_beams": beams} | scores
        samples = [
            {"source": source, "reference": reference, "prediction": prediction}
            for (source, reference), prediction in zip(pairs, predictions, strict=True)
        ][: options.samples or 0]
        if samples:
            values["samples"] = samples
        head = f"Of the pairs, {warnings}.\n" if warnings else ""
        tables = map(evaluation.format_table, [rows | score_rows, *samples])
        return Report(values, head + "\n\n".join(tables))


def special_ids(tokenizer: Any) -> dict[str, int]:
    """Return the ids that batches of pairs are padded, begun and ended with."""
    return {name: getattr(tokenizer, name) for name in ("pad_id", "begin_id", "end_id")}


def make_translator(run: LoadedRun) -> Any:
    """Return what translates with a run.

    Raises:
        ValueError: if the run does not translate, or its parts do not fit together.
    """
    from slp_transformer.generation.translation import Translator

    if not isinstance(run.task, TranslationTask):
        raise ValueError(
            f"{run.folder} does not translate: it holds a language model (`slp-transformer "
            "generate`)."
        )
    try:
        return Translator(run.model, run.tokenizer)
    except ValueError as error:
        raise ValueError(f"{run.folder} is damaged: {error}") from None
