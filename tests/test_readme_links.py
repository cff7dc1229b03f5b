"""A README that is read outside the repository."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def absolute(text):
    spec = importlib.util.spec_from_file_location("links", ROOT / ".ci" / "absolute_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.absolute(text, "https://host/a/b", "v1.2.3")


def test_links_of_the_repository_become_absolute_and_others_stay():
    text = "[N](docs/n.md), ![a tab](docs/assets/t.svg), [B](https://book.org/), [here](#there)"
    assert absolute(text) == (
        "[N](https://host/a/b/blob/v1.2.3/docs/n.md), "
        "![a tab](https://host/a/b/raw/v1.2.3/docs/assets/t.svg), "
        "[B](https://book.org/), [here](#there)"
    )


def test_no_link_of_the_readme_stays_relative():
    assert "](http" in absolute((ROOT / "README.md").read_text("utf-8"))
    assert "](docs" not in absolute((ROOT / "README.md").read_text("utf-8"))
