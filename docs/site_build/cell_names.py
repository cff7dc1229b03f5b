"""What a cell's result rests on of what a reader has changed above it, told by names."""

import ast
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from IPython.core.inputtransformer2 import TransformerManager

SEEDS = {"manual_seed", "seed"}  # methods that change what a module does


@dataclass
class Names:
    """The names of a statement.

    Attributes:
        used: those it reads.
        assigned: those it gives a value.
        modules: those of them that it imports.
        mutated: those of which it sets a part, or calls a method for what it does.
        called: what a function or class that it defines reads, when that is called.
    """

    used: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    mutated: set[str] = field(default_factory=set)
    called: dict[str, set[str]] = field(default_factory=dict)


def names_of(statement: ast.stmt) -> Names:
    """Return the names of a statement."""
    names = Names()
    for node in [statement, *_outside_functions(statement)]:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                names.used.add(name)
            case ast.Name(id=name):
                names.assigned.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                names.used.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.assigned.add(node.name)
                read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                names.called.setdefault(node.name, set()).update(read)
            case ast.Import() | ast.ImportFrom():
                names.modules |= {(one.asname or one.name).partition(".")[0] for one in node.names}
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                names.mutated |= _root(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):  # as x.append(1)
                (names.assigned if method.attr in SEEDS else names.mutated).update(_root(method))
    names.assigned |= names.modules
    return names


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, but not into functions and classes."""
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for node in ast.iter_child_nodes(tree):
            yield node
            yield from _outside_functions(node)


def _root(node: ast.expr) -> set[str]:
    """Return the x of x.y[0].z."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def assigned_in(*sources: str) -> set[str]:
    """Return the names that cells assign; none of a cell that cannot be read."""
    statements = [one for source in sources for one in (statements_of(source) or {}).values()]
    return set().union(*(names_of(one).assigned for one in statements))


def statements_of(source: str) -> dict[str, ast.stmt] | None:
    """Return a cell's statements by their trees; None if it cannot be read."""
    try:  # lines may be IPython's, such as `%timeit`
        tree = ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError):
        return None
    return {ast.dump(statement): statement for statement in tree.body}


def find_bases(built: Sequence[str], texts: dict[int, str]) -> list[str]:
    """Return what each cell's result rests on of what a reader has changed above it.

    A result was made before a change if this is another one by now. Names are followed from the
    statements that assign them, or change what they stand for, to those that use them.

    Args:
        built: the sources of the cells, in their order.
        texts: those that the reader has changed, by their places.

    Returns:
        for each cell "", if it rests on none of them, or a mark of those on which it does.
    """
    carried: dict[str, set[int]] = {}  # the changed cells that a name's value rests on
    called: dict[str, set[str]] = {}
    modules: set[str] = set()
    by_all: set[int] = set()  # changed cells that cannot be read
    found = []
    for place, source in enumerate(built):
        rests_on = by_all.copy()
        old, new = statements_of(source), statements_of(texts.get(place, source))
        if (old is None or new is None) and place in texts:
            by_all |= {place}
        for tree, statement in ((new or {}) | (old or {})).items():
            names = names_of(statement)
            called |= names.called
            modules |= names.modules
            used = _with_called(names.used, called)
            rest = by_all.union(*(carried.get(name, set()) for name in used))
            rests_on |= rest
            is_changed = not (old and new and tree in old and tree in new)
            rest |= {place} if is_changed and place in texts else set()
            for name in names.assigned | names.mutated - modules:
                is_kept = is_changed or name in used or name not in names.assigned
                carried[name] = rest | (carried.get(name, set()) if is_kept else set())
        above = sorted(rests_on - {place})
        changed = json.dumps([(one, texts[one]) for one in above])
        found.append(f"{zlib.crc32(changed.encode()):08x}" if above else "")
    return found


def _with_called(names: set[str], called: dict[str, set[str]]) -> set[str]:
    """Return names with what those of them read that are functions."""
    found = set(names)
    waiting = list(names)
    while waiting:
        new = called.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
