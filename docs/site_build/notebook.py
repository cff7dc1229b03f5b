"""The notebook that a reader takes from the site: it installs what it needs and links back."""

import re

import nbformat

REFERENCE = re.compile(r'<autoref [^>]*?identifier="?([^"\s>]+)"?[^>]*>(.*?)</autoref>', re.DOTALL)


def to_take_away(
    notebook: nbformat.NotebookNode, repository: str, site: str, anchors: dict[str, str]
) -> nbformat.NotebookNode:
    """A chapter's notebook on its own.

    Args:
        notebook: the chapter's, with its outputs.
        repository: where the project is kept, or "".
        site: where the site is published, or "".
        anchors: the place within the site of each object that the notebook may refer to.
    """
    source = f"slp-transformer[docs] @ git+{repository}" if repository else ""
    first = (
        f'%pip install -q "{source}"'
        if source
        else '# In a folder of the project, once: python -m pip install -e ".[docs]"'
    )
    cell = nbformat.v4.new_code_cell(first)
    cell.id = "install"
    taken = nbformat.from_dict(notebook)
    taken.cells = [cell, *taken.cells]

    def chapter(match: re.Match) -> str:
        return f"]({site}chapters/{match[1]}/"

    def reference(match: re.Match) -> str:
        if not site or match[1] not in anchors:
            return match[2]
        return f'<a href="{site}{anchors[match[1]]}">{match[2]}</a>'

    def page(match: re.Match) -> str:
        return f"]({site}{match[1]}/" if site else match[0]

    for cell in taken.cells:
        texts = [output.get("data", {}) for output in cell.get("outputs", [])]
        if cell.cell_type == "markdown":
            cell.source = REFERENCE.sub(reference, cell.source)
            if site:
                cell.source = re.sub(r"\]\((\d\d_\w+)\.(?:py|ipynb|md)", chapter, cell.source)
                cell.source = re.sub(r"\]\(\.\./(?:docs/)?([\w-]+)(?:\.md|/)", page, cell.source)
        for data in texts:
            if "text/markdown" in data:
                data["text/markdown"] = REFERENCE.sub(reference, data["text/markdown"])
    return taken
