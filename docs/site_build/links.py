"""Links between chapters, equations and the package's objects, read from their sources.

A chapter declares an equation by its label, on a line of its own before the formula:
    <span class="eq" id="eq-head-par">head-par</span>
A docstring names it in a paragraph "Source: `head-par`". Its numbers are in `equations.toml`. A
chapter explains an object when it shows its source or links to it. From these the index, the cards
and the links back are made.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from pathlib import Path
from textwrap import dedent

from chapter_source import (
    Chapter,
    equations_of,
    imported_names,
    module_name,
    number_of,
    package_files,
)

from slp_transformer._internal.equations import GROUP, Equations

LABEL = re.compile(r'<span class="eq" id="eq-([^"]+)">\s*([^<]*?)\s*</span>')
SOURCE = re.compile(r"^Source:.*?(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r'<autoref [^>]*identifier=\\?"([^"\\]+)\\?"')


@dataclass
class Equation:
    """The places of an equation.

    Attributes:
        slug: its name, the same in all drafts.
        numbers: its numbers, as the first chapter writes them.
        chapters: the stems of the chapters that declare it.
        objects: the dotted names of what embodies it in the package.
        tex: the formula below its first label, if there is one.
    """

    slug: str
    numbers: list[str]
    chapters: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    tex: str = ""


@dataclass(frozen=True)
class Summary:
    """A chapter's summary: number, title, first sentences, and its equations' numbers by draft."""

    stem: str
    number: str
    title: str
    text: str
    equations: dict[str, str]


def summarize(chapter: Chapter) -> Summary:
    """Reads a chapter's first cell: its title, and the paragraph below it."""
    stem = chapter.path.stem
    first = next((c.source for c in chapter.notebook.cells if c.cell_type == "markdown"), "")
    heading = re.search(r"^# +(.+)$", first, flags=re.MULTILINE)
    title = heading[1].strip() if heading else stem
    title = re.sub(r"^(?:chapter\s+)?0*\d+[a-z]?\s*[.:·—–-]\s*", "", title, flags=re.IGNORECASE)
    title = re.sub(r"\s*\([^()]*\d[^()]*\)$", "", title)
    below = first[heading.end() :] if heading else first
    paragraphs = [" ".join(block.split()) for block in below.split("\n\n")]
    prose = [p for p in paragraphs if re.match(r"(?!Sections? )[A-Za-z`“\"']", p)]
    ends = (re.match(r".+?[.!?](?=\s|$)", paragraph) for paragraph in prose)
    sentence = next(filter(None, ends), None)
    text = sentence[0] if sentence else (prose[0] if prose else "")
    ranges = {draft: _range(chapter, draft) for draft in equations_of(chapter.root).drafts}
    return Summary(stem, number_of(stem), title, plain(text), ranges)


