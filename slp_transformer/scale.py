"""How large a model is: the book's parameter formula, and what it leaves out."""

from dataclasses import dataclass

from slp_transformer.config import TransformerConfig
from slp_transformer.feedforward import SwiGLU
from slp_transformer.heads import head_sizes


def approximate_parameters(num_blocks: int, model_dim: int) -> int:
    r"""The book's rule of thumb, $N\approx 12\,n_{layer}\,d^2$.

    Source: `param-count` (8.52, exercise 7.1c), for d_attn = d_ff/4 = d.
    """
    return 12 * num_blocks * model_dim**2


@dataclass(frozen=True)
class ParameterCount:
    r"""The parameters of a model, by what they do.

    `matrices` is the book's count, $2\,d\,n_{layer}(2d_{attn}+d_{ff})$ (`param-count`, 8.52,
    exercise 7.1c); the rest is what it leaves out. `total` is what PyTorch counts, to the last one.

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
        """What the book's formula counts: the matrices of attention and feedforward layers."""
        return self.attention + self.feedforward

    @property
    def total(self) -> int:
        """Every parameter."""
        return self.matrices + self.biases + self.norms + self.embeddings


def count_parameters(config: TransformerConfig, *, encoder_decoder: bool = False) -> ParameterCount:
    """Count a model's parameters from its configuration, without making it.

    Source: `param-count` (8.52, exercise 7.1c).

    Args:
        config: the model's sizes.
        encoder_decoder: count an `EncoderDecoder` rather than a `TransformerLM`.

    Raises:
        ValueError: if the heads' sizes are left to d/A and A does not divide d.
    """
    d, A = config.model_dim, config.num_heads
    d_k, d_v = head_sizes(d, A, config.key_dim, config.value_dim)
    gated = config.activation == "swiglu"
    d_ff = config.hidden_dim or (SwiGLU.default_hidden_dim(d) if gated else 4 * d)
    decoder = config.num_blocks
    encoder = (config.num_encoder_blocks or decoder) if encoder_decoder else 0
    blocks = encoder + decoder
    attentions = blocks + (decoder if encoder_decoder else 0)
    stacks = 2 if encoder_decoder else 1
    norms = attentions + blocks + (stacks if config.norm == "pre" else 0)
    vocabulary = config.vocab_size + (config.source_vocab_size or 0) * (stacks - 1)
    learned = config.context_length * stacks if config.positions == "learned" else 0
    return ParameterCount(
        attention=attentions * 2 * d * A * (d_k + d_v),
        feedforward=blocks * (3 if gated else 2) * d * d_ff,
        biases=blocks * ((2 if gated else 1) * d_ff + d),
        norms=norms * 2 * d,
        embeddings=(vocabulary + learned) * d,
    )
