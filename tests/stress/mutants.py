"""Plant small mistakes in the package, one at a time, and see which of them the tests catch.

    python tests/stress/mutants.py choose --seed 0
    python tests/stress/mutants.py run --jobs 1 --out results/mutants/baseline.json
    python tests/stress/mutants.py compare results/mutants/baseline.json new.json

A mutant is the package with one small change: `<` becomes `<=`, a statement is deleted, a constant
is one larger. `choose` draws mutants and keeps them in `mutants.json`. `run` gives each of them to
the few test files that protect the code it is in. `compare` lists what was caught before and is
not caught now.

Mutants outlive refactoring. Each is kept with the function that it is in, the kind of change, its
place among the changes of that kind, and a hash of the function in which names and strings do not
count. After modules have moved, `--moves FILE.json` says where to, as far as `run` cannot find it:

    {"modules": {"slp_transformer/decoding/beams.py": "slp_transformer/generation/beams.py"},
     "names": {"slp_transformer/decoding/beams.py:Search.step": "BeamSearch.advance"},
     "tests": {"tests/test_beam.py": ["tests/generation/test_beams.py"]}}

A module that ends in `/` stands for all below it, and a class for its methods. Tests run in a copy
of the repository, in a fork of one process that has PyTorch loaded, so the checkout is never
changed and processes that a test starts meet the mutant too.
"""

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
CHOSEN = Path(__file__).with_name("mutants.json")
PLACES = ("slp_transformer", "docs/hooks")  # where code may have moved to
SECONDS = 120.0  # that the tests of one mutant may take; an endless loop counts as caught
BYTES = 6 << 30  # of memory, for a list that grows without end
PRELOADED = (
    *("torch", "torch._dynamo", "pytest", "jaxtyping", "beartype", "numpy", "pydantic", "filelock"),
    *("safetensors.torch", "mido", "guitarpro"),
)
"""What every fork would import. The package itself must not be among it."""

LEFT_OUT = {
    *(f"slp_transformer/guitar/fingering/{n}.py" for n in ("alone", "second_look", "translating")),
    *("slp_transformer/guitar/fingering/writing.py", "slp_transformer/guitar/short_grammar.py"),
    *("slp_transformer/guitar/short_names.py", "slp_transformer/files/downloads.py"),
    *("slp_transformer/decoding/graphs.py", "slp_transformer/decoding/laid_out.py"),
    "slp_transformer/command_line/ladder.py",
}
"""Code that will not stay, and what only a whole chapter tests."""

AREAS: dict[str, tuple[int, tuple[str, ...]]] = {
    "equations": (
        110,
        tuple(
            f"slp_transformer/{name}.py"
            for name in (
                *("attention", "block", "cache", "config", "dropout", "embedding"),
                *("encoder_decoder", "feedforward", "heads", "language_model", "layer_norm"),
                *("lora", "loss", "masks", "matrices", "points", "sampling", "scale"),
            )
        ),
    ),
    "decoding": (40, ("slp_transformer/decoding/*.py",)),
    "training": (90, ("slp_transformer/training/*.py",)),
    "text": (
        60,
        (
            *("slp_transformer/tokens/*.py", "slp_transformer/text/*.py"),
            "slp_transformer/translation/tokenizer.py",
        ),
    ),
    "fingering": (30, ("slp_transformer/guitar/fingering/*.py",)),
    "readers": (
        30,
        (
            *("slp_transformer/guitar/ascii_*.py", "slp_transformer/guitar/files.py"),
            "slp_transformer/guitar/formats/*.py",
        ),
    ),
    "command line": (30, ("slp_transformer/command_line/*.py", "slp_transformer/recipes/*.py")),
    "site": (
        30,
        tuple(
            f"docs/hooks/{name}.py"
            for name in (
                *("depending", "exercises", "hearing", "linking", "maths", "notebook", "proving"),
                *("reading", "reference", "rooms", "running", "weaving"),
            )
        ),
    ),
}
"""How many mutants to draw from which files; of the site, what is tested without building it."""

