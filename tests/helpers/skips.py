"""A run that may not pass by skipping: where SLP_SKIPS names a list, any other skip fails it.

The list is TOML, a table `[[skip]]` for each kind: `test`, a pattern of the tests' ids, `reason`, a
pattern of what the skip says, `platform`, as `sys.platform` has it, and `why` it is right there.
"""

import os
import sys
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

KEYS = {"test", "reason", "platform", "why"}


def read_skips(path: Path) -> list[dict[str, str]]:
    """Read the list, whose entries have all four keys and nothing else."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["skip"]
    for entry in listed:
        assert entry.keys() == KEYS and all(entry.values()), f"{path} has {entry}"
    return listed


def unlisted(skipped: Iterable, listed: list[dict[str, str]], platform: str) -> list[str]:
    """Return a line for each report of a skip that no entry of the list allows."""
    lines = set()
    for report in skipped:
        _, _, reason = report.longrepr
        reason = reason.removeprefix("Skipped: ")
        allowed = any(
            entry["platform"] == platform
            and fnmatchcase(report.nodeid, entry["test"])
            and fnmatchcase(reason, entry["reason"])
            for entry in listed
        )
        if not allowed:
            lines.add(f"{report.nodeid}: {reason}")
    return sorted(lines)


def pytest_sessionfinish(session):
    """Fail the session for what was skipped and is not listed, and print it."""
    path = os.environ.get("SLP_SKIPS")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if path and reporter and not hasattr(session.config, "workerinput"):  # where all comes together
        lines = unlisted(reporter.stats.get("skipped", ()), read_skips(Path(path)), sys.platform)
        for line in lines:
            reporter.write_line(f"Skipped, which {path} does not allow: {line}", red=True)
        if lines and session.exitstatus == 0:
            session.exitstatus = 1
