"""The block: attention and a feedforward layer around the residual stream, and the stack of blocks.

The book's blocks are pre-norm: each sublayer reads a normalized copy of the stream and adds what
it found. Post-norm, the order of Vaswani et al. 2017, is an option.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypedDict, Unpack

from torch import nn

from slp_transformer._internal.argument_checks import check_encoder_output
from slp_transformer._internal.choices import check_in_choices
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.explained_refusals import (
    explain_refusals,
    refuse_unfit_rows,
)
from slp_transformer._internal.initialization import draw_matrices
from slp_transformer._internal.parts import (
    BOOK_ACTIVATION_NAMES,
    BookActivation,
    BookNormOrder,
    Initialization,
    NormOrder,
)
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer.cache import BlockCache, KVCache
from slp_transformer.dropout import Dropout
from slp_transformer.feedforward import make_feedforward
from slp_transformer.hooks import HookedModule
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.multi_head import MultiHeadAttention

Sublayer: TypeAlias = Callable[[Tensor], Tensor]


def has_final_norm(norm: str) -> bool:
    """Tell if a stack ends in a norm of its own: where a block leaves the stream unnormalized."""
    return norm != "post"


def forward_pre_norm(
    block: Any, X: Float[Tensor, "*batch N d"], mha: Sublayer, mha_across: Sublayer | None
) -> Float[Tensor, "*batch N d"]:
    r"""Normalize what each sublayer reads, and add what it finds to the stream, as the book does.

    $$\begin{aligned}
    \mathbf O &= \mathbf X+\mathrm{MHA}(\mathrm{LayerNorm}(\mathbf X))\\
    \mathbf H &= \mathbf O+\mathrm{FFN}(\mathrm{LayerNorm}(\mathbf O))
    \end{aligned}$$

    Source: `O` and `H`, step by step `T1` to `T-H`, one token at a time `t1` to `h`. In the decoder
    block of the translation chapter the stream reads from the encoder's output between the two.
    """
    point = block.hook_point
    T1 = point("T1", block.norm_1(X))
    T2 = point("T2", block.drop(mha(T1)))
    T3 = point("T3", T2 + X)
    if mha_across is not None:
        C1 = point("C1", block.norm_cross(T3))
        C2 = point("C2", block.drop(mha_across(C1)))
        T3 = point("C3", C2 + T3)
    T4 = point("T4", block.norm_2(T3))
    T5 = point("T5", block.drop(block.ffn(T4)))
    return T5 + T3


def forward_post_norm(
    block: Any, X: Float[Tensor, "*batch N d"], mha: Sublayer, mha_across: Sublayer | None
) -> Float[Tensor, "*batch N d"]:
    """Normalize the stream after each addition, as Vaswani et al. 2017 do.

    Source: `postnorm-t`.
    """
    point = block.hook_point
    T1 = point("T1", block.drop(mha(X)))
    T2 = point("T2", T1 + X)
    T3 = point("T3", block.norm_1(T2))
    if mha_across is not None:
        C1 = point("C1", block.drop(mha_across(T3)))
        C2 = point("C2", C1 + T3)
        T3 = point("C3", block.norm_cross(C2))
    T4 = point("T4", block.drop(block.ffn(T3)))
    T5 = point("T5", T4 + T3)
    return block.norm_2(T5)


class ResidualBlock(HookedModule):
    """One block: attention, then feedforward, each added to the residual stream.

    `forward_pre_norm` or `forward_post_norm` is what it does. It passes on to its attention what
    `forward` names; attention of one's own that takes more has a block of its own, too.

    Its named points (`slp_transformer.hooks`) are "X", "T1" to "T5" and "H", with cross-attention
    "C1" to "C3" between T3 and T4.

    Attributes:
        attention: the self-attention sublayer.
        cross_attention: the cross-attention sublayer, or None.
        ffn: the feedforward sublayer.
        norm_1: layer norm of the self-attention.
        norm_2: layer norm of the feedforward layer.
        norm_cross: layer norm of the cross-attention, or None.
        norm: the name of its order in `orders`.
    """

    # By `norm`. A subclass may know more; a name that is in no dict is refused.
    orders: ClassVar[dict[str, Callable[[Any, Tensor, Sublayer, Sublayer | None], Tensor]]] = {
        "pre": forward_pre_norm,
        "post": forward_post_norm,
    }

    def __init__(
        self,
        attention: nn.Module,
        norm_1: nn.Module,
        ffn: nn.Module,
        norm_2: nn.Module,
        *,
        cross_attention: nn.Module | None = None,
        norm_cross: nn.Module | None = None,
        norm: NormOrder = "pre",
        dropout: float = 0.0,
    ):
        """Put a block together; `TransformerBlock` makes the book's parts, too.

        Raises:
            ValueError: if `norm` is none of its `orders`.
        """
        super().__init__()
        check_in_choices(self.orders, norm=norm)
        self.norm = norm
        self.attention: nn.Module = attention
        self.norm_1: nn.Module = norm_1
        self.cross_attention: nn.Module | None = cross_attention
        self.norm_cross: nn.Module | None = norm_cross
        self.ffn: nn.Module = ffn
        self.norm_2: nn.Module = norm_2
        self.drop: Dropout = Dropout(dropout)

    def sublayers(self) -> list[Any]:
        """Return what writes to the stream: attention, cross-attention if any, feedforward."""
        return [s for s in (self.attention, self.cross_attention, self.ffn) if s is not None]

    @explain_refusals(refuse_unfit_rows)
    def forward(
        self,
        X: Float[Tensor, "*batch N d"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        causal: bool = False,
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        enc_mask: Float[Tensor, "... #N #M"] | None = None,
        cache: BlockCache | None = None,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Pass the residual stream through the block.

        Args:
            X: the stream coming in, one row a token.
            mask: additive mask of the self-attention.
            causal: hide the future in the self-attention.
            H_enc: the encoder's output, for a block with cross-attention.
            enc_mask: additive mask of the cross-attention (the source's padding).
            cache: keys and values of earlier tokens, from which X goes on.
            position_ids: positions of X's tokens, for a self-attention that rotates to them.

        Returns:
            H, the stream going out.

        Raises:
            ValueError: if a shape, type or device does not fit, or `H_enc` is missing or not
                wanted.
        """
        check_encoder_output(self, H_enc, enc_mask)
        caches = (cache.self_attention, cache.cross_attention) if cache else (None, None)
        # Attention that does not rotate has no such argument.
        positions = {} if position_ids is None else {"position_ids": position_ids}
        mha = partial(self.attention, mask=mask, causal=causal, cache=caches[0], **positions)
        across: Sublayer | None = None
        if self.cross_attention is not None:
            across = partial(self.cross_attention, mask=enc_mask, H_enc=H_enc, cache=caches[1])
        H = self.orders[self.norm](self, self.hook_point("X", X), mha, across)
        return self.hook_point("H", H)

    if TYPE_CHECKING:
        __call__ = forward


