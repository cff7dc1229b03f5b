"""How an attempt is planted for the checks: as right, as wrong with a name, as odd."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
ODD: list[Planted] = []


def right(name: str, what: str, one_row: bool = False):
    def keep(attempt):
        ALL.append(Planted(name, what, None, attempt, one_row))
        return attempt

    return keep


def wrong(name: str, mistake: str, what: str, one_row: bool = False):
    def keep(attempt):
        ALL.append(Planted(name, what, mistake, attempt, one_row))
        return attempt

    return keep


def odd(name: str, what: str, one_row: bool = False):
    """An attempt that is wrong in a way for which no name is promised."""

    def keep(attempt):
        ODD.append(Planted(name, what, "", attempt, one_row))
        return attempt

    return keep


def verdict(planted: Planted):
    """What the check says, without printing it."""
    with contextlib.redirect_stdout(io.StringIO()):
        return getattr(check, planted.check)(planted.attempt, one_row=planted.one_row)
