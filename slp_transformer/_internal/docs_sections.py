"""The sections of the docs in which messages end, where a sentence is not enough."""

from typing import NamedTuple


class DocsSection(NamedTuple):
    """A section of a page.

    Attributes:
        page: the page's file, within docs.
        heading: the section's heading.
    """

    page: str
    heading: str


DOCS_SECTIONS = {
    "chats": DocsSection("command-line.md", "Prompts, stops and chats"),
    "configuration": DocsSection("command-line.md", "Configuration files"),
    "conventions": DocsSection("reuse.md", "Conventions"),
    "install": DocsSection("reuse.md", "Install"),
    "lora": DocsSection("command-line.md", "Fine-tuning by LoRA"),
    "own models": DocsSection("reuse.md", "A run's folder"),
    "pairs": DocsSection("command-line.md", "Translation"),
    "parameters": DocsSection("reuse.md", "Parameters"),
    "padding": DocsSection("reuse.md", "A block in a model of your own"),
    "processes": DocsSection("cluster.md", "From a laptop to a cluster"),
    "families": DocsSection("reuse.md", "A published model"),
    "published models": DocsSection("command-line.md", "Published models"),
    "recordings": DocsSection("command-line.md", "Pitch to tab"),
    "resume": DocsSection("command-line.md", "Stop and resume"),
    "settings": DocsSection("reuse.md", "Settings"),
}
"""By topic, what explains it."""


def see(topic: str) -> str:
    """Return the sentence that sends to the docs, with a space before it."""
    page, heading = DOCS_SECTIONS[topic]
    return f' See "{heading}" in docs/{page}.'
