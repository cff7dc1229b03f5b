"""The one table of what changes the distribution that a word is drawn from.

An entry is an argument of `generate` and `filter_logits`, a flag of the commands `generate` and
`evaluate`, a row in the documentation and a control of the site's pages. The order of the table is
the order of application. Nothing here needs PyTorch: a function is named, and imported when used.

An entry of another package is complete with `SAMPLING.add`, before commands are parsed. One of this
package is also an argument of `generate`, by name, and a function of the pages' engine.js: tests
say so where they are missing.
"""

import difflib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from slp_transformer._internal.choices import Choices
from slp_transformer._internal.config_checks import (
    POSITIVE,
    POSITIVE_SHARE,
    SIZE,
    Range,
    accepts,
    check_range,
)


class Slider(NamedTuple):
    """How the site's pages let a reader move a number.

    Attributes:
        symbol: the letter in the book's equations.
        low: the lowest value.
        high: the highest one; None for the size of the vocabulary.
        step: between values.
        off: the value that leaves the logits alone; None for `high`.
    """

    symbol: str
    low: float
    high: float | None
    step: float
    off: float | None


@dataclass(frozen=True)
class SamplingOption:
    """One way to change the distribution.

    Attributes:
        function: "module:name" of a function of the logits [batch × V] and the option's value, or
            of the logits, the ids so far [batch × N] and the value; it returns logits of the same
            shape, and changes none in place. They are in the vocabulary's order, not sorted, no
            probabilities yet, and −∞ where a word is ruled out already, which it stays; at least
            one must stay finite. It is called outside `torch.compile`, without gradients.
        summary: a phrase for `--help` and the documentation.
        range: what its values fulfil, and this in words.
        example: a value with which little is left as it was; of the type of all values.
        neutral: the value that leaves the logits alone.
        slider: of the pages, whose JavaScript has its own function for each option.
        only_drawing: whether it matters only to what is drawn at random.
        greedy_at: the value with which nothing is drawn and the most probable word is taken.
        flag_default: what the commands take where the flag is not given; None for `neutral`.
    """

    function: str
    summary: str
    range: Range
    example: float
    neutral: float | None = None
    slider: Slider | None = None
    only_drawing: bool = True
    greedy_at: float | None = None
    flag_default: float | None = None

    @cached_property
    def reads_ids(self) -> bool:
        """Whether the function takes the ids so far."""
        return len(inspect.signature(pkgutil.resolve_name(self.function)).parameters) == 3

    @cached_property
    def apply(self) -> Callable[..., Any]:
        """The function, called with the logits, the ids so far and the value."""
        function = pkgutil.resolve_name(self.function)
        return function if self.reads_ids else lambda u, ids, value: function(u, value)


SAMPLING = Choices(
    "sampling option",
    {
        "repetition_penalty": SamplingOption(
            "slp_transformer.sampling:repetition_penalty",
            "above 1, tokens that are there already become less likely",
            POSITIVE,
            example=1000.0,
            neutral=1.0,
            slider=Slider("θ", 1, 2, 0.05, 1),
            only_drawing=False,
        ),
        "temperature": SamplingOption(
            "slp_transformer.sampling:temperature",
            "below 1 the model keeps to what is likely, above 1 it varies more; 0 always takes the "
            "most probable token",
            # Below, quotients of ordinary logits overflow.
            ((lambda tau: tau >= 1e-6 and accepts(POSITIVE, tau)), f"{POSITIVE[1]}, from 1e-6 on"),
            example=0.1,
            neutral=1.0,
            slider=Slider("τ", 0, 3, 0.1, 1),
            greedy_at=0,
            flag_default=0.8,
        ),
        "top_k": SamplingOption(
            "slp_transformer.sampling:top_k",
            "sample from the k most probable tokens alone",
            SIZE,
            example=3,
            slider=Slider("k", 1, None, 1, None),
        ),
        "top_p": SamplingOption(
            "slp_transformer.sampling:top_p",
            "sample from the most probable tokens that together have this probability",
            POSITIVE_SHARE,
            example=0.6,
            slider=Slider("p", 0.05, 1, 0.05, 1),
        ),
        "min_p": SamplingOption(
            "slp_transformer.sampling:min_p",
            "sample from the tokens that have at least this share of the probability of the most "
            "probable one",
            POSITIVE_SHARE,
            example=0.9,
            slider=Slider("p", 0, 1, 0.05, 0),
        ),
    },
)
"""The options by name; another package adds its own with `SAMPLING.add`."""


def check_sampling_option(**value: Any) -> None:
    """Refuse a value that one of the equations has no meaning for.

    Raises:
        ValueError: naming the option, and its range.
    """
    for name, given in value.items():
        check_range(SAMPLING[name].range, **{name: given})


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
        ordinary = option.range[1] if greedy is None else f"{greedy}, or {option.range[1]}"
        if value != greedy:
            check_range((option.range[0], ordinary), **{write(name): value})
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
