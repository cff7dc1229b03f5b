"""The sections of the docs in which messages end: they are there, and messages name them."""

import re
from pathlib import Path

import pytest

import slp_transformer
from slp_transformer._internal.docs_sections import DOCS_SECTIONS, see
from slp_transformer._internal.plugins import PACKAGES
from slp_transformer._internal.setting_names import FOREIGN_NAMES
from slp_transformer.modern.families import HF_FAMILIES

ROOT = Path(slp_transformer.__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("topic", DOCS_SECTIONS)
def test_the_page_has_the_section(topic):
    page, heading = DOCS_SECTIONS[topic]
    lines = (DOCS / page).read_text("utf-8").splitlines()
    assert any(re.fullmatch(f"#+ {re.escape(heading)}", line) for line in lines)
    assert see(topic) == f' See "{heading}" in docs/{page}.'


def test_messages_name_each_section_of_the_table_and_no_other():
    sources = [path.read_text("utf-8") for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    named = {t for text in sources for t in re.findall(r"""see\(["']([a-z ]+)["']\)""", text)}
    assert named == set(DOCS_SECTIONS)


def test_hugging_faces_names_are_those_that_configurations_are_read_by():
    """One name may be ours in the families' records and in the table of what others call it."""
    theirs = {
        (name, ours)
        for family in HF_FAMILIES.values()
        for ours, (name, _) in family.settings.items()
    }
    read = dict(theirs)
    for name in read.keys() & FOREIGN_NAMES.keys():
        assert read[name] in FOREIGN_NAMES[name].split(", "), name
    for name, ours in theirs:
        if name != ours and ours != "num_segments":
            assert ours in FOREIGN_NAMES.get(name, "").split(", "), name
