"""The language model of today: the book's, with a few of its parts exchanged."""

from functools import partial

import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.argument_checks import check_length
from slp_transformer._internal.dropout import Dropout
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.block import TransformerBlock, TransformerStack
from slp_transformer.embedding import InputEncoding, TokenEmbedding
from slp_transformer.feedforward import FeedForward, SwiGLU
from slp_transformer.language_model import TransformerLM
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.modern.attention import TodaysAttention
from slp_transformer.modern.config import TodaysConfig
from slp_transformer.modern.rms_norm import RMSNorm
from slp_transformer.modern.rotary import RotaryPositions


def make_norm(config: TodaysConfig) -> RMSNorm | LayerNorm:
    """A norm of the stream, as the configuration has it."""
    kind = RMSNorm if config.normalisation == "rms" else LayerNorm
    return kind(config.model_dim, config.eps)


def make_feedforward(config: TodaysConfig) -> FeedForward | SwiGLU:
    """A feedforward layer; without biases where there are to be none."""
    if config.gated:
        ffn = SwiGLU(config.model_dim, config.hidden_dim)
    else:
        plain = "relu" if config.activation == "relu" else "gelu"
        ffn = FeedForward(config.model_dim, config.hidden_dim, plain)
    if config.activation == "gelu_tanh":
        ffn.activation = partial(F.gelu, approximate="tanh")
    if not config.ffn_bias:
        for name in [name for name, _ in ffn.named_parameters() if name.startswith("b_")]:
            ffn.register_parameter(name, None)
    return ffn


class TodaysBlock(TransformerBlock):
    """The book's block with other parts in it: its forward pass is `TransformerBlock`'s own."""

    def __init__(self, config: TodaysConfig, rotary: RotaryPositions | None = None):
        """Make a block.

        Args:
            config: its sizes and choices.
            rotary: rotations of its queries and keys, shared by all blocks.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        nn.Module.__init__(self)
        self.norm = config.norm
        eps = config.eps if config.qk_norm else None
        how = {"bias": config.attention_bias, "qk_norm_eps": eps, "rotary": rotary}
        self.attention = TodaysAttention(**config.attention_options(), **how)
        self.cross_attention = self.norm_cross = None
        self.norm_1, self.norm_2 = make_norm(config), make_norm(config)
        self.ffn = make_feedforward(config)
        self.drop = Dropout(config.dropout)


class TodaysStack(TransformerStack):
    """The book's stack of such blocks."""

    def __init__(self, config: TodaysConfig):
        """Make a stack.

        Args:
            config: its sizes and choices.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        nn.Module.__init__(self)
        rotary = make_rotary(config)
        self.blocks = nn.ModuleList(TodaysBlock(config, rotary) for _ in range(config.num_blocks))
        self.final_norm = make_norm(config) if config.norm == "pre" else None
        self.initialise()


def make_rotary(config: TodaysConfig) -> RotaryPositions | None:
    """The rotations that all blocks share, if positions are told by them."""
    if config.positions != "rotary":
        return None
    key_dim = config.key_dim or config.model_dim // config.num_heads
    return RotaryPositions(key_dim, config.rope_base, config.rope_long)


class PlaceFree(InputEncoding):
    """The input where positions are told in attention: a row of E for each token, and no more.

    Attributes:
        tokens: the token embedding.
        context_length: N, the longest sequence.
    """

    def __init__(self, vocab_size: int, context_length: int, model_dim: int, dropout: float = 0.0):
        """Make the token embedding.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        nn.Module.__init__(self)
        self.tokens = TokenEmbedding(vocab_size, model_dim)
        self.context_length = context_length
        self.drop = Dropout(dropout)

    def forward(self, ids: Int[Tensor, "*batch N"], start: int = 0) -> Float[Tensor, "*batch N d"]:
        """The rows of E for a sequence of ids.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        check_length(start, ids.shape[-1], self.context_length)
        return self.drop(self.tokens(ids))


def make_input(config: TodaysConfig) -> InputEncoding:
    """The input, with positions or without."""
    sizes = (config.vocab_size, config.context_length, config.model_dim)
    if config.positions == "rotary":
        return PlaceFree(*sizes, config.dropout)
    return InputEncoding(*sizes, config.positions, config.dropout)


class TodaysLM(TransformerLM):
    """A decoder-only language model of today; its forward pass is `TransformerLM`'s own.

    Attributes:
        config: what it was made from.
        embedding: the input.
        stack: the blocks and the final norm.
        E_out: the head's own matrix [|V|×d]; None if it is E.
    """

    def __init__(self, config: TodaysConfig):
        """Make a language model.

        Args:
            config: its sizes and choices.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        nn.Module.__init__(self)
        self.config = config
        self.embedding = make_input(config)
        self.stack = TodaysStack(config)
        own = None if config.tied else TokenEmbedding(config.vocab_size, config.model_dim).E
        self.register_parameter("E_out", own)

    @property
    def unembedding(self) -> Float[Tensor, "V d"]:
        """The matrix that an output of the stack is compared with: E, or the head's own."""
        return self.embedding.tokens.E if self.E_out is None else self.E_out
