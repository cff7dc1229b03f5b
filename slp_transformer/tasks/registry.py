"""The tasks by name; a task's module is imported when the task is used."""

import importlib

from slp_transformer.tasks.base import Task

TASKS = {
    "text": "slp_transformer.tasks.text:TextTask",
    "pairs": "slp_transformer.tasks.pairs:PairTask",
    "tabs": "slp_transformer.tasks.tabs:TabTask",
}
"""Each task's class, as "module:name". A task of one's own is added as one more entry."""


def load_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        KeyError: if there is no such task.
    """
    module, _, attribute = TASKS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()