class TransformerBlock(ResidualBlock):
    """The book's block: multi-head attention, a feedforward layer and layer norms."""

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        hidden_dim: int | None = None,
        activation: BookActivation = "relu",
        norm: BookNormOrder = "pre",
        cross_attention: bool = False,
        dropout: float = 0.0,
        eps: float = 1e-5,
    ):
        """Make a block.

        Args:
            model_dim: d.
            num_heads: A.
            key_dim: d_k of each head; d/A if not given.
            value_dim: d_v of each head; d/A if not given.
            hidden_dim: d_ff; see `FeedForward` and `SwiGLU` for what is taken if not given.
            activation: "relu" (the book's), "gelu", or "swiglu" for the gated layer.
            norm: "pre" (the book's) or "post".
            cross_attention: whether the block also reads from an encoder.
            dropout: share dropped, in training, of the attention weights and of what each sublayer
                adds to the stream; not in the book.
            eps: epsilon of the layer norms.

        Raises:
            ValueError: if a size or a choice is not one of these.
        """
        check_in_choices(BOOK_ACTIVATION_NAMES, activation=activation)
        heads = (model_dim, num_heads, key_dim, value_dim, dropout)
        attention = MultiHeadAttention(*heads)
        across = MultiHeadAttention(*heads) if cross_attention else None
        super().__init__(
            attention,
            LayerNorm(model_dim, eps),
            make_feedforward(model_dim, hidden_dim, activation),
            LayerNorm(model_dim, eps),
            cross_attention=across,
            norm_cross=LayerNorm(model_dim, eps) if cross_attention else None,
            norm=norm,
            dropout=dropout,
        )


