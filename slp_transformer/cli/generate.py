"""Continue prompts with a trained model."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.config_checks import NUM_WRITTEN, SEED
from slp_transformer._internal.plugins import Libraries
from slp_transformer._internal.settings import setting, settings
from slp_transformer.cli.console import open_lines, print_result, print_status, print_text
from slp_transformer.cli.conversation import converse
from slp_transformer.cli.prompts import Prompt, encode_prompts, read_prompts_file, read_text
from slp_transformer.cli.run_flags import parse_run_flags
from slp_transformer.cli.run_options import RunOptions, check_trained
from slp_transformer.data.text_files import is_json_lines
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.data_settings import UseAppendAction
from slp_transformer.tasks.generation_session import (
    BATCH_SIZE,
    GeneratedText,
    GenerationSession,
    continue_prompts,
    describe_filled_window,
    format_samples,
    samples_to_json,
)
from slp_transformer.tasks.sampling_options import SamplingOptions
from slp_transformer.tasks.saved_runs import load_run

FlagsT = TypeVar("FlagsT")


@settings
@dataclass(frozen=True)
class GenerateOptions(RunOptions, Generic[FlagsT]):
    """Continue prompts with a trained model.

    `slp-transformer generate RUN --help` shows the options of the run's own task, too.

    Examples:
      slp-transformer generate runs/mine --prompt "the "
      slp-transformer generate runs/mine --prompt-file beginning.txt --max-new-tokens 2000
      echo "the " | slp-transformer generate runs/mine --prompt-file -
      slp-transformer generate models/instruct --chat          a conversation, ended by Ctrl-D

    A model sees a window of its last tokens. Where a text is longer than that, the model continues
    from the last half window, without what came before.

    Attributes:
        prompt: the text to continue; may be given several times.
        prompt_file: a file to continue, or - for standard input.
        prompts_file: a file with a prompt in each line, or - for standard input; of a .jsonl file
            each line is an object with a "prompt", and is answered by one with a "text" as well.
        chat: answer the prompts as what a user says, with the chat template of a published model;
            at a terminal without any, what is typed there.
        stop: a string before which texts end; may be given several times.
        max_new_tokens: maximum number of new tokens.
        seed: random seed.
        num_samples: samples of each prompt.
        output: a file to write to.
        json: print a list of texts as JSON.
        adapter: the folder of a LoRA adapter, in the layout of the library peft, for this model.
        sampling: how the next token is drawn.
        flags: options of the run's task alone.
    """

    prompt: UseAppendAction[tuple[str, ...]] = setting((), example=("the fox",))
    prompt_file: str | None = setting(None, no_example="a file")
    prompts_file: str | None = setting(None, no_example="a file")
    chat: bool = setting(False, no_example="a published model alone has a template")
    stop: UseAppendAction[tuple[str, ...]] = setting((), example=("e",))
    max_new_tokens: int = setting(500, NUM_WRITTEN, example=7)
    seed: int = setting(0, SEED, example=1)
    num_samples: int = setting(1, NUM_WRITTEN, example=2)
    output: Path | None = setting(None, no_example="a file")
    json: bool = setting(False, no_example="the same texts, written otherwise")
    adapter: Path | None = setting(None, no_example="a folder")
    sampling: SamplingOptions = setting(SamplingOptions(), no_example="`SAMPLING` has its examples")
    flags: FlagsT = setting(MISSING, no_example="each task has its own", kw_only=True)

    def check(self) -> None:
        """Refuse options that the task of the run has no use for, and a model without training.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        if not all(self.stop):
            raise ValueError("--stop needs a string of at least a character.")
        output = None if self.json or self.answers_in_json_lines() else self.output
        self.opened.task.check_generate(self.opened, output, self.flags)
        check_trained(self.opened)

    def answers_in_json_lines(self) -> bool:
        """Return whether lines of JSON are answered by lines of JSON."""
        return is_json_lines(Path(self.prompts_file or ""))

    def is_conversation(self) -> bool:
        """Return whether what a user types at a terminal is to be answered, and nothing else."""
        given = self.prompt or self.json or self.output or self.num_samples > 1
        files = self.prompt_file, self.prompts_file
        return self.chat and not given and files == (None, None) and sys.stdin.isatty()

    def libraries(self) -> Libraries:
        """Return what the task of the run takes for granted."""
        return self.opened.task.libraries(self.output)


