"""Runs a chapter's code with other seeds, for what it says of several.

    python benchmarks/chapter_seeds.py 05 --seeds 0 1 2 3 4 5 --show "losses[-1]"

Every `torch.manual_seed(k)` becomes that of the seed. What its cells print is shown, and the values
asked for at the end. A chapter's own assertions hold for its own seeds, and are left out.
"""

import argparse
import ast
import re
from pathlib import Path

import torch

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"


def run(path: Path, seed: int) -> dict:
    """Run a chapter with a seed, and return its names."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"torch\.manual_seed\(\d+\)", f"torch.manual_seed({seed})", text)
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Assert)]
    names: dict = {}
    exec(compile(tree, path.name, "exec"), names)
    return names


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chapter", help="its number, such as 05")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--show", nargs="*", default=[], help="expressions to show at the end")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    (chapter,) = CHAPTERS.glob(f"{asked.chapter}_*.py")
    for each in asked.seeds:
        print(f"--- seed {each}")
        found = run(chapter, each)
        for expression in asked.show:
            print(expression, "=", eval(expression, found))