class BlockStack(ShapedModule):
    """Blocks one above the other: the output of one is the input of the next, X^ℓ = H^{ℓ−1}.

    A pre-norm stack ends in one more layer norm, which the book gives in prose and in a
    figure; a post-norm stack needs none.

    Source: `stack` and `final-ln`.

    Attributes:
        blocks: the blocks, lowest first.
        final_norm: the last layer norm, or None in a post-norm stack.
    """

    def __init__(
        self,
        blocks: Iterable[ResidualBlock],
        final_norm: nn.Module | None,
        initialization: Initialization = "gpt2",
    ):
        """Stack blocks, and draw their matrices; `TransformerStack` makes the book's blocks, too.

        Raises:
            ValueError: if the initialization is none of the three.
        """
        super().__init__()
        self.blocks: nn.ModuleList = nn.ModuleList(blocks)
        self.final_norm: nn.Module | None = final_norm
        # A stack may hold other modules; only of our blocks is it known what writes to the stream.
        ours = [block for block in self.blocks if isinstance(block, ResidualBlock)]
        draw_matrices([part for block in ours for part in block.sublayers()], initialization)

    def forward(
        self,
        X: Float[Tensor, "*batch N d"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        causal: bool = False,
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        enc_mask: Float[Tensor, "... #N #M"] | None = None,
        cache: KVCache | None = None,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Pass the residual stream through every block, then the final layer norm.

        Every block gets the same: see `ResidualBlock.forward`, also for what is refused. Of `cache`
        each has its own share.
        """
        given: dict[str, Any] = {"causal": causal, "H_enc": H_enc, "enc_mask": enc_mask}
        if position_ids is not None:  # blocks of somebody's own need not take them
            given["position_ids"] = position_ids
        for l, block in enumerate(self.blocks):
            X = block(X, mask, cache=None if cache is None else cache[l], **given)
        if cache is not None:
            cache.commit()  # only now: until the last block a pass may break off
        return X if self.final_norm is None else self.final_norm(X)

    if TYPE_CHECKING:
        __call__ = forward


class BlockOptions(TypedDict, total=False):
    """What `TransformerBlock` takes besides its sizes."""

    key_dim: int | None
    value_dim: int | None
    hidden_dim: int | None
    activation: BookActivation
    norm: BookNormOrder
    cross_attention: bool
    dropout: float
    eps: float


class TransformerStack(BlockStack):
    """The book's stack: equal blocks, and in pre-norm a layer norm at the end."""

    def __init__(
        self,
        num_blocks: int,
        model_dim: int,
        num_heads: int,
        *,
        initialization: Initialization = "gpt2",
        **options: Unpack[BlockOptions],
    ):
        """Make a stack of equal blocks.

        Args:
            num_blocks: L.
            model_dim: d.
            num_heads: A.
            initialization: "gpt2", "xavier" or "bert", see `TransformerConfig`.
            **options: what else `TransformerBlock` takes, the same for every block.

        Raises:
            ValueError: if a size or a choice is not one that `TransformerBlock` takes.
        """
        check_positive_sizes(num_blocks=num_blocks)
        blocks = [TransformerBlock(model_dim, num_heads, **options) for _ in range(num_blocks)]
        ends_in_norm = has_final_norm(options.get("norm", "pre"))
        final_norm = LayerNorm(model_dim, options.get("eps", 1e-5)) if ends_in_norm else None
        super().__init__(blocks, final_norm, initialization)
