"""Several processes that train one model, each on its share of every batch.

`torchrun` starts the processes, which may run on several machines. Each has a copy of the model
(DDP) or a shard of its weights (FSDP). When one of them dies, the others end with a sentence.

Checkpoints are gathered here rather than by `torch.distributed.checkpoint.state_dict`, which holds
a second full model in rank 0 meanwhile, and names the optimizer's entries by weight, where the
checkpoint of a single process numbers them.
"""

import atexit
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from slp_transformer._internal.bounds import WAITS
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.shape_types import Tensor
from slp_transformer.block import ResidualBlock
from slp_transformer.training.run_folder import flatten_dict
from slp_transformer.training.strategy import Strategy

TIMEOUT = timedelta(seconds=WAITS["the others of a group"].seconds)
DEAD_AFTER_S = WAITS["a sign of life from one of a group"].seconds
NOTICE_AFTER_S = 10.0  # seconds of waiting after which a process says so
AGENT = "TORCHELASTIC_USE_AGENT_STORE"  # torchrun has its own place to meet
LOG = logging.getLogger("slp_transformer")
# PyTorch raises a plain RuntimeError when another process is gone; only its words tell.
CONNECTION_LOST_PATTERN = re.compile("gloo|nccl|connection|socket|peer|timed out", re.IGNORECASE)


