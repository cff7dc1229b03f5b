"""What generates tabs that the grammar of their tokens allows."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from slp_guitar import Note, TabTokenizer, Tuning, format_tab
from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.bar_lengths import list_bar_steps, take_columns_as_time
from slp_guitar.formats.registry import check_writable_suffix, find_format, has_no_time, write_tab
from slp_guitar.fretboard import is_playable_grip
from slp_guitar.tab_tokenizer import MAX_BARS_BACK
from slp_guitar.theory import chord_pitch_classes, ends_on_tonic, estimate_key, key_pitch_classes
from slp_guitar.timing import fit_bars_to_time_signature
from slp_transformer.tasks.generation_session import GeneratedText, GenerationSession

MAX_TUNING_TOKENS = 8  # <bos>, six OPEN, CAPO


class TabSession(GenerationSession):
    """Tabs that the grammar of their tokens allows.

    Attributes:
        kept_tokens: above 0, a piece that breaks off, or that ends on another bass note than the
            tonic of its key, the one asked for or else estimated from its notes, gets an ending by
            the grammar: its first bars again and a cadence, of 20 tokens at most.
        one_channel: write MIDI files with one channel.
    """

    one_channel: bool = False

    def __init__(
        self,
        tokenizer: TabTokenizer,
        tuning: Tuning,
        header: Mapping[str, str] | None = None,
        constrained: bool = True,
    ):
        """Generate for a guitar that is tuned like this.

        Args:
            tokenizer: what the tokens mean.
            tuning: the guitar.
            header: what else the header is to say: KEY="Em", METRE="3/4", STYLE="Jazz".
            constrained: keep to the grammar; if not, only in the header.

        Raises:
            ValueError: if the model does not know such a style.
        """
        self.tokenizer: TabTokenizer = tokenizer
        self.tuning: Tuning = tuning
        self.constrained: bool = constrained
        self.stop: int | Collection[int] | None = tokenizer.eos_id
        self.kinds: list[str] = [kind for kind, _ in tokenizer.parsed_vocabulary]
        self.prompts: set[tuple[int, ...]] = set()
        self.closing: dict[tuple[int, ...], str] = {}  # keys by the tokens before a last chord
        header = header or {}
        for kind, value in header.items():
            flag = {"METRE": "time-signature"}.get(kind, kind.lower())
            if kind not in self.kinds:
                raise ValueError(f"--{flag} has no effect here: this model has no tokens for it.")
            if kind == "STYLE" and value not in tokenizer.styles:
                names = ", ".join(tokenizer.styles)
                raise ValueError(f"--{flag} must be one that this model knows, {names}.")
        tokens = tokenizer.to_ids([f"{kind}<{value}>" for kind, value in header.items()])
        self.header: dict[str, int] = dict(zip(header, tokens, strict=True))
        self.key: str | None = header.get("KEY")
        beats, _, unit = header.get("METRE", "").partition("/")
        self.time_signature: tuple[int, int] | None = (int(beats), int(unit)) if unit else None

    def allowed(self, ids: Sequence[int]) -> set[int] | None:
        """Return the tokens that may come next; a piece gets at least one bar after its prompt.

        Notes that are struck together are what one hand can take, and bars fill their time
        signature.
        """
        has_bar = any(self.kinds[i] == "BAR" for i in ids)
        if not self.constrained and has_bar:
            return None
        allowed = self.tokenizer.allowed_next_ids(ids, self.time_signature, fill_bars=True)
        allowed = self._keep_playable(allowed, ids)
        for token in self.header.values():
            if token in allowed and len({self.kinds[i] for i in allowed}) == 1:
                return {token}
        if tuple(ids) in self.prompts:  # the last bar of a prompt stays as it is
            return {i for i in allowed if self.kinds[i] in ("BAR", "SAME")}
        for before, key in self.closing.items():
            if tuple(ids[: len(before)]) == before:
                return self._allowed_in_cadence(allowed, ids, len(before), key)
        if self.key is not None:
            scale = key_pitch_classes(self.key)
            allowed = {
                i for i, pitch in self._iter_note_pitches(allowed, ids) if pitch % 12 in scale
            } | {i for i in allowed if self.kinds[i] not in ("TAB", "WITH")}
        return allowed if has_bar else allowed - {self.stop}

    def _keep_playable(self, tokens: set[int], ids: Sequence[int]) -> set[int]:
        """Return tokens without the notes that no hand takes together with those just struck."""
        if not any(self.kinds[i] == "WITH" for i in tokens):
            return tokens
        vocabulary, struck = self.tokenizer.parsed_vocabulary, []
        for i in reversed(ids):
            struck.append(Note(*vocabulary[i][1]))
            if self.kinds[i] == "TAB":
                break
        tuning = self.tokenizer.decode(ids[:MAX_TUNING_TOKENS]).tab.tuning
        return {
            i
            for i in tokens
            if self.kinds[i] != "WITH"
            or is_playable_grip([*struck, Note(*vocabulary[i][1])], tuning=tuning)
        }

    def _iter_note_pitches(
        self, tokens: Iterable[int], ids: Sequence[int]
    ) -> Iterator[tuple[int, int]]:
        """Yield the tokens that are notes, and the pitch of each on the guitar of a piece."""
        tuning = self.tokenizer.decode(ids[:MAX_TUNING_TOKENS]).tab.tuning
        for i in tokens:
            kind, place = self.tokenizer.parsed_vocabulary[i]
            if kind in ("TAB", "WITH"):
                yield i, tuning.pitch_of(Note(*place))

    def _allowed_in_cadence(
        self, allowed: set[int], ids: Sequence[int], start: int, key: str
    ) -> set[int]:
        """Return how a cadence may go on: a bar of the dominant seventh, one of the tonic, the end.

        Each chord has its root in the bass, and only its own notes above.
        """
        kinds = [self.kinds[i] for i in ids[start:]]
        tonic, is_last = chord_pitch_classes(key), kinds.count("BAR") == 2
        classes = tonic if is_last else [(tonic[0] + step) % 12 for step in (7, 11, 2, 5)]
        pitches = dict(self._iter_note_pitches(allowed, ids))
        if kinds[-1:] in (["BAR"], ["LONGER"]):  # no note may come while the bar has to be longer
            return {i for i, pitch in pitches.items() if pitch % 12 == classes[0]} or allowed
        bass = min((pitch for _, pitch in self._iter_note_pitches(ids[-1:], ids)), default=0)
        above = {i for i, pitch in pitches.items() if pitch > bass and pitch % 12 in classes}
        after = "<eos>" if is_last else "BAR"
        return {i for i in allowed if self.kinds[i] == after or (i in above and kinds)}

    def reopen(self, ids: list[int]) -> list[int] | None:
        """Return a piece that is to go on with a cadence, if it breaks off or has another ending.

        A bar that breaks off is left out. Eight bars or more, all of a length, are followed by the
        first four of them.
        """
        is_whole = ids[-1] == self.tokenizer.eos_id
        bars = [n for n, i in enumerate(ids) if self.kinds[i] in ("BAR", "SAME")]
        kept = ids[: -1 if is_whole else max(bars, default=0)]
        tab = self.tokenizer.decode(kept).tab
        key = self.key or estimate_key(tab)
        is_ended = not tab.bars or (is_whole and ends_on_tonic(tab, key))
        if key is None or is_ended or not self.kept_tokens:
            return None
        returns = 8 <= len(tab.bars) <= MAX_BARS_BACK and len({b.steps for b in tab.bars}) == 1
        again = self.tokenizer.to_ids([f"SAME<{len(tab.bars)}>"] * (4 * returns))
        self.closing[tuple(before := [*kept, *again])] = key
        return before

    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt's tab, or the header of a new piece.

        Raises:
            ValueError: if the prompt is not tablature, or not in the time signature asked for.
        """
        if prompt is None:
            return self.tokenizer.to_ids(["<bos>", *self.tokenizer.tuning_tokens(self.tuning)])
        tabs, problems = parse_ascii_tabs(prompt, "the prompt")
        if not tabs:
            raise ValueError(f"The prompt is not tablature: {problems[0]}.")
        ids = [self.header.get(self.kinds[i], i) for i in self.tokenizer.encode(tabs[0])[:-1]]
        self.prompts.add(tuple(ids))
        lengths = [bar.steps for bar in tabs[0].bars]
        columns = 0 if tabs[0].steps_per_quarter else max(lengths, key=lengths.count)
        fitting = list_bar_steps(self.time_signature, None) if self.time_signature else ()
        if columns and fitting and columns not in fitting:
            raise ValueError(
                f"--time-signature {'/'.join(map(str, self.time_signature or ()))} does not fit "
                + f"the prompt, whose bars have {columns} columns."
            )
        return ids

    def render(self, ids: list[int]) -> str:
        """Return tokens as an ASCII tab."""
        return format_tab(self.tokenizer.decode(ids).tab)

    def remarks(self, texts: Sequence[GeneratedText]) -> list[str]:
        """Return which pieces are not in the key asked for, as estimated from their notes."""
        keys = [estimate_key(self.tokenizer.decode(text.ids).tab) or "none" for text in texts]
        others = [key for key in keys if key != self.key]
        if self.key is None or not others:
            return []
        return [
            f"Not in {self.key}, by an estimate from the notes: {len(others)} of {len(keys)} "
            f"({', '.join(dict.fromkeys(others))})."
        ]

    def writes(self, path: Path) -> bool:
        """Return whether a path's suffix is that of a music file."""
        return is_music_file(path)

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Write a tab to a music file, and return remarks on it.

        Raises:
            ValueError: if a file of that kind cannot hold it.
        """
        tab, remarks = replace(self.tokenizer.decode(ids).tab, title=path.stem), []
        if has_no_time(tab, path):
            tab, taken = take_columns_as_time(tab, self.time_signature)
            if taken:
                remarks.append(f"The model's steps have no unit of time; {taken}.")
        if tab.steps_per_quarter is not None:
            tab, changed = fit_bars_to_time_signature(tab)
            if changed:
                bars = ", ".join(map(str, changed))
                remarks.append(
                    f"Bars that did not fit their time signature were padded or truncated: {bars}."
                )
        write_tab(tab, path, one_channel=self.one_channel)
        return remarks


def is_music_file(path: Path) -> bool:
    """Return whether a path's suffix is that of a music file, rather than of text.

    Raises:
        ValueError: if there is a suffix, and no format has it.
    """
    suffix = path.suffix.lower()
    if not suffix or suffix == ".md":
        return False
    check_writable_suffix(path)
    found = find_format(path)
    return found is not None and found.is_timed
