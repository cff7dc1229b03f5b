"""Continue prompts with a trained model."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.plugins import Libraries
from slp_transformer.cli.console import print_result, print_status
from slp_transformer.cli.parsing import parse_run_flags
from slp_transformer.cli.run_options import RunOptions, check_run
from slp_transformer.data.text_files import STANDARD_INPUT, decode_pieces, read_pieces
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.data_settings import UseAppendAction
from slp_transformer.tasks.generation_session import (
    GeneratedText,
    GenerationSession,
    continue_prompts,
    format_samples,
    samples_to_json,
    window_note,
)
from slp_transformer.tasks.sampling_options import SamplingOptions
from slp_transformer.tasks.saved_runs import find_task, load_run

FlagsT = TypeVar("FlagsT")


@dataclass(frozen=True)
class Generate(RunOptions, Generic[FlagsT]):
    """Continue prompts with a trained model.

    `slp-transformer generate RUN --help` shows the options of the run's own task, too.

    Examples:
      slp-transformer generate runs/mine --prompt "the "
      slp-transformer generate runs/mine --prompt-file beginning.txt --max-new-tokens 2000
      echo "the " | slp-transformer generate runs/mine --prompt-file -

    A model sees a window of its last tokens. Where a text is longer than that, the model continues
    from the last half window, without what came before.

    Attributes:
        prompt: the text to continue; may be given several times.
        prompt_file: a file to continue, or - for standard input.
        max_new_tokens: maximum number of new tokens.
        seed: random seed.
        num_samples: samples of each prompt.
        output: a file to write to.
        json: print a list of texts as JSON.
        adapter: the folder of a LoRA adapter, in the layout of the library peft, for this model.
        sampling: how the next token is drawn.
        flags: options of the run's task alone.
    """

    prompt: UseAppendAction[tuple[str, ...]] = ()
    prompt_file: str | None = None
    max_new_tokens: int = 500
    seed: int = 0
    num_samples: int = 1
    output: Path | None = None
    json: bool = False
    adapter: Path | None = None
    sampling: SamplingOptions = SamplingOptions()
    flags: FlagsT = field(kw_only=True)

    def check(self) -> None:
        """Refuse options that the task of the run has no use for, and a model without training.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        output = None if self.json else self.output
        find_task(self.run).check_generate(self.run, output, self.flags)
        check_run(self.run, self.checkpoint, trained=True)

    def libraries(self) -> Libraries:
        """Return what the task of the run takes for granted."""
        return find_task(self.run).libraries(self.output)


def parse_generate(args: Sequence[str]) -> Generate[Any]:
    """Parse the options of `generate`, of which some belong to the run's task."""
    return parse_run_flags(Generate, lambda task: task.GenerateFlags, "generate", args)


def execute(options: Generate[Any]) -> None:
    """Generate, printing tokens as they come if there is one text, else all at the end.

    Raises:
        ValueError: if there is no such run, or the prompt or an option cannot be used.
    """
    prompts: list[str | None] = list(options.prompt)
    if options.prompt_file is not None:
        prompts.append(read_prompt(options.prompt_file))
    run = load_run(options.run, options.checkpoint, options.device, options.adapter)
    session = run.task.session(run, options.flags)
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
            **options.sampling.to_dict(),
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
