"""Which tab token may follow which: the state machine behind `TabTokenizer`."""

from dataclasses import replace

from slp_transformer.guitar.fretboard import Note, Tuning
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
    """Reads tab tokens one by one, and knows which may come next.

    Args:
        vocabulary: the names of the tokens, by id.
        parts: `token_parts` of each of them.
        max_position: the last position that has a token.
        named: the tunings that have a token.
        tuning: the tuning until a token says another.
        inside: whether the sequence begins inside a bar, as a piece's middle does.
        units: whether a header tells the unit of time.
        styles: whether a header tells the style, as it may in the other codes.

    Attributes:
        unit: steps to a quarter note; None for columns, or if it was not told.
        style: what kind of music it is; empty if it was not told.
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
        inside: bool,
        units: bool,
        styles: bool = False,
    ):
        self.vocabulary, self.parts, self.max_position = vocabulary, parts, max_position
        self.named, self.tuning = named, tuning
        self.units, self.unit = units, None
        self.styles, self.style = styles, ""
        self.bars: list[Bar] = []
        self.ill_formed = 0
        self.place = "in bar" if inside else "start"
        self.opens: list[int] = []
        self.origin, self.now = 0, 0
        self.last = "BAR"
        self.notes: list[Note] = []
        self.events: list[Event] = []

    def allows(self, token_id: int) -> bool:
        """Whether this token may come next."""
        kind, value = self.parts[token_id]
        if self.place != "in bar":
            return kind in self.header_kinds()
        if kind == "TAB":
            free = self.last in ("BAR", "POS")
            return free or (self.last == "TAB" and value[0] < self.notes[-1].string)
        if kind == "POS":
            return self.last != "POS" and self.origin + value[0] > self.now
        if kind == "LONG":
            return self.last != "POS"
        return kind in ("BAR", "<eos>") and self.last == "POS"

    def header_kinds(self) -> tuple[str, ...]:
        """Kinds of token that may come next before the first bar."""
        if self.place == "tuning" and self.opens:
            return ("OPEN",) if len(self.opens) < STRINGS else ("CAPO",)
        return {
            "start": ("<bos>",),
            "tuning": ("TUNING", "OPEN"),
            "capo": ("CAPO",),
            "unit": ("COLUMNS", "STEPS"),
            "first bar": ("BAR", "<eos>"),
            "end": (),
        }[self.place]

    def read(self, token_id: int) -> None:
        """Take in the next token."""
        if not 0 <= token_id < len(self.parts):
            self.ill_formed += 1
            return
        kind, value = self.parts[token_id]
        if not self.allows(token_id):
            self.ill_formed += 1
            if kind not in ("BAR", "<eos>"):
                return
        if kind in ("BAR", "<eos>"):
            self.close_bar()
            self.place = "in bar" if kind == "BAR" else "end"
        elif kind == "TAB":
            self.notes.append(Note(*value))
        elif kind == "LONG":
            self.origin += self.max_position
        elif kind == "POS":
            self.close_event()
            self.now = self.origin + value[0]
        else:
            self.read_header(kind, self.vocabulary[token_id], value)
        self.last = kind

    def read_header(self, kind: str, token: str, value: tuple[int, ...]) -> None:
        """Take in ``<bos>``, a tuning, an open string, a capo or a unit of time."""
        if kind == "<bos>":
            self.place = "tuning"
        elif kind == "TUNING":
            self.tuning, self.place = self.named[token[7:-1]], "capo"
        elif kind == "OPEN":
            self.opens.append(value[0])
            if len(self.opens) == STRINGS:
                self.tuning, self.place = Tuning(tuple(reversed(self.opens))), "capo"
        elif kind == "CAPO":
            self.tuning = replace(self.tuning, capo=value[0])
            self.place = "unit" if self.units else "first bar"
        elif kind in ("COLUMNS", "STEPS"):
            self.unit, self.place = (value or (None,))[0], "first bar"

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
