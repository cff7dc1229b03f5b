"""What could not be read, or was left out, told beside what was read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Something in a file that could not be read.

    Attributes:
        source: the file.
        line: the line, from 1; 0 for a file that has no lines.
        message: what is wrong with it.
    """

    source: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f":{self.line}" if self.line else ""
        return f"{self.source}{place}: {self.message}"
