"""The tasks by name; a task's module is imported when the task is used."""

import importlib
from importlib.metadata import entry_points

from slp_transformer.tasks.base import Task

TASKS = {
    "text": "slp_transformer.tasks.text:TextTask",
    "pairs": "slp_transformer.tasks.pairs:PairTask",
    "tabs": "slp_transformer.tasks.tabs:TabTask",
    **{entry.name: entry.value for entry in entry_points(group="slp_transformer.tasks")},
}
"""Each task's class, as "module:name". Other packages add theirs as entry points of this group."""


def load_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        KeyError: if there is no such task.
    """
    module, _, attribute = TASKS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()
