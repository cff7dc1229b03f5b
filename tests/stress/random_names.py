"""Draw forty public names of the package, to show to somebody who has never seen the code.

    python tests/stress/random_names.py "$(git rev-parse HEAD)"

The seed, such as the hash of a commit, decides which. Each line has a module's path, a name and its
parameters, without a docstring: can a reader say what it does?
"""

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def names(body: list[ast.stmt], owner: str = "") -> Iterator[str]:
    """Functions, classes, methods and constants that have no underscore in front."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if isinstance(node, ast.FunctionDef):
                yield f"{owner}{node.name}({', '.join(parameters(node))})"
                continue
            made = (n for n in node.body if getattr(n, "name", "") == "__init__")
            fields = (n.target.id for n in node.body if isinstance(n, ast.AnnAssign))
            given = next(map(parameters, made), None)
            yield f"class {node.name}({', '.join(fields if given is None else given)})"
            yield from names([n for n in node.body if hasattr(n, "name")], f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not owner:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = (n.id for target in targets for n in ast.walk(target) if hasattr(n, "id"))
            yield from (name for name in found if name.isupper() and not name.startswith("_"))


def parameters(function: ast.FunctionDef) -> list[str]:
    """Its parameters as they are written, without their types and without self."""
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            node.annotation = None
    words = ast.unparse(function.args).split(", ")
    return [word for word in words if word not in ("", "self", "cls")]


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seed", help="the hash of a commit, say")
    parser.add_argument("--count", type=int, default=40, help="how many names [40]")
    given = parser.parse_args()
    found = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "slp_transformer").rglob("*.py"))
        for name in names(ast.parse(path.read_text(encoding="utf-8")).body)
    ]
    for path, name in random.Random(given.seed).sample(found, given.count):
        print(f"{path:50} {name}")


if __name__ == "__main__":
    main()
