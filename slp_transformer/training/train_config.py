"""Settings of a training run; nothing here needs PyTorch."""

import math
from dataclasses import MISSING, dataclass
from typing import Annotated, Any, Literal

from slp_transformer._internal.config_checks import (
    COUNT,
    POSITIVE,
    SEED,
    SHARE,
    SIZE,
    Range,
    check_positive_sizes,
    is_integer,
)
from slp_transformer._internal.setting_names import Configuration
from slp_transformer._internal.settings import check_settings, setting, settings, settings_of
from slp_transformer.training.optimizers import OPTIMIZERS
from slp_transformer.training.parallel import PARALLEL
from slp_transformer.training.schedules import SCHEDULES

EPOCH = "epoch"
NO_EPOCHS = (
    'eval_interval = "epoch" needs epochs, and randomly drawn batches have none: give a number '
    "of steps, or batch sentence pairs by length with batch_tokens."
)
INTERVAL: Range = (lambda n: n == EPOCH or SIZE[0](n)), f'{SIZE[1]}, or "{EPOCH}"'
BATCHES: Range = (  # the rows of all of them are drawn at once
    (lambda n: is_integer(n) and 1 <= n <= 10**6),
    "a whole number from 1 to 1,000,000",
)


@settings
@dataclass(frozen=True)
class TrainConfig(Configuration):
    """How to train.

    Attributes:
        steps: number of training steps.
        sequence_length: tokens in a window of a token stream; the model's own if None.
        batch_size: sequences in a batch (of one micro-step).
        batch_tokens: for sentence pairs, tokens that a batch may have on each side, padding
            included, in batches of similar length and at most batch_size pairs; None for batch_size
            pairs of any length.
        gradient_accumulation_steps: batches whose gradients are added up for one training step.
            Several processes share a step's batch_size × gradient_accumulation_steps sequences.
        optimizer: what updates the weights, one of `OPTIMIZERS`.
        learning_rate: peak learning rate, after the warmup.
        warmup_steps: steps of linear warmup; a twentieth of all steps if None.
        schedule: how the learning rate decays after the warmup, one of `SCHEDULES`.
        cooldown_steps: steps of the cooldown of "wsd"; a fifth of all steps if None.
        adam_beta2: AdamW's β₂, the decay of its average of squared gradients.
        weight_decay: weight decay of matrices; biases and norms have none.
        max_grad_norm: maximum gradient norm (clipping); None disables it.
        label_smoothing: share of each target's probability that is spread over the vocabulary.
        seed: random seed of the batches and of dropout.
        eval_interval: steps between evaluations, each of which saves a checkpoint; or "epoch" for
            the number of steps in an epoch, with batch_tokens.
        max_eval_samples: validation sequences in an evaluation, evenly spaced and always the same;
            the last evaluation uses all of them. None for all each time.
        keep_last: number of most recent checkpoints that are kept, besides the best one.
        early_stopping_patience: evaluations without improvement before early stopping; None for
            never.
        bf16: mixed precision in bfloat16 (weights stay in float32); if None, on CUDA devices that
            support it natively.
        tf32: let CUDA devices use TF32 in float32 matrix products, which is faster.
        compile: use `torch.compile`; the first steps then take minutes.
        device: "cuda", "mps" or "cpu", or one of several as in "cuda:1"; the first available of
            the three if None.
        parallel: how the processes that torchrun starts share the model, one of `PARALLEL`;
            ignored by a single process.
    """

    steps: int = setting(MISSING, SIZE, example=9, resumable=True)
    sequence_length: int | None = setting(None, SIZE, example=3)
    batch_size: int = setting(32, SIZE, example=3)
    batch_tokens: int | None = setting(None, SIZE, example=30)
    gradient_accumulation_steps: int = setting(1, BATCHES, example=2)
    optimizer: Annotated[str, OPTIMIZERS] = setting("adamw", example="muon")
    learning_rate: float = setting(0.003, POSITIVE, example=0.1, resumable=True)
    warmup_steps: int | None = setting(None, COUNT, example=4)
    schedule: Annotated[str, SCHEDULES] = setting("cosine", example="linear")
    cooldown_steps: int | None = setting(
        None, SIZE, example=4, given={"schedule": "wsd"}, resumable=True
    )
    adam_beta2: float = setting(0.95, SHARE, example=0.5)
    weight_decay: float = setting(0.1, (lambda x: 0 <= x < math.inf, "0 or more"), example=0.9)
    max_grad_norm: float | None = setting(1.0, POSITIVE, example=0.01)
    label_smoothing: float = setting(0.0, SHARE, example=0.3)
    seed: int = setting(0, SEED, example=5)
    eval_interval: int | Literal["epoch"] = setting(100, INTERVAL, example=3)
    max_eval_samples: int | None = setting(2048, SIZE, example=2)
    keep_last: int = setting(1, SIZE, example=3, resumable=True)
    early_stopping_patience: int | None = setting(None, SIZE, example=1, resumable=True)
    bf16: bool | None = setting(None, example=True)
    tf32: bool = setting(True, no_example="only products on a CUDA device are others")
    compile: bool = setting(False, no_example="it computes the same, sooner", resumable=True)
    device: str | None = setting(None, no_example="not every machine has another", resumable=True)
    parallel: Annotated[str, PARALLEL] = setting(
        "ddp", no_example="the processes compute the same however they share it", resumable=True
    )

    def __post_init__(self) -> None:
        """Refuse settings that no run can follow.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        check_settings(self)
        if OPTIMIZERS[self.optimizer].needs_whole_matrices:
            self.check_matrices_not_sharded()
        for name, schedule in SCHEDULES.items():
            for own in set(schedule.settings) - {*SCHEDULES[self.schedule].settings}:
                if getattr(self, own) is not None:
                    raise ValueError(
                        f'{own} belongs to schedule = "{name}", not to "{self.schedule}".'
                    )

    def check_matrices_not_sharded(self) -> None:
        """Refuse to give each process a part of a matrix.

        Raises:
            ValueError: naming what would do.
        """
        if PARALLEL[self.parallel].shards_matrices:
            ways = [f'"{name}"' for name, way in PARALLEL.items() if not way.shards_matrices]
            others = [f'"{name}"' for name, o in OPTIMIZERS.items() if not o.needs_whole_matrices]
            raise ValueError(
                f'optimizer = "{self.optimizer}" needs whole matrices, and parallel = '
                f'"{self.parallel}" gives each process a part of them: choose '
                f"{' or '.join(ways)}, or the optimizer {' or '.join(others)}."
            )

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        warmup = self.steps // 20 if self.warmup_steps is None else self.warmup_steps
        cooldown = self.cooldown_steps or self.steps // 5
        share = SCHEDULES[self.schedule].share(step, self.steps, warmup, cooldown)
        return self.learning_rate * share

    @classmethod
    def of_2017(
        cls, model_dim: int = 512, steps: int = 100_000, warmup_steps: int = 4000, **changes: Any
    ) -> "TrainConfig":
        r"""Return the settings of "Attention is all you need" (Vaswani et al. 2017, 5.3 and 5.4).

        $$\eta=d^{-0.5}\min(step^{-0.5},\,step\cdot warmup^{-1.5})$$

        which is at its highest after the warm-up: $(d\cdot warmup)^{-0.5}$. Adam with β₂ = 0.98 and
        no decay, label smoothing of 0.1, gradients as long as they are. The paper's ε of 10⁻⁹ is
        PyTorch's 10⁻⁸ here.

        Args:
            model_dim: d of the model, on which the rate depends.
            steps: number of training steps.
            warmup_steps: steps until the peak learning rate.
            **changes: settings to be others than the paper's.

        Raises:
            ValueError: if no run can follow them.
        """
        check_positive_sizes(model_dim=model_dim, warmup_steps=warmup_steps)
        rate = {"learning_rate": (model_dim * warmup_steps) ** -0.5, "schedule": "inverse-sqrt"}
        adam = {
            "adam_beta2": 0.98,
            "weight_decay": 0.0,
            "max_grad_norm": None,
            "label_smoothing": 0.1,
        }
        return cls(**{"steps": steps, "warmup_steps": warmup_steps} | rate | adam | changes)


RESUMABLE_SETTINGS = {name for name, about in settings_of(TrainConfig).items() if about.resumable}
"""Settings that may differ when a run is resumed; all others must be those it was started with."""
