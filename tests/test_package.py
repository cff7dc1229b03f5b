"""What the package promises as a whole: it needs torch alone, runs nothing, explains everything."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import equations
import pytest
import torch
from own_process import environment

import slp_transformer

PACKAGE = Path(slp_transformer.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


# --- Importing ---------------------------------------------------------------------------------

IMPORT = """
import importlib, sys
import torch

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
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


def run_import(modules: list[str], blocked: set[str], allowed: set[str], then: str, cwd: Path):
    script = IMPORT.format(
        modules=modules, blocked=blocked, allowed=sorted(allowed | {"slp_transformer"}), then=then
    )
    return subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", script],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(),
        timeout=300,
    )


def names_required(distribution: str) -> set[str]:
    """What a distribution itself asks for, extras left out, as names to import."""
    required = importlib.metadata.requires(distribution) or []
    names = {re.match(r"[\w.-]+", r)[0] for r in required if "extra ==" not in r}
    return {name.lower().replace("-", "_") for name in names}


TORCHS_OWN = {"torch", "functorch", "numpy", *names_required("torch")}
USE = """
from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM
config = TransformerConfig(23, 11, 15, 3, 2)
ids = torch.zeros(2, 7, dtype=torch.int64)
assert TransformerLM(config)(ids).shape == (2, 7, 23)
assert EncoderDecoder(config)(ids, ids).shape == (2, 7, 23)
"""


