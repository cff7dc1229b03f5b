"""Language models of the same size from this package and from its peers, behind one interface.

All have a vocabulary of 65, learned positions where the library has them, pre-norm blocks, GELU, a
hidden layer of 4d and a head tied to the embedding. What is a library's own (biases, rotary
positions, which fused kernel) is left as its makers have it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY = 65


@dataclass(frozen=True)
class Size:
    """A model's size, and the batch that it is trained on.

    Attributes:
        blocks: L.
        width: d.
        heads: A.
        batch: sequences in a training step.
        context: tokens in each.
        dropout: share dropped, wherever a library drops.
    """

    blocks: int
    width: int
    heads: int
    batch: int
    context: int = 256
    dropout: float = 0.0


SIZES = {
    "4x128": Size(blocks=4, width=128, heads=4, batch=16),
    "6x384": Size(blocks=6, width=384, heads=6, batch=8),
    "12x768": Size(blocks=12, width=768, heads=12, batch=4),
}


def ours(size: Size, context: int) -> nn.Module:
    """This package's."""
    from slp_transformer import TransformerConfig, TransformerLM

    sizes = {"model_dim": size.width, "num_heads": size.heads, "num_blocks": size.blocks}
    how = {"activation": "gelu", "dropout": size.dropout}
    return TransformerLM(TransformerConfig(VOCABULARY, context, **sizes, **how))


class TorchLM(nn.Module):
    """`torch.nn.TransformerEncoder` with a causal mask, and an embedding at both ends."""

    def __init__(self, size: Size, context: int):
        """Make it as PyTorch's tutorial does, but pre-norm."""
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            size.width,
            size.heads,
            4 * size.width,
            dropout=size.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        norm = nn.LayerNorm(size.width)
        self.stack = nn.TransformerEncoder(layer, size.blocks, norm, enable_nested_tensor=False)
        self.E = nn.Embedding(VOCABULARY, size.width)
        self.P = nn.Embedding(context, size.width)
        mask = nn.Transformer.generate_square_subsequent_mask(context)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits for the word after each position."""
        N = ids.shape[1]
        X = self.E(ids) + self.P.weight[:N]
        return self.stack(X, mask=self.mask[:N, :N], is_causal=True) @ self.E.weight.T


class NanoBlock(nn.Module):
    """A block in nanoGPT's form: one matrix for Q, K and V, `nn.Linear`, PyTorch's attention."""

    def __init__(self, size: Size, bias: bool):
        """Make it without biases, as nanoGPT's training scripts do, or with those of the book."""
        super().__init__()
        width = size.width
        self.heads, self.dropout = size.heads, size.dropout
        self.norm_1, self.norm_2 = (nn.LayerNorm(width, bias=bias) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)
        self.drop = nn.Dropout(size.dropout)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Attention and the feedforward layer, each added to the stream."""
        parts = self.qkv(self.norm_1(X)).chunk(3, dim=-1)
        Q, K, V = (Z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for Z in parts)
        dropout = self.dropout if self.training else 0.0
        values = F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=True)
        X = X + self.drop(self.out(values.transpose(1, 2).flatten(2)))
        return X + self.drop(self.down(F.gelu(self.up(self.norm_2(X)))))


class NanoGPT(nn.Module):
    """A GPT of such blocks, with one embedding at both ends."""

    def __init__(self, size: Size, context: int, bias: bool = False):
        """Make it."""
        super().__init__()
        self.E, self.P = nn.Embedding(VOCABULARY, size.width), nn.Embedding(context, size.width)
        self.blocks = nn.Sequential(*(NanoBlock(size, bias) for _ in range(size.blocks)))
        self.norm, self.drop = nn.LayerNorm(size.width, bias=bias), nn.Dropout(size.dropout)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits for the word after each position."""
        X = self.drop(self.E(ids) + self.P.weight[: ids.shape[1]])
        return self.norm(self.blocks(X)) @ self.E.weight.T


def hugging_face(size: Size, context: int) -> nn.Module:
    """Hugging Face's GPT-2, with PyTorch's fused attention."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=context,
        n_embd=size.width,
        n_layer=size.blocks,
        n_head=size.heads,
        activation_function="gelu",
        resid_pdrop=size.dropout,
        embd_pdrop=size.dropout,
        attn_pdrop=size.dropout,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="sdpa",
    )
    return GPT2LMHeadModel(config)


class Logits(nn.Module):
    """A Hugging Face model that returns its logits alone."""

    def __init__(self, model: nn.Module):
        """Wrap a model."""
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits for the word after each position."""
        return self.model(input_ids=ids).logits


def x_transformers(size: Size, context: int) -> nn.Module:
    """lucidrains' x-transformers, with flash attention."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(
        dim=size.width,
        depth=size.blocks,
        heads=size.heads,
        attn_dim_head=size.width // size.heads,
        attn_flash=True,
        attn_dropout=size.dropout,
        ff_dropout=size.dropout,
    )
    return TransformerWrapper(
        num_tokens=VOCABULARY,
        max_seq_len=context,
        attn_layers=layers,
        emb_dropout=size.dropout,
        tie_embedding=True,
    )


def litgpt(size: Size, context: int) -> nn.Module:
    """Lightning's litgpt, in the form of GPT-NeoX, which has no dropout."""
    from litgpt.config import Config
    from litgpt.model import GPT

    config = Config(
        block_size=context,
        n_layer=size.blocks,
        n_embd=size.width,
        n_head=size.heads,
        vocab_size=VOCABULARY,
        padded_vocab_size=VOCABULARY,
        parallel_residual=False,
    )
    model = GPT(config)
    model.lm_head.weight = model.transformer.wte.weight
    return model


Make = Callable[[Size, int], nn.Module]
MODELS: dict[str, Make] = {
    "slp_transformer": ours,
    "nanoGPT's form": NanoGPT,
    "nanoGPT's form, biases": partial(NanoGPT, bias=True),
    "Hugging Face": lambda size, context: Logits(hugging_face(size, context)),
    "torch.nn": TorchLM,
    "x-transformers": x_transformers,
    "litgpt": litgpt,
}
