"""Fit the costs of the hand to tabs that people have written."""

from dataclasses import replace
from pathlib import Path

from slp_guitar.commands.song_options import FitOptions
from slp_guitar.fingering.passages import Passage, passage_from_tab, read_passages_jsonl
from slp_guitar.formats.registry import list_readable_files, read_any_tab_file
from slp_guitar.formats.safe_read import read_each_file
from slp_guitar.tab import ReadProblem
from slp_transformer._internal.atomic_write import check_writable_path
from slp_transformer._internal.json_files import write_json
from slp_transformer.cli.console import format_count, print_remarks, print_status


def execute(options: FitOptions) -> None:
    """Read tabs, fit weights to their strings and frets, and write them.

    Raises:
        ValueError: if there is no tab with strings, or the file cannot be written.
    """
    check_writable_path(options.output)
    passages = read_fingered_passages(options.tabs)
    import torch

    from slp_guitar.fingering.cost_fitting import composer_of, fit_weights, sample_by_composer

    torch.set_num_threads(1)  # the sums are small: threads would wait for each other
    chosen = sample_by_composer(passages, options.pieces)
    moments = sum(len(passage.moments) for passage in chosen)
    composers = format_count(len(set(map(composer_of, passages))), "composer")
    print_status(
        f"{format_count(len(chosen), 'piece')}, {format_count(moments, 'moment')}, of {composers}: "
        'a folder below is one, or what file names have before a "_"'
    )
    weights = fit_weights(chosen, print_status)
    write_json(
        options.output,
        {
            "source": str(options.tabs),
            "pieces": len(chosen),
            "moments": moments,
            "weights": dict(sorted(weights.items())),
        },
    )
    print_status(f"Written to {options.output}: slp-transformer tab FILE --costs {options.output}")


def read_fingered_passages(path: Path) -> list[Passage]:
    """Return the pieces of a file or folder whose strings and frets somebody wrote.

    Raises:
        ValueError: if there is none.
    """
    if path.suffix.lower() == ".jsonl":
        return [passage for passage in read_passages_jsonl(path) if passage.grips]

    def read(file: Path, name: str) -> tuple[list[Passage], list[ReadProblem]]:
        tabs, problems = read_any_tab_file(file)
        made = [replace(passage_from_tab(tab), name=name) for tab in tabs if tab.is_fingered]
        if len(made) < len(tabs):
            count = format_count(len(tabs) - len(made), "track")
            problems.append(ReadProblem(name, 0, f"{count} without strings left out"))
        return [passage for passage in made if passage.grips], problems

    passages, problems = read_each_file(path, list_readable_files(path), read)
    print_remarks(problems)
    if not passages:
        raise ValueError(f"There is no tab with strings and frets in {path}.")
    return passages
