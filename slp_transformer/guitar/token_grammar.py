"""The state machine behind `guitar.tab_tokenizer`: which token may follow which."""

from dataclasses import replace

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.styles import is_no_style
from slp_transformer.guitar.tab import Bar, Event

NUM_STRINGS = 6
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")


def parse_token(token: str) -> tuple[str, tuple[int, ...]]:
    """Kind and numbers of a token's name: ``TAB<6,3>`` is ``TAB`` and (6, 3)."""
    if token in SPECIAL_TOKENS or "<" not in token:
        return token, ()
    kind, _, inside = token[:-1].partition("<")
    named = kind in ("TUNING", "METRE", "KEY", "STYLE")
    return kind, () if named else tuple(int(number) for number in inside.split(","))


class PlainTokenReader:
    """Reads tokens of the plain code one by one, and knows which may come next.

    Args:
        vocabulary: the names of the tokens, by id.
        parsed_vocabulary: `parse_token` of each of them.
        max_position: the last position that has a token.
        named_tunings: the tunings that have a token.
        tuning: the tuning until a token says another.
        header_kinds: the kinds of token at each place of a header, the last of them what begins the
            bars; empty if the sequence begins inside a bar, as a piece's middle does.

    Attributes:
        steps_per_quarter: steps to a quarter note; None for columns, or where no token says it.
        time_signature: of the first bar; None where no token says it.
        style: what kind of music it is; empty where no token says it.
        bars: what has been read, without the bar that is not closed yet.
        num_invalid_tokens: number of tokens that the grammar does not allow.
    """

    def __init__(
        self,
        vocabulary: tuple[str, ...],
        parsed_vocabulary: tuple[tuple[str, tuple[int, ...]], ...],
        max_position: int,
        named_tunings: dict[str, Tuning],
        tuning: Tuning,
        header_kinds: tuple[tuple[str, ...], ...],
    ):
        self.vocabulary, self.parsed_vocabulary, self.max_position = (
            vocabulary,
            parsed_vocabulary,
            max_position,
        )
        self.named_tunings, self.tuning = named_tunings, tuning
        self.remaining_header_kinds = list(header_kinds)
        self.steps_per_quarter: int | None = None
        self.time_signature: tuple[int, int] | None = None
        self.style = ""
        self.bars: list[Bar] = []
        self.num_invalid_tokens = 0
        self.open_pitches: list[int] = []
        self.position_offset, self.current_step = 0, 0
        self.last_kind = "BAR"
        self.pending_notes: list[Note] = []
        self.events: list[Event] = []

    def is_allowed(self, token_id: int) -> bool:
        """Return whether this token may come next."""
        kind, value = self.parsed_vocabulary[token_id]
        return (
            kind in self.remaining_header_kinds[0]
            if self.remaining_header_kinds
            else self.is_allowed_in_bar(kind, value)
        )

    def read_token(self, token_id: int) -> None:
        """Take in the next token."""
        if not 0 <= token_id < len(self.parsed_vocabulary):
            self.num_invalid_tokens += 1
            return
        kind, value = self.parsed_vocabulary[token_id]
        if not self.is_allowed(token_id):
            self.num_invalid_tokens += 1
            if not self.is_always_obeyed(kind, value):
                return
        if kind in ("BAR", "<eos>", "SAME"):
            self.close_bar()
            self.remaining_header_kinds = [()] if kind == "<eos>" else []
            self.begin_bar(kind, value)
        elif self.remaining_header_kinds:
            self.read_header_token(kind, self.vocabulary[token_id].partition("<")[2][:-1])
        else:
            self.read_bar_token(kind, value)
        self.last_kind = kind

    def read_header_token(self, token_kind: str, argument: str) -> None:
        """Take in a token of the header, and what it says between ``<`` and ``>``."""
        if token_kind == "OPEN":
            self.open_pitches.append(int(argument))
            if len(self.open_pitches) < NUM_STRINGS:
                self.remaining_header_kinds[0] = ("OPEN",)
                return
            self.tuning = Tuning(tuple(reversed(self.open_pitches)))
        elif token_kind == "TUNING":
            self.tuning = self.named_tunings[argument]
        elif token_kind == "CAPO":
            self.tuning = replace(self.tuning, capo=int(argument))
        elif token_kind == "STEPS":
            self.steps_per_quarter = int(argument)
        elif token_kind == "METRE" and "/" in argument:
            beats, unit = argument.split("/")
            self.time_signature = (int(beats), int(unit))
        elif token_kind == "STYLE":
            self.style = "" if is_no_style(argument) else argument
        del self.remaining_header_kinds[0]

    def is_always_obeyed(self, token_kind: str, numbers: tuple[int, ...]) -> bool:
        """Return whether a token is obeyed even where it is not allowed."""
        return token_kind in ("BAR", "<eos>")

    def is_allowed_in_bar(self, token_kind: str, numbers: tuple[int, ...]) -> bool:
        """Return whether this token may come next in a bar."""
        if token_kind == "TAB":
            free = self.last_kind in ("BAR", "POS")
            return free or (self.last_kind == "TAB" and numbers[0] < self.pending_notes[-1].string)
        if token_kind == "POS":
            return self.last_kind != "POS" and self.position_offset + numbers[0] > self.current_step
        if token_kind == "LONG":
            return self.last_kind != "POS"
        return token_kind in ("BAR", "<eos>") and self.last_kind == "POS"

    def read_bar_token(self, token_kind: str, numbers: tuple[int, ...]) -> None:
        """Take in a token of a bar."""
        if token_kind == "TAB":
            self.pending_notes.append(Note(*numbers))
        elif token_kind == "LONG":
            self.position_offset += self.max_position
        else:
            self.close_event()
            self.current_step = self.position_offset + numbers[0]

    def begin_bar(self, token_kind: str, numbers: tuple[int, ...]) -> None:
        """Begin a bar with the token that says so; the bar before is closed."""

    def close_event(self) -> None:
        """Put the notes that are waiting into an event."""
        if self.pending_notes:
            self.events.append(Event(self.current_step, tuple(self.pending_notes)))
            self.pending_notes = []

    def close_bar(self) -> None:
        """End the bar; one that never began, or holds nothing and lasts no time, is dropped."""
        if self.pending_notes:
            self.close_event()
            self.current_step += 1
        if self.current_step > 0:
            self.bars.append(Bar(self.current_step, tuple(self.events)))
        self.events, self.current_step, self.position_offset = [], 0, 0


