"""The precision in which a model is trained."""

import contextlib
import platform

import torch

from slp_transformer.training.device_monitor import uses_bfloat16
from slp_transformer.training.train_config import TrainConfig

SLOW_BF16 = (
    "This CPU has no bfloat16 instructions: bf16 takes many times as long as float32 here, so "
    "leave bf16 out."
)


def autocast(settings: TrainConfig, device: torch.device) -> contextlib.AbstractContextManager:
    """Matrix products in bfloat16, if the settings say so or leave it to the device."""
    if not uses_bfloat16(settings, device):
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def has_bfloat16() -> bool:
    """Whether this machine's CPU has instructions for products in bfloat16; True if unknown.

    Without them PyTorch computes the same numbers by other means, which take longer than float32.
    """
    # PyTorch has no public name for it. Of an x86 CPU, oneDNN also supports what it has to emulate.
    if platform.machine().lower() in ("x86_64", "amd64"):
        asked = torch.cpu, ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    else:
        asked = torch.ops.mkldnn, ("_is_mkldnn_bf16_supported",)
    probes = [getattr(asked[0], name, None) for name in asked[1]]
    return None in probes or any(probe() for probe in probes)
