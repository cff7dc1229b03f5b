"""RMSNorm: layer norm without the mean and without the offset."""

import torch
import torch.nn.functional as F
from torch import nn, ones

from slp_transformer._internal.argument_checks import check_row_size
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, ShapedModule, Tensor


class RMSNorm(ShapedModule):
    r"""Each token's row divided by its root mean square, then a learned gain.

    $$\mathrm{RMSNorm}(\mathbf x)=\gamma\frac{\mathbf x}{\sqrt{\frac1d\sum_{i=1}^d x_i^2}}$$

    Zhang and Sennrich 2019 (arXiv 1910.07467), equation 4. One step from the book's layer norm:
    for a row of mean 0 the two are the same, up to the offset β.

    Attributes:
        gamma: gain [d].
        eps: added to the mean square; the paper has none.
    """

    def __init__(self, model_dim: int, eps: float = 1e-6):
        """Make an RMSNorm with gain 1.

        Args:
            model_dim: d, the size of a row.
            eps: added to the mean square before the root.

        Raises:
            ValueError: if the size is not a positive whole number, or eps is negative.
        """
        super().__init__()
        check_positive_sizes(model_dim=model_dim)
        if not eps >= 0:
            raise ValueError(f"eps is added to a square and must be 0 or more, not {eps!r}.")
        self.model_dim: int = model_dim
        self.eps: float = eps
        self.gamma: nn.Parameter = nn.Parameter(ones(model_dim))

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Scale each row of X by its own root mean square."""
        # Rows of bfloat16 and a gain of float32, as under autocast, have no fused kernel.
        same = X.to(self.gamma.dtype) if X.dtype != self.gamma.dtype else X
        if fast_paths_enabled():  # the same, in one pass over X
            return F.rms_norm(same, (self.model_dim,), self.gamma, self.eps).to(X.dtype)
        check_row_size(X, self.model_dim)  # rows of one number would broadcast
        mean_square = same.square().mean(dim=-1, keepdim=True)
        return (self.gamma * same / torch.sqrt(mean_square + self.eps)).to(X.dtype)
