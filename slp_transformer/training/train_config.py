"""What a training run is told; nothing here needs PyTorch."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from slp_transformer._internal.config_checks import check_size, is_whole, plain_numbers

Parallel = Literal["ddp", "fsdp"]
Schedule = Literal["cosine", "inverse-root"]
MAY_CHANGE = {"device", "parallel", "compile", "steps", "patience", "keep"}
"""What a resumed run may do in another way: any device goes on with others' work, compiled or not,
and a run may be taken further than was meant at first."""
EPOCH = "epoch"
NO_EPOCHS = (
    'every = "epoch" needs epochs, and batches that are drawn at random have none: give a number '
    "of steps, or fill batches with pairs of similar length, by batch_tokens."
)


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        steps: how many times the weights are changed.
        context_length: N, tokens in a window of a token stream; the model's own if None.
        batch_size: sequences that go through the model at once.
        batch_tokens: for pairs, tokens that a batch is filled up to, on each side and with padding,
            by pairs of similar length, of which batch_size are the most; None for batch_size pairs
            of any length.
        accumulation: batches whose gradients are added up for one step, for want of memory.
            Several processes share a step's batch_size × accumulation sequences.
        learning_rate: the highest rate, after the warm-up.
        warmup: steps until then; a twentieth of all if None.
        schedule: how the rate falls after the warm-up, "cosine" (to a tenth) or "inverse-root" (of
            the step, as Vaswani et al. 2017).
        beta_2: how slowly AdamW forgets the squares of past gradients.
        weight_decay: how strongly matrices decay; biases and norms never do.
        clip: longest gradient, longer ones being shortened to it; None to leave them.
        label_smoothing: share of each target's probability that is spread over the vocabulary.
        seed: seed of the batches, and of dropout.
        every: steps between measurements, at which a checkpoint is kept too; or "epoch" for as many
            as an epoch has, where batches are filled with pairs of similar length.
        measured: sequences of held-out data that are measured on while training, the same ones each
            time and from all over; all are at the end. None to measure on all each time.
        keep: how many of the last checkpoints are kept, beside the best; to average their weights.
        patience: measurements without a better one after which training stops; None for never.
        bf16: compute matrix products in bfloat16 (weights stay in float32); if None, on CUDA
            devices that have instructions for it and nowhere else.
        tf32: let CUDA devices round the sides of float32 products to TF32, which is faster.
        compile: run the model through `torch.compile`; the first steps then take minutes.
        device: "cuda", "mps" or "cpu", or one of several as in "cuda:1"; the first of the three
            that is there if None.
        parallel: how the processes that torchrun starts share the model: "ddp" (a copy each) or
            "fsdp" (a share of the weights each); one process has no use for it.
    """

    steps: int
    context_length: int | None = None
    batch_size: int = 32
    batch_tokens: int | None = None
    accumulation: int = 1
    learning_rate: float = 3e-3
    warmup: int | None = None
    schedule: Schedule = "cosine"
    beta_2: float = 0.95
    weight_decay: float = 0.1
    clip: float | None = 1.0
    label_smoothing: float = 0.0
    seed: int = 0
    every: int | Literal["epoch"] = 100
    measured: int | None = 2048
    keep: int = 1
    patience: int | None = None
    bf16: bool | None = None
    tf32: bool = True
    compile: bool = False
    device: str | None = None
    parallel: Parallel = "ddp"

    def __post_init__(self):
        """Refuse settings that no run can follow.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        plain_numbers(self)
        sizes = ["steps", "batch_size", "accumulation", "every", "keep"]
        if self.every == EPOCH:
            sizes.remove("every")
        names = ("context_length", "batch_tokens", "measured", "patience")
        optional = [name for name in names if getattr(self, name) is not None]
        check_size(**{name: getattr(self, name) for name in (*sizes, *optional)})
        for name, least in (("seed", 0), ("warmup", 0)):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and value >= least):
                raise ValueError(f"{name} must be a whole number of 0 or more, not {value!r}.")
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be a number above 0, not {value!r}.")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be 0 or more, not {self.weight_decay!r}.")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(
                f"label_smoothing is a share from 0 up to but not 1, not {self.label_smoothing!r}."
            )
        if not 0 <= self.beta_2 < 1:
            raise ValueError(f"beta_2 is a share from 0 up to but not 1, not {self.beta_2!r}.")
        if self.schedule not in get_args(Schedule):
            raise ValueError(f'schedule must be "cosine" or "inverse-root", not {self.schedule!r}.')
        if self.parallel not in get_args(Parallel):
            raise ValueError(f'parallel must be "ddp" or "fsdp", not {self.parallel!r}.')

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warmup = self.steps // 20 if self.warmup is None else self.warmup
        if self.schedule == "inverse-root":
            return self.learning_rate * inverse_root_schedule(step, warmup)
        return self.learning_rate * cosine_schedule(step, self.steps, warmup)

    @classmethod
    def of_2017(
        cls, model_dim: int = 512, steps: int = 100_000, warmup: int = 4000, **changes: Any
    ) -> "TrainingSettings":
        r"""How "Attention is all you need" trains (Vaswani et al. 2017, sections 5.3 and 5.4).

        $$\eta=d^{-0.5}\min(step^{-0.5},\,step\cdot warmup^{-1.5})$$

        which is at its highest after the warm-up: $(d\cdot warmup)^{-0.5}$. Adam with β₂ = 0.98 and
        no decay, label smoothing of 0.1, gradients as long as they are. The paper's ε of 10⁻⁹ is
        PyTorch's 10⁻⁸ here.

        Args:
            model_dim: d of the model, on which the rate depends.
            steps: how many times the weights are changed.
            warmup: steps until the highest rate.
            **changes: settings to be others than the paper's.

        Raises:
            ValueError: if no run can follow them.
        """
        check_size(model_dim=model_dim, warmup=warmup)
        rate = {"learning_rate": (model_dim * warmup) ** -0.5, "schedule": "inverse-root"}
        adam = {"beta_2": 0.98, "weight_decay": 0.0, "clip": None, "label_smoothing": 0.1}
        return cls(**{"steps": steps, "warmup": warmup} | rate | adam | changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON; `TrainingSettings(**settings)` reads them."""
        return asdict(self)


def cosine_schedule(step: int, steps: int, warmup: int) -> float:
    """Share of the full learning rate at a step: a straight warm-up, then a cosine down to 0.1."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def inverse_root_schedule(step: int, warmup: int) -> float:
    """Share of the full learning rate at a step: a straight warm-up, then as 1/√step falls."""
    warmup = max(1, warmup)
    return min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))
