"""The tokens of alphaTex, and a cursor that goes through them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*(?s:.*?)\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<tag>\\[A-Za-z]+)
      | (?P<note>(?:\d{1,2}|[xX-])\.\d{1,2})
      | (?P<length>\.\d{1,3}(?!\d))
      | (?P<range>:\d{1,3})
      | (?P<times>\*\s*\d{1,3})
      | (?P<mark>[(){}|.])
      | (?P<word>[^\s(){}|"'\\:*.]+)""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token: its kind, its text, and the line that it stands in."""

    kind: str
    text: str
    line: int


def tokens_of(text: str, source: str) -> Iterator[Token]:
    """The tokens of a text.

    Raises:
        ValueError: for what is none, naming the line.
    """
    place, line = 0, 1
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"{source or 'alphaTex'}:{line}: {text[place]!r} says nothing here.")
        if found.lastgroup != "space":
            yield Token(found.lastgroup, found.group(), line)
        line += found.group().count("\n")
        place = found.end()


class Cursor:
    """Goes from token to token."""

    def __init__(self, tokens: list[Token], source: str):
        """Begin at the first."""
        self.tokens, self.source, self.at = tokens, source, 0

    def fail(self, what: str) -> ValueError:
        """The error of not understanding the token at hand."""
        token = self.tokens[min(self.at, len(self.tokens) - 1)] if self.tokens else None
        return ValueError(f"{self.source}:{token.line if token else 1}: {what}.")

    def peek(self, *kinds: str) -> Token | None:
        """The token at hand, if it is of one of these kinds (or is that mark)."""
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind in kinds or (token.kind == "mark" and token.text in kinds):
                return token
        return None

    def take(self, *kinds: str) -> Token | None:
        """The same, and go on."""
        token = self.peek(*kinds)
        self.at += token is not None
        return token

    def number(self, what: str) -> int:
        """A whole number, in brackets or not.

        Raises:
            ValueError: if none comes.
        """
        bracket = self.take("(")
        token = self.take("word")
        if token is None or not re.fullmatch(r"\d{1,6}", token.text):
            raise self.fail(f"{what} should be a whole number")
        if bracket:
            while not self.take(")"):
                if not self.take("word", "string"):
                    raise self.fail("a bracket is not closed")
        return int(token.text)

    def numbers(self) -> list[int]:
        """Some whole numbers, in brackets or not."""
        self.take("(")
        found = []
        while (token := self.peek("word")) and re.fullmatch(r"\d{1,2}", token.text):
            found.append(int(token.text))
            self.at += 1
        self.take(")")
        return found

    def skip_group(self) -> None:
        """Pass over brackets and what is in them.

        Raises:
            ValueError: if they are not closed.
        """
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.kind == "mark":
                depth += (token.text in "({") - (token.text in ")}")
            if depth <= 0:
                return
        raise self.fail("a bracket is not closed")

    def effects(self) -> list[list[str]]:
        """What stands in braces, each mark with its numbers.

        Raises:
            ValueError: if they are not closed.
        """
        marks: list[list[str]] = []
        while self.take("{"):
            depth = 0
            while depth or not self.take("}"):
                token = self.take("word", "string", "(", ")", "note", "length", ".")
                if token is None:
                    raise self.fail("braces are not closed")
                depth += (token.text == "(") - (token.text == ")")
                if token.kind == "word" and not re.fullmatch(r"-?\d+", token.text):
                    marks.append([token.text.lower()])
                elif token.kind == "word" and marks:
                    marks[-1].append(token.text)
        return marks