class PlacedTokenReader(PlainTokenReader):
    """Reads tokens of the placed code, as `PlainTokenReader` does those of the plain one.

    Attributes:
        bar_steps: how long the bar is that is being read; None where no token says it, as in the
            middle of a piece.
    """

    def __init__(self, *args):
        """As `PlainTokenReader`."""
        super().__init__(*args)
        self.bar_steps: int | None = None
        self.pending_step: int | None = None  # where a POS says that the next notes are

    def is_allowed_in_bar(self, token_kind: str, numbers: tuple[int, ...]) -> bool:
        """Return whether this token may come next in a bar."""
        if token_kind == "WITH":
            return self.last_kind in ("TAB", "WITH") and numbers[0] < self.pending_notes[-1].string
        if token_kind in ("BAR", "<eos>"):
            return self.last_kind not in ("POS", "LONG")
        if token_kind == "SAME":
            return (
                self.last_kind not in ("POS", "LONG")
                and numbers[0] <= self.count_bars_with_current()
            )
        if self.last_kind == "SAME":
            return False
        if token_kind == "LONGER":
            return self.last_kind in ("BAR", "LONGER") and self.bar_steps is not None
        if token_kind == "TAB":
            return self.last_kind == "POS" or (not self.pending_notes and self.last_kind != "LONG")
        if token_kind == "LONG":
            beyond = max(self.current_step, self.position_offset + self.max_position) + 1
            return self.last_kind != "POS" and self.is_inside_bar(beyond)
        step = self.position_offset + numbers[0] if token_kind == "POS" else 0
        return self.last_kind != "POS" and step > self.current_step and self.is_inside_bar(step)

    def is_inside_bar(self, step: int) -> bool:
        """Return whether a moment lies in the bar that is being read."""
        return self.bar_steps is None or step < self.bar_steps

    def count_bars_with_current(self) -> int:
        """Return how many bars there are, with the one that is being read."""
        return len(self.bars) + (self.last_kind != "SAME" and self.has_bar_begun())

    def has_bar_begun(self) -> bool:
        """Return whether a bar has begun; in the middle of a piece, only if it has notes."""
        return self.bar_steps is not None or bool(self.pending_notes or self.events)

    def is_always_obeyed(self, token_kind: str, numbers: tuple[int, ...]) -> bool:
        """Return whether a token is obeyed even where it is not allowed."""
        again = (
            token_kind == "SAME"
            and not self.remaining_header_kinds
            and numbers[0] <= self.count_bars_with_current()
        )
        return again or super().is_always_obeyed(token_kind, numbers)

    def read_bar_token(self, token_kind: str, numbers: tuple[int, ...]) -> None:
        """Take in a token of a bar."""
        if token_kind == "TAB":
            self.close_event()
            self.current_step, self.pending_step = self.pending_step or 0, None
        if token_kind in ("TAB", "WITH"):
            self.pending_notes.append(Note(*numbers))
        elif token_kind == "LONGER":
            self.bar_steps += self.max_position
        elif token_kind == "LONG":
            self.position_offset += self.max_position
        else:
            self.pending_step = self.position_offset + numbers[0]

    def begin_bar(self, token_kind: str, numbers: tuple[int, ...]) -> None:
        """Begin a bar of so many steps, or repeat one."""
        if token_kind == "BAR":
            self.bar_steps = numbers[0]
        elif token_kind == "SAME":
            again = self.bars[-numbers[0]]
            self.bars.append(Bar(again.steps, again.events))

    def close_bar(self) -> None:
        """End the bar; of a piece's middle, one that holds nothing is dropped."""
        if self.has_bar_begun():
            last = self.current_step + 1
            self.close_event()
            time_signature = None if self.bars else self.time_signature
            self.bars.append(Bar(self.bar_steps or last, tuple(self.events), time_signature))
        self.events, self.pending_notes, self.current_step, self.position_offset = [], [], 0, 0
        self.bar_steps = self.pending_step = None
