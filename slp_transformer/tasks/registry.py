"""The tasks by name: ours, and those of plug-ins. Nothing here needs PyTorch."""

from typing import TYPE_CHECKING, Any

from slp_transformer._internal.plugins import TaskEntry, add_entries, resolve

if TYPE_CHECKING:
    from slp_transformer.tasks.base import Task

TASKS: dict[str, TaskEntry] = add_entries(
    "tasks",
    {
        "text": TaskEntry(
            "slp_transformer.tasks.text:TextTask",
            ("train text my-texts --out-dir runs/mine", "a file or a folder of .txt files"),
        ),
        "pairs": TaskEntry(
            "slp_transformer.tasks.pairs:PairTask",
            ("train pairs --out-dir runs/pairs", "pairs of sentences"),
        ),
    },
)


def load_task(name: str) -> "Task[Any, Any, Any]":
    """Import the module of a task, and return the task.

    Raises:
        KeyError: if there is no such task.
        ValueError: if it is another package's, and cannot be imported.
    """
    task: Task[Any, Any, Any] = resolve(TASKS[name].task, f"The task {name}")()
    return task
