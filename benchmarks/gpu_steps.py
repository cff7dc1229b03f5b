"""The steps of `gpu.py`, each as a function that is run in a process of its own."""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from peers import MODELS, VOCABULARY, Size, hugging_face, ours
from text_file import write
from timing import interleaved
from torch import nn

from slp_transformer.config import TransformerConfig
from slp_transformer.generation import generate
from slp_transformer.language_model import TransformerLM
from slp_transformer.scaling_laws import training_flops_per_token
from slp_transformer.training import train, training_step
from slp_transformer.training.devices import measure_matmul_flops, synchronize
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.train_config import TrainConfig

END = time.monotonic() + float(os.environ.get("SLP_SECONDS", "600"))
NEEDS = {"Hugging Face": "transformers", "x-transformers": "x_transformers", "litgpt": "litgpt"}
HELPFUL = (
    *("transformers", "x_transformers", "litgpt", "pytest", "jaxtyping", "beartype"),
    *("tokenizers", "pooch", "tomli_w", "pydantic", "mido", "tensorboard", "triton"),
)
ROOT = Path(__file__).resolve().parent.parent


class Skipped(Exception):
    """Why a step cannot be taken here."""


class Result(dict):
    """The results of a step, saved whenever there is more."""

    def __init__(self, path: Path):
        """Begin with nothing."""
        super().__init__({"table": {}, "left out": {}})
        self.path = path

    def note(self, row: str, value: str, **numbers: Any) -> None:
        """Add a line to the table, and numbers beside it."""
        self["table"][row] = value
        self.setdefault("numbers", {})[row] = numbers
        self.save()

    def leave_out(self, row: str, why: str) -> None:
        """Add what could not be measured, and the reason."""
        self["left out"][row] = why
        self.save()

    def save(self) -> None:
        """Write all of it."""
        write(self.path, json.dumps(self, indent=1) + "\n")


def take(asked: argparse.Namespace) -> None:
    """Take the step that is asked for."""
    result = Result(asked.out / f"{asked.step}.json")
    kind, _, which = asked.step.partition("-")
    try:
        globals()[f"step_{kind}"](asked, result, *([which] if which else []))
    except Skipped as why:
        result["skipped"] = str(why)
    result.save()


def left() -> float:
    """Seconds that the step may still take."""
    return END - time.monotonic()


def device_of(asked: argparse.Namespace) -> torch.device:
    """The device asked for, set as the one in use."""
    device = torch.device(asked.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise Skipped("there is no CUDA device")
    return device


def missing(*libraries: str) -> list[str]:
    """Which of some libraries are not installed."""
    return [name for name in libraries if importlib.util.find_spec(name) is None]


def need(*libraries: str) -> None:
    """Skip the step where a library is missing."""
    if gone := missing(*libraries):
        raise Skipped(f"{', '.join(gone)} not installed")


# --- Machine, numbers --------------------------------------------------------------------------


def step_machine(asked: argparse.Namespace, result: Result) -> None:
    """Describe the device, and measure its products of matrices."""
    device = device_of(asked)
    result.note("Python", platform.python_version())
    result.note("PyTorch", torch.__version__)
    commit = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    with contextlib.suppress(OSError):
        told = subprocess.run(commit, capture_output=True, text=True)
        result.note("commit", told.stdout.strip() or "unknown")
    result.note("date", time.strftime("%Y-%m-%d"))
    result.note("processor", f"{platform.machine()}, {os.cpu_count()} cores")
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory / 2**30
        count = torch.cuda.device_count()
        result.note("device", f"{count} × {torch.cuda.get_device_name(device)}, {memory:.0f} GiB")
        result.note("CUDA", str(torch.version.cuda))
    for name in missing(*HELPFUL):
        result.leave_out(name, "not installed")
    for name in ("bfloat16", "float32"):
        torch.set_float32_matmul_precision("high")
        speed = measure_matmul_flops(device, getattr(torch, name), 128 if asked.tiny else None)
        result.note(f"a product in {name}", f"{speed / 1e12:.2f} TFLOP/s", flops=speed)


def step_numbers(asked: argparse.Namespace, result: Result) -> None:
    """The suite's numerical tests on the device."""
    device_of(asked)
    need("pytest", "jaxtyping")
    names = ["layer_norm"] if asked.tiny else ["*"]
    tests = ROOT / "tests"
    chosen = re.findall(r'"(test_\w+)"', (tests / "conftest.py").read_text("utf-8"))
    files = [path for name in names for path in sorted(tests.glob(f"test_{name}.py"))]
    files = [str(path) for path in files if path.stem in chosen]
    how = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--device", asked.device, "-rs"]
    command = [sys.executable, "-m", "pytest", *how, *files]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=max(left(), 5))
    result["log"] = told.stdout[-20000:]
    counts = re.findall(r"(\d+) (passed|failed|skipped|errors?)", told.stdout)
    if not counts:
        raise RuntimeError(told.stdout[-2000:] + told.stderr[-2000:])
    result.note("numerical tests", ", ".join(" ".join(count) for count in counts))
    for line in re.findall(r"^FAILED (.*)$", told.stdout, re.MULTILINE)[:20]:
        result.note(line.partition(" - ")[0][-44:], "failed")


