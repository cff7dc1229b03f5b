"""A chapter's built notebook runs in an empty folder, with the wheel alone."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # one process builds it
nbclient = pytest.importorskip("nbclient")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what the wheel holds, and nothing else of the project."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    made = subprocess.run([*build, "-w", folder, ROOT], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


@pytest.mark.parametrize("stem", ["01_attention", "04_input"])
def test_a_built_notebook_runs_in_an_empty_folder(stem, site, installed, tmp_path):
    notebook = nbformat.read(site / "chapters" / stem / f"{stem}.ipynb", as_version=4)
    first, *others = notebook.cells
    assert first.source.startswith("# In a folder")  # nothing is fetched from an unknown address
    where = "import slp_transformer\nprint(slp_transformer.__file__)"
    notebook.cells = [nbformat.v4.new_code_cell(where), *others]
    environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env=environment)
    (said,) = notebook.cells[0].outputs
    assert said["text"].startswith(str(installed))
    assert list(tmp_path.iterdir()) == []  # it left nothing behind
