"""Several processes with a whole model each, which add up their gradients (DDP).

They find each other, work in step and part; and when one of them dies, the others say so.
"""

import atexit
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.data.batches import Batch
from slp_transformer.training.strategy import Team
from slp_transformer.training.trainer_state import flat

TIMEOUT = timedelta(minutes=10)  # how long a process waits for one that does not answer
LOST = re.compile("gloo|nccl|connection|socket|peer|timed out", re.IGNORECASE)


class Replicas(Team):
    """Processes with a whole model each, that add up their gradients (DDP)."""

    def __init__(self, device: torch.device, rank: int, size: int, kept: Path | None):
        """Be one of several.

        Args:
            device: what this process computes on.
            rank: its number, from 0.
            size: how many there are.
            kept: the folder of the run, if it has one.
        """
        super().__init__(device)
        self.rank, self.size, self.kept = rank, size, kept
        self.asked: tuple[Tensor, dist.Work] | None = None
        self.beside: dist.ProcessGroup | None = None  # for what lies on the CPU, if need be

    def __str__(self) -> str:
        """The devices, as in "2 × CUDA"."""
        return f"{self.size} × {self.device.type.upper()}"

    # Beginning and end.

    def __enter__(self) -> "Replicas":
        """Meet the others, unless that was done already; the next run will find them met.

        Raises:
            ConnectionError: if they do not come.
        """
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo"
            try:
                dist.init_process_group(backend, timeout=TIMEOUT)
            except (RuntimeError, dist.DistError) as error:
                raise ConnectionError(
                    f"Process {self.rank} of {self.size} could not meet the others "
                    f"({in_short(error)}): start all of them, with the same rendezvous."
                ) from error
            atexit.register(part)
        elif "cpu:" not in dist.get_backend_config():  # of the script that met them, NCCL alone
            self.beside = dist.new_group(backend="gloo", timeout=TIMEOUT)
        self.before = None
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGTERM, self.end)
        return self

    def end(self, *_) -> None:
        """Heed SIGTERM, which torchrun sends to the others when one process has died.

        Raises:
            ConnectionError: always.
        """
        raise ConnectionError(self.farewell("torchrun or the cluster ended it"))

    def __exit__(self, kind, error, trace) -> None:
        """End the work together, well or not.

        Raises:
            ConnectionError: in place of what PyTorch says when another process is gone.
        """
        lost = isinstance(error, RuntimeError) and LOST.search(str(error))
        if not lost and not isinstance(error, ConnectionError | dist.DistError):
            if self.before is not None:
                signal.signal(signal.SIGTERM, self.before)
            if self.asked is not None:
                with suppress(RuntimeError):
                    self.asked[1].wait()
            return
        atexit.unregister(part)  # there may be nobody left to part from
        if self.before is not None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # or torchrun's cuts the sentence off
        if not isinstance(error, ConnectionError):
            raise ConnectionError(self.farewell(in_short(error))) from error

    def farewell(self, reason: str) -> str:
        """Why this process ends, and how the run goes on."""
        end = f"Process {self.rank} of {self.size} ends, since another one died or is out of reach"
        if self.kept is None:
            return f"{end} ({reason}). Nothing was kept of the run."
        return (
            f"{end} ({reason}). The last checkpoint in {self.kept} stands: to go on from there, "
            "start the processes again, with resume=True."
        )

    # Work.

    def wrap(self, model: nn.Module) -> nn.Module:
        """A replica that begins with the first process's weights."""
        on = [self.device] if self.device.type == "cuda" else None
        self.begin_alike(model)
        self.model = nn.parallel.DistributedDataParallel(
            model.to(self.device), on, gradient_as_bucket_view=True
        )
        return self.model

    def begin_alike(self, model: nn.Module) -> None:
        """Send out the first process's weights, one at a time."""
        for tensor in (*model.parameters(), *model.buffers()):
            there = tensor.detach().to(self.device)
            dist.broadcast(there, 0)
            tensor.detach().copy_(there)

    def share(self, batch: Batch) -> Batch:
        """As many sequences as every other process gets."""
        return batch.share(self.rank, self.size)

    def parts(self, batch: Batch, size: int) -> Iterator[Batch]:
        """The parts of this process's share; gradients wait for the last of them."""
        parts = self.share(batch).split(size)
        for part in parts:
            with self.exchanging(part is parts[-1]):
                yield part

    def exchanging(self, now: bool) -> Any:
        """A context in which gradients are exchanged, or kept until later."""
        return nullcontext() if now else self.model.no_sync()

    def backward(self, loss: Tensor) -> None:
        """Make up for the mean over processes, which PyTorch takes where a sum is wanted."""
        (loss * self.size).backward()

    def sum(self, share: Tensor) -> Tensor:
        """The sum over all processes, which comes out the same in each."""
        dist.all_reduce(share, group=self.beside if share.device.type == "cpu" else None)
        return share

    # State.

    def load(self, optimiser: torch.optim.Optimizer, state: dict[str, Any] | None) -> None:
        """Send out the state of the first process, one tensor at a time."""
        first = self.rank == 0
        state = state if first else {}
        entries = state.get("state", {})
        shapes = {
            i: {name: (value.shape, value.dtype) for name, value in entry.items()}
            for i, entry in entries.items()
        }
        shapes, groups = self.tell((shapes, state.get("param_groups")))
        weights = [p for group in optimiser.param_groups for p in group["params"]]
        received: dict[int, dict[str, Tensor]] = {}
        for i, entry in shapes.items():
            received[i] = {}
            for name, (shape, kind) in entry.items():
                value = entries[i][name] if first else torch.empty(shape, dtype=kind)
                received[i][name] = self.send(value.to(self.device), weights[i])
        optimiser.load_state_dict({"state": received, "param_groups": groups})

    def send(self, value: Tensor, weight: Tensor) -> Tensor:
        """A tensor of the first process, as far as this one keeps it with the weight."""
        dist.broadcast(value, 0)
        return value

    def stir(self, seed: int, step: int) -> None:
        """Drop units by seed, step and process, so that a resumed run drops the same."""
        torch.manual_seed(((seed * 1_000_003 + step) * self.size + self.rank) % 2**63)

    # Agreement.

    def tell(self, word: Any) -> Any:
        """What the first process says; a small thing, since it goes by way of pickle."""
        box = [word]
        dist.broadcast_object_list(box, 0, group=self.beside)
        return box[0]

    def alone(self, do: Callable, *args: Any, **options: Any) -> Any:
        """Do something in the first process alone, while the others wait.

        Raises:
            ValueError: in the others, with the words of the error in the first, which raises it.
        """
        result = error = None
        if self.rank == 0:
            try:
                result = do(*args, **options)
            except Exception as caught:
                error = caught
        said = self.tell(None if error is None else str(error) or type(error).__name__)
        if error is not None:
            raise error
        if said is not None:
            raise ValueError(said)
        return result

    def check_same(self, **what: Any) -> None:
        """Refuse processes that were given different things to do.

        Raises:
            ValueError: in every process, naming a difference.
        """
        told: list[Any] = [None] * self.size
        dist.all_gather_object(told, flat("", what), group=self.beside)
        for rank, other in enumerate(told):
            for name, value in told[0].items():
                if other.get(name) != value:
                    raise ValueError(
                        f"Every process must be given the same, but {name.lstrip('.')} is "
                        f"{value!r} in process 0 and {other.get(name)!r} in process {rank}."
                    )

    def stops(self, pressed: bool) -> bool:
        """Whether any process was told to stop, up to the step before this one.

        The question travels by way of the CPU while the next step is computed, so an accelerator
        need not wait for it; and the answer fails to come, soon, if another process has died.
        """
        flag = torch.tensor(float(pressed))
        before, self.asked = (
            self.asked,
            (flag, dist.all_reduce(flag, group=self.beside, async_op=True)),
        )
        if before is None:
            return False
        before[1].wait()
        return before[0].item() > 0


def in_short(error: BaseException) -> str:
    """The first sentence of what PyTorch says, without the place in its source."""
    said = re.sub(r"\[\S+\.\w+:\d+\] *", "", str(error).strip())
    return re.split(r"\.?\n|\.\s|\.$", said)[0]


def part() -> None:
    """Part from the other processes, at the end of this one."""
    # Gloo's threads may still hold tensors of the last exchange. They need Python to let go of
    # them, and would bring the process down if it were gone.
    time.sleep(0.2)
    if dist.is_initialized():
        dist.destroy_process_group()
