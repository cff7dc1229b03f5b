"""Settings of a training run; nothing here needs PyTorch."""

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from slp_transformer._internal.choices import check_choice_fields
from slp_transformer._internal.config_checks import (
    Range,
    check_positive_sizes,
    check_ranges,
    is_integer,
    make_ints_builtin_in_place,
)
from slp_transformer._internal.setting_names import refuse_foreign_settings
from slp_transformer.training.optimizers import OPTIMIZERS
from slp_transformer.training.parallel import PARALLEL
from slp_transformer.training.schedules import SCHEDULES

RESUMABLE_SETTINGS = {
    "device",
    "parallel",
    "compile",
    "steps",
    "early_stopping_patience",
    "keep_last",
    "learning_rate",
    "cooldown_steps",
}
"""Settings that may differ when a run is resumed; all others must be those it was started with."""
EPOCH = "epoch"
NO_EPOCHS = (
    'eval_interval = "epoch" needs epochs, and randomly drawn batches have none: give a number '
    "of steps, or batch sentence pairs by length with batch_tokens."
)
COUNT: Range = (lambda n: is_integer(n) and n >= 0), "a whole number of 0 or more"
SIZE: Range = (lambda n: n == EPOCH or is_integer(n) and n >= 1), "a whole number of 1 or more"
POSITIVE: Range = (lambda x: 0 < x < math.inf), "a number above 0"
SHARE: Range = (lambda x: 0 <= x < 1), "a share from 0 up to but not 1"
SIZES = (
    *("steps", "batch_size", "gradient_accumulation_steps", "keep_last", "eval_interval"),
    *("sequence_length", "batch_tokens", "max_eval_samples", "early_stopping_patience"),
    "cooldown_steps",
)
RANGES: dict[str, Range] = {
    **dict.fromkeys(SIZES, SIZE),
    # The rows of all these batches are drawn at once.
    "gradient_accumulation_steps": (
        (lambda n: is_integer(n) and 1 <= n <= 10**6),
        "a whole number from 1 to 1,000,000",
    ),
    "seed": ((lambda n: is_integer(n) and 0 <= n < 2**63), "a whole number from 0 to 2**63 - 1"),
    "warmup_steps": COUNT,
    "learning_rate": POSITIVE,
    "max_grad_norm": POSITIVE,
    "weight_decay": ((lambda x: 0 <= x < math.inf), "0 or more"),
    "label_smoothing": SHARE,
    "adam_beta2": SHARE,
}


@dataclass(frozen=True)
class TrainConfig:
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

    steps: int
    sequence_length: int | None = None
    batch_size: int = 32
    batch_tokens: int | None = None
    gradient_accumulation_steps: int = 1
    optimizer: Annotated[str, OPTIMIZERS] = "adamw"
    learning_rate: float = 3e-3
    warmup_steps: int | None = None
    schedule: Annotated[str, SCHEDULES] = "cosine"
    cooldown_steps: int | None = None
    adam_beta2: float = 0.95
    weight_decay: float = 0.1
    max_grad_norm: float | None = 1.0
    label_smoothing: float = 0.0
    seed: int = 0
    eval_interval: int | Literal["epoch"] = 100
    max_eval_samples: int | None = 2048
    keep_last: int = 1
    early_stopping_patience: int | None = None
    bf16: bool | None = None
    tf32: bool = True
    compile: bool = False
    device: str | None = None
    parallel: Annotated[str, PARALLEL] = "ddp"

    def __new__(cls, *_: Any, **settings: Any) -> Any:
        """Refuse settings by the names of other libraries.

        Raises:
            TypeError: saying what they are here.
        """
        refuse_foreign_settings(cls, settings)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuse settings that no run can follow.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        make_ints_builtin_in_place(self)
        check_ranges(self, RANGES)
        check_choice_fields(self)
        if OPTIMIZERS[self.optimizer].needs_whole_matrices:
            self.check_matrices_not_sharded()
        for name, schedule in SCHEDULES.items():
            for setting in set(schedule.settings) - {*SCHEDULES[self.schedule].settings}:
                if getattr(self, setting) is not None:
                    raise ValueError(
                        f'{setting} belongs to schedule = "{name}", not to "{self.schedule}".'
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

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for JSON; `TrainConfig(**settings)` reads them."""
        return asdict(self)
