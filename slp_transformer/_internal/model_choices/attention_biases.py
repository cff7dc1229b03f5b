"""Which products of attention have biases. An entry needs nothing but its two answers."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from slp_transformer._internal.choices import Choices


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

AttentionBias: TypeAlias = bool | Annotated[str, ATTENTION_BIASES]


def qkv_and_output_bias(bias: AttentionBias) -> tuple[bool, bool]:
    """Return whether queries, keys and values have biases, and whether the output has."""
    if isinstance(bias, bool):
        return bias, bias
    choice = ATTENTION_BIASES[bias]
    return choice.qkv, choice.output
