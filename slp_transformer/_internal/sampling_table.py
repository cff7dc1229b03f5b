"""The one table of what changes the distribution that a word is drawn from.

An entry is an argument of `generate` and `filter_logits`, a flag of the commands `generate` and
`evaluate`, a row in the documentation and a control of the site's pages. The order of the table is
the order of application. Nothing here needs PyTorch: a function is named, and imported when used.

An entry of another package is complete with `SAMPLING.add`, before commands are parsed. One of this
package is also an argument of `generate`, by name, and a function of the pages' engine.js: tests
say so where they are missing.
"""

import difflib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from slp_transformer._internal.choices import Choices
from slp_transformer._internal.config_checks import Range, is_integer


class Slider(NamedTuple):
    """How the site's pages let a reader move a number.

    Attributes:
        low: the lowest value.
        high: the highest one; None for the size of the vocabulary.
        step: between values.
        off: the value that leaves the logits alone; None for `high`.
    """

    low: float
    high: float | None
    step: float
    off: float | None


@dataclass(frozen=True)
class SamplingOption:
    """One way to change the distribution.

    Attributes:
        function: "module:name" of a function of the logits [batch × V] and the option's value, with
            the ids so far [batch × N] in between if `reads_ids`; it returns logits of the same
            shape, and changes none in place. They are in the vocabulary's order, not sorted, no
            probabilities yet, and −∞ where a word is ruled out already, which it stays; at least
            one must stay finite. It is called outside `torch.compile`, without gradients.
        symbol: the letter in the book's equations.
        kind: int or float.
        neutral: the value that leaves the logits alone.
        fits: whether a value is in the option's range.
        range: the range in words, after "must be".
        slider: of the pages, whose JavaScript has its own function for each option.
        summary: a phrase for `--help` and the documentation.
        reads_ids: whether the ids so far are needed.
        only_drawing: whether it matters only to what is drawn at random.
        greedy_at: the value with which nothing is drawn and the most probable word is taken.
        flag_default: what the commands take where the flag is not given; None for `neutral`.
        example: a value with which little is left as it was; the tests of every option take it.
    """

    function: str
    symbol: str
    kind: type[int] | type[float]
    neutral: float | None
    fits: Callable[[Any], bool]
    range: str
    summary: str
    slider: Slider | None = None
    reads_ids: bool = False
    only_drawing: bool = True
    greedy_at: float | None = None
    flag_default: float | None = None
    example: float | None = None

    @cached_property
    def apply(self) -> Callable[..., Any]:
        """The function, called with the logits, the ids so far and the value."""
        function = pkgutil.resolve_name(self.function)
        return function if self.reads_ids else lambda u, ids, value: function(u, value)

    def accepts(self, value: Any) -> bool:
        """Tell if a value is a number in the option's range."""
        try:
            return self.fits(value)
        except (TypeError, ValueError, RuntimeError):  # a string, or an array of several numbers
            return False


def is_positive_share(value: float) -> bool:
    """Tell if a number is above 0 and at most 1."""
    return 0 < value <= 1


