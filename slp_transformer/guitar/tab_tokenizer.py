"""Tabs as token ids and back, without loss.

A piece is a short header and then its bars::

    <bos> TUNING<standard> CAPO<0>
    BAR TAB<6,3> POS<2> TAB<4,0> TAB<1,3> POS<16>
    BAR ...
    <eos>

In a tokenizer with units of time ``STEPS<4>`` follows there, for four steps to a quarter note, or
``COLUMNS``, where steps are only columns of a text. ``TAB<6,3>`` is string 6 at fret 3: one token
for the place, because a combined token learns better than a string token and a fret token
(Fretting-Transformer, arXiv 2506.14223). Notes that sound together follow each other from string 6
to string 1. ``POS<k>`` is the moment k steps after the bar line, as in REMI (arXiv 2002.00212); the
bar line itself needs none. The last ``POS`` of a bar, with no notes behind it, is where the bar
ends. Positions rather than the time that passes between notes: a model that has to add up times
soon loses the meter. In a bar that is longer than the positions reach, ``LONG`` moves the place
they count from to the last of them.

The placed code, ``TabTokenizer(code="placed")``, has one token for a bar that comes back, and says
time signature and key in the header, and the style if the tokenizer is made with styles;
`slp_transformer.guitar.token_names` describes it.

A piece is encoded in one way in either code. Which token may follow which is one small state
machine, which decoding and `TabTokenizer.allowed_next_ids` share.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from slp_transformer._internal.config_checks import is_integer
from slp_transformer._internal.json_schema import validate_json
from slp_transformer.guitar.fretboard import STANDARD, TUNINGS, Tuning
from slp_transformer.guitar.styles import check_styles
from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.token_grammar import (
    NUM_STRINGS,
    SPECIAL_TOKENS,
    PlacedTokenReader,
    PlainTokenReader,
    parse_token,
)
from slp_transformer.guitar.token_names import (
    build_placed_vocabulary,
    build_plain_vocabulary,
    encode_placed_tab,
    encode_plain_bars,
)

TokenScheme = Literal["plain", "placed"]
MIN_OPEN_PITCH, MAX_OPEN_PITCH = 28, 76
MAX_LIMIT = 1 << 16  # frets, positions or capos, since each has a token
DEFAULT_STEPS_PER_QUARTER = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""The steps per quarter note in the pieces that models are trained on by default."""


@dataclass(frozen=True)
class DecodedTab:
    """The tab that a sequence of token ids encodes, and counts of its tokens.

    Attributes:
        tab: the music in it.
        num_invalid_tokens: number of tokens where the grammar does not allow them.
        num_tokens: how many tokens were read, up to and including the first ``<eos>``.
        is_complete: whether an ``<eos>`` came.
    """

    tab: Tab
    num_invalid_tokens: int
    num_tokens: int
    is_complete: bool

    @property
    def valid_token_share(self) -> float:
        """Share of the tokens that the grammar allows where they are; 1.0 for no tokens."""
        return 1 - self.num_invalid_tokens / self.num_tokens if self.num_tokens else 1.0


@dataclass(frozen=True)
class TabTokenizerConfig:
    """The JSON of `TabTokenizer.to_json`."""

    kind: Literal["tab tokens"]
    max_fret: int
    max_position: int
    max_capo: int
    tunings: dict[str, tuple[int, ...]]
    units: tuple[int, ...]
    code: TokenScheme
    styles: tuple[str, ...]