class DDPStrategy(Strategy):
    """Processes with a copy of the model each, which add up their gradients."""

    def __init__(self, device: torch.device, rank: int, world_size: int, out_dir: Path | None):
        """Be one of several.

        Args:
            device: the device of this process.
            rank: its number, from 0.
            world_size: how many processes there are.
            out_dir: the run's folder, if it has one.
        """
        super().__init__(device, rank, world_size)
        self.out_dir: Path | None = out_dir
        self.pending: tuple[Tensor, dist.Work] | None = None  # a question of `should_stop`
        self.cpu_group: dist.ProcessGroup | None = None  # None if the default one can use the CPU
        self.sigterm_before: Any = None  # the handler that the context replaces
        self.wrapped: Any = None  # the model, by DDP or FSDP2

    # Connecting.

    def __enter__(self) -> "DDPStrategy":
        """Connect to the others, unless that was done already; the connection outlives the run.

        Raises:
            ConnectionError: if they do not come.
            ValueError: if a variable of the environment, as torchrun sets it, is missing.
        """
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo"
            try:
                self.connect_in_thread(lambda: self.meet(backend))
            except (RuntimeError, dist.DistError) as error:
                says = WAITS["the others of a group"].says
                raise ConnectionError(
                    says.format(self.rank, self.world_size, first_sentence(error))
                    + f": start all of them, with the same rendezvous.{see('processes')}"
                ) from error
            atexit.register(destroy_process_group_at_exit)
        elif "cpu:" not in dist.get_backend_config():  # initialized by the script, with NCCL alone
            self.cpu_group = dist.new_group(backend="gloo", timeout=TIMEOUT)
        if threading.current_thread() is threading.main_thread():
            self.sigterm_before = signal.signal(signal.SIGTERM, self.handle_sigterm)
        return self

    def meet(self, backend: str) -> Any:
        """Connect to the others; torchrun ends all when one has died, else they look themselves.

        Raises:
            RuntimeError: if they do not come, or one that came has died.
        """
        environment = os.environ
        if AGENT in environment or not {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= {*environment}:
            return dist.init_process_group(backend, timeout=TIMEOUT)
        address, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
        here = (address, port, self.world_size, self.rank == 0, TIMEOUT)
        store = dist.TCPStore(*here, wait_for_workers=False, multi_tenant=True)
        self.await_all(store)
        return dist.init_process_group(
            backend, timeout=TIMEOUT, store=store, rank=self.rank, world_size=self.world_size
        )

    def await_all(self, store: dist.Store) -> None:
        """Give signs of life until all have come.

        Raises:
            RuntimeError: if one of those that came gives none any more, or not all come.
        """
        last, now = time.monotonic(), 0.0
        signs: dict[int, tuple[int, float]] = {}  # of each, how many, and when the last came
        while len(signs) < self.world_size:
            store.add(f"alive/{self.rank}", 1)
            # A closed lid or SIGSTOP stops others, too: of a pause a second counts.
            now, last = now + min(time.monotonic() - last, 1.0), time.monotonic()
            for rank in range(self.world_size):
                if store.check([f"alive/{rank}"]):
                    count = store.add(f"alive/{rank}", 0)
                    before, came = signs.get(rank, (0, now))
                    signs[rank] = count, now if count > before else came
                    if now - signs[rank][1] > DEAD_AFTER_S:
                        says = WAITS["a sign of life from one of a group"].says
                        raise RuntimeError(says.format(rank))
            if now > TIMEOUT.total_seconds():
                raise RuntimeError(f"{len(signs)} of {self.world_size} came in time")
            time.sleep(0.1)

    def connect_in_thread(self, connect: Callable[[], Any]) -> None:
        """Connect in another thread, so that a signal ends this process meanwhile.

        One of the others may have died before it came, which nobody can know: torchrun sends a
        signal then, and without torchrun there is a sentence, and Ctrl-C.

        Raises:
            Exception: whatever it raised.
        """
        errors: list[BaseException] = []

        def run() -> None:
            try:
                connect()
            except BaseException as error:
                errors.append(error)

        # In a thread: connecting waits inside C++, where Ctrl-C would not be heard.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(NOTICE_AFTER_S)
        if thread.is_alive():
            LOG.warning(
                f"Process {self.rank} of {self.world_size} waits for the others, for "
                f"{TIMEOUT.total_seconds() / 60:.0f} minutes at most; Ctrl-C ends it."
            )
        while thread.is_alive():
            thread.join(0.1)
        if errors:
            raise errors[0]

    def handle_sigterm(self, *_: Any) -> None:
        """Handle SIGTERM, which torchrun sends to the others when one process has died.

        Raises:
            ConnectionError: always.
        """
        raise ConnectionError(self.disconnect_message("torchrun or the cluster ended it"))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """End the run together, well or not.

        Raises:
            ConnectionError: in place of PyTorch's error when another process is gone.
        """
        lost = isinstance(error, RuntimeError) and CONNECTION_LOST_PATTERN.search(str(error))
        if not lost and not isinstance(error, ConnectionError | dist.DistError):
            if self.sigterm_before is not None:
                signal.signal(signal.SIGTERM, self.sigterm_before)
            if self.pending is not None:
                with suppress(RuntimeError):
                    self.pending[1].wait()
            return
        atexit.unregister(destroy_process_group_at_exit)  # the others may be gone
        if self.sigterm_before is not None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # or torchrun's cuts the sentence off
        if error is not None and not isinstance(error, ConnectionError):
            raise ConnectionError(self.disconnect_message(first_sentence(error))) from error

    def disconnect_message(self, reason: str) -> str:
        """Return why this process ends, and how to resume."""
        end = (
            f"Process {self.rank} of {self.world_size} ends, since another one died or cannot be "
            f"reached ({reason})."
        )
        if self.out_dir is None:
            return f"{end} The run was not saved."
        return (
            f"{end} The last checkpoint in {self.out_dir} was kept: to resume from it, start the "
            "processes again, with resume=True."
        )

    # Computing.

    def wrap(self, model: nn.Module, has_idle_parameters: Callable[[nn.Module], bool]) -> nn.Module:
        """Return a replica with rank 0's weights."""
        model = model.to(self.device)
        self.wrapped = nn.parallel.DistributedDataParallel(
            model,
            [self.device] if self.device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            # DDP waits for the gradient of every parameter, unless it looks for idle ones in each
            # step, which takes time.
            find_unused_parameters=has_idle_parameters(model),
        )
        return self.wrapped

    def gradient_sync(self, enabled: bool) -> AbstractContextManager[None]:
        """Return a context in which gradients are synchronized, or accumulated for later."""
        return nullcontext() if enabled else self.wrapped.no_sync()

    def all_reduce(self, value: Tensor) -> Tensor:
        """Return the sum over all processes, which is the same in each."""
        dist.all_reduce(value, group=self.cpu_group if value.device.type == "cpu" else None)
        return value

    # Weights, optimizer and random numbers.

    def broadcast_tensor(self, value: Tensor, weight: Tensor) -> Tensor:
        """Return rank 0's tensor, as this process stores it with the weight."""
        value = value.to(self.device)
        dist.broadcast(value, 0)
        return value

    def seed_dropout(self, seed: int, step: int) -> None:
        """Seed dropout by seed, step and process, so that a resumed run drops the same units."""
        # Another number for each process and step; two seeds share none within a million steps.
        torch.manual_seed(((seed * 1_000_003 + step) * self.world_size + self.rank) % 2**63)

    # Coordination.

    def broadcast_object(self, value: Any) -> Any:
        """Return the value of rank 0, which must be small, since it is pickled."""
        box = [value]
        dist.broadcast_object_list(box, 0, group=self.cpu_group)
        return box[0]

    def run_on_rank_zero(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function in rank 0 only, while the others wait.

        Raises:
            ValueError: in the others, with the message of the error in rank 0, which raises it.
        """
        result = error = None
        if self.rank == 0:
            try:
                result = function(*args, **kwargs)
            except Exception as caught:
                error = caught
        message = self.broadcast_object(
            None if error is None else str(error) or type(error).__name__
        )
        if error is not None:
            raise error
        if message is not None:
            raise ValueError(message)
        return result

    def check_equal_in_all_processes(self, **values: Any) -> None:
        """Refuse processes with different values.

        Raises:
            ValueError: in every process, naming a difference.
        """
        gathered: list[Any] = [None] * self.world_size
        dist.all_gather_object(gathered, flatten_dict("", values), group=self.cpu_group)
        for rank, other in enumerate(gathered):
            for name, value in gathered[0].items():
                if other.get(name) != value:
                    raise ValueError(
                        f"Every process must be given the same, but {name.lstrip('.')} is "
                        f"{value!r} in process 0 and {other.get(name)!r} in process {rank}."
                    )

    def should_stop(self, requested: bool) -> bool:
        """Return whether any process was asked to stop, up to the step before this one.

        The flag is reduced on the CPU while the next step is computed, so an accelerator does not
        wait for it; and this fails, soon, if another process has died.
        """
        flag = torch.tensor(float(requested), device="cpu")
        # The answer is read a step later: by then it is there, and no step has waited for it.
        before = self.pending
        self.pending = flag, dist.all_reduce(flag, group=self.cpu_group, async_op=True)
        if before is None:
            return False
        before[1].wait()
        return before[0].item() > 0


class FSDPStrategy(DDPStrategy):
    """Processes with a shard of every weight each, gathered when it is needed (FSDP2)."""

    mesh: Any = None  # of the processes, once the model is wrapped

    def wrap(self, model: nn.Module, has_idle_parameters: Callable[[nn.Module], bool]) -> nn.Module:
        """Return a sharded copy with rank 0's weights; the model itself stays as it is.

        Each block is a group that is gathered when its turn comes. All else belongs to the model
        itself, above all E, which both ends of it use.
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        for tensor in (*model.parameters(), *model.buffers()):
            there = tensor.detach().to(self.device)
            dist.broadcast(there, 0)
            tensor.detach().copy_(there)
        self.mesh = init_device_mesh(self.device.type, (self.world_size,))
        module = deepcopy(model)  # the caller's model stays whole, to be saved and evaluated
        for part in module.modules():
            if isinstance(part, ResidualBlock):
                fully_shard(part, mesh=self.mesh)
        self.wrapped = fully_shard(module, mesh=self.mesh)
        return module.to(self.device)

    def gradient_sync(self, enabled: bool) -> AbstractContextManager[None]:
        """Set whether the next gradients are synchronized, or accumulated for later."""
        self.wrapped.set_requires_gradient_sync(enabled)
        return nullcontext()

    @torch.no_grad()
    def copy_weights_into(self, model: nn.Module) -> None:
        """Gather the weights into the model, one at a time."""
        self.wrapped.reshard()  # evaluation leaves the root's weights gathered
        for full, shard in zip(model.parameters(), self.wrapped.parameters(), strict=True):
            full.copy_(full_tensor(shard))

    def gather_tensor(self, value: Tensor) -> Tensor:
        """Return a tensor as a single process has it, on the CPU of rank 0."""
        full = full_tensor(value)
        if self.rank > 0:
            return torch.empty(0)
        return torch.empty_like(full, device="cpu").copy_(full)  # without the shards' padding

    def broadcast_tensor(self, value: Tensor, weight: Tensor) -> Tensor:
        """Return this process's shard of a tensor; all of one that is not of the weight's shape."""
        from torch.distributed.tensor import Shard, distribute_tensor

        if value.shape != weight.shape:  # a count of steps, which is not sharded
            return super().broadcast_tensor(value, weight)
        return distribute_tensor(value.to(self.device), self.mesh, [Shard(0)])


def full_tensor(value: Tensor) -> Tensor:
    """Return a tensor of which this process may have a shard."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def first_sentence(error: BaseException) -> str:
    """Return the first sentence of PyTorch's message, without the place in its source."""
    message = re.sub(r"\[\S+\.\w+:\d+\] *", "", str(error).strip())
    return re.split(r"\.?\n|\.\s|\.$", message)[0]


def destroy_process_group_at_exit() -> None:
    """Disconnect from the other processes, at the end of this one."""
    # Gloo's threads may still hold tensors of the last exchange. They need Python to release them,
    # and would crash the process if it were gone.
    time.sleep(0.2)
    if dist.is_initialized():
        dist.destroy_process_group()
