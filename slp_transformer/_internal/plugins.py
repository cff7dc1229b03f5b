"""Plug-ins, which add tasks, commands, checks and presets. No PyTorch here.

Another package registers its `Plugin` as an entry point of the group "slp_transformer.plugins".
What a plug-in adds it names by strings "module:name", and each is imported once it is used.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

PACKAGES = ("slp_transformer", "slp_guitar")
"""What this distribution consists of; all that looks for its code or its files asks here."""
GROUP = "slp_transformer.plugins"
Libraries = Mapping[str, tuple[str, ...]]
"""Modules that are taken for granted, by the requirement that pip installs them by."""
TEXT_EXTRA: Libraries = {
    "slp-transformer[text]": (
        *("tyro", "pydantic", "safetensors", "numpy", "filelock", "tomli_w", "tokenizers", "tqdm"),
    )
}


@dataclass(frozen=True)
class TaskEntry:
    """A task, by name.

    Attributes:
        task: the `slp_transformer.tasks.base.Task`, as "module:name".
        usage: its line of `slp-transformer --help`: an example, and what that does.
    """

    task: str
    usage: tuple[str, str]


@dataclass(frozen=True)
class Command:
    """A command of the command line, by name.

    Attributes:
        options: a subclass of `Options` whose fields are the flags, or a function that returns the
            options that some words mean; as "module:name". The module imports no PyTorch.
        execute: the function that is called with the options, as "module:name".
        usage: its line of `slp-transformer --help`: an example, and what that does; None for none.
        libraries: what it takes for granted: at first what commands are read with.
        any_bytes: whether its words may be names of files that are not UTF-8.
        loads_torch: whether it imports PyTorch, which takes seconds.
    """

    options: str
    execute: str
    usage: tuple[str, str] | None
    libraries: Libraries = field(default_factory=lambda: TEXT_EXTRA)
    any_bytes: bool = False
    loads_torch: bool = True


class Options:
    """The options of a command, a dataclass."""

    def check(self) -> None:
        """Refuse options that contradict each other, or what there is.

        Raises:
            ValueError: naming the flag.
        """

    def libraries(self) -> Libraries:
        """Return what these options take for granted, beyond what the command does."""
        return {}


@dataclass(frozen=True)
class CheckFlag:
    """What a Transformer of a reader's own functions can learn, by a flag of the checks' command.

    Attributes:
        lesson: as "module:name", a function that is called with the file to write before anything
            is learned, and refuses one that cannot be written by a `ValueError`. It returns what is
            called with the reader's `Parts`, a function that prints a line, and whether the loss is
            the reader's.
        file: the file to write where none is named.
        usage: the flag's line of `--help`.
    """

    lesson: str
    file: str
    usage: str


@dataclass(frozen=True)
class Plugin:
    """What a plug-in adds.

    Attributes:
        tasks: tasks by name.
        commands: commands by name.
        checks: modules that add to `slp_transformer.check.CHECKS`.
        check_flags: flags of `python -m slp_transformer.check FILE`, by name.
        presets: a package whose folder `presets` has .toml files for `train --config`.
        models: trained models by name, each a run's folder in a package, as "package:folder".
    """

    tasks: Mapping[str, TaskEntry] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    check_flags: Mapping[str, CheckFlag] = field(default_factory=dict)
    presets: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)


_problems: list[str] = []


def record_plugin_problem(sentence: str) -> None:
    """Keep a sentence on what was left out, for the command line to print."""
    _problems.append(sentence)


def pop_plugin_problems() -> list[str]:
    """Return sentences on plug-ins that were left out, each of them once."""
    taken, _problems[:] = _problems[:], []
    return taken


@cache
def load_plugins() -> dict[str, Plugin]:
    """Return all plug-ins that can be loaded, by name: ours, then those of other packages."""
    found: dict[str, Plugin] = {}
    # Ours are found by name, since entry points are absent where nothing was installed.
    for package in PACKAGES[1:]:
        if find_spec(package):
            add_plugin(found, package, f"{package}.plugin:PLUGIN")
    for entry in sorted(entry_points(group=GROUP)):
        add_plugin(found, entry.name, entry.value)
    return found


def add_plugin(found: dict[str, Plugin], name: str, place: str) -> None:
    """Load a plug-in; say what is wrong if it is broken, and go on without it."""
    try:
        plugin = resolve_name(place)
        if not isinstance(plugin, Plugin):
            raise TypeError(f"{place} is a {type(plugin).__name__} and no Plugin")
        if name in found:
            raise ValueError(f"{found[name]} has this name already")
        found[name] = plugin
    except Exception as error:  # whatever its modules raise
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        _problems.append(f"The plug-in {name} is left out, for it cannot be loaded ({reason}).")


def import_object(place: str, what: str) -> Any:
    """Import what "module:name" names.

    Args:
        place: the module, and the name in it.
        what: what it is, for the sentence: "The task dna".

    Raises:
        ValueError: if it is of another package, and cannot be imported.
    """
    try:
        return resolve_name(place)
    except Exception as error:  # whatever its modules raise
        if place.partition(".")[0] in PACKAGES:
            raise
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        raise ValueError(f"{what} cannot be loaded from {place} ({reason}).") from error


def merge_entries(kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return our entries of a kind, and those of plug-ins that do not take the name of another.

    Args:
        kind: "tasks", "commands" or "check_flags", an attribute of `Plugin`.
        own: our entries by name.
    """
    entries, owners = dict(own), dict.fromkeys(own, "this package")
    for plugin, its in load_plugins().items():
        for name, entry in getattr(its, kind).items():
            if name in entries:
                _problems.append(
                    f'Two plug-ins have {kind.replace("_", " ")} named "{name}": that of '
                    f"{owners[name]} is taken, and that of the plug-in {plugin} left out."
                )
            else:
                entries[name], owners[name] = entry, f"the plug-in {plugin}"
    return entries


def import_plugin_checks() -> None:
    """Import the checks of all plug-ins; what cannot be imported is left out."""
    for plugin, its in load_plugins().items():
        for module in its.checks:
            try:
                importlib.import_module(module)
            except Exception as error:  # whatever it raises
                _problems.append(
                    f"The checks of the plug-in {plugin} are left out, for {module} cannot be "
                    f"imported ({type(error).__name__}: {error})."
                )
