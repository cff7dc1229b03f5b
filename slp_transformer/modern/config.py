"""The options in which modern models differ from the book's. Nothing here needs PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slp_transformer._internal.choices import check_choice_fields
from slp_transformer._internal.config_checks import (
    check_eps,
    check_positive_sizes,
    check_rope_base,
    resolve_head_sizes,
)
from slp_transformer._internal.parts import (
    Activation,
    AttentionBias,
    Normalization,
    NormOrder,
    Positions,
    RopeType,
)
from slp_transformer.config import TransformerConfig


def check_num_kv_heads(num_heads: int, num_kv_heads: int) -> None:
    """Refuse heads that cannot share keys and values in groups of one size.

    Raises:
        ValueError: if a number is not a positive whole number, or the second does not divide the
            first.
    """
    check_positive_sizes(num_heads=num_heads, num_kv_heads=num_kv_heads)
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_kv_heads = {num_kv_heads} does not divide num_heads = {num_heads}: every key and "
            "value must be shared by the same number of heads."
        )


def check_rotary_pairs(config: "ModernConfig") -> None:
    """Refuse heads whose rows cannot be turned pair by pair.

    Raises:
        ValueError: naming their size.
    """
    key_dim = config.key_dim or config.model_dim // config.num_heads
    if not 0 < config.rotary_share <= 1:
        raise ValueError(f"rotary_share is above 0 and at most 1, not {config.rotary_share!r}.")
    turned = int(key_dim * config.rotary_share)
    if turned % 2 or not turned:
        what = "key_dim" if turned == key_dim else "key_dim · rotary_share"
        raise ValueError(f"Rotary positions turn pairs, so {what} must be even: not {turned}.")


@dataclass(frozen=True)
class RopeScaling:
    """A stretch of rotary angles to a longer context than a model was trained on.

    Attributes:
        rope_type: how, for example "linear".
        factor: how much longer the context becomes.
        original_context_length: tokens that the model was trained on; for "llama3".
        low_freq_factor: turns in the old context below which a pair is slowed in full.
        high_freq_factor: turns from which on it is not.
        beta_fast: for "yarn", turns in the old context from which on a pair is not slowed.
        beta_slow: for "yarn", turns below which it is slowed in full.
        attention_factor: for "yarn", what rotated rows are multiplied by; 0.1 ln(factor) + 1 if
            None.
    """

    rope_type: RopeType
    factor: float
    original_context_length: int = 1
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that no angles can be scaled by.

        Raises:
            ValueError: naming what must hold.
        """
        check_choice_fields(self)
        check_positive_sizes(original_context_length=self.original_context_length)
        if not (self.factor > 0 and 0 < self.low_freq_factor < self.high_freq_factor):
            raise ValueError(
                "A longer context needs factor above 0 and 0 < low < high, not factor = "
                f"{self.factor}, low = {self.low_freq_factor}, high = {self.high_freq_factor}."
            )
        if not 0 < self.beta_slow < self.beta_fast:
            raise ValueError(
                "A longer context needs 0 < beta_slow < beta_fast, not beta_slow = "
                f"{self.beta_slow}, beta_fast = {self.beta_fast}."
            )


