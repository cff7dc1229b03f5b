"""Which token may follow which: the state machine behind `guitar.tab_tokenizer`."""

from dataclasses import replace

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.styles import is_none
from slp_transformer.guitar.tab import Bar, Event

STRINGS = 6
SPECIAL = ("<pad>", "<bos>", "<eos>")


def token_parts(token: str) -> tuple[str, tuple[int, ...]]:
    """Kind and numbers of a token's name: ``TAB<6,3>`` is ``TAB`` and (6, 3)."""
    if token in SPECIAL or "<" not in token:
        return token, ()
    kind, _, inside = token[:-1].partition("<")
    named = kind in ("TUNING", "METRE", "KEY", "STYLE")
    return kind, () if named else tuple(int(number) for number in inside.split(","))


class TokenReader:
    """Reads tokens of the plain code one by one, and knows which may come next.

    Args:
        vocabulary: the names of the tokens, by id.
        parts: `token_parts` of each of them.
        max_position: the last position that has a token.
        named: the tunings that have a token.
        tuning: the tuning until a token says another.
        header: the kinds of token at each place of a header, the last of them what begins the
            bars; empty if the sequence begins inside a bar, as a piece's middle does.

    Attributes:
        unit: steps to a quarter note; None for columns, or where no token says it.
        metre: of the first bar; None where no token says it.
        style: what kind of music it is; empty where no token says it.
        bars: what has been read, without the bar that is not closed yet.
        ill_formed: how many tokens could not stand where they stood.
    """

    def __init__(
        self,
        vocabulary: tuple[str, ...],
        parts: tuple[tuple[str, tuple[int, ...]], ...],
        max_position: int,
        named: dict[str, Tuning],
        tuning: Tuning,
        header: tuple[tuple[str, ...], ...],
    ):
        self.vocabulary, self.parts, self.max_position = vocabulary, parts, max_position
        self.named, self.tuning = named, tuning
        self.header = list(header)
        self.unit: int | None = None
        self.metre: tuple[int, int] | None = None
        self.style = ""
        self.bars: list[Bar] = []
        self.ill_formed = 0
        self.opens: list[int] = []
        self.origin, self.now = 0, 0
        self.last = "BAR"
        self.notes: list[Note] = []
        self.events: list[Event] = []

    def allows(self, token_id: int) -> bool:
        """Whether this token may come next."""
        kind, value = self.parts[token_id]
        return kind in self.header[0] if self.header else self.allows_in_bar(kind, value)

    def read(self, token_id: int) -> None:
        """Take in the next token."""
        if not 0 <= token_id < len(self.parts):
            self.ill_formed += 1
            return
        kind, value = self.parts[token_id]
        if not self.allows(token_id):
            self.ill_formed += 1
            if not self.is_obeyed_anywhere(kind, value):
                return
        if kind in ("BAR", "<eos>", "SAME"):
            self.close_bar()
            self.header = [()] if kind == "<eos>" else []
            self.begin_bar(kind, value)
        elif self.header:
            self.read_header(kind, self.vocabulary[token_id].partition("<")[2][:-1])
        else:
            self.read_in_bar(kind, value)
        self.last = kind

    def read_header(self, kind: str, text: str) -> None:
        """Take in a token of the header, and what it says between ``<`` and ``>``."""
        if kind == "OPEN":
            self.opens.append(int(text))
            if len(self.opens) < STRINGS:
                self.header[0] = ("OPEN",)
                return
            self.tuning = Tuning(tuple(reversed(self.opens)))
        elif kind == "TUNING":
            self.tuning = self.named[text]
        elif kind == "CAPO":
            self.tuning = replace(self.tuning, capo=int(text))
        elif kind == "STEPS":
            self.unit = int(text)
        elif kind == "METRE" and "/" in text:
            beats, unit = text.split("/")
            self.metre = (int(beats), int(unit))
        elif kind == "STYLE":
            self.style = "" if is_none(text) else text
        del self.header[0]

    def is_obeyed_anywhere(self, kind: str, value: tuple[int, ...]) -> bool:
        """Whether a token is obeyed even where it may not stand."""
        return kind in ("BAR", "<eos>")

    def allows_in_bar(self, kind: str, value: tuple[int, ...]) -> bool:
        """Whether this token may come next in a bar."""
        if kind == "TAB":
            free = self.last in ("BAR", "POS")
            return free or (self.last == "TAB" and value[0] < self.notes[-1].string)
        if kind == "POS":
            return self.last != "POS" and self.origin + value[0] > self.now
        if kind == "LONG":
            return self.last != "POS"
        return kind in ("BAR", "<eos>") and self.last == "POS"

    def read_in_bar(self, kind: str, value: tuple[int, ...]) -> None:
        """Take in a token of a bar."""
        if kind == "TAB":
            self.notes.append(Note(*value))
        elif kind == "LONG":
            self.origin += self.max_position
        else:
            self.close_event()
            self.now = self.origin + value[0]

    def begin_bar(self, kind: str, value: tuple[int, ...]) -> None:
        """Begin a bar with the token that says so; the bar before is closed."""

    def close_event(self) -> None:
        """Put the notes that are waiting into an event."""
        if self.notes:
            self.events.append(Event(self.now, tuple(self.notes)))
            self.notes = []

    def close_bar(self) -> None:
        """End the bar; one that never began, or holds nothing and lasts no time, is dropped."""
        if self.notes:
            self.close_event()
            self.now += 1
        if self.now > 0:
            self.bars.append(Bar(self.now, tuple(self.events)))
        self.events, self.now, self.origin = [], 0, 0


