"""Tabs as token ids and back, without loss.

A piece is a short header and then its bars::

    <bos> TUNING<standard> CAPO<0>
    BAR TAB<6,3> POS<2> TAB<4,0> TAB<1,3> POS<16>
    BAR ...
    <eos>

``TAB<6,3>`` is string 6 at fret 3: one token for the place, because a combined token learns better
than a string token and a fret token (Fretting-Transformer, arXiv 2506.14223). Notes that sound
together follow each other from string 6 to string 1. ``POS<k>`` is the moment k steps after the bar
line, as in REMI (arXiv 2002.00212); the bar line itself needs none. The last ``POS`` of a bar, with
no notes behind it, is where the bar ends. Positions rather than the time that passes between notes:
a model that has to add up times soon loses the meter. In a bar that is longer than the positions
reach, ``LONG`` moves the place they count from to the last of them.

There is one way to write a piece. Which token may follow which is one small state machine, which
decoding and `TabTokenizer.allowed_next` share.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slp_transformer.guitar.fretboard import STANDARD, TUNINGS, Tuning
from slp_transformer.guitar.tab import Bar, Event, Tab
from slp_transformer.guitar.token_grammar import SPECIAL, STRINGS, TokenReader, token_parts

LOWEST_OPEN, HIGHEST_OPEN = 28, 76


@dataclass(frozen=True)
class Decoded:
    """What came of a sequence of token ids.

    Attributes:
        tab: the music in it.
        ill_formed: how many tokens could not stand where they stood.
        length: how many tokens were read, up to and including the first ``<eos>``.
        complete: whether an ``<eos>`` came.
    """

    tab: Tab
    ill_formed: int
    length: int
    complete: bool

    @property
    def well_formed_share(self) -> float:
        """Share of the tokens that could stand where they stood; 1.0 for no tokens at all."""
        return 1 - self.ill_formed / self.length if self.length else 1.0


class TabTokenizer:
    """Turns tabs into token ids and back.

    The vocabulary is ``<pad>``, ``<bos>``, ``<eos>`` (ids 0, 1, 2), a ``TUNING`` token for every
    tuning with a name, ``OPEN`` tokens for the open strings of any other, and ``CAPO``, ``BAR``,
    ``LONG``, ``POS`` and ``TAB`` tokens. Title and source of a tab are not encoded.

    Args:
        max_fret: highest fret that has a token.
        max_position: how many positions have a token; bars may be longer.
        max_capo: highest capo.
        tunings: the tunings with a token of their own, by name; six strings each.

    Raises:
        ValueError: if a limit is below its smallest useful value, or a tuning has not six strings.
    """

    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(
        self,
        max_fret: int = 24,
        max_position: int = 128,
        max_capo: int = 12,
        tunings: dict[str, Tuning] | None = None,
    ):
        for name, value, least in (
            ("max_fret", max_fret, 0), ("max_position", max_position, 1), ("max_capo", max_capo, 0)
        ):  # fmt: skip
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, not {value!r}."
                )
        self.max_fret, self.max_position, self.max_capo = max_fret, max_position, max_capo
        self.tunings = dict(TUNINGS if tunings is None else tunings)
        for name, tuning in self.tunings.items():
            if len(tuning.open_pitches) != STRINGS:
                raise ValueError(f"Tuning {name!r} must have {STRINGS} open strings.")
        self.vocabulary = (
            *SPECIAL,
            *(f"TUNING<{name}>" for name in self.tunings),
            *(f"OPEN<{pitch}>" for pitch in range(LOWEST_OPEN, HIGHEST_OPEN + 1)),
            *(f"CAPO<{capo}>" for capo in range(max_capo + 1)),
            "BAR",
            "LONG",
            *(f"POS<{steps}>" for steps in range(1, max_position + 1)),
            *(f"TAB<{s},{f}>" for s in range(STRINGS, 0, -1) for f in range(max_fret + 1)),
        )
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.parts = tuple(token_parts(token) for token in self.vocabulary)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return len(self.vocabulary)

    def to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Readable names of token ids; ``<?>`` for one outside the vocabulary."""
        return [self.vocabulary[i] if 0 <= i < len(self) else "<?>" for i in map(int, ids)]

    def to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Ids of readable names.

        Raises:
            ValueError: for a name that is not in the vocabulary.
        """
        tokens = list(tokens)
        for token in tokens:
            if token not in self._ids:
                raise ValueError(f"{token!r} is not in the vocabulary of {len(self)} tab tokens.")
        return [self._ids[token] for token in tokens]

    def encode(self, tab: Tab) -> list[int]:
        """Token ids of a tab, from ``<bos>`` to ``<eos>``.

        A tuning without a name is written as six ``OPEN`` tokens, string 6 first.

        Raises:
            ValueError: for what has no tokens: other than six strings, an open string outside MIDI
                pitch 28 to 76, a capo or fret beyond the limits, a bar without length, events out
                of order or outside their bar, notes not in order from string 6 to string 1. The
                sentence names the bar.
        """
        tokens = ["<bos>", *self.header(tab.tuning)]
        for number, bar in enumerate(tab.bars, start=1):
            tokens += self._bar_tokens(bar, number)
        return self.to_ids([*tokens, "<eos>"])

    def header(self, tuning: Tuning) -> list[str]:
        """Names of the tokens for a tuning and its capo: what a piece begins with after ``<bos>``.

        Raises:
            ValueError: as `encode`.
        """
        pitches = tuning.open_pitches
        if len(pitches) != STRINGS:
            raise ValueError(
                f"Tab tokens are for {STRINGS} strings; this tuning has {len(pitches)}."
            )
        if not 0 <= tuning.capo <= self.max_capo:
            raise ValueError(f"A capo can be on fret 0 to {self.max_capo}, not {tuning.capo}.")
        capo = f"CAPO<{tuning.capo}>"
        for name, known in self.tunings.items():
            if known.open_pitches == pitches:
                return [f"TUNING<{name}>", capo]
        if not all(LOWEST_OPEN <= pitch <= HIGHEST_OPEN for pitch in pitches):
            raise ValueError(
                f"Open strings must lie between the MIDI pitches {LOWEST_OPEN} and {HIGHEST_OPEN}; "
                f"this tuning has {pitches}."
            )
        return [*(f"OPEN<{pitch}>" for pitch in reversed(pitches)), capo]

    def _bar_tokens(self, bar: Bar, number: int) -> list[str]:
        """Names of the tokens of one bar."""
        if bar.steps < 1:
            raise ValueError(f"Bar {number} has {bar.steps} steps; a bar has at least 1.")
        tokens, now, passed = ["BAR"], 0, 0
        for i, event in enumerate(bar.events):
            where = f"Bar {number}, step {event.step}"
            if not now <= event.step < bar.steps or (i and event.step == now):
                raise ValueError(
                    f"{where}: events must be in order and inside the bar's {bar.steps} steps."
                )
            now = event.step
            if now:
                passed = self._position(tokens, now, passed)
            tokens += self._event_tokens(event, where)
        self._position(tokens, bar.steps, passed)
        return tokens

    def _position(self, tokens: list[str], step: int, passed: int) -> int:
        """Add the tokens for a position; `passed` and the result count the ``LONG`` so far."""
        longs, rest = divmod(step - 1, self.max_position)
        tokens += ["LONG"] * (longs - passed) + [f"POS<{rest + 1}>"]
        return longs

    def _event_tokens(self, event: Event, where: str) -> list[str]:
        """Names of the tokens of the notes that sound together."""
        strings = [note.string for note in event.notes]
        if not strings or any(a <= b for a, b in zip(strings, strings[1:], strict=False)):
            raise ValueError(
                f"{where}: an event needs notes on different strings, string 6 before string 1; "
                f"these are on strings {strings}."
            )
        for string, fret in event.notes:
            if not (1 <= string <= STRINGS and 0 <= fret <= self.max_fret):
                raise ValueError(
                    f"{where}: no token for string {string}, fret {fret}: strings go from 1 to "
                    f"{STRINGS}, frets from 0 to {self.max_fret}."
                )
        return [f"TAB<{string},{fret}>" for string, fret in event.notes]

    def decode(self, ids: Sequence[int], tuning: Tuning = STANDARD) -> Decoded:
        """The music in a sequence of token ids, however ill-formed: it never raises.

        A token that may not stand where it stands is counted. A ``BAR`` or ``<eos>`` is obeyed all
        the same (notes that the bar ends with get one step); every other such token is skipped.
        Reading stops at the first ``<eos>``. A sequence that does not begin with ``<bos>`` is a
        piece's middle: it is read as if it began right after a ``BAR``, in the given tuning. A last
        bar that breaks off is kept as far as it goes.

        Args:
            ids: token ids; a tensor works too.
            tuning: the tuning of a sequence that does not say.
        """
        ids = [int(i) for i in ids]
        reader = self._reader(ids, tuning)
        length = 0
        for length, token in enumerate(ids, start=1):  # noqa: B007
            reader.read(token)
            if token == self.eos_id:
                break
        reader.close_bar()
        tab = Tab(tuning=reader.tuning, bars=tuple(reader.bars))
        return Decoded(tab, reader.ill_formed, length, complete=self.eos_id in ids)

    def allowed_next(self, ids: Sequence[int]) -> set[int]:
        """Ids that may follow a sequence so that it stays well-formed; empty after ``<eos>``.

        The sequence is read as `decode` reads it. Masking every other id while sampling makes every
        finished sample a well-formed piece.
        """
        ids = [int(i) for i in ids]
        if self.eos_id in ids:
            return set()
        reader = self._reader(ids, STANDARD)
        for token in ids:
            reader.read(token)
        return {i for i in range(len(self)) if reader.allows(i)}

    def _reader(self, ids: list[int], tuning: Tuning) -> TokenReader:
        """A reader for a sequence: at its beginning, or in the middle if it has none."""
        return TokenReader(
            self.vocabulary,
            self.parts,
            self.max_position,
            self.tunings,
            tuning,
            inside=bool(ids) and ids[0] != self.bos_id,
        )

    def to_json(self) -> str:
        """The settings as JSON text, to be saved beside a model."""
        tunings = {name: list(tuning.open_pitches) for name, tuning in self.tunings.items()}
        settings = {
            "kind": "tab tokens",
            "max_fret": self.max_fret,
            "max_position": self.max_position,
        }
        settings |= {"max_capo": self.max_capo, "tunings": tunings}
        return json.dumps(settings, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "TabTokenizer":
        """The tokenizer that `to_json` described: same vocabulary, same ids.

        Raises:
            ValueError: if the text is not JSON, or not the settings of a tab tokenizer.
        """
        try:
            settings = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"These tokenizer settings are not JSON: {error}.") from None
        if not isinstance(settings, dict) or settings.pop("kind", None) != "tab tokens":
            raise ValueError(
                'These are not the settings of a tab tokenizer ("kind": "tab tokens").'
            )
        try:
            tunings = {
                name: Tuning(tuple(int(pitch) for pitch in pitches))
                for name, pitches in settings.pop("tunings").items()
            }
            return cls(tunings=tunings, **settings)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"These tab tokenizer settings are incomplete or hold something else: {error!r}."
            ) from None


def token_stream(tabs: Iterable[Tab], tokenizer: TabTokenizer) -> list[int]:
    """The ids of many tabs one after the other, each from ``<bos>`` to ``<eos>``, to train on.

    Raises:
        ValueError: for the first tab that cannot be encoded; its title or source is named.
    """
    stream: list[int] = []
    for number, tab in enumerate(tabs, start=1):
        try:
            stream += tokenizer.encode(tab)
        except ValueError as error:
            name = tab.source or tab.title or f"tab {number}"
            raise ValueError(f"{name}: {error}") from None
    return stream
