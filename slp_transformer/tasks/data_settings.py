"""The settings of a task's data, and what marks fields as arguments. Nothing here needs PyTorch."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, TypeVar

from slp_transformer._internal.settings import check_settings, list_numbers_without_range

T = TypeVar("T")
try:
    from tyro.conf import Positional, UseAppendAction, arg
except ImportError:  # only commands need tyro
    Positional = UseAppendAction = Annotated[T, "no flag"]

    def arg(**options: Any) -> Any:  # type: ignore[no-redef]  # where tyro's own is missing
        """Return a mark without effect, but with its help."""
        return SimpleNamespace(**options)


__all__ = ["DataSettings", "NoFlags", "Positional", "UseAppendAction", "arg"]


@dataclass(frozen=True)
class DataSettings:
    """The settings of a task's data: its fields are flags of `train`, and keys of config.toml.

    Attributes:
        task: the task's name.
        paths: names of the fields that hold files.
    """

    task: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Refuse numbers out of their ranges, and a field that is a number without a range.

        Raises:
            ValueError: naming the setting.
        """
        for name in list_numbers_without_range(type(self)):
            raise ValueError(f"{type(self).__name__}.{name} needs a setting with a range.")
        check_settings(self)


@dataclass(frozen=True)
class NoFlags:
    """The flags of a task that has none of its own."""
