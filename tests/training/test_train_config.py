"""Settings of a run: what they refuse, and the learning rate of each step by hand."""

import math
from dataclasses import replace

import pytest
from whole import whole

from slp_transformer.training.schedules import SCHEDULES, cosine_schedule
from slp_transformer.training.train_config import TrainConfig

COUNTS = ("steps", "sequence_length", "batch_size", "gradient_accumulation_steps")
COUNTS += ("eval_interval", "early_stopping_patience")
WRONG = [
    *((name, 0) for name in COUNTS), ("warmup_steps", -1), ("seed", -1), ("learning_rate", 0.0),
    ("learning_rate", math.nan), ("max_grad_norm", -1.0), ("weight_decay", -0.1),
    ("label_smoothing", 1.0), ("schedule", "sine"), ("optimizer", "sgd"),
    ("adam_beta2", 1.0), ("adam_beta2", -0.5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_setting_is_named_with_its_value(name, value, unchecked):
    with pytest.raises(ValueError, match=rf"^{name} .*not {value!r}\.$"):
        TrainConfig(**{"steps": 1} | {name: value})


RATES = [
    ({"schedule": "linear"}, [1, 2, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25]),
    ({"schedule": "wsd", "cooldown_steps": 4}, [1, 2, 2, 2, 2, 2, 2, 1.5, 1, 0.5]),
    (
        {"schedule": "inverse-sqrt", "warmup_steps": 0},
        [2 * step**-0.5 for step in range(1, 11)],
    ),
    ({"schedule": "wsd"}, [1, 2, 2, 2, 2, 2, 2, 2, 2, 1]),
    ({"schedule": "wsd", "warmup_steps": 0}, [2, 2, 2, 2, 2, 2, 2, 2, 2, 1]),
    (
        {"schedule": "cosine"},
        [1, 2, *(1.1 + 0.9 * math.cos(math.pi * k / 8) for k in range(8))],
    ),
]


@pytest.mark.parametrize(("settings", "rates"), RATES)
def test_schedules_by_hand(settings, rates):
    config = TrainConfig(**{"steps": 10, "learning_rate": 2.0, "warmup_steps": 2} | settings)
    assert [config.learning_rate_at(step) for step in range(10)] == pytest.approx(rates)


def test_every_schedule_has_rates_by_hand():
    assert {settings["schedule"] for settings, _ in RATES} == {*SCHEDULES}


def test_a_cooldown_without_wsd_is_refused():
    with pytest.raises(
        ValueError, match=whole('cooldown_steps belongs to schedule = "wsd", not to "cosine".')
    ):
        TrainConfig(steps=9, cooldown_steps=3)


def test_schedule_warms_up_then_falls_to_a_tenth():
    shares = [cosine_schedule(step, 100, 10) for step in range(101)]
    assert shares[0] == pytest.approx(0.1) and shares[9] == pytest.approx(1.0)
    assert shares[10] == pytest.approx(1.0) and shares[100] == pytest.approx(0.1)
    assert all(a >= b for a, b in zip(shares[10:], shares[11:], strict=False))


def test_the_rate_warms_up_over_a_twentieth_unless_told():
    settings = TrainConfig(steps=100, learning_rate=2.0)
    assert [settings.learning_rate_at(s) for s in (0, 4, 5)] == pytest.approx([0.4, 2.0, 2.0])
    assert replace(settings, warmup_steps=0).learning_rate_at(0) == pytest.approx(2.0)
    assert replace(settings, warmup_steps=10).learning_rate_at(0) == pytest.approx(0.2)
