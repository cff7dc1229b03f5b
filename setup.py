"""What of the package's metadata depends on the repository's address, which REPO_URL states.

All else is in pyproject.toml. With the address, the README's links and pictures are absolute in
what is built, so that PyPI shows them, and the project's links name the repository; without it
they stay as they are. The site's pages take the same variable (mkdocs.yml).
"""

import os
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
BOOK = "https://web.stanford.edu/~jurafsky/slp3/"


def read_version() -> str:
    """The version that the package states."""
    source = (ROOT / "slp_transformer" / "__init__.py").read_text("utf-8")
    return re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)[0]


def read_repository(variables: "os._Environ[str] | dict[str, str]") -> str:
    """The repository's address, or "" where none is stated."""
    address = variables.get("REPO_URL", "").rstrip("/")
    if address and not re.fullmatch(r"https?://[^\s/]+/\S+", address):
        raise SystemExit(f"REPO_URL is {address!r}; it has to be like https://HOST/OWNER/NAME.")
    return address


def make_links_absolute(text: str, repository: str, ref: str) -> str:
    """The text with each link or picture of the repository given by its full address."""

    def replace(match: re.Match[str]) -> str:
        view = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}({repository}/{view}/{ref}/{match[2]})"

    text = re.sub(r'(src(?:set)?=")(?!https?:)', rf"\g<1>{repository}/raw/{ref}/", text)
    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#|mailto:)([^)\s]+)\)", replace, text)


def describe(repository: str, version: str) -> dict[str, object]:
    """The arguments of `setup` that name the repository."""
    readme, urls = (ROOT / "README.md").read_text("utf-8"), {"Book": BOOK}
    if repository:
        readme = make_links_absolute(readme, repository, f"v{version}")
        urls["Source"] = repository
        urls["Changelog"] = f"{repository}/blob/v{version}/CHANGELOG.md"
        urls["Issues"] = f"{repository}/issues"
    return {
        "long_description": readme,
        "long_description_content_type": "text/markdown",
        "project_urls": urls,
    }


if __name__ == "__main__":  # as setuptools runs it
    setup(**describe(read_repository(os.environ), read_version()))