TESTS: dict[str, str] = {
    "slp_transformer/attention.py": "attention multi_head bad_input fast",
    "slp_transformer/block.py": "block stack cache language_model",
    "slp_transformer/cache.py": "cache decoding_batch",
    "slp_transformer/config.py": "config model_2017 bad_input language_model",
    "slp_transformer/dropout.py": "dropout block",
    "slp_transformer/embedding.py": "embedding model_2017 bad_input",
    "slp_transformer/encoder_decoder.py": "encoder_decoder bad_input cache",
    "slp_transformer/feedforward.py": "feedforward bad_input beyond_parts",
    "slp_transformer/heads.py": "multi_head bad_input cache language_model",
    "slp_transformer/language_model.py": "language_model bad_input lora",
    "slp_transformer/layer_norm.py": "layer_norm bad_input block",
    "slp_transformer/lora.py": "lora command_lora",
    "slp_transformer/loss.py": "entropy language_model training bad_input",
    "slp_transformer/masks.py": "attention multi_head encoder_decoder bad_input",
    "slp_transformer/matrices.py": "feedforward multi_head block",
    "slp_transformer/points.py": "interpret block",
    "slp_transformer/sampling.py": "sampling decoding bad_input",
    "slp_transformer/scale.py": "scale gauge",
    "slp_transformer/decoding/": "decoding_batch decoding",
    "slp_transformer/decoding/beams.py": "beam decoding_batch decoding",
    "slp_transformer/training/": "training training_loop checkpoint",
    "slp_transformer/training/averaging.py": "translation_command",
    "slp_transformer/training/batches.py": "training training_loop measures translation_pairs",
    "slp_transformer/training/beside.py": "command_lora",
    "slp_transformer/training/by_length.py": "translation_pairs second_device",
    "slp_transformer/training/checkpoints.py": "checkpoint lora fingering_models command_lora",
    "slp_transformer/training/devices.py": "training_loop second_device run_folder",
    "slp_transformer/training/folders.py": "checkpoint training_loop owning run_folder",
    "slp_transformer/training/gauge.py": "gauge",
    "slp_transformer/training/loop.py": "training training_loop stopping checkpoint",
    "slp_transformer/training/measuring.py": "training measures",
    "slp_transformer/training/memory.py": "checkpoint command_lora run_folder",
    "slp_transformer/training/metrics.py": "training_loop gauge measures",
    "slp_transformer/training/optimizer.py": "training training_loop model_2017 gauge",
    "slp_transformer/training/pieces.py": "guitar_corpus command_evaluate guitar_short_tokens",
    "slp_transformer/training/precision.py": "training_loop gauge",
    "slp_transformer/training/replicas.py": "gauge distributed+slow",
    "slp_transformer/training/run_state.py": "training_loop checkpoint measures second_device",
    "slp_transformer/training/settings.py": "training training_loop model_2017 gauge",
    "slp_transformer/training/shards.py": "gauge distributed+slow",
    "slp_transformer/training/team.py": "gauge training_loop checkpoint",
    "slp_transformer/tokens/": "text_tokenizer translation_pairs door",
    "slp_transformer/tokens/kinds.py": "text_tokenizer door command_recipes",
    "slp_transformer/tokens/ngrams.py": "ngrams",
    "slp_transformer/text/": "text_reading text_preparing progress",
    "slp_transformer/text/corpora.py": "text_reading text_preparing command_recipes",
    "slp_transformer/translation/tokenizer.py": "translation_pairs translation_command",
    "slp_transformer/guitar/fingering/": "fingering fingering_models command_tab",
    "slp_transformer/guitar/fingering/arranging.py": "fingering command_tab",
    "slp_transformer/guitar/fingering/pieces.py": "hear command_tab",
    "slp_transformer/guitar/": "guitar_files guitar_as_written guitar_bounds guitar_writer",
    "slp_transformer/guitar/ascii_time.py": "guitar_files guitar_as_written guitar_writer",
    "slp_transformer/guitar/ascii_writer.py": "guitar_writer guitar_formats",
    "slp_transformer/guitar/files.py": "guitar_files guitar_formats guitar_writer",
    "slp_transformer/guitar/formats/": "guitar_formats guitar_midi guitar_pro command_tab",
    "slp_transformer/command_line/": "command_line command_evaluate",
    "slp_transformer/command_line/__init__.py": "command_tab command_recipes command_line",
    "slp_transformer/command_line/asked.py": "command_recipes command_lora command_line",
    "slp_transformer/command_line/console.py": "command_recipes command_line run_folder",
    "slp_transformer/command_line/evaluate.py": "command_evaluate measures",
    "slp_transformer/command_line/generate.py": "command_line command_published",
    "slp_transformer/command_line/info.py": "command_evaluate command_lora",
    "slp_transformer/command_line/judged.py": "translation_command",
    "slp_transformer/command_line/merge.py": "command_lora",
    "slp_transformer/command_line/published.py": "command_published",
    "slp_transformer/command_line/runs.py": "command_lora command_evaluate translation_command",
    "slp_transformer/command_line/samples.py": "command_evaluate command_published",
    "slp_transformer/command_line/tab.py": "command_tab",
    "slp_transformer/command_line/train.py": "command_recipes command_lora command_line",
    "slp_transformer/command_line/translate.py": "translation_command",
    "slp_transformer/command_line/translations.py": "translation_command",
    "slp_transformer/recipes/": "command_recipes command_evaluate command_line",
    "slp_transformer/recipes/data.py": "command_recipes command_evaluate translation_command",
    "docs/hooks/": "hook",
    "docs/hooks/exercises.py": "exercises hook",
    "docs/hooks/hearing.py": "hear",
}
"""The test files for each module or folder, the likeliest to catch a mistake first.

Where nothing else protects a module, `+slow` says that its file's slow tests run too.
"""

