"""Checks for a reader's own submission at an exercise, which name the mistake.

    from slp_transformer import check
    check.attention(my_attention)

Each check tries a function on small, hand-sized, random and extreme inputs and returns a `Verdict`,
true where the function is right. Where it is wrong, the verdict says which known mistake gives the
very same answers, and shows the smallest case. `python -m slp_transformer.check` prints them all.
"""

from slp_transformer._internal.plugins import import_plugin_checks
from slp_transformer.check.diagnosing.diagnosis import CHECKS, Check
from slp_transformer.check.tables import (  # noqa: F401  each module adds its checks to CHECKS
    attention_checks,
    block_checks,
    encoder_decoder_checks,
    interpret_checks,
    language_model_checks,
    loss_checks,
    mask_checks,
    modern_checks,
    multi_head_checks,
    sampling_checks,
    scaling_checks,
    transformer_2017_checks,
)
from slp_transformer.check.verdict import Verdict, at_most

import_plugin_checks()

__all__ = ["CHECKS", "Check", "Verdict", "at_most"]
__all__.extend(CHECKS)


def __getattr__(name: str) -> Check:
    """Return a check by its name."""
    try:
        return CHECKS[name]
    except KeyError:
        raise AttributeError(f"There is no check named {name!r}.") from None


def __dir__() -> list[str]:
    """Return the names to complete, the checks among them."""
    return __all__
