"""The parts that a model can be made of: for each choice a file, whose table says what names do.

The modules of the book and of `slp_transformer.modern` ask these tables, and so do configurations,
counts of parameters, `--help` and the docs. What an entry does is named as "module:object" and
loaded when it is needed, since nothing here needs PyTorch: settings are read, and refused, before
it is loaded.
"""

from pkgutil import resolve_name

from slp_transformer._internal.model_choices.activations import (
    ACTIVATIONS,
    BOOK_ACTIVATIONS,
    Activation,
    ActivationChoice,
    BookActivation,
)
from slp_transformer._internal.model_choices.attention_biases import (
    ATTENTION_BIASES,
    AttentionBias,
    BiasChoice,
    qkv_and_output_bias,
)
from slp_transformer._internal.model_choices.initializations import (
    INITIALIZATIONS,
    Initialization,
    InitializationChoice,
)
from slp_transformer._internal.model_choices.norm_orders import (
    BOOK_NORM_ORDERS,
    NORM_ORDERS,
    BookNormOrder,
    NormOrder,
    NormOrderChoice,
)
from slp_transformer._internal.model_choices.normalizations import (
    NORMALIZATIONS,
    Normalization,
    NormalizationChoice,
)
from slp_transformer._internal.model_choices.positions import (
    BOOK_POSITIONS,
    POSITIONS,
    BookPositions,
    Positions,
    PositionsChoice,
)
from slp_transformer._internal.model_choices.rope_scalings import (
    ROPE_SCALINGS,
    RopeScalingChoice,
    RopeType,
)

__all__ = [
    "ACTIVATIONS",
    "ATTENTION_BIASES",
    "Activation",
    "ActivationChoice",
    "AttentionBias",
    "BOOK_ACTIVATIONS",
    "BOOK_NORM_ORDERS",
    "BOOK_POSITIONS",
    "BiasChoice",
    "BookActivation",
    "BookNormOrder",
    "BookPositions",
    "INITIALIZATIONS",
    "Initialization",
    "InitializationChoice",
    "NORMALIZATIONS",
    "NORM_ORDERS",
    "NormOrder",
    "NormOrderChoice",
    "Normalization",
    "NormalizationChoice",
    "POSITIONS",
    "Positions",
    "PositionsChoice",
    "ROPE_SCALINGS",
    "RopeScalingChoice",
    "RopeType",
    "qkv_and_output_bias",
    "MODEL_TABLES",
    "load",
]

load = resolve_name

MODEL_TABLES = (
    *(ACTIVATIONS, NORM_ORDERS, POSITIONS, INITIALIZATIONS, NORMALIZATIONS),
    *(ATTENTION_BIASES, ROPE_SCALINGS),
)
"""All of these tables, for the docs and the tests."""
