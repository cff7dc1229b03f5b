"""Measure how well a trained model predicts data that it was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from slp_transformer._internal.plugins import Libraries
from slp_transformer.cli.console import print_result
from slp_transformer.cli.run_flags import parse_run_flags
from slp_transformer.cli.run_options import RunOptions
from slp_transformer.tasks.base import EvaluateOptions, to_json
from slp_transformer.tasks.saved_runs import load_run

FlagsT = TypeVar("FlagsT")


@dataclass(frozen=True)
class EvaluateRunOptions(RunOptions, Generic[FlagsT]):
    """Measure how well a trained model predicts data that it was not trained on.

    `slp-transformer evaluate RUN --help` shows the options of the run's own task, too.

    Examples:
      slp-transformer evaluate runs/mine                 on the run's held-out data
      slp-transformer evaluate runs/mine other.txt       on another text
      slp-transformer evaluate runs/mine --samples 3     with three generated texts
      slp-transformer evaluate runs/en-de test.en --target test.de --checkpoint average

    Language models: the loss, perplexity and bits per character and byte, which unlike the loss
    compare models with different tokenizers. Translation: loss, BLEU and chrF with sacrebleu's
    signatures.

    Attributes:
        asked: on what, and with how many samples.
        json: print JSON.
        adapter: the folder of a LoRA adapter, in the layout of the library peft, for this model.
    """

    asked: EvaluateOptions[FlagsT] = field(kw_only=True)
    json: bool = False
    adapter: Path | None = None

    def check(self) -> None:
        """Refuse options that the task of the run has no use for.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        self.opened.task.check_evaluate(self.asked)

    def libraries(self) -> Libraries:
        """Return what the task of the run takes for granted."""
        return self.opened.task.libraries()


def parse_evaluate(args: Sequence[str]) -> EvaluateRunOptions[Any]:
    """Parse the options of `evaluate`, of which some belong to the run's task."""
    return parse_run_flags(EvaluateRunOptions, lambda task: task.EvaluateFlags, "evaluate", args)


def execute(options: EvaluateRunOptions[Any]) -> None:
    """Evaluate, and print the results.

    Raises:
        ValueError: if there is no such run or source, too little in it, or an option has no effect.
    """
    run = load_run(options.opened, options.device, options.adapter)
    report = run.task.evaluate(run, options.asked)
    if options.json:
        about = {"run": str(options.run), "checkpoint": options.checkpoint}
        about["source"] = options.asked.source or "held out"
        print_result(to_json(about | report.values))
    else:
        print_result(report.text)
