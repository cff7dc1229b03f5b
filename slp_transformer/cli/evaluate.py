"""Measure how well a trained model predicts data that it was not trained on."""

from dataclasses import dataclass

from slp_transformer.cli.console import print_result
from slp_transformer.cli.run_options import RunOptions
from slp_transformer.tasks.base import Positional, to_json
from slp_transformer.tasks.run_config import find_task, load_run
from slp_transformer.tasks.sampling_options import SamplingOptions


@dataclass(frozen=True)
class Evaluate(RunOptions):
    """Measure how well a trained model predicts data that it was not trained on.

    Examples:
      slp-transformer evaluate runs/mine                 on the run's held-out data
      slp-transformer evaluate runs/mine other.txt       on another text
      slp-transformer evaluate runs/mine --samples 3     with three generated texts
      slp-transformer evaluate runs/en-de test.en --target test.de --checkpoint average

    Language models: the loss, perplexity and bits per character and byte, which unlike the loss
    compare models with different tokenizers. Translation: loss, BLEU and chrF with sacrebleu's
    signatures. Guitar tabs: bits per note compared with n-grams and, with samples, statistics of
    generated pieces compared with held-out ones, with and without the grammar.

    Attributes:
        source: what to evaluate on: a file, a folder, - for standard input, the name of a corpus;
            the run's held-out data if None.
        json: print JSON.
        target: for pairs, the file whose lines translate those of SOURCE.
        num_beams: for pairs, the beam width [4].
        samples: generate this many texts too.
        max_new_tokens: maximum number of tokens of a sample [500].
        seed: random seed of the samples [0].
        sampling: how the tokens of samples are drawn.
    """

    source: Positional[str | None] = None
    json: bool = False
    target: str | None = None
    num_beams: int | None = None
    samples: int | None = None
    max_new_tokens: int | None = None
    seed: int | None = None
    sampling: SamplingOptions = SamplingOptions()

    def check(self) -> None:
        """Refuse options that the task of the run has no use for.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        find_task(self.run).check_evaluate(self)


def execute(options: Evaluate) -> None:
    """Evaluate, and print the results.

    Raises:
        ValueError: if there is no such run or source, too little in it, or an option has no effect.
    """
    run = load_run(options.run, options.checkpoint, options.device)
    report = run.task.evaluate(run, options)
    if options.json:
        about = {"run": str(options.run), "checkpoint": options.checkpoint}
        about["source"] = options.source or "held out"
        print_result(to_json(about | report.values))
    else:
        print_result(report.text)
