"""Encoder-decoders of one size from this package and from its peers, behind one interface.

All have one vocabulary for both languages, whose matrix source, target and head share, ReLU and a
hidden layer of 4d. What is a library's own (post-norm, biases, relative positions, which kernel) is
left as its makers have it. Each is called with source, target and where the source is padded.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from torch import nn

Translator = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Size:
    """A model's size.

    Attributes:
        blocks: in the encoder, and as many in the decoder.
        width: d.
        heads: A.
        words: |V|, of both languages together.
        positions: the longest sentence.
        dropout: share dropped, wherever a library drops.
    """

    blocks: int = 3
    width: int = 256
    heads: int = 8
    words: int = 8000
    positions: int = 128
    dropout: float = 0.0


class Ours(nn.Module):
    """This package's, in the book's form."""

    def __init__(self, size: Size):
        """Make it."""
        from slp_transformer import EncoderDecoder, TransformerConfig

        super().__init__()
        sizes = {"model_dim": size.width, "num_heads": size.heads, "num_blocks": size.blocks}
        config = TransformerConfig(size.words, size.positions, **sizes, dropout=size.dropout)
        self.model = EncoderDecoder(config)

    def forward(self, source, target, padded):
        """Logits for the word after each position of the target."""
        from slp_transformer import padding_mask

        return self.model(source, target, padding_mask(padded, True))


class TorchTranslator(nn.Module):
    """`torch.nn.Transformer`, with embeddings as PyTorch's tutorial on translation has them."""

    def __init__(self, size: Size):
        """Make it."""
        super().__init__()
        how = {"dropout": size.dropout, "batch_first": True}
        layers = (size.blocks, size.blocks, 4 * size.width)
        self.stacks = nn.Transformer(size.width, size.heads, *layers, **how)
        self.E = nn.Embedding(size.words, size.width)
        self.P = nn.Embedding(size.positions, size.width)
        self.width = size.width

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """The input of a stack."""
        return self.E(ids) * math.sqrt(self.width) + self.P.weight[: ids.shape[1]]

    def forward(self, source, target, padded):
        """Logits for the word after each position of the target."""
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1], source.device)
        H = self.stacks(
            self.rows(source),
            self.rows(target),
            tgt_mask=future == -math.inf,
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
            tgt_is_causal=True,
        )
        return H @ self.E.weight.T


class PlainAttention(nn.Module):
    """Four `nn.Linear`, batched products and a softmax, as in many a repository from scratch."""

    def __init__(self, size: Size):
        """Make it."""
        super().__init__()
        self.heads, self.share = size.heads, size.width // size.heads
        linear = [nn.Linear(size.width, size.width, bias=False) for _ in range(4)]
        self.w_q, self.w_k, self.w_v, self.w_o = linear
        self.dropout = nn.Dropout(size.dropout)

    def split(self, X: torch.Tensor) -> torch.Tensor:
        """One row of matrices for each head."""
        return X.view(X.shape[0], X.shape[1], self.heads, self.share).transpose(1, 2)

    def forward(self, q, k, v, mask):
        """Attend from q to k; where the mask is 0, nobody looks."""
        Q, K, V = self.split(self.w_q(q)), self.split(self.w_k(k)), self.split(self.w_v(v))
        scores = (Q @ K.transpose(-2, -1)) / math.sqrt(self.share)
        scores = scores.masked_fill(mask == 0, -1e9)
        X = self.dropout(scores.softmax(dim=-1)) @ V
        X = X.transpose(1, 2).contiguous().view(X.shape[0], -1, self.heads * self.share)
        return self.w_o(X)


