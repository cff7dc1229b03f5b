"""Your Transformer: read a reader's own functions from a file, and say which of them are right.

Every part is a function of an exercise of chapters 1 to 6, and is checked as there. A file may be
`mine.py` or an exercise's notebook, of which only imports and definitions are run.
"""

import ast
import contextlib
import io
import json
import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.check.calling import make_caller
from slp_transformer.check.diagnosing import CHECKS
from slp_transformer.check.verdict import Verdict

MISSING = Verdict(False, "Not written yet.")
PART_TIMEOUT_S = 20.0  # slow loops are welcome


@dataclass(frozen=True)
class Part:
    """A function that the model is made of: its name, its exercise, its check."""

    name: str
    exercise: str
    check: str

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Return what the exercise gives it."""
        return CHECKS[self.check].arguments


def _make_parts() -> dict[str, Part]:
    names = {
        "1": "softmax weighted_sum scaled_score simple_attention head",
        "2": "ffn layer_norm - block",
        "3": "causal_mask - attention split_heads join_heads multi_head_attention",
        "4": "one_hot_lookup input_encoding",
        "5": "stack lm_head",
        "6": "- - - - cached_step mask_after",
    }
    own = {"one_hot_lookup": "lookup", "input_encoding": "input"}
    own |= {"cached_step": "cached_step", "mask_after": "mask_after"}
    parts = [
        Part(f"my_{own.get(name, name)}", f"{chapter}.{number}", name)
        for chapter, row in names.items()
        for number, name in enumerate(row.split(), start=1)
        if name != "-"
    ]
    return {part.name: part for part in parts}


PARTS = _make_parts()
FOR_THE_CACHE = "my_cached_step", "my_mask_after"  # chapter 6: the model is whole without them
DRAWING = """\
 next word
   ↑  the head                my_lm_head
   ↑  the stack               my_stack
   ┌  a block                 my_block
   │    feedforward layer     my_ffn
   │    layer norm            my_layer_norm
   │    attention             my_multi_head_attention
   │      heads apart         my_split_heads
   │      heads together      my_join_heads
   │      one head, matrices  my_attention
   │      its mask            my_causal_mask
   │      one head, by hand   my_head
   │        its beginnings    my_simple_attention
   │        a score           my_scaled_score
   │        weights           my_softmax
   └        their sum         my_weighted_sum
   ↑  the input               my_input
   ↑    a word's row          my_lookup
 words
      with a cache            my_cached_step
      and its mask            my_mask_after"""


class UnreadableFile(ValueError):
    """A file whose functions cannot be had; the message says why."""


def read_source(path: Path) -> str:
    """Return the Python of a file; of a notebook, the imports and definitions in its cells.

    Raises:
        UnreadableFile: if it cannot be read, or is not Python.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".ipynb":
            cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
            text = "\n\n\n".join("".join(c["source"]).strip() for c in cells)
            # A cell magic or a shell command is no Python.
            text = "\n".join("" if line[:1] in "%!" else line for line in text.splitlines())
        ast.parse(text)
    except SyntaxError as error:
        raise UnreadableFile(
            f"{path}, line {error.lineno}: this is not Python ({error.msg})."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"{path} cannot be read: {type(error).__name__}, {error}.") from None
    return text


def load_functions(path: Path) -> tuple[dict[str, Any], dict[str, tuple[str, bool]]]:
    """Run a file, and return what it defines and which check it asks for each function.

    Returns:
        The file's names; and for functions that it hands to a check, the check's name and whether
        for one row only.

    Raises:
        UnreadableFile: if it cannot be read, or stops with an error.
    """
    source = read_source(path)
    tree = ast.parse(source)
    asked = {part.name: (part.check, part.name == "my_softmax") for part in PARTS.values()}
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("check"), name), [ast.Name(own), *_], keywords):
                if name in CHECKS:
                    asked[own] = name, any(k.arg == "one_row" for k in keywords)
    if path.suffix == ".ipynb":
        kept = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
        tree.body = [node for node in tree.body if isinstance(node, kept)]
    linecache.cache[str(path)] = len(source), None, source.splitlines(keepends=True), str(path)
    scope: dict[str, Any] = {"__name__": path.stem}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tree, str(path), "exec"), scope)
    except Exception as error:
        raise UnreadableFile(f"{path} stops: {type(error).__name__}, {error}.") from None
    return scope, asked


