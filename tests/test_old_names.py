"""Names that were given up stay away: nobody outside this project would have guessed them."""

import ast
import re
from pathlib import Path

import pytest

from slp_transformer._internal.plugins import PACKAGES

ROOT = Path(__file__).parents[1]
OLD_NAMES = frozenset(
    "TodaysLM TodaysConfig TrainingSettings RunState MadeOf Gauge Team Replicas Watched Wishes "
    "LowRank SideBySide heed take_up go_on_with stir plainly switched_on whole_file reason_of "
    "sole_owner from_text_extra read_as work_bar hide_future all_over unfolded score_of "
    "tab_of unsound steps_an_epoch make_recipe nothing_left_behind".split()
)
OLD_PACKAGES = ("beyond", "decoding", "command_line", "recipes", "show", "files", "tokens", "text")
OLD_FLAGS = ("--guitar", "--translation", "--recipe", "--show-recipe", "--held-out", "--metre")
CODE = [p for name in (*PACKAGES, "benchmarks") for p in (ROOT / name).rglob("*.py")]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def names_in(tree: ast.AST) -> set[str]:
    """The names that a module defines, uses or imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        for attribute in ("name", "id", "attr", "arg"):
            found.add(str(getattr(node, attribute, "")))
    return found


def test_code_has_no_old_names():
    names = {path: names_in(ast.parse(path.read_text(encoding="utf-8"))) for path in CODE}
    assert {path: found & OLD_NAMES for path, found in names.items() if found & OLD_NAMES} == {}


def test_no_package_has_an_old_name():
    assert not [name for name in OLD_PACKAGES if (ROOT / "slp_transformer" / name).exists()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_have_no_old_flags(path):
    text = path.read_text(encoding="utf-8")
    assert not [flag for flag in OLD_FLAGS if re.search(rf"{flag}(?![\w-])", text)]
    assert not re.search(r"slp_transformer\.(" + "|".join(OLD_PACKAGES) + r")\b", text)
