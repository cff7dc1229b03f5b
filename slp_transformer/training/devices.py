"""The device of a training run."""

import os

import torch

from slp_transformer.config import TransformerConfig
from slp_transformer.scaling_laws import count_parameters

BLOCK_OVERHEAD_BYTES = 20_000  # bytes of Python objects that a block consists of


def pick_device(wanted: str | None = None) -> torch.device:
    """The device to train on: CUDA, else MPS, else the CPU, unless one is asked for.

    Raises:
        ValueError: if the one asked for is not there.
    """
    there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    found = [name for name, is_there in there.items() if is_there()] + ["cpu"]
    if wanted is None or wanted in found:
        return torch.device(wanted or found[0])
    try:  # a number among several, or a kind that others have brought to PyTorch
        device = torch.device(wanted)
        count = torch.get_device_module(device).device_count()
        if (device.type in found or device.type not in there) and (device.index or 0) < count:
            return device
    except (RuntimeError, AttributeError):  # no kind of device, or one that is not built in
        pass
    raise ValueError(f'device must be {" or ".join(found)} on this machine, not "{wanted}".')


def device_for_rank(wanted: str | None, place: int) -> torch.device:
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


# --- How much there is -------------------------------------------------------------------------


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
    if needed <= there < needed + for_batch:
        raise ValueError(
            f"A batch of {batch:,} tokens needs {for_batch / 1e9:,.0f} GB at least on top of the "
            f"model's {needed / 1e9:,.0f}, and here are {there / 1e9:,.0f} GB: choose a smaller "
            "batch_size or context_length (more gradient_accumulation_steps keep the steps the "
            "same)."
        )
    if needed > there:
        raise ValueError(
            f"A model of {count:,} parameters in {blocks:,} blocks needs "
            f"{needed / 1e9:,.0f} GB at the least, and here are {there / 1e9:,.0f} GB: choose a "
            "smaller model_dim, num_blocks, vocab_size or context_length."
        )


def total_memory_bytes(device: torch.device) -> int:
    """The memory of a device in bytes; for a CPU where the system does not tell, a terabyte."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 10**12