# --- Functions -----------------------------------------------------------------------------------

Function = ast.FunctionDef | ast.AsyncFunctionDef
MESSAGES = {"__repr__", "__str__", "extra_repr", "_repr_html_", "__dir__"}


def functions_in(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the functions and methods of a module with their qualified names.

    A function inside a function belongs to the outer one.
    """
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions_in(node, f"{prefix}{node.name}.")
        elif isinstance(node, Function):
            yield prefix + node.name, node


@cache
def source_of(file: str) -> str:
    """Return the source of a file of the repository."""
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def functions(file: str) -> dict[str, Function]:
    """Return the functions of a file by qualified name, the first where several have one."""
    found: dict[str, Function] = {}
    for name, function in functions_in(ast.parse(source_of(file))):
        found.setdefault(name, function)
    return found


class Erase(ast.NodeTransformer):
    """Take all names, strings, annotations and docstrings out of a tree."""

    def visit(self, node: ast.AST) -> ast.AST:
        """Erase what this node says, then what is in it."""
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        ):
            return ast.Constant("")
        for field in ("id", "arg", "attr", "name"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, "_")
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                setattr(node, field, ast.Name("_") if isinstance(node, ast.AnnAssign) else None)
        if isinstance(node, Function):
            node.decorator_list = []
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = ["_"] * len(node.names)
        return self.generic_visit(node)


def erased(node: ast.AST) -> str:
    """Return the source of a tree without its names and strings."""
    return ast.unparse(ast.fix_missing_locations(Erase().visit(copy.deepcopy(node))))


@cache
def structure(file: str, name: str) -> str:
    """Return a hash of a function that stays when things are renamed."""
    return hashlib.sha256(erased(functions(file)[name]).encode()).hexdigest()[:16]


# --- Changes -------------------------------------------------------------------------------------

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
}  # fmt: skip
SPOKEN = {"say", "warn"}  # calls that only tell somebody something
PATHS = r"(?i)folder|path|parent|file|home|root|\bkeep\b|\brun\b|\.name\b"
UNIMPORTANT = {
    *("description", "device", "encoding", "epilog", "help", "metavar", "stacklevel", "strict"),
}
"""Keywords that change words, that nothing but a wrong program meets, or that a CPU cannot tell."""


@dataclass(frozen=True)
class Change:
    """One small change that could be made to a function.

    Attributes:
        kind: what is changed: "comparison", "constant", ...
        node: what is replaced.
        mutated: the source that is put in its place.
        statement: the statement around it, or the head of one that has a body.
    """

    kind: str
    node: ast.AST
    mutated: str
    statement: str

    @property
    def original(self) -> str:
        """Return the source of what is replaced."""
        return head(self.node) if isinstance(self.node, ast.stmt) else ast.unparse(self.node)


def head(statement: ast.AST) -> str:
    """Return the source of a statement, without a body."""
    if hasattr(statement, "body"):
        statement = copy.copy(statement)
        statement.body = [ast.Pass()]
        for field in ("orelse", "finalbody"):
            if hasattr(statement, field):
                setattr(statement, field, [])
        if hasattr(statement, "decorator_list"):
            statement.decorator_list = []
    return ast.unparse(statement)


def changed(node: ast.expr, **fields: Any) -> str:
    """Return the source of an expression with other fields, in parentheses."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return f"({ast.unparse(other)})"


def changes(function: Function) -> list[Change]:
    """List all changes that could be made to a function, in the order of its source."""
    found: list[Change] = []
    documented = ast.get_docstring(function, clean=False) is not None
    for default in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
        look(default, function, found)
    for statement in function.body[documented:]:
        look(statement, statement, found)
    if function.name == "__init__":  # whatever uses an attribute that is not there fails
        found = [change for change in found if not sets_attribute(change)]
    return found


def sets_attribute(change: Change) -> bool:
    """Whether what is deleted gives a new object an attribute."""
    return isinstance(change.node, ast.Assign) and change.original.startswith("self.")


def look(node: ast.AST, statement: ast.AST, found: list[Change]) -> None:
    """Add the changes that could be made to a node and to what is in it."""
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.JoinedStr) or is_spoken(node) or function_says(node):
        return
    for kind, target, mutated in changes_at(node):
        found.append(Change(kind, target, mutated, head(statement)))
    if isinstance(node, ast.Raise):
        return  # what is in it is a message
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "op", "ctx"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in UNIMPORTANT:
                continue
            if isinstance(child, ast.AST) and not (isinstance(node, ast.Slice) and plain(child)):
                look(child, statement, found)


