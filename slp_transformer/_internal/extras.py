"""Imports of optional dependencies, at the moment they are needed."""

import importlib
from types import ModuleType

from slp_transformer._internal.docs_sections import see


def import_extra(module: str, purpose: str, extra: str = "text") -> ModuleType:
    """Import a module of an optional dependency, at the moment it is needed.

    Args:
        module: the module's name, as in `import`.
        purpose: what needs it, as the message's first word or words ("Checkpoints").
        extra: the extra of this package that installs it.

    Raises:
        ImportError: naming the extra, if the module is not installed; or why it cannot be loaded.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError):  # it is there
            name = module.partition(".")[0]
            raise ImportError(f"{purpose} need {name}, which cannot be loaded: {error}.") from None
        raise ImportError(
            f"{purpose} need {module.partition('.')[0]}, which comes with the {extra} extra: "
            f'python -m pip install "slp-transformer[{extra}]".{see("install")}'
        ) from None
