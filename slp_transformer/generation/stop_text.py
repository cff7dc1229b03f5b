"""Strings that end a text, wherever the borders of its tokens lie."""

from collections.abc import Sequence


class StopText:
    """Watches a text as it is written, piece by piece, for strings that end it.

    Attributes:
        strings: what ends the text.
        text: what was written, up to the string that was found.
        found: the string that was found; None so far.
    """

    def __init__(self, strings: Sequence[str]):
        """Begin a text.

        Raises:
            ValueError: if one of them is empty, or they are a string rather than several.
        """
        if isinstance(strings, str) or not all(strings):
            raise ValueError(
                f"What ends a text is a list of strings of at least a character, not {strings!r}."
            )
        self.strings: tuple[str, ...] = tuple(strings)
        self.text: str = ""
        self.found: str | None = None
        self._pending = ""  # may be the beginning of one of the strings

    def feed(self, piece: str) -> str:
        """Add a piece, and return what is now sure to stay, to be shown."""
        if self.found is not None:
            return ""
        unsure = self._pending + piece
        at = {string: unsure.find(string) for string in self.strings if string in unsure}
        if at:
            # As letter by letter: the one that is whole first, or of several the longest.
            self.found = min(at, key=lambda string: (at[string] + len(string), at[string]))
            sure, self._pending = unsure[: at[self.found]], ""
        else:
            kept = max(self._overlap_length(unsure, string) for string in self.strings or ("",))
            sure, self._pending = unsure[: len(unsure) - kept], unsure[len(unsure) - kept :]
        self.text += sure
        return sure

    def finish(self) -> str:
        """End the text, and return what was held back."""
        rest, self._pending = self._pending, ""
        self.text += rest
        return rest

    @staticmethod
    def _overlap_length(text: str, string: str) -> int:
        """Return how many characters at the end of a text begin a string."""
        longest = min(len(text), len(string) - 1)
        return next((n for n in range(longest, 0, -1) if string.startswith(text[-n:])), 0)
