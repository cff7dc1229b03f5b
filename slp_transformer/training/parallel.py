"""The ways in which several processes share a model. Nothing here needs PyTorch."""

from dataclasses import dataclass

from slp_transformer._internal.choices import Choices


@dataclass(frozen=True)
class ParallelChoice:
    """A way in which processes share a model.

    Attributes:
        summary: what each process has, for `--help` and the docs.
        strategy: its class, a `Strategy`, as "module:name".
        shards_matrices: whether a process has but a part of each matrix.
    """

    summary: str
    strategy: str
    shards_matrices: bool = False


PARALLEL = Choices(
    "parallel",
    {
        "ddp": ParallelChoice(
            "each process has the whole model: the least communication, if that fits on a GPU",
            "slp_transformer.training.distributed:DDPStrategy",
        ),
        "fsdp": ParallelChoice(
            "each has its share of every weight, and all of one block at a time",
            "slp_transformer.training.distributed:FSDPStrategy",
            shards_matrices=True,
        ),
    },
)
"""How the processes that torchrun starts share the model, by the setting `parallel`."""