# --- Training steps ----------------------------------------------------------------------------


def step_train(asked: argparse.Namespace, result: Result, which: str) -> None:
    """A training step in bfloat16 beside the peers, eager and compiled."""
    device = device_of(asked)
    torch.set_float32_matmul_precision("high")
    blocks, width = map(int, which.split("x"))
    size = Size(blocks, width, width // 64, batch=64 if blocks < 10 else 32)
    if asked.tiny:
        size = Size(2, 32, 2, batch=2, context=16)
    names = contenders(result)
    peak = measure_matmul_flops(device, torch.bfloat16, 128 if asked.tiny else None)
    steps = {name: make_step(name, size, device) for name in names}
    compare("eager", steps, size, peak, device, result, rounds=2 if asked.tiny else 15)
    del steps
    compiled: dict[str, Callable[[], None]] = {}
    for name in names[:1] if asked.tiny else names:
        if left() < 25 and compiled:
            result.leave_out(f"{name}, compiled", "no time was left")
            continue
        try:
            how = "eager" if asked.tiny else "inductor"
            step, began = make_step(name, size, device, how), time.monotonic()
            step()
            synchronize(device)
            took = time.monotonic() - began
            result.note(f"{name}, to compile", f"{took:.1f} s", seconds=took)
            compiled[name] = step
        except Exception as error:
            result.leave_out(f"{name}, compiled", in_short(error))
    if "slp_transformer" in compiled:
        compare("compiled", compiled, size, peak, device, result, rounds=2 if asked.tiny else 15)


def contenders(result: Result) -> list[str]:
    """Those whose library is installed, ours first."""
    found = []
    for name in MODELS:
        if name in NEEDS and missing(NEEDS[name]):
            result.leave_out(name, f"{NEEDS[name]} not installed")
        else:
            found.append(name)
    return found


def make_step(
    name: str, size: Size, device: torch.device, backend: str | None = None
) -> Callable[[], None]:
    """A training step of a contender: bfloat16 by autocast, fused AdamW, perhaps compiled."""
    torch.manual_seed(0)
    model: nn.Module = MODELS[name](size, size.context).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model, backend=backend) if backend else model
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(VOCABULARY, (size.batch, size.context + 1), generator=generator).to(device)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16):
            U = run(ids[:, :-1])
        F.cross_entropy(U.flatten(0, 1).float(), ids[:, 1:].flatten()).backward()
        optimizer.step()

    return step


def compare(
    how: str,
    steps: dict[str, Callable[[], None]],
    size: Size,
    peak: float,
    device: torch.device,
    result: Result,
    rounds: int,
) -> None:
    """Time contenders in turn, and write each one's median and share of the device's speed."""
    seconds = interleaved(steps, rounds, warm_up=2, device=device)
    mine = seconds["slp_transformer"]
    flops = training_flops_per_token(ours(size, size.context).config, size.context)
    for name, took in seconds.items():
        median = statistics.median(took)
        ratio = statistics.median(t / m for t, m in zip(took, mine, strict=True))
        per_second = size.batch * size.context / median
        share = per_second * flops / peak
        told = f"{median * 1e3:8.2f} ms, {ratio:5.2f} × ours, {per_second:10,.0f} tokens/s"
        told += f", {share:.0%} of the device's speed"
        numbers = {"seconds": took, "ratio": ratio, "tokens_per_second": per_second}
        result.note(f"{name}, {how}", told, **numbers, utilisation=share)


def step_decode(asked: argparse.Namespace, result: Result, which: str) -> None:
    """Greedy words, with a cache: ours, and Hugging Face's model in a loop."""
    device, batch, new = device_of(asked), int(which[1:]), 256
    size = Size(6, 384, 6, batch)
    if asked.tiny:
        size, new = Size(2, 32, 2, batch), 8
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = ours(size, new + 1).to(device, dtype).eval()
    prompts = [[0]] * batch
    work = {"slp_transformer": lambda: generate(model, prompts, new, temperature=0)}
    if missing("transformers"):
        result.leave_out("Hugging Face", "transformers not installed")
    else:
        peer = hugging_face(size, new + 1).to(device, dtype).eval()
        work["Hugging Face, a loop"] = lambda: write_hugging_face(peer, batch, new, device)
    seconds = interleaved(work, 1 if asked.tiny else 3, warm_up=2, device=device)
    mine = seconds["slp_transformer"]
    for name, took in seconds.items():
        ratio = statistics.median(t / m for t, m in zip(took, mine, strict=True))
        each = statistics.median(took) / new
        result.note(name, f"{each * 1e3:8.3f} ms a token, {ratio:5.2f} × ours", seconds=took)


