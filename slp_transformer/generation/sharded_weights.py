"""One token more, on a CPU: each core reads a share of every matrix.

Where hundreds of rows are multiplied with a matrix, arithmetic takes the time. With one row for
each sequence it is reading the matrix from memory, and many a CPU's product leaves that to one core
alone. A matrix that is cut into shares is read by all. A fixed rule decides, so that the same
command on the same machine gives the same words.
"""

import copy
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.embedding import ScaledEmbedding, TokenEmbedding
from slp_transformer.feedforward import FeedForward, SwiGLU
from slp_transformer.hooks import has_no_hooks
from slp_transformer.multi_head import MultiHeadAttention

MIN_NEW_TOKENS = 64  # below, copying the matrices is not made up for
MAX_ROWS = 64  # above, PyTorch's own product reads with all cores
MIN_MATRIX_NUMEL = 2**17  # below, a matrix stays in one core's cache
SHARDED_PARAMETERS: dict[type[nn.Module], tuple[str, ...]] = {
    MultiHeadAttention: ("W_QKV", "W_O"),
    FeedForward: ("W_1", "W_2"),
    SwiGLU: ("W_1", "W_2", "W_3"),
    TokenEmbedding: ("E",),
    ScaledEmbedding: ("E",),
}
PRODUCTS = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, F.linear}
Model = TypeVar("Model", bound=nn.Module)


class ShardedMatrix(torch.Tensor):
    """A matrix that is multiplied with a few rows by all cores; for all else, it is the matrix.

    Attributes:
        shards: of a matrix [k×n], its n columns as rows, cut into one share for each core.
    """

    shards: Tensor

    @staticmethod
    def from_matrix(W: Float[Tensor, "k n"]) -> "ShardedMatrix":
        """Shard a matrix; one that is a transpose is not copied."""
        W = W.detach()
        # Equal shards, as the product of a batch needs them, and not more than there are cores.
        count = max(s for s in range(1, torch.get_num_threads() + 1) if W.shape[1] % s == 0)
        return ShardedMatrix.from_shards(W, W.T.contiguous().view(count, -1, len(W)))

    @staticmethod
    def from_shards(W: Tensor, shards: Tensor) -> "ShardedMatrix":
        """Return a matrix with shards that it, or its transpose, was cut into."""
        sharded = W.as_subclass(ShardedMatrix)
        sharded.shards = shards
        return sharded

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replace each of PyTorch's functions that is given such a matrix."""
        with torch._C.DisableTorchFunctionSubclass():
            if func in PRODUCTS and isinstance(args[1], ShardedMatrix) and not kwargs:
                if args[0].numel() <= MAX_ROWS * args[0].shape[-1]:
                    return sharded_matmul(*args)
            if func == torch.Tensor.T.__get__:  # type: ignore[attr-defined]  # a getset descriptor
                return cls.from_shards(args[0].T, args[0].shards)
            return func(*args, **(kwargs or {}))


def sharded_matmul(
    X: Float[Tensor, "*batch k"], W: ShardedMatrix, b: Float[Tensor, "n"] | None = None
) -> Float[Tensor, "*batch n"]:
    """Compute X @ W + b with all cores."""
    columns = X.reshape(-1, X.shape[-1]).T.expand(len(W.shards), -1, -1)
    Y = torch.bmm(W.shards, columns).view(-1, columns.shape[-1]).T.reshape(*X.shape[:-1], -1)
    return Y if b is None else Y + b


def shard_weights_if_faster(model: Model, rows: int, new_tokens: int) -> Model:
    """Return the model itself, or one that says the same of single tokens and is faster.

    Args:
        model: a language model or an encoder-decoder.
        rows: how many sequences are read at a time.
        new_tokens: how many tokens each is to become longer by.

    Returns:
        What to read single tokens with. It does not see later changes to the model's weights.
    """
    plain = all(W.device.type == "cpu" and W.dtype == torch.float32 for W in model.parameters())
    pays = new_tokens >= MIN_NEW_TOKENS and rows <= MAX_ROWS and torch.get_num_threads() > 1
    unseen = all(map(has_no_hooks, model.modules())) and not torch.is_autocast_enabled("cpu")
    return (
        copy_with_sharded_matrices(model)
        if plain and pays and unseen and fast_paths_enabled()
        else model
    )


def copy_with_sharded_matrices(model: Model) -> Model:
    """Copy a model, but for the weights: large matrices are sharded, others are the same."""
    weights: dict[int, Any] = {id(W): W for W in (*model.parameters(), *model.buffers())}
    for part in model.modules():
        for name in SHARDED_PARAMETERS.get(type(part), ()):
            W = getattr(part, name)
            if W.numel() >= MIN_MATRIX_NUMEL:
                # The head multiplies with the transpose of E.
                weights[id(W)] = (
                    ShardedMatrix.from_matrix(W.T).T
                    if name == "E"
                    else ShardedMatrix.from_matrix(W)
                )
    return copy.deepcopy(model, weights)  # which takes for copied what its memo holds: all weights
