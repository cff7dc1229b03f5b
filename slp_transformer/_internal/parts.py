"""The names of the parts that a model can be made of, each with a phrase for `--help` and the docs.

What a name does stands where it acts, in a dict of functions or in an `if`: `feedforward.LAYERS`,
`embedding.POSITIONS`, `initialization.INITIALIZATIONS`, `ResidualBlock.orders` and so on. A test
makes a model with each name and compares every two, so that none can stand here without an effect.
Nothing here needs PyTorch: settings are read, and refused, before it is loaded.
"""

from typing import Annotated, Literal, TypeAlias

from slp_transformer._internal.choices import Choices, Phrase


def names(setting: str, base: Choices[Phrase] | None = None, **phrases: str) -> Choices[Phrase]:
    """Make a table of names from their phrases, and of those of another table before them."""
    return Choices(setting, {name: Phrase(text) for name, text in phrases.items()}, base)


BOOK_ACTIVATION_NAMES = names(
    "activation",
    relu="the book's",
    gelu="Hendrycks and Gimpel 2016",
    swiglu="a gate of Swish, the August 2026 draft's",
)
ACTIVATION_NAMES = names(
    "activation",
    BOOK_ACTIVATION_NAMES,
    gelu_tanh="GPT-2's approximation of gelu",
    relu2="the square of ReLU, So et al. 2021",
)
BOOK_NORM_ORDER_NAMES = names(
    "norm",
    pre="before each sublayer, the book's",
    post="after each addition, Vaswani et al. 2017",
)
NORM_ORDER_NAMES = names(
    "norm",
    BOOK_NORM_ORDER_NAMES,
    output="of what each sublayer adds, OLMo 2",
    parallel="before both sublayers at once, GPT-NeoX",
)
BOOK_POSITION_NAMES = names(
    "positions",
    learned="a row for each, the book's",
    sinusoidal="sines and cosines, Vaswani et al. 2017",
)
POSITION_NAMES = names(
    "positions", BOOK_POSITION_NAMES, rotary="queries and keys are rotated, Su et al. 2021"
)
INITIALIZATION_NAMES = names(
    "initialization",
    gpt2="small normal numbers, the smaller the deeper the stack where they write to the stream",
    xavier="uniform, by their sizes: Glorot and Bengio 2010",
    bert="equally small normal numbers, scaled embeddings too: Devlin et al. 2019",
)
NORMALIZATION_NAMES = names(
    "normalization", layer="the book's", rms="RMSNorm, Zhang and Sennrich 2019"
)
ATTENTION_BIAS_NAMES = names("attention_bias", qkv="all but W_O, as Qwen2")
ROPE_SCALING_NAMES = names(
    "rope_type",
    linear="all pairs turn slower, Chen et al. 2023",
    llama3="pairs that turn little in the old context turn slower, those that turn much do not",
    yarn="as llama3, in a ramp over the pairs, and all scores grow: YaRN, Peng et al. 2023",
)
MODEL_TABLES = (
    *(ACTIVATION_NAMES, NORM_ORDER_NAMES, POSITION_NAMES, INITIALIZATION_NAMES),
    *(NORMALIZATION_NAMES, ATTENTION_BIAS_NAMES, ROPE_SCALING_NAMES),
)
"""All of these tables, for the docs and the tests."""

ROTARY_SETTINGS = ("rope_base", "rope_scaling", "rotary_share", "unrotated_blocks")
"""Settings that only models with rotary positions have."""

BookActivation: TypeAlias = Annotated[Literal["relu", "gelu", "swiglu"], BOOK_ACTIVATION_NAMES]
Activation: TypeAlias = Annotated[
    Literal["relu", "gelu", "swiglu", "gelu_tanh", "relu2"], ACTIVATION_NAMES
]
BookNormOrder: TypeAlias = Annotated[Literal["pre", "post"], BOOK_NORM_ORDER_NAMES]
NormOrder: TypeAlias = Annotated[Literal["pre", "post", "output", "parallel"], NORM_ORDER_NAMES]
BookPositions: TypeAlias = Annotated[Literal["learned", "sinusoidal"], BOOK_POSITION_NAMES]
Positions: TypeAlias = Annotated[Literal["learned", "sinusoidal", "rotary"], POSITION_NAMES]
Initialization: TypeAlias = Annotated[Literal["gpt2", "xavier", "bert"], INITIALIZATION_NAMES]
Normalization: TypeAlias = Annotated[Literal["layer", "rms"], NORMALIZATION_NAMES]
AttentionBias: TypeAlias = bool | Annotated[Literal["qkv"], ATTENTION_BIAS_NAMES]
RopeType: TypeAlias = Annotated[Literal["linear", "llama3", "yarn"], ROPE_SCALING_NAMES]
