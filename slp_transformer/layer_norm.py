"""Layer norm: each token's row brought to mean 0 and deviation 1, then scaled and shifted."""

import torch
import torch.nn.functional as F
from torch import nn, ones, zeros

from slp_transformer._internal.argument_checks import check_row_size
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, ShapedModule, Tensor


class LayerNorm(ShapedModule):
    r"""Layer norm: each token's row to mean 0 and deviation 1, then a learned gain and offset.

    $$\mathrm{LayerNorm}(\mathbf x)=\gamma\frac{\mathbf x-\mu}{\sigma}+\beta$$

    Source: `ln-mean` to `ln`. The deviation divides by d, not d−1. The book
    has no epsilon: `eps=0` gives its equation to the letter; the default is PyTorch's,
    σ = √(variance + eps), which keeps a constant row finite.

    Attributes:
        gamma: gain [d].
        beta: offset [d].
        eps: added to the variance.
    """

    def __init__(self, model_dim: int, eps: float = 1e-5):
        """Make a layer norm with gain 1 and offset 0.

        Args:
            model_dim: d, the size of a token's row.
            eps: added to the variance before the root; 0 is the book's.

        Raises:
            ValueError: if the size is not a positive whole number, or eps is negative.
        """
        super().__init__()
        check_positive_sizes(model_dim=model_dim)
        if not eps >= 0:
            raise ValueError(f"eps is added to a variance and must be 0 or more, not {eps!r}.")
        self.model_dim: int = model_dim
        self.eps: float = eps
        self.gamma: nn.Parameter = nn.Parameter(ones(model_dim))
        self.beta: nn.Parameter = nn.Parameter(zeros(model_dim))

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Normalize each row of X by its own mean and deviation."""
        if fast_paths_enabled():  # the same, in one pass over X
            return F.layer_norm(X, (self.model_dim,), self.gamma, self.beta, self.eps)
        check_row_size(X, self.model_dim)  # rows of one number would broadcast
        mu = X.mean(dim=-1, keepdim=True)
        sigma = torch.sqrt((X - mu).square().mean(dim=-1, keepdim=True) + self.eps)
        return self.gamma * (X - mu) / sigma + self.beta
