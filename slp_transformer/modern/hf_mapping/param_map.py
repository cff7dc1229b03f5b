"""The place of a tensor of ours among those of a published model."""

from dataclasses import dataclass

from slp_transformer.modern.config import ModernConfig


@dataclass(frozen=True)
class HFTensor:
    """A tensor of others, which is ours or some of its columns.

    Attributes:
        name: what they call it.
        transposed: whether they keep it with rows for outputs, as `torch.nn.Linear` does.
        columns: how many columns of ours it is; None for all.
    """

    name: str
    transposed: bool = False
    columns: int | None = None


ParamMap = dict[str, tuple[HFTensor, ...]]
"""For each tensor of ours those of others that it is made of, side by side."""


def check_only(family: str, config: ModernConfig, **values: object) -> None:
    """Refuse settings that a family has in one way only.

    Raises:
        ValueError: naming the first that is another.
    """
    for name, value in values.items():
        if getattr(config, name) != value:
            raise ValueError(f"{family} has no {name} = {getattr(config, name)!r}, only {value!r}.")


def map_tensor(ours: str, theirs: str) -> ParamMap:
    """A tensor of ours that they keep as it is, under a name of theirs."""
    return {ours: (HFTensor(theirs),)}


def map_linear(W: str, b: str | None, theirs: str) -> ParamMap:
    """Our matrix W and bias b, kept as a `torch.nn.Linear` under a name."""
    places = {W: (HFTensor(f"{theirs}.weight", transposed=True),)}
    return places if b is None else places | {b: (HFTensor(f"{theirs}.bias"),)}


def map_qkv(ours: str, theirs: tuple[str, str, str], config: ModernConfig) -> ParamMap:
    """Our W_QKV and b_QKV, kept as three `torch.nn.Linear` under names of their own."""
    widths = config.qkv_widths()
    each = list(zip(theirs, widths, strict=True))
    W = tuple(HFTensor(f"{name}.weight", transposed=True, columns=w) for name, w in each)
    b = tuple(HFTensor(f"{name}.bias", columns=w) for name, w in each)
    places = {f"{ours}.W_QKV": W}
    return places | {f"{ours}.b_QKV": b} if config.attention_bias else places


def map_norm(ours: str, theirs: str, *, offset: bool) -> ParamMap:
    """Our norm, under a name of theirs; an RMSNorm has no offset."""
    places = {f"{ours}.gamma": (HFTensor(f"{theirs}.weight"),)}
    return places | {f"{ours}.beta": (HFTensor(f"{theirs}.bias"),)} if offset else places
