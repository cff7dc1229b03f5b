"""A second device for machines that have none: it computes on the CPU, but knows what lies where.

Its tensors refuse to meet those of another device, as an accelerator's do, and each time that the
CPU asks for what only the device knows, for which an accelerator would have to be waited for, is
counted. It stands where PyTorch lets others register a backend, `PrivateUse1`, so that
`torch.zeros(2, device="standin")` and `model.to("standin")` work as for any device.

It is stricter than CUDA in one thing: an index that lies on the CPU, which CUDA would copy, is
refused. Numbers without axes may come from the CPU, as everywhere.
"""

from collections import Counter
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

NAME = "standin"
WAITS: Counter[str] = Counter()
ASKS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "equal"}
CROSSES = {"copy_", "_copy_from", "_to_copy"}  # what may see tensors of two devices
INDEXES = {"index", "index_put_", "_index_put_impl_"}  # by a mask: how many is what has to be told


class OnStandIn(torch.Tensor):
    """A tensor of the device: a shell around one of the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inside: torch.Tensor) -> "OnStandIn":
        how = {"dtype": inside.dtype, "device": torch.device(NAME, 0)}
        how |= {"strides": inside.stride(), "storage_offset": inside.storage_offset()}
        tensor = torch.Tensor._make_wrapper_subclass(cls, inside.shape, **how)
        tensor.inside = inside
        return tensor

    @property
    def data(self) -> torch.Tensor:
        return self.detach()

    @data.setter
    def data(self, other: "OnStandIn") -> None:  # as `module.double()` does
        torch.Tensor.data.__set__(self, other)
        self.inside = other.inside

    def data_ptr(self) -> int:
        return self.inside.data_ptr()

    def tolist(self) -> list:
        return self.cpu().tolist()

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        copy = OnStandIn(self.inside.detach().clone())
        if isinstance(self, torch.nn.Parameter):
            copy = torch.nn.Parameter(copy)
        return memo.setdefault(id(self), copy.requires_grad_(self.requires_grad))

    def __repr__(self) -> str:
        return f"{self.inside!r} on {NAME}"

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        with torch.inference_mode(False):  # where the shells of views could not be made
            return compute(operation, args, kwargs or {})


def compute(operation, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Do an operation on the CPU, as the device would."""
    name = operation.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    elsewhere = [x for x in tensors if not isinstance(x, OnStandIn)]
    if name not in CROSSES and any(x.dim() for x in elsewhere):
        raise RuntimeError(f"{name}: tensors on {NAME} meet tensors on {elsewhere[0].device}.")
    leaves = torch.device(kwargs.get("device") or NAME).type != NAME
    if name in ("copy_", "_copy_from"):
        leaves = not isinstance(args[0] if name == "copy_" else args[1], OnStandIn)
    by_mask = name in INDEXES and any(x is not None and x.dtype == torch.bool for x in args[1])
    if leaves or by_mask or name in ASKS:
        WAITS[name] += 1
    if kwargs.get("device") is not None:
        kwargs = kwargs | {"device": "cpu"}
    given = {id(x.inside): x for x in tensors if isinstance(x, OnStandIn)}  # for work in place
    result = operation(*tree_map(opened, args), **tree_map(opened, kwargs))

    def closed(x: Any) -> Any:
        if leaves or not isinstance(x, torch.Tensor):
            return x
        if id(x) not in given:
            return OnStandIn(x)
        shell = given[id(x)]
        if shell.shape != x.shape:  # `squeeze_` and the like
            torch.Tensor.data.__set__(shell, OnStandIn(x))
        return shell

    return tree_map(closed, result)


def opened(x: Any) -> Any:
    """What lies inside a tensor of the device; anything else as it is."""
    return x.inside if isinstance(x, OnStandIn) else x


class Module:
    """What PyTorch asks of a device as a whole: one of them, random numbers from the CPU's."""

    is_available = is_initialized = staticmethod(lambda: True)
    _is_in_bad_fork = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 1)
    current_device = staticmethod(lambda: 0)
    manual_seed_all = staticmethod(lambda seed: None)
    get_amp_supported_dtype = staticmethod(lambda: [torch.bfloat16])
    get_rng_state = staticmethod(lambda device=None: torch.get_rng_state())
    set_rng_state = staticmethod(lambda state, device=None: torch.set_rng_state(state))


@cache
def plug_in() -> torch.device | None:
    """The device, which stays for the rest of the process; None if this PyTorch knows none such."""
    from torch.utils import backend_registration

    setup = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if setup is None:
        return None
    setup(NAME, backend_module=Module())
    library = torch.library.Library("aten", "IMPL")

    def empty(*sizes, device=None, pin_memory=None, **how):
        return OnStandIn(torch.empty(sizes[0], **how))

    def empty_strided(size, stride, *, device=None, pin_memory=None, **how):
        return OnStandIn(torch.empty_strided(size, stride, **how))

    def copy_from(source, target, non_blocking=False):
        compute(torch.ops.aten.copy_.default, (target, source), {})
        return target

    library.impl("empty.memory_format", empty, "PrivateUse1")
    library.impl("empty_strided", empty_strided, "PrivateUse1")
    library.impl("_copy_from", copy_from, "PrivateUse1")
    plug_in.library = library  # what is registered goes when nobody holds it
    return torch.device(NAME, 0)


@cache
def second_device() -> torch.device | None:
    """The machine's own accelerator, or the device above where there is none.

    Both in one process would not do: PyTorch knows one accelerator, and takes the one above for it.
    Then no gradient flows on a GPU.
    """
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    return plug_in()
