"""Measure speed and memory of training and writing, compared with other libraries.

Usage::

    python benchmarks/language_models.py train --size 6x384
    python benchmarks/language_models.py train --size 4x128 --type bfloat16
    python benchmarks/language_models.py train --size 6x384 --compile
    python benchmarks/language_models.py memory --size 6x384
    python benchmarks/language_models.py train --size 4x128 --dropout 0.1 --busy
    python benchmarks/language_models.py decode --size 6x384 --batch 16

The peers are installed beside the package: ``pip install transformers x-transformers litgpt``.

Everything is compared within one interleaved run: in every round each contender does the same work
once, in an order that rotates, so that whatever else the machine is doing meets all alike. What is
printed is the median over the rounds of the peer's time divided by ours: above 1, we are ahead.
"""

import argparse
import contextlib
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from peers import MODELS, SIZES, VOCABULARY, Size, hugging_face, litgpt, ours
from timing import compare, interleaved, keep, one_core_busy
from torch import nn

from slp_transformer import generate
from slp_transformer.scaling_laws import count_parameters

# --- One step of training ----------------------------------------------------------------------


def make_step(
    name: str, size: Size, dtype: torch.dtype, device: str, compiled: bool
) -> Callable[[], None]:
    """A training step of a contender, as a function without arguments."""
    torch.manual_seed(0)
    model = MODELS[name](size, size.context).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    if compiled:
        model = torch.compile(model)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(VOCABULARY, (size.batch, size.context + 1), generator=generator).to(device)
    context = contextlib.nullcontext()
    if dtype == torch.bfloat16:
        context = torch.autocast(device, torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad()
        with context:
            U = model(ids[:, :-1])
        F.cross_entropy(U.flatten(0, 1).float(), ids[:, 1:].flatten()).backward()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return step


def train(settings: argparse.Namespace) -> dict:
    """Time training steps, and a plain product for the machine's peak."""
    size = replace(SIZES[settings.size], dropout=settings.dropout)
    dtype, names = getattr(torch, settings.type), settings.only or list(MODELS)
    if size.dropout:
        names = [name for name in names if name != "litgpt"]
    how = dtype, settings.device, settings.compile
    steps = {name: make_step(name, size, *how) for name in names}
    sides = 2048 if settings.device == "cpu" else 8192
    seconds = interleaved(
        steps | {"product": product(sides, dtype, settings.device)}, settings.rounds
    )
    peak = 2 * sides**3 / statistics.median(seconds.pop("product"))
    table = compare(seconds, 1000, "ms")
    print(f"A product of two matrices of {sides} by {sides}: {peak / 1e9:.1f} GFLOP/s")
    for name, took in seconds.items():
        per_second = size.batch * size.context / statistics.median(took)
        share = per_second * flops_per_token(size) / peak
        table[name] |= {"tokens per second": per_second, "share of the peak": share}
        print(f"{name:16} {per_second:10,.0f} tokens/s {share:7.0%} of that")
    return table | {"peak": {"GFLOP per second": peak / 1e9, "sides": sides}}


def flops_per_token(size: Size) -> float:
    """Operations of a forward and a backward pass for one token, as models are compared by them.

    That is 6 for each weight that is multiplied with, and 12·L·d·N for attention, of which a causal
    model needs only half (Chowdhery et al. 2022, appendix B). What a library computes twice, or
    leaves out, changes nothing in the count.
    """
    config = ours(size, size.context).config
    weights = count_parameters(config).matrices + config.vocab_size * config.model_dim
    return 6 * weights + 12 * size.blocks * size.width * size.context


def product(sides: int, dtype: torch.dtype, device: str) -> Callable[[], None]:
    """A product of two square matrices; in float32 where there is nothing faster."""
    if device == "cpu" and not has_native_bf16():
        dtype = torch.float32
    A, B = (torch.randn(sides, sides, dtype=dtype, device=device) for _ in range(2))

    def multiply() -> None:
        torch.mm(A, B)
        if device != "cpu":
            torch.cuda.synchronize()

    return multiply


# --- Memory of a step --------------------------------------------------------------------------


def has_native_bf16() -> bool:
    """Return whether this machine's CPU has instructions for products in bfloat16; True if unknown.

    Without them PyTorch computes the same numbers by other means, which take longer than float32.
    """
    # PyTorch has no public name for it. Of an x86 CPU, oneDNN also supports what it has to emulate.
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    module = torch.cpu if x86 else torch.ops.mkldnn
    x86_names = ["_is_avx512_bf16_supported", "_is_amx_tile_supported"]
    names = x86_names if x86 else ["_is_mkldnn_bf16_supported"]
    return any(getattr(module, name, lambda: True)() for name in names)


def memory(settings: argparse.Namespace) -> dict:
    """Peak memory of a few training steps above that of the loaded process.

    Each number is the median over as many processes as there are rounds, which differ by a few
    percent: the C library's heap is left with other holes every time.
    """
    if platform.system() != "Linux":
        raise SystemExit("Peak memory is measured on Linux only: this reads /proc/self/status.")
    names, found = settings.only or list(MODELS), {}
    for _ in range(settings.rounds):
        for name in names:
            found.setdefault(name, []).append(peak_of(name, settings.size, settings.type))
    table = {}
    for name, peaks in found.items():
        table[name] = {"MiB": statistics.median(peaks), "from": min(peaks), "to": max(peaks)}
        print("{:16} {MiB:8.0f} MiB ({from:.0f} to {to:.0f})".format(name, **table[name]))
    return table


def peak_of(*what: str) -> float:
    """Return the output of `print_peak` in a process of its own."""
    command = [sys.executable, "-c", "import language_models; language_models.print_peak()", *what]
    here = Path(__file__).parent
    found = subprocess.run(command, cwd=here, check=True, capture_output=True, text=True)
    return float(found.stdout.split()[-1])


def print_peak() -> None:
    """Print the peak memory of three training steps above that of the process before, in MiB.

    Before means: with everything imported and a step of a tiny model done, so that what libraries
    set aside once is not counted, but weights, gradients, optimizer and activations are.
    """
    name, size, dtype = sys.argv[1], SIZES[sys.argv[2]], getattr(torch, sys.argv[3])
    make_step(name, Size(1, 32, 2, 2, 16), dtype, "cpu", False)()
    before = status("VmRSS")
    step = make_step(name, size, dtype, "cpu", False)
    for _ in range(3):
        step()
    print(status("VmHWM") - before)


def status(which: str) -> float:
    """A number of this process in MiB, as Linux tells it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(which)) / 1024


# --- Writing -----------------------------------------------------------------------------------


def decode(settings: argparse.Namespace) -> dict:
    """Time greedy decoding from a prompt of one token, with each library's key-value cache."""
    size, new, batch = SIZES[settings.size], settings.new, settings.batch
    context = new + 1
    torch.manual_seed(0)
    start = torch.zeros(batch, 1, dtype=torch.long, device=settings.device)
    contenders = {
        "slp_transformer": (ours, write_ours),
        "Hugging Face": (hugging_face, write_hugging_face),
        "litgpt": (litgpt, write_litgpt),
    }
    work = {}
    for name in settings.only or contenders:
        make, write = contenders[name]
        work[name] = write(make(size, context).to(settings.device).eval(), start, new)
    return compare(interleaved(work, settings.rounds), 1000 / new, "ms/token")


def write_ours(model: nn.Module, start: torch.Tensor, new: int) -> Callable[[], None]:
    """`slp_transformer.generate`."""
    prompts = start.tolist()
    return lambda: generate(model, prompts, new, temperature=0)


def write_hugging_face(model: nn.Module, start: torch.Tensor, new: int) -> Callable[[], None]:
    """A loop over the model with its default cache; `generate` itself is slower."""

    @torch.inference_mode()
    def loop() -> None:
        ids, cache = start, None
        for _ in range(new):
            out = model(input_ids=ids, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            ids = out.logits[:, -1].argmax(-1, keepdim=True)

    return loop


def write_litgpt(model: nn.Module, start: torch.Tensor, new: int) -> Callable[[], None]:
    """A loop as litgpt's own generate has it, for a batch."""

    @torch.inference_mode()
    def loop() -> None:
        model.set_kv_cache(batch_size=len(start), device=start.device)
        ids, positions = start, torch.arange(1, device=start.device)
        for place in range(new):
            U = model(ids, positions, input_pos_maxp1=place + 1)
            ids, positions = U[:, -1].argmax(-1, keepdim=True), positions + 1
        model.clear_kv_cache()

    return loop


# --- The command -------------------------------------------------------------------------------


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("train", "text", "memory", "decode"))
    parser.add_argument("--size", choices=SIZES, default="6x384")
    parser.add_argument("--type", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--compile", action="store_true", help="run every model compiled")
    parser.add_argument("--dropout", type=float, default=0.0, help="for those that have dropout")
    parser.add_argument("--busy", action="store_true", help="keep one core busy with other work")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=1, help="prompts, for decode")
    parser.add_argument("--new", type=int, default=512, help="tokens to write, for decode")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--only", nargs="+", help="contenders to run; ours must be among them")
    parser.add_argument("--save", type=Path, help="JSON file to write the table to")
    settings = parser.parse_args()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    kinds = {"train": train, "memory": memory, "decode": decode}
    with one_core_busy() if settings.busy else contextlib.nullcontext():
        table = kinds[settings.what](settings)
    keep(settings, table)


if __name__ == "__main__":
    main()
