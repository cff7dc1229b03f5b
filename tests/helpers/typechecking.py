"""The type checker that reads the package's signatures while the tests run."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from beartype import BeartypeConf, beartype
from jaxtyping import config

ENOUGH = 300
"""Checks in one test. What a loop calls has by then been checked with every kind of argument that
it is given, and checking takes longer than computing with tensors so small."""

# As PEP 484 has it, a whole number will do where a float is asked for: `eps=0`.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
done = 0


def modules_with_tensors(packages: Iterable[str]) -> list[str]:
    """Name the modules that speak of a tensor: mypy reads the types of the others."""
    root = Path(__file__).parents[2]
    return [
        ".".join(path.relative_to(root).with_suffix("").parts)
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
        if "Tensor" in path.read_text(encoding="utf-8") and path.stem != "__init__"
    ]


def checker(function: Callable) -> Callable:
    """Have a function check its arguments, until enough was checked.

    What checks it is made at the first call, since most tests call little of the package. A
    function within another is made anew at each call, and its checks would be, too.
    """
    if isinstance(function, type):
        return check(function)
    if "<locals>" in function.__qualname__:
        return function
    checked = functools.cache(lambda: check(function))

    @functools.wraps(function)
    def counted(*arguments, **named):
        global done
        done += 1
        if done == ENOUGH:
            config.update("jaxtyping_disable", True)
        return checked()(*arguments, **named)

    return counted


def begin() -> None:
    """Check again, in a new test."""
    global done
    done = 0
    config.update("jaxtyping_disable", False)