def is_spoken(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or only tells somebody something."""
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    if isinstance(call, ast.Constant):
        return True
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") in SPOKEN


def function_says(node: ast.AST) -> bool:
    """Whether a node is a function inside another that only describes it."""
    return isinstance(node, Function) and node.name in MESSAGES


def plain(node: ast.AST) -> bool:
    """Whether an expression is a number, perhaps with a minus."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant)


def changes_at(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the kind, the node and the new source of each change that could be made right here."""
    match node:
        case ast.Compare():
            for place, op in enumerate(node.ops):
                ops = [*node.ops[:place], COMPARED[type(op)](), *node.ops[place + 1 :]]
                yield "comparison", node, changed(node, ops=ops)
        case ast.BinOp() if type(node.op) in COMPUTED and not joins(node):
            yield "arithmetic", node, changed(node, op=COMPUTED[type(node.op)]())
        case ast.UnaryOp(op=ast.USub()) if not plain(node):
            yield "arithmetic", node, f"({ast.unparse(node.operand)})"
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "boolean", node, changed(node, op=other)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool() | int() | float()):
            yield "constant", node, other_constant(node.value)
        case ast.Call():
            for keyword in node.keywords:
                if may_be_dropped(node, keyword):
                    rest = [other for other in node.keywords if other is not keyword]
                    yield "argument", node, changed(node, keywords=rest)
        case ast.Slice():
            for bound in filter(None, (node.lower, node.upper)):
                yield "slice", bound, f"({ast.unparse(bound)} + 1)"
        case ast.comprehension():
            for test in node.ifs:
                yield "condition", test, "True"
    yield from changes_of_statement(node)


def changes_of_statement(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the changes that could be made to a statement, or to its condition."""
    match node:
        case ast.If() | ast.IfExp():
            yield "condition", node.test, "False"
            if not (isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)):
                yield "condition", node.test, "True"
        case ast.While():
            yield "condition", node.test, "False"
        case ast.AugAssign() if type(node.op) in COMPUTED:
            op = COMPUTED[type(node.op)]()
            yield "arithmetic", node, ast.unparse(ast.AugAssign(node.target, op, node.value))
            yield "statement", node, "pass"
        case ast.Assign(targets=[ast.Subscript()]) | ast.Raise() | ast.AugAssign():
            yield "statement", node, "pass"
        case ast.Assign(targets=[ast.Attribute()]):
            yield "statement", node, "pass"
        case ast.Expr(value=ast.Call() as call) if "__init__" not in ast.unparse(call.func):
            yield "statement", node, "pass"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", node, other_return(value)


def joins(node: ast.BinOp) -> bool:
    """Whether an operator joins strings, lists or paths, where any other is no Python."""
    parts = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    if isinstance(node.op, ast.Div) and re.search(PATHS, ast.unparse(node)):
        return True
    return any(
        isinstance(side, parts) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def other_constant(value: bool | int | float) -> str:
    """Return another constant, as source."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    return repr(value / 2 or 0.5)


def other_return(value: ast.expr) -> str:
    """Return a statement that returns something else: the opposite if there is one, or None."""
    match value:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return f"return not ({ast.unparse(value)})"
        case ast.Constant(value=bool() as true):
            return f"return {not true}"
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.MatMult()) if not joins(value):
            return f"return -({ast.unparse(value)})"
    return "return None"


@cache
def needed_arguments() -> set[tuple[str, str]]:
    """Return the arguments without a default, with their function's name, of the whole package."""
    needed = set()
    for file in files("slp_transformer/**/*.py"):
        for node in ast.walk(ast.parse(source_of(file))):
            if isinstance(node, Function):
                plain_ones = [*node.args.posonlyargs, *node.args.args]
                without = plain_ones[: len(plain_ones) - len(node.args.defaults)]
                pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                without += [argument for argument, default in pairs if default is None]
                needed |= {(node.name, argument.arg) for argument in without}
            elif isinstance(node, ast.ClassDef):
                fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
                needed |= {(node.name, f.target.id) for f in fields if f.value is None}
                for name, function in functions_in(node):
                    if name == "__init__":
                        count = len(function.args.args) - len(function.args.defaults)
                        needed |= {(node.name, a.arg) for a in function.args.args[:count]}
    return needed


def may_be_dropped(call: ast.Call, keyword: ast.keyword) -> bool:
    """Whether a call can do without an argument, as far as its source says."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return keyword.arg not in {None, *UNIMPORTANT} and (name, keyword.arg) not in needed_arguments()


def mutate(source: str, change: Change) -> str:
    """Return a module's source with one change made."""
    node, lines = change.node, source.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    before = lines[first][: node.col_offset]
    after = lines[last][node.end_col_offset :]
    lines[first : last + 1] = [before + change.mutated.encode() + after]
    return b"\n".join(lines).decode()


# --- Choosing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A change with all that finds it again.

    Attributes:
        id: its name.
        area: what it is counted with.
        file: the module that it is in, from the repository's root.
        function: the qualified name of the function or method.
        structure: the hash of the function without names and strings.
        kind: what is changed.
        ordinal: its place among the changes of this kind in the function.
        original: the source that is replaced.
        mutated: what replaces it.
        statement: the statement around it.
        similar: `original` and `mutated` without names and strings.
        tests: the test files that should catch it.
    """

    id: str
    area: str
    file: str
    function: str
    structure: str
    kind: str
    ordinal: int
    original: str
    mutated: str
    statement: str
    similar: tuple[str, str]
    tests: tuple[str, ...]


def files(pattern: str) -> list[str]:
    """List the repository's files that fit a pattern, as paths from its root."""
    return sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))


