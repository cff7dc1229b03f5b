"""Translate sentences with a trained model: from the command line, a file, a pipe or a terminal."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slp_transformer._internal.config_checks import LENGTH_PENALTY, NUM_BEAMS
from slp_transformer._internal.settings import setting, settings
from slp_transformer.cli.console import open_lines, print_status
from slp_transformer.cli.run_options import RunOptions, check_trained
from slp_transformer.data.pair_tokenizer import ids_to_tokens
from slp_transformer.data.text_files import iter_stdin_lines
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.pairs import make_translator
from slp_transformer.tasks.saved_runs import load_run

if TYPE_CHECKING:
    from slp_transformer.generation.translation import Translation, Translator


@settings
@dataclass(frozen=True)
class TranslateOptions(RunOptions):
    """Translate sentences with a model trained on pairs.

    Examples:
      slp-transformer translate runs/en-de "A man rides a bicycle."
      slp-transformer translate runs/en-de --input captions.en --output captions.de
      cat captions.en | slp-transformer translate runs/en-de > captions.de
      slp-transformer translate runs/en-de "A man rides." --attention heads.html
      slp-transformer translate runs/en-de                     reads sentences, a line each

    Each line is a sentence, and an empty line is translated by an empty line.

    Attributes:
        sentences: what to translate.
        input: a file with a sentence in each line.
        output: a file to write to.
        num_beams: beam width; 1 takes the most probable token at each step.
        length_penalty: the power of its length that a log probability is divided by.
        n_best: translations of each sentence.
        scores: print each translation's log probability per token before it.
        json: print each sentence's translations as JSON.
        attention: draw the attention of every layer and head for one sentence, as .html or .svg.
    """

    sentences: Positional[tuple[str, ...]] = setting(
        (), no_example="without them, standard input is read"
    )
    input: Path | None = setting(None, no_example="a file")
    output: Path | None = setting(None, no_example="a file")
    num_beams: int = setting(4, NUM_BEAMS, example=1)
    length_penalty: float = setting(1.0, LENGTH_PENALTY, example=-9.0)
    n_best: int = setting(1, NUM_BEAMS, example=3)
    scores: bool = setting(False, example=True)
    json: bool = setting(False, no_example="the same translations, written otherwise")
    attention: Path | None = setting(None, no_example="a file")

    def check(self) -> None:
        """Refuse impossible values, and a folder without a trained model.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        check_trained(self.opened)
        if self.n_best > self.num_beams:
            raise ValueError(
                f"{self.num_beams} beams find at most as many translations, and not the "
                f"{self.n_best} of --n-best: give --num-beams {self.n_best}."
            )
        if self.attention is None:
            return
        if len(self.sentences) != 1 or self.input or not self.sentences[0].strip():
            raise ValueError("--attention draws one sentence: give it as the only SENTENCE.")
        if self.attention.suffix.lower() not in (".html", ".svg"):
            raise ValueError(
                f"Attention is drawn as .html or .svg, and {self.attention.name} is neither."
            )


def execute(options: TranslateOptions) -> None:
    """Translate sentences, line by line.

    Raises:
        ValueError: if there is no such run or file, or a sentence is too long.
    """
    from slp_transformer.data.pair_corpus import read_lines
    from slp_transformer.generation.translation import TRANSLATE_BATCH_SIZE

    lines = [] if options.input is None else read_lines(options.input)
    sentences = [*options.sentences, *lines]
    translator = make_translator(load_run(options.opened, options.device))
    for n, sentence in enumerate(sentences, 1):  # all, before the first is translated
        translator.encode_source(sentence, f"Line {n}")
    batches: Iterable[list[str]] = [
        sentences[first : first + TRANSLATE_BATCH_SIZE]
        for first in range(0, len(sentences), TRANSLATE_BATCH_SIZE)
    ]
    if not options.sentences and options.input is None:
        batches = iter_stdin_sentences(translator)
    found: list[list[Translation]] = []
    with open_lines(options.output) as write:
        for batch in batches:
            found = translator(
                batch, num_beams=options.num_beams, length_penalty=options.length_penalty
            )
            for sentence, translations in zip(batch, found, strict=True):
                write(format_translations(sentence, translations, options))
    if options.attention is not None:
        save_attention_figure(translator, sentences[0], found[0][0], options.attention)


def iter_stdin_sentences(translator: "Translator") -> Iterator[list[str]]:
    """Yield the lines of standard input as they come, each alone.

    Raises:
        ValueError: if one is not UTF-8, or too long.
    """
    if sys.stdin.isatty():
        source, target = translator.tokenizer.languages
        print_status(f"From {source} into {target}, a sentence in each line; Ctrl-C ends it.")
    for n, text in enumerate(iter_stdin_lines(), 1):
        translator.encode_source(text, f"Line {n}")
        yield [text]


def format_translations(
    sentence: str, found: "list[Translation]", options: TranslateOptions
) -> str:
    """Return the translations of a sentence: one a line, with scores if asked for."""
    best = found[: options.n_best]
    if options.json:
        rows = [{"text": each.text, "score": each.score, "whole": each.finished} for each in best]
        return to_json({"source": sentence, "translations": rows})
    lines = [f"{each.score:8.4f}\t{each.text}" if options.scores else each.text for each in best]
    return "\n".join(lines) + ("\n" if options.n_best > 1 else "")


def save_attention_figure(
    translator: "Translator", sentence: str, best: "Translation", path: Path
) -> None:
    """Draw where each layer and head looked while it translated a sentence."""
    from slp_transformer.plotting.attention_maps import translation_attention_figure

    tokenizer, source = translator.tokenizer, translator.encode_source(sentence)
    target = [tokenizer.begin_id, *best.ids]
    words = ids_to_tokens(tokenizer.source, source), ids_to_tokens(tokenizer.target, target)
    translation_attention_figure(translator.model, source, target, *words).save(path)
    print_status(f"Attention is drawn in {path}.")