SAMPLING = Choices(
    "sampling option",
    {
        "repetition_penalty": SamplingOption(
            "slp_transformer.sampling:repetition_penalty",
            "θ",
            float,
            1.0,
            lambda theta: 0 < theta < math.inf,
            "a number above 0",
            "above 1, tokens that are there already become less likely",
            Slider(1, 2, 0.05, 1),
            reads_ids=True,
            only_drawing=False,
            example=1000.0,
        ),
        "temperature": SamplingOption(
            "slp_transformer.sampling:temperature",
            "τ",
            float,
            1.0,
            lambda tau: 1e-6 <= tau < math.inf,  # below, quotients of ordinary logits overflow
            "a number above 0, from 1e-6 on",
            "below 1 the model keeps to what is likely, above 1 it varies more; 0 always takes the "
            "most probable token",
            Slider(0, 3, 0.1, 1),
            greedy_at=0,
            flag_default=0.8,
            example=0.1,
        ),
        "top_k": SamplingOption(
            "slp_transformer.sampling:top_k",
            "k",
            int,
            None,
            lambda k: is_integer(k) and k >= 1,
            "a whole number of 1 or more",
            "sample from the k most probable tokens alone",
            Slider(1, None, 1, None),
            example=3,
        ),
        "top_p": SamplingOption(
            "slp_transformer.sampling:top_p",
            "p",
            float,
            None,
            is_positive_share,
            "a share above 0 and at most 1",
            "sample from the most probable tokens that together have this probability",
            Slider(0.05, 1, 0.05, 1),
            example=0.6,
        ),
        "min_p": SamplingOption(
            "slp_transformer.sampling:min_p",
            "p",
            float,
            None,
            is_positive_share,
            "a share above 0 and at most 1",
            "sample from the tokens that have at least this share of the probability of the most "
            "probable one",
            Slider(0, 1, 0.05, 0),
            example=0.9,
        ),
    },
)
"""The options by name; another package adds its own with `SAMPLING.add`."""


NUM_WRITTEN: Range = (lambda n: 1 <= n <= 10**6, "from 1 to 1,000,000")
"""Texts that a command writes, and tokens of each: all of them are in memory."""

LENGTH_PENALTY: Range = (lambda alpha: abs(alpha) <= 10, "a number from -10 to 10")
"""The power of a length in a beam's score; what is beyond says nothing, and overflows."""

NUM_BEAMS: Range = (lambda n: is_integer(n) and 1 <= n <= 1000, "a whole number from 1 to 1,000")
"""The width of a beam, which takes its multiple of time and memory; who searches takes 4 to 100."""


def check_sampling_option(**value: Any) -> None:
    """Refuse a value that one of the equations has no meaning for.

    Raises:
        ValueError: naming the option, and its range.
    """
    for name, given in value.items():
        if not SAMPLING[name].accepts(given):
            raise ValueError(f"{name} must be {SAMPLING[name].range}, not {given!r}.")


def validate_sampling_options(
    values: Mapping[str, Any], write: Callable[[str], str] = str
) -> dict[str, Any]:
    """Return the options that change something, in the order in which they are applied.

    Args:
        values: values of options by name; what is missing is neutral.
        write: what a name is in messages, as a flag of a command.

    Raises:
        TypeError: if there is no such option.
        ValueError: if a value is out of range, or has no effect since nothing is drawn.
    """
    for name in values:
        if name not in SAMPLING:
            near = difflib.get_close_matches(name, SAMPLING, n=1)
            meant = f"did you mean {write(near[0])}?" if near else f"{', '.join(SAMPLING)}."
            raise TypeError(f"There is no sampling option {write(name)}: {meant}")
    changed = {
        name: values[name]
        for name, option in SAMPLING.items()
        if name in values and values[name] != option.neutral and values[name] is not None
    }
    for name, value in changed.items():
        option, greedy = SAMPLING[name], SAMPLING[name].greedy_at
        if value != greedy and not option.accepts(value):
            ordinary = option.range if greedy is None else f"{greedy}, or {option.range}"
            raise ValueError(f"{write(name)} must be {ordinary}, not {value!r}.")
    if greedy_by := find_greedy_option(changed):
        for name in changed:
            if name != greedy_by and SAMPLING[name].only_drawing:
                raise ValueError(
                    f"{write(name)} has no effect with {write(greedy_by)} {changed[greedy_by]}, "
                    f"which always takes the most probable token: leave out one of them."
                )
    return changed


def find_greedy_option(values: Mapping[str, Any]) -> str | None:
    """Return the option by whose value the most probable word is taken; None if one is drawn."""
    for name, value in values.items():
        if SAMPLING[name].greedy_at is not None and value == SAMPLING[name].greedy_at:
            return name
    return None
