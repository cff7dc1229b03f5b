"""How matrices begin. An entry needs a function that fills a matrix in place."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from slp_transformer._internal.choices import Choices


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

Initialization: TypeAlias = Annotated[str, INITIALIZATIONS]
