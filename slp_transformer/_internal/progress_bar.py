"""Progress bars for work that takes a while."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from slp_transformer._internal.atomic_write import from_text_extra

DELAY = 0.5  # seconds that work may take before a bar appears
BARS = ContextVar("BARS", default=True)  # whether work has bars


@contextlib.contextmanager
def work_bar(
    work: str, total: int | None, unit: str = "B", done: int = 0
) -> Iterator[Callable[[int], Any]]:
    """Show how far some work has come that goes before training, and take the bar away at its end.

    There is a bar if the work takes a while, stderr is a terminal, and tqdm is installed.

    Args:
        work: what is done, in a word or two.
        total: how much there is to do; None if nobody knows.
        unit: what `total` counts: bytes, unless another is named.
        done: how much of it was done before.

    Yields:
        What to call with each amount that was done; less than 0 if it has to be done again.
    """
    try:
        tqdm = from_text_extra("tqdm.auto", "Progress bars").tqdm
    except ImportError:
        yield lambda amount: None
        return
    how = {"unit_scale": True, "dynamic_ncols": True, "leave": False, "delay": DELAY}
    how["disable"] = None if BARS.get() else True  # None has tqdm ask whether there is a terminal
    bar = tqdm(desc=work, total=total, initial=done, unit=unit, file=sys.stderr, **how)

    def tell(amount: int) -> None:
        with seen_or_not():
            bar.update(amount)

    try:
        yield tell
    finally:
        with seen_or_not():
            bar.close()


def can_be_redrawn() -> bool:
    """Whether a bar can move where stderr goes: on a terminal, or in a notebook."""
    ipython = sys.modules.get("IPython")
    in_notebook = ipython is not None and ipython.get_ipython() is not None
    return sys.stderr.isatty() or in_notebook


def seen_or_not() -> contextlib.AbstractContextManager:
    """Whatever keeps a bar from being drawn, a terminal that was closed for one, stops no work."""
    return contextlib.suppress(OSError)


@contextlib.contextmanager
def no_work_bars() -> Iterator[None]:
    """Show no bars of work, whatever stderr is."""
    before = BARS.set(False)
    try:
        yield
    finally:
        BARS.reset(before)


def beside_bars(text: str) -> None:
    """Show lines on stderr, above whatever bar is there."""
    with seen_or_not():
        try:
            from_text_extra("tqdm.auto", "Progress bars").tqdm.write(text, file=sys.stderr)
        except ImportError:
            print(text, file=sys.stderr, flush=True)
