"""The outcome of a check: right or not, and if not, which mistake it looks like."""

import html
import math
import re
import sys
from dataclasses import dataclass

from torch import Tensor

_COLORS = {True: "#2e7d32", False: "#c62828"}


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: true where the submission is right.

    Attributes:
        is_right: whether every answer was right.
        text: one sentence: what is wrong, or that nothing is.
        example: the smallest case where it shows, a line each; empty where nothing is wrong.
        mistakes: the names of the known mistakes that give the very same answers.
    """

    is_right: bool
    text: str
    example: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return True where the submission is right."""
        return self.is_right

    def __str__(self) -> str:
        """Return the verdict for a terminal."""
        head = "Right. " if self.is_right else "Not yet. "
        return "\n".join([head + self.text, *("    " + line for line in self.example)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "Right." if self.is_right else "Not yet."
        color = _COLORS[self.is_right]
        text = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(self.text))
        example = html.escape("\n".join(self.example))
        shown = f'<pre style="margin:.4em 0 0;white-space:pre-wrap">{example}</pre>'
        return (
            f'<div class="slp-verdict" style="border-left:.25em solid {color};padding:.3em .8em">'
            f"<strong>{head}</strong> {text}"
            f"{shown if self.example else ''}</div>"
        )


def at_most(value: Tensor | float, target: float, floor: float = 0.0) -> Verdict:
    """Check that a measure, a loss say, is no larger than the number to beat.

    Args:
        value: a number, or a tensor with one.
        target: the number to beat.
        floor: the least that is possible; what is below it was not measured fairly.

    Returns:
        The verdict. In a script it is printed, too.
    """
    try:
        number = float(value.detach() if isinstance(value, Tensor) else value)
    except (TypeError, ValueError, RuntimeError):
        verdict = Verdict(False, f"Expected a number, got one of type {type(value).__name__}.")
    else:
        right = floor <= number <= target
        text = f"{number:.3f} is {'at most' if right else 'above'} {target:g}."
        if math.isnan(number):
            text = "It is NaN: training diverged, and a lower learning rate may help."
        elif number < floor:
            text = (
                f"{number:.3f} is below {floor:g}, and no model can be: the loop sees what it "
                "should predict, or measures something else."
            )
        verdict = Verdict(right, text)
    print_verdict(verdict)
    return verdict


def print_verdict(verdict: Verdict) -> None:
    """Print a verdict where nothing else would show it: in a script.

    A notebook and Python's own prompt show the value of the last line by themselves.
    """
    if hasattr(sys, "ps1"):
        return
    try:
        print(verdict)
    except UnicodeEncodeError:  # a terminal without √ and ·
        print(str(verdict).encode("ascii", "replace").decode("ascii"))
