"""What a model writes, as it is asked for and as it is shown."""

from collections.abc import Sequence
from typing import Any

from slp_transformer.cli.console import note
from slp_transformer.cli.generation_session import Tablature, World, Writing
from slp_transformer.guitar import playable_share
from slp_transformer.language_model import TransformerLM


def listed(world: World, written: Sequence[Writing], seed: int) -> list[dict[str, Any]]:
    """Texts and what is known of each, for JSON; `seed` is that of the first."""
    return [
        {
            "text": world.show(writing.ids),
            "tokens": len(writing.ids) - writing.prompt_length,
            "ended": writing.ended,
            "seed": seed + place,
        }
        for place, writing in enumerate(written)
    ]


def numbered(world: World, written: Sequence[Writing]) -> str:
    """Texts one below the other, numbered if there are several."""
    texts = [world.show(writing.ids) for writing in written]
    if len(texts) > 1:
        texts = [f"=== {n} of {len(texts)} ===\n{text}" for n, text in enumerate(texts, start=1)]
    return "\n".join(text.rstrip("\n") + "\n" for text in texts)


def say_what_was_forgotten(model: TransformerLM, written: Sequence[Writing]) -> None:
    """Say that the window was too short for all of the text, if it was."""
    window = model.config.context_length
    rounds = max(writing.rounds for writing in written)
    long = any(writing.prompt_length >= window for writing in written)
    if rounds > 1 or long:
        note(
            f"The model's window of {window} tokens was full: it went on with the last half of it, "
            "forgetting what was before."
        )


def playability(world: Tablature, written: Sequence[Writing]) -> dict[str, Any]:
    """How much of some tablature one hand can play: of all events, and of the chords among them.

    A single note fits any hand, so chords are the test. Of no events there is no share.
    """
    tabs = [world.tokenizer.decode(writing.ids).tab for writing in written]
    events = [event for tab in tabs for event in tab.events()]
    chords = [event for event in events if len(event.notes) > 1]
    told: dict[str, Any] = {}
    for name, some in (("events", events), ("chords", chords)):
        told[name] = len(some)
        told[f"playable_{name}"] = playable_share(some) if some else None
    return told
