"""A conversation with a published model at a terminal: `generate --chat` without a prompt."""

import signal
from collections.abc import Iterator
from typing import Any

from slp_transformer._internal.signals import SignalHandler, StoppedBySignal
from slp_transformer.cli.console import print_result, print_status, print_text
from slp_transformer.data.text_files import iter_stdin_lines
from slp_transformer.tasks.base import LoadedRun
from slp_transformer.tasks.generation_session import GenerationSession, continue_prompts


def converse(
    run: LoadedRun, session: GenerationSession, max_new_tokens: int, seed: int, **options: Any
) -> None:
    """Answer each line that a user types, with all that was said before, until Ctrl-D.

    Ctrl-C ends an answer, which stays as far as it came; while nothing is answered, the program.

    Args:
        run: the model.
        session: what its tokens mean.
        max_new_tokens: maximum number of tokens of an answer.
        seed: seed of the first answer; each further one has the next.
        **options: as `continue_prompts` takes them.

    Raises:
        ValueError: if the model has no chat template, or it refuses the conversation.
    """
    session.begin_chats([])  # refuses before anything is typed
    print_status("A message in each line; Ctrl-C ends an answer, Ctrl-D the conversation.")
    window, chat = run.model.config.context_length, list[dict[str, str]]()
    for n, message in enumerate(iter_messages()):
        chat.append({"role": "user", "content": message})
        prompt, forgotten = session.begin_chats([chat])[0], 0
        while len(chat) > 1 and len(prompt) + min(max_new_tokens, window // 2) > window:
            del chat[:2]
            prompt, forgotten = session.begin_chats([chat])[0], forgotten + 2
        if forgotten:
            print_status(
                f"The conversation no longer fits the model's window of {window} tokens: messages "
                f"and answers at its beginning ({forgotten}) are forgotten."
            )
        if len(prompt) >= window:
            print_status(
                f"This message has {len(prompt)} tokens, which do not fit the model's window of "
                f"{window} with an answer: write a shorter one."
            )
            del chat[-1]
            continue
        room = min(max_new_tokens, window - len(prompt))
        chat.append({"role": "assistant", "content": ""})

        def show(_: int, piece: str) -> None:
            chat[-1]["content"] += piece
            print_text(piece, end="")

        with SignalHandler(defer=False) as handler:
            try:
                continue_prompts(
                    run.model, session, [prompt], room, seed + n, show, answers=True, **options
                )
            except StoppedBySignal as stopped:
                if stopped.signal_number != signal.SIGINT:
                    raise
                handler.signal_number = None  # it has ended the answer alone
            finally:
                print_result("")


def iter_messages() -> Iterator[str]:
    """Yield the lines of the terminal that say something, after a sign that it is the user's turn.

    Raises:
        ValueError: if one is not UTF-8, or too long.
    """
    print_status("> ", end="")
    for line in iter_stdin_lines():
        if line.strip():
            yield line
        print_status("> ", end="")
    print_status("")
