"""Reads the tokens of a tab one by one: the state machine that says which may follow which."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from slp_guitar.bar_lengths import NOTATED_STEPS_PER_QUARTER, list_bar_steps
from slp_guitar.fretboard import TUNINGS, Note, Tuning
from slp_guitar.tab import Bar, Event

NUM_STRINGS = 6
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")


@cache
def parse_token(token: str) -> tuple[str, tuple[int, ...]]:
    """Kind and numbers of a token's name: ``TAB<6,3>`` is ``TAB`` and (6, 3)."""
    if token.startswith("<") or "<" not in token:
        return token, ()
    kind, _, inside = token[:-1].partition("<")
    named = kind in ("TUNING", "KEY", "STYLE") or inside == "none"
    return kind, () if named else tuple(map(int, inside.replace("/", ",").split(",")))


@lru_cache(maxsize=64)
def find_most_common(lengths: tuple[int, ...]) -> int:
    """Return the length that most bars have, the first of several."""
    return max(lengths, key=lengths.count)


class TokenReader:
    """Reads tokens one by one, and knows which may come next.

    Args:
        max_position: the last position that has a token.
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

    def __init__(self, max_position: int, tuning: Tuning, header_kinds: Sequence[tuple[str, ...]]):
        self.max_position: int = max_position
        self.tuning: Tuning = tuning
        self.remaining_header_kinds: list[tuple[str, ...]] = list(header_kinds)
        self.steps_per_quarter: int | None = None
        self.time_signature: tuple[int, int] | None = None
        self.style: str = ""
        self.bars: list[Bar] = []
        self.num_invalid_tokens: int = 0
        self.open_pitches: list[int] = []
        self.last_kind: str = "BAR"
        self.reset_bar(0)

    def reset_bar(self, steps: int) -> None:
        """Begin a bar; of 0 steps where no token says how long it is."""
        self.bar_steps: int = steps
        self.current_step: int = 0
        self.position_offset: int = 0
        self.moments: list[tuple[int, list[Note]]] = []

    def read_token(self, token: str) -> None:
        """Take in the next token.

        One that is not allowed is counted and skipped; but a bar line and the end are obeyed.
        """
        kind, numbers = parse_token(token)
        if not self.is_allowed(kind, numbers):
            self.num_invalid_tokens += 1
            can_repeat = kind == "SAME" and not self.remaining_header_kinds
            if kind not in ("BAR", "<eos>") and not (can_repeat and self.has_bar(numbers[0])):
                return
        if kind in ("BAR", "<eos>", "SAME"):
            self.commit_bar()
            self.remaining_header_kinds = [()] if kind == "<eos>" else []
            if kind == "SAME":
                again = self.bars[-numbers[0]]
                self.bars.append(Bar(again.steps, again.events))
            elif numbers:
                self.reset_bar(*numbers)
        elif self.remaining_header_kinds:
            self.read_header_token(kind, token.partition("<")[2][:-1])
        elif kind == "TAB":
            self.moments.append((self.current_step, [Note(*numbers)]))
        elif kind == "WITH":
            self.moments[-1][1].append(Note(*numbers))
        elif kind == "LONGER":
            self.bar_steps += self.max_position
        elif kind == "LONG":
            self.position_offset += self.max_position
        else:
            self.current_step = self.position_offset + numbers[0]
        self.last_kind = kind

    def read_header_token(self, kind: str, argument: str) -> None:
        """Take in a token of the header, and what it says between ``<`` and ``>``."""
        if kind == "OPEN":
            self.open_pitches.append(int(argument))
            if len(self.open_pitches) < NUM_STRINGS:
                self.remaining_header_kinds[0] = ("OPEN",)
                return
            self.tuning = Tuning(tuple(reversed(self.open_pitches)))
        elif kind == "TUNING":
            self.tuning = TUNINGS[argument]
        elif kind == "CAPO":
            self.tuning = replace(self.tuning, capo=int(argument))
        elif kind == "STEPS":
            self.steps_per_quarter = int(argument)
        elif kind == "METRE" and "/" in argument:
            beats, unit = argument.split("/")
            self.time_signature = (int(beats), int(unit))
        elif kind == "STYLE" and argument != "none":
            self.style = argument
        del self.remaining_header_kinds[0]

    def is_allowed(self, kind: str, numbers: tuple[int, ...]) -> bool:
        """Return whether this token may come next."""
        if self.remaining_header_kinds:
            return kind in self.remaining_header_kinds[0]
        last = self.last_kind
        if kind == "WITH":  # on a string above that of the last note
            return last in ("TAB", "WITH") and numbers[0] < self.moments[-1][1][-1].string
        if kind in ("BAR", "<eos>", "SAME"):
            return last not in ("POS", "LONG") and (kind != "SAME" or self.has_bar(numbers[0]))
        if last == "SAME":
            return False
        if kind == "LONGER":
            return last in ("BAR", "LONGER") and self.bar_steps > 0
        if kind == "TAB":
            return last == "POS" or (not self.moments and last != "LONG")
        if kind == "LONG":
            beyond = max(self.current_step, self.position_offset + self.max_position) + 1
            return last != "POS" and self.is_inside_bar(beyond)
        step = self.position_offset + numbers[0] if kind == "POS" else 0
        return last != "POS" and step > self.current_step and self.is_inside_bar(step)

    def fills_bars(
        self, time_signature: tuple[int, int] | None, kind: str, numbers: tuple[int, ...]
    ) -> bool:
        """Return whether, after a token that is allowed, bars can all fill the time signature.

        Args:
            time_signature: of all bars that begin from here on. If None, the header's; and if that
                has none, all are as long as most are, the first as long as a meter.
            kind: of the token.
            numbers: of the token.
        """
        if kind == "STEPS":
            is_notated = numbers[0] in NOTATED_STEPS_PER_QUARTER
            return is_notated and bool(list_bar_steps(time_signature, numbers[0]))
        if kind == "METRE" and numbers:
            own = (numbers[0], numbers[1])
            is_wanted = time_signature in (None, own)
            return is_wanted and bool(list_bar_steps(own, self.steps_per_quarter))
        signature = time_signature or self.time_signature
        lengths = tuple(bar.steps for bar in self.bars)
        if self.last_kind in ("BAR", "LONGER") and self.bar_steps:  # its length is being said
            wanted = self.lengths_that_fill(signature, lengths)
            can_grow = self.can_become(self.bar_steps + self.max_position, wanted)
            if kind == "LONGER" or (can_grow and self.bar_steps not in wanted):
                return can_grow and kind == "LONGER"
        if kind not in ("BAR", "SAME"):
            return True
        lengths += (self.bar_steps,) if self.bar_steps else ()
        wanted = self.lengths_that_fill(signature, lengths)
        if kind == "SAME":
            return lengths[-numbers[0]] in wanted
        return self.can_become(numbers[0], wanted)

    def lengths_that_fill(
        self, time_signature: tuple[int, int] | None, lengths: tuple[int, ...]
    ) -> Collection[int]:
        """Return how many steps a bar after bars of these lengths may have."""
        fitting = list_bar_steps(time_signature, self.steps_per_quarter)
        is_known = time_signature and self.steps_per_quarter and fitting
        return fitting if is_known or not lengths else (find_most_common(lengths),)

    def can_become(self, steps: int, wanted: Collection[int]) -> bool:
        """Return whether a bar of so many steps is one of those wanted, now or made longer."""
        return any(each >= steps and (each - steps) % self.max_position == 0 for each in wanted)

    def is_inside_bar(self, step: int) -> bool:
        """Return whether a moment lies in the bar that is being read."""
        return step < self.bar_steps or not self.bar_steps

    def has_bar(self, bars_back: int) -> bool:
        """Return whether there are so many bars, with the one that is being read.

        In the middle of a piece a bar has begun only if it has notes.
        """
        return bars_back <= len(self.bars) + bool(self.bar_steps or self.moments)

    def commit_bar(self) -> None:
        """End the bar; one that never began is dropped.

        In the middle of a piece it is as long as its notes, the last of which lasts one step.
        """
        if steps := self.bar_steps or (self.moments[-1][0] + 1 if self.moments else 0):
            events = tuple(Event(step, tuple(notes)) for step, notes in self.moments)
            self.bars.append(Bar(steps, events, None if self.bars else self.time_signature))
        self.reset_bar(0)
