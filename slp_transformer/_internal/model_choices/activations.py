"""The activations of feedforward layers. An entry needs a function of a tensor, any shape."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class ActivationChoice:
    """An activation of the feedforward layers.

    Attributes:
        summary: for `--help` and the docs.
        function: what is applied to each number of a tensor of any shape; in a gated layer, to the
            gate. It is called under autograd, and under `torch.compile` where a run asks for it.
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

BookActivation: TypeAlias = Annotated[str, BOOK_ACTIVATIONS]
Activation: TypeAlias = Annotated[str, ACTIVATIONS]
