"""The tokens of alphaTex, and a cursor that goes through them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN_PATTERN = re.compile(
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
    """A token: its kind, its text and its line."""

    token_kind: str
    text: str
    line: int


def tokenize_alphatex(text: str, source_name: str) -> Iterator[Token]:
    """The tokens of a text.

    Raises:
        ValueError: for what is none, naming the line.
    """
    place, line = 0, 1
    while place < len(text):
        found = _TOKEN_PATTERN.match(text, place)
        if found is None:
            raise ValueError(
                f"{source_name or 'alphaTex'}:{line}: {text[place]!r} is not understood here."
            )
        if found.lastgroup != "space":
            yield Token(found.lastgroup, found.group(), line)
        line += found.group().count("\n")
        place = found.end()


class TokenCursor:
    """Goes from token to token."""

    def __init__(self, tokens: list[Token], source_name: str):
        """Begin at the first."""
        self.tokens, self.source_name, self.token_index = tokens, source_name, 0

    def error(self, message: str) -> ValueError:
        """The error of not understanding the token at hand."""
        token = self.tokens[min(self.token_index, len(self.tokens) - 1)] if self.tokens else None
        return ValueError(f"{self.source_name}:{token.line if token else 1}: {message}.")

    def peek(self, *kinds: str) -> Token | None:
        """The token at hand, if it is of one of these kinds (or is that mark)."""
        if self.token_index < len(self.tokens):
            token = self.tokens[self.token_index]
            if token.token_kind in kinds or (token.token_kind == "mark" and token.text in kinds):
                return token
        return None

    def next_token(self, *kinds: str) -> Token | None:
        """The same, and go on."""
        token = self.peek(*kinds)
        self.token_index += token is not None
        return token

    def parse_number(self, expected: str) -> int:
        """A whole number, in brackets or not.

        Raises:
            ValueError: if none comes.
        """
        bracket = self.next_token("(")
        token = self.next_token("word")
        if token is None or not re.fullmatch(r"\d{1,6}", token.text):
            raise self.error(f"{expected} should be a whole number")
        if bracket:
            while not self.next_token(")"):
                if not self.next_token("word", "string"):
                    raise self.error("a bracket is not closed")
        return int(token.text)

    def parse_numbers(self) -> list[int]:
        """Some whole numbers, in brackets or not."""
        self.next_token("(")
        found = []
        while (token := self.peek("word")) and re.fullmatch(r"\d{1,2}", token.text):
            found.append(int(token.text))
            self.token_index += 1
        self.next_token(")")
        return found

    def skip_group(self) -> None:
        """Pass over brackets and what is in them.

        Raises:
            ValueError: if they are not closed.
        """
        depth = 0
        while self.token_index < len(self.tokens):
            token = self.tokens[self.token_index]
            self.token_index += 1
            if token.token_kind == "mark":
                depth += (token.text in "({") - (token.text in ")}")
            if depth <= 0:
                return
        raise self.error("a bracket is not closed")

    def parse_effects(self) -> list[list[str]]:
        """Parse the marks in braces, each with its numbers.

        Raises:
            ValueError: if they are not closed.
        """
        marks: list[list[str]] = []
        while self.next_token("{"):
            depth = 0
            while depth or not self.next_token("}"):
                token = self.next_token("word", "string", "(", ")", "note", "length", ".")
                if token is None:
                    raise self.error("braces are not closed")
                depth += (token.text == "(") - (token.text == ")")
                if token.token_kind == "word" and not re.fullmatch(r"-?\d+", token.text):
                    marks.append([token.text.lower()])
                elif token.token_kind == "word" and marks:
                    marks[-1].append(token.text)
        return marks
