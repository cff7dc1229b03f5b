"""Check files of one's own: `python -m slp_transformer.check mine.py`.

Without a file, print every check with the mistakes that it knows by name.
"""

import argparse
import io
import json
import sys
from pathlib import Path

from slp_transformer.check import CHECKS
from slp_transformer.check.calling import UnsupportedCall
from slp_transformer.check.mine import (
    FOR_THE_CACHE,
    BrokenPart,
    check_functions,
    format_progress,
    missing_parts,
    write_template,
)


def print_table() -> None:
    """Print the checks."""
    for check in CHECKS.values():
        print(f"\n{check.signature_text}: {check.source}")
        for name, sentence in check.mistakes.items():
            print(f"  {name}: {sentence}")
    known = sum(len(check.mistakes) for check in CHECKS.values())
    print(f"\n{len(CHECKS)} checks know {known} mistakes.")


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(
        "python -m slp_transformer.check", description="Check functions of your own."
    )
    parser.add_argument("files", nargs="*", type=Path, help="mine.py, or notebooks of exercises")
    parser.add_argument(
        "--new",
        type=Path,
        metavar="FILE",
        help="write a file to begin from, with what the given notebooks hold already",
    )
    parser.add_argument(
        "--weights", type=Path, metavar="FOLDER", help="a run, or a downloaded GPT-2, to load"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="draw the attention: .html, .svg")
    parser.add_argument(
        "--json", type=Path, metavar="FOLDER", help="report on a class; this runs students' code"
    )
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a student's file")
    parser.add_argument("--memory", type=int, default=2048, help="MiB for a student's file")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> bool:
    """Do what was asked; whether all is right."""
    if options.new is not None:
        write_template(options.new, options.files)
        print(f"{options.new} is written. Check it: python -m slp_transformer.check {options.new}")
        return True
    if options.json is not None:
        from slp_transformer.check.class_report import WARNING, report_on_folder

        print(WARNING, file=sys.stderr)
        report = report_on_folder(options.json, options.timeout, options.memory)
        print(json.dumps(report, indent=1, ensure_ascii=False))
        return True
    if not options.files:
        print_table()
        return True
    functions, verdicts = check_functions(options.files)
    print(format_progress(verdicts))
    if missing_parts(verdicts):
        return False
    from slp_transformer.check.own_model import compare_with_weights, run_own_model

    for line in run_own_model(functions, all(map(verdicts.get, FOR_THE_CACHE)), options.page):
        print(f"\n{line}", flush=True)
    if options.weights is not None:
        for line in compare_with_weights(functions, options.weights):
            print(f"\n{line}", flush=True)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all is right, 1 if something is not yet, 2 if it was refused."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ✓ and │
    try:
        return 0 if run(parse_arguments(arguments)) else 1
    except BrokenPart as error:
        print(f"\nNot yet. {error}")
        return 1
    except (ValueError, OSError, ImportError, UnsupportedCall) as error:
        print(f"slp_transformer.check: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
