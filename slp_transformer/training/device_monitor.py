"""What a device is told before a run, and what it tells of itself: its memory and its speed."""

import contextlib
import statistics
import time
from collections.abc import Iterator

import torch
from torch import nn

from slp_transformer.language_model import TransformerLM
from slp_transformer.scaling_laws import training_flops
from slp_transformer.training.train_config import TrainConfig

SIDES = {"cpu": 1024, "cuda": 8192}  # of the square matrices whose product tells a device's speed
MEBIBYTE = 2**20


def uses_bfloat16(settings: TrainConfig, device: torch.device) -> bool:
    """Whether a run computes its products in bfloat16, for settings that may leave it open."""
    if settings.bf16 is not None:
        return settings.bf16
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


@contextlib.contextmanager
def float32_products(settings: TrainConfig, device: torch.device) -> Iterator[None]:
    """Have a CUDA device compute products in float32 as the settings say, and afterwards as before.

    With TF32 both sides of a product are rounded to ten bits after the point, and added up in
    float32. On other devices nothing changes.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if settings.tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# --- How fast it is ----------------------------------------------------------------------------


def synchronise(device: torch.device) -> None:
    """Wait until a device has done all that it was asked for."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def product_speed(device: torch.device, dtype: torch.dtype, sides: int | None = None) -> float:
    """Operations a second in a product of two large square matrices, the median of ten products.

    That is what a device can be brought to do in practice: less than what its data sheet says.

    Args:
        device: which device.
        dtype: of the matrices.
        sides: of the matrices; as many as the kind of device needs to come to its speed if None.
    """
    sides = sides or SIDES.get(device.type, 4096)
    A, B = (torch.ones(sides, sides, dtype=dtype, device=device) for _ in range(2))
    seconds = []
    for _ in range(13):  # the first three begin it
        synchronise(device)
        start = time.perf_counter()
        A @ B
        synchronise(device)
        seconds.append(time.perf_counter() - start)
    return 2 * sides**3 / statistics.median(seconds[3:])


class Gauge:
    """Reads from a device what a run makes of it.

    Attributes:
        flops: operations that training takes for one token, see `training_flops`; None if unknown.
        peak: operations a second that the device was measured to do; None where it was not.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: TrainConfig,
        device: torch.device,
        processes: int = 1,
    ):
        """Measure the device's speed, if it is a CUDA device: that takes a moment.

        Args:
            model: what is trained.
            settings: how.
            device: on what.
            processes: how many devices like this one share the work.
        """
        self.device, self.flops, self.peak = device, None, None
        whole = all(W.requires_grad for W in model.parameters())  # frozen weights take fewer
        if isinstance(model, TransformerLM) and whole:
            window = settings.sequence_length or model.config.context_length
            self.flops = training_flops(model.config, window)
        if device.type == "cuda":
            dtype = torch.bfloat16 if uses_bfloat16(settings, device) else torch.float32
            self.peak = processes * product_speed(device, dtype)
            torch.cuda.reset_peak_memory_stats(device)

    def utilisation(self, tokens_per_second: float) -> float | None:
        """The share of the device's speed that training comes to, as the field counts it (MFU)."""
        if self.flops is None or self.peak is None:
            return None
        return tokens_per_second * self.flops / self.peak

    def memory(self) -> int | None:
        """Bytes of the device's memory that tensors have taken at most; None for a CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        if self.device.type == "mps":
            return torch.mps.driver_allocated_memory()
        return None

    def __call__(self, tokens_per_second: float) -> str:
        """Both in a few words, as far as they are known: ", 41% of its speed, 1,234 MiB"."""
        share, memory = self.utilisation(tokens_per_second), self.memory()
        said = "" if share is None else f", {share:.0%} of its speed"
        return said if memory is None else f"{said}, {memory / MEBIBYTE:,.0f} MiB"
