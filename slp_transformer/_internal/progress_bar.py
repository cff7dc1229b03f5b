"""Progress bars for work that takes a while."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.terminal import escape_controls

BAR_DELAY_S = 0.5  # seconds that work may take before a bar appears
BARS_ENABLED = ContextVar("BARS_ENABLED", default=True)  # whether work has bars


@contextlib.contextmanager
def progress_bar(
    description: str, total: int | None, unit: str = "B"
) -> Iterator[Callable[[int], Any]]:
    """Show a progress bar for some work, and remove it at the end.

    It is shown if the work takes a while, stderr is a terminal, and tqdm is installed.

    Args:
        description: description, in a word or two.
        total: amount of work; None if it is unknown.
        unit: unit of `total`.

    Yields:
        A function to call with each amount that was done.
    """
    try:
        tqdm = import_extra("tqdm.auto", "Progress bars").tqdm
    except ImportError:
        yield lambda amount: None
        return
    bar = tqdm(
        desc=description,
        total=total,
        unit=unit,
        file=sys.stderr,
        unit_scale=True,
        dynamic_ncols=True,
        leave=False,
        delay=BAR_DELAY_S,
        disable=None if BARS_ENABLED.get() else True,  # None: unless stderr is a terminal
    )

    def advance(amount: int) -> None:
        with ignore_display_errors():
            bar.update(amount)

    try:
        yield advance
    finally:
        with ignore_display_errors():
            bar.close()


def can_redraw() -> bool:
    """Return whether stderr can redraw a line: on a terminal, or in a notebook."""
    ipython = sys.modules.get("IPython")
    in_notebook = ipython is not None and ipython.get_ipython() is not None
    return sys.stderr.isatty() or in_notebook


def ignore_display_errors() -> contextlib.AbstractContextManager:
    """Ignore errors while a bar is drawn, as on a terminal that was closed."""
    return contextlib.suppress(OSError)


@contextlib.contextmanager
def progress_bars_disabled() -> Iterator[None]:
    """Disable progress bars."""
    before = BARS_ENABLED.set(False)
    try:
        yield
    finally:
        BARS_ENABLED.reset(before)


def write_above_progress_bars(text: str) -> None:
    """Write lines to stderr, above any progress bar."""
    with ignore_display_errors():
        try:
            text = escape_controls(text)
            import_extra("tqdm.auto", "Progress bars").tqdm.write(text, file=sys.stderr)
        except ImportError:
            print(text, file=sys.stderr, flush=True)
