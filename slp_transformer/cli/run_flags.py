"""Flags of `generate` and `evaluate` that belong to the run's task. Nothing here needs PyTorch."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from slp_transformer.cli.flags import (
    HELP,
    check_task_flags,
    collect_flag_types,
    find_run_argument,
    parse_flag,
)
from slp_transformer.cli.parsing import parse_flags
from slp_transformer.tasks.base import Task
from slp_transformer.tasks.data_settings import NoFlags
from slp_transformer.tasks.registry import TASKS, load_task
from slp_transformer.tasks.saved_runs import find_run, resolve_run


def parse_run_flags(
    options_class: Any, own: Callable[[Task[Any, Any, Any]], type], name: str, args: Sequence[str]
) -> Any:
    """Parse the flags of a command on a run, of which some belong to the run's task.

    Args:
        options_class: that of the options, generic in the flags of the task.
        own: returns the class of a task's own flags.
        name: the command's name.
        args: the words after it.

    Raises:
        SystemExit: as `parse_flags`.
        ValueError: as `parse_flags`; also if there is no such run, or a flag belongs to another
            task, or to both command and task.
    """
    general = collect_flag_types(options_class[NoFlags])
    given = {flag for flag in map(parse_flag, args) if flag and flag != "--help"}
    # Tasks are imported only for a flag that may be theirs: before the run its value is no run.
    others = list(iter_importable_tasks()) if given - general.keys() else []
    flags = [
        *general.items(),
        *(item for each in others for item in collect_flag_types(own(each)).items()),
    ]
    run = find_run_argument(args, flags)
    if run is None or ({*HELP} & {*args} and not Path(run).is_dir()):
        return parse_flags(options_class[NoFlags], name, args)
    found = find_run(resolve_run(Path(run)))
    task = found.task
    check_task_flags(task.name, own(task), options_class[NoFlags], name)
    kept = {*general, *collect_flag_types(own(task))}
    for other in others:
        if wrong := sorted(given & collect_flag_types(own(other)).keys() - kept):
            raise ValueError(
                f"{wrong[0]} has no effect here: it is for the task {other.name}, and {run} is of "
                f"the task {task.name}."
            )
    options = parse_flags(options_class[own(task)], name, args)
    object.__setattr__(options, "opened", found)
    return options


def iter_importable_tasks() -> Iterator[Task[Any, Any, Any]]:
    """Yield all tasks that can be imported."""
    for name in TASKS:
        with contextlib.suppress(Exception):  # whatever a plug-in's module raises
            yield load_task(name)
