"""Settings of a published model: read, checked by type, and refused where nothing here has them."""

from typing import Any

from slp_transformer._internal.docs_sections import see

MAX_SIZE = 2**24  # of any size: a window of millions, no more
TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
TYPE_NAMES |= {list: "a list", dict: "a table of settings"}

SettingsTable = dict[str, tuple[str, Any]]
"""For settings of ours their name in config.json, and the value of those that it leaves out.

A type in the place of the value stands for None, and is that of the setting where it is there.
"""


class HFConfigReader:
    """The settings of a config.json; every question names the type that the answer has to have."""

    def __init__(self, content: dict[str, Any], source: str):
        """Keep the settings.

        Args:
            content: the settings.
            source: the file, for messages.
        """
        self.content: dict[str, Any] = content
        self.source: str = source

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """Return a setting, or the default where it is missing or null.

        Raises:
            ValueError: if it is of another type, or missing without a default, or a size beyond
                all measure.
        """
        value = self.content.get(name)
        value = default if value is None else value
        if type(value) is int and kind is float:
            value = float(value)
        if type(value) is not kind:
            raise ValueError(f"{self.source}: {name} must be {TYPE_NAMES[kind]}, not {value!r}.")
        if type(value) is int and not 0 < value <= MAX_SIZE:
            raise ValueError(f"{self.source}: {name} must be from 1 to {MAX_SIZE:,}, not {value}.")
        return value

    def get_optional(self, name: str, kind: type) -> Any:
        """Return a setting, or None where it is missing or null.

        Raises:
            ValueError: if it is there and of another type.
        """
        return None if self.content.get(name) is None else self.get(name, kind)

    def get_choice(self, name: str, known: dict[str, Any], default: str) -> Any:
        """Return the meaning that a word has here.

        Raises:
            ValueError: if it has none.
        """
        word = self.get(name, str, default)
        if word not in known:
            self.refuse(name, word, f"known are {', '.join(known)}")
        return known[word]

    def read(self, table: SettingsTable) -> dict[str, Any]:
        """Return the settings of a table by our names.

        Raises:
            ValueError: if one has another type than its default.
        """
        return {
            ours: self.get_optional(theirs, default)
            if isinstance(default, type)
            else self.get(theirs, type(default), default)
            for ours, (theirs, default) in table.items()
        }

    def read_token_ids(self) -> dict[str, Any]:
        """Return `begin_id`, `end_ids` and `pad_id`; an id below 0 stands for none.

        Raises:
            ValueError: if they are something else than ids.
        """
        found = []
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            value = self.content.get(name)
            ids = value if isinstance(value, list) else [] if value is None else [value]
            if any(type(i) is not int for i in ids):
                raise ValueError(
                    f"{self.source}: {name} must be a token id or several, not {value!r}."
                )
            found.append(tuple(i for i in ids if i >= 0))
        begins, ends, pads = found
        return {
            "begin_id": next(iter(begins), None),
            "end_ids": ends,
            "pad_id": next(iter(pads), None),
        }

    def check_usual_values(self, **usual: Any) -> None:
        """Refuse settings that are there and not the usual ones, which nothing here could follow.

        Args:
            **usual: the values that can be loaded; False stands for anything empty.

        Raises:
            ValueError: naming the first other one.
        """
        for name, expected in usual.items():
            value = self.content.get(name)
            if value is not None and value != expected and (value or expected):
                self.refuse(name, value, f"only {expected!r} can be loaded here")

    def refuse(self, name: str, value: Any, why: str) -> None:
        """Refuse a setting.

        Raises:
            ValueError: always.
        """
        shown = repr(value)
        shown = shown if len(shown) < 80 else shown[:77] + "..."
        raise ValueError(
            f"{self.source}: {name} is {shown}, which cannot be loaded: {why}.{see('families')}"
        )
