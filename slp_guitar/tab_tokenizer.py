"""Tabs as token ids and back, without loss.

A piece is a short header and then its bars::

    <bos> TUNING<standard> CAPO<0> STEPS<4> METRE<4/4> KEY<Em>
    BAR<16> TAB<6,0> WITH<1,3> POS<2> TAB<4,2> POS<4> TAB<3,0>
    SAME<1>
    <eos>

``STEPS<4>`` is four steps to a quarter note; it is ``COLUMNS`` where steps are only columns of a
text. Then come the time signature of the first bar and the key, which is estimated from all notes
(`slp_guitar.theory.estimate_key`); either may be ``none``. Where the tokenizer has
styles, the tab's comes last, as ``STYLE<Jazz>``, or ``STYLE<none>`` if it has none of them.

``TAB<6,3>`` is string 6 at fret 3: one token for the place, because a combined token learns better
than a string token and a fret token (Fretting-Transformer, arXiv 2506.14223). ``TAB`` is the first
note of a moment, ``WITH`` another one that sounds with it, from string 6 to string 1. ``POS<k>`` is
the moment k steps after the bar line, as in REMI (arXiv 2002.00212); the bar line itself needs
none. Positions rather than the time that passes between notes: a model that has to add up times
soon loses the meter, and a shorter code, in which most moments tell no place, cost more bits a note
(`benchmarks/results/guitar_lm`). In a bar that is longer than the positions reach, ``LONG`` moves
the place they count from to the last of them.

``BAR<16>`` says at once how long the bar is; in one beyond the positions each ``LONGER`` adds their
number. A bar that is equal to an earlier one is a single token: ``SAME<1>`` is the bar before,
``SAME<8>`` the one eight bars back, the nearest of several. So a model that has whole pieces before
it can have bars come back without spelling them. The grammar does not keep it from spelling such a
bar all the same.

A piece is encoded in one way. Which token may follow which is one small state machine, which
decoding and `TabTokenizer.allowed_next_ids` share.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from slp_guitar.bar_lengths import NOTATED_STEPS_PER_QUARTER
from slp_guitar.fretboard import STANDARD, TUNINGS, Note, Tuning, get_tuning_name
from slp_guitar.tab import Bar, Tab, iter_checked_events
from slp_guitar.tab_header import MAX_STYLE_CHARACTERS, is_valid_style
from slp_guitar.theory import KEY_NAMES, TIME_SIGNATURES, estimate_key
from slp_guitar.token_reader import NUM_STRINGS, SPECIAL_TOKENS, TokenReader, parse_token
from slp_transformer._internal.config_checks import is_integer
from slp_transformer._internal.json_files import validate_json

BarMoments = tuple[tuple[int, tuple[Note, ...]], ...]
MIN_OPEN_PITCH, MAX_OPEN_PITCH = 28, 76
MAX_CAPO = 12
MAX_LIMIT = 1 << 16  # frets or positions, since each has a token
MAX_BARS_BACK = 128
"""How many bars back a bar can be called by ``SAME``."""


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


@dataclass(eq=False)
class TabTokenizer:
    """Turns tabs into token ids and back; its fields are the content of tokenizer.json.

    The vocabulary is ``<pad>``, ``<bos>``, ``<eos>`` (ids 0, 1, 2), a ``TUNING`` token for every
    tuning with a name, ``OPEN`` tokens for the open strings of any other, and those named above,
    with ``STYLE`` tokens at the end if there are styles.
    Of a tab its tuning, unit, style, bars, notes and the first bar's time signature are encoded;
    title, other time signatures, tempo, repeats, durations and techniques are not, and dead notes,
    which have no pitch, are left out.

    Args:
        max_fret: highest fret that has a token.
        max_position: how many positions have a token; bars may be longer.
        steps_per_quarter_options: how many steps a quarter note may have.
        styles: the styles that have a token; none for headers without a style.
        kind: says in JSON what this is.

    Raises:
        ValueError: if a limit is below its smallest useful value, or a style has no valid name
            (`slp_guitar.tab_header.is_valid_style`) or is there twice.
    """

    pad_id: ClassVar[int] = 0
    bos_id: ClassVar[int] = 1
    eos_id: ClassVar[int] = 2

    max_fret: int = 24
    max_position: int = 128
    steps_per_quarter_options: tuple[int, ...] = NOTATED_STEPS_PER_QUARTER
    styles: tuple[str, ...] = ()
    kind: Literal["tab tokens"] = "tab tokens"

    def __post_init__(self) -> None:
        limits = [("max_fret", self.max_fret, 0), ("max_position", self.max_position, 1)]
        limits += [("steps_per_quarter", unit, 1) for unit in self.steps_per_quarter_options]
        for name, value, least in limits:
            if not is_integer(value) or not least <= value <= MAX_LIMIT:
                raise ValueError(
                    f"{name} must be a whole number from {least} to {MAX_LIMIT}, not {value!r}."
                )
        for name in self.styles:
            if not isinstance(name, str) or not is_valid_style(name):
                raise ValueError(
                    f"A style has a name of 1 to {MAX_STYLE_CHARACTERS} printable characters, "
                    f"without < and >, and other than none: {name!r:.60} will not do."
                )
            if self.styles.count(name) > 1:
                raise ValueError(f"The style {name!r} is there twice.")
        self.vocabulary: tuple[str, ...] = self._build_vocabulary()
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.parsed_vocabulary: tuple[tuple[str, tuple[int, ...]], ...] = tuple(
            parse_token(token) for token in self.vocabulary
        )

    def _build_vocabulary(self) -> tuple[str, ...]:
        """Return the names of all tokens, by id."""
        frets = range(self.max_fret + 1)
        places = [f"<{s},{fret}>" for s in range(NUM_STRINGS, 0, -1) for fret in frets]
        positions = range(1, self.max_position + 1)
        styles = [*self.styles, "none"] if self.styles else []
        return (
            *SPECIAL_TOKENS,
            *(f"TUNING<{name}>" for name in TUNINGS),
            *(f"OPEN<{pitch}>" for pitch in range(MIN_OPEN_PITCH, MAX_OPEN_PITCH + 1)),
            *(f"CAPO<{capo}>" for capo in range(MAX_CAPO + 1)),
            *("COLUMNS", *(f"STEPS<{steps}>" for steps in self.steps_per_quarter_options)),
            *(f"METRE<{beats}/{unit}>" for beats, unit in TIME_SIGNATURES),
            *("METRE<none>", *(f"KEY<{key}>" for key in KEY_NAMES), "KEY<none>"),
            *(f"BAR<{steps}>" for steps in positions),
            *("LONGER", "LONG", *(f"POS<{steps}>" for steps in positions)),
            *(f"SAME<{bars}>" for bars in range(1, MAX_BARS_BACK + 1)),
            *(f"TAB{place}" for place in places),
            *(f"WITH{place}" for place in places),
            *(f"STYLE<{style}>" for style in styles),
        )

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

    # --- Encoding --------------------------------------------------------------------------------

    def encode(self, tab: Tab) -> list[int]:
        """Token ids of a tab, from ``<bos>`` to ``<eos>``.

        A tuning without a name is written as six ``OPEN`` tokens, string 6 first.

        Raises:
            ValueError: for what has no tokens: other than six strings, an open string outside MIDI
                pitch 28 to 76, a capo or fret beyond the limits, an unusual unit of time, a bar
                without length, events out of order or outside their bar, notes not in order from
                string 6 to string 1. The sentence names the bar.
        """
        bars: list[str] = []
        last_seen: dict[tuple[int, BarMoments], int] = {}
        for number, bar in enumerate(tab.bars, start=1):
            moments = self._encodable_moments(bar, number)
            again = f"SAME<{number - last_seen.get((bar.steps, moments), number)}>"
            last_seen[bar.steps, moments] = number
            bars += [again] if moments and again in self._ids else self._bar_tokens(bar, moments)
        unit = tab.steps_per_quarter
        time = "COLUMNS" if unit is None else f"STEPS<{unit}>"
        if time not in self._ids:
            raise ValueError(
                f"There is no token for {unit} steps to a quarter note, only for "
                f"{', '.join(map(str, self.steps_per_quarter_options))}."
            )
        signature = tab.bars[0].time_signature if tab.bars else None
        written = "{}/{}".format(*signature) if signature in TIME_SIGNATURES else "none"
        tokens = ["<bos>", *self.tuning_tokens(tab.tuning), time]
        tokens += [f"METRE<{written}>", f"KEY<{estimate_key(tab) or 'none'}>"]
        if self.styles:
            tokens.append(f"STYLE<{tab.style if tab.style in self.styles else 'none'}>")
        return self.to_ids([*tokens, *bars, "<eos>"])

    def _encodable_moments(self, bar: Bar, bar_number: int) -> BarMoments:
        """The moments of a bar at which notes sound, and those notes.

        Raises:
            ValueError: naming the bar, for what has no tokens.
        """
        found = []
        for event, where in iter_checked_events(bar, bar_number):
            strings = [note.string for note in event.notes]
            if not strings or strings != sorted(set(strings), reverse=True):
                raise ValueError(
                    f"{where}: an event needs notes on different strings, string 6 before string "
                    f"1; these are on strings {strings}."
                )
            for string, fret in event.notes:
                if f"TAB<{string},{fret}>" not in self._ids:
                    raise ValueError(
                        f"{where}: no token for string {string}, fret {fret}: strings go from 1 to "
                        f"{NUM_STRINGS}, frets from 0 to {self.max_fret}."
                    )
            if notes := event.sounding_notes():
                found.append((event.step, notes))
        return tuple(found)

    def _bar_tokens(self, bar: Bar, moments: BarMoments) -> list[str]:
        """Names of the tokens of a bar that is not called by ``SAME``."""
        longer, rest = divmod(bar.steps - 1, self.max_position)
        tokens = [f"BAR<{rest + 1}>"] + ["LONGER"] * longer
        num_longs = 0
        for step, notes in moments:
            if step:
                longs, rest = divmod(step - 1, self.max_position)
                tokens += ["LONG"] * (longs - num_longs) + [f"POS<{rest + 1}>"]
                num_longs = longs
            for i, (string, fret) in enumerate(notes):
                tokens.append(f"{'WITH' if i else 'TAB'}<{string},{fret}>")
        return tokens

    def tuning_tokens(self, tuning: Tuning) -> list[str]:
        """Names of the tokens for a tuning and its capo: what comes after ``<bos>``.

        Raises:
            ValueError: as `encode`.
        """
        pitches = tuning.open_pitches
        if len(pitches) != NUM_STRINGS:
            raise ValueError(f"Tab tokens need {NUM_STRINGS} strings, not {len(pitches)}.")
        if not 0 <= tuning.capo <= MAX_CAPO:
            raise ValueError(f"A capo can be on fret 0 to {MAX_CAPO}, not {tuning.capo}.")
        capo = f"CAPO<{tuning.capo}>"
        if name := get_tuning_name(tuning):
            return [f"TUNING<{name}>", capo]
        if not all(MIN_OPEN_PITCH <= pitch <= MAX_OPEN_PITCH for pitch in pitches):
            raise ValueError(
                f"Open strings must lie between the MIDI pitches {MIN_OPEN_PITCH} and "
                f"{MAX_OPEN_PITCH}; this tuning has {pitches}."
            )
        return [*(f"OPEN<{pitch}>" for pitch in reversed(pitches)), capo]

    # --- Decoding --------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], default_tuning: Tuning = STANDARD) -> DecodedTab:
        """The music in a sequence of token ids, however ill-formed: it never raises.

        A token that the grammar does not allow is counted. One that ends a bar is obeyed all the
        same; every other such token is skipped. Reading stops at the first ``<eos>``. A sequence
        that does not begin with ``<bos>`` is a piece's middle: it is read as if it began right
        after a bar line, in the given tuning. A last bar that breaks off is kept as far as it goes.

        Args:
            ids: token ids; a tensor works too.
            default_tuning: the tuning of a sequence that does not say.
        """
        ids = [int(i) for i in ids]
        is_complete = self.eos_id in ids
        if is_complete:
            ids = ids[: ids.index(self.eos_id) + 1]
        reader = self._read_tokens(ids, default_tuning)
        reader.commit_bar()
        tab = Tab("", reader.tuning, tuple(reader.bars), "", reader.steps_per_quarter, reader.style)
        return DecodedTab(tab, reader.num_invalid_tokens, len(ids), is_complete)

    def allowed_next_ids(
        self,
        ids: Sequence[int],
        time_signature: tuple[int, int] | None = None,
        fill_bars: bool = False,
    ) -> set[int]:
        """Ids that may follow a sequence so that it stays well-formed; empty after ``<eos>``.

        The sequence is read as `decode` reads it. Masking every other id while sampling makes every
        finished sample a well-formed piece.

        Args:
            ids: the sequence.
            time_signature: of all bars that begin from here on, which fill it; the header's, or
                any, if None. Columns, which are no unit of time, are as many in each bar as in
                most, and as many to a quarter note as notation has.
            fill_bars: whether bars fill their time signature, if none is given here: the header's
                or, if that has none, a plain one that the first bar chooses.
        """
        ids = [int(i) for i in ids]
        if self.eos_id in ids:
            return set()
        reader = self._read_tokens(ids, STANDARD)
        is_any_length = time_signature is None and not fill_bars
        return {
            i
            for i, token in enumerate(self.parsed_vocabulary)
            if reader.is_allowed(*token)
            and (is_any_length or reader.fills_bars(time_signature, *token))
        }

    def _read_tokens(self, ids: list[int], default_tuning: Tuning) -> "TokenReader":
        """Read a sequence: from its beginning, or as the middle of a piece."""
        header = [("<bos>",), ("TUNING", "OPEN"), ("CAPO",), ("COLUMNS", "STEPS"), ("METRE",)]
        header += [("KEY",), *([("STYLE",)] if self.styles else []), ("BAR", "<eos>")]
        has_header = not ids or ids[0] == self.bos_id
        reader = TokenReader(self.max_position, default_tuning, header if has_header else [])
        for token in self.to_tokens(ids):
            reader.read_token(token)
        return reader

    # --- Files -----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON, to be saved with a model."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TabTokenizer":
        """The tokenizer that `to_json` described: same vocabulary, same ids.

        Raises:
            ValueError: if the content is not the settings of a tab tokenizer.
        """
        if content.get("scheme") == "placed":  # what files of earlier versions call these tokens
            content = {name: value for name, value in content.items() if name != "scheme"}
        text = json.dumps(content).encode()
        return validate_json(cls, text, "These settings of a tokenizer")


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
