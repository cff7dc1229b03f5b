"""One token more, on a CUDA device: the work of a step is recorded once and then played again.

A token of a small model is hundreds of small kernels, and a GPU waits longer for Python to ask for
them than it takes to do them. A CUDA graph asks for all at once. It does the same with the same
memory each time, so nothing in a step may depend on how many tokens there are: the position is a
tensor, keys and values are written where it says, and attention sees all the room there is, with a
mask that hides what is not written yet. All but the recording runs on any device.
"""

import math
from collections.abc import Callable
from typing import TypeGuard

import torch
from torch import nn

from slp_transformer._internal.eval_mode import has_no_hooks
from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.block import ResidualBlock, TransformerBlock
from slp_transformer.cache import KVCache, LayerCache
from slp_transformer.embedding import InputEncoding, LearnedPositions, SinusoidalPositions
from slp_transformer.language_model import TransformerLM, lm_head
from slp_transformer.multi_head import BaseAttention, MultiHeadAttention

MIN_NEW_TOKENS = 16  # below, recording is not made up for
CHECKED_TYPES = (InputEncoding, LearnedPositions, SinusoidalPositions, ResidualBlock, BaseAttention)
SUPPORTED_TYPES = {*CHECKED_TYPES[:3], TransformerBlock, MultiHeadAttention}


def supports_cuda_graph(model: nn.Module, cache: KVCache) -> TypeGuard[TransformerLM]:
    """Return whether a step is the same work each time: on CUDA, with the book's own parts."""
    if not (fast_paths_enabled() and on_cuda(model)) or type(model) is not TransformerLM:
        return False
    if not cache.length or (cache.capacity or 0) - cache.length < MIN_NEW_TOKENS:
        return False
    if not isinstance(model.embedding, InputEncoding):
        return False
    parts = list(model.modules())
    known = {type(part) for part in parts if isinstance(part, CHECKED_TYPES)} <= SUPPORTED_TYPES
    hooked = nn.modules.module._has_any_global_hook()
    return known and not hooked and all(map(has_no_hooks, parts))


def on_cuda(model: nn.Module) -> bool:
    """Return whether a model lives where CUDA graphs are, and computes in its own type there."""
    device_type = next(model.parameters()).device.type
    return device_type == "cuda" and not torch.is_autocast_enabled(device_type)


class StaticLayerCache(LayerCache):
    """A layer's cache that is written at a position and read as a whole, in the memory of another.

    Attributes:
        position: where the next token's keys and values are written, a tensor of one number.
    """

    K: Tensor
    V: Tensor

    def __init__(self, K: Tensor, V: Tensor, length: int, position: Int[Tensor, "1"]):
        """Take over a cache's memory; what is not written yet has to hold numbers, to be hidden."""
        super().__init__(K.shape[-2])
        self.K, self.V, self.position = K, V, position
        for Z in (K, V):
            Z[..., length:, :] = 0.0

    def update(
        self, K: Float[Tensor, "*batch A 1 d_k"], V: Float[Tensor, "*batch A 1 d_v"]
    ) -> tuple[Float[Tensor, "*batch A T d_k"], Float[Tensor, "*batch A T d_v"]]:
        """Write the keys and values of one token, and read all rows there is room for."""
        self.K.index_copy_(-2, self.position, K)
        self.V.index_copy_(-2, self.position, V)
        return self.K, self.V

    def commit(self) -> None:
        """Leave the length alone, which the cache that was taken over keeps."""


class CudaGraphStep:
    """Reads one token of each sequence at a time, always by the same work.

    Attributes:
        cache: what was read so far, as for any other way of reading.
    """

    def __init__(self, model: TransformerLM, cache: KVCache, rows: int):
        """Record a step, on a CUDA device; elsewhere it is done anew each time.

        Args:
            model: one of which `supports_cuda_graph` says yes.
            cache: what the model has read.
            rows: how many sequences there are.
        """
        device = next(model.parameters()).device
        self.model, self.cache = model, cache
        self.position = torch.full((1,), cache.length, dtype=torch.long, device=device)
        self.ids = torch.zeros(rows, 1, dtype=torch.long, device=device)
        self.layers = [cache[l].self_attention for l in range(len(model.stack.blocks))]
        self.static_cache = KVCache(cache.capacity)
        for l, layer in enumerate(self.layers):
            assert layer.K is not None and layer.V is not None, "the model has read a token"
            static = StaticLayerCache(layer.K, layer.V, layer.length, self.position)
            self.static_cache[l].self_attention = static
        self.slots = torch.arange(static.K.shape[-2], device=device)
        self.replay = self.step
        if device.type == "cuda":
            with torch.cuda.device(device):
                self.replay = capture_graph(self.step)

    def matches(self, new: Int[Tensor, "rows N"]) -> bool:
        """Return whether these are next tokens, one of each sequence, of the recorded cache."""
        recorded = self.static_cache[0].self_attention.K
        return new.shape == self.ids.shape and self.layers[0].K is recorded

    def step(self) -> Float[Tensor, "rows 1 V"]:
        """Return the logits for the word after `ids`, which stand at `position`."""
        embedding = self.model.embedding
        assert isinstance(embedding, InputEncoding), "see supports_cuda_graph"
        P = embedding.positions.P.index_select(0, self.position)
        X = embedding.tokens(self.ids) + P
        later = (self.slots > self.position)[None]
        mask = torch.zeros_like(later, dtype=X.dtype).masked_fill(later, -math.inf)
        H = self.model.stack(X, mask, cache=self.static_cache)
        return lm_head(H, self.model.unembedding)

    def __call__(self, new: Int[Tensor, "rows 1"]) -> Float[Tensor, "rows 1 V"]:
        """Do a step for these tokens, at the position after those that the cache holds."""
        self.ids.copy_(new)
        self.position.fill_(self.cache.length)
        U = self.replay()
        for layer in self.layers:
            layer.length = layer._uncommitted_length = layer.length + 1
        return U


def capture_graph(step: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Record a step as a graph of the CUDA device in use, and return a function that plays it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # lets libraries choose their kernels before they are recorded
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        U = step()

    def replay() -> Tensor:
        graph.replay()
        return U.clone()

    return replay
