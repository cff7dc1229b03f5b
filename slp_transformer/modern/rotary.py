"""Rotary positions: queries and keys are turned by an angle that grows with the position."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Float, Int, Tensor


@dataclass(frozen=True)
class Llama3RopeScaling:
    """The way Llama 3.1 stretches the angles of a model trained on a shorter context.

    Pairs that turn slowly, less than `low_freq_factor` times in the old context, turn `factor`
    times slower; those that turn more than `high_freq_factor` times stay as they are; between the
    two, a mixture.

    Attributes:
        factor: how much slower.
        low_freq_factor: turns in the old context below which a pair is slowed in full.
        high_freq_factor: turns from which on it is not.
        original_context_length: tokens that the model was trained on before.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_length: int

    def __post_init__(self):
        """Refuse numbers that are no such recipe.

        Raises:
            ValueError: naming what must hold.
        """
        check_size(old_context=self.original_context_length)
        if not (self.factor > 0 and 0 < self.low_freq_factor < self.high_freq_factor):
            raise ValueError(
                "A longer context needs factor above 0 and 0 < low < high, not factor = "
                f"{self.factor}, low = {self.low_freq_factor}, high = {self.high_freq_factor}."
            )

    def __call__(self, theta: Float[Tensor, "pairs"]) -> Float[Tensor, "pairs"]:
        """The angles a position, stretched."""
        turns = self.original_context_length * theta / (2 * math.pi)
        keep = (
            (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        ).clamp(0, 1)
        return keep * theta + (1 - keep) * theta / self.factor


@dataclass(frozen=True)
class LinearRopeScaling:
    """How positions are interpolated (Chen et al. 2023, arXiv 2306.15595): all pairs turn slower.

    Attributes:
        factor: how much slower.
    """

    factor: float

    def __post_init__(self):
        """Refuse a factor that is not above 0.

        Raises:
            ValueError: naming it.
        """
        if not self.factor > 0:
            raise ValueError(f"A longer context needs a factor above 0, not {self.factor}.")

    def __call__(self, theta: Float[Tensor, "pairs"]) -> Float[Tensor, "pairs"]:
        """The angles a position, stretched."""
        return theta / self.factor


RopeScaling = Llama3RopeScaling | LinearRopeScaling


def read_rope_scaling(fields: dict[str, Any]) -> RopeScaling:
    """Return the scaling that has these fields."""
    return (LinearRopeScaling if fields.keys() == {"factor"} else Llama3RopeScaling)(**fields)


def rotation_angles(
    positions: Float[Tensor, "N"],
    key_dim: int,
    base: float = 10000.0,
    scaling: RopeScaling | None = None,
) -> Float[Tensor, "N pairs"]:
    r"""The angle by which each pair of columns turns at each position.

    $$pos\cdot\theta_i,\quad\theta_i=base^{-2i/d_k}$$

    Su et al. 2021 (arXiv 2104.09864), section 3.2.2. The frequencies are those of the sinusoidal
    positions, `sinusoid` (Vaswani et al. 2017).

    Args:
        positions: where the tokens stand.
        key_dim: d_k, an even number.
        base: the larger, the slower the last pairs turn.
        scaling: how to stretch the angles to a longer context, if at all.
    """
    theta = base ** -(torch.arange(0, key_dim, 2, device=positions.device).to(positions) / key_dim)
    return torch.outer(positions, theta if scaling is None else scaling(theta))


def apply_rotary(
    X: Float[Tensor, "*batch N d_k"], cos: Float[Tensor, "N d_k"], sin: Float[Tensor, "N d_k"]
) -> Float[Tensor, "*batch N d_k"]:
    """Turn each pair (column i, column i + d_k/2) of every row by its angle.

    The paper pairs neighboring columns. Which columns make a pair is a matter of their order
    alone; this order is that of the models whose weights are loaded here.

    Args:
        X: queries or keys.
        cos: cosine of the angle of each row and column; both columns of a pair have the same.
        sin: sine, likewise.
    """
    first, second = X.chunk(2, dim=-1)
    return X * cos + torch.cat((-second, first), dim=-1) * sin


class RotaryPositions(nn.Module):
    r"""Rotations for queries and keys: what q·k says of positions depends on i − j alone.

    $$(\mathbf q_i\mathbf R_i)\cdot(\mathbf k_j\mathbf R_j)=\mathbf q_i\mathbf R_{i-j}\mathbf k_j
    ^\top$$

    Source: `rope` (without an equation in the book), Su et al. 2021 (arXiv
    2104.09864), equation 16.

    Nothing is learned: cosines and sines are kept once they have been needed.

    Attributes:
        key_dim: d_k.
        base: of the frequencies.
        scaling: how angles are stretched to a longer context; None for not at all.
    """

    def __init__(self, key_dim: int, base: float = 10000.0, scaling: RopeScaling | None = None):
        """Choose the frequencies.

        Raises:
            ValueError: if the size is odd, or the base is not above 1.
        """
        super().__init__()
        check_size(key_dim=key_dim)
        if key_dim % 2:
            raise ValueError(
                f"Rotations turn pairs of columns, so key_dim must be even: not {key_dim}."
            )
        if not base > 1:
            raise ValueError(f"The base of rotary frequencies must be above 1, not {base!r}.")
        self.key_dim, self.base, self.scaling = key_dim, base, scaling
        self._cached_tables: tuple[Tensor, Tensor] | None = None

    def forward(
        self, X: Float[Tensor, "*batch N d_k"], start: int
    ) -> Float[Tensor, "*batch N d_k"]:
        """Rotate rows that stand at positions `start`, `start` + 1 and so on."""
        end = start + X.shape[-2]
        if is_traced(X):  # a table that grows would tie the program to lengths
            return apply_rotary(X, *self._cos_sin(torch.arange(start, end, device=X.device), X))
        cos, sin = self._cached_tables or (X, X)
        if cos is X or len(cos) < end or cos.device != X.device or cos.dtype != X.dtype:
            rows = 1 << (end - 1).bit_length()  # doubled, so that few tables are ever made
            with torch.inference_mode(False):
                cos, sin = self._cos_sin(torch.arange(rows, device=X.device), X)
            self._cached_tables = cos, sin
        return apply_rotary(X, cos[start:end], sin[start:end])

    def _cos_sin(self, positions: Int[Tensor, "N"], X: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines in X's type, computed in float32 or better."""
        exact = positions.to(torch.promote_types(X.dtype, torch.float32))
        angles = rotation_angles(exact, self.key_dim, self.base, self.scaling).repeat(1, 2)
        return angles.cos().to(X.dtype), angles.sin().to(X.dtype)
