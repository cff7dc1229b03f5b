"""The prompts of `generate`: from flags, files, and files with a prompt in each line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slp_transformer.data.text_files import (
    STANDARD_INPUT,
    is_json_lines,
    iter_file_text,
    iter_json_lines,
    iter_stdin_text,
)
from slp_transformer.tasks.generation_session import Chat, GenerationSession


@dataclass(frozen=True)
class Prompt:
    """One prompt.

    Attributes:
        text: what to continue; None for a new text, or where there is a chat.
        place: where it is from, for messages.
        chat: a conversation to answer.
        record: its line of a file of JSON lines.
    """

    text: str | None
    place: str = ""
    chat: Chat | None = None
    record: Mapping[str, Any] | None = None


def read_text(name: str) -> str:
    """Read a file or standard input, without the line break at its end.

    Raises:
        ValueError: if it cannot be read, or is not UTF-8.
    """
    if name == STANDARD_INPUT:
        return "".join(iter_stdin_text()).removesuffix("\n")
    return "".join(iter_file_text(Path(name))).removesuffix("\n")


def read_prompts_file(name: str) -> Iterator[Prompt]:
    """Yield the prompts of a file with one in each line: text, or objects of JSON.

    Raises:
        ValueError: naming the line that holds none.
    """
    if is_json_lines(Path(name)):
        for number, record in iter_json_lines(Path(name)):
            yield parse_prompt(record, f"{name}, line {number}: ")
        return
    text = read_text(name)
    for number, line in enumerate(text.split("\n") if text else [], 1):
        place = f"{name}, line {number}: "
        if not line.strip():
            raise ValueError(f"{place}there is no prompt.")
        yield Prompt(line, place)


def parse_prompt(record: Mapping[str, Any], place: str) -> Prompt:
    """Return the prompt of an object of JSON.

    Raises:
        ValueError: if there is none.
    """
    text, chat = record.get("prompt"), record.get("messages")
    if chat is not None:
        if not isinstance(chat, list) or not all(map(is_message, chat)) or not chat:
            raise ValueError(
                f'{place}messages must be a list of objects such as {{"role": "user", "content": '
                '"Hello"}.'
            )
        return Prompt(None, place, chat, record)
    if not isinstance(text, str):
        raise ValueError(f'{place}there is no string "prompt", nor a list of "messages".')
    return Prompt(text, place, None, record)


def is_message(message: Any) -> bool:
    """Tell if something is a message of a conversation."""
    return isinstance(message, dict) and isinstance(message.get("role"), str)


def encode_prompts(
    session: GenerationSession, prompts: list[Prompt], as_chat: bool
) -> list[list[int]]:
    """Return the tokens of prompts.

    Args:
        session: what a model's tokens mean.
        prompts: the prompts.
        as_chat: whether they are what a user says, to be answered.

    Raises:
        ValueError: naming the prompt that cannot be continued.
    """
    if as_chat:
        chats: list[Chat] = []
        for prompt in prompts:
            if prompt.text is None and prompt.chat is None:
                raise ValueError("--chat answers a prompt: give --prompt or --prompts-file.")
            chats.append(prompt.chat or [{"role": "user", "content": prompt.text}])
        return session.begin_chats(chats)
    rows = []
    for prompt in prompts:
        if prompt.chat is not None:
            raise ValueError(f"{prompt.place}messages are answered with --chat.")
        try:
            rows.append(session.begin(prompt.text))
        except ValueError as error:
            raise ValueError(f"{prompt.place}{error}") from None
    return rows
