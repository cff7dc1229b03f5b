"""The precision in which a model is trained."""

import contextlib
import platform
from collections.abc import Iterator

import torch

from slp_transformer.training.train_config import TrainConfig

BF16_EMULATED_WARNING = (
    "This CPU has no bfloat16 instructions: bf16 takes many times as long as float32 here, so "
    "leave bf16 out."
)


def uses_bf16(config: TrainConfig, device: torch.device) -> bool:
    """Tell if a run trains in bfloat16; by default where CUDA supports it natively."""
    if config.bf16 is not None:
        return config.bf16
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def autocast(config: TrainConfig, device: torch.device) -> contextlib.AbstractContextManager:
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
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if config.tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def has_native_bf16() -> bool:
    """Tell if this machine's CPU multiplies in bfloat16; True if unknown.

    Without them PyTorch computes the same numbers by other means, which take longer than float32.
    """
    # PyTorch has no public name for it. Of an x86 CPU, oneDNN also supports what it has to emulate.
    if platform.machine().lower() in ("x86_64", "amd64"):
        module, names = torch.cpu, ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    else:
        module, names = torch.ops.mkldnn, ("_is_mkldnn_bf16_supported",)
    probes = [getattr(module, name, None) for name in names]
    return None in probes or any(probe() for probe in probes)
