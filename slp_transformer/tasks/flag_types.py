"""tyro's marks of how fields become flags; without tyro, which only commands need, no marks."""

from typing import Annotated, Any, TypeVar

T = TypeVar("T")

try:
    from tyro.conf import Positional, UseAppendAction, arg
except ImportError:
    Positional = UseAppendAction = Annotated[T, "a mark for tyro"]  # type: ignore[misc]  # generic alias

    def arg(**options: Any) -> Any:
        """Return a mark without effect."""
        return options


__all__ = ["Positional", "UseAppendAction", "arg"]