@pytest.mark.parametrize(
    "modules", [["slp_transformer"], list(MODULES)], ids=["top", "every module"]
)
def test_importing_needs_torch_alone_and_prints_nothing(modules, tmp_path):
    """As on a machine where only torch is installed: shapes are then no longer checked."""
    blocked = set(
        "jaxtyping beartype matplotlib transformers jupytext mkdocs IPython safetensors pydantic "
        "tqdm tensorboard tokenizers pooch mido guitarpro".split()
    )
    result = run_import(modules, blocked, TORCHS_OWN, USE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "" and result.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_importing_takes_nothing_but_jaxtyping_where_that_is_installed(tmp_path):
    shapes = {"jaxtyping", *names_required("jaxtyping")}
    result = run_import(["slp_transformer"], set(), TORCHS_OWN | shapes, USE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "" and result.stderr == ""


def test_shapes_without_jaxtyping_are_plain_tensors(tmp_path):
    then = """
from slp_transformer._internal.shape_types import Bool, Float, Int
for kind in (Bool, Float, Int):
    assert kind[torch.Tensor, "N d"] is torch.Tensor
"""
    result = run_import(["slp_transformer"], {"jaxtyping"}, TORCHS_OWN, then, tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_shape_checks_of_these_tests_are_on():
    from jaxtyping import TypeCheckError

    with pytest.raises(TypeCheckError):
        slp_transformer.lm_head(torch.zeros(7, 5), torch.zeros(3, 4))


# --- Annotations ------------------------------------------------------------------------------


def test_no_module_puts_off_its_annotations():
    """jaxtyping reads them as they stand."""
    for module, path in MODULES.items():
        assert "from __future__ import annotations" not in path.read_text("utf-8"), module


# --- Explaining --------------------------------------------------------------------------------


def docstrings(module: str) -> Iterator[tuple[str, str]]:
    """The names and docstrings of a module and of what is defined in it."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield f"{module}.{getattr(node, 'name', '')}", ast.get_docstring(node) or ""


def raised(node: ast.AST) -> set[str]:
    """Names of the exceptions that a function's body raises."""
    found = (inner.exc for inner in ast.walk(node) if isinstance(inner, ast.Raise) and inner.exc)
    names = {ast.unparse(getattr(what, "func", what)).rpartition(".")[2] for what in found}
    return {name for name in names if name[0].isupper()}


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_say_what_is_raised(module):
    """A class's docstring may say it for the method that makes its objects."""
    for owner in ast.walk(tree(module)):
        if not isinstance(owner, ast.Module | ast.ClassDef):
            continue
        for node in (child for child in owner.body if isinstance(child, ast.FunctionDef)):
            making = node.name in ("__init__", "__post_init__", "__new__")
            if node.name.startswith("_") and not making:
                continue
            where = (node, owner) if making else (node,)
            text = "".join((ast.get_docstring(n) or "").partition("Raises:")[2] for n in where)
            missing = [kind for kind in raised(node) if kind not in text]
            assert not missing, f"{node.name} raises {missing}, but has no such line under Raises:"


def test_everything_offered_at_the_top_is_there_and_sorted():
    assert slp_transformer.__all__ == sorted(slp_transformer.__all__)
    for name in slp_transformer.__all__:
        assert getattr(slp_transformer, name).__doc__, name


# "`qkv-final` to `head-out` (8.10-8.14, 7.10-7.14)": slugs, and the numbers that follow them.
SLUG = r"`([^`\s]+)`"
SOURCE = re.compile(rf"((?:{SLUG}(?:, | and | to |,? ))*{SLUG}) \(([^)]*)\)")
NUMBER = re.compile(r"(?<![\d.])\d+\.\d+(?!\.?\d)")
NOT_EQUATIONS = re.compile(r"(?:sections?|exercises?) [\d.]+\w*(?: and [\d.]+\w*)*")


def sources(docstring: str) -> Iterator[tuple[list[str], set[str]]]:
    """The slugs and the numbers next to them in a docstring's "Source:" paragraph."""
    for paragraph in docstring.split("\n\n"):
        text = " ".join(paragraph.split())
        if text.startswith("Source:"):
            for match in SOURCE.finditer(text):
                numbers = NUMBER.findall(NOT_EQUATIONS.sub("", match[4]))
                yield re.findall(SLUG, match[1]), set(numbers)


WITH_SOURCE = {
    name: docstring
    for module in MODULES
    for name, docstring in docstrings(module)
    if "Source:" in docstring
}


def test_sources_are_found():
    """The next test is no test if the pattern finds nothing."""
    found = list(sources(WITH_SOURCE["slp_transformer.multi_head.AttentionHead"]))
    assert found == [
        (["qkv", "head-out"], {"8.9", "8.14", "7.9", "7.14"}),
        (["QKV", "head-par", "A-out"], {"8.32", "8.34", "7.33", "7.35"}),
    ]
    assert len(WITH_SOURCE) > 20


@pytest.mark.parametrize("name", WITH_SOURCE)
def test_sources_name_known_equations_by_their_numbers(name):
    for slugs, named in sources(WITH_SOURCE[name]):
        known = [slug for slug in slugs if slug in equations.ALL]
        # "with `H_enc`, `cross-QKV` and …": names of the code may stand among them.
        unknown = [slug for slug in slugs if slug not in equations.ALL and "_" not in slug]
        assert known and not unknown, f"{name}: unknown equations {unknown or slugs}"
        allowed = set().union(*(equations.may_be_named(slug) for slug in known))
        assert named <= allowed, f"{name}: {named - allowed} are not numbers of {known}"
        # A list or range of slugs names the numbers of its last, and mostly of its first.
        assert equations.numbers(known[-1]) <= named, f"{name}: {known[-1]} lacks a number"
        if len(known) == 1 or " to " in WITH_SOURCE[name]:
            continue
        assert not equations.numbers(known[0]) or equations.numbers(known[0]) & named


def test_every_numbered_equation_of_the_chapter_has_a_home():
    """Single slugs, or the ends of a range that covers them, somewhere in the package."""
    order = list(equations.NUMBERED)
    covered = set()
    for docstring in WITH_SOURCE.values():
        text = " ".join(docstring.split())
        covered |= set(re.findall(SLUG, text)) & set(order)
        for first, last in re.findall(rf"{SLUG} to {SLUG}", text):
            covered |= set(order[order.index(first) : order.index(last) + 1])
    assert covered == set(order), sorted(set(order) - covered)
