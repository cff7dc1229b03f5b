"""Today's stack without a head, and with one that tells classes of texts apart."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer._internal.weight_matrices import make_weight_matrix
from slp_transformer.cache import KVCache
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.language_model import make_embedding, make_stack


class ModernEncoder(ShapedModule):
    """The input and the causal stack of a `ModernLM`, whose outputs are read by something else.

    Attributes:
        config: what it was made from; what concerns the head is not used.
        embedding: the input.
        stack: the blocks and the final norm.
    """

    def __init__(self, config: ModernConfig):
        """Make the input and the stack.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__()
        self.config: ModernConfig = config
        self.embedding: Any = make_embedding(config)
        self.stack: nn.Module = make_stack(config)

    def encode(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Return the stream after the last block; see `TransformerLM.forward`.

        Args:
            ids: token ids, left to right.
            mask: additive mask on top of the causal one.
            cache: what was computed of earlier tokens.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        X = self.embedding(ids, start=0 if cache is None else cache.length)
        return self.stack(X, mask, causal=True, cache=cache)

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Return what `encode` does."""
        return self.encode(ids, mask, cache=cache)

    if TYPE_CHECKING:
        __call__ = forward


class ModernClassifier(ModernEncoder):
    """A causal stack whose last token says which class a text is of.

    Attributes:
        W_classes: the head [d×classes].
        class_names: what the classes are called, for those who read them.
    """

    def __init__(self, config: ModernConfig, num_classes: int):
        """Make the stack and the head.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__(config)
        check_positive_sizes(num_classes=num_classes)
        self.W_classes: nn.Parameter = make_weight_matrix(config.model_dim, num_classes)
        self.class_names: tuple[str, ...] = tuple(f"LABEL_{k}" for k in range(num_classes))

    def forward(  # type: ignore[override]  # a head reads whole texts, so there is no cache
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch classes"]:
        """Compute a logit for each class.

        Args:
            ids: token ids, left to right.
            mask: additive mask on top of the causal one, for texts padded on the left.
            lengths: tokens of each text, where texts are padded on the right.

        Raises:
            ValueError: if an id is outside the vocabulary, or a sequence is too long.
        """
        H = self.encode(ids, mask)
        if lengths is None:
            return H[..., -1, :] @ self.W_classes
        last = (lengths - 1)[..., None, None].expand(*H.shape[:-2], 1, H.shape[-1])
        return torch.gather(H, -2, last).squeeze(-2) @ self.W_classes

    if TYPE_CHECKING:
        __call__ = forward  # type: ignore[assignment]
