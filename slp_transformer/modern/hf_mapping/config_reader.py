"""Settings of a model by others, read once and checked: a part that we don't have is refused."""

from collections.abc import Collection
from typing import Any

MAX_SIZE = 2**24  # of any size: a window of millions, no more
TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


class HFConfigReader:
    """The settings of a config.json; every question names the type that the answer has to have."""

    def __init__(self, content: dict[str, Any], source: str):
        """Keep the settings.

        Args:
            content: what config.json says.
            source: the file, for messages.
        """
        self.content, self.source = content, source

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """A setting, or the default where it is missing or null.

        Raises:
            ValueError: if it is of another type, or missing without a default, or a size beyond
                all measure.
        """
        value = self.content.get(name)
        value = default if value is None else value
        if isinstance(value, int) and kind is float and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ValueError(f"{self.source}: {name} must be {TYPE_NAMES[kind]}, not {value!r}.")
        if kind is int and not 0 < value <= MAX_SIZE:
            raise ValueError(f"{self.source}: {name} must be from 1 to {MAX_SIZE:,}, not {value}.")
        return value

    def get_optional(self, name: str, kind: type) -> Any:
        """A setting that may be missing or null; None then.

        Raises:
            ValueError: if it is there and of another type.
        """
        return None if self.content.get(name) is None else self.get(name, kind)

    def get_choice(self, name: str, known: dict[str, Any], default: str) -> Any:
        """Return this package's value for a setting's word.

        Raises:
            ValueError: if there is nothing here that it stands for.
        """
        word = self.get(name, str, default)
        if word not in known:
            self.refuse(name, word, f"known are {', '.join(known)}")
        return known[word]

    def require_value(self, name: str, usual: Any) -> None:
        """Refuse a setting that is not the usual one, since nothing here could follow it.

        Raises:
            ValueError: naming it.
        """
        value = self.content.get(name)
        if value is not None and value != usual:
            self.refuse(name, value, f"only {usual!r} can be loaded here")

    def refuse_keys(self, names: Collection[str]) -> None:
        """Refuse settings that must be missing, null, false or empty.

        Raises:
            ValueError: naming the first that is not.
        """
        for name in names:
            if self.content.get(name):
                self.refuse(name, self.content[name], "there is no such part here")

    def get_list(self, name: str) -> list[str]:
        """Words; none where they are missing or null.

        Raises:
            ValueError: if it is something else.
        """
        words = self.content.get(name)
        words = [] if words is None else words
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{self.source}: {name} must be a list of words, not {words!r}.")
        return words

    def get_dict(self, name: str) -> dict[str, Any]:
        """Settings of a part; none where they are missing or null.

        Raises:
            ValueError: if it is something else.
        """
        settings = self.content.get(name)
        settings = {} if settings is None else settings
        if not isinstance(settings, dict):
            raise ValueError(f"{self.source}: {name} must be a table of settings: {settings!r}.")
        return settings

    def get_token_ids(self, name: str) -> tuple[int, ...]:
        """One id, several, or none; ids below 0 stand for none.

        Raises:
            ValueError: if it is something else.
        """
        value = self.content.get(name)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise ValueError(f"{self.source}: {name} must be a token id or several, not {value!r}.")
        return tuple(i for i in ids if i >= 0)

    def refuse(self, name: str, value: Any, why: str) -> None:
        """Say what cannot be loaded.

        Raises:
            ValueError: always.
        """
        shown = repr(value)
        shown = shown if len(shown) < 80 else shown[:77] + "..."
        raise ValueError(f"{self.source}: {name} is {shown}, which cannot be loaded: {why}.")