@dataclass(frozen=True)
class ModernConfig(TransformerConfig):
    """The sizes and options of a modern model; the defaults are those of Llama.

    It has every setting of `TransformerConfig`. With `normalization="layer"`,
    `positions="learned"`, `activation="relu"`, `ffn_bias=True`, `tied=True` and all heads' own keys
    it is the book's model again.

    Attributes:
        activation: of the feedforward layers, for example "swiglu" (`swiglu`) or "relu" (`ffn`).
        positions: how the model knows where its tokens stand, for example "rotary".
        normalization: the norms, "rms" or the book's "layer".
        eps: epsilon of the norms.
        num_kv_heads: how many heads have keys and values of their own, which the others share; as
            many as there are heads if None.
        qk_norm: whether each head's queries and keys go through an RMSNorm (Qwen3).
        qk_norm_joint: whether that is one RMSNorm of all heads' rows side by side (OLMo 2).
        attention_bias: whether W_Q, W_K, W_V and W_O have biases (GPT-2, BERT); "qkv" for all
            but W_O (Qwen2).
        ffn_bias: whether the feedforward layers have biases.
        tied: whether the head's matrix is E (the book's), or one of its own.
        zero_init: whether the matrices that write to the residual stream begin with zeros, so that
            every block begins as the identity.
        rope_base: base of the rotary frequencies.
        rotary_share: the share of a head's columns that are rotated, from the first (GPT-NeoX).
        rope_scaling: how rotary angles are stretched to a longer context.
        unrotated_blocks: blocks, counted from 0, whose queries and keys are not rotated (SmolLM3).
        window: tokens that each token sees, itself and those before it; all of them if None
            (Mistral).
        windowed_blocks: blocks that have such windows; all of them if None (Qwen2).
        begin_id: the token that texts begin with, if there is one.
        end_ids: tokens that end a text.
        pad_id: the token that texts of a batch are filled up with, if there is one.
    """

    # Frozen, so that a wider choice than the book's is no danger where a TransformerConfig is read.
    activation: Activation = "swiglu"  # type: ignore[assignment]
    norm: NormOrder = "pre"  # type: ignore[assignment]
    positions: Positions = "rotary"  # type: ignore[assignment]
    eps: float = 1e-6
    normalization: Normalization = "rms"
    num_kv_heads: int | None = None
    qk_norm: bool = False
    qk_norm_joint: bool = False
    attention_bias: AttentionBias = False
    ffn_bias: bool = False
    tied: bool = True
    zero_init: bool = False
    rope_base: float = 10000.0
    rotary_share: float = 1.0
    rope_scaling: RopeScaling | None = None  # or its fields, as `to_dict` writes them
    unrotated_blocks: Sequence[int] = ()
    window: int | None = None
    windowed_blocks: Sequence[int] | None = None
    begin_id: int | None = None
    end_ids: Sequence[int] = ()
    pad_id: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no model can be made from.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        if isinstance(self.rope_scaling, dict):  # as `to_dict` writes it
            object.__setattr__(self, "rope_scaling", RopeScaling(**self.rope_scaling))
        for name in ("end_ids", "unrotated_blocks", "windowed_blocks"):
            if (numbers := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(numbers))
        super().__post_init__()
        if self.scaled_embeddings or self.initialization != "gpt2":
            raise ValueError(
                "scaled_embeddings and initialization belong to the book's models and that of "
                "2017: leave them as they are, or leave out the parts of today's block."
            )
        if self.qk_norm_joint and not self.qk_norm:
            raise ValueError("qk_norm_joint is about qk_norm, which this model does not have.")
        check_eps(self.eps)
        check_rope_base(self.rope_base)
        check_num_kv_heads(
            self.num_heads, self.num_heads if self.num_kv_heads is None else self.num_kv_heads
        )
        resolve_head_sizes(self.model_dim, self.num_heads, self.key_dim, self.value_dim)
        if self.positions == "rotary":
            check_rotary_pairs(self)
        if self.window is not None:
            check_positive_sizes(window=self.window)
        for name in ("unrotated_blocks", "windowed_blocks"):
            if outside := [l for l in getattr(self, name) or () if not 0 <= l < self.num_blocks]:
                raise ValueError(
                    f"{name} has block {outside[0]}, but there are {self.num_blocks} blocks, "
                    "counted from 0."
                )

    def qkv_widths(self) -> tuple[int, int, int]:
        """Return the columns of queries, keys and values in W_QKV."""
        A, G = self.num_heads, self.num_kv_heads or self.num_heads
        key_dim, value_dim = resolve_head_sizes(self.model_dim, A, self.key_dim, self.value_dim)
        return A * key_dim, G * key_dim, G * value_dim

    def window_of(self, block: int) -> int | None:
        """Return how many tokens each sees in a block; None for all."""
        has_one = self.windowed_blocks is None or block in self.windowed_blocks
        return self.window if has_one else None

    def attention_kwargs(self) -> dict[str, Any]:
        """Return the settings of an attention layer, as `GroupedQueryAttention` takes them."""
        names = ("model_dim", "num_heads", "num_kv_heads", "key_dim", "value_dim", "dropout")
        settings = {name: getattr(self, name) for name in names}
        qk_norm_eps = self.eps if self.qk_norm else None
        settings |= {"bias": self.attention_bias, "qk_norm_eps": qk_norm_eps}
        return settings | {"qk_norm_joint": self.qk_norm_joint}
