"""Continue prompts with a trained model."""

import sys
from pathlib import Path

from slp_transformer._internal.atomic_write import write_file
from slp_transformer.cli.console import print_result, print_status
from slp_transformer.cli.options import Generate
from slp_transformer.data.text_files import STANDARD_INPUT, decode_pieces, read_pieces
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.generation_session import (
    GeneratedText,
    GenerationSession,
    continue_prompts,
    format_samples,
    samples_to_json,
    window_note,
)
from slp_transformer.tasks.run_config import load_run

SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty")


def execute(options: Generate) -> None:
    """Generate, printing tokens as they come if there is one text, else all at the end.

    Raises:
        ValueError: if there is no such run, or the prompt or an option cannot be used.
    """
    prompts: list[str | None] = list(options.prompt)
    if options.prompt_file is not None:
        prompts.append(read_prompt(options.prompt_file))
    run = load_run(options.run, options.checkpoint, options.device)
    session = run.task.session(run, options)
    output = options.output
    rows = [session.begin(p) for p in prompts or [None] for _ in range(options.num_samples)]
    stream = session.stream() if len(rows) == 1 and not (options.json or output) else None
    if stream is not None:
        print_result("".join(map(stream.decode_next, rows[0])), end="")
    try:
        texts = continue_prompts(
            run.model,
            session,
            rows,
            options.max_new_tokens,
            options.seed,
            on_token=stream and (lambda _, token: print_result(stream.decode_next(token), end="")),
            **{name: getattr(options, name) for name in SAMPLING},
        )
    finally:
        if stream is not None:
            print_result(stream.flush())  # so that a reason to stop begins a line of its own
    content = format_samples(session, texts)
    if options.json:
        content = to_json(samples_to_json(session, texts, options.seed)) + "\n"
    if output is None and stream is None:
        print_result(content, end="")
    elif output is not None and session.writes(output) and not options.json:
        write_files(output, session, texts)
    elif output is not None:
        write_file(output, content)
        print_status(f"Written to {output}.")
    for remark in (window_note(run.model, texts), *session.remarks(texts)):
        if remark:
            print_status(remark)


def read_prompt(name: str) -> str:
    """Read a prompt from a file or standard input, without the line break at its end.

    Raises:
        ValueError: if it cannot be read, or is not UTF-8.
    """
    if name == STANDARD_INPUT:
        return "".join(decode_pieces(sys.stdin.buffer.read, "Standard input")).removesuffix("\n")
    return "".join(read_pieces(Path(name))).removesuffix("\n")


def write_files(path: Path, session: GenerationSession, texts: list[GeneratedText]) -> None:
    """Write each text to a file of its own; several are numbered."""
    for number, text in enumerate(texts, start=1):
        own = path if len(texts) == 1 else path.with_stem(f"{path.stem}-{number}")
        for remark in session.write(own, text.ids):
            print_status(remark)
        print_status(f"Written to {own}.")
