"""Who knows whom: equations, then wings, then recipes, then the command line (see pyproject)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_knowledge_flows_one_way():
    """As the contract in pyproject.toml says, which names every room."""
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", lint],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert result.returncode == 0, result.stdout + result.stderr