@torch.inference_mode()
def write_hugging_face(model: nn.Module, batch: int, new: int, device: torch.device) -> None:
    """A loop over the model with its default cache; `generate` itself is slower."""
    ids, cache = torch.zeros(batch, 1, dtype=torch.long, device=device), None
    for _ in range(new):
        out = model(input_ids=ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = out.logits[:, -1].argmax(-1, keepdim=True)


# --- Whole runs --------------------------------------------------------------------------------


def step_shakespeare(asked: argparse.Namespace, result: Result) -> None:
    """The preset `shakespeare-gpu` to its end."""
    from slp_transformer.data import prepare_corpus

    if asked.text is None:
        raise Skipped("no --text was given")
    text = prepare_corpus(asked.text, "characters", val_split=0.1)
    run_preset("shakespeare-gpu", text, asked, result)


def step_guitar(asked: argparse.Namespace, result: Result) -> None:
    """The preset `guitar-gpu` to its end."""
    from slp_guitar import prepare_tab_dataset
    from slp_transformer.data.dataset import Dataset

    if asked.tabs is None:
        raise Skipped("no --tabs was given")
    learned, unseen = asked.tabs / "train", asked.tabs / "valid"
    parted = learned.is_dir() and unseen.is_dir()
    sources = (learned, unseen) if parted else (asked.tabs,)
    tabs = prepare_tab_dataset(*sources)
    result.note("held out", "the folder valid" if parted else "a tenth of the pieces")
    data = Dataset(tabs.tokenizer, tabs.train_data, tabs.val_data)
    run_preset("guitar-gpu", data, asked, result)


def run_preset(name: str, data: Any, asked: argparse.Namespace, result: Result) -> None:
    """Train as a preset says, and write each measurement down as it comes."""
    from slp_transformer.tasks.config_files import load_config
    from slp_transformer.tasks.registry import load_task

    device, preset = device_of(asked), load_config(name)
    task = load_task(preset.data.task)
    settings = replace(preset.train, device=asked.device)
    config = task.model_config(preset, data.tokenizer)
    if asked.tiny:
        settings = replace(
            settings, steps=4, eval_interval=2, batch_size=2, compile=False, bf16=False
        )
        small = {"model_dim": 32, "num_heads": 2, "num_blocks": 1, "context_length": 16}
        config = replace(config, **small)
    elif settings.compile and (why := refusal_to_compile(device)):
        result.leave_out("the compiler", why)
        settings = replace(settings, compile=False)
    folder = None
    if missing("pydantic"):
        result.leave_out("checkpoints on the way", "pydantic not installed")
    else:
        folder = asked.out / f"{name}-run-{time.time_ns()}"
    torch.manual_seed(settings.seed)
    model, began = task.build_model(config), time.monotonic()
    size = sum(parameter.numel() for parameter in model.parameters())
    result.note("parameters", f"{size:,}")
    result.note("tokens", f"{len(data.train):,} training, {len(data.val):,} validation")
    result["records"] = []

    def report(record: Any) -> None:
        result["records"].append(vars(record) | {"seconds": time.monotonic() - began})
        best = min(result["records"], key=lambda row: row["val_loss"])
        told = f"{best['val_loss']:.4f} nats a token after step {best['step']:,}"
        result.note("best so far, held out", f"{told}, {best['seconds']:.0f} s")
        if left() < 3:
            raise TimeoutError

    sizes = replace(preset.model, context_length=config.context_length)
    train_data, val_data = task.sources(replace(preset, model=sizes, train=settings), data)
    with contextlib.suppress(TimeoutError):
        train(
            model,
            train_data,
            val_data,
            settings,
            out_dir=folder,
            progress=False,
            report=report,
        )
    last = result["records"][-1]
    whole = last["step"] == settings.steps or settings.early_stopping_patience is not None
    end = "to its end" if whole else f"cut off at step {last['step']:,} of {settings.steps:,}"
    seconds = time.monotonic() - began
    result.note("the run", f"{end}, {seconds:.0f} s with all measurements", seconds=seconds)
    per_second = last["step"] * settings.batch_size * settings.gradient_accumulation_steps
    per_second *= (settings.sequence_length or config.context_length) / seconds
    result.note("tokens per second, measurements included", f"{per_second:,.0f}")
    if folder is not None:
        result["metrics"] = json.loads((folder / "metrics.json").read_text("utf-8"))
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device) / 2**20
        result.note("memory", f"{memory:,.0f} MiB at most")


