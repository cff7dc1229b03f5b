"""Continuing prompts beyond the window of a model, whatever the task."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from slp_transformer.data import TextTokenizer
from slp_transformer.generation.decoding import generate
from slp_transformer.language_model import TransformerLM
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer
from slp_transformer.sampling import AllowedTokens


@runtime_checkable
class GenerationSession(Protocol):
    """The task's side of `generate`.

    Attributes:
        stop: the token that ends a text, or several; None if there is none.
        allowed: returns the tokens that may come next; None if any may.
    """

    stop: int | Collection[int] | None
    allowed: AllowedTokens | None

    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt, or of the beginning of a new text.

        Raises:
            ValueError: if the prompt cannot be continued.
        """
        ...

    def render(self, ids: list[int]) -> str:
        """Return tokens as text."""
        ...

    def stream(self) -> Any:
        """Return what turns one token after the other into text; None if only all at once."""
        ...

    def writes(self, path: Path) -> bool:
        """Return whether the texts have a file format of their own for a path's suffix."""
        ...

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Write one text to a file in that format, and return remarks on it."""
        ...


class TextSession:
    """Text: any token may follow any other."""

    tokenizer: Any  # a TextTokenizer, or a PretrainedTokenizer
    stop: int | Collection[int] | None
    allowed: AllowedTokens | None = None

    def __init__(self, tokenizer: TextTokenizer):
        """Generate a tokenizer's tokens."""
        self.tokenizer, self.stop = tokenizer, tokenizer.end_id

    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt; without one, of what precedes a new text or line.

        Raises:
            ValueError: if it is empty, or has a character that is not in the vocabulary.
        """
        if prompt is None:
            first = self.tokenizer.ids.get("\n", 0)
            end = self.tokenizer.end_id
            return [first if end is None else end]
        if not prompt:
            raise ValueError("The prompt is empty: give at least one character.")
        return self.tokenizer.encode(prompt)

    def render(self, ids: list[int]) -> str:
        """Return tokens as text."""
        return self.tokenizer.decode(ids)

    def stream(self) -> Any:
        """Return what turns one token after the other into text."""
        return self.tokenizer.stream_decoder()

    def writes(self, path: Path) -> bool:
        """Return False: text is written as it is, whatever the suffix."""
        return False

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Do nothing: see `writes`."""
        return []


class PublishedSession(TextSession):
    """Text in the tokens of a published model."""

    def __init__(self, tokenizer: PretrainedTokenizer):
        """Generate its tokens, and stop at any of those that end a text."""
        self.tokenizer, self.stop = tokenizer, tokenizer.end_ids

    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt; without one, of what precedes a text.

        Raises:
            ValueError: if it is empty, or there is none and the model has no token to begin with.
        """
        if prompt is None:
            begins = [self.tokenizer.begin_id, self.tokenizer.end_id]
            first = next((i for i in begins if i is not None), None)
            if first is None:
                raise ValueError("This model has no token to begin a text with: give a --prompt.")
            return [first]
        if not (ids := self.tokenizer.encode(prompt, whole=True)):
            raise ValueError("The prompt is empty: give at least one character.")
        return ids


# --- Generating ----------------------------------------------------------------------------------


@dataclass
class GeneratedText:
    """One text as it is generated.

    Attributes:
        ids: the prompt and its continuation.
        prompt_length: tokens of the prompt.
        remaining: tokens that may still be generated.
        windows: how often the model began with the end of the text as its prompt.
        finish_reason: "stop" after the token that ends a text, "length" at the maximum number of
            tokens; "" until then.
    """

    ids: list[int]
    prompt_length: int
    remaining: int
    windows: int = 0
    finish_reason: str = ""

    def append(self, new: list[int], stopped: bool) -> None:
        """Add new tokens, up to the maximum."""
        stopped = stopped and len(new) <= self.remaining
        self.ids += new[: self.remaining]
        self.remaining -= min(self.remaining, len(new))
        self.windows += 1
        self.finish_reason = "stop" if stopped else "" if self.remaining else "length"


def continue_prompts(
    model: TransformerLM,
    session: GenerationSession,
    prompts: Sequence[list[int]],
    max_new_tokens: int,
    seed: int = 0,
    on_token: Callable[[int, int], None] | None = None,
    **options: Any,
) -> list[GeneratedText]:
    """Continue each prompt, beyond the model's window if need be.

    `slp_transformer.generation.generate` ends where the window is full. Here the model then begins
    anew with the last half window of the text as its prompt, without what came before.

    Args:
        model: the model.
        session: what its tokens mean.
        prompts: the tokens of each prompt.
        max_new_tokens: maximum number of new tokens of each text.
        seed: seed of the first text; each further one has the next, so that a text does not depend
            on the number of texts.
        on_token: called with a prompt's index and its new token.
        **options: as `generate` takes them.
    """
    device = next(model.parameters()).device
    window = model.config.context_length
    texts = [GeneratedText(list(prompt), len(prompt), max_new_tokens) for prompt in prompts]
    generators = [torch.Generator(device).manual_seed(seed + i) for i in range(len(prompts))]

    def generate_window(rows: list[int]) -> None:
        tails = [texts[row].ids for row in rows]
        tails = [tail if len(tail) < window else tail[-max(1, window // 2) :] for tail in tails]
        previous = texts[rows[0]].ids[: -len(tails[0])]  # the grammar sees the whole text
        rule = session.allowed
        allowed = None if rule is None else lambda ids: rule(previous + ids)
        generated = generate(
            model,
            tails,
            max(texts[row].remaining for row in rows),
            stop=() if session.stop is None else session.stop,
            allowed=allowed,
            generator=[generators[row] for row in rows],
            on_token=on_token and (lambda i, token: on_token(rows[i], token)),
            **options,
        )
        for row, each in zip(rows, generated, strict=True):
            texts[row].append(each.new_ids, each.finish_reason == "stop")

    while rows := [row for row, text in enumerate(texts) if not text.finish_reason]:
        first = texts[rows[0]].windows == 0
        fit = all(len(prompt) < window for prompt in prompts)
        for batch in [rows] if session.allowed is None or (first and fit) else [[r] for r in rows]:
            generate_window(batch)
    return texts


# --- Showing what was generated ------------------------------------------------------------------


def samples_to_json(
    session: GenerationSession, texts: Sequence[GeneratedText], seed: int
) -> list[dict[str, Any]]:
    """Return texts and what is known of each; `seed` is that of the first."""
    return [
        {
            "text": session.render(text.ids),
            "tokens": len(text.ids) - text.prompt_length,
            "finish_reason": text.finish_reason,
            "seed": seed + i,
        }
        for i, text in enumerate(texts)
    ]


def format_samples(session: GenerationSession, texts: Sequence[GeneratedText]) -> str:
    """Return texts one below the other, numbered if there are several."""
    rendered = [session.render(text.ids) for text in texts]
    if len(rendered) > 1:
        rendered = [f"=== {n} of {len(rendered)} ===\n{t}" for n, t in enumerate(rendered, start=1)]
    return "\n".join(text.rstrip("\n") + "\n" for text in rendered)
