"""What a Transformer of the reader's own functions writes: sentences, or a text of theirs.

Each word is drawn by the reader's `draw`, from the logits of the reader's model.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import torch
from torch import Tensor

from slp_transformer.check.own.own_model import (
    SENTENCES,
    OwnModel,
    Parts,
    fit,
    load_words_and_ids,
    make_random_model,
)

NUM_SENTENCES, NUM_SHOWN = 40, 3
WINDOW, BATCH_SIZE, TEXT_STEPS = 32, 8, 400
MIN_CHARACTERS, MAX_CHARACTERS = 2 * WINDOW, 1_000_000  # of a text of the reader's own
WRITTEN = 200  # characters
Lesson = Callable[[Parts, Callable[[str], None], bool], None]
"""What a model learns after the sentences: called with parts, a printer, and whose loss it is."""


def append_drawn_id(
    own: OwnModel, ids: Tensor, luck: torch.Generator, allowed: Collection[int] | None = None
) -> Tensor:
    """Return ids [N] with one more, chosen by the reader's `draw`, of those allowed if given."""
    window = own.model.config.context_length
    with torch.no_grad():
        u = own(ids[-window:])[-1]
    if allowed is not None:
        ruled_out = torch.ones_like(u, dtype=torch.bool)
        ruled_out[list(allowed)] = False
        u = u.masked_fill(ruled_out, -torch.inf)
    y = own.parts.choices(u)
    dart = torch.rand((), generator=luck).item()
    chosen = min(int(own.parts.draw(y, dart)), len(y) - 1)  # `draw` may return |V| for rounding
    return torch.cat([ids, torch.tensor([chosen])])


def write_sentences(own: OwnModel, count: int = NUM_SENTENCES) -> list[str]:
    """Return sentences that a model of the eight sentences writes, from "the" on."""
    words, known = load_words_and_ids()
    luck, written = torch.Generator().manual_seed(0), []
    for _ in range(count):
        ids = torch.tensor([words.index("the")])
        while len(ids) < known.shape[1]:
            ids = append_drawn_id(own, ids, luck)
        written.append(" ".join(words[i] for i in ids.tolist()))
    return written


def count_known(written: Sequence[str]) -> int:
    """Return how many texts are of the eight sentences."""
    return sum(text.split() in SENTENCES for text in written)


def describe_sentences(own: OwnModel) -> list[str]:
    """Return the lines that show what the model writes, and how many are of the eight."""
    written = write_sentences(own)
    return [
        f"It writes {NUM_SENTENCES} sentences, of which {count_known(written)} are of the eight. "
        "The first ones:",
        *(f"  {text}" for text in written[:NUM_SHOWN]),
    ]


def read_text(path: Path) -> str:
    """Return a text of the reader's own.

    Raises:
        ValueError: if it is too short, too long, not UTF-8, or cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    if not MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS:
        raise ValueError(
            f"{path} should have {MIN_CHARACTERS} to {MAX_CHARACTERS:,} characters: a model of "
            "this size learns from a few pages."
        )
    return text


def train_on_ids(
    own: OwnModel,
    ids: Tensor,
    steps: int,
    say: Callable[[str], None],
    unit: str,
    own_loss: bool = False,
) -> None:
    """Train a model of the reader's functions on random windows of a text.

    Args:
        own: the model, whose context is the window.
        ids: the text [T], at least a window long.
        steps: how many there are, of 8 windows each.
        say: prints a line.
        unit: what an id stands for: "character".
        own_loss: whether the loss is the reader's `next_token_loss`.

    Raises:
        ValueError: if no gradient reaches a weight.
    """
    luck, window = torch.Generator().manual_seed(0), own.model.config.context_length

    def batch_at(step: int) -> Tensor:
        starts = torch.randint(len(ids) - window + 1, (BATCH_SIZE,), generator=luck).tolist()
        return torch.stack([ids[start : start + window] for start in starts])

    fit(own, batch_at, steps, say, unit, own_loss)


def train_on_text(
    parts: Parts, text: str, say: Callable[[str], None], own_loss: bool = False
) -> tuple[OwnModel, list[str]]:
    """Train a model of the reader's functions on a text, character by character.

    Args:
        parts: the functions; all of `NEEDED` are right.
        text: at least a window and a character long.
        say: prints a line.
        own_loss: whether the loss is the reader's `next_token_loss`.

    Returns:
        The model, and its characters in the order of their ids.

    Raises:
        ValueError: if no gradient reaches a weight.
    """
    letters = sorted(set(text))
    numbers = {letter: number for number, letter in enumerate(letters)}
    ids = torch.tensor([numbers[letter] for letter in text])
    own = make_random_model(parts, len(letters), WINDOW)
    train_on_ids(own, ids, TEXT_STEPS, say, "character", own_loss)
    return own, letters


def write_text(own: OwnModel, letters: list[str], begin: str) -> str:
    """Return a text that the model writes, after its beginning."""
    ids = torch.tensor([letters.index(letter) for letter in begin])
    luck = torch.Generator().manual_seed(0)
    for _ in range(WRITTEN):
        ids = append_drawn_id(own, ids, luck)
    return "".join(letters[i] for i in ids.tolist())


def begin_text_lesson(path: Path) -> Lesson:
    """Return what lets a reader's model learn a text of theirs, and go on with it.

    Raises:
        ValueError: as `read_text`.
    """
    text = read_text(path)

    def learn(parts: Parts, say: Callable[[str], None], own_loss: bool) -> None:
        counts = torch.tensor([text.count(letter) for letter in sorted(set(text))])
        entropy = torch.distributions.Categorical(probs=counts.float()).entropy()
        say(f"Now it learns your text, {len(text):,} characters. Who knows only how often each of")
        say(f"them occurs has a loss of {entropy:.3f} nats a character.")
        own, letters = train_on_text(parts, text, say, own_loss)
        say(f"And goes on after the first {WINDOW} characters of your text:\n")
        say(write_text(own, letters, text[:WINDOW]))

    return learn