def similar(change: Change) -> tuple[str, str]:
    """Return what is replaced and what replaces it, without names and strings."""
    return erased(change.node), erased(ast.parse(change.mutated))


def mutants_of(area: str, file: str) -> Iterator[Mutant]:
    """Yield every mutant that could be made of a file."""
    for name, function in functions(file).items():
        decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
        if name.split(".")[-1] in MESSAGES or "overload" in decorators:
            continue
        counts: Counter[str] = Counter()
        for change in changes(function):
            place = counts[change.kind]
            counts[change.kind] += 1
            yield Mutant(
                f"{file}:{name}:{change.kind}:{place}",
                area, file, name, structure(file, name), change.kind, place,
                change.original, change.mutated, change.statement, similar(change),
                tests_for(file),
            )  # fmt: skip


def tests_for(file: str) -> tuple[str, ...]:
    """Return the test files for a module, from the table."""
    known = [name for name in TESTS if file == name or (name[-1] == "/" and file.startswith(name))]
    if not known:
        raise SystemExit(f"Which tests protect {file}? Say so in TESTS.")
    names = (name.partition("+") for name in TESTS[max(known, key=len)].split())
    return tuple(f"tests/test_{name}.py{plus}{slow}" for name, plus, slow in names)


def choose(seed: int) -> list[Mutant]:
    """Draw the mutants of each area, from all its modules and of all kinds.

    A module is drawn by the square root of how many changes could be made to it, then a kind, then
    one of its changes. Nearly every test sees that a function returns nothing, so this kind is
    drawn less often.
    """
    chosen: list[Mutant] = []
    for area, (count, patterns) in AREAS.items():
        draw = random.Random(f"{seed} {area}")
        left: dict[str, dict[str, list[Mutant]]] = {}
        for file in (file for pattern in patterns for file in files(pattern)):
            kinds: dict[str, list[Mutant]] = defaultdict(list)
            for mutant in () if file in LEFT_OUT else mutants_of(area, file):
                kinds[mutant.kind].append(mutant)
            if kinds:
                left[file] = kinds
        weights = {file: sum(map(len, kinds.values())) ** 0.5 for file, kinds in left.items()}
        drawn: list[Mutant] = []
        while left and len(drawn) < count:
            names = sorted(left)
            file = draw.choices(names, [weights[name] for name in names])[0]
            kinds = sorted(left[file])
            kind = draw.choices(kinds, [0.4 if kind == "return" else 1.0 for kind in kinds])[0]
            mutants = left[file][kind]
            drawn.append(mutants.pop(draw.randrange(len(mutants))))
            if not mutants:
                del left[file][kind]
            if not left[file]:
                del left[file]
        chosen += sorted(drawn, key=lambda mutant: mutant.id)
    return chosen


