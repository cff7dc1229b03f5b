"""Continuing prompts beyond the window of a model, whatever the task. No PyTorch on import."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slp_transformer.language_model import TransformerLM
    from slp_transformer.sampling import AllowedTokens


class GenerationSession(ABC):
    """What `generate` has to know of a task.

    Attributes:
        stop: the token that ends a text, or several; None if there is none.
        allowed: returns the tokens that may come next; None if any may.
    """

    stop: int | Collection[int] | None = None
    allowed: "AllowedTokens | None" = None

    @abstractmethod
    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt, or of the beginning of a new text.

        Raises:
            ValueError: if the prompt cannot be continued.
        """

    @abstractmethod
    def render(self, ids: list[int]) -> str:
        """Return tokens as text."""

    def reopen(self, ids: list[int]) -> list[int] | None:
        """Return a text that has stopped as it is to go on; None if it may end there."""
        return None

    def remarks(self, texts: "Sequence[GeneratedText]") -> list[str]:
        """Return sentences on how far the texts are what was asked for."""
        return []

    def stream(self) -> Any:
        """Return what turns one token after the other into text; None if only all at once."""
        return None

    def writes(self, path: Path) -> bool:
        """Return whether the texts have a file format of their own for a path's suffix."""
        return False

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Write one text to a file in that format, and return remarks on it.

        Raises:
            NotImplementedError: if the task has no such format.
        """
        raise NotImplementedError


@dataclass
class GeneratedText:
    """One text as it is generated.

    Attributes:
        ids: the prompt and its continuation.
        prompt_length: tokens of the prompt.
        remaining: tokens that may still be generated.
        reopened: whether the session had it go on after it stopped.
        windows: how often the model began with the end of the text as its prompt.
        finish_reason: "stop" after the token that ends a text, "length" at the maximum number of
            tokens; "" until then.
    """

    ids: list[int]
    prompt_length: int
    remaining: int
    windows: int = 0
    reopened: bool = False
    finish_reason: str = ""


def continue_prompts(
    model: "TransformerLM",
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
    import torch

    from slp_transformer.generation.decoding import generate

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
            text, new = texts[row], each.new_ids[: texts[row].remaining]
            stopped = each.finish_reason == "stop" and new == each.new_ids
            text.ids += new
            text.remaining -= len(new)
            text.windows += 1
            longer = session.reopen(text.ids) if stopped and text.remaining else None
            if longer is not None:
                text.ids, text.reopened, stopped = longer, True, False
            text.finish_reason = "stop" if stopped else "" if text.remaining else "length"

    while rows := [row for row, text in enumerate(texts) if not text.finish_reason]:
        first = texts[rows[0]].windows == 0
        fit = all(len(prompt) < window for prompt in prompts)
        for batch in [rows] if session.allowed is None or (first and fit) else [[r] for r in rows]:
            generate_window(batch)
    return texts


def window_note(model: "TransformerLM", texts: Sequence[GeneratedText]) -> str:
    """Return a sentence on texts that filled the model's window; an empty one if none did."""
    window = model.config.context_length
    if all(text.windows < 2 + text.reopened and text.prompt_length < window for text in texts):
        return ""
    return (
        f"The model's window of {window} tokens was full: it continued from the last half window, "
        "without what came before."
    )


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
