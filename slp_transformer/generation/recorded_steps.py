"""One token more, on an NVIDIA GPU: the kernels of a step are recorded once and then replayed.

A step for one token is some eighty kernels for six blocks, each of which takes the CPU longer to
start than the GPU to run. A CUDA graph starts all of them at once. What is recorded has fixed
places and shapes. So keys and values are read up to a number of rows that the text has yet to
reach, a mask hides what is not written, and positions lie on the GPU. A text that grows past these
rows, or a batch that shrinks, is recorded anew.
"""

import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.cache import KVCache, LayerCache
from slp_transformer.hooks import has_no_hooks
from slp_transformer.language_model import TransformerLM
from slp_transformer.multi_head import HeadMatrices

MIN_NEW_TOKENS = 64  # below, recording is not made up for
MIN_ROWS = 256  # of keys that a recording reads: doubled whenever the text has grown past them
RECORDING = threading.Lock()  # while one thread records, no other may begin to
WARM_UP = 2  # passes before the recording, in which libraries set aside what they need


def record(compute: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Record the kernels of a computation; what is returned replays them on the same places."""
    with RECORDING, torch.cuda.device(device):
        return _record_here(compute)


def _record_here(compute: Callable[[], None]) -> Callable[[], None]:
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            compute()
    current.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.clone_state()
    try:
        # Another thread may use the GPU meanwhile, as a notebook's server does. Without a stream
        # PyTorch captures on one of the device that was the first to record.
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            compute()
    except BaseException:
        # PyTorch leaves both as they are in a capture, where no number can be drawn outside of one.
        torch.cuda.set_stream(current)
        generator.graphsafe_set_state(before)
        raise
    return graph.replay


class FixedRows(LayerCache):
    """A layer's cache for a pass that reads a fixed number of rows, whatever the length.

    The reader hides those that are not written yet. The length stays as it is.
    """

    def __init__(self, layer: LayerCache, position: Int[Tensor, "1"], rows: int):
        """Share a layer's rows; the next token is written where `position` says."""
        super().__init__(layer.capacity)
        self.length, self.K, self.V = layer.length, layer.K, layer.V
        self._position, self._rows = position, rows

    def update(
        self, K: Float[Tensor, "*batch A N d_k"], V: Float[Tensor, "*batch A N d_v"]
    ) -> tuple[Float[Tensor, "*batch A T d_k"], Float[Tensor, "*batch A T d_v"]]:
        """Write one token's keys and values by its position; read as many rows as ever."""
        assert self.K is not None and self.V is not None, "the first tokens set rows aside"
        self.K.index_copy_(-2, self._position, K)
        self.V.index_copy_(-2, self._position, V)
        return self.K[..., : self._rows, :], self.V[..., : self._rows, :]

    def commit(self) -> None:
        """Count nothing."""


class RecordedStep:
    """A language model that reads one token after each of some texts, as its cache holds them."""

    def __init__(self, model: TransformerLM, cache: KVCache):
        """Record nothing yet; the cache has read at least one token."""
        self.model, self.cache = model, cache
        self._blocks = [cache[l] for l in range(len(model.stack.blocks))]
        self._replay: Callable[[], None] | None = None
        self._is_refused = False
        self._K: Tensor | None = None
        self._rows = 0

    def __call__(
        self, ids: Int[Tensor, "batch 1"], *, cache: KVCache
    ) -> Float[Tensor, "batch 1 V"]:
        """Return the logits of the words that come next."""
        T, K = cache.length, cache[0].self_attention.K
        replay, is_first = self._replay, K is None  # the first token of all sets the rows aside
        if not (is_first or self._is_refused) and (
            replay is None or K is not self._K or T >= self._rows
        ):
            replay = self._replay = self._prepare(ids, T)
        if replay is None:
            return self.model(ids, cache=cache)
        self._ids.copy_(ids)
        self._position.fill_(T)
        replay()
        for block in self._blocks:
            block.self_attention.length = T + 1
        return self._U.clone()

    def _prepare(self, ids: Tensor, T: int) -> Callable[[], None] | None:
        """Record a step that reads more rows than the text has; None if CUDA refuses."""
        self._replay = None  # its memory is free before more is asked for
        doubled = max(MIN_ROWS, 1 << T.bit_length())
        self._rows = min(doubled, self.cache.capacity or doubled)
        self._K = self.cache[0].self_attention.K
        self._ids = ids.clone()
        self._position = torch.full((1,), T, device=ids.device)
        self._columns = torch.arange(self._rows, device=ids.device)
        for block in self._blocks:  # what memory held may be no numbers
            for Z in (block.self_attention.K, block.self_attention.V):
                if Z is not None:
                    Z[..., T : self._rows, :].zero_()
        try:
            return record(self._compute, ids.device)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._is_refused = True
            warnings.warn(
                "A step for one token could not be recorded as a CUDA graph, so each is computed "
                f"kernel by kernel, which is slower: {str(error).partition(chr(10))[0]}",
                stacklevel=2,
            )
            return None

    def _compute(self) -> None:
        hidden = self._columns > self._position
        mask = torch.zeros(1, self._rows, device=hidden.device).masked_fill(hidden, -math.inf)
        layers = [block.self_attention for block in self._blocks]
        for block, layer in zip(self._blocks, layers, strict=True):
            block.self_attention = FixedRows(layer, self._position, self._rows)
        try:
            self._U = self.model(self._ids, mask, cache=self.cache, position_ids=self._position)
        finally:
            for block, layer in zip(self._blocks, layers, strict=True):
                block.self_attention = layer


def record_if_faster(model: Any, cache: KVCache, new_tokens: int) -> RecordedStep | None:
    """Return a step that says the same of single tokens as the model, where it is faster.

    Args:
        model: a language model or an encoder-decoder.
        cache: what has been read, which the step goes on from.
        new_tokens: how many tokens each text is to become longer by.
    """
    if not all(W.device.type == "cuda" for W in model.parameters()):
        return None
    if new_tokens < MIN_NEW_TOKENS or not fast_paths_enabled() or torch.is_autocast_enabled("cuda"):
        return None
    return RecordedStep(model, cache) if can_be_recorded(model) else None


def can_be_recorded(model: nn.Module) -> bool:
    """Tell if all parts of a model are known, and do the same at every position.

    Attention within a window counts back from the last row that it is given.
    """
    layers = [part for part in model.modules() if isinstance(part, HeadMatrices)]
    return (
        isinstance(model, TransformerLM)
        and all(map(has_no_hooks, model.modules()))
        and all(getattr(layer, "window", None) is None for layer in layers)
    )
