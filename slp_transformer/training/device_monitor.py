"""Measure a device: its speed, how much of it training uses, and memory."""

import statistics
import time

import torch
from torch import nn

from slp_transformer.language_model import TransformerLM
from slp_transformer.scaling_laws import training_flops_per_token
from slp_transformer.training.precision import uses_bf16
from slp_transformer.training.train_config import TrainConfig

BENCHMARK_MATRIX_SIZES = {"cpu": 1024, "cuda": 8192}
MEBIBYTE = 2**20


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all queued work."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def measure_matmul_flops(
    device: torch.device, dtype: torch.dtype, size: int | None = None
) -> float:
    """Measure operations per second in the product of two square matrices, the median of ten.

    That is what a device reaches in practice: less than what its data sheet says.

    Args:
        device: the device.
        dtype: of the matrices.
        size: their rows and columns; enough for the kind of device to reach its speed if None.
    """
    size = size or BENCHMARK_MATRIX_SIZES.get(device.type, 4096)
    A, B = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    seconds = []
    for _ in range(13):  # the first three warm it up
        synchronize(device)
        start = time.perf_counter()
        A @ B
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(seconds[3:])


class DeviceMonitor:
    """Tells model FLOPs utilization (MFU) and memory of a run's device.

    Attributes:
        flops_per_token: operations of training on one token, see `training_flops_per_token`; None
            if unknown.
        peak_flops: operations per second that the device was measured at; None where it was not.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        device: torch.device,
        world_size: int = 1,
    ):
        """Measure the device's speed, if it is a CUDA device: that takes a moment.

        Args:
            model: the model that is trained.
            config: the settings of the run.
            device: the device.
            world_size: how many devices like this one share the work.
        """
        self.device, self.flops_per_token, self.peak_flops = device, None, None
        trainable = all(W.requires_grad for W in model.parameters())  # frozen weights take fewer
        if isinstance(model, TransformerLM) and trainable:
            window = config.sequence_length or model.config.context_length
            self.flops_per_token = training_flops_per_token(model.config, window)
        if device.type == "cuda":
            dtype = torch.bfloat16 if uses_bf16(config, device) else torch.float32
            self.peak_flops = world_size * measure_matmul_flops(device, dtype)
            torch.cuda.reset_peak_memory_stats(device)

    def mfu(self, tokens_per_second: float) -> float | None:
        """The share of the device's peak FLOPs that training uses; None if unknown."""
        if self.flops_per_token is None or self.peak_flops is None:
            return None
        return tokens_per_second * self.flops_per_token / self.peak_flops

    def memory_bytes(self) -> int | None:
        """The most memory that tensors have taken on the device; None for a CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        if self.device.type == "mps":
            return torch.mps.driver_allocated_memory()
        return None

    def summary(self, tokens_per_second: float) -> str:
        """Both as far as they are known: " | MFU 41% | 1,234 MiB"."""
        mfu, memory = self.mfu(tokens_per_second), self.memory_bytes()
        text = "" if mfu is None else f" | MFU {mfu:.0%}"
        return text if memory is None else f"{text} | {memory / MEBIBYTE:,.0f} MiB"
