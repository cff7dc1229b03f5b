"""What a training run is told, and the optimiser that follows from it."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import torch
from torch import nn

from slp_transformer.matrices import check_size

Parallel = Literal["ddp", "fsdp"]


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        steps: how many times the weights are changed.
        context_length: N, tokens in a window of a token stream; the model's own if None.
        batch_size: sequences that go through the model at once.
        accumulation: batches whose gradients are added up for one step, for want of memory.
            Several processes share a step's batch_size × accumulation sequences.
        learning_rate: the highest rate, after the warm-up.
        warmup: steps until then; a twentieth of all if None.
        weight_decay: how strongly matrices decay; biases and norms never do.
        clip: longest gradient, longer ones being shortened to it; None to leave them.
        label_smoothing: share of each target's probability that is spread over the vocabulary.
        seed: seed of the batches, and of dropout.
        every: steps between measurements, at which a checkpoint is kept too.
        patience: measurements without a better one after which training stops; None for never.
        bf16: compute matrix products in bfloat16 (weights stay in float32); for devices that have
            instructions for it.
        compile: run the model through `torch.compile`.
        device: "cuda", "mps" or "cpu"; the first of them that is there if None.
        parallel: how the processes that torchrun starts share the model: "ddp" (a copy each) or
            "fsdp" (a share of the weights each); one process has no use for it.
    """

    steps: int
    context_length: int | None = None
    batch_size: int = 32
    accumulation: int = 1
    learning_rate: float = 3e-3
    warmup: int | None = None
    weight_decay: float = 0.1
    clip: float | None = 1.0
    label_smoothing: float = 0.0
    seed: int = 0
    every: int = 100
    patience: int | None = None
    bf16: bool = False
    compile: bool = False
    device: str | None = None
    parallel: Parallel = "ddp"

    def __post_init__(self):
        """Refuse settings that no run can follow.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        sizes = ("steps", "batch_size", "accumulation", "every")
        optional = [k for k in ("context_length", "patience") if getattr(self, k) is not None]
        check_size(**{name: getattr(self, name) for name in (*sizes, *optional)})
        for name, least in (("seed", 0), ("warmup", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and value >= least):
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
        if self.parallel not in get_args(Parallel):
            raise ValueError(f'parallel must be "ddp" or "fsdp", not {self.parallel!r}.')

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warmup = self.steps // 20 if self.warmup is None else self.warmup
        return self.learning_rate * cosine_schedule(step, self.steps, warmup)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON; `TrainingSettings(**settings)` reads them."""
        return asdict(self)


def make_optimiser(
    model: nn.Module, learning_rate: float, weight_decay: float = 0.1
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) that lets matrices decay, but not biases or norms.

    PyTorch's fused form, which takes about half the time, wherever it has one.
    """
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    fused = all(
        p.device.type in ("cpu", "cuda", "mps") and p.is_floating_point()
        for p in model.parameters()
    )
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), fused=fused)


def cosine_schedule(step: int, steps: int, warmup: int) -> float:
    """Share of the full learning rate at a step: a straight warm-up, then a cosine down to 0.1."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def pick_device(wanted: str | None = None) -> torch.device:
    """The device to train on: CUDA, else MPS, else the CPU, unless one is asked for.

    Raises:
        ValueError: if the one asked for is not there.
    """
    there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    found = [name for name, is_there in there.items() if is_there()] + ["cpu"]
    if wanted is not None and wanted.partition(":")[0] not in found:
        raise ValueError(f'device must be {" or ".join(found)} on this machine, not "{wanted}".')
    return torch.device(wanted or found[0])


def own_device(wanted: str | None, place: int) -> torch.device:
    """The device of one of the processes on a machine: a CUDA device of its own, or the CPU.

    Raises:
        ValueError: if there are fewer devices than processes, or several processes cannot use it.
    """
    device = pick_device(wanted)
    if device.type == "mps" and wanted is None:
        return torch.device("cpu")
    if device.type == "mps" or device.index is not None:
        raise ValueError(
            f'Several processes train on "cuda", a device for each, or on "cpu", not on "{wanted}".'
        )
    if device.type == "cpu":
        return device
    if place >= torch.cuda.device_count():
        raise ValueError(
            f"This machine has {torch.cuda.device_count()} CUDA devices, too few for its "
            f"process {place + 1}: start as many processes as devices, or choose the CPU."
        )
    device = torch.device("cuda", place)
    torch.cuda.set_device(device)
    return device