def refusal_to_compile(device: torch.device) -> str:
    """Why nothing can be compiled here; nothing if it can."""
    try:
        torch.compile(lambda X: X.exp() + 1)(torch.ones(8, device=device))
    except Exception as error:  # no Triton, no C compiler, or a device that is too old
        return in_short(error)
    return ""


STREAM = torch.arange(64).repeat(64)


def small_model() -> TransformerLM:
    """A model that learns to count."""
    torch.manual_seed(0)
    return TransformerLM(TransformerConfig(64, 32, model_dim=64, num_heads=4, num_blocks=2))


def step_resume(asked: argparse.Namespace, result: Result) -> None:
    """Kill a run, take it up again, and compare with one that was left alone."""
    device_of(asked)
    need("pydantic", "safetensors")
    steps = 40 if asked.tiny else 200
    how = {"steps": steps, "eval_interval": steps // 10, "device": asked.device, "progress": False}
    whole = train(small_model(), STREAM, STREAM, **how)
    folder = asked.out / f"killed-{time.time_ns()}"
    code = "import gpu_steps, sys; gpu_steps.be_killed(sys.argv[1], sys.argv[2])"
    told = in_own_process([sys.executable], code, str(folder), json.dumps(how))
    if told.returncode in (0, 1):  # neither killed nor ended by a signal
        raise RuntimeError(f"the run was not killed: {told.stderr[-4000:]}")
    again = train(small_model(), STREAM, STREAM, out_dir=folder, resume=True, **how)
    off = abs(again[-1].val_loss - whole[-1].val_loss)
    result.note("killed half-way and resumed", f"loss off by {off:.1e} nats", off=off)


def in_own_process(command: list[str], code: str, *words: str) -> subprocess.CompletedProcess:
    """Run code where this file can be imported, with what is installed here."""
    paths = os.pathsep.join(sys.path)
    limit = {"timeout": max(left(), 5), "capture_output": True, "text": True}
    return subprocess.run(
        [*command, "-c", code, *words], env=os.environ | {"PYTHONPATH": paths}, **limit
    )


def be_killed(folder: str, how: str) -> None:
    """Train, and be killed half-way."""
    how = json.loads(how)
    train(small_model(), STREAM, STREAM, out_dir=folder, report=die_at(how["steps"] // 2), **how)


def die_at(step: int) -> Callable[[Any], None]:
    """A callback that kills its process once a step is reached."""

    def report(record: Any) -> None:
        if record.step >= step:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    return report


def step_sharded(asked: argparse.Namespace, result: Result) -> None:
    """Training with the weights in shards, on as many devices as there are."""
    device = device_of(asked)
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    result.note("devices", str(count))
    if count > 1:
        how = ["--standalone", f"--nproc-per-node={count}", "--no-python", sys.executable]
        code = "import gpu_steps, sys; gpu_steps.in_shards(sys.argv[1:])"
        command = [sys.executable, "-m", "torch.distributed.run", *how]
        told = in_own_process(command, code, asked.device)
        if told.returncode:
            raise RuntimeError(told.stderr[-4000:])
        losses = json.loads(told.stdout.strip().splitlines()[-1])
    else:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0"}
        os.environ |= {"WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        losses = in_shards([asked.device])
    alone = losses_of_steps(device)
    off = max(abs(a - b) for a, b in zip(losses, alone, strict=True))
    result.note("loss of ten steps", f"off by {off:.1e} nats from one device's", off=off)


def in_shards(arguments: list[str]) -> list[float]:
    """Losses of ten steps with the weights in shards; the first process prints them."""
    from slp_transformer.training.devices import device_for_rank
    from slp_transformer.training.distributed import FSDPStrategy

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device(arguments[0])
    if device.type == "cuda":
        device = device_for_rank("cuda", int(os.environ["LOCAL_RANK"]))
    with FSDPStrategy(device, rank, size, None) as team:
        losses = losses_of_steps(device, team)
    if rank == 0:
        print(json.dumps(losses))
    return losses


def losses_of_steps(device: torch.device, team: Any = None) -> list[float]:
    """Losses of ten steps of a small model in float32."""
    from slp_transformer.data.batches import TokenWindowSource
    from slp_transformer.training.strategy import Strategy

    team = team or Strategy(device)
    settings = TrainConfig(steps=10, batch_size=8, bf16=False, tf32=False)
    model = team.wrap(small_model(), lambda _: False)  # each parameter is a part of the loss
    optimizer = make_optimizer(model, settings)
    windows, generator = TokenWindowSource(STREAM, 32), torch.Generator().manual_seed(0)
    losses = []
    for step in range(10):
        batch = windows.draw(8 * team.world_size, generator)
        losses.append(training_step(model, batch, optimizer, step, settings, device, team).item())
    return losses


def in_short(error: BaseException) -> str:
    """An error in a line."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"[:300]
