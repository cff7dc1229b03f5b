"""The sections of the docs in which messages end, where a sentence is not enough."""

DOCS_SECTIONS = {
    "chats": ("command-line.md", "Prompts, stops and chats"),
    "configuration": ("command-line.md", "Configuration files"),
    "conventions": ("reuse.md", "Conventions"),
    "install": ("reuse.md", "Install"),
    "lora": ("command-line.md", "Fine-tuning by LoRA"),
    "own models": ("reuse.md", "A run's folder"),
    "pairs": ("command-line.md", "Translation"),
    "parameters": ("reuse.md", "Parameters"),
    "padding": ("reuse.md", "A block in a model of your own"),
    "processes": ("cluster.md", "From a laptop to a cluster"),
    "families": ("reuse.md", "A published model"),
    "published models": ("command-line.md", "Published models"),
    "recordings": ("command-line.md", "Pitch to tab"),
    "resume": ("command-line.md", "Stop and resume"),
    "settings": ("reuse.md", "Settings"),
}
"""By topic, the page within docs, and the section that explains it."""


def see(topic: str) -> str:
    """Return the sentence that sends to the docs, with a space before it."""
    page, heading = DOCS_SECTIONS[topic]
    return f' See "{heading}" in docs/{page}.'
