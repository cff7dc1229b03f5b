"""What a training run computes on: the device, its precision, its memory and its speed."""

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from slp_transformer.config import TransformerConfig
from slp_transformer.language_model import TransformerLM
from slp_transformer.scaling_laws import count_parameters, training_flops_per_token
from slp_transformer.training.train_config import TrainConfig

BLOCK_OVERHEAD_BYTES = 20_000  # bytes of Python objects that a block consists of
BENCHMARK_MATRIX_SIZES = {"cpu": 1024, "cuda": 8192}
MEBIBYTE = 2**20


def available_devices() -> list[str]:
    """Return the kinds of devices of this machine, the fastest first."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [name for name, is_there in there.items() if is_there] + ["cpu"]


def pick_device(wanted: str | None = None) -> torch.device:
    """Return the device to train on: CUDA, else MPS, else the CPU, unless one is asked for.

    Raises:
        ValueError: if the one asked for is not there.
    """
    found = available_devices()
    if wanted is None or wanted in found:
        return torch.device(wanted or found[0])
    # A number among several, or a kind that others have brought to PyTorch.
    with contextlib.suppress(RuntimeError, AttributeError):  # as of no kind, or one not built in
        device = torch.device(wanted)
        known = device.type not in ("cuda", "mps") or device.type in found
        if known and (device.index or 0) < torch.get_device_module(device).device_count():
            return device
    raise ValueError(f'device must be {" or ".join(found)} on this machine, not "{wanted}".')


def device_for_rank(wanted: str | None, place: int) -> torch.device:
    """Return the device of one of several processes: a CUDA device of its own, or the CPU.

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


def cpu_default_device() -> contextlib.AbstractContextManager[object]:
    """Return a context in which tensors are made on the CPU, whatever the default device is."""
    # Not `torch.get_default_device`: in PyTorch 2.9 it fails after `set_default_device(None)`.
    by_default = torch.empty(0).device.type == "cpu"
    return contextlib.nullcontext() if by_default else torch.device("cpu")


# --- Precision -----------------------------------------------------------------------------------


def describe_arithmetic() -> dict[str, str]:
    """Return what the last bits of results rest on, beside the program, its data and devices."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo", "rb") as file:  # Linux
        named = next(line for line in file if line.startswith(b"model name"))
        processor = named.partition(b":")[2].decode("utf-8", "replace").strip()
    return {
        "threads": str(torch.get_num_threads()),
        "PyTorch": torch.__version__,
        "processor": f"{processor}, {torch.backends.cpu.get_cpu_capability()}",
    }


def uses_bf16(config: TrainConfig, device: torch.device) -> bool:
    """Return whether a run trains in bfloat16; by default, where CUDA supports it natively."""
    if config.bf16 is not None:
        return config.bf16
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def autocast(config: TrainConfig, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Compute matrix products in bfloat16, if the run does."""
    if not uses_bf16(config, device):
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


@contextlib.contextmanager
def float32_matmul_precision(config: TrainConfig, device: torch.device) -> Iterator[None]:
    """Allow or forbid TF32 on a CUDA device, and restore the caller's choice afterwards.

    With TF32 both sides of a product are rounded to ten bits after the point, and added up in
    float32.
    """
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high" if config.tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# --- Memory --------------------------------------------------------------------------------------


def check_memory(
    config: TransformerConfig,
    device: torch.device | None = None,
    *,
    copies: int = 1,
    batch: int = 0,
    encoder_decoder: bool = False,
) -> None:
    """Refuse a model, or a batch for it, that is larger than the machine, before it is built.

    Args:
        config: what it would be made of.
        device: what it would be on; the CPU if None.
        copies: of each parameter: 1 to compute with it, 4 to train it (its gradient and the two
            numbers that AdamW keeps).
        batch: tokens that go through it at once, of which each block keeps eight rows of d numbers
            at the least until the gradient is there (what both norms and the three products of
            a block were given and gave), and which each have |V| logits and their probabilities.
        encoder_decoder: whether it is an `EncoderDecoder` rather than a `TransformerLM`.

    Raises:
        ValueError: saying what it needs, what there is, and what to change.
    """
    count = count_parameters(config, encoder_decoder=encoder_decoder).total
    positions = config.context_length * config.model_dim  # not learned, maybe, but there
    blocks = config.num_blocks + (config.num_encoder_blocks or 0)
    needed = 4 * copies * count + 4 * positions + BLOCK_OVERHEAD_BYTES * blocks
    there = total_memory_bytes(device or torch.device("cpu"))
    for_batch = 2 * batch * (8 * config.model_dim * blocks + 2 * config.vocab_size)  # in bf16
    if needed + for_batch > there:
        of_batch = f" and a batch of {batch:,} tokens" if batch else ""
        raise ValueError(
            f"A model of {count:,} parameters in {blocks:,} blocks{of_batch} needs "
            f"{(needed + for_batch) / 1e9:,.0f} GB at the least, and here are {there / 1e9:,.0f} "
            "GB: choose a smaller batch_size (more gradient_accumulation_steps keep the steps the "
            "same), model_dim, num_blocks, vocab_size or context_length."
        )


def total_memory_bytes(device: torch.device) -> int:
    """Return the memory of a device in bytes; a terabyte for a CPU of unknown memory."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 10**12


# --- Speed ---------------------------------------------------------------------------------------


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
    """Computes model FLOPs utilization (MFU) and memory of a run's device.

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
        self.device: torch.device = device
        self.flops_per_token: int | None = None
        self.peak_flops: float | None = None
        trainable = all(W.requires_grad for W in model.parameters())  # frozen weights take fewer
        if isinstance(model, TransformerLM) and trainable:
            window = config.sequence_length or model.config.context_length
            self.flops_per_token = training_flops_per_token(model.config, window)
        if device.type == "cuda":
            dtype = torch.bfloat16 if uses_bf16(config, device) else torch.float32
            self.peak_flops = world_size * measure_matmul_flops(device, dtype)
            torch.cuda.reset_peak_memory_stats(device)

    def mfu(self, tokens_per_second: float) -> float | None:
        """Return the share of the device's peak FLOPs that training uses; None if unknown."""
        if self.flops_per_token is None or self.peak_flops is None:
            return None
        return tokens_per_second * self.flops_per_token / self.peak_flops

    def memory_bytes(self) -> int | None:
        """Return the most memory that tensors have taken on the device; None for a CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        if self.device.type == "mps":
            return torch.mps.driver_allocated_memory()
        return None


def format_speed(tokens_per_second: float) -> str:
    """Return tokens per second in a few characters: "950 tok/s", or with k or M for more."""
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if tokens_per_second >= scale:
            return f"{tokens_per_second / scale:.1f}{unit} tok/s"
    return f"{tokens_per_second:.0f} tok/s"


def format_duration(seconds: float) -> str:
    """Return a duration as "0:42", "12:05" or "1:02:03"."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
