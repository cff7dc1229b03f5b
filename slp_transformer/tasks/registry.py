"""The tasks by name: ours, and those of plug-ins. Nothing here needs PyTorch."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

from slp_transformer._internal.choices import union_members
from slp_transformer._internal.plugins import TaskEntry, import_object, merge_entries

if TYPE_CHECKING:
    from slp_transformer.tasks.base import Task

TASKS: dict[str, TaskEntry] = merge_entries(
    "tasks",
    {
        "text": TaskEntry(
            "slp_transformer.tasks.text:TextTask",
            ("train text my-texts --out-dir runs/mine", "a file or a folder of .txt files"),
        ),
        "pairs": TaskEntry(
            "slp_transformer.tasks.pairs:TranslationTask",
            ("train pairs --out-dir runs/pairs", "pairs of sentences"),
        ),
    },
)


def load_task(name: str) -> "Task[Any, Any, Any]":
    """Import the module of a task, and return the task.

    Raises:
        KeyError: if there is no such task.
        ValueError: if it is another package's and cannot be imported, or has a flag of `generate`
            or `evaluate` that takes several values.
    """
    task: Task[Any, Any, Any] = import_object(TASKS[name].task, f"The task {name}")()
    for flags in (task.GenerateFlags, task.EvaluateFlags):
        for field, hint in get_type_hints(flags).items():
            kinds = [get_origin(part) or part for part in union_members(hint)]
            # The run is found among the words before its task's flags are known, so that each word
            # after a flag of unknown length could be the run.
            if any(
                isinstance(k, type) and issubclass(k, Collection) and k is not str for k in kinds
            ):
                raise ValueError(
                    f"The task {name} has an option --{field.replace('_', '-')} that takes several "
                    "values: an option of a task takes one value or none."
                )
    return task