# --- Finding again -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moves:
    """What has moved or been renamed since the mutants were chosen.

    Attributes:
        modules: new paths by old ones.
        names: new qualified names by `old/path.py:old.name`.
        tests: the test files that have replaced one.
    """

    modules: dict[str, str]
    names: dict[str, str]
    tests: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path | None) -> "Moves":
        """Read what has moved from a file, if there is one."""
        content = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
        return cls(*(content.get(field, {}) for field in ("modules", "names", "tests")))

    def file(self, old: str) -> str:
        """Return where a module is now."""
        if old in self.modules:
            return self.modules[old]
        above = [name for name in self.modules if name[-1] == "/" and old.startswith(name)]
        if not above:
            return old
        longest = max(above, key=len)
        return self.modules[longest] + old.removeprefix(longest)

    def name(self, file: str, old: str) -> str:
        """Return what a function is called now, by its own new name or its class's."""
        parts = old.split(".")
        for count in range(len(parts), 0, -1):
            new = self.names.get(f"{file}:{'.'.join(parts[:count])}")
            if new is not None:
                return ".".join([new, *parts[count:]])
        return old

    def test_files(self, old: str) -> list[str]:
        """List the test files that stand for an old one and exist, slow ones with `+slow`."""
        old, plus, slow = old.partition("+")
        new = self.tests.get(old, [old])
        if old not in self.tests and not (ROOT / old).exists():
            new = files(f"tests/**/{Path(old).name}")
        return [f"{file}{plus}{slow}" for file in new if (ROOT / file).exists()]


def locate(mutant: Mutant, moves: Moves) -> tuple[str, str, Change] | None:
    """Find a mutant again.

    Returns:
        The file, the function and the change to make, or None if it is gone.
    """
    for file, name in candidates(mutant, moves):
        change = best_change(mutant, file, name)
        if change is not None:
            return file, name, change
    return None


def candidates(mutant: Mutant, moves: Moves) -> Iterator[tuple[str, str]]:
    """Yield the files and functions in which a mutant may be, the likeliest first."""
    file, name = moves.file(mutant.file), moves.name(mutant.file, mutant.function)
    if ":" in name:  # moved to a file of its own
        file, name = name.split(":")
    here = functions(file) if (ROOT / file).exists() else {}
    if name in here:
        yield file, name
    short = name.split(".")[-1]
    others = [(file, other) for other in here if other != name]
    if mutant.structure not in {structure(file, name) for name in here}:
        modules = [module for place in PLACES for module in files(f"{place}/**/*.py")]
        others += [(module, other) for module in modules for other in functions(module)]
    same = [place for place in others if structure(*place) == mutant.structure]
    yield from sorted(same, key=lambda place: place[1].split(".")[-1] != short)
    for other in here:  # a part of the function that has become one of its own
        statements = {change.statement for change in changes(here[other])}
        if other != name and len(mutant.statement) > 20 and mutant.statement in statements:
            yield file, other


def best_change(mutant: Mutant, file: str, name: str) -> Change | None:
    """Return the change in a function that is this mutant's, None if there is none like it."""
    function = functions(file)[name]
    of_kind = [change for change in changes(function) if change.kind == mutant.kind]
    like_it = [change for change in of_kind if similar(change) == mutant.similar]
    if structure(file, name) == mutant.structure and mutant.ordinal < len(of_kind):
        change = of_kind[mutant.ordinal]
        if change in like_it:
            return change

    def likeness(change: Change) -> tuple[bool, bool, float, int]:
        same = change.original == mutant.original
        around = SequenceMatcher(None, change.statement, mutant.statement, autojunk=False).ratio()
        distance = abs(of_kind.index(change) - mutant.ordinal)
        return same and change.mutated == mutant.mutated, same, round(around, 2), -distance

    return max(like_it, key=likeness, default=None)


# --- Running -------------------------------------------------------------------------------------


