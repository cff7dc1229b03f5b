"""Measure how well a trained model predicts data that it was not trained on."""

from slp_transformer.cli.console import print_result
from slp_transformer.cli.options import Evaluate
from slp_transformer.tasks.base import to_json
from slp_transformer.tasks.run_config import load_run


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
