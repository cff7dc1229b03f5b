"""Translate sentences with a trained model: from the command line, a file, a pipe or a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.cli.console import print_status, print_text
from slp_transformer.cli.translate_options import TranslateOptions
from slp_transformer.data.pair_corpus import read_lines
from slp_transformer.data.pair_tokenizer import ids_to_tokens
from slp_transformer.data.text_files import iter_stdin_lines
from slp_transformer.generation.translation import TRANSLATE_BATCH_SIZE, Translation, Translator
from slp_transformer.plotting.attention_maps import translation_attention_figure
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.pairs import make_translator
from slp_transformer.tasks.saved_runs import load_run


def execute(options: TranslateOptions) -> None:
    """Translate sentences, line by line.

    Raises:
        ValueError: if there is no such run or file, or a sentence is too long.
    """
    lines = [] if options.input is None else read_lines(options.input)
    sentences = [*options.sentences, *lines]
    translator = make_translator(load_run(options.run, options.checkpoint, options.device))
    for n, sentence in enumerate(sentences, 1):  # all, before the first is translated
        translator.encode_source(sentence, f"Line {n}")
    batches: Iterable[list[str]] = [
        sentences[first : first + TRANSLATE_BATCH_SIZE]
        for first in range(0, len(sentences), TRANSLATE_BATCH_SIZE)
    ]
    if not options.sentences and options.input is None:
        batches = iter_stdin_sentences(translator)
    found: list[list[Translation]] = []
    with open_output(options) as write:
        for batch in batches:
            found = translator(
                batch, num_beams=options.num_beams, length_penalty=options.length_penalty
            )
            for sentence, translations in zip(batch, found, strict=True):
                write(format_translations(sentence, translations, options))
    if options.attention is not None:
        save_attention_figure(translator, sentences[0], found[0][0], options.attention)


def iter_stdin_sentences(translator: Translator) -> Iterator[list[str]]:
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


@contextlib.contextmanager
def open_output(options: TranslateOptions) -> Iterator[Callable[[str], Any]]:
    """Yield what writes a line: to a file, which is there once it is complete, or to the screen."""
    if options.output is None:
        yield print_text
        return
    with atomic_write(options.output) as file:
        yield lambda line: file.write(f"{line}\n".encode())
    print_status(f"Written to {options.output}.")


def format_translations(sentence: str, found: list[Translation], options: TranslateOptions) -> str:
    """Return the translations of a sentence: one a line, with scores if asked for."""
    best = found[: options.n_best]
    if options.json:
        rows = [{"text": each.text, "score": each.score, "whole": each.finished} for each in best]
        return to_json({"source": sentence, "translations": rows})
    lines = [f"{each.score:8.4f}\t{each.text}" if options.scores else each.text for each in best]
    return "\n".join(lines) + ("\n" if options.n_best > 1 else "")


def save_attention_figure(
    translator: Translator, sentence: str, best: Translation, path: Path
) -> None:
    """Draw where each layer and head looked while it translated a sentence."""
    tokenizer, source = translator.tokenizer, translator.encode_source(sentence)
    target = [tokenizer.begin_id, *best.ids]
    words = ids_to_tokens(tokenizer.source, source), ids_to_tokens(tokenizer.target, target)
    translation_attention_figure(translator.model, source, target, *words).save(path)
    print_status(f"Attention is drawn in {path}.")
