"""The sections of the docs in which messages end: they are there, and messages name them."""

import pydoc
import re
from email.message import Message
from pathlib import Path

import pytest

import slp_transformer
from slp_transformer._internal import docs_sections
from slp_transformer._internal.docs_sections import DOCS_SECTIONS, see
from slp_transformer._internal.plugins import PACKAGES
from slp_transformer._internal.setting_names import FOREIGN_NAMES
from slp_transformer.cli import main
from slp_transformer.modern.families import HF_FAMILIES

ROOT = Path(slp_transformer.__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("topic", DOCS_SECTIONS)
def test_the_page_has_the_section(topic):
    page, heading, _ = DOCS_SECTIONS[topic]
    lines = (DOCS / page).read_text("utf-8").splitlines()
    assert any(re.fullmatch(f"#+ {re.escape(heading)}", line) for line in lines)
    assert see(topic) == f' See "{heading}" in docs/{page}.'


@pytest.mark.parametrize("topic", DOCS_SECTIONS)
def test_without_the_docs_a_message_names_help_that_is_installed(topic, at, capsys, monkeypatch):
    monkeypatch.setattr(docs_sections, "ROOT", at)  # as in a wheel
    monkeypatch.setattr(docs_sections, "metadata", lambda name: Message())
    own_help = DOCS_SECTIONS[topic][2]
    assert see(topic) == (f" See {own_help}." if own_help else "")
    if own_help.startswith("slp-transformer "):
        assert main(own_help.split()[1:]) == 0 and len(capsys.readouterr().out) > 500
    elif own_help:
        pydoc.help(own_help.split('"')[1])
        shown = capsys.readouterr().out
        assert len(shown) > 300 and "No Python documentation found" not in shown


def test_a_wheel_of_a_repository_names_its_pages(at, monkeypatch):
    """The metadata are those that setup.py writes when REPO_URL is stated."""
    told = Message()
    told["Project-URL"] = "Source, https://host/a/b"
    told["Project-URL"] = "Changelog, https://host/a/b/blob/v1.2.3/CHANGELOG.md"
    monkeypatch.setattr(docs_sections, "ROOT", at)
    monkeypatch.setattr(docs_sections, "metadata", lambda name: told)
    assert see("install") == ' See "Install" in https://host/a/b/blob/v1.2.3/docs/reuse.md.'


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