class PlacedReader(TokenReader):
    """Reads tokens of the placed code, as `TokenReader` does those of the plain one.

    Attributes:
        steps: how long the bar is that is being read; None where no token says it, as in the
            middle of a piece.
    """

    def __init__(self, *args):
        """As `TokenReader`."""
        super().__init__(*args)
        self.steps: int | None = None
        self.moment: int | None = None  # where a POS says that the next notes are

    def allows_in_bar(self, kind: str, value: tuple[int, ...]) -> bool:
        """Whether this token may come next in a bar."""
        if kind == "WITH":
            return self.last in ("TAB", "WITH") and value[0] < self.notes[-1].string
        if kind in ("BAR", "<eos>"):
            return self.last not in ("POS", "LONG")
        if kind == "SAME":
            return self.last not in ("POS", "LONG") and value[0] <= self.count_with_this()
        if self.last == "SAME":
            return False
        if kind == "LONGER":
            return self.last in ("BAR", "LONGER") and self.steps is not None
        if kind == "TAB":
            return self.last == "POS" or (not self.notes and self.last != "LONG")
        if kind == "LONG":
            beyond = max(self.now, self.origin + self.max_position) + 1
            return self.last != "POS" and self.fits(beyond)
        step = self.origin + value[0] if kind == "POS" else 0
        return self.last != "POS" and step > self.now and self.fits(step)

    def fits(self, step: int) -> bool:
        """Whether a moment lies in the bar that is being read."""
        return self.steps is None or step < self.steps

    def count_with_this(self) -> int:
        """How many bars there are, with the one that is being read."""
        return len(self.bars) + (self.last != "SAME" and self.has_begun())

    def has_begun(self) -> bool:
        """Whether the bar that is being read is one: of a piece's middle, only if it has notes."""
        return self.steps is not None or bool(self.notes or self.events)

    def is_obeyed_anywhere(self, kind: str, value: tuple[int, ...]) -> bool:
        """Whether a token is obeyed even where it may not stand."""
        again = kind == "SAME" and not self.header and value[0] <= self.count_with_this()
        return again or super().is_obeyed_anywhere(kind, value)

    def read_in_bar(self, kind: str, value: tuple[int, ...]) -> None:
        """Take in a token of a bar."""
        if kind == "TAB":
            self.close_event()
            self.now, self.moment = self.moment or 0, None
        if kind in ("TAB", "WITH"):
            self.notes.append(Note(*value))
        elif kind == "LONGER":
            self.steps += self.max_position
        elif kind == "LONG":
            self.origin += self.max_position
        else:
            self.moment = self.origin + value[0]

    def begin_bar(self, kind: str, value: tuple[int, ...]) -> None:
        """Begin a bar of so many steps, or repeat one."""
        if kind == "BAR":
            self.steps = value[0]
        elif kind == "SAME":
            again = self.bars[-value[0]]
            self.bars.append(Bar(again.steps, again.events))

    def close_bar(self) -> None:
        """End the bar; of a piece's middle, one that holds nothing is dropped."""
        if self.has_begun():
            last = self.now + 1
            self.close_event()
            metre = None if self.bars else self.metre
            self.bars.append(Bar(self.steps or last, tuple(self.events), metre))
        self.events, self.notes, self.now, self.origin = [], [], 0, 0
        self.steps = self.moment = None
