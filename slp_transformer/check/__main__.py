"""The checks on the command line.

    python -m slp_transformer.check                    what each check knows
    python -m slp_transformer.check attention          what one knows
    python -m slp_transformer.check --new mine.py      a file to write your Transformer in
    python -m slp_transformer.check mine.py            how far it is; once complete, it learns
    python -m slp_transformer.check mine.py --follow   what its wrong functions do in a model
    python -m slp_transformer.check mine.py --run DIR  with the weights of a run, or of a GPT-2
    python -m slp_transformer.check mine.py --text FILE   learns from a text of yours, and writes
    python -m slp_transformer.check mine.py --tabs        learns guitar tabs, and writes my_tab.mid
    python -m slp_transformer.check mine.py --html progress.html   also as a page with a drawing
    python -m slp_transformer.check --json FOLDER      a report on a class
    python -m slp_transformer.check FOLDER --gradescope points.toml   points for what is handed in

A file may be a script or a notebook. Its definitions are run, so check only what may run on your
machine; with --json and --gradescope each file has a process of its own, and limits of time and
memory. Points are stated in TOML, a line for each function, such as `softmax = 2`.
"""

import argparse
import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch

from slp_transformer._internal.atomic_write import error_message, write_file
from slp_transformer._internal.plugins import import_object, merge_entries
from slp_transformer._internal.terminal import (
    discard_unwritten_output,
    escape_controls,
    open_closed_streams,
)
from slp_transformer.check import CHECKS
from slp_transformer.check.grading.class_report import report_on_class, report_on_file
from slp_transformer.check.grading.gradescope import read_points, write_results
from slp_transformer.check.own import own_model
from slp_transformer.check.own.own_model import CHAPTERS, NEEDED, Parts, describe_need
from slp_transformer.check.own.own_writing import Lesson, begin_text_lesson, describe_sentences
from slp_transformer.check.own.progress_page import write_progress_page
from slp_transformer.check.own.wrong_part import follow
from slp_transformer.check.student_file import FILE_SUFFIXES, read_functions
from slp_transformer.check.verdict import Verdict

NOT_THERE = "not there yet"