class TabTokenizer:
    """Turns tabs into token ids and back.

    The vocabulary is ``<pad>``, ``<bos>``, ``<eos>`` (ids 0, 1, 2), a ``TUNING`` token for every
    tuning with a name, ``OPEN`` tokens for the open strings of any other, and ``CAPO``, ``BAR``,
    ``LONG``, ``POS`` and ``TAB`` tokens; and ``COLUMNS`` and ``STEPS`` tokens for the unit of time.
    The placed code has those named above besides, and ``STYLE`` tokens at the end if there are
    styles.
    Of a tab its tuning, unit, bars and notes are encoded, and in the placed code the style and the
    first bar's time signature; title, other time signatures, tempo, repeats, durations and
    techniques are not, and dead notes, which have no pitch, are left out.

    Args:
        max_fret: highest fret that has a token.
        max_position: how many positions have a token; bars may be longer.
        max_capo: highest capo.
        tunings: the tunings with a token of their own, by name; six strings each.
        steps_per_quarter_options: how many steps a quarter note may have,
            `DEFAULT_STEPS_PER_QUARTER` for instance, for tokens of the unit of time; none for no
            such tokens.
        scheme: "plain" or "placed".
        styles: the styles that have a token, for the placed code; none for headers without
            a style.

    Raises:
        ValueError: if a limit is below its smallest useful value, a tuning has not six strings,
            there is no such code, a style has no name that will do
            (`slp_transformer.guitar.styles.is_valid_style`) or is there twice, or styles are
            given for the plain code.
    """

    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(
        self,
        max_fret: int = 24,
        max_position: int = 128,
        max_capo: int = 12,
        tunings: dict[str, Tuning] | None = None,
        steps_per_quarter_options: Iterable[int] = (),
        scheme: TokenScheme = "plain",
        styles: Iterable[str] = (),
    ):
        for name, value, least in (
            ("max_fret", max_fret, 0), ("max_position", max_position, 1), ("max_capo", max_capo, 0)
        ):  # fmt: skip
            if not is_integer(value) or not least <= value <= MAX_LIMIT:
                raise ValueError(
                    f"{name} must be a whole number from {least} to {MAX_LIMIT}, not {value!r}."
                )
        self.max_fret, self.max_position, self.max_capo = max_fret, max_position, max_capo
        self.tunings = dict(TUNINGS if tunings is None else tunings)
        for name, tuning in self.tunings.items():
            if len(tuning.open_pitches) != NUM_STRINGS:
                raise ValueError(f"Tuning {name!r} must have {NUM_STRINGS} open strings.")
        self.steps_per_quarter_options = units = tuple(steps_per_quarter_options)
        if not all(is_integer(unit) and 1 <= unit <= MAX_LIMIT for unit in units):
            raise ValueError(f"A quarter note has a whole number of steps, not {units}.")
        if scheme not in get_args(TokenScheme):
            raise ValueError(f'scheme must be "plain" or "placed", not {scheme!r}.')
        self.scheme, self.styles = scheme, tuple(styles)
        check_styles(self.styles)
        if self.styles and scheme == "plain":
            raise ValueError("Only the placed code has style tokens, not the plain one.")
        unit_tokens = ("COLUMNS", *(f"STEPS<{unit}>" for unit in units)) if units else ()
        self.vocabulary = (
            *SPECIAL_TOKENS,
            *(f"TUNING<{name}>" for name in self.tunings),
            *(f"OPEN<{pitch}>" for pitch in range(MIN_OPEN_PITCH, MAX_OPEN_PITCH + 1)),
            *(f"CAPO<{capo}>" for capo in range(max_capo + 1)),
            *unit_tokens,
            *(
                build_plain_vocabulary(max_fret, max_position)
                if scheme == "plain"
                else build_placed_vocabulary(max_fret, max_position, self.styles)
            ),
        )
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.parsed_vocabulary = tuple(parse_token(token) for token in self.vocabulary)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
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
                pitch 28 to 76, a capo or fret beyond the limits, an unusual unit of time, a bar
                without length, events out of order or outside their bar, notes not in order from
                string 6 to string 1. The sentence names the bar.
        """
        tokens = ["<bos>", *self.tuning_tokens(tab.tuning)]
        tokens += self.time_unit_tokens(tab.steps_per_quarter)
        if self.scheme == "plain":
            tokens += encode_plain_bars(tab.bars, self.max_fret, self.max_position)
        else:
            tokens += encode_placed_tab(tab, self.max_fret, self.max_position, self.styles)
        return self.to_ids([*tokens, "<eos>"])

    def tuning_tokens(self, tuning: Tuning) -> list[str]:
        """Names of the tokens for a tuning and its capo: what comes after ``<bos>``.

        Raises:
            ValueError: as `encode`.
        """
        pitches = tuning.open_pitches
        if len(pitches) != NUM_STRINGS:
            raise ValueError(f"Tab tokens need {NUM_STRINGS} strings, not {len(pitches)}.")
        if not 0 <= tuning.capo <= self.max_capo:
            raise ValueError(f"A capo can be on fret 0 to {self.max_capo}, not {tuning.capo}.")
        capo = f"CAPO<{tuning.capo}>"
        for name, known in self.tunings.items():
            if known.open_pitches == pitches:
                return [f"TUNING<{name}>", capo]
        if not all(MIN_OPEN_PITCH <= pitch <= MAX_OPEN_PITCH for pitch in pitches):
            raise ValueError(
                f"Open strings must lie between the MIDI pitches {MIN_OPEN_PITCH} and "
                f"{MAX_OPEN_PITCH}; this tuning has {pitches}."
            )
        return [*(f"OPEN<{pitch}>" for pitch in reversed(pitches)), capo]

    def time_unit_tokens(self, steps_per_quarter: int | None) -> list[str]:
        """Names of the tokens for a unit of time, after tuning and capo; none if it has no tokens.

        Args:
            steps_per_quarter: as `Tab.steps_per_quarter`.

        Raises:
            ValueError: for a unit that has no token.
        """
        if not self.steps_per_quarter_options:
            return []
        if steps_per_quarter is None:
            return ["COLUMNS"]
        if steps_per_quarter not in self.steps_per_quarter_options:
            raise ValueError(
                f"There is no token for {steps_per_quarter} steps to a quarter note, only for "
                f"{', '.join(map(str, self.steps_per_quarter_options))}."
            )
        return [f"STEPS<{steps_per_quarter}>"]

    def decode(self, ids: Sequence[int], default_tuning: Tuning = STANDARD) -> DecodedTab:
        """The music in a sequence of token ids, however ill-formed: it never raises.

        A token that the grammar does not allow is counted. A ``BAR`` or ``<eos>`` is obeyed all
        the same (notes that the bar ends with get one step); every other such token is skipped.
        Reading stops at the first ``<eos>``. A sequence that does not begin with ``<bos>`` is a
        piece's middle: it is read as if it began right after a ``BAR``, in the given tuning. A last
        bar that breaks off is kept as far as it goes.

        Args:
            ids: token ids; a tensor works too.
            default_tuning: the tuning of a sequence that does not say.
        """
        ids = [int(i) for i in ids]
        reader = self._make_reader(ids, default_tuning)
        length = 0
        for length, token in enumerate(ids, start=1):  # noqa: B007
            reader.read_token(token)
            if token == self.eos_id:
                break
        reader.close_bar()
        tab = Tab("", reader.tuning, tuple(reader.bars), "", reader.steps_per_quarter, reader.style)
        return DecodedTab(tab, reader.num_invalid_tokens, length, is_complete=self.eos_id in ids)

    def allowed_next_ids(self, ids: Sequence[int]) -> set[int]:
        """Ids that may follow a sequence so that it stays well-formed; empty after ``<eos>``.

        The sequence is read as `decode` reads it. Masking every other id while sampling makes every
        finished sample a well-formed piece.
        """
        ids = [int(i) for i in ids]
        if self.eos_id in ids:
            return set()
        reader = self._make_reader(ids, STANDARD)
        for token in ids:
            reader.read_token(token)
        return {i for i in range(len(self)) if reader.is_allowed(i)}

    def _make_reader(self, ids: list[int], default_tuning: Tuning) -> PlainTokenReader:
        """A reader for a sequence: at its beginning, or in the middle if it has none."""
        placed = self.scheme == "placed"
        header = [("<bos>",), ("TUNING", "OPEN"), ("CAPO",)]
        header += [("COLUMNS", "STEPS")] if self.steps_per_quarter_options else []
        header += [("METRE",), ("KEY",)] if placed else []
        header += [("STYLE",)] if self.styles else []
        if ids and ids[0] != self.bos_id:
            header = []
        else:
            header.append(("BAR", "<eos>"))
        return (PlacedTokenReader if placed else PlainTokenReader)(
            self.vocabulary,
            self.parsed_vocabulary,
            self.max_position,
            self.tunings,
            default_tuning,
            tuple(header),
        )

    def to_json(self) -> str:
        """Return the settings as JSON text, to be saved with a model."""
        tunings = {name: tuning.open_pitches for name, tuning in self.tunings.items()}
        limits = self.max_fret, self.max_position, self.max_capo
        kept = TabTokenizerConfig(
            "tab tokens", *limits, tunings, self.steps_per_quarter_options, self.scheme, self.styles
        )
        return json.dumps(asdict(kept), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "TabTokenizer":
        """The tokenizer that `to_json` described: same vocabulary, same ids.

        Raises:
            ValueError: if the text is not JSON, or not the settings of a tab tokenizer.
        """
        kept = validate_json(TabTokenizerConfig, text.encode(), "These settings of a tab tokenizer")
        tunings = {name: Tuning(pitches) for name, pitches in kept.tunings.items()}
        limits = kept.max_fret, kept.max_position, kept.max_capo
        return cls(*limits, tunings, kept.units, kept.code, kept.styles)


def encode_all_tabs(tabs: Iterable[Tab], tokenizer: TabTokenizer) -> list[int]:
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
