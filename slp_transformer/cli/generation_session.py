"""Writing on, past the window too, in text and in tablature."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from slp_transformer.data import TextTokenizer
from slp_transformer.generation.decoding import generate
from slp_transformer.guitar import TUNINGS, TabTokenizer, Tuning, format_tab
from slp_transformer.guitar.ascii_reader import read_text
from slp_transformer.language_model import TransformerLM
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer
from slp_transformer.sampling import Allowed


@runtime_checkable
class World(Protocol):
    """What writing has to know of what is written.

    Attributes:
        stop: the token that ends a piece, or several; None if there is none.
        allowed: which tokens may come next; None if any may.
    """

    stop: int | Collection[int] | None
    allowed: Allowed | None

    def begin(self, prompt: str | None) -> list[int]:
        """The tokens of a prompt."""
        ...

    def show(self, ids: list[int]) -> str:
        """What tokens say."""
        ...


class Text:
    """Text: any token may follow any other."""

    allowed = None

    def __init__(self, tokenizer: TextTokenizer):
        """Write with a tokenizer's tokens."""
        self.tokenizer, self.stop = tokenizer, tokenizer.end_id

    def begin(self, prompt: str | None) -> list[int]:
        """The tokens of a prompt; without one, of what stands before a new text, or line.

        Raises:
            ValueError: if it is empty, or has a character that the model never saw.
        """
        if prompt is None:
            first = self.tokenizer.ids.get("\n", 0)
            return [first if self.stop is None else self.stop]
        if not prompt:
            raise ValueError("The prompt is empty: give at least one character to go on from.")
        return self.tokenizer.encode(prompt)

    def show(self, ids: list[int]) -> str:
        """The text of some tokens."""
        return self.tokenizer.decode(ids)


class PublishedText(Text):
    """Text in the tokens of a published model."""

    def __init__(self, tokenizer: PretrainedTokenizer):
        """Write with its tokens, and stop at any of those that end a text."""
        self.tokenizer, self.stop = tokenizer, tokenizer.end_ids

    def begin(self, prompt: str | None) -> list[int]:
        """The tokens of a prompt; without one, of what stands before a text.

        Raises:
            ValueError: if it is empty, or there is none and the model has nothing to begin with.
        """
        if prompt is None:
            begins = [self.tokenizer.begin_id, self.tokenizer.end_id]
            first = next((i for i in begins if i is not None), None)
            if first is None:
                raise ValueError("This model has no token to begin a text with: give a --prompt.")
            return [first]
        if not (ids := self.tokenizer.encode(prompt, whole=True)):
            raise ValueError("The prompt is empty: give at least one character to go on from.")
        return ids


class Tablature:
    """Guitar tablature: tokens have a grammar, which is kept to."""

    def __init__(self, tokenizer: TabTokenizer, tuning: Tuning, free: bool = False, **asked: str):
        """Write for a guitar that is tuned like this.

        Args:
            tokenizer: what the tokens mean.
            tuning: the guitar.
            free: have the grammar kept to in the header alone.
            asked: what else the header shall say, by its kind: KEY="Em", METRE="3/4",
                STYLE="Jazz".

        Raises:
            ValueError: if the model's tokens do not say such a thing.
        """
        self.tokenizer, self.tuning, self.free = tokenizer, tuning, free
        self.stop = tokenizer.eos_id
        self.kinds = [kind for kind, _ in tokenizer.parts]
        self.prompts: set[tuple[int, ...]] = set()
        self.asked: dict[str, int] = {}
        for kind, value in asked.items():
            if kind == "STYLE":
                check_known(value, tokenizer.styles)
            elif kind not in self.kinds:
                raise ValueError(
                    f"There is no use for --{kind.lower()}: this model's tokens do not tell it, as "
                    "it was made by an older version. Train anew, or leave it out."
                )
            (self.asked[kind],) = tokenizer.to_ids([f"{kind}<{value}>"])

    def allowed(self, ids: Sequence[int]) -> set[int] | None:
        """Which tokens may come next; a piece has at least one bar, or one more than its prompt."""
        if self.free and self.is_begun(ids):
            return None
        allowed = self.tokenizer.allowed_next(ids)
        for token in self.asked.values():
            if token in allowed and len({self.kinds[i] for i in allowed}) == 1:
                return {token}
        if tuple(ids) in self.prompts:  # the last bar of a prompt stays as it is
            return {i for i in allowed if self.kinds[i] in ("BAR", "SAME")}
        return allowed if self.is_begun(ids) else allowed - {self.stop}

    def is_begun(self, ids: Sequence[int]) -> bool:
        """Whether a piece has a bar."""
        return any(self.kinds[i] == "BAR" for i in ids)

    def begin(self, prompt: str | None) -> list[int]:
        """The tokens of a prompt's tab, or the header of a new piece.

        Raises:
            ValueError: if the prompt is no tablature.
        """
        if prompt is None:
            header = ["<bos>", *self.tokenizer.header(self.tuning)]  # the model says the rest
            alone = self.tokenizer.code == "plain" and not self.tokenizer.units
            return self.tokenizer.to_ids([*header, "BAR"] if alone else header)
        tabs, problems = read_text(prompt, "the prompt")
        if not tabs:
            raise ValueError(f"The prompt is no tablature to go on from: {problems[0]}.")
        ids = self.tokenizer.encode(tabs[0])[:-1]
        ids = [self.asked.get(self.kinds[i], i) for i in ids]
        if self.tokenizer.code == "plain":
            return [*ids, *self.tokenizer.to_ids(["BAR"])]
        self.prompts.add(tuple(ids))
        return ids

    def show(self, ids: list[int]) -> str:
        """The tab of some tokens, as ASCII."""
        return format_tab(self.tokenizer.decode(ids).tab)


