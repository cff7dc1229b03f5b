"""Rotary positions: queries and keys are turned by an angle that grows with the position."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from slp_transformer._internal.config_checks import ROPE_BASE, check_positive_sizes, check_range
from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.modern.config import RopeScaling


def stretch_all(
    theta: Float[Tensor, "pairs"], scaling: RopeScaling, base: float
) -> Float[Tensor, "pairs"]:
    """Let all pairs turn `factor` times slower (Chen et al. 2023, arXiv 2306.15595)."""
    return theta / scaling.factor


def stretch_slow_pairs(
    theta: Float[Tensor, "pairs"], scaling: RopeScaling, base: float
) -> Float[Tensor, "pairs"]:
    """Slow down the pairs that turn little in the old context, as Llama 3 does.

    Those that turn less than `low_freq_factor` times in it turn `factor` times slower, those that
    turn more than `high_freq_factor` times stay as they are, and between the two there is a
    mixture.
    """
    turns = scaling.original_context_length * theta / (2 * math.pi)
    keep = (
        (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    ).clamp(0, 1)
    return keep * theta + (1 - keep) * theta / scaling.factor


def stretch_by_yarn(
    theta: Float[Tensor, "pairs"], scaling: RopeScaling, base: float
) -> Float[Tensor, "pairs"]:
    """Slow down the pairs that turn little in the old context, in a ramp over their numbers.

    YaRN (Peng et al. 2023, arXiv 2309.00071), section 3.2: from the pair that turns `beta_fast`
    times in the old context, which stays as it is, to the one that turns `beta_slow` times, and
    from there on `factor` times slower.
    """
    pairs, old = theta.shape[-1], scaling.original_context_length

    def pair_of(turns: float) -> float:  # that turns so often in the old context
        return pairs * math.log(old / (turns * 2 * math.pi)) / math.log(base)

    first = max(math.floor(pair_of(scaling.beta_fast)), 0)
    # The bound is that of columns, not of pairs, as in YaRN's own code.
    last = min(math.ceil(pair_of(scaling.beta_slow)), 2 * pairs - 1)
    ramp = torch.arange(pairs, device=theta.device).to(theta) - first
    slow = (ramp / max(last - first, 0.001)).clamp(0, 1)
    return slow * theta / scaling.factor + (1 - slow) * theta


STRETCHES = {"linear": stretch_all, "llama3": stretch_slow_pairs, "yarn": stretch_by_yarn}


def yarn_amplitude(scaling: RopeScaling) -> float:
    """Return what rotated rows are multiplied by, so that scores grow with the context."""
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    return 0.1 * math.log(max(scaling.factor, 1.0)) + 1.0


def rotation_angles(
    positions: Float[Tensor, "*batch N"],
    key_dim: int,
    base: float = 10000.0,
    stretch: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "*batch N pairs"]:
    r"""Return the angle by which each pair of columns turns at each position.

    $$pos\cdot\theta_i,\quad\theta_i=base^{-2i/d_k}$$

    Su et al. 2021 (arXiv 2104.09864), section 3.2.2. The frequencies are those of the sinusoidal
    positions, `sinusoid` (Vaswani et al. 2017).

    Args:
        positions: where the tokens stand.
        key_dim: d_k, an even number.
        base: the larger, the slower the last pairs turn.
        stretch: gives the angles from one position to the next for a longer context.
    """
    theta = base ** -(torch.arange(0, key_dim, 2, device=positions.device).to(positions) / key_dim)
    return positions.unsqueeze(-1) * (theta if stretch is None else stretch(theta))


def apply_rotary(
    X: Float[Tensor, "*batch N d_k"],
    cos: Float[Tensor, "... N d_k"],
    sin: Float[Tensor, "... N d_k"],
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


def rotate_first_columns(
    X: Float[Tensor, "*batch N d_k"],
    cos: Float[Tensor, "... N turned"],
    sin: Float[Tensor, "... N turned"],
) -> Float[Tensor, "*batch N d_k"]:
    """Apply `apply_rotary` to as many columns as there are angles for; the others stay."""
    turned = cos.shape[-1]
    if turned == X.shape[-1]:
        return apply_rotary(X, cos, sin)
    return torch.cat((apply_rotary(X[..., :turned], cos, sin), X[..., turned:]), dim=-1)


class RotaryPositions(nn.Module):
    r"""Rotations of queries and keys, by which q·k depends on positions by i − j alone.

    $$(\mathbf q_i\mathbf R_i)\cdot(\mathbf k_j\mathbf R_j)=\mathbf q_i\mathbf R_{i-j}\mathbf k_j
    ^\top$$

    Source: `rope` (without an equation in the book), Su et al. 2021 (arXiv
    2104.09864), equation 16.

    Nothing is learned: cosines and sines are kept once they have been needed.

    Attributes:
        key_dim: d_k, or how many of its columns are turned.
        base: of the frequencies.
        scaling: how angles are stretched to a longer context; None for not at all.
    """

    def __init__(self, key_dim: int, base: float = 10000.0, scaling: RopeScaling | None = None):
        """Choose the frequencies.

        Raises:
            ValueError: if the size is odd, or the base gives no angles.
        """
        super().__init__()
        check_positive_sizes(key_dim=key_dim)
        if key_dim % 2:
            raise ValueError(
                f"Rotations turn pairs of columns, so key_dim must be even: not {key_dim}."
            )
        check_range(ROPE_BASE, rope_base=base)
        self.key_dim: int = key_dim
        self.base: float = base
        self.scaling: RopeScaling | None = scaling
        self._stretch: Callable[[Tensor], Tensor] | None = None
        self._amplitude: float = 1.0
        if scaling is not None:
            self._stretch = partial(STRETCHES[scaling.rope_type], scaling=scaling, base=base)
            if scaling.rope_type == "yarn":
                self._amplitude = yarn_amplitude(scaling)
        self._cached_tables: tuple[Tensor, Tensor] | None = None

    def forward(
        self, X: Float[Tensor, "*batch N d_k"], start: int | Int[Tensor, "... N"]
    ) -> Float[Tensor, "*batch N d_k"]:
        """Rotate rows, those of each head alike.

        Args:
            X: queries or keys.
            start: the position of the first token, which the others follow; or that of each.
        """
        if isinstance(start, Tensor):
            cos, sin = self._cos_sin(start.to(X.device), X)
            return rotate_first_columns(X, cos.unsqueeze(-3), sin.unsqueeze(-3))
        end = start + X.shape[-2]
        if is_traced(X):  # a table would tie the program to lengths
            positions = torch.arange(start, end, device=X.device)
            return rotate_first_columns(X, *self._cos_sin(positions, X))
        cos, sin = self._cached_tables or (X, X)
        if cos is X or len(cos) < end or cos.device != X.device or cos.dtype != X.dtype:
            rows = 1 << (end - 1).bit_length()  # doubled, so that few tables are ever made
            with torch.inference_mode(False):  # the table may be needed in training afterwards
                positions = torch.arange(rows, device=X.device)
                cos, sin = self._cached_tables = self._cos_sin(positions, X)
        return rotate_first_columns(X, cos[start:end], sin[start:end])

    def _cos_sin(self, positions: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines in X's type, computed in float32 or better."""
        # In bfloat16 there are no whole numbers such as 257, so tokens would share a position.
        exact = positions.to(torch.promote_types(X.dtype, torch.float32))
        angles = rotation_angles(exact, self.key_dim, self.base, self._stretch)
        angles = torch.cat((angles, angles), dim=-1)
        both = angles.cos(), angles.sin()
        cos, sin = (table if self._amplitude == 1 else self._amplitude * table for table in both)
        return cos.to(X.dtype), sin.to(X.dtype)


class Unrotated(nn.Module):
    """No rotations, in a block of a model whose other blocks have some (SmolLM3)."""

    def forward(
        self, X: Float[Tensor, "*batch N d_k"], start: int | Int[Tensor, "... N"]
    ) -> Float[Tensor, "*batch N d_k"]:
        """Return the rows as they are."""
        return X
