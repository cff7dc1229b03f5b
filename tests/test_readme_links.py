"""A README that is read outside the repository."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def absolute(text):
    spec = importlib.util.spec_from_file_location("links", ROOT / ".ci" / "absolute_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.absolute(text, "https://host/a/b", "v1.2.3")


def test_links_of_the_repository_become_absolute_and_others_stay():
    text = (
        "[N](docs/n.md), ![a tab](docs/assets/t.svg), [B](https://book.org/), [here](#there)"
        '<source srcset="docs/d.webp"><img src="docs/l.webp">'
    )
    assert absolute(text) == (
        "[N](https://host/a/b/blob/v1.2.3/docs/n.md), "
        "![a tab](https://host/a/b/raw/v1.2.3/docs/assets/t.svg), "
        "[B](https://book.org/), [here](#there)"
        '<source srcset="https://host/a/b/raw/v1.2.3/docs/d.webp">'
        '<img src="https://host/a/b/raw/v1.2.3/docs/l.webp">'
    )


def test_no_link_of_the_readme_stays_relative():
    text = absolute((ROOT / "README.md").read_text("utf-8"))
    assert "](http" in text and "](docs" not in text and '="docs' not in text


def test_what_the_readme_links_to_is_there():
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.findall(r'(?:\]\(|src(?:set)?=")(?!https?:)([^)"]+)', text)
    assert len(found) > 10 and [name for name in found if not (ROOT / name).exists()] == []
    assert len(text.splitlines()) <= 100
