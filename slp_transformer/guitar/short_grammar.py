"""Which token may follow which in the short code and in the placed one, and what it says."""

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.styles import is_none
from slp_transformer.guitar.tab import Bar
from slp_transformer.guitar.token_grammar import TokenReader


class ShortReader(TokenReader):
    """Reads tokens of the short code; as `TokenReader`, which reads the header.

    Attributes:
        steps: how long the bar is that is being read; None where that was not told, as in the
            middle of a piece.
        stride: steps from the moment before to this one; None before the second moment of a bar.
        metre: of the first bar; None if none was told.
    """

    def __init__(self, *args, **options):
        """As `TokenReader`."""
        super().__init__(*args, **options)
        self.steps: int | None = None
        self.stride: int | None = None
        self.metre: tuple[int, int] | None = None
        self.moment: int | None = None  # where a POS says that the next notes are

    def header_kinds(self) -> tuple[str, ...]:
        """Kinds of token that may come next before the first bar."""
        more = {
            "metre": ("METRE",),
            "key": ("KEY",),
            "style": ("STYLE",),
            "first bar": ("BAR", "<eos>"),
        }
        return more[self.place] if self.place in more else super().header_kinds()

    def allows(self, token_id: int) -> bool:
        """Whether this token may come next."""
        kind, value = self.parts[token_id]
        if self.place != "in bar":
            return kind in self.header_kinds()
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
            return self.next_moment() is not None
        if kind == "LONG":
            return self.last != "POS" and self.something_is_beyond()
        return kind == "POS" and self.last != "POS" and self.may_be_told(self.origin + value[0])

    def count_with_this(self) -> int:
        """How many bars there are, with the one that is being read."""
        return len(self.bars) + (self.last != "SAME" and self.began())

    def began(self) -> bool:
        """Whether the bar that is being read is one: of a piece's middle, only if it has notes."""
        return self.steps is not None or bool(self.notes or self.events)

    def fits(self, step: int) -> bool:
        """Whether a moment lies in the bar that is being read."""
        return self.steps is None or step < self.steps

    def expected(self) -> int | None:
        """The moment of the next notes where nothing tells one; None if one has to be told."""
        if not self.notes:
            return 0
        return None if self.stride is None else self.now + self.stride

    def next_moment(self) -> int | None:
        """The moment of notes that come now; None if none may."""
        if self.last == "LONG":
            return None
        moment = self.expected() if self.moment is None else self.moment
        return moment if moment is not None and self.fits(moment) else None

    def may_be_told(self, step: int) -> bool:
        """Whether a POS may say this moment: a later one, and not what is expected anyway."""
        return step > self.now and self.fits(step) and step != self.expected()

    def something_is_beyond(self) -> bool:
        """Whether a POS after one more LONG may say any moment."""
        first = max(self.now, self.origin + self.max_position) + 1
        return self.may_be_told(first) or self.fits(first + 1)

    def read(self, token_id: int) -> None:
        """Take in the next token."""
        if not 0 <= token_id < len(self.parts):
            self.ill_formed += 1
            return
        kind, value = self.parts[token_id]
        if not self.allows(token_id):
            self.ill_formed += 1
            back = kind == "SAME" and self.place == "in bar" and value[0] <= self.count_with_this()
            if kind not in ("BAR", "<eos>") and not back:
                return
        if kind in ("BAR", "<eos>", "SAME"):
            self.end_bar(kind, value)
        elif kind in ("TAB", "WITH"):
            self.take_note(kind, Note(*value))
        elif kind == "LONGER":
            self.steps += self.max_position
        elif kind == "LONG":
            self.origin += self.max_position
        elif kind == "POS":
            self.moment = self.origin + value[0]
        else:
            self.read_header(kind, self.vocabulary[token_id], value)
        self.last = kind

    def end_bar(self, kind: str, value: tuple[int, ...]) -> None:
        """End the bar that is being read, and begin or repeat one."""
        self.close_bar()
        self.place = "end" if kind == "<eos>" else "in bar"
        if kind == "BAR":
            self.steps = value[0]
        elif kind == "SAME":
            again = self.bars[-value[0]]
            self.bars.append(Bar(again.steps, again.events))

    def take_note(self, kind: str, note: Note) -> None:
        """Take in a note, at a moment of its own or together with the one before."""
        if kind == "TAB":
            moment = self.next_moment()
            began = bool(self.notes)
            self.close_event()
            self.stride = moment - self.now if began else None
            self.now, self.moment = moment, None
        self.notes.append(note)

    def read_header(self, kind: str, token: str, value: tuple[int, ...]) -> None:
        """Take in a token of the header."""
        if kind == "METRE":
            beats, _, unit = token[6:-1].partition("/")
            self.metre = (int(beats), int(unit)) if unit else None
            self.place = "key"
        elif kind == "KEY":
            self.place = "style" if self.styles else "first bar"
        elif kind == "STYLE":
            self.style = "" if is_none(token[6:-1]) else token[6:-1]
            self.place = "first bar"
        else:
            super().read_header(kind, token, value)
            if self.place == "first bar":
                self.place = "metre"

    def close_bar(self) -> None:
        """End the bar; of a piece's middle, one that holds nothing is dropped."""
        last = self.now + 1
        self.close_event()
        if self.steps is not None or self.events:
            steps = last if self.steps is None else self.steps
            metre = None if self.bars else self.metre
            self.bars.append(Bar(steps, tuple(self.events), metre))
        self.events, self.notes, self.now, self.origin = [], [], 0, 0
        self.steps = self.stride = self.moment = None


class PlacedReader(ShortReader):
    """Reads tokens of the placed code, in which every moment tells where it is."""

    def expected(self) -> int | None:
        """The beginning of the bar; every other moment has to be told."""
        return None if self.notes else 0
