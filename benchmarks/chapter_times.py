"""Measures what each chapter costs: the CPU time of its kernel, which the site runs it in.

    python benchmarks/chapter_times.py
    python benchmarks/chapter_times.py 01 07 --started

One after the other, and no outputs are kept. With `--started` each kernel is started by itself, as
it is where none can be forked. User and system time, the kernel's children included.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site_build"))

import chapter_source  # noqa: E402
import execution  # noqa: E402
import forked_kernels  # noqa: E402


def measure_cpu_seconds(path: Path) -> float:
    """Run a chapter, and return the CPU time that its kernel has taken after the last cell."""
    chapter = chapter_source.read_chapter(path, ROOT)
    last = nbformat.v4.new_code_cell('sum(__import__("os").times()[:4])')
    cells = [*chapter.notebook.cells, last]
    notebook = nbformat.from_dict({**chapter.notebook, "cells": cells})
    outputs, _ = execution.run_chapter(replace(chapter, notebook=notebook))
    return float(outputs[-1][0]["data"]["text/plain"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chapters", nargs="*", help="their numbers, such as 06b; all, if none")
    parser.add_argument("--started", action="store_true", help="start each kernel by itself")
    asked = parser.parse_args()
    forked_kernels.CAN_FORK &= not asked.started
    whole = 0.0
    for path in sorted((ROOT / "chapters").glob("[0-9]*.py")):
        if not asked.chapters or path.stem.partition("_")[0] in asked.chapters:
            seconds = measure_cpu_seconds(path)
            whole += seconds
            print(f"| {path.stem} | {seconds:.1f} |", flush=True)
    print(f"| in all | {whole:.1f} |")
