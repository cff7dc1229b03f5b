"""Prepares the kernel in which a reader runs cells; the kernel executes this, not the hook."""

from types import TracebackType
from typing import Any

# As far from white as from the dark scheme's page, about 4 to 1: the picture has no background.
INK_COLOR = "#7e7e82"
INK = ["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"]

MAX_FRAMES = 12  # at either end of a traceback; IPython takes 5 ms for each of thousands


def prepare(shell: Any) -> None:
    """Prepare a kernel's shell: short tracebacks, and figures that fit light and dark pages."""
    shell.set_custom_exc((Exception,), _show_shortened)
    shell.config.InlineBackend.rc = {
        **dict.fromkeys(["figure.facecolor", "axes.facecolor"], "none"),
        **dict.fromkeys(INK, INK_COLOR),
    }


def _show_shortened(
    shell: Any, etype: type, value: BaseException, tb: TracebackType, tb_offset: int | None = None
) -> None:
    seen: set[int] = set()
    one: BaseException | None = value
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = shortened(one.__traceback__)
        one = one.__cause__ or one.__context__
    shell.showtraceback((etype, value, value.__traceback__), tb_offset=tb_offset)


def shortened(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames in its middle, if it has very many."""
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    if len(frames) > 2 * MAX_FRAMES:
        del frames[MAX_FRAMES:-MAX_FRAMES]
    made = None
    for one in reversed(frames):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made
