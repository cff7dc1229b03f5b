"""LoRA: fine-tuning a model by two thin matrices added to each frozen one.

`add_lora` freezes a model and adds A and B to its matrices; it is then trained like any other.
`merge_lora` adds AB to the matrices, after which the model is an ordinary one again.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer._internal.weight_matrices import make_weight_matrix

ATTENTION_MATRICES = ("W_Q", "W_K", "W_V", "W_O")


def lora(
    x: Float[Tensor, "*batch k"],
    W: Float[Tensor, "k d"],
    A: Float[Tensor, "k r"],
    B: Float[Tensor, "r d"],
) -> Float[Tensor, "*batch d"]:
    r"""A product with a frozen matrix, plus one through a bottleneck of r numbers.

    $$\mathbf h=\mathbf x\mathbf W+\mathbf x\mathbf A\mathbf B$$

    Source: `lora`, after Hu et al.
    2022, who write column vectors and call the factors B and A.

    Args:
        x: one row a token.
        W: the matrix that stays as it is.
        A: from k features to r.
        B: from r features to d.
    """
    return x @ W + x @ A @ B


class LoRA(nn.Module):
    """W + AB in the place of W: the matrix that `lora` multiplies x with, x taken out of the sum.

    The book leaves open how A and B begin. As in Hu et al. 2022, A is random and B is 0, so that
    the model begins as the one that it is made from. Their factor α/r is left out: B can hold it.

    Attributes:
        A: [k×r].
        B: [r×d].
    """

    def __init__(self, rows: int, columns: int, rank: int):
        """Make A and B for a matrix [k×d].

        Args:
            rows: k.
            columns: d.
            rank: r.

        Raises:
            ValueError: if the rank is no whole number from 1 to the smaller of both.
        """
        super().__init__()
        check_positive_sizes(rank=rank)
        if rank > min(rows, columns):
            raise ValueError(
                f"rank must be at most {min(rows, columns)} for a matrix of [{rows}×{columns}], "
                f"not {rank}: AB can have no higher one."
            )
        self.A = make_weight_matrix(rows, rank)
        self.B = nn.Parameter(torch.zeros(rank, columns))

    def forward(self, W: Float[Tensor, "k d"]) -> Float[Tensor, "k d"]:
        """Return W + AB; it costs r products for each number of W, few next to a batch's tokens."""
        return W + self.A @ self.B


class FusedLoRA(nn.Module):
    """W + AB in the place of W, where W is several matrices side by side and not all have A and B.

    Attributes:
        adapters: A and B of those that have them, by the matrix's name.
    """

    def __init__(self, widths: dict[str, int], adapters: dict[str, LoRA]):
        """Put them together.

        Args:
            widths: the columns of each matrix by name, from left to right.
            adapters: A and B of those that are to have them.
        """
        super().__init__()
        self.widths: dict[str, int] = widths
        self.adapters: nn.ModuleDict = nn.ModuleDict(adapters)

    def forward(self, W: Float[Tensor, "k d"]) -> Float[Tensor, "k d"]:
        """W + AB, matrix by matrix."""
        columns = zip(self.widths, W.split(list(self.widths.values()), dim=1), strict=True)
        return torch.cat(
            [self.adapters[name](M) if name in self.adapters else M for name, M in columns], dim=1
        )


def add_lora(model: nn.Module, rank: int, targets: Sequence[str] = ATTENTION_MATRICES) -> None:
    """Freeze a model, and add A and B to its matrices.

    From now on `attention.W_Q` is W + AB, made anew each time it is read; the weights that were
    there are frozen, and only A and B learn. (The package's modules multiply by whatever their
    matrix is: the equation needs no layer of its own.)

    Args:
        model: changed in place.
        rank: r.
        targets: names of the matrices; the book's four of each attention layer if not given.

    Raises:
        ValueError: if the rank does not fit a matrix, no matrix has such a name, or the model has
            A and B already. The model is untouched.
    """
    if any(parametrize.is_parametrized(module) for module in model.modules()):
        raise ValueError(
            "Some of the model's matrices are made of others already: merge_lora them."
        )
    added: list[tuple[nn.Module, str, FusedLoRA]] = []
    for module in model.modules():
        for name, W in module.named_parameters(recurse=False):
            widths = getattr(module, "fused_layout", {}).get(name, {name: W.shape[-1]})
            chosen = [part for part in widths if part in targets]
            if W.dim() == 2 and chosen:
                pairs = {part: LoRA(len(W), widths[part], rank) for part in chosen}
                added.append((module, name, FusedLoRA(widths, pairs).to(W.device, W.dtype)))
    if missing := set(targets) - {part for *_, pair in added for part in pair.adapters}:
        raise ValueError(
            f"No matrix of the model is called {' or '.join(sorted(missing))}: here queries, keys, "
            "values and outputs are W_Q, W_K, W_V and W_O, and feedforward layers have W_1, W_2 "
            "and, with a gate, W_3."
        )
    model.requires_grad_(False)
    for place in added:
        parametrize.register_parametrization(*place)


def iter_lora(model: nn.Module) -> Iterator[tuple[str, LoRA]]:
    """Yield the name of each matrix with A and B, `stack.blocks.0.attention.W_Q`, and the two."""
    for path, module in model.named_modules():
        if isinstance(module, LoRA):
            owner, _, within = path.partition("parametrizations.")
            yield owner + within.rpartition(".")[2], module


def lora_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """Return A and B of every matrix, by names such as `stack.blocks.0.attention.W_Q.A`."""
    return {
        f"{name}.{letter}": getattr(factors, letter)
        for name, factors in iter_lora(model)
        for letter in ("A", "B")
    }


def merge_lora(model: nn.Module) -> None:
    """Add AB to each matrix, in place, and let every weight learn again.

    The outputs stay the same to rounding, and cost what they cost without LoRA.
    """
    _remove_parametrizations(model, merged=True)


def remove_lora(model: nn.Module) -> None:
    """Take A and B away, in place: the model is what it was before `add_lora`, to the last bit."""
    _remove_parametrizations(model, merged=False)


@torch.no_grad()
def _remove_parametrizations(model: nn.Module, merged: bool) -> None:
    # Not by remove_parametrizations: it empties the class that PyTorch made for the module, which
    # a deep copy of the model shares.
    for module in [m for m in model.modules() if parametrize.is_parametrized(m)]:
        chains: Any = module.parametrizations
        weights = {
            name: getattr(module, name) if merged else chain.original
            for name, chain in chains.items()
        }
        del module.parametrizations
        plain_class: Any = type(module).__base__
        module.__class__ = plain_class
        for name, W in weights.items():
            module.register_parameter(name, nn.Parameter(W.detach()))
    model.requires_grad_(True)
