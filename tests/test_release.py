"""What is built for others: README's links, versions, licenses."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest
import skips
from sampled import mostly_slow

import slp_transformer

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def load(path: str):
    """A script of the repository, as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SETUP, CHECK = load("setup.py"), load(".ci/check_wheel.py")


def test_links_of_the_repository_become_absolute_and_others_stay():
    text = (
        "[N](docs/n.md), ![a tab](docs/assets/t.svg), [B](https://book.org/), [here](#there)"
        '<source srcset="docs/d.webp"><img src="docs/l.webp">'
    )
    assert SETUP.make_links_absolute(text, "https://host/a/b", "v1.2.3") == (
        "[N](https://host/a/b/blob/v1.2.3/docs/n.md), "
        "![a tab](https://host/a/b/raw/v1.2.3/docs/assets/t.svg), "
        "[B](https://book.org/), [here](#there)"
        '<source srcset="https://host/a/b/raw/v1.2.3/docs/d.webp">'
        '<img src="https://host/a/b/raw/v1.2.3/docs/l.webp">'
    )


def test_with_the_repositorys_address_no_link_of_the_readme_stays_relative():
    """Without it, the file itself is what is built, and no address is made up."""
    told = SETUP.describe("https://host/a/b", "1.2.3")
    assert len(CHECK.RELATIVE_LINK.findall(README)) > 10
    assert not CHECK.RELATIVE_LINK.findall(told["long_description"])
    assert told["project_urls"]["Changelog"] == "https://host/a/b/blob/v1.2.3/CHANGELOG.md"
    plain = SETUP.describe("", "1.2.3")
    assert plain["long_description"] == README and list(plain["project_urls"]) == ["Book"]


def test_an_address_is_read_from_one_variable_and_checked():
    assert SETUP.read_repository({"REPO_URL": "https://host/a/b/"}) == "https://host/a/b"
    assert SETUP.read_repository({}) == ""
    with pytest.raises(SystemExit, match="has to be like https://HOST"):
        SETUP.read_repository({"REPO_URL": "host/a"})


def test_what_the_readme_links_to_is_there():
    found = CHECK.RELATIVE_LINK.findall(README)
    assert len(found) > 10 and [name for name in found if not (ROOT / name).exists()] == []
    assert len(README.splitlines()) <= 100


def test_all_places_name_one_version():
    version = slp_transformer.__version__
    assert SETUP.read_version() == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    wheels = re.findall(
        r"slp_transformer-([\d.]+)-py3", (ROOT / "docs" / "reuse.md").read_text("utf-8")
    )
    assert set(wheels) == {version}
    CHECK.check_version(version, f"v{version}")
    with pytest.raises(SystemExit, match=r"The tag is v0\.1\.0, but the version is"):
        CHECK.check_version(version, "v0.1.0")
    with pytest.raises(SystemExit, match=r"no section and date for 99\.0\.0"):
        CHECK.check_version("99.0.0", "v99.0.0")


def declared() -> Message:
    """The licenses of pyproject.toml, as an archive's metadata have them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    message = Message()
    message["License-Expression"] = project["license"]
    for pattern in project["license-files"]:
        for path in sorted(ROOT.glob(pattern)):
            message["License-File"] = path.relative_to(ROOT).as_posix()
    return message


def test_metadata_name_the_licenses_of_all_that_is_not_ours():
    metadata = declared()
    assert CHECK.find_metadata_faults(metadata) == []
    metadata.replace_header("License-Expression", "MIT AND MPL-2.0 AND OFL-1.1 AND Zlib")
    metadata.replace_header("License-File", "COPYING")  # the first: LICENSE
    assert CHECK.find_metadata_faults(metadata) == [
        "license Apache-2.0 of THIRD_PARTY.md is not named",
        "license BSD-3-Clause of THIRD_PARTY.md is not named",
        "license CC-BY-3.0 of THIRD_PARTY.md is not named",
        "license Zlib is named, but not in THIRD_PARTY.md",
        "LICENSE is missing",
    ]


FOREIGN = re.compile(r"\.(?:min\.(?:js|css)|woff2?|ttf|otf|sf[23])$|moby_dick|live/editor\.js$")


def test_each_file_of_others_has_a_row():
    """Bundles, fonts and sounds that git knows; and what the table names is there."""
    table = (ROOT / "THIRD_PARTY.md").read_text("utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    patterns = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    named = {p.relative_to(ROOT).as_posix() for name in patterns for p in ROOT.glob(name)}
    assert all(any(ROOT.glob(name)) for name in patterns)
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    foreign = {name for name in listed.splitlines() if FOREIGN.search(name)}
    assert len(foreign) > 20 and foreign <= named, sorted(foreign - named)
    texts = re.findall(r"`([^`]*LICENSE\.txt)`", table)
    assert [name for name in texts if not (ROOT / name).is_file()] == []


LISTED = """[[skip]]
test = "test_some.py::test_gpu*"
reason = "no GPU"
platform = "linux"
why = "There is none."
"""


@pytest.mark.parametrize(
    ("skipped", "platform", "expected"),
    [
        (("test_some.py::test_gpu[3]", "Skipped: no GPU"), "linux", []),
        (("test_some.py::test_gpu[3]", "Skipped: no GPU"), "darwin", ["no GPU"]),
        (("test_some.py::test_gpu[3]", "Skipped: no compiler"), "linux", ["no compiler"]),
        (("test_other.py", "Skipped: could not import 'mido'"), "linux", ["import 'mido'"]),
    ],
)
def test_a_skip_that_is_not_listed_is_named(tmp_path, skipped, platform, expected):
    (tmp_path / "skips.toml").write_text(LISTED, encoding="utf-8")
    nodeid, reason = skipped
    report = SimpleNamespace(nodeid=nodeid, longrepr=("file.py", 3, reason))
    found = skips.unlisted([report], skips.read_skips(tmp_path / "skips.toml"), platform)
    assert len(found) == len(expected)
    assert all(
        line.startswith(nodeid) and some in line for line, some in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("workers", mostly_slow(["0", "2"], "0"))
@pytest.mark.parametrize(("variable", "rc"), [("SLP_SKIPS", 1), ("SLP_OTHER", 0)])
def test_a_session_with_a_skip_that_is_not_listed_fails(tmp_path, workers, variable, rc):
    """In the process that gathers what others ran, and for a whole file that is skipped."""
    (tmp_path / "skips.toml").write_text(LISTED, encoding="utf-8")
    (tmp_path / "test_one.py").write_text("import pytest\npytest.importorskip('nowhere')\n")
    (tmp_path / "test_two.py").write_text("def test_it(): pass\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "skips", "-n", workers, "-o", "addopts="),
            *("--rootdir", str(tmp_path), str(tmp_path)),
        ],
        cwd=tmp_path,
        env=os.environ
        | {"SLP_SKIPS": "", variable: "skips.toml", "PYTHONPATH": str(ROOT / "tests" / "helpers")},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == rc, done.stdout
    assert ("does not allow: test_one.py" in done.stdout) == bool(rc)


def test_the_list_of_skips_says_why():
    assert all(each["why"].endswith(".") for each in skips.read_skips(ROOT / ".ci/skips.toml"))
