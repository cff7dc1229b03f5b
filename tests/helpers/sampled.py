"""Parameters of which some run in every test run, and all among the slow tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], *always: Any, unpack: bool = False) -> list[Any]:
    """Mark the values as slow, but for those that always run.

    Args:
        values: the values of a parameter, or tuples for several.
        always: those among them that always run.
        unpack: whether each value is a tuple for several parameters.
    """
    values = list(values)
    missing = [value for value in always if value not in values]
    assert not missing, f"not among the parameters: {missing}"
    return [
        pytest.param(
            *(value if unpack else (value,)),
            marks=[] if value in always else pytest.mark.slow,
        )
        for value in values
    ]