def check_functions(paths: Iterable[Path]) -> tuple[dict[str, Any], dict[str, Verdict]]:
    """Check every function of some files that belongs to an exercise.

    Returns:
        The functions and their verdicts, by name.

    Raises:
        UnreadableFile: if a file cannot be read, or stops with an error.
    """
    functions, verdicts = {}, {}
    for path in paths:
        scope, asked = load_functions(path)
        for name in asked.keys() & scope.keys():
            check, one_row = asked[name]
            with contextlib.redirect_stdout(io.StringIO()):
                functions[name] = scope[name]
                verdicts[name] = CHECKS[check](
                    scope[name], one_row=one_row, timeout_s=PART_TIMEOUT_S
                )
    return functions, verdicts


def format_progress(verdicts: dict[str, Verdict]) -> str:
    """Draw the model with a word on each of its parts, and say what comes next."""
    lines = []
    for line in DRAWING.splitlines():
        part = PARTS.get(line.split()[-1])
        if part is not None:
            verdict = verdicts.get(part.name, MISSING)
            named = f": {', '.join(verdict.mistakes)}" if verdict.mistakes else ""
            state = "✓" if verdict else f"✗ not yet{named}"
            state = "·" if is_unwritten(verdict) else state
            line = f"{line:55} {part.exercise}  {state}"
        lines.append(line)
    left = missing_parts(verdicts)
    done = sum(bool(verdicts.get(name)) for name in PARTS)
    lines.append(f"\n{done} of {len(PARTS)} parts are right.")
    if left:
        name = next((n for n in left if not is_unwritten(verdicts.get(n, MISSING))), left[0])
        lines.append(f"Next, {name} (exercise {PARTS[name].exercise}):")
        lines.append(str(verdicts.get(name, MISSING)))
    return "\n".join(lines)


def is_unwritten(verdict: Verdict) -> bool:
    """Tell whether there is nothing to judge yet."""
    return verdict is MISSING or verdict.text.startswith("It returns nothing yet")


def missing_parts(verdicts: dict[str, Verdict]) -> list[str]:
    """Return the parts of chapters 1 to 5 that are not right yet."""
    return [n for n in PARTS if n not in FOR_THE_CACHE and not verdicts.get(n)]


def write_template(path: Path, notebooks: Iterable[Path] = ()) -> None:
    """Write a file to begin from: each part as an exercise asks for it, or as notebooks have it.

    Raises:
        UnreadableFile: if there is such a file already, or a notebook cannot be read.
    """
    if path.exists():
        raise UnreadableFile(f"{path} is there already, and is not overwritten: name another.")
    written, imports = {}, {"import torch"}
    for notebook in notebooks:
        source = read_source(notebook)
        for node in ast.parse(source).body:
            text = ast.get_source_segment(source, node) or ""
            if isinstance(node, ast.FunctionDef):
                written[node.name] = text
            elif isinstance(node, ast.Import | ast.ImportFrom) and "check" not in text:
                imports.add(text)
    blocks = [
        '"""My Transformer, part by part.\n\n'
        f"python -m slp_transformer.check {path.name}\n\n"
        "says which parts are right. Any way to write them will do: loops, one line, functions\n"
        'that call each other.\n"""\n\n' + "\n".join(sorted(imports))
    ]
    for part in PARTS.values():
        check = CHECKS[part.check]
        asked = " ".join((check.__doc__ or "").split()).partition("`: ")[2]
        arguments = ", ".join(part.argument_names)
        stub = f"def {part.name}({arguments}):\n    ..."
        blocks.append(
            f"# Exercise {part.exercise}, {check.source}.\n# {asked[:1].upper()}{asked[1:]}\n"
            + written.pop(part.name, stub)
        )
    blocks.extend(written.values())
    with atomic_write(path) as unfinished:
        unfinished.write_text("\n\n\n".join(blocks) + "\n", encoding="utf-8")


class BrokenPart(ValueError):
    """A part that a check passed and a model cannot use; the message says which and why."""


def call_part(functions: dict[str, Any], name: str) -> Callable[..., Tensor]:
    """Return a part as a function of its exercise's arguments, in that order.

    Raises:
        BrokenPart: when it is called, if it stops or loses the gradient.
    """
    part = PARTS[name]
    call = make_caller(functions[name], part.argument_names, name)

    def called(*inputs: Any) -> Any:
        try:
            answer = call(dict(zip(part.argument_names, inputs, strict=True)))
        except BrokenPart:
            raise
        except Exception as error:
            raise BrokenPart(
                f"{name} stops inside the model: {type(error).__name__}, {error}."
            ) from error
        out = answer[0] if isinstance(answer, tuple) and name != "my_cached_step" else answer
        learns = any(isinstance(x, Tensor) and x.requires_grad for x in inputs)
        if torch.is_grad_enabled() and learns and not getattr(out, "requires_grad", False):
            raise BrokenPart(
                f"{name} returns the right numbers, but without their gradient, so nothing before "
                "it can learn. Keep tensors: no .item(), .tolist(), .detach() or torch.tensor(…)."
            )
        return out

    return called
