"""What the package promises as a whole: it needs torch alone, runs nothing, explains everything."""

import ast
import importlib
import importlib.metadata
import inspect
import re
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from pkgutil import resolve_name

import jaxtyping
import pytest
import torch
from own_process import python

import slp_transformer
from slp_guitar.fingering.seq2seq import interleave_notes_and_targets
from slp_transformer._internal.equations import load_equations
from slp_transformer._internal.plugins import PACKAGES
from slp_transformer.embedding import one_hot_lookup

ROOT = Path(slp_transformer.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


IMPORT = """
import importlib, sys
for name in {blocked!r}:
    sys.modules[name] = None
import torch
before, random = set(sys.modules), torch.get_rng_state()
for name in {modules!r}:
    importlib.import_module(name)
assert torch.equal(torch.get_rng_state(), random), "importing drew random numbers"
assert torch.get_default_dtype() == torch.float32
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
others = new - set(sys.stdlib_module_names) - set({allowed!r})
assert not others, f"importing also imported {{sorted(others)}}"
{then}
"""


NO_NUMPY = "ignore:Failed to initialize NumPy"  # PyTorch says so when it is imported


def run_import(modules: list[str], blocked: set[str], allowed: set[str], then: str, cwd: Path):
    script = IMPORT.format(
        modules=modules, blocked=blocked, allowed=sorted(allowed | {*PACKAGES}), then=then
    )
    return python("-W", "error::SyntaxWarning", "-W", NO_NUMPY, "-c", script, cwd=cwd)


def test_the_site_is_built_with_what_its_extra_brings():
    """A page offers Guitar Pro and MIDI files, whose libraries are those of another extra."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert "slp-transformer[guitar]" in extras["docs"]


def names_required(distribution: str) -> set[str]:
    """What a distribution itself asks for, extras left out, as names to import."""
    required = importlib.metadata.requires(distribution) or []
    names = {re.match(r"[\w.-]+", r)[0] for r in required if "extra ==" not in r}
    return {name.lower().replace("-", "_") for name in names}


TORCHS_OWN = {"torch", "functorch", "numpy", *names_required("torch")}
USE = """
from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM
from slp_transformer._internal.shape_types import Bool, Float, Int
config = TransformerConfig(23, 11, 15, 3, 2)
ids = torch.zeros(2, 7, dtype=torch.int64)
assert TransformerLM(config)(ids).shape == (2, 7, 23)
assert EncoderDecoder(config)(ids, ids).shape == (2, 7, 23)
"""
TRAIN = """
from slp_transformer.training import train
stream = torch.arange(7).repeat(5)
train(TransformerLM(TransformerConfig(7, 5, 6, 2, 1)), stream, stream, steps=1)
"""
NAMES = """
import slp_transformer
assert slp_transformer.attention.attention.__name__ == "attention"
from slp_transformer import *
assert TransformerLM.__name__ == "TransformerLM" and generate.__name__ == "generate"
"""
UNCHECKED = """
for kind in (Bool, Float, Int):
    assert kind[torch.Tensor, "N d"] is torch.Tensor
"""


@pytest.mark.slow
def test_importing_every_module_needs_torch_alone_and_prints_nothing(tmp_path):
    """As on a machine where only torch is installed: it trains, and shapes are plain tensors."""
    blocked = set(
        "numpy jaxtyping beartype matplotlib transformers jupytext mkdocs IPython safetensors "
        "pydantic tqdm tensorboard tokenizers pooch mido guitarpro tyro".split()
    )
    result = run_import(list(MODULES), blocked, TORCHS_OWN, USE + TRAIN + UNCHECKED, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "" and result.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_importing_takes_nothing_but_jaxtyping_and_offers_modules_and_all_names(tmp_path):
    shapes = {"jaxtyping", *names_required("jaxtyping")}
    result = run_import(["slp_transformer"], set(), TORCHS_OWN | shapes, NAMES + USE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "" and result.stderr == ""


BROKEN_JAXTYPING = """
class Float:
    def __class_getitem__(cls, item):
        return np.float32
Bool = Int = Float
"""


@pytest.mark.slow
def test_shapes_are_plain_tensors_with_a_jaxtyping_that_needs_numpy(tmp_path):
    """As with jaxtyping 0.3.0 to 0.3.3 where numpy is missing."""
    (tmp_path / "jaxtyping.py").write_text(BROKEN_JAXTYPING, encoding="utf-8")
    allowed = TORCHS_OWN | {"jaxtyping"}
    result = run_import(["slp_transformer"], set(), allowed, USE + UNCHECKED, tmp_path)
    assert result.returncode == 0, result.stderr


LISTS = {
    "packages of the wheel": lambda tool: tool["setuptools"]["packages"]["find"]["include"],
    "data of the wheel": lambda tool: tool["setuptools"]["package-data"],
    "types": lambda tool: [name for name in tool["mypy"]["files"] if name != "benchmarks"],
    "layers": lambda tool: tool["importlinter"]["root_packages"],
    "shapes in annotations": lambda tool: [
        name for name, off in tool["ruff"]["lint"]["per-file-ignores"].items() if off[0] == "F722"
    ],
}


@pytest.mark.parametrize("tool", LISTS)
def test_each_tool_looks_at_all_our_packages(tool):
    """What is no Python and cannot ask for `PACKAGES`; and no other folder here is a package."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        named = LISTS[tool](tomllib.load(file)["tool"])
    assert {re.match(r"\w+", name)[0] for name in named} == {*PACKAGES}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(PACKAGES)


@pytest.mark.parametrize(
    "file", ["noxfile.py", ".github/workflows/tests.yml", ".ci/check_wheel.py"]
)
def test_files_that_name_a_package_name_all(file):
    text = (ROOT / file).read_text("utf-8")
    assert all(re.search(rf'["\s]{name}["\s]', text) for name in PACKAGES)


def test_shapes_are_checked_in_all_our_packages():
    """A matrix is given where a row is asked for, or integers where floats are."""
    matrix = torch.zeros(2, 3, dtype=torch.int64)
    for function in (interleave_notes_and_targets, one_hot_lookup):
        with pytest.raises(jaxtyping.TypeCheckError):
            function(matrix, matrix)


def test_no_module_puts_off_its_annotations():
    """jaxtyping reads them as they stand."""
    for module, path in MODULES.items():
        assert "from __future__ import annotations" not in path.read_text("utf-8"), module


def docstrings(module: str) -> Iterator[tuple[str, str]]:
    """The names and docstrings of a module and of what is defined in it."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield f"{module}.{getattr(node, 'name', '')}", ast.get_docstring(node) or ""


BOOK = load_equations()
SOURCE = re.compile(r"^Source:.*?(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
DOCSTRINGS = dict(named for module in MODULES for named in docstrings(module))
SOURCES = {name: " ".join(" ".join(SOURCE.findall(d)).split()) for name, d in DOCSTRINGS.items()}


def test_sources_name_known_equations():
    assert BOOK.slugs_named_in(SOURCES["slp_transformer.multi_head.AttentionHead"])[:2] == [
        "qkv",
        "head-out",
    ]
    for name, text in SOURCES.items():
        named = re.findall(r"(?:Source: |(?=[^`]*-))`([^`\s]+)`", text)
        assert set(named) <= set(BOOK.slugs), (name, named)


def test_every_numbered_equation_has_a_home_in_the_package():
    covered = {slug for text in SOURCES.values() for slug in BOOK.slugs_named_in(text)}
    numbered = {slug for slug in BOOK.slugs if BOOK.numbers_of(slug)}
    assert numbered <= covered, sorted(numbered - covered)


def test_each_equation_leads_to_one_definition():
    """Other docstrings may tell of it, but one alone computes it, and it is public."""
    named = {name: BOOK.slugs_named_in(text) for name, text in SOURCES.items()}
    homes = {slug: [name for name in named if slug in named[name]] for slug in BOOK.slugs}
    assert {slug: names for slug, names in homes.items() if len(names) != 1} == {}
    assert [n for (n,) in homes.values() if "._" in n or inspect.ismodule(resolve_name(n))] == []


def test_no_docstring_has_the_number_of_an_equation():
    """Numbers move from draft to draft: `equations.toml` has them, a docstring names the slug."""
    known = {number for slug in BOOK.slugs for number in BOOK.numbers_of(slug)}
    for name, text in DOCSTRINGS.items():
        if not name.startswith("slp_transformer._internal.equations."):
            written = re.findall(r"(?<![\d.])\d{1,2}\.\d{1,2}(?![\d.]*(?:\d|e))", text)
            assert not known & set(written), (name, written)


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


def test_every_name_that_chapters_benchmarks_and_the_site_import_is_there():
    """A chapter shows a rename only when it runs, minutes later."""
    missing = []
    for folder in ("chapters", "benchmarks", "docs/site_build", "docs/example_task"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.ImportFrom) or node.module is None:
                    continue
                if node.module.partition(".")[0] in PACKAGES:
                    home = importlib.import_module(node.module)
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                    missing += [
                        (path.name, name)
                        for name in names
                        if name not in MODULES and not hasattr(home, name.rpartition(".")[2])
                    ]
    assert missing == []


def test_every_package_with_public_names_is_listed():
    inits = [path for path in MODULES.values() if path.name == "__init__.py"]
    offering = [path.parent for path in inits if "__all__" in path.read_text("utf-8")]
    found = {".".join(path.relative_to(ROOT).parts) for path in offering}
    assert {name for name in found if "._internal" not in name} == set(LISTED)


def test_no_module_imports_itself_by_way_of_others():
    """Neither on import nor later, in a function; imports for type checkers alone do not count."""
    grimp = pytest.importorskip("grimp", reason="it comes with import-linter")
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which shows the circle


@pytest.mark.parametrize("package", ["slp_transformer", "slp_transformer.modern", "slp_guitar"])
def test_dir_names_what_is_public_and_nothing_else_of_the_imports(package):
    module = importlib.import_module(package)
    assert {*module.__all__} <= {*dir(module)}
    assert not {"attach", "TYPE_CHECKING"} & {*dir(module)}
    assert not hasattr(module, "no_such_name") and not hasattr(module, "__no_such_name__")