def plain(text: str) -> str:
    """A line of Markdown without its marks; formulas stay."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return unescape(re.sub(r"<[^>]+>|\*\*|(?<!\w)[*_](?=\w)|(?<=[\w.,])[*_](?!\w)", "", text))


def declared(chapter: Chapter) -> list[tuple[str, list[str]]]:
    """The (slug, numbers) of each equation that a chapter declares."""
    found = []
    for cell in chapter.notebook.cells:
        if cell.cell_type == "markdown":
            for slug, text in LABEL.findall(cell.source):
                pieces = [piece.strip() for piece in unescape(text).split("·")]
                found.append((slug, [piece for piece in pieces if piece and piece != slug]))
    return found


def formulas(chapter: Chapter) -> dict[str, str]:
    """The TeX of each equation that a chapter declares: the display below its label, untagged."""
    found = {}
    for cell in chapter.notebook.cells:
        pieces = LABEL.split(cell.source) if cell.cell_type == "markdown" else []
        for at, slug in enumerate(pieces[1::3]):
            below = "".join(pieces[3 * at + 3 :: 3])  # labels in a row share what follows
            displays = re.findall(r"\$\$(.+?)\$\$", below, flags=re.DOTALL)
            numbers = re.findall(r"\d+\.\d+", pieces[3 * at + 2])
            tags = [f"\\tag{{{number}}}" for number in numbers]
            tagged = [tex for tex in displays if any(tag in tex for tag in tags)]
            for tex in (tagged or displays)[:1]:
                found[slug] = re.sub(r"\s*\\tag\{[^}]*\}", "", tex).strip()
    return found


def equations_shown(tex: Mapping[str, str], book: Equations) -> Callable[[str], str]:
    """Return the function that puts the equations below each exercise that names them.

    An exercise names them at the beginning of a line, in brackets.

    Args:
        tex: the formula of each equation, by its slug.
        book: the numbers of the equations.
    """

    def show(text: str) -> str:
        shown = []
        for named in re.finditer(rf"(?m)^\({GROUP.pattern}", text):
            for slug in book.slugs_named_in(named[0]):
                if tex.get(slug):
                    shown.append(f"*{slug}* ({book.format_place(slug)})\n\n$$\n{tex[slug]}\n$$")
        return "\n\n".join([text, *dict.fromkeys(shown)])

    return show


def _range(chapter: Chapter, draft: str) -> str:
    """The first and last number of a chapter's equations in each chapter of a draft."""
    book, numbers = equations_of(chapter.root), defaultdict(list)
    for slug in (slug for slug, _ in declared(chapter) if slug in book.slugs):
        number = book.slugs[slug].get(draft, "")
        if re.fullmatch(r"[\d.-]+", number):  # no sections, no figures
            for whole, part in re.findall(r"(\d+)\.(\d+)", number):
                numbers[int(whole)].append(int(part))
    ends = [
        (f"{whole}.{min(own)}", f"{whole}.{max(own)}") for whole, own in sorted(numbers.items())
    ]
    return ", ".join(low if low == high else f"{low}–{high}" for low, high in ends)


def list_equations(chapters: list[Chapter], root: Path) -> list[Equation]:
    """All equations that chapters declare or docstrings name, in the order of the chapters."""
    found: dict[str, Equation] = {}
    for chapter in chapters:
        for slug, numbers in declared(chapter):
            entry = found.setdefault(slug, Equation(slug, numbers))
            if chapter.path.stem not in entry.chapters:
                entry.chapters.append(chapter.path.stem)
        for slug, tex in formulas(chapter).items():
            found[slug].tex = found[slug].tex or tex
    book = equations_of(root)
    for path in modules(root):
        for name, docstring in _docstrings(path, root):
            for paragraph in SOURCE.findall(docstring):
                for slug in book.slugs_named_in(" ".join(paragraph.split())):
                    entry = found.setdefault(
                        slug, Equation(slug, book.format_place(slug).split(" · "))
                    )
                    if name not in entry.objects:
                        entry.objects.append(name)
    return list(found.values())


def modules(root: Path) -> list[Path]:
    """The files of our packages that have something to say, in the order of their names."""
    return [
        path
        for path in package_files(root)
        if not re.match(r"_(?!_init__)", path.name)
        and path.parent.joinpath("__init__.py").is_file()
        and path != root / "slp_transformer" / "__init__.py"
    ]


def offered(root: Path) -> dict[str, str]:
    """Return where each name is defined that a package hands on: `slp_transformer.generate`."""
    return {
        f"{package}.{name}": origin
        for init in package_files(root)
        if init.name == "__init__.py"
        for package in [module_name(init, root)]
        for name, origin in imported_names(init).items()
        if origin.startswith(f"{package}.")
    }


def first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def _docstrings(path: Path, root: Path) -> list[tuple[str, str]]:
    """The (dotted name, docstring) of all public classes, functions and methods of a file."""
    return _docstrings_in(path.read_text(encoding="utf-8"), module_name(path, root))


@lru_cache(maxsize=1024)  # more than the package has files, or each edit would parse them all
def _docstrings_in(text: str, module: str) -> list[tuple[str, str]]:
    found = []

    def walk(node: ast.AST, name: str) -> None:
        for child in getattr(node, "body", []):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                inner = f"{name}.{child.name}"
                if not child.name.startswith("_"):
                    found.append((inner, ast.get_docstring(child) or ""))
                    walk(child, inner)

    walk(ast.parse(text), module)
    return found


