"""The schedules of the learning rate. Nothing here needs PyTorch."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from slp_transformer._internal.choices import Choices

Share = Callable[[int, int, int, int], float]
"""The share of the peak rate at a step: of the step, from 0, all steps, those of the warmup, and
those of the cooldown."""


@dataclass(frozen=True)
class Schedule:
    """How the learning rate changes over a run.

    Attributes:
        summary: what it does after the warmup, for `--help` and the docs.
        share: the share of the peak learning rate at a step.
        settings: settings of `TrainConfig` that only it, of all schedules, reads.
    """

    summary: str
    share: Share
    settings: tuple[str, ...] = ()


def cosine_schedule(step: int, steps: int, warmup: int, cooldown: int = 0) -> float:
    """Return the share of the full rate at a step: a straight warm-up, then a cosine to 0.1."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def linear_schedule(step: int, steps: int, warmup: int, cooldown: int = 0) -> float:
    """Return the share of the full rate at a step: a straight warm-up, then straight down to 0."""
    return wsd_schedule(step, steps, warmup, steps - warmup)


def wsd_schedule(step: int, steps: int, warmup: int, cooldown: int) -> float:
    """Return the share of the full rate at a step: straight up, level, and straight down to 0.

    Source: Hu et al. 2024 (arXiv 2404.06395), section 4.
    """
    return min((step + 1) / max(1, warmup), 1.0, (steps - step) / max(1, cooldown))


def inverse_sqrt_schedule(step: int, steps: int, warmup: int, cooldown: int = 0) -> float:
    """Return the share of the full rate at a step: a straight warm-up, then 1/√step.

    Source: Vaswani et al. 2017, section 5.3.
    """
    return min((step + 1) / max(1, warmup), math.sqrt(max(1, warmup) / (step + 1)))


SCHEDULES = Choices(
    "schedule",
    {
        "cosine": Schedule("half a cosine, down to a tenth", cosine_schedule),
        "linear": Schedule("straight down to 0", linear_schedule),
        "wsd": Schedule(
            "warmup, stable, decay: the same rate until a linear cooldown to 0",
            wsd_schedule,
            settings=("cooldown_steps",),
        ),
        "inverse-sqrt": Schedule("1/√step, as Vaswani et al. 2017", inverse_sqrt_schedule),
    },
)
"""How the learning rate decays after the warmup, by the name of the setting `schedule`."""
