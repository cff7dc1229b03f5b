"""Names that were given up stay away: nobody outside this project would have guessed them."""

import ast
import importlib
import re
import subprocess
import sys
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


@pytest.mark.parametrize(
    ("package", "old", "name"),
    [
        ("interpret", "attention_weights", "translation_attention_weights"),
        ("generation", "GenerationResult", "GeneratedSequence"),
        ("data", "PaddedPairs", "PaddedPairSource"),
        ("data", "read_documents", "iter_documents"),
    ],
)
def test_a_published_name_that_changed_works_for_one_version_more(package, old, name):
    module = importlib.import_module(f"slp_transformer.{package}")
    with pytest.warns(DeprecationWarning, match=f"slp_transformer.{package}.{old} is now {name}"):
        assert getattr(module, old) is getattr(module, name)
    assert old not in module.__all__ and old not in dir(module)


OLD_ARGUMENTS = """
import warnings
from slp_guitar import Bar, Tab, format_tab
tab = Tab(bars=(Bar(6, ()),), steps_per_quarter=2)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert format_tab(tab, steps_per_beat=2) == format_tab(tab, number_beats_every=2)
    assert format_tab(tab, show_timing=True) == format_tab(tab, with_time_lines=True)
print(*(f"{warning.filename} {warning.message}" for warning in told))
"""


def test_arguments_of_format_tab_go_by_their_old_names_too():
    """In a process of its own: here the types of arguments are checked by their present names."""
    told = subprocess.check_output([sys.executable, "-c", OLD_ARGUMENTS], text=True)
    names = "steps_per_beat is now number_beats_every", "show_timing is now with_time_lines"
    assert told == "".join(f"<string> {name}. " for name in names)[:-1] + "\n"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_have_no_old_flags(path):
    text = path.read_text(encoding="utf-8")
    assert not [flag for flag in OLD_FLAGS if re.search(rf"{flag}(?![\w-])", text)]
    assert not re.search(r"slp_transformer\.(" + "|".join(OLD_PACKAGES) + r")\b", text)