def check_known(style: str, styles: Sequence[str]) -> None:
    """Refuse a style that a model's tokens do not tell.

    Raises:
        ValueError: naming those that they tell.
    """
    if not styles:
        raise ValueError(
            "There is no use for --style: this model knows no styles. Leave it out, or train on "
            "tabs of several styles."
        )
    if style not in styles:
        raise ValueError(f"--style must be one that this model knows, {', '.join(styles)}.")


def world_of(
    tokenizer: TextTokenizer | TabTokenizer | PretrainedTokenizer,
    tuning: str,
    capo: int,
    **asked: str,
) -> World:
    """What a model with this tokenizer writes; `asked` as `Tablature` has it.

    Raises:
        ValueError: if a tuning has no such name, the capo no such fret, or the model cannot be
            asked for such a thing.
    """
    if isinstance(tokenizer, TabTokenizer):
        return Tablature(tokenizer, Tuning(TUNINGS[tuning].open_pitches, capo), **asked)
    if asked:
        flag = next(iter(asked)).lower()
        raise ValueError(f"There is no use for --{flag}: it is for models of guitar tabs.")
    if isinstance(tokenizer, PretrainedTokenizer):
        return PublishedText(tokenizer)
    return Text(tokenizer)


# --- Writing -----------------------------------------------------------------------------------


@dataclass
class Writing:
    """One text as it is written.

    Attributes:
        ids: the prompt and what was written after it.
        prompt_length: tokens of the prompt.
        room: tokens that may still be written.
        rounds: how often the model filled its window, beginning anew with the end of the text.
        ended: why it ends: "stop" after the token that ends a piece, "length" where no more was
            asked for; "" as long as it goes on.
    """

    ids: list[int]
    prompt_length: int
    room: int
    rounds: int = 0
    ended: str = ""

    def take(self, new: list[int], stopped: bool) -> None:
        """Add what came of one round; what there is no room for is left out."""
        stopped = stopped and len(new) <= self.room
        self.ids += new[: self.room]
        self.room -= min(self.room, len(new))
        self.rounds += 1
        self.ended = "stop" if stopped else "" if self.room else "length"


def write_on(
    model: TransformerLM,
    world: World,
    prompts: Sequence[list[int]],
    room: int,
    seed: int = 0,
    on_token: Callable[[int, int], None] | None = None,
    **options: Any,
) -> list[Writing]:
    """Write after each prompt, as far as asked for, the model's window notwithstanding.

    `slp_transformer.generation.generate` ends where the window is full. Here the model then begins
    anew, with the last half window of the text as its prompt: it forgets what was before.

    Args:
        model: the model.
        world: what it writes.
        prompts: the tokens of each prompt.
        room: how many tokens to write at the most.
        seed: seed of the first text; each further one has the next, so that it is the same
            whatever is written beside it.
        on_token: called with a prompt's place and its new token.
        options: as `generate` takes them.
    """
    device = next(model.parameters()).device
    writings = [Writing(list(prompt), len(prompt), room) for prompt in prompts]
    draws = [torch.Generator(device).manual_seed(seed + i) for i in range(len(prompts))]
    half = max(1, model.config.context_length // 2)

    def one_round(rows: list[int]) -> None:
        tails = [writings[row].ids for row in rows]
        tails = [t if len(t) < model.config.context_length else t[-half:] for t in tails]
        before = writings[rows[0]].ids[: -len(tails[0])]  # the grammar looks at all that there is
        allowed = world.allowed and (lambda ids: world.allowed(before + ids))
        longest = max(writings[row].room for row in rows)

        def tell(place: int, token: int) -> None:
            on_token(rows[place], token)

        written = generate(
            model,
            tails,
            longest,
            stop=() if world.stop is None else world.stop,
            allowed=allowed,
            generator=[draws[row] for row in rows],
            on_token=None if on_token is None else tell,
            **options,
        )
        for row, each in zip(rows, written, strict=True):
            writings[row].take(each.new, each.ended == "stop")

    while rows := [row for row, writing in enumerate(writings) if not writing.ended]:
        first = writings[rows[0]].rounds == 0
        together = world.allowed is None or (first and all(fits(p, model) for p in prompts))
        for batch in [rows] if together else [[row] for row in rows]:
            one_round(batch)
    return writings


def fits(prompt: list[int], model: TransformerLM) -> bool:
    """Whether a prompt leaves room in the model's window."""
    return len(prompt) < model.config.context_length
