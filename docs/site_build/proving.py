"""The tests that prove the equations, as the site shows them.

A test names its equations: `@pytest.mark.proves("head-par", "head")`.
"""

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Proof:
    """A test that proves equations.

    Attributes:
        file: its file within the project.
        name: its name.
        slugs: the equations.
        source: the test itself, decorators and all.
    """

    file: str
    name: str
    slugs: tuple[str, ...]
    source: str

    @property
    def id(self) -> str:
        """Its name to pytest."""
        return f"{self.file}::{self.name}"


def proofs(root: Path) -> list[Proof]:
    """All tests that prove an equation, in the order of their files."""
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if ".proves(" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and (slugs := _slugs(node)):
                first = min(decorator.lineno for decorator in node.decorator_list)
                source = "\n".join(text.splitlines()[first - 1 : node.end_lineno])
                file = path.relative_to(root).as_posix()
                found.append(Proof(file, node.name, slugs, source))
    return found


def _slugs(test: ast.FunctionDef) -> tuple[str, ...]:
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.proves":
            return tuple(argument.value for argument in decorator.args)
    return ()


def markdown(found: list[Proof], loops: str) -> str:
    """The page of proofs: each test with the equations that it proves, and the loops they use."""
    parts = ["# Proofs", "", _INTRODUCTION, ""]
    for file in dict.fromkeys(proof.file for proof in found):
        parts += [f"## {file}", ""]
        for proof in (one for one in found if one.file == file):
            proves = " · ".join(f"[`{slug}`](equations.md#{slug})" for slug in proof.slugs)
            parts += [f"### `{proof.name}` {{ #{proof.name} }}", "", f"Proves {proves}.", ""]
            parts += ["```python", proof.source, "```", ""]
    parts += ["## tests/helpers/loops.py { #loops }", "", _LOOPS, "", "```python", loops, "```", ""]
    return "\n".join(parts)


_INTRODUCTION = (
    "The tests that prove the equations, as they stand in `tests/`. Each compares the package with "
    "numbers worked out by hand, with [loops](#loops) written as the book writes them, or with "
    "PyTorch's own modules under the same weights. `python -m pytest` runs them all."
)
_LOOPS = "The equations as loops over tokens, heads and features, with which the tests compare."
