"""Runs a chapter's code with other seeds, or as its "Try it" changes it, for what it then says.

    python benchmarks/chapter_seeds.py 05 --seeds 0 1 2 3 4 5 --show "losses[-1]"
    python benchmarks/chapter_seeds.py 09 --swap num_blocks=2 num_blocks=1 --until "### Found"

Every `torch.manual_seed(k)` becomes that of the seed, and with `--draws` every generator's seed k
becomes k + seed. What its cells print is shown, and the values asked for at the end. A chapter's
own assertions hold for its own seeds, and are left out.
"""

import argparse
import ast
import re
from pathlib import Path

import torch

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"


class Named(ast.NodeTransformer):
    """Turns an assertion into a line of output that names it if it fails."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        said = f"line {node.lineno} fails: {ast.unparse(node.test)}"
        return ast.parse(f"if not ({ast.unparse(node.test)}): print({said!r})").body[0]


def run(text: str, name: str, seed: int | None, draws: bool) -> dict:
    """Run a chapter's code with a seed, None for its own, and return its names."""
    if seed is not None:
        text = re.sub(r"torch\.manual_seed\(\d+\)", f"torch.manual_seed({seed})", text)
    if draws:
        text = re.sub(r"(Generator\(\)\.manual_seed)\((\d+)\)", rf"\1({seed or 0} + \2)", text)
    tree = Named().visit(ast.parse(text))
    names: dict = {"__file__": name}
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), names)
    return names


def changed(text: str, swaps: list[list[str]], until: str, then: str) -> str:
    """Return a chapter's code with some pieces swapped, up to a mark, and with more at its end.

    Raises:
        ValueError: if the code lacks what is to be swapped, or the mark.
    """
    for old, new in swaps:
        if old not in text:
            raise ValueError(f"the chapter has no {old!r}")
        text = text.replace(old, new)
    if until:
        if until not in text:
            raise ValueError(f"the chapter has no {until!r}")
        text = text.partition(until)[0].rpartition("\n")[0]
    return text + "\n" + then.replace(r"\n", "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chapter", help="its number, such as 05")
    parser.add_argument("--seeds", nargs="*", type=int, help="none: the chapter's own")
    parser.add_argument("--draws", action="store_true", help="other seeds of generators, too")
    parser.add_argument("--swap", nargs=2, action="append", default=[], metavar=("OLD", "NEW"))
    parser.add_argument("--until", default="", help="run up to the line that has this")
    parser.add_argument("--then", default="", help="code to run at the end")
    parser.add_argument("--show", nargs="*", default=[], help="expressions to show at the end")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    (chapter,) = CHAPTERS.glob(f"{asked.chapter}_*.py")
    code = changed(chapter.read_text(encoding="utf-8"), asked.swap, asked.until, asked.then)
    for each in asked.seeds or [None]:
        print("--- its own seeds" if each is None else f"--- seed {each}", flush=True)
        found = run(code, chapter.name, each, asked.draws)
        for expression in asked.show:
            print(expression, "=", eval(expression, found))
