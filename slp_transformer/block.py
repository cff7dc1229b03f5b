"""The block: attention and a feedforward layer around the residual stream, and the stack of blocks.

The book's blocks are pre-norm: each sublayer reads a normalised copy of the stream and adds what
it found. Post-norm, the order of Vaswani et al. 2017, is an option.
"""

from typing import Literal

import torch
from torch import nn

from slp_transformer.cache import KVCache
from slp_transformer.dropping import Dropout
from slp_transformer.feedforward import FeedForward, SwiGLU
from slp_transformer.heads import MultiHeadAttention
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.matrices import check_size
from slp_transformer.shapes import Float, Tensor

Activation = Literal["relu", "gelu", "swiglu"]
NormOrder = Literal["pre", "post"]
Trace = dict[str, Tensor]


class TransformerBlock(nn.Module):
    r"""One block: attention, then feedforward, each added to the residual stream.

    $$\begin{aligned}
    \mathbf O &= \mathbf X+\mathrm{MHA}(\mathrm{LayerNorm}(\mathbf X))\\
    \mathbf H &= \mathbf O+\mathrm{FFN}(\mathrm{LayerNorm}(\mathbf O))
    \end{aligned}$$

    Source: `O` and `H` (8.38-8.39, 7.39-7.40), step by step `T1` to `T-H` (8.40-8.45, 7.41-7.46),
    one token at a time `t1` to `h` (8.26-8.31, 7.27-7.32). With `cross_attention`, the decoder
    block of the translation chapter (Fig. 13.6 in the Aug 2026 draft): between the two steps the
    stream also reads from the encoder's output.

    Attributes:
        attention: the self-attention sublayer.
        cross_attention: the cross-attention sublayer, or None.
        ffn: the feedforward sublayer.
        norm_1: layer norm of the self-attention.
        norm_2: layer norm of the feedforward layer.
        norm_cross: layer norm of the cross-attention, or None.
        norm: "pre" or "post".
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        hidden_dim: int | None = None,
        activation: Activation = "relu",
        norm: NormOrder = "pre",
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
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f'norm must be "pre" or "post", not {norm!r}.')
        if activation not in ("relu", "gelu", "swiglu"):
            raise ValueError(f'activation must be "relu", "gelu" or "swiglu", not {activation!r}.')
        heads = (model_dim, num_heads, key_dim, value_dim, dropout)
        self.norm = norm
        self.attention = MultiHeadAttention(*heads)
        self.norm_1 = LayerNorm(model_dim, eps)
        self.cross_attention = MultiHeadAttention(*heads) if cross_attention else None
        self.norm_cross = LayerNorm(model_dim, eps) if cross_attention else None
        self.ffn = (
            SwiGLU(model_dim, hidden_dim)
            if activation == "swiglu"
            else FeedForward(model_dim, hidden_dim, activation)
        )
        self.norm_2 = LayerNorm(model_dim, eps)
        self.drop = Dropout(dropout)

    def sublayers(self) -> list[nn.Module]:
        """What writes to the residual stream: attention, cross-attention if any, feedforward."""
        return [s for s in (self.attention, self.cross_attention, self.ffn) if s is not None]

    def forward(
        self,
        X: Float[Tensor, "*batch N d"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        causal: bool = False,
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        enc_mask: Float[Tensor, "... #N #M"] | None = None,
        trace: Trace | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Pass the residual stream through the block.

        Args:
            X: the stream coming in, one row a token.
            mask: additive mask of the self-attention.
            causal: hide the future in the self-attention.
            H_enc: the encoder's output, for a block with cross-attention.
            enc_mask: additive mask of the cross-attention (the source's padding).
            trace: a dict to fill with the steps: "T1" … "T5" as the book names them (for post-norm
                as the Feb 2024 draft does), "C1", "C2", "C3" for the cross-attention between T3 and
                T4, "H" for the result, and the attention weights "alpha" and "alpha_cross". Asking
                for them costs the fused attention.
            cache: keys and values of earlier tokens, from which X goes on.

        Returns:
            H, the stream going out.

        Raises:
            ValueError: if a shape does not fit, or `H_enc` is missing or not wanted.
        """
        if self.cross_attention is not None and H_enc is None:
            raise ValueError(
                "This block has cross-attention and needs the encoder's output: pass H_enc."
            )
        if self.cross_attention is None and (H_enc is not None or enc_mask is not None):
            raise ValueError(
                "This block has no cross-attention, so it cannot read H_enc or enc_mask: build it "
                "with cross_attention=True, or leave them out."
            )
        order = self._pre_norm if self.norm == "pre" else self._post_norm
        H = order(X, mask, causal, H_enc, enc_mask, trace, cache)
        record(trace, H=H)
        return H

    def _pre_norm(self, X, mask, causal, H_enc, enc_mask, trace, cache):
        T1 = self.norm_1(X)
        T2 = self._attend(T1, mask, causal, trace, cache)
        T3 = T2 + X
        record(trace, T1=T1, T2=T2, T3=T3)
        if self.cross_attention is not None:
            C1 = self.norm_cross(T3)
            C2 = self._attend_across(C1, H_enc, enc_mask, trace, cache)
            T3 = C2 + T3
            record(trace, C1=C1, C2=C2, C3=T3)
        T4 = self.norm_2(T3)
        T5 = self.drop(self.ffn(T4))
        record(trace, T4=T4, T5=T5)
        return T5 + T3

    def _post_norm(self, X, mask, causal, H_enc, enc_mask, trace, cache):
        T1 = self._attend(X, mask, causal, trace, cache)
        T2 = T1 + X
        T3 = self.norm_1(T2)
        record(trace, T1=T1, T2=T2, T3=T3)
        if self.cross_attention is not None:
            C1 = self._attend_across(T3, H_enc, enc_mask, trace, cache)
            C2 = C1 + T3
            T3 = self.norm_cross(C2)
            record(trace, C1=C1, C2=C2, C3=T3)
        T4 = self.drop(self.ffn(T3))
        T5 = T4 + T3
        record(trace, T4=T4, T5=T5)
        return self.norm_2(T5)

    def _attend(self, T, mask, causal, trace, cache):
        how = {"causal": causal, "cache": cache}
        if trace is None:
            return self.drop(self.attention(T, mask, **how))
        A, alpha = self.attention(T, mask, **how, return_weights=True)
        record(trace, alpha=alpha)
        return self.drop(A)

    def _attend_across(self, T, H_enc, enc_mask, trace, cache):
        how = {"H_enc": H_enc, "cache": None if cache is None else cache.source}
        if trace is None:
            return self.drop(self.cross_attention(T, enc_mask, **how))
        A, alpha = self.cross_attention(T, enc_mask, **how, return_weights=True)
        record(trace, alpha_cross=alpha)
        return self.drop(A)


