"""Continue prompts with a trained model."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slp_transformer._internal.atomic_write import write_file
from slp_transformer.cli.console import print_result, print_status
from slp_transformer.cli.run_options import RunOptions, check_run
from slp_transformer.data.text_files import STANDARD_INPUT, decode_pieces, read_pieces
from slp_transformer.tasks.base import UseAppendAction, to_json
from slp_transformer.tasks.generation_session import (
    GeneratedText,
    GenerationSession,
    continue_prompts,
    format_samples,
    samples_to_json,
    window_note,
)
from slp_transformer.tasks.run_config import find_task, load_run
from slp_transformer.tasks.sampling_options import SamplingOptions


@dataclass(frozen=True)
class Generate(RunOptions):
    """Continue prompts with a trained model.

    Examples:
      slp-transformer generate runs/mine --prompt "the "
      slp-transformer generate runs/mine --prompt-file beginning.txt --max-new-tokens 2000
      echo "the " | slp-transformer generate runs/mine --prompt-file -
      slp-transformer generate runs/tabs --tuning drop-D --output piece.txt
      slp-transformer generate runs/tabs --prompt-file my_riff.txt --key Am
      slp-transformer generate runs/tabs --output piece.gp5     (or .mid, .musicxml, .atex)

    A model sees a window of its last tokens. Where a text is longer than that, the model continues
    from the last half window, without what came before.

    Attributes:
        prompt: the text to continue; may be given several times.
        prompt_file: a file to continue, or - for standard input; for guitar an ASCII tab.
        max_new_tokens: maximum number of new tokens.
        seed: random seed.
        num_samples: samples of each prompt.
        output: a file to write to.
        json: print a list of texts as JSON.
        tuning: for guitar, the name of a tuning [standard].
        capo: for guitar, the capo fret [0].
        key: for guitar, C, C#, D ... or Am ...; new notes are of its scale, in minor with the
            raised seventh too, but may suggest another key, as 45 of 72 pieces of one model did;
            the model chooses if None.
        time_signature: for guitar, 3/4, 4/4, 6/8 ...; the model chooses if None.
        style: for guitar, a style of the training data; the model chooses if None.
        ending: for guitar, "tonic" gives a piece that the model ends on another bass note than the
            tonic of its key (--key, or an estimate) one more bar, with a tonic chord in root
            position; "any" leaves the ending to the model [tonic].
        one_channel: for guitar, write MIDI with one channel in place of one for each string.
        sampling: how the next token is drawn.
    """

    prompt: UseAppendAction[tuple[str, ...]] = ()
    prompt_file: str | None = None
    max_new_tokens: int = 500
    seed: int = 0
    num_samples: int = 1
    output: Path | None = None
    json: bool = False
    tuning: str | None = None
    capo: int | None = None
    key: str | None = None
    time_signature: str | None = None
    style: str | None = None
    ending: Literal["tonic", "any"] | None = None
    one_channel: bool = False
    sampling: SamplingOptions = SamplingOptions()

    def check(self) -> None:
        """Refuse options that the task of the run has no use for, and a model without training.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        find_task(self.run).check_generate(self)
        check_run(self.run, self.checkpoint, trained=True)


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