class PlainBlock(nn.Module):
    """A block in that form, pre-norm; with attention across, if it is a decoder's."""

    def __init__(self, size: Size, decoder: bool):
        """Make it."""
        super().__init__()
        self.attentions = nn.ModuleList(PlainAttention(size) for _ in range(1 + decoder))
        self.norms = nn.ModuleList(nn.LayerNorm(size.width) for _ in range(2 + decoder))
        self.up, self.down = (
            nn.Linear(size.width, 4 * size.width),
            nn.Linear(4 * size.width, size.width),
        )
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x, mask, memory=None, memory_mask=None):
        """Each sublayer added to the stream."""
        here = self.norms[0](x)
        x = x + self.dropout(self.attentions[0](here, here, here, mask))
        if memory is not None:
            asked = self.norms[1](x)
            x = x + self.dropout(self.attentions[1](asked, memory, memory, memory_mask))
        return x + self.dropout(self.down(self.dropout(F.relu(self.up(self.norms[-1](x))))))


class Plain(nn.Module):
    """An encoder-decoder of such blocks."""

    def __init__(self, size: Size):
        """Make it."""
        super().__init__()
        self.E, self.P = (nn.Embedding(n, size.width) for n in (size.words, size.positions))
        self.encoder, self.decoder = (
            nn.ModuleList(PlainBlock(size, decoder) for _ in range(size.blocks))
            for decoder in (False, True)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size.width) for _ in range(2))
        self.width = size.width

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """The input of a stack."""
        return self.E(ids) * math.sqrt(self.width) + self.P.weight[: ids.shape[1]]

    def forward(self, source, target, padded):
        """Logits for the word after each position of the target."""
        mask = ~padded[:, None, None, :]
        future = torch.ones(target.shape[1], target.shape[1], device=target.device).tril()
        x, y = self.rows(source), self.rows(target)
        for block in self.encoder:
            x = block(x, mask)
        memory = self.norms[0](x)
        for block in self.decoder:
            y = block(y, future, memory, mask)
        return self.norms[1](y) @ self.E.weight.T


class HuggingFace(nn.Module):
    """A model of Hugging Face's that returns its logits alone."""

    def __init__(self, model: nn.Module):
        """Wrap a model."""
        super().__init__()
        self.model = model

    def forward(self, source, target, padded):
        """Logits for the word after each position of the target."""
        here = {"input_ids": source, "attention_mask": (~padded).long()}
        return self.model(**here, decoder_input_ids=target, use_cache=False).logits


def bart_sizes(size: Size) -> dict:
    """The settings that BART and Marian share."""
    return {
        "vocab_size": size.words,
        "max_position_embeddings": size.positions,
        "d_model": size.width,
        "activation_function": "relu",
        "dropout": size.dropout,
        "attention_dropout": size.dropout,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
        "forced_eos_token_id": None,
        "attn_implementation": "sdpa",
    } | {
        f"{stack}_{what}": value
        for stack in ("encoder", "decoder")
        for what, value in (
            ("layers", size.blocks),
            ("attention_heads", size.heads),
            ("ffn_dim", 4 * size.width),
        )
    }


def bart(size: Size) -> nn.Module:
    """Hugging Face's BART."""
    from transformers import BartConfig, BartForConditionalGeneration

    return HuggingFace(BartForConditionalGeneration(BartConfig(**bart_sizes(size))))


def marian(size: Size) -> nn.Module:
    """Hugging Face's Marian, a model of 2017 but for biases."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(**bart_sizes(size), scale_embedding=True)
    return HuggingFace(MarianMTModel(config))


def t5(size: Size) -> nn.Module:
    """Hugging Face's T5, with its relative positions."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=size.words,
        d_model=size.width,
        d_kv=size.width // size.heads,
        d_ff=4 * size.width,
        num_layers=size.blocks,
        num_heads=size.heads,
        dropout_rate=size.dropout,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return HuggingFace(T5ForConditionalGeneration(config))


MODELS: dict[str, Callable[[Size], nn.Module]] = {
    "slp_transformer": Ours,
    "torch.nn": TorchTranslator,
    "BART": bart,
    "Marian": marian,
    "T5": t5,
    "from scratch": Plain,
}
OF_HUGGING_FACE = ("BART", "Marian", "T5")
