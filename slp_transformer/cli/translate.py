"""Translate sentences with a trained model: from the command line, a file, a pipe or a prompt."""

import argparse
import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.cli.console import as_json, note, result
from slp_transformer.cli.loaded_run import load_translator
from slp_transformer.data.pair_files import read_lines
from slp_transformer.generation.translation import TOGETHER, Translation, Translator
from slp_transformer.plotting.translation_maps import attention_pictures
from slp_transformer.training.devices import pick_device

Found = list[Translation]


def act(arguments: argparse.Namespace) -> None:
    """Translate whatever there is to translate, line by line.

    Raises:
        ValueError: if there is no such run, language or file, or a sentence is too long.
    """
    check_beams(arguments)
    check_picture(arguments)
    lines = None if arguments.input is None else read_lines(arguments.input)
    device = pick_device(arguments.device)
    translator = load_translator(arguments.run, arguments.checkpoint, device)
    check_languages(translator.tokenizer.languages, arguments)
    if arguments.attention is not None:
        draw(translator, arguments.sentences[0], arguments)
    elif arguments.sentences or lines is not None:
        translate_all(translator, [*arguments.sentences, *(lines or [])], arguments)
    elif sys.stdin is not None and sys.stdin.isatty():
        converse(translator, arguments)
    else:
        translate_piped(translator, arguments)


def check_beams(arguments: argparse.Namespace) -> None:
    """Have as many beams as translations are asked for.

    Raises:
        ValueError: if there are fewer, or either is less than 1.
    """
    for name in ("n_best", "num_beams"):
        if (count := getattr(arguments, name)) is not None and count < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be 1 or more, not {count}.")
    if arguments.num_beams is None:
        arguments.num_beams = max(4, arguments.n_best)
    if arguments.n_best > arguments.num_beams:
        raise ValueError(
            f"{arguments.num_beams} beams find at most as many translations, and not the "
            f"{arguments.n_best} of --n-best: give --num-beams {arguments.n_best}."
        )


def check_picture(arguments: argparse.Namespace) -> None:
    """Refuse to draw the attention of anything but one sentence.

    Raises:
        ValueError: saying what is drawn.
    """
    if arguments.attention is None:
        return
    if len(arguments.sentences) != 1 or arguments.input or not arguments.sentences[0].strip():
        raise ValueError("--attention draws one sentence: give it as the only SENTENCE.")
    if arguments.attention.suffix not in (".html", ".svg"):
        raise ValueError(
            f"Attention is drawn as .html or .svg, and {arguments.attention.name} is neither."
        )


def check_languages(languages: tuple[str, str], arguments: argparse.Namespace) -> None:
    """Refuse languages that the run does not know.

    Raises:
        ValueError: naming those that it does.
    """
    asked = arguments.source_language, arguments.target_language
    for ours, theirs, way in zip(languages, asked, ("from", "into"), strict=True):
        if theirs is not None and theirs.casefold() != ours.casefold():
            raise ValueError(
                f'{arguments.run} does not translate {way} "{theirs}": it translates from '
                f"{languages[0]} into {languages[1]}."
            )


# --- Where sentences come from -----------------------------------------------------------------


def translate_all(
    translator: Translator, sentences: Sequence[str], arguments: argparse.Namespace
) -> None:
    """Translate sentences that are all known; all are looked at before the first is translated."""
    for n, sentence in enumerate(sentences, 1):
        translator.read(sentence, f"Line {n}")
    with output(arguments) as to:
        for first in range(0, len(sentences), TOGETHER):
            some = sentences[first : first + TOGETHER]
            found = translator(some, **options(arguments))
            for sentence, translations in zip(some, found, strict=True):
                tell(sentence, translations, arguments, to)


def translate_piped(translator: Translator, arguments: argparse.Namespace) -> None:
    """Translate standard input: a file in it some lines at a time, a pipe line by line."""
    regular = False
    with contextlib.suppress(OSError, ValueError):
        regular = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    with output(arguments) as to:
        some: list[str] = []
        for n, line in enumerate(standard_input(), 1):
            translator.read(line, f"Line {n}")
            some.append(line)
            if not regular or len(some) == TOGETHER:
                translate_some(translator, some, arguments, to)
                some = []
        translate_some(translator, some, arguments, to)


def translate_some(
    translator: Translator, some: Sequence[str], arguments: argparse.Namespace, to: TextIO | None
) -> None:
    """Translate some lines and show them."""
    found = translator(some, **options(arguments))
    for sentence, translations in zip(some, found, strict=True):
        tell(sentence, translations, arguments, to)


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


def converse(translator: Translator, arguments: argparse.Namespace) -> None:
    """Ask for a sentence, translate it, and so on, until there is no more."""
    source, target = translator.tokenizer.languages
    note(f"From {source} into {target}; an empty line ends it.")
    while True:
        try:
            line = input(f"{source}> ")
        except EOFError:
            return
        if not line.strip():
            return
        try:
            (found,) = translator([line], **options(arguments))
        except ValueError as error:  # too long: the next one may not be
            note(str(error))
            continue
        tell(line, found, arguments, None)


def draw(translator: Translator, sentence: str, arguments: argparse.Namespace) -> None:
    """Translate a sentence, and draw where each layer and head looked, of its best translation."""
    (found,) = translator([sentence], **options(arguments))
    with output(arguments) as to:
        tell(sentence, found, arguments, to)
    tokenizer, source = translator.tokenizer, translator.read(sentence)
    target = [tokenizer.begin_id, *found[0].ids]
    words = tokenizer.words_of_source(source), tokenizer.words_of_target(target)
    attention_pictures(translator.model, source, target, *words).save(arguments.attention)
    note(f"Attention is drawn in {arguments.attention}.")


# --- How they are shown ------------------------------------------------------------------------


def options(arguments: argparse.Namespace) -> dict[str, Any]:
    """How to search."""
    penalty = 1.0 if arguments.length_penalty is None else arguments.length_penalty
    return {"num_beams": arguments.num_beams, "length_penalty": penalty}


@contextlib.contextmanager
def output(arguments: argparse.Namespace) -> Iterator[TextIO | None]:
    """A file to write to, which is there once it is whole; None for standard output."""
    if arguments.output is None:
        yield None
        return
    with whole_file(arguments.output) as unfinished:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            yield file
    note(f"Written to {arguments.output}.")


def tell(sentence: str, found: Found, arguments: argparse.Namespace, to: TextIO | None) -> None:
    """Show the translations of a sentence: one a line, with scores and numbers if asked for."""
    best = found[: arguments.n_best]
    if arguments.json:
        rows = [{"text": each.text, "score": each.score, "whole": each.whole} for each in best]
        text = as_json({"source": sentence, "translations": rows})
    else:
        text = "\n".join(in_a_line(each, arguments.scores) for each in best)
        text += "\n" if arguments.n_best > 1 else ""
    if to is None:
        result(text)
    else:
        to.write(text + "\n")


def in_a_line(translation: Translation, score: bool) -> str:
    """A translation, after its score if that is asked for."""
    return f"{translation.score:8.4f}\t{translation.text}" if score else translation.text
