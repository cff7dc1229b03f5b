"""A chapter's built notebook runs in an empty folder, with the wheel alone."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import exercises
import nbformat
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # one process builds it
nbclient = pytest.importorskip("nbclient")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the project."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    made = subprocess.run([*build, "-w", folder, ROOT], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel):
    """A folder with what the wheel holds, and nothing else of the project."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.with_name("installed"))
    return wheel.with_name("installed")


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


ADDRESS = "https://git.example/teacher/course"


@pytest.mark.parametrize("stem", ["01_attention", "07_training"])
def test_the_exercises_of_a_published_site_install_the_package_and_run(stem, wheel, tmp_path):
    text = (ROOT / "chapters" / "exercises" / f"{stem}.py").read_text(encoding="utf-8")
    notebook = exercises.notebook(text, stem, repository=ADDRESS)
    _, install, *others = notebook.cells
    assert f"@ git+{ADDRESS}" in install.source
    # The wheel stands in for the address; what it needs is there, and comes from no index.
    install.source = install.source.replace(f"git+{ADDRESS}", wheel.as_uri())
    where = "import slp_transformer\nprint(slp_transformer.__file__)"
    notebook.cells = [install, nbformat.v4.new_code_cell(where), *others]
    library = tmp_path / "library"
    library.mkdir()
    only_the_wheel = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_TARGET": str(library)}
    environment = os.environ | only_the_wheel
    environment |= {"PYTHONPATH": str(library), "PYTHONSAFEPATH": "1"}
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=120, resources=resources)
    client.execute(env=environment)
    assert notebook.cells[1].outputs[0]["text"].startswith(str(library))
