"""Attempts that are planted for the checks: as right, as wrong with a name, as odd.

Each was written from the exercise and its mistake, not from the package's own table of mistakes.
Short ones stand in tables, the others are functions below them.
"""

import contextlib
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from slp_transformer import check


@dataclass(frozen=True)
class Planted:
    """An attempt: `mistake` is the name that the verdict should give; None for a right one."""

    check: str
    what: str
    mistake: str | None
    attempt: Callable[..., Any]
    one_row: bool = False


ALL: list[Planted] = []
ODD: list[Planted] = []  # wrong in a way for which no name is promised


def right(name: str, what: str, one_row: bool = False):
    return wrong(name, None, what, one_row)


def wrong(name: str, mistake: str | None, what: str, one_row: bool = False):
    def keep(attempt):
        ALL.append(Planted(name, what, mistake, attempt, one_row))
        return attempt

    return keep


def odd(name: str, what: str, one_row: bool = False):
    def keep(attempt):
        ODD.append(Planted(name, what, "", attempt, one_row))
        return attempt

    return keep


def add_table(scope: dict[str, Any], table: str) -> None:
    """Plant the attempts of a table: below the name of a check, `right`, `odd` or a mistake each.

    An attempt is an expression of the check's arguments, or a lambda with others; assignments
    before it end in semicolons. `old => new` is the first attempt above with that edit. A label
    may end in `, one row`. A line that is indented further goes on with the one above.
    """
    scope, name = {"math": math, "torch": torch, "F": F} | scope, ""
    for line in table.replace("\n      ", " ").strip().splitlines():
        if not line.startswith("  "):
            name, first = line, ""
            continue
        label, _, code = line.strip().partition(": ")
        label, one_row = label.removesuffix(", one row"), label.endswith(", one row")
        old, edited, new = code.partition(" =>")
        if edited:
            assert first.count(old) == 1, f"{name}: {line}"
            code = first.replace(old, new.strip())
        first = first or code
        *before, value = code.split("; ")
        attempt = eval(value, scope) if value.startswith("lambda") else None
        if attempt is None:
            body = "\n    ".join([*before, f"return {value}"])
            arguments = ", ".join(check.CHECKS[name].arguments)
            exec(f"def attempt({arguments}):\n    {body}\n", scope)
            attempt = scope.pop("attempt")
        if label == "odd":
            odd(name, code, one_row)(attempt)
        else:
            wrong(name, None if label == "right" else label, code, one_row)(attempt)


def verdict(planted: Planted):
    """Return what the check says, without printing it."""
    with contextlib.redirect_stdout(io.StringIO()):
        return getattr(check, planted.check)(planted.attempt, one_row=planted.one_row)