def public_names(path: Path, root: Path) -> list[str]:
    """The dotted names of all public classes, functions and methods of a file."""
    return [name for name, _ in _docstrings(path, root)]


def own_names(path: Path, root: Path) -> list[str]:
    """The public classes and functions that a file defines."""
    prefix = module_name(path, root) + "."
    names = [name.removeprefix(prefix) for name in public_names(path, root)]
    return [name for name in names if "." not in name]


def source_of(name: str, root: Path) -> str:
    """The source of a function or class by its dotted name, less its docstring.

    Raises:
        KeyError: when the package has no such object.
    """
    from slp_transformer.plotting.source_code import strip_docstrings  # not all builds show code

    for path in modules(root):
        prefix = module_name(path, root) + "."
        if not name.startswith(prefix):
            continue
        text = path.read_text(encoding="utf-8")
        node: ast.AST | None = ast.parse(text)
        for part in name.removeprefix(prefix).split("."):
            body = getattr(node, "body", [])
            node = next((child for child in body if getattr(child, "name", "") == part), None)
        if node is not None:
            return strip_docstrings(dedent(ast.get_source_segment(text, node, padded=True)))
    raise KeyError(name)


def explained(cells: list, outputs: list | None) -> list[str]:
    """The dotted names that a chapter shows or links to, in the order in which it does."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    for shown in outputs or []:
        for output in shown:
            data = output.get("data", {}).get("text/markdown", "")
            texts.append(data if isinstance(data, str) else "".join(data))
    return list(dict.fromkeys(name for text in texts for name in SHOWN.findall(text)))


@dataclass(frozen=True)
class EquationTest:
    """A test of equations.

    Attributes:
        file: its file within the project.
        name: its name.
        claim: what it shows, the first line of its docstring.
        slugs: the equations.
        source: the test itself, decorators and all.
    """

    file: str
    name: str
    claim: str
    slugs: tuple[str, ...]
    source: str

    @property
    def id(self) -> str:
        """Its name to pytest."""
        return f"{self.file}::{self.name}"


def equation_tests(root: Path) -> list[EquationTest]:
    """All tests of equations, in the order of their files."""
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if ".equations(" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and (slugs := _slugs(node)):
                first = min(decorator.lineno for decorator in node.decorator_list)
                source = "\n".join(text.splitlines()[first - 1 : node.end_lineno])
                file = path.relative_to(root).as_posix()
                claim = (ast.get_docstring(node) or "").partition("\n")[0]
                if not claim.endswith("."):
                    raise ValueError(
                        f"{file}: {node.name} checks an equation, so its docstring begins with a "
                        "sentence that says what it shows."
                    )
                found.append(EquationTest(file, node.name, claim, slugs, source))
    return found


def _slugs(test: ast.FunctionDef) -> tuple[str, ...]:
    for decorator in test.decorator_list:
        if (
            isinstance(decorator, ast.Call)
            and ast.unparse(decorator.func) == "pytest.mark.equations"
        ):
            return tuple(argument.value for argument in decorator.args)
    return ()


def tests_page(found: list[EquationTest], loops: str) -> str:
    """The page of tests: each with the equations that it checks, and the loops they use."""
    parts = ["# Tests of the equations", "", _INTRODUCTION, ""]
    for file in dict.fromkeys(test.file for test in found):
        parts += [f"## {file}", ""]
        for test in (one for one in found if one.file == file):
            checked = " · ".join(f"[`{slug}`](equations.md#{slug})" for slug in test.slugs)
            parts += [f"### {test.claim} {{ #{test.name} }}", "", f"Checks {checked}.", ""]
            parts += ["```python", test.source, "```", ""]
    parts += ["## tests/helpers/loops.py { #loops }", "", _LOOPS, "", "```python", loops, "```", ""]
    return "\n".join(parts)


_INTRODUCTION = (
    "The tests of the equations, as they are in `tests/`. Each compares the package with "
    "numbers worked out by hand, with [loops](#loops) written as the book writes them, or with "
    "PyTorch's own modules under the same weights. `python -m pytest` runs them all."
)
_LOOPS = "The equations as loops over tokens, heads and features, with which the tests compare."