def parse_generate(args: Sequence[str]) -> GenerateOptions[Any]:
    """Parse the options of `generate`, of which some belong to the run's task."""
    return parse_run_flags(GenerateOptions, lambda task: task.GenerateFlags, "generate", args)


def execute(options: GenerateOptions[Any]) -> None:
    """Generate, printing text as it comes if there is one, else all at the end.

    Raises:
        ValueError: if there is no such run, or the prompt or an option cannot be used.
    """
    prompts = read_prompts(options)
    lines = options.answers_in_json_lines()
    if lines and options.json:
        raise ValueError("--json has no effect here: lines of JSON are answered in lines of JSON.")
    run = load_run(options.opened, options.device, options.adapter)
    session = run.task.session(run, options.flags)
    how = {"stop_texts": options.stop, **options.sampling.to_dict()}
    if options.is_conversation():
        converse(run, session, options.max_new_tokens, options.seed, **how)
        return
    rows = encode_prompts(session, prompts, options.chat)
    prompts = [prompt for prompt in prompts for _ in range(options.num_samples)]
    rows = [row for row in rows for _ in range(options.num_samples)]
    output = options.output
    streamed = len(rows) == 1 and not (options.json or output or lines or session.stream() is None)

    def generate(first: int, on_text: Callable[[int, str], None] | None) -> list[GeneratedText]:
        return continue_prompts(
            run.model,
            session,
            rows[first : first + BATCH_SIZE],
            options.max_new_tokens,
            options.seed + first,
            on_text=on_text,
            answers=options.chat,
            **how,
        )

    def print_piece(_: int, text: str) -> None:
        print_text(text, end="")

    texts: list[GeneratedText] = []
    with open_lines(output if lines else None) as write:
        try:
            for first in range(0, len(rows), BATCH_SIZE):
                texts += generate(first, print_piece if streamed else None)
                for n in range(first, len(texts)) if lines else ():
                    (sample,) = samples_to_json(session, [texts[n]], options.seed + n)
                    answer = {**(prompts[n].record or {}), **sample}
                    write(json.dumps(answer, ensure_ascii=False, allow_nan=False))
        finally:
            if streamed:
                print_result("")  # so that a reason to stop begins a line of its own
    content = format_samples(session, texts)
    if options.json:
        content = to_json(samples_to_json(session, texts, options.seed)) + "\n"
    if output is None and not (lines or streamed):
        print_text(content, end="")
    elif output is not None and session.writes(output) and not (lines or options.json):
        write_text_files(output, session, texts)
    elif output is not None and not lines:
        write_file(output, content)
        print_status(f"Written to {output}.")
    for remark in (describe_filled_window(run.model, texts), *session.remarks(texts)):
        if remark:
            print_status(remark)


def read_prompts(options: GenerateOptions[Any]) -> list[Prompt]:
    """Return the prompts that flags and files give; a new text's if none does.

    Raises:
        ValueError: if a file cannot be read, or holds none.
    """
    prompts = [Prompt(text) for text in options.prompt]
    if options.prompt_file is not None:
        prompts.append(Prompt(read_text(options.prompt_file)))
    if options.prompts_file is not None:
        if prompts and options.answers_in_json_lines():
            raise ValueError("A file of JSON lines is answered line by line: give no other prompt.")
        from_file = [*read_prompts_file(options.prompts_file)]
        prompts += from_file
        if not from_file:
            raise ValueError(f"{options.prompts_file} has no prompts.")
    return prompts or [Prompt(None)]


def write_text_files(path: Path, session: GenerationSession, texts: list[GeneratedText]) -> None:
    """Write each text to a file of its own; several are numbered."""
    for number, text in enumerate(texts, start=1):
        own = path if len(texts) == 1 else path.with_stem(f"{path.stem}-{number}")
        for remark in session.write(own, text.ids):
            print_status(remark)
        print_status(f"Written to {own}.")
