"""Translate sentences with a trained model: from the command line, a file, a pipe or a prompt."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.cli.console import print_result, print_status
from slp_transformer.cli.options import Translate
from slp_transformer.data.pair_corpus import read_lines
from slp_transformer.data.pair_tokenizer import ids_to_tokens
from slp_transformer.generation.translation import TRANSLATE_BATCH_SIZE, Translation, Translator
from slp_transformer.plotting.attention_maps import translation_attention_figure
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.loaded_run import load_run
from slp_transformer.tasks.pairs import to_translator

Found = list[Translation]


def execute(options: Translate) -> None:
    """Translate whatever there is to translate, line by line.

    Raises:
        ValueError: if there is no such run, language or file, or a sentence is too long.
    """
    lines = None if options.input is None else read_lines(options.input)
    translator = to_translator(load_run(options.run, options.checkpoint, options.device))
    check_languages(translator.tokenizer.languages, options)
    if options.attention is not None:
        draw(translator, options.sentences[0], options)
    elif options.sentences or lines is not None:
        translate_all(translator, [*options.sentences, *(lines or [])], options)
    elif sys.stdin is not None and sys.stdin.isatty():
        converse(translator, options)
    else:
        translate_piped(translator, options)


def check_languages(languages: tuple[str, str], options: Translate) -> None:
    """Refuse languages that the run does not know.

    Raises:
        ValueError: naming those that it does.
    """
    asked = options.source_language, options.target_language
    for ours, theirs, way in zip(languages, asked, ("from", "into"), strict=True):
        if theirs is not None and theirs.casefold() != ours.casefold():
            raise ValueError(
                f'{options.run} does not translate {way} "{theirs}": it translates from '
                f"{languages[0]} into {languages[1]}."
            )


# --- Where sentences come from -----------------------------------------------------------------


def translate_all(translator: Translator, sentences: Sequence[str], options: Translate) -> None:
    """Translate sentences that are all known; all are looked at before the first is translated."""
    for n, sentence in enumerate(sentences, 1):
        translator.encode_source(sentence, f"Line {n}")
    with output(options) as to:
        for first in range(0, len(sentences), TRANSLATE_BATCH_SIZE):
            some = sentences[first : first + TRANSLATE_BATCH_SIZE]
            found = translator(some, num_beams=options.beams, length_penalty=options.length_penalty)
            for sentence, translations in zip(some, found, strict=True):
                print_translation(sentence, translations, options, to)


def translate_piped(translator: Translator, options: Translate) -> None:
    """Translate standard input: a file in it some lines at a time, a pipe line by line."""
    regular = False
    with contextlib.suppress(OSError, ValueError):
        regular = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    with output(options) as to:
        some: list[str] = []
        for n, line in enumerate(standard_input(), 1):
            translator.encode_source(line, f"Line {n}")
            some.append(line)
            if not regular or len(some) == TRANSLATE_BATCH_SIZE:
                translate_some(translator, some, options, to)
                some = []
        translate_some(translator, some, options, to)


def translate_some(
    translator: Translator, some: Sequence[str], options: Translate, to: TextIO | None
) -> None:
    """Translate some lines and show them."""
    found = translator(some, num_beams=options.beams, length_penalty=options.length_penalty)
    for sentence, translations in zip(some, found, strict=True):
        print_translation(sentence, translations, options, to)


def standard_input() -> Iterator[str]:
    """The lines of standard input, as they come.

    Raises:
        ValueError: if one is not UTF-8.
    """
    for n, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if n == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"Standard input is not UTF-8: line {n} has the byte "
                f"0x{error.object[error.start]:02X}, which cannot stand there."
            ) from None
        yield text.removesuffix("\n").removesuffix("\r")


def converse(translator: Translator, options: Translate) -> None:
    """Ask for a sentence, translate it, and so on, until there is no more."""
    source, target = translator.tokenizer.languages
    print_status(f"From {source} into {target}; an empty line ends it.")
    while True:
        try:
            line = input(f"{source}> ")
        except EOFError:
            return
        if not line.strip():
            return
        try:
            (found,) = translator(
                [line], num_beams=options.beams, length_penalty=options.length_penalty
            )
        except ValueError as error:  # too long: the next one may not be
            print_status(str(error))
            continue
        print_translation(line, found, options, None)


def draw(translator: Translator, sentence: str, options: Translate) -> None:
    """Translate a sentence, and draw where each layer and head looked, of its best translation."""
    (found,) = translator(
        [sentence], num_beams=options.beams, length_penalty=options.length_penalty
    )
    with output(options) as to:
        print_translation(sentence, found, options, to)
    tokenizer, source = translator.tokenizer, translator.encode_source(sentence)
    target = [tokenizer.begin_id, *found[0].ids]
    words = ids_to_tokens(tokenizer.source, source), ids_to_tokens(tokenizer.target, target)
    translation_attention_figure(translator.model, source, target, *words).save(options.attention)
    print_status(f"Attention is drawn in {options.attention}.")


# --- How they are shown ------------------------------------------------------------------------


@contextlib.contextmanager
def output(options: Translate) -> Iterator[TextIO | None]:
    """A file to write to, which is there once it is whole; None for standard output."""
    if options.output is None:
        yield None
        return
    with atomic_write(options.output) as unfinished:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            yield file
    print_status(f"Written to {options.output}.")


def print_translation(sentence: str, found: Found, options: Translate, to: TextIO | None) -> None:
    """Show the translations of a sentence: one a line, with scores and numbers if asked for."""
    best = found[: options.n_best]
    if options.json:
        rows = [{"text": each.text, "score": each.score, "whole": each.finished} for each in best]
        text = to_json({"source": sentence, "translations": rows})
    else:
        text = "\n".join(in_a_line(each, options.scores) for each in best)
        text += "\n" if options.n_best > 1 else ""
    if to is None:
        print_result(text)
    else:
        to.write(text + "\n")


def in_a_line(translation: Translation, score: bool) -> str:
    """A translation, after its score if that is asked for."""
    return f"{translation.score:8.4f}\t{translation.text}" if score else translation.text
