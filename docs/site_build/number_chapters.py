"""Writes the numbers that equations have in the book into the chapters.

    python docs/site_build/number_chapters.py

They come from `slp_transformer/equations.toml`: change them there, and run this.
"""

from pathlib import Path

from chapter_source import equations_of, numbered


def main(root: Path) -> None:
    """Number the chapters of a project, and name those that change."""
    for path in sorted((root / "chapters").glob("[0-9]*.py")):
        text = path.read_text(encoding="utf-8")
        fresh = numbered(text, equations_of(root))
        if fresh != text:
            path.write_text(fresh, encoding="utf-8", newline="\n")
            print(path.name)


if __name__ == "__main__":
    main(Path(__file__).resolve().parents[2])