def record(trace: Trace | None, **steps: Tensor) -> None:
    """Keep the named steps for whoever asked for a trace; do nothing if nobody did."""
    if trace is not None:
        trace.update(steps)


class TransformerStack(nn.Module):
    """Blocks one above the other: the output of one is the input of the next, X^ℓ = H^{ℓ−1}.

    A pre-norm stack ends in one more layer norm, which the book gives in prose and in Fig. 8.16
    (7.16), after 8.31 (7.32); a post-norm stack needs none.

    Source: `stack` and `final-ln` (prose of 8.3 and 8.2, 7.3 and 7.2).

    Attributes:
        blocks: the blocks, lowest first.
        final_norm: the last layer norm, or None in a post-norm stack.
    """

    def __init__(self, num_blocks: int, model_dim: int, num_heads: int, **options):
        """Make a stack of equal blocks.

        Args:
            num_blocks: L.
            model_dim: d.
            num_heads: A.
            **options: what else `TransformerBlock` takes, the same for every block.

        Raises:
            ValueError: if a size or a choice is not one that `TransformerBlock` takes.
        """
        super().__init__()
        check_size(num_blocks=num_blocks)
        self.blocks = nn.ModuleList(
            TransformerBlock(model_dim, num_heads, **options) for _ in range(num_blocks)
        )
        pre_norm = options.get("norm", "pre") == "pre"
        self.final_norm = LayerNorm(model_dim, options.get("eps", 1e-5)) if pre_norm else None
        self.initialise()

    @torch.no_grad()
    def initialise(self) -> None:
        """Draw every matrix anew, as GPT-2 does (Radford et al. 2019, section 2.3).

        From a normal distribution of deviation 0.02; the matrices that write to the residual
        stream from one narrower by the root of their number, so that the stream does not grow with
        depth. The book leaves initialisation open.
        """
        sublayers = [sublayer for block in self.blocks for sublayer in block.sublayers()]
        for sublayer in sublayers:
            for W in sublayer.parameters():
                if W.dim() == 2:
                    W.normal_(std=0.02)
            sublayer.output_matrix.mul_(len(sublayers) ** -0.5)

    def forward(
        self,
        X: Float[Tensor, "*batch N d"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        causal: bool = False,
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        enc_mask: Float[Tensor, "... #N #M"] | None = None,
        trace: list[Trace] | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Pass the residual stream through every block, then the final layer norm.

        Args:
            X: the stream coming in.
            mask: additive mask of the self-attention of every block.
            causal: hide the future.
            H_enc: the encoder's output; every block reads the same.
            enc_mask: additive mask of the cross-attention.
            trace: a list to which each block's steps are appended; see `TransformerBlock`.
            cache: keys and values of earlier tokens, from which X goes on.

        Returns:
            The stream after the last block, normalised.

        Raises:
            ValueError: if a shape does not fit, or `H_enc` is missing or not wanted.
        """
        reads = {"H_enc": H_enc, "enc_mask": enc_mask, "cache": cache}
        for block in self.blocks:
            steps = None if trace is None else {}
            X = block(X, mask, causal=causal, trace=steps, **reads)
            if trace is not None:
                trace.append(steps)
        return X if self.final_norm is None else self.final_norm(X)
