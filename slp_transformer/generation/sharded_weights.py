"""One token more, on a CPU: each core reads a share of every matrix.

Where hundreds of rows are multiplied with a matrix, arithmetic takes the time. With one row for
each sequence it is reading the matrix from memory, and many a CPU's product leaves that to one core
alone. A matrix that is cut into shares is read by all. A fixed rule decides, so that the same
command on the same machine gives the same words.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.embedding import ScaledEmbedding, TokenEmbedding
from slp_transformer.feedforward import FeedForward, SwiGLU
from slp_transformer.multi_head import MultiHeadAttention

MIN_NEW_TOKENS = 64  # below, copying the matrices is not made up for
MAX_ROWS = 64  # above, PyTorch's own product reads with all cores
MIN_MATRIX_NUMEL = 2**17  # below, a matrix stays in one core's cache
SHARDED_PARAMETERS = {
    MultiHeadAttention: ("W_QKV", "W_O"),
    FeedForward: ("W_1", "W_2"),
    SwiGLU: ("W_1", "W_2", "W_3"),
}
EMBEDDINGS = (TokenEmbedding, ScaledEmbedding)  # the head multiplies with the transpose of E
PRODUCTS = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, F.linear}
# Private to PyTorch: without it the subclass would call itself, and matrices stay as they are.
without_subclass = getattr(torch._C, "DisableTorchFunctionSubclass", None)


class ShardedMatrix(torch.Tensor):
    """A matrix that is multiplied with a few rows by all cores; for all else, it is the matrix.

    Attributes:
        shards: of a matrix [k×n], its n columns as rows, cut into one share for each core.
    """

    @staticmethod
    def of(W: Float[Tensor, "k n"]) -> "ShardedMatrix":
        """Shard a matrix; one that is a transpose is not copied."""
        W = W.detach()
        count = max(s for s in range(1, torch.get_num_threads() + 1) if W.shape[1] % s == 0)
        sharded = W.as_subclass(ShardedMatrix)
        sharded.shards = W.T.contiguous().view(count, -1, len(W))
        sharded.transposed = sharded.transpose_view()  # which `map_linear` is given time and again
        return sharded

    def transpose_view(self) -> "ShardedMatrix":
        """Return the transpose with the same shards, and no reference back, which would leak."""
        with without_subclass():
            transposed = self.T.as_subclass(ShardedMatrix)
            transposed.shards = self.shards
            return transposed

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Stand in for each of PyTorch's functions that is given such a matrix."""
        if func in PRODUCTS and isinstance(args[1], ShardedMatrix) and not kwargs:
            if args[0].numel() <= MAX_ROWS * args[0].shape[-1]:
                with without_subclass():
                    return sharded_matmul(*args)
        if func == torch.Tensor.T.__get__:
            transposed = vars(args[0]).get("transposed")
            return args[0].transpose_view() if transposed is None else transposed
        with without_subclass():
            return func(*args, **(kwargs or {}))


def sharded_matmul(
    X: Float[Tensor, "*batch k"], W: ShardedMatrix, b: Float[Tensor, "n"] | None = None
) -> Float[Tensor, "*batch n"]:
    """Compute X @ W + b with all cores."""
    columns = X.reshape(-1, X.shape[-1]).T.expand(len(W.shards), -1, -1)
    Y = torch.bmm(W.shards, columns).view(-1, columns.shape[-1]).T.reshape(*X.shape[:-1], -1)
    return Y if b is None else Y + b


def with_sharded_weights(model: nn.Module, rows: int, new_tokens: int) -> nn.Module:
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
    if not (plain and pays and fast_paths_enabled() and without_subclass):
        return model
    return model if torch.is_autocast_enabled("cpu") else shard_matrices(model, {})


def shard_matrices(part: nn.Module, made: dict[nn.Module, nn.Module]) -> nn.Module:
    """Copy modules, but for the weights: large matrices are sharded, others are the same.

    Args:
        part: a model, or a part of one.
        made: the copies so far: a part that is used in several places stays one.
    """
    if part not in made:
        twin = made[part] = copy.copy(part)
        twin._modules = {
            name: None if inner is None else shard_matrices(inner, made)
            for name, inner in part._modules.items()
        }
        twin._parameters = {
            name: shard_parameter(W, name, type(part)) for name, W in part._parameters.items()
        }
    return made[part]


def shard_parameter(W: Tensor | None, name: str, kind: type[nn.Module]) -> Tensor | None:
    """Shard a parameter of a part of some kind, if it is a large matrix that tokens meet."""
    if W is None or W.numel() < MIN_MATRIX_NUMEL:
        return W
    if kind in EMBEDDINGS and name == "E":
        return ShardedMatrix.of(W.T).T
    return ShardedMatrix.of(W) if name in SHARDED_PARAMETERS.get(kind, ()) else W
