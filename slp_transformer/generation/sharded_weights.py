"""One token more, on a CPU: matrices laid out such that every core reads a share of its own.

Where hundreds of rows are multiplied with a matrix, arithmetic takes the time. With one row for
each sequence it is reading the matrix from memory, and many a CPU's product leaves that to one core
alone. A matrix that is cut into shares is read by all. Whether that is faster differs from machine
to machine, so it is measured on the one at hand, once for models of one size that are to write many
words.
"""

import copy
import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.reference_mode import switched_on
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.embedding import ScaledEmbedding, TokenEmbedding
from slp_transformer.feedforward import FeedForward, SwiGLU
from slp_transformer.multi_head import MultiHeadAttention

WORTH = 64  # words to come from which on laying out and measuring are made up for
MARGIN = 1.03  # how many times as fast it has to be, for the memory of a second copy
ROUNDS = 4  # of measuring
FASTER: dict[tuple, bool] = {}  # whether it was, for models of some sizes and so many rows
ROWS = 64  # more rows than that are PyTorch's own business
READ = {
    MultiHeadAttention: ("W_QKV", "W_O"),
    FeedForward: ("W_1", "W_2"),
    SwiGLU: ("W_1", "W_2", "W_3"),
}
TURNED = {TokenEmbedding: ("E",), ScaledEmbedding: ("E",)}  # the head multiplies with its transpose
PRODUCTS = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, F.linear}


class SharedOut(torch.Tensor):
    """A matrix that is multiplied with a few rows by all cores; for all else, it is the matrix.

    Attributes:
        shares: of a matrix [k×n], its n columns as rows, cut into one share for each core.
    """

    @staticmethod
    def of(W: Float[Tensor, "k n"]) -> "SharedOut":
        """Lay a matrix out; one that is a transpose is not copied."""
        W = W.detach()
        shares = max(s for s in range(1, torch.get_num_threads() + 1) if W.shape[1] % s == 0)
        laid = W.as_subclass(SharedOut)
        laid.shares = W.T.contiguous().view(shares, -1, len(W))
        laid.turned = laid.turn()  # which `linear` is given time and again
        return laid

    def turn(self) -> "SharedOut":
        """Its transpose, with the same shares, and with no way back, lest they hold each other."""
        with torch._C.DisableTorchFunctionSubclass():
            turned = self.T.as_subclass(SharedOut)
            turned.shares = self.shares
            return turned

    def columns(self, first: int, count: int) -> "SharedOut":
        """Some of its columns, laid out as they are."""
        with torch._C.DisableTorchFunctionSubclass():
            rows = self.shares.flatten(0, 1).narrow(0, first, count)
            return SharedOut.of(rows.T)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """What PyTorch calls in place of each of its functions that is given such a matrix."""
        if func in PRODUCTS and isinstance(args[1], SharedOut) and not kwargs:
            if args[0].numel() <= ROWS * args[0].shape[-1]:
                with torch._C.DisableTorchFunctionSubclass():
                    return product(*args)
        if func == torch.Tensor.T.__get__:
            turned = vars(args[0]).get("turned")
            return args[0].turn() if turned is None else turned
        if func == torch.Tensor.narrow and args[1] == 1:
            return args[0].columns(*args[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def product(
    X: Float[Tensor, "*batch k"], W: SharedOut, b: Float[Tensor, "n"] | None = None
) -> Float[Tensor, "*batch n"]:
    """X @ W + b, by all cores."""
    columns = X.reshape(-1, X.shape[-1]).T.expand(len(W.shares), -1, -1)
    Y = torch.bmm(W.shares, columns).view(-1, columns.shape[-1]).T.reshape(*X.shape[:-1], -1)
    return Y if b is None else Y + b


def laid_out(model: nn.Module, rows: int, to_come: int) -> nn.Module:
    """The model itself, or one that says the same of single tokens and is faster here.

    Args:
        model: a language model or an encoder-decoder.
        rows: how many sequences are read at a time.
        to_come: how many words each is to become longer by.

    Returns:
        What to read single tokens with. Later changes to the model's weights are not seen by it.
    """
    weights = list(model.parameters())
    plain = all(W.device.type == "cpu" and W.dtype == torch.float32 for W in weights)
    enough = to_come >= WORTH and rows <= ROWS and torch.get_num_threads() > 1
    if not (plain and enough and switched_on()) or torch.is_autocast_enabled("cpu"):
        return model
    sizes = (rows, torch.get_num_threads(), *(W.shape for W in weights))
    if FASTER.get(sizes) is False:
        return model
    twin = with_matrices_laid_out(model)
    if sizes not in FASTER:
        FASTER[sizes] = is_faster(model, twin, rows)
    return twin if FASTER[sizes] else model


def is_faster(model: nn.Module, twin: nn.Module, rows: int) -> bool:
    """Whether matrices that are laid out are read faster on this machine, by taking turns."""
    pairs = [(W, laid) for W, laid in matrices(model, twin) if isinstance(laid, SharedOut)]
    inputs = [torch.ones(rows, len(W)) for W, _ in pairs]
    ways = [[W for W, _ in pairs], [laid for _, laid in pairs]]
    turns = [[timed(inputs, way) for way in ways] for _ in range(ROUNDS)]
    before, after = map(min, zip(*turns, strict=True))
    return bool(pairs) and before > MARGIN * after


def with_matrices_laid_out(
    part: nn.Module, made: dict[nn.Module, nn.Module] | None = None
) -> nn.Module:
    """The same modules with the same weights, but for the matrices that single tokens meet.

    Args:
        part: a model, or a part of one.
        made: what there is already: a part that stands in several places stays one.
    """
    made = {} if made is None else made
    if part in made:
        return made[part]
    twin = made[part] = copy.copy(part)
    twin._modules = {
        name: None if inner is None else with_matrices_laid_out(inner, made)
        for name, inner in part._modules.items()
    }
    twin._parameters = {
        name: laid_matrix(W, name, type(part)) for name, W in part._parameters.items()
    }
    return twin


def laid_matrix(W: Tensor | None, name: str, kind: type[nn.Module]) -> Tensor | None:
    """A parameter of a part of some kind, laid out if single tokens are multiplied with it."""
    if name in TURNED.get(kind, ()):
        return SharedOut.of(W.T).T
    return SharedOut.of(W) if name in READ.get(kind, ()) else W


def matrices(model: nn.Module, twin: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Each weight of a model as it is multiplied with, and what the other has in its place."""
    for part, other in zip(model.modules(), twin.modules(), strict=True):
        for name, W in part._parameters.items():
            laid = other._parameters[name]
            yield (W.T, laid.T) if name in TURNED.get(type(part), ()) else (W, laid)


def timed(inputs: list[Tensor], matrices: list[Tensor]) -> float:
    """Seconds that one token's products take."""
    start = time.perf_counter()
    for X, W in zip(inputs, matrices, strict=True):
        X @ W
    return time.perf_counter() - start