@dataclass
class Slot:
    """A copy of the repository and the process that runs tests in it."""

    folder: Path
    name: Any = None
    child: int = 0
    begun: float = 0.0
    limit: float = SECONDS
    changed: tuple[Path, str, float] | None = None

    def start(
        self, name: Any, tests: list[str], mutated: tuple[str, str] | None, limit: float
    ) -> None:
        """Start tests, with a file's source replaced, that may take so many seconds."""
        if mutated is not None:
            file, source = mutated
            path = self.folder / file
            self.changed = (path, path.read_text(encoding="utf-8"), path.stat().st_mtime)
            path.write_text(source, encoding="utf-8")
        self.name, self.begun, self.limit = name, time.monotonic(), limit
        sys.stdout.flush()
        self.child = os.fork()
        if self.child == 0:
            self.run_tests(tests, keeps_bytecode=mutated is None)

    def run_tests(self, tests: list[str], keeps_bytecode: bool) -> None:
        """Run tests in this process, which ends with them."""
        code = 3
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
            said = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.chdir(self.folder)
            sys.path[:] = [str(self.folder), *(p for p in sys.path if p not in OWN_PATHS)]
            os.environ["PYTHONPATH"] = str(self.folder)
            os.environ["COLUMNS"] = "200"  # for the names of failed tests
            if not keeps_bytecode:
                sys.dont_write_bytecode = True
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            import pytest

            options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short"]
            options.append(f"--basetemp={self.folder.parent}/tmp")
            if any(test.endswith("+slow") for test in tests):
                options += ["-m", "slow or not slow"]
            code = int(pytest.main([*options, *(test.removesuffix("+slow") for test in tests)]))
            sys.stdout.flush()
        finally:
            os._exit(code)

    @property
    def said(self) -> Path:
        """Return the file with what the tests have said."""
        return self.folder.parent / "said.txt"

    def ended(self) -> dict[str, Any] | None:
        """Return how the tests ended, None as long as they run."""
        seconds = time.monotonic() - self.begun
        child, status = os.waitpid(self.child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if child else None
        if code is None and seconds < self.limit:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child, signal.SIGKILL)  # also what a test has started
        if code is None:
            os.waitpid(self.child, 0)
        if self.changed is not None:
            path, source, changed = self.changed
            path.write_text(source, encoding="utf-8")
            os.utime(path, (changed, changed))
        self.child, self.changed = 0, None
        by = failure(self.said.read_text(encoding="utf-8", errors="replace"))
        return {"status": verdict(code), "seconds": round(seconds, 1), "by": by}


OWN_PATHS = {"", str(ROOT), str(Path(__file__).resolve().parent)}


def verdict(code: int | None) -> str:
    """Say what an exit code of pytest means for a mutant: None for one that took too long."""
    if code is None:
        return "timeout"
    if code == 0:
        return "survived"
    # 1: a test failed; 2: a test file could not even be imported; below 0: killed by a signal.
    return "caught" if code in (1, 2) or code < 0 else "error"


def failure(said: str) -> str:
    """Return the line in which pytest names the test that failed, with the beginning of why."""
    lines = re.findall(r"^(?:FAILED|ERROR) .*$", said, re.MULTILINE)
    return lines[-1][:240] if lines else ""


def copy_of_repository(folder: Path) -> Path:
    """Copy what tests need to a folder, whose path is returned."""
    target = folder / "copy"
    skipped = (".git", "__pycache__", ".pytest_cache", ".ruff_cache", ".cache", "notebooks", "runs")
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*skipped), symlinks=True)
    return target


