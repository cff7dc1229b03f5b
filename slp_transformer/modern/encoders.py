"""Today's stack without a head, and with one that tells classes of texts apart."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from slp_transformer._internal.argument_checks import HIDDEN, check_no_left_padding
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer._internal.weight_matrices import make_weight_matrix
from slp_transformer.cache import KVCache
from slp_transformer.embedding import InputEncoding
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

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        cache: KVCache | None = None,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Return the stream after the last block; see `TransformerLM.forward`.

        Args:
            ids: token ids, left to right.
            mask: additive mask on top of the causal one.
            cache: what was computed of earlier tokens.
            position_ids: positions of the tokens where they do not follow one another.

        Raises:
            ValueError: if an id is outside the vocabulary, the sequence is too long, or the mask is
                that of texts padded on the left, and positions are missing that are counted so.
        """
        start = 0 if cache is None else cache.length
        if isinstance(self.embedding, InputEncoding):  # it counts from the left
            check_no_left_padding(mask, position_ids)
            X = self.embedding(ids, start=start, position_ids=position_ids)
            return self.stack(X, mask, causal=True, cache=cache)
        X = self.embedding(ids, start=start)
        return self.stack(X, mask, causal=True, cache=cache, position_ids=position_ids)

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
        *,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch classes"]:
        """Compute a logit for each class.

        Args:
            ids: token ids, left to right.
            mask: additive mask on top of the causal one, for texts that are padded.
            lengths: tokens of each text, where texts are padded on the right; found by the mask
                and by the `pad_id` of the configuration, if not given.
            position_ids: as for `ModernEncoder`.

        Raises:
            ValueError: as `ModernEncoder`, or if texts end elsewhere by the mask than by `lengths`
                or, without these, by `pad_id`, where transformers ends them.
        """
        H = super().forward(ids, mask, position_ids=position_ids)
        found = self._find_last_tokens(ids, mask)
        last = found if self.config.pad_id is None else self._find_last_tokens(ids, None)
        last = last if lengths is None else lengths - 1
        if mask is not None and not is_traced(ids) and not torch.equal(last, found):
            how = "lengths: give one of the two"
            if lengths is None:
                how = f"padding (id {self.config.pad_id}) does: give padding_mask, or also lengths"
            raise ValueError(f"The mask ends texts elsewhere than {how}.")
        return torch.take_along_dim(H, last[..., None, None], -2).squeeze(-2) @ self.W_classes

    if TYPE_CHECKING:
        __call__ = forward  # type: ignore[assignment]

    def _find_last_tokens(
        self, ids: Int[Tensor, "*batch N"], mask: Float[Tensor, "... #N #T"] | None
    ) -> Int[Tensor, "*batch"]:
        """Return the place of each text's last token that is no padding."""
        if mask is None:
            pad_id = self.config.pad_id
            is_text = torch.ones_like(ids) if pad_id is None else ids != pad_id
        else:
            best = mask.amax(dim=-2)  # over those that look
            best = best.amax(dim=-2) if best.dim() > ids.dim() else best  # and over the heads
            is_text = (best > HIDDEN).expand(ids.shape)
        return (is_text * torch.arange(ids.shape[-1], device=ids.device)).argmax(dim=-1)
