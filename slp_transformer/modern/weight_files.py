"""Weights in safetensors files, one or several with an index: one tensor is read at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from slp_transformer._internal.argument_checks import is_all_finite
from slp_transformer._internal.json_files import write_json
from slp_transformer._internal.shape_types import Tensor, format_shape
from slp_transformer._internal.tensor_files import open_tensors, write_tensors
from slp_transformer.modern.families.family import HFTensor
from slp_transformer.modern.published_folders import (
    INDEX_FILE,
    SINGLE_FILE,
    find_weight_files,
    map_tensors_to_files,
)

TORCH_DTYPES = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F64": torch.float64,
}
MAX_SHARD_BYTES = 5 * 10**9  # bytes of a file, at the most


class StoredTensor(NamedTuple):
    """The place of a tensor in a folder, and its shape and type."""

    path: Path
    name: str
    shape: list[int]
    dtype: str


class WeightFiles:
    """The tensors of a folder; none is read before it is asked for.

    Attributes:
        folder: the folder.
        tensors: by the names that they have today; older files call a norm's gain gamma.
    """

    def __init__(self, folder: Path, prefix: str, heads: tuple[str, ...]):
        """Read which tensors there are.

        Args:
            folder: where the files are.
            prefix: what all names but the head's begin with; files of a bare model leave it out.
            heads: how names of heads begin.

        Raises:
            ValueError: if there are no weights that can be read.
        """
        self.folder = folder
        self.tensors: dict[str, StoredTensor] = {}
        listed = map_tensors_to_files(folder)
        for path in find_weight_files(folder):
            self._read_header(path, prefix, heads)
        missing = sorted(set(listed) - {stored.name for stored in self.tensors.values()})
        if missing:
            raise ValueError(f"{folder / INDEX_FILE} lists {missing[0]}, but no file has it.")

    def _read_header(self, path: Path, prefix: str, heads: tuple[str, ...]) -> None:
        with open_tensors(path) as file:
            for name in file.keys():  # noqa: SIM118
                known = name.replace("LayerNorm.gamma", "LayerNorm.weight")
                known = known.replace("LayerNorm.beta", "LayerNorm.bias")
                if not known.startswith((prefix, *heads)):
                    known = prefix + known
                if known in self.tensors:
                    raise ValueError(f"{path}: {name} is there twice.")
                part = file.get_slice(name)
                self.tensors[known] = StoredTensor(path, name, part.get_shape(), part.get_dtype())

    def check_shapes(self, ours: str, sources: tuple[HFTensor, ...], shape: torch.Size) -> None:
        """Refuse tensors that ours cannot be made of.

        Raises:
            ValueError: naming the first, and what it should be.
        """
        for source, columns in zip(sources, column_widths(sources, shape), strict=True):
            path, name, found, dtype = self.tensors[source.name]
            needed = [*shape[:-1], columns * source.part[1]]
            needed = needed[::-1] if source.transposed else needed
            if found != needed:
                raise ValueError(
                    f"{path}: {name} is {format_shape(found)}, but config.json makes it "
                    f"{format_shape(needed)} (our {ours})."
                )
            if dtype not in TORCH_DTYPES:
                raise ValueError(
                    f"{path}: {name} is of type {dtype}, which cannot be loaded: known are "
                    f"{', '.join(TORCH_DTYPES)}."
                )

    def read_tensor(self, source: HFTensor) -> Tensor:
        """Return a tensor in our orientation, mapped rather than read."""
        stored = self.tensors[source.name]
        with open_tensors(stored.path) as file:  # anew, to let go of the pages read
            W = file.get_tensor(stored.name)
        W = W.T if source.transposed else W
        which, count = source.part
        return source.to_ours(W.chunk(count, -1)[which] if count > 1 else W)

    def load_parameter(
        self,
        sources: tuple[HFTensor, ...],
        shape: torch.Size,
        dtype: torch.dtype | None,
        device: torch.device | str,
    ) -> Tensor:
        """Return a tensor of ours, copied from those that it is made of.

        Raises:
            ValueError: if one of them has NaN or infinite numbers.
        """
        dtype = dtype or TORCH_DTYPES[self.tensors[sources[0].name].dtype]
        W = torch.empty(shape, dtype=dtype, device=device)
        for source, part in zip(sources, W.split(column_widths(sources, shape), -1), strict=True):
            part.copy_(self.read_tensor(source))
            if not is_all_finite(part):
                path, name, *_ = self.tensors[source.name]
                raise ValueError(f"{path} cannot be used: {name} has NaN or infinite numbers.")
        return W


def column_widths(sources: tuple[HFTensor, ...], shape: torch.Size) -> list[int]:
    """Return how many columns of ours each of the tensors is."""
    return [source.columns or shape[-1] for source in sources]


def write_weights(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors to one file, or to several with an index, copying those of one at a time.

    Args:
        folder: where to.
        tensors: by name.
    """
    shards = list(iter_shard_names(tensors))
    listed: dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        several = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        path = folder / (SINGLE_FILE if len(shards) == 1 else several)
        whole = {n: tensors[n].cpu().clone(memory_format=torch.contiguous_format) for n in names}
        write_tensors(path, whole, "Weights", {"format": "pt"})
        listed |= dict.fromkeys(names, path.name)
    if len(shards) > 1:
        total = {"total_size": sum(W.numel() * W.element_size() for W in tensors.values())}
        write_json(folder / INDEX_FILE, {"metadata": total, "weight_map": listed})


def iter_shard_names(tensors: dict[str, Tensor]) -> Iterator[list[str]]:
    """Yield their names in order, in groups of at most so many bytes; a larger tensor is one."""
    names: list[str] = []
    room = MAX_SHARD_BYTES
    for name, W in tensors.items():
        size = W.numel() * W.element_size()
        if names and size > room:
            yield names
            names, room = [], MAX_SHARD_BYTES
        names.append(name)
        room -= size
    yield names