def in_slots(slots: list[Slot], work: list[tuple]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Do all work, given as the arguments of `Slot.start`, and yield what came of each."""
    waiting = list(reversed(work))
    try:
        while waiting or any(slot.child for slot in slots):
            for slot in slots:
                if slot.child:
                    result = slot.ended()
                    if result is None:
                        continue
                    yield slot.name, result
                if waiting:
                    slot.start(*waiting.pop())
            time.sleep(0.02)
    finally:
        for slot in slots:
            if slot.child:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(slot.child, signal.SIGKILL)


def run(mutants: list[Mutant], moves: Moves, jobs: int, out: Path | None) -> None:
    """Run each mutant's tests, and keep what came of them as it comes."""
    report = begin_report(out)
    done = {result["id"] for result in report["results"]}
    todo = [mutant for mutant in mutants if mutant.id not in done]
    tests = {
        mutant.id: list(dict.fromkeys(t for old in mutant.tests for t in moves.test_files(old)))
        for mutant in todo
    }
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "slp_transformer" in sys.modules:
        raise RuntimeError("The package must be imported by the forks alone.")

    def add(mutant: Mutant, result: dict[str, Any]) -> None:
        report["results"].append({"id": mutant.id, "area": mutant.area, **result})
        keep(report, out)
        print(f"{result['status']:9}{mutant.id}  {result.get('by', '')}", flush=True)

    with TemporaryDirectory(prefix="mutants-") as folder:
        slots = []
        for number in range(jobs):
            (Path(folder) / str(number)).mkdir()
            slots.append(Slot(copy_of_repository(Path(folder) / str(number))))
        sound = sound_tests(slots, {file for some in tests.values() for file in some}, report)
        by_id, work = {mutant.id: mutant for mutant in todo}, []
        for mutant in todo:
            found = locate(mutant, moves)
            own = [file for file in tests[mutant.id] if file in sound]
            if found is None:
                add(mutant, {"status": "gone"})
            elif not own:
                add(mutant, {"status": "error", "by": "no tests that pass without it"})
            else:
                file, _, change = found
                limit = max(SECONDS, 2 * sum(report["tests"][test]["seconds"] for test in own))
                work.append((mutant.id, own, (file, mutate(source_of(file), change)), limit))
        for name, result in in_slots(slots, work):
            add(by_id[name], result)
    print_counts(report["results"])


def sound_tests(slots: list[Slot], tests: set[str], report: dict[str, Any]) -> set[str]:
    """Run test files without a mutant, and return those that pass."""
    work = [(file, [file], None, 3 * SECONDS) for file in sorted(tests)]
    for file, result in in_slots(slots, work):
        passes = result["status"] == "survived"
        report["tests"][file] = {"seconds": result["seconds"], "passes": passes}
        if not passes:
            print(f"{file} fails without a mutant: {result['status']}, {result['by']}", flush=True)
    return {file for file in tests if report["tests"][file]["passes"]}


def begin_report(out: Path | None) -> dict[str, Any]:
    """Return what was kept of an earlier run, or a new report."""
    if out is not None and out.exists():
        return json.loads(out.read_text(encoding="utf-8"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return {
        "command": f"python {Path(__file__).resolve().relative_to(ROOT)} {' '.join(sys.argv[1:])}",
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "tests": {},
        "results": [],
    }


def keep(report: dict[str, Any], out: Path | None) -> None:
    """Write a report, whole at any moment."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh = out.with_suffix(".new")
        fresh.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        fresh.replace(out)


# --- Comparing -----------------------------------------------------------------------------------

STATUSES = ("caught", "timeout", "survived", "gone", "error")
CAUGHT = ("caught", "timeout")


def print_counts(results: list[dict[str, Any]]) -> None:
    """Print how many mutants of each area ended how."""
    counts = Counter((result["area"], result["status"]) for result in results)
    print(f"{'area':14}" + "".join(f"{status:>10}" for status in STATUSES))
    for area in (*dict.fromkeys(result["area"] for result in results), "all"):
        row = [
            sum(counts[a, status] for a in AREAS) if area == "all" else counts[area, status]
            for status in STATUSES
        ]
        print(f"{area:14}" + "".join(f"{count:10}" for count in row))


def compare(base: Path, new: Path) -> int:
    """Print what was caught and no longer is.

    Returns:
        1 if a mutant that was caught survives or could not be tried, 0 otherwise.
    """
    before, after = (
        {result["id"]: result for result in json.loads(path.read_text(encoding="utf-8"))["results"]}
        for path in (base, new)
    )
    for path, results in ((base, before), (new, after)):
        print(path)
        print_counts(list(results.values()))
    lost = 0
    for name, result in before.items():
        now = after.get(name, {"status": "not run"})
        if result["status"] in CAUGHT and now["status"] not in CAUGHT:
            lost += now["status"] in ("survived", "error")
            print(f"{now['status']:9}{name}  was: {result['by']}")
    return 1 if lost else 0


def main() -> int:
    """Choose mutants, run them, or compare two runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("choose", help="draw the mutants")
    drawing.add_argument("--seed", type=int, default=0, help="another seed, other mutants [0]")
    running = commands.add_parser("run", help="run the mutants' tests")
    running.add_argument("--only", default="", metavar="PREFIX", help="of an id, or an area")
    running.add_argument("--jobs", type=int, default=1, help="processes at once [1]")
    running.add_argument("--moves", type=Path, metavar="FILE", help="what has moved since")
    running.add_argument("--caught-in", type=Path, metavar="FILE", help="only what was caught then")
    running.add_argument("--out", type=Path, metavar="FILE", help="keep the results, or go on")
    comparing = commands.add_parser("compare", help="list what is no longer caught")
    comparing.add_argument("base", type=Path)
    comparing.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.base, given.new)
    if given.command == "choose":
        mutants = choose(given.seed)
        content = {"seed": given.seed, "mutants": [asdict(mutant) for mutant in mutants]}
        CHOSEN.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(Counter(mutant.area for mutant in mutants))
        return 0
    mutants = [
        Mutant(**m | {"similar": tuple(m["similar"]), "tests": tuple(m["tests"])})
        for m in json.loads(CHOSEN.read_text(encoding="utf-8"))["mutants"]
        if m["id"].startswith(given.only) or m["area"] == given.only
    ]
    if given.caught_in is not None:
        then = json.loads(given.caught_in.read_text(encoding="utf-8"))["results"]
        caught = {result["id"] for result in then if result["status"] in CAUGHT}
        mutants = [mutant for mutant in mutants if mutant.id in caught]
    run(mutants, Moves.read(given.moves), given.jobs, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
