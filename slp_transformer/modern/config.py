"""The options in which modern models differ from the book's. Nothing here needs PyTorch."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from slp_transformer._internal.config_checks import (
    POSITIVE,
    POSITIVE_SHARE,
    ROPE_BASE,
    SIZE,
    Range,
    check_positive_sizes,
    is_integer,
    resolve_head_sizes,
)
from slp_transformer._internal.parts import (
    ROTARY_SETTINGS,
    Activation,
    AttentionBias,
    Normalization,
    NormOrder,
    Positions,
    RopeType,
)
from slp_transformer._internal.settings import check_settings, setting, settings
from slp_transformer.config import TransformerConfig

TOKEN: Range = is_integer, "a token's number"
NUMBER: Range = (lambda x: x * 0 == 0), "a number"
LLAMA3 = {"rope_type": "llama3", "original_context_length": 90}  # for examples
YARN = LLAMA3 | {"rope_type": "yarn"}


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


def turned_columns(config: "ModernConfig") -> int:
    """Return how many columns of a head's rows rotary positions turn, pair by pair.

    Raises:
        ValueError: if they are no pairs.
    """
    key_dim = config.key_dim or config.model_dim // config.num_heads
    turned = int(key_dim * config.rotary_share)
    if turned % 2 or not turned:
        what = "key_dim" if turned == key_dim else "key_dim · rotary_share"
        raise ValueError(f"Rotary positions turn pairs, so {what} must be even: not {turned}.")
    return turned


@settings
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

    rope_type: RopeType = setting(MISSING, example="yarn")
    factor: float = setting(MISSING, POSITIVE, example=2.0)
    original_context_length: int = setting(1, SIZE, example=90, given={"rope_type": "llama3"})
    low_freq_factor: float = setting(1.0, POSITIVE, example=2.5, given=LLAMA3)
    high_freq_factor: float = setting(4.0, POSITIVE, example=9.0, given=LLAMA3)
    beta_fast: float = setting(32.0, POSITIVE, example=3.0, given=YARN)
    beta_slow: float = setting(1.0, POSITIVE, example=9.0, given=YARN)
    attention_factor: float | None = setting(None, NUMBER, example=1.5, given={"rope_type": "yarn"})

    def __post_init__(self) -> None:
        """Refuse numbers that no angles can be scaled by.

        Raises:
            ValueError: naming what must hold.
        """
        check_settings(self)
        for low, high in (("low_freq_factor", "high_freq_factor"), ("beta_slow", "beta_fast")):
            if not getattr(self, low) < getattr(self, high):
                now = f"{low} = {getattr(self, low)}, {high} = {getattr(self, high)}"
                raise ValueError(f"A longer context needs {low} < {high}, not {now}.")


@settings
@dataclass(frozen=True)
class ModernConfig(TransformerConfig):
    """The sizes and options of a modern model; the defaults are those of Llama.

    It has every setting of `TransformerConfig`. With `normalization="layer"`,
    `positions="learned"`, `activation="relu"`, `ffn_bias=True`, `tied=True` and all heads' own keys
    it is the book's model again.

    Attributes:
        activation: of the feedforward layers, for example "swiglu" (`swiglu`) or "relu" (`ffn`).
        norm: where the norms stand in a block, for example "post".
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
    normalization: Normalization = setting("rms", example="layer", book="layer")
    qk_norm: bool = setting(False, example=True, book=False)
    zero_init: bool = setting(False, example=True, book=False)
    tied: bool = setting(True, example=False, book=True)
    num_kv_heads: int | None = setting(None, SIZE, example=2, book=None)
    ffn_bias: bool = setting(False, example=True, book=True)
    rope_base: float = setting(10000.0, ROPE_BASE, example=50.0, book=10000.0)
    qk_norm_joint: bool = setting(False, example=True, given={"qk_norm": True})
    attention_bias: AttentionBias = setting(False, example="qkv")
    rotary_share: float = setting(1.0, POSITIVE_SHARE, example=0.5)
    # or its fields, as `to_dict` writes them
    rope_scaling: RopeScaling | None = setting(None, example=RopeScaling("linear", 4.0))
    unrotated_blocks: Sequence[int] = setting((), example=(1,))
    window: int | None = setting(None, SIZE, example=3)
    windowed_blocks: Sequence[int] | None = setting(None, example=(1,), given={"window": 3})
    begin_id: int | None = setting(
        None, TOKEN, no_example="tokenizers write it; the model reads it as any other"
    )
    end_ids: Sequence[int] = setting((), no_example="tokenizers say them to `generate`")
    pad_id: int | None = setting(
        None, TOKEN, no_example="a prompt with it is refused, and classifiers alone read it"
    )

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
        if self.source_vocab_size is not None or self.num_encoder_blocks is not None:
            raise ValueError(
                "source_vocab_size and num_encoder_blocks belong to translators, not to a ModernLM."
            )
        if self.qk_norm_joint and not self.qk_norm:
            raise ValueError("qk_norm_joint is about qk_norm, which this model does not have.")
        check_num_kv_heads(
            self.num_heads, self.num_heads if self.num_kv_heads is None else self.num_kv_heads
        )
        resolve_head_sizes(self.model_dim, self.num_heads, self.key_dim, self.value_dim)
        if self.positions == "rotary":
            turned_columns(self)  # or it refuses
        elif turned := [
            name for name in ROTARY_SETTINGS if getattr(self, name) != getattr(type(self), name)
        ]:
            raise ValueError(
                f'{turned[0]} belongs to positions = "rotary", not to "{self.positions}".'
            )
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
