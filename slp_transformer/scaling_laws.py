"""Parameter counts of models, and scaling laws of their loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slp_transformer._internal.config_checks import resolve_head_sizes
from slp_transformer.block import has_final_norm
from slp_transformer.config import TransformerConfig
from slp_transformer.feedforward import LAYERS


def approximate_parameters(num_blocks: int, model_dim: int) -> int:
    r"""Return the book's rule of thumb, $N\approx 12\,n_{layer}\,d^2$.

    Source: `param-count`, for d_attn = d_ff/4 = d.
    """
    return 12 * num_blocks * model_dim**2


def training_flops_per_token(config: TransformerConfig, sequence_length: int) -> int:
    r"""Operations of a forward and a backward pass for each of so many tokens in a window.

    $$6N+12\,L\,A\,d_k\,T$$

    for the N weights that a token is multiplied with, E as the language-model head among them, and
    for attention, of whose scores a causal model needs only half. That is how the field compares
    what machines make of their speed: what a library computes twice, or leaves out, changes
    nothing in the count.

    Source: Chowdhery et al. 2022, appendix B; not in the book.

    Args:
        config: the sizes of a `TransformerLM`.
        sequence_length: T, how long a window is.

    Returns:
        Operations for one token.
    """
    weights = count_parameters(config).matrices + config.vocab_size * config.model_dim
    d_k, d_v = resolve_head_sizes(
        config.model_dim, config.num_heads, config.key_dim, config.value_dim
    )
    return 6 * weights + 6 * config.num_blocks * config.num_heads * (d_k + d_v) * sequence_length


@dataclass(frozen=True)
class ParameterCount:
    r"""The parameters of a model, by what they do.

    `matrices` is the book's count, $2\,d\,n_{layer}(2d_{attn}+d_{ff})$ (`param-count`);
    the rest is what it leaves out. `total` is what PyTorch counts, to the last one.

    Attributes:
        attention: W^Q, W^K, W^V and W^O of every head, self- and cross-attention.
        feedforward: the matrices of the feedforward layers.
        biases: the biases of the feedforward layers.
        norms: gain and offset of every layer norm, the final ones included.
        embeddings: E, once if it is tied, and learned positions.
    """

    attention: int
    feedforward: int
    biases: int
    norms: int
    embeddings: int

    @property
    def matrices(self) -> int:
        """Return the count of the book's formula: matrices of attention and feedforward layers."""
        return self.attention + self.feedforward

    @property
    def total(self) -> int:
        """Return the number of all parameters."""
        return self.matrices + self.biases + self.norms + self.embeddings


def count_parameters(config: TransformerConfig, *, encoder_decoder: bool = False) -> ParameterCount:
    """Count a model's parameters from its configuration, without making it.

    Args:
        config: the model's sizes.
        encoder_decoder: count an `EncoderDecoder` rather than a `TransformerLM`.

    Raises:
        ValueError: if the heads' sizes are left to d/A and A does not divide d.
    """
    d, A = config.model_dim, config.num_heads
    d_k, d_v = resolve_head_sizes(d, A, config.key_dim, config.value_dim)
    layer = LAYERS[config.activation]
    d_ff = config.hidden_dim or layer.default_hidden_dim(d)
    decoder = config.num_blocks
    encoder = (config.num_encoder_blocks or decoder) if encoder_decoder else 0
    blocks = encoder + decoder
    attentions = blocks + (decoder if encoder_decoder else 0)
    stacks = 2 if encoder_decoder else 1
    norms = attentions + blocks + stacks * has_final_norm(config.norm)
    vocabulary = config.vocab_size + (config.source_vocab_size or 0) * (stacks - 1)
    learned = config.context_length * stacks if config.positions == "learned" else 0
    return ParameterCount(
        attention=attentions * 2 * d * A * (d_k + d_v),
        feedforward=blocks * (layer.num_inputs + 1) * d * d_ff,
        biases=blocks * (layer.num_inputs * d_ff + d),
        norms=norms * 2 * d,
        embeddings=(vocabulary + learned) * d,
    )


# --- Scaling laws ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PowerLaw:
    r"""A loss that falls by the same factor each time x doubles.

    $$L(x)=\left(\frac{x_c}{x}\right)^{\alpha}$$

    Source: `L(N)`, `L(D)` and `L(C)`, after Kaplan et al.
    2020. x is a number of parameters N, of tokens D, or an amount of compute C.

    Attributes:
        scale: x_c, where the loss is 1 nat, in the unit of x.
        exponent: α, the slope of the straight line that the law is on logarithmic axes.
    """

    scale: float
    exponent: float

    def __call__(self, x: float) -> float:
        """Return the loss at x, in nats per token.

        Raises:
            ValueError: if x is not above 0.
        """
        if not x > 0:
            raise ValueError(f"A scaling law begins above 0, so it has no loss for {x!r}.")
        return (self.scale / x) ** self.exponent

    @classmethod
    def fit(cls, sizes: Sequence[float], losses: Sequence[float]) -> "PowerLaw":
        r"""Fit the closest law: a straight line through the logarithms, by least squares.

        $\log L=\alpha\log x_c-\alpha\log x$ is linear in $\log x$.

        Args:
            sizes: x of each model.
            losses: its loss in nats.

        Raises:
            ValueError: if there are fewer than two sizes, one is not above 0, there is not one
                loss for each, or the losses do not fall.
        """
        if len(sizes) != len(losses) or len(set(sizes)) < 2 or min(*sizes, *losses) <= 0:
            raise ValueError(
                "A power law is fitted to two or more sizes above 0 and a loss above 0 for each, "
                f"not to {len(sizes)} sizes and {len(losses)} losses such as {list(sizes)[:3]} and "
                f"{list(losses)[:3]}."
            )
        x, y = [math.log(size) for size in sizes], [math.log(loss) for loss in losses]
        x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
        covariance = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
        slope = covariance / sum((a - x_mean) ** 2 for a in x)
        if not slope < 0:
            raise ValueError("The losses do not fall as the sizes grow: no power law fits them.")
        return cls(math.exp(x_mean - y_mean / slope), -slope)


KAPLAN = {
    "parameters": PowerLaw(8.8e13, 0.076),
    "tokens": PowerLaw(5.4e13, 0.095),
    "compute": PowerLaw(3.1e8, 0.050),
}
"""The book's constants, of Kaplan et al. 2020: N_c in parameters without embeddings, D_c in tokens,
C_c in PF-days. They hold for their tokens, pieces of words of web text, and their models."""

FLOPS_PER_PF_DAY = 1e15 * 24 * 60 * 60
"""A PF-day in floating-point operations: 10¹⁵ a second, for a day."""


def total_training_flops(parameters: float, tokens: float) -> float:
    """Floating-point operations of a training run, about 6 for each parameter and token.

    A product reads each weight once, for a multiplication and an addition; the way back costs twice
    as much. Attention's scores and the logits are left out.

    Source: Kaplan et al. 2020, section 2.1; not in the book.

    Args:
        parameters: N without embeddings (`ParameterCount.matrices`).
        tokens: D, read in training; a token that is read twice counts twice.
    """
    return 6 * parameters * tokens
