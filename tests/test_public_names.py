"""The public names, listed: a change of them shows in a diff, and belongs in the changelog."""

import importlib
from pathlib import Path

import pytest

LISTED = {
    module: names.split()
    for module, _, names in (
        line.partition(":")
        for line in Path(__file__).with_name("public_names.txt").read_text("utf-8").splitlines()
    )
}


@pytest.mark.parametrize("module", LISTED)
def test_public_names_are_those_listed_and_exist(module):
    loaded = importlib.import_module(module)
    assert sorted(set(loaded.__all__)) == LISTED[module], "mend public_names.txt and CHANGELOG.md"
    assert [name for name in LISTED[module] if not hasattr(loaded, name)] == []


def test_every_package_with_public_names_is_listed():
    package = Path(importlib.import_module("slp_transformer").__file__).parent
    inits = [path for path in package.rglob("__init__.py") if "__all__" in path.read_text("utf-8")]
    found = {".".join(path.parent.relative_to(package.parent).parts) for path in inits}
    assert found == set(LISTED)
