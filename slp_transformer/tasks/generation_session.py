"""Continuing prompts beyond the window of a model, whatever the task. No PyTorch on import."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slp_transformer._internal.docs_sections import see
from slp_transformer.generation.stop_text import StopText

if TYPE_CHECKING:
    from slp_transformer.language_model import TransformerLM
    from slp_transformer.sampling import AllowedTokens

BATCH_SIZE = 32  # texts that are written at once


class GenerationSession(ABC):
    """What `generate` has to know of a task.

    Attributes:
        stop: the token that ends a text, or several; None if there is none.
        allowed: returns the tokens that may come next; None if any may.
        kept_tokens: how many tokens a text that may have over twice as many keeps back, for its
            ending, where it has not stopped before.
    """

    stop: int | Collection[int] | None = None
    kept_tokens: int = 0
    allowed: "AllowedTokens | None" = None

    @abstractmethod
    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt, or of the beginning of a new text.

        Raises:
            ValueError: if the prompt cannot be continued.
        """

    def begin_chats(self, chats: "Sequence[Chat]") -> list[list[int]]:
        """Return the tokens of conversations, up to where the model is to answer.

        Raises:
            ValueError: if the model was not trained to answer, or a conversation cannot be told.
        """
        raise ValueError(
            f"--chat has no effect here: the model has no chat template.{see('chats')}"
        )

    @abstractmethod
    def render(self, ids: list[int]) -> str:
        """Return tokens as text."""

    def reopen(self, ids: list[int]) -> list[int] | None:
        """Return a text that has stopped or breaks off as it is to go on; None if it may end so."""
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


Chat = Sequence[Mapping[str, Any]]
"""A conversation: messages, each with a "role" and a "content"."""


class TextWatch:
    """One text as people read it while its tokens come.

    Attributes:
        decoder: turns one token after the other into text.
        stop: watches for strings that end the text.
        prompt: the text of the prompt's tokens.
    """

    def __init__(self, decoder: Any, prompt: Sequence[int], stop: Sequence[str]):
        """Begin with a prompt, in which nothing is looked for."""
        self.decoder: Any = decoder
        self.stop: StopText = StopText(stop)
        self.prompt: str = decoder.decode_prompt(prompt)

    def feed(self, token: int) -> str:
        """Add a token, and return the text that is now sure to stay."""
        return self.stop.feed(self.decoder.decode_next(token))

    def finish(self) -> str:
        """End the text, and return what was held back."""
        return self.stop.feed(self.decoder.flush()) + self.stop.finish()


@dataclass
class GeneratedText:
    """One text as it is generated.

    Attributes:
        ids: the prompt and its continuation.
        prompt_length: tokens of the prompt.
        remaining: tokens that may still be generated.
        reopened: whether the session had it go on to another ending.
        windows: how often the model began with the end of the text as its prompt.
        finish_reason: "stop" after a token or before a string that ends a text, "length" at the
            maximum number of tokens; "" until then.
        watch: the text as it is written, where somebody reads it or strings can end it.
        answers: whether it is an answer, which is shown without its prompt.
    """

    ids: list[int]
    prompt_length: int
    remaining: int
    windows: int = 0
    reopened: bool = False
    finish_reason: str = ""
    watch: TextWatch | None = None
    answers: bool = False

    def render(self, session: GenerationSession) -> str:
        """Return the text, up to a string that ended it."""
        if self.watch is None or self.watch.stop.found is None:
            return session.render(self.ids[self.prompt_length if self.answers else 0 :])
        return ("" if self.answers else self.watch.prompt) + self.watch.stop.text


def continue_prompts(
    model: "TransformerLM",
    session: GenerationSession,
    prompts: Sequence[list[int]],
    max_new_tokens: int,
    seed: int = 0,
    on_text: Callable[[int, str], None] | None = None,
    stop_texts: Sequence[str] = (),
    answers: bool = False,
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
        on_text: called with a prompt's index and its new text, of a session that has a `stream`;
            first with the prompt itself, unless there are only answers.
        stop_texts: strings before which a text ends, of a session that has a `stream`.
        answers: whether the texts are answers, to be shown without their prompts.
        **options: as `generate` takes them.

    Raises:
        ValueError: if strings are to end a text that comes only as a whole.
    """
    import torch

    from slp_transformer.generation.decoding import generate

    device = next(model.parameters()).device
    window = model.config.context_length
    kept = session.kept_tokens if max_new_tokens > 2 * session.kept_tokens else 0
    texts = [
        GeneratedText(list(prompt), len(prompt), max_new_tokens - kept, answers=answers)
        for prompt in prompts
    ]
    if stop_texts or on_text is not None:
        for row, text in enumerate(texts):
            if (decoder := session.stream()) is None:
                raise ValueError("--stop has no effect here: the texts come only as a whole.")
            text.watch = TextWatch(decoder, text.ids, stop_texts)
            if on_text is not None and not answers:
                on_text(row, text.watch.prompt)
    generators = [torch.Generator(device).manual_seed(seed + i) for i in range(len(prompts))]

    def read_token(row: int, token: int, new_tokens: int) -> bool:
        watch = texts[row].watch
        if watch is None or new_tokens > texts[row].remaining:  # others of the batch go on
            return False
        shown = watch.feed(token)
        if on_text is not None:
            on_text(row, shown)
        return watch.stop.found is not None

    def generate_window(rows: list[int]) -> None:
        counts = [0] * len(rows)

        def on_token(i: int, token: int) -> bool:
            counts[i] += 1
            return read_token(rows[i], token, counts[i])

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
            on_token=on_token if texts[rows[0]].watch else None,
            **options,
        )
        for row, each in zip(rows, generated, strict=True):
            text, new = texts[row], each.new_ids[: texts[row].remaining]
            stopped = each.finish_reason == "stop" and new == each.new_ids
            text.ids += new
            text.remaining -= len(new)
            text.windows += 1
            may_end = not text.reopened and (stopped or not text.remaining)
            longer = session.reopen(text.ids) if may_end and text.remaining + kept else None
            if longer is not None:
                text.remaining += kept - max(0, len(longer) - len(text.ids))
                text.ids, text.reopened, stopped = longer, True, False
            text.finish_reason = "stop" if stopped else "" if text.remaining else "length"

    while rows := [row for row, text in enumerate(texts) if not text.finish_reason]:
        first = texts[rows[0]].windows == 0
        fit = all(len(prompt) < window for prompt in prompts)
        for batch in [rows] if session.allowed is None or (first and fit) else [[r] for r in rows]:
            generate_window(batch)
    for row, text in enumerate(texts):
        if text.watch is not None and (rest := text.watch.finish()) and on_text is not None:
            on_text(row, rest)
    return texts


def describe_filled_window(model: "TransformerLM", texts: Sequence[GeneratedText]) -> str:
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
            "text": text.render(session),
            "tokens": len(text.ids) - text.prompt_length,
            "finish_reason": text.finish_reason,
            "seed": seed + i,
        }
        for i, text in enumerate(texts)
    ]


def format_samples(session: GenerationSession, texts: Sequence[GeneratedText]) -> str:
    """Return texts one below the other, numbered if there are several."""
    rendered = [text.render(session) for text in texts]
    if len(rendered) > 1:
        rendered = [f"=== {n} of {len(rendered)} ===\n{t}" for n, t in enumerate(rendered, start=1)]
    return "\n".join(text.rstrip("\n") + "\n" for text in rendered)
