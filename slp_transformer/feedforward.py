"""The feedforward layer: what happens to each token by itself.

The book's of 2025, and the gated one of the August 2026 draft and of today's models.
"""

from collections.abc import Callable
from typing import ClassVar

import torch.nn.functional as F
from torch import nn, zeros

from slp_transformer._internal.choices import check_in_choices
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.parts import Activation
from slp_transformer._internal.shape_types import Float, ShapedModule, Tensor
from slp_transformer._internal.weight_matrices import affine, make_weight_matrix


def squared_relu(X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return the square of ReLU (So et al. 2021, arXiv 2109.08668)."""
    return F.relu(X).square()


def gelu_tanh(X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return GELU by the approximation of GPT-2."""
    return F.gelu(X, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "relu2": squared_relu,
}
"""What `FeedForward` applies to each number."""


class FeedForward(ShapedModule):
    r"""The feedforward layer: the same two-layer network at every position.

    $$\mathrm{FFN}(\mathbf x)=\mathrm{ReLU}(\mathbf x\mathbf W_1+b_1)\mathbf W_2+b_2$$

    Source: `ffn`.

    The Aug 2026 draft has `SwiGLU` in its place. GELU, GPT-2's choice, is an option.

    Attributes:
        W_1: [d×d_ff].
        b_1: [d_ff].
        W_2: [d_ff×d].
        b_2: [d].
    """

    num_inputs: ClassVar[int] = 1  # matrices that read the stream; one more writes to it

    def __init__(
        self,
        model_dim: int,
        hidden_dim: int | None = None,
        activation: Activation = "relu",
        bias: bool = True,
    ):
        """Make a feedforward layer.

        Args:
            model_dim: d.
            hidden_dim: d_ff; 4d if not given.
            activation: "relu" as the book, "gelu", "gelu_tanh", its approximation in GPT-2, or
                "relu2", the square of ReLU.
            bias: whether there are b_1 and b_2, as in the book.

        Raises:
            ValueError: if a size is not a positive whole number, or the activation is unknown.
        """
        super().__init__()
        check_positive_sizes(model_dim=model_dim)
        hidden_dim = self.default_hidden_dim(model_dim) if hidden_dim is None else hidden_dim
        check_positive_sizes(hidden_dim=hidden_dim)
        check_in_choices(ACTIVATIONS, activation=activation)
        self.activation = ACTIVATIONS[activation]
        self.W_1 = make_weight_matrix(model_dim, hidden_dim)
        self.b_1: nn.Parameter | None = nn.Parameter(zeros(hidden_dim)) if bias else None
        self.W_2 = make_weight_matrix(hidden_dim, model_dim)
        self.b_2: nn.Parameter | None = nn.Parameter(zeros(model_dim)) if bias else None

    @property
    def matrices(self) -> list[nn.Parameter]:
        """W_1 and W_2; the last writes to the residual stream."""
        return [self.W_1, self.W_2]

    @staticmethod
    def default_hidden_dim(model_dim: int) -> int:
        """Return 4d."""
        return 4 * model_dim

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Apply the network to each row of X."""
        hidden = self.activation(affine(X, self.W_1, self.b_1))
        return affine(hidden, self.W_2, self.b_2)


class SwiGLU(ShapedModule):
    r"""The gated feedforward layer of today's models.

    $$\mathrm{FFN}_{SwiGLU}(\mathbf x)=(\mathrm{Swish}_1(\mathbf x\mathbf W_1+b_1)\otimes
    (\mathbf x\mathbf W_2+b_2))\mathbf W_3+b_3$$

    Source: `swish` and `swiglu`, with β = 1.

    Attributes:
        W_1: the gate [d×d_ff].
        b_1: [d_ff].
        W_2: what is gated [d×d_ff].
        b_2: [d_ff].
        W_3: [d_ff×d].
        b_3: [d].
    """

    num_inputs: ClassVar[int] = 2

    def __init__(self, model_dim: int, hidden_dim: int | None = None, bias: bool = True):
        """Make a gated feedforward layer.

        Args:
            model_dim: d.
            hidden_dim: d_ff; `default_hidden_dim` if not given.
            bias: whether there are b_1, b_2 and b_3, as in the book.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        check_positive_sizes(model_dim=model_dim)
        hidden_dim = self.default_hidden_dim(model_dim) if hidden_dim is None else hidden_dim
        check_positive_sizes(hidden_dim=hidden_dim)
        self.W_1 = make_weight_matrix(model_dim, hidden_dim)
        self.b_1: nn.Parameter | None = nn.Parameter(zeros(hidden_dim)) if bias else None
        self.W_2 = make_weight_matrix(model_dim, hidden_dim)
        self.b_2: nn.Parameter | None = nn.Parameter(zeros(hidden_dim)) if bias else None
        self.W_3 = make_weight_matrix(hidden_dim, model_dim)
        self.b_3: nn.Parameter | None = nn.Parameter(zeros(model_dim)) if bias else None

    @property
    def matrices(self) -> list[nn.Parameter]:
        """W_1, W_2 and W_3; the last writes to the residual stream."""
        return [self.W_1, self.W_2, self.W_3]

    @staticmethod
    def default_hidden_dim(model_dim: int) -> int:
        """8d/3, rounded up: three such matrices weigh as much as the two of a plain layer of 4d."""
        return -(-8 * model_dim // 3)

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Apply the network to each row of X."""
        gate = F.silu(affine(X, self.W_1, self.b_1))
        return affine(gate * affine(X, self.W_2, self.b_2), self.W_3, self.b_3)


LAYERS: dict[str, type[FeedForward] | type[SwiGLU]] = {
    **dict.fromkeys(ACTIVATIONS, FeedForward),
    "swiglu": SwiGLU,
}


def make_feedforward(
    model_dim: int, hidden_dim: int | None, activation: Activation, bias: bool = True
) -> FeedForward | SwiGLU:
    """Make the feedforward layer of an activation, plain or gated.

    Raises:
        ValueError: if a size is not a positive whole number, or the activation is unknown.
    """
    check_in_choices(LAYERS, activation=activation)
    if activation == "swiglu":  # whose gate is Swish, so there is nothing left to choose
        return SwiGLU(model_dim, hidden_dim, bias)
    return FeedForward(model_dim, hidden_dim, activation, bias)