class EscapingParser(argparse.ArgumentParser):
    """A parser that shows control characters of what it refuses as escapes."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong with the arguments, which may be names of files, and end."""
        super().error(escape_controls(message))


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks.

    Returns:
        0 if it was done and nothing is wrong, 1 if something is, 2 if it cannot be done.
    """
    open_closed_streams()
    try:
        return _run_command_line(arguments)
    finally:
        discard_unwritten_output()


def _run_command_line(arguments: list[str] | None) -> int:
    parser = EscapingParser(
        "python -m slp_transformer.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", help="a check, a script, a notebook, or a folder")
    parser.add_argument("--new", action="store_true", help="write the file to begin from")
    parser.add_argument("--follow", action="store_true", help="train with each wrong function")
    parser.add_argument("--run", type=Path, metavar="DIR", help="weights to use")
    parser.add_argument("--text", type=Path, metavar="FILE", help="a text to learn from")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the progress page")
    parser.add_argument("--json", action="store_true", help="report as JSON")
    parser.add_argument("--gradescope", type=Path, metavar="POINTS", help="grade by these points")
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        default=Path("results.json"),
        help="what --gradescope writes (default: results.json)",
    )
    own = vars(parser.parse_args([]))
    flags = {n: f for n, f in merge_entries("check_flags", own).items() if n not in own}
    for name, flag in flags.items():
        how: dict[str, Any] = {"nargs": "?", "const": Path(flag.file), "help": flag.usage}
        parser.add_argument(f"--{name}", dest=name, type=Path, metavar="FILE", **how)
    options = parser.parse_args(arguments)
    with contextlib.suppress(AttributeError):  # a terminal of Windows that knows no ░
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # as io.TextIOWrapper
    lessons = {flag.lesson: getattr(options, name) for name, flag in flags.items()}
    try:
        code = _run_options(
            options, {place: file for place, file in lessons.items() if file is not None}
        )
        sys.stdout.flush()
        return code
    except ValueError as error:
        _print_error(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        what = "a process" if isinstance(error, BlockingIOError) else "standard output"
        _print_error(f"{error.filename or what}: {error_message(error)}.")
        return 2


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody can read it
        print(escape_controls(f"check: {text}"), file=sys.stderr, flush=True)


def _run_options(options: argparse.Namespace, flagged: Mapping[str, Path]) -> int:
    given = [f"--{name}" for name, value in vars(options).items() if value]
    given = [flag for flag in given if flag not in ("--what", "--results")]
    if options.what is None and given:
        raise ValueError("Name the file: python -m slp_transformer.check mine.py, then the option.")
    if options.what in CHECKS and given:
        raise ValueError(f"{given[0]} is for a file: {options.what} is the name of a check.")
    if options.what is None or options.what in CHECKS:
        print_checks_and_mistakes([options.what] if options.what else list(CHECKS))
        return 0
    alone = [flag for flag in given if flag in ("--new", "--json", "--gradescope")]
    if alone and len(given) > 1:
        other = next(flag for flag in given if flag != alone[0])
        raise ValueError(f"{alone[0]} has no use for {other}: give one of the two.")
    path = Path(options.what)
    for flag, file in (("--html", options.html), ("--results", options.results)):
        if file is not None and (file == path or file.suffix in FILE_SUFFIXES):
            raise ValueError(f"{flag} would write over {file}, a script or notebook: name another.")
    if options.new:
        write_template(path)
        print(escape_controls(f"Written to {path}. Fill in a function, and run:"))
        print(escape_controls(f"  python -m slp_transformer.check {path}"))
        return 0
    if not path.exists():
        raise ValueError(f"There is no check and no file named {path}.")
    if options.gradescope:
        score, most = write_results(path, read_points(options.gradescope), options.results)
        print(f"Written to {options.results}: {score:g} of {most:g} points.")
        return 0
    if options.json:
        report = report_on_file(path) if path.is_file() else report_on_class(path)
        print(json.dumps(report, indent=1, ensure_ascii=False))
        return 0
    if options.run is not None and (options.text is not None or flagged):
        raise ValueError("--run brings weights, and learning trains new ones: give one of the two.")
    lessons = [begin_text_lesson(options.text)] if options.text is not None else []
    for place, file in flagged.items():
        lessons.append(import_object(place, "What it is to learn")(file))
    return print_progress(path, options.run, options.html, lessons, options.follow)


def print_checks_and_mistakes(names: list[str]) -> None:
    """Print checks with the mistakes that they know."""
    for name in names:
        check = CHECKS[name]
        print(f"\n{check.signature_text}: {check.source}")
        for mistake, sentence in check.mistakes.items():
            print(f"  {mistake}: {sentence}")
    known = sum(len(CHECKS[name].mistakes) for name in names)
    print(f"\n{len(names)} check{'s know' if len(names) > 1 else ' knows'} {known} mistakes.")


def write_template(path: Path) -> None:
    """Write a file with every part to fill in.

    Raises:
        ValueError: if there is a file already.
    """
    if path.exists():
        raise ValueError(f"{path} is there already: name another file.")
    lines = ['"""My own Transformer."""\n\nimport torch\n']
    for chapter, names in CHAPTERS.items():
        lines.append(f"\n# --- Chapter {chapter} ---\n")
        for name in names:
            check = CHECKS[name]
            says = (check.__doc__ or "").split("`", 2)[2].strip(" :,\n")
            says = " ".join(says.split())
            need = f"  ({described})" if (described := describe_need(name)) else ""
            lines.append(f"\n# {check.source}{need}\n# {says[:1].upper() + says[1:]}")
            lines.append(f"def {check.signature_text}:\n    ...\n")
    write_file(path, "\n".join(lines))


def judge_file(path: Path) -> tuple[Parts, dict[str, Verdict | None]]:
    """Check every function of a file; None stands for one that is not there."""
    functions = read_functions(path)
    found: dict[str, Verdict | None] = {}
    for name in dict.fromkeys([*(n for names in CHAPTERS.values() for n in names), *functions]):
        with contextlib.redirect_stdout(io.StringIO()):
            one_row = name == "softmax"  # as its exercise asks
            check = CHECKS[name]
            found[name] = check(functions[name], one_row=one_row) if name in functions else None
    return Parts(functions), found


def print_progress(
    path: Path,
    run: Path | None,
    page: Path | None = None,
    lessons: Sequence[Lesson] = (),
    follows: bool = False,
) -> int:
    """Print how far a file is, and put its parts together once they are right."""
    parts, verdicts = judge_file(path)
    if page is not None:
        write_progress_page(page, path.name, verdicts)
        print(f"Written to {page}: the parts on a drawing of the model.")
    chapters = {name: chapter for chapter, names in CHAPTERS.items() for name in names}
    for name, verdict in verdicts.items():
        needed = "*" if name in NEEDED else " "
        status = NOT_THERE if verdict is None else verdict.text
        if verdict:
            _, changes, what = status.partition(" (It changes")
            status = "right" + changes + what
        print(escape_controls(f"{chapters.get(name, ''):>2} {needed} {name:22} {status}"))
        for line in verdict.example if verdict is not None and not verdict else ():
            print(escape_controls(f"       {line}"))
        for other in parts.checks_called_by(name) if verdict is not None and not verdict else ():
            if not verdicts[other]:
                print(f"       It uses {other}, which is not right yet.")
    if follows:
        wrong = [name for name, verdict in verdicts.items() if verdict is not None and not verdict]
        for name in wrong:
            print(escape_controls(f"\n{follow(name, parts.functions[name])}"), flush=True)
        if not wrong:
            print("\nNo function is wrong, so there is nothing to follow.")
    missing = [name for name in NEEDED if not verdicts[name]]
    if missing:
        right = len(NEEDED) - len(missing)
        print(f"\n{right} of the {len(NEEDED)} parts that the model (*) needs are right.")
        return 1
    print("\nAll parts of the model (*) are right. They are put together.")
    if run is not None:
        return print_comparison(parts, run)

    def say(line: str) -> None:
        print(line, flush=True)

    print("Chapter 5's model learns its eight sentences, by your functions alone:")
    torch.set_num_threads(1)
    try:
        own_loss = bool(verdicts["next_token_loss"])
        if own_loss:
            print("The loss is yours, too.")
        own = own_model.train(parts, say, own_loss)
        words, ids = own_model.load_words_and_ids()
        own_model.check_causality(own, ids[0, :-1])
        print("No word sees those after it.")
        if verdicts["cached_step"]:
            own_model.check_cache(own, own.model.embedding(ids[0, :-1]))
            print("With the cache, a head's output is the same.")
    except ValueError as error:
        print(escape_controls(f"Not yet. {error}"))
        return 1
    print("The attention of its first block: a row for each word, a column for each word that it")
    print("reads, by its number, darker for more attention:")
    print(*own_model.attention_as_text(own, own_model.SENTENCES[0][:-1], words), sep="\n")
    if not verdicts["draw"]:
        print("Once draw (chapter 6) is right, it also writes.")
        return 0
    print(*describe_sentences(own), sep="\n")
    for learn in lessons:
        learn(parts, say, own_loss)
    return 0


def print_comparison(parts: Parts, folder: Path) -> int:
    """Load weights into the reader's functions, and compare every next word."""
    from slp_transformer.modern.published_folders import is_pretrained_folder

    model: Any
    if is_pretrained_folder(folder):
        from slp_transformer.modern import from_pretrained

        model = from_pretrained(folder)
    else:
        from slp_transformer.training.checkpoints import load_model

        model = load_model(folder)
    own, count, gap = own_model.compare(parts, model.eval())
    if own.additions:
        print(f"Added to your functions, since the book has none: {', '.join(own.additions)}.")
    print(f"With the weights of {folder}, all {count} next words are the package's; no logit")
    print(f"is further than {gap:.1e} from it.")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a student's process ends with it
    sys.exit(main())
