"""The parts that a model can be made of: for each choice a table, and in it what each name does.

The modules of the book and of `slp_transformer.modern` ask these tables, and so do configurations,
counts of parameters, `--help` and the docs. What an entry does is named as "module:object" and
loaded when it is needed, since nothing here needs PyTorch: settings are read, and refused, before
it is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Annotated, Any, TypeAlias

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class ActivationChoice:
    """An activation of the feedforward layers.

    Attributes:
        summary: for `--help` and the docs.
        function: what is applied to each number; in a gated layer, to the gate.
        layer: the layer, where it is not `FeedForward` with this function.
    """

    summary: str
    function: str
    layer: str = "slp_transformer.feedforward:FeedForward"

    @property
    def is_pointwise(self) -> bool:
        """Return whether `FeedForward` takes it."""
        return self.layer == ActivationChoice.layer


BOOK_ACTIVATIONS = Choices(
    "activation",
    {
        "relu": ActivationChoice("the book's", "torch.nn.functional:relu"),
        "gelu": ActivationChoice("Hendrycks and Gimpel 2016", "torch.nn.functional:gelu"),
        "swiglu": ActivationChoice(
            "a gate of Swish, the August 2026 draft's",
            "torch.nn.functional:silu",
            "slp_transformer.feedforward:SwiGLU",
        ),
    },
)
ACTIVATIONS = Choices(
    "activation",
    {
        "gelu_tanh": ActivationChoice(
            "GPT-2's approximation of gelu", "slp_transformer.feedforward:gelu_tanh"
        ),
        "relu2": ActivationChoice(
            "the square of ReLU, So et al. 2021", "slp_transformer.feedforward:squared_relu"
        ),
    },
    base=BOOK_ACTIVATIONS,
)


@dataclass(frozen=True)
class NormOrderChoice:
    """Where the norms stand in a block.

    Attributes:
        summary: for `--help` and the docs.
        steps: a function of the block, X, and the arguments of self- and cross-attention.
        final_norm: whether a stack ends in one more norm.
    """

    summary: str
    steps: str
    final_norm: bool


BOOK_NORM_ORDERS = Choices(
    "norm",
    {
        "pre": NormOrderChoice(
            "before each sublayer, the book's",
            "slp_transformer.block:ResidualBlock._forward_pre_norm",
            final_norm=True,
        ),
        "post": NormOrderChoice(
            "after each addition, Vaswani et al. 2017",
            "slp_transformer.block:ResidualBlock._forward_post_norm",
            final_norm=False,
        ),
    },
)
NORM_ORDERS = Choices(
    "norm",
    {
        "output": NormOrderChoice(
            "of what each sublayer adds, OLMo 2",
            "slp_transformer.modern.norm_orders:forward_output_norm",
            final_norm=True,
        ),
        "parallel": NormOrderChoice(
            "before both sublayers at once, GPT-NeoX",
            "slp_transformer.modern.norm_orders:forward_parallel",
            final_norm=True,
        ),
    },
    base=BOOK_NORM_ORDERS,
)


@dataclass(frozen=True)
class PositionsChoice:
    """How a model knows where its tokens stand.

    Attributes:
        summary: for `--help` and the docs.
        rows: makes, from N and d, the rows that are added to those of the tokens; None if only
            attention knows.
        learned: whether these rows are weights.
        attention: makes, from a `ModernConfig`, what its attention layers share; None for nothing.
        settings: settings that only models with these positions have.
        check: refuses sizes that these positions cannot have.
    """

    summary: str
    rows: str | None = None
    learned: bool = False
    attention: str | None = None
    settings: tuple[str, ...] = ()
    check: Callable[[Any], None] = lambda config: None


def check_rotary_pairs(config: Any) -> None:
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


BOOK_POSITIONS = Choices(
    "positions",
    {
        "learned": PositionsChoice(
            "a row for each, the book's", "slp_transformer.embedding:LearnedPositions", learned=True
        ),
        "sinusoidal": PositionsChoice(
            "sines and cosines, Vaswani et al. 2017",
            "slp_transformer.embedding:SinusoidalPositions",
        ),
    },
)
POSITIONS = Choices(
    "positions",
    {
        "rotary": PositionsChoice(
            "queries and keys are rotated, Su et al. 2021",
            attention="slp_transformer.modern.rotary:RotaryPositions.from_config",
            settings=("rope_base", "rope_scaling", "rotary_share"),
            check=check_rotary_pairs,
        ),
    },
    base=BOOK_POSITIONS,
)


@dataclass(frozen=True)
class InitializationChoice:
    """How the matrices of a stack begin.

    Attributes:
        summary: for `--help` and the docs.
        draw: fills a matrix in place, and returns it.
        narrow_outputs: whether matrices that write to the stream are divided by the root of their
            number, so that the stream does not grow with depth.
        scaled_embedding_std: deviation of an embedding that is scaled by √d; 1/√d if None.
    """

    summary: str
    draw: str
    narrow_outputs: bool = False
    scaled_embedding_std: float | None = None


INITIALIZATIONS = Choices(
    "initialization",
    {
        "gpt2": InitializationChoice(
            "small normal numbers, the smaller the deeper the stack where they write to the stream",
            "slp_transformer.block:fill_normal_",
            narrow_outputs=True,
        ),
        "xavier": InitializationChoice(
            "uniform, by their sizes: Glorot and Bengio 2010", "torch.nn.init:xavier_uniform_"
        ),
        "bert": InitializationChoice(
            "equally small normal numbers, scaled embeddings too: Devlin et al. 2019",
            "slp_transformer.block:fill_normal_",
            scaled_embedding_std=0.02,
        ),
    },
)


@dataclass(frozen=True)
class NormalizationChoice:
    """A norm of the stream.

    Attributes:
        summary: for `--help` and the docs.
        layer: makes it from d and an epsilon.
    """

    summary: str
    layer: str


NORMALIZATIONS = Choices(
    "normalization",
    {
        "layer": NormalizationChoice("the book's", "slp_transformer.layer_norm:LayerNorm"),
        "rms": NormalizationChoice(
            "RMSNorm, Zhang and Sennrich 2019", "slp_transformer.modern.rms_norm:RMSNorm"
        ),
    },
)


@dataclass(frozen=True)
class BiasChoice:
    """Which products of attention have biases, where some have and some have not.

    Attributes:
        summary: for the docs.
        qkv: whether W_Q, W_K and W_V have.
        output: whether W_O has.
    """

    summary: str
    qkv: bool
    output: bool


ATTENTION_BIASES = Choices(
    "attention_bias", {"qkv": BiasChoice("all but W_O, as Qwen2", qkv=True, output=False)}
)


@dataclass(frozen=True)
class RopeScalingChoice:
    """A way to stretch rotary angles to a longer context.

    Attributes:
        summary: for the docs.
        stretch: a function of the angles a position, a `RopeScaling` and the base of frequencies.
        published: by fields of `RopeScaling` that it needs, their names in a published config.json.
        optional: those of these fields that a config.json may leave out.
        amplitude: a function of a `RopeScaling`: what rotated rows are multiplied by; None for 1.
    """

    summary: str
    stretch: str
    published: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    amplitude: str | None = None


ROPE_SCALINGS = Choices(
    "rope_type",
    {
        "linear": RopeScalingChoice(
            "all pairs turn slower, Chen et al. 2023",
            "slp_transformer.modern.rotary:stretch_all",
            {"factor": "factor"},
        ),
        "llama3": RopeScalingChoice(
            "pairs that turn little in the old context turn slower, those that turn much do not",
            "slp_transformer.modern.rotary:stretch_slow_pairs",
            {name: name for name in ("factor", "low_freq_factor", "high_freq_factor")}
            | {"original_context_length": "original_max_position_embeddings"},
        ),
        "yarn": RopeScalingChoice(
            "as llama3, in a ramp over the pairs, and all scores grow: YaRN, Peng et al. 2023",
            "slp_transformer.modern.rotary:stretch_by_yarn",
            {name: name for name in ("factor", "beta_fast", "beta_slow", "attention_factor")}
            | {"original_context_length": "original_max_position_embeddings"},
            optional=("beta_fast", "beta_slow", "attention_factor"),
            amplitude="slp_transformer.modern.rotary:yarn_amplitude",
        ),
    },
)

BookActivation: TypeAlias = Annotated[str, BOOK_ACTIVATIONS]
Activation: TypeAlias = Annotated[str, ACTIVATIONS]
BookNormOrder: TypeAlias = Annotated[str, BOOK_NORM_ORDERS]
NormOrder: TypeAlias = Annotated[str, NORM_ORDERS]
BookPositions: TypeAlias = Annotated[str, BOOK_POSITIONS]
Positions: TypeAlias = Annotated[str, POSITIONS]
Initialization: TypeAlias = Annotated[str, INITIALIZATIONS]
Normalization: TypeAlias = Annotated[str, NORMALIZATIONS]
AttentionBias: TypeAlias = bool | Annotated[str, ATTENTION_BIASES]
RopeType: TypeAlias = Annotated[str, ROPE_SCALINGS]

load = resolve_name


def qkv_and_output_bias(bias: AttentionBias) -> tuple[bool, bool]:
    """Return whether queries, keys and values have biases, and whether the output has."""
    if isinstance(bias, bool):
        return bias, bias
    choice = ATTENTION_BIASES[bias]
    return choice.qkv, choice.output


MODEL_TABLES = (
    *(ACTIVATIONS, NORM_ORDERS, POSITIONS, INITIALIZATIONS, NORMALIZATIONS),
    *(ATTENTION_BIASES, ROPE_SCALINGS),
)
"""All of these tables, for the docs and the tests."""
