"""Where messages send a reader to whom a sentence is not enough: to what that reader can open."""

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS_SECTIONS = {
    "chats": ("command-line.md", "Prompts, stops and chats", "slp-transformer generate --help"),
    "configuration": ("command-line.md", "Configuration files", "slp-transformer train --help"),
    "conventions": ("reuse.md", "Conventions", 'help("slp_transformer.masks")'),
    "install": ("reuse.md", "Install", ""),
    "lora": ("command-line.md", "Fine-tuning by LoRA", "slp-transformer train --help"),
    "own models": ("reuse.md", "A run's folder", 'help("slp_transformer.training.load_model")'),
    "pairs": ("command-line.md", "Translation", "slp-transformer train pairs --help"),
    "parameters": ("reuse.md", "Parameters", 'help("slp_transformer.modern.from_pretrained")'),
    "padding": ("reuse.md", "A block in a model of your own", 'help("slp_transformer.masks")'),
    "processes": ("cluster.md", "From a laptop to a cluster", "slp-transformer train --help"),
    "families": ("reuse.md", "A published model", 'help("slp_transformer.modern")'),
    "published models": ("command-line.md", "Published models", "slp-transformer info --help"),
    "recordings": ("command-line.md", "Pitch to tab", "slp-transformer convert --help"),
    "resume": ("command-line.md", "Stop and resume", "slp-transformer train --help"),
    "settings": ("reuse.md", "Settings", 'help("slp_transformer.TransformerConfig")'),
}
"""By topic, the page within docs, the section that explains it, and the help that is installed."""


def see(topic: str) -> str:
    """Return the sentence that sends on, with a space before it; an empty one if there is no more.

    A clone has the docs. A wheel has none, but names the repository if it was built with its
    address; else there is the help that is installed with it.
    """
    page, heading, own_help = DOCS_SECTIONS[topic]
    if (ROOT / "docs" / page).is_file():
        return f' See "{heading}" in docs/{page}.'
    if address := find_repository_address():
        return f' See "{heading}" in {address}docs/{page}.'
    return f" See {own_help}." if own_help else ""


def find_repository_address() -> str:
    """Return the address of the files of this version, which setup.py wrote; "" if it has not."""
    try:
        urls = metadata("slp-transformer").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    found = dict(url.split(", ", 1) for url in urls)
    return found.get("Changelog", "").removesuffix("CHANGELOG.md")
