"""Score continuations: how probable a trained model finds what might follow a prompt."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slp_transformer._internal.settings import setting, settings
from slp_transformer.cli.console import open_lines
from slp_transformer.cli.run_options import RunOptions, check_trained
from slp_transformer.data.text_files import is_json_lines, iter_json_lines
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.data_settings import NoFlags, UseAppendAction
from slp_transformer.tasks.saved_runs import load_run
from slp_transformer.tasks.text import TextTask


@settings
@dataclass(frozen=True)
class ScoreOptions(RunOptions):
    """Score continuations: how probable a trained model finds what might follow a prompt.

    Examples:
      slp-transformer score runs/mine --prompt "the fox" --continuation " runs" --continuation " is"
      slp-transformer score runs/mine --input questions.jsonl --output scored.jsonl

    Each continuation gets a row: the natural logarithm of its probability, which is a sum over its
    tokens; how many tokens these are; and whether each of them is the most probable one, so that
    `generate --temperature 0` would write this continuation. Spaces at the end of the prompt count
    to the continuation, since tokens begin with them.

    Attributes:
        prompt: what is before the continuations; without one they begin a text.
        continuation: what may follow; may be given several times.
        input: a .jsonl file, each line of which is an object with a "prompt" and a "continuation",
            and is answered by one with "log_probability", "tokens" and "greedy" as well.
        output: a file to write to.
        json: print a list of the continuations as JSON.
        adapter: the folder of a LoRA adapter, in the layout of the library peft, for this model.
    """

    prompt: str = setting("", example="the fox")
    continuation: UseAppendAction[tuple[str, ...]] = setting((), example=(" runs",))
    input: Path | None = setting(None, no_example="a file")
    output: Path | None = setting(None, no_example="a file")
    json: bool = setting(False, no_example="the same scores, written otherwise")
    adapter: Path | None = setting(None, no_example="a folder")

    def check(self) -> None:
        """Refuse what cannot be scored: no continuations, two kinds of them, no model of text.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        if (self.input is None) != bool(self.continuation):
            raise ValueError("Name what to score: by --continuation, or by --input FILE.jsonl.")
        if self.input is not None and not is_json_lines(self.input):
            raise ValueError(f"--input reads lines of JSON, and {self.input} is no .jsonl.")
        if self.input is not None and (self.prompt or self.json):
            raise ValueError(
                "--input, answered by lines of JSON, takes neither --prompt nor --json."
            )
        if not isinstance(self.opened.task, TextTask):
            raise ValueError(f"{self.run} is no model of text, which alone can be scored.")
        check_trained(self.opened)


def execute(options: ScoreOptions) -> None:
    """Score, and print a row for each continuation.

    Raises:
        ValueError: if there is no such run or file, or something in it cannot be scored.
    """
    from slp_transformer.generation.harness import HarnessModel
    from slp_transformer.generation.scoring import parse_pair, score_continuations

    asked: list[tuple[str, dict[str, Any]]]
    asked = [("", {"prompt": options.prompt, "continuation": c}) for c in options.continuation]
    if options.input is not None:
        lines = list(iter_json_lines(options.input))
        asked = [(f"{options.input}, line {number}: ", record) for number, record in lines]
    if not asked:
        raise ValueError(f"{options.input} has no lines.")
    run = load_run(options.opened, options.device, options.adapter)
    session: Any = run.task.session(run, NoFlags())
    begins = any(not str(one.get("prompt")).strip() for _, one in asked)
    harness, pairs = HarnessModel(run.model, run.tokenizer, session.first_id() if begins else 0), []
    for place, one in asked:  # all, before the first is scored
        try:
            text, continuation = one.get("prompt"), one.get("continuation")
            if not (isinstance(text, str) and isinstance(continuation, str)):
                raise ValueError('two strings are needed, "prompt" and "continuation".')
            prompt, rest = harness.split_pair(text, continuation)
            if kept := text.rstrip():  # as `generate`, after the token that begins a text
                begin = session.encode(kept)[:1]
                prompt = prompt if prompt[:1] == begin else begin + prompt
            pairs.append(parse_pair(run.model, prompt, rest))
        except ValueError as error:
            raise ValueError(f"{place}{error}") from None
    rows = []
    scores = score_continuations(run.model, pairs)
    for (_, one), (_, ids), found in zip(asked, pairs, scores, strict=True):
        about = {"log_probability": found.log_probability, "tokens": len(ids)}
        rows.append({**one, **about, "greedy": found.is_greedy})
    shown = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    if options.json:
        shown = [to_json(rows)]
    elif options.input is None:
        shown = ["log P\ttokens\tgreedy\tcontinuation", *map(format_row, rows)]
    with open_lines(options.output) as write:
        for line in shown:
            write(line)


def format_row(row: dict[str, Any]) -> str:
    """Return a row as people read it, the continuation in quotes that show its spaces."""
    greedy, text = "yes" if row["greedy"] else "no", json.dumps(row["continuation"])
    return f"{row['log_probability']:.4f}\t{row['tokens']}\t{greedy}\t{text}"
