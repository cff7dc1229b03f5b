"""What a plug-in is: names of what it adds, which is imported once it is used. No PyTorch here."""

from collections.abc import Mapping
from dataclasses import dataclass

TEXT_EXTRA = {
    "slp-transformer[text]": (
        *("tyro", "pydantic", "safetensors", "numpy", "filelock", "tomli_w", "tokenizers", "tqdm"),
    )
}


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes:
        options: "module:name" of the dataclass whose fields are its flags, or of a function that
            returns the options of some words; nothing in the module imports PyTorch. If the options
            have a method `check`, it is called before the command begins.
        execute: "module:name" of the function that is called with the options.
        usage: its line of `slp-transformer --help`: an example, and what that does.
        needs: the libraries that it takes for granted, by the requirement that installs them.
        any_bytes: whether its words may be names of files that are not UTF-8.
        loads_torch: whether it imports PyTorch, which takes seconds.
    """

    options: str
    execute: str
    usage: tuple[str, str]
    needs: Mapping[str, tuple[str, ...]]
    any_bytes: bool = False
    loads_torch: bool = True
