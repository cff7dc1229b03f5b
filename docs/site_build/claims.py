"""Lists what the chapters claim: sentences with numbers or superlatives, and what each rests on.

    python docs/site_build/claims.py [--all] [CHAPTER ...]

A claim about a model that was trained, or about random numbers, has to be recorded in
`benchmarks/results/`, asserted by code next to it, or say of how many seeds it speaks. What a
claim rests on that is not to be seen there stands in `claims.toml`; so does what the answers of
"Try it" rest on, each of which is a claim. Those that rest on nothing are listed, and those with
numbers that their record does not have; with --all also the others, with their reason.
"""

import argparse
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType

import short_path
from chapter_source import Chapter, read_chapters
from nbformat import NotebookNode

NUMBER = re.compile(r"\d+(?:\.\d+)? ?%|\b0?\.\d+|\b\d+\.\d{1,3}\b")
CLAIM = re.compile(
    r"\b(?:best|worst|fewest|least|most|largest|smallest|highest|lowest|nearly all|always|"
    r"never|hardly|half|thirds?|quarters?|times as|than the)\b|" + NUMBER.pattern
)
BASES = Path(__file__).with_suffix(".toml")
CHANCE = re.compile(r"manual_seed|randn|\btrain\(|optimizer\.step|\.sample|generate\(")
RECORD = re.compile(r"benchmarks/results/\w+(?:/(?!README)\w+)*")
SEVERAL = re.compile(
    r"\bseeds\b|\bone (?:seed|run)\b|\bof (?:\d+|three|four|five) (?:models|pairs)", re.I
)


@dataclass(frozen=True)
class Claim:
    """A sentence that claims something.

    Attributes:
        place: the chapter, and the line where its cell begins.
        sentence: what it says.
        basis: what it rests on; empty if that is one run.
    """

    place: str
    sentence: str
    basis: str


def claims_of(
    chapter: Chapter, stated: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Claim]:
    """Find the claims of a chapter, section by section.

    Args:
        chapter: the chapter.
        stated: what claims rest on, by a piece of their sentence, as in `claims.toml`.
    """
    line, is_chance = 1, False
    cells = short_path.cells_of(chapter)
    for place, cell in enumerate(cells):
        line = chapter.script.count("\n", 0, chapter.script.find(_first_line(cell), 0)) + 1
        if cell.cell_type == "code":
            is_chance = is_chance or CHANCE.search(cell.source) is not None
            continue
        near = _shown_near(cells, place)
        is_tried = cell.source.startswith("## Try it")
        for sentence in _sentences(cell.source):
            if is_tried or _is_claim(sentence):
                basis = next((why for piece, why in stated.items() if piece in sentence), "")
                basis = basis or _basis(sentence, cell.source, near, is_chance, is_tried)
                yield Claim(f"{chapter.path.name}:{line}", sentence, basis)


def _is_claim(sentence: str) -> bool:
    """Tell whether a sentence claims something; a question does so by its numbers alone."""
    words = re.sub("`[^`]*`", "", sentence)
    return (NUMBER if words.endswith("?") else CLAIM).search(words) is not None


def _shown_near(cells: Sequence[NotebookNode], place: int) -> str:
    """Return the code right before a cell of Markdown and right after it."""
    before = takewhile(_is_code, reversed(cells[:place]))
    after = takewhile(_is_code, cells[place + 1 :])
    return "\n".join(cell.source for cell in (*before, *after))


def _is_code(cell: NotebookNode) -> bool:
    return cell.cell_type == "code"


def _first_line(cell) -> str:
    return cell.source.partition("\n")[0]


NO_PROSE = re.compile(
    r"(?s)\$\$.*?\$\$|```.*?```|<span class=\"eq\".*?</span>|<a href=\"[^\"]*#eq.*?</a>|"
    r"\[\([\d., ]+\)\]\([^)]*\)|\((?:\d+\.\d+(?: to |, | · |-)?)+\)|\bFigs?\. [\d., ·()]+|"
    r"\b(?:section|Fig)s? \d+\.\d+(?:(?:, | and )\d+\.\d+)*"
)  # formulas, samples, and the numbers of equations, figures and sections
ANSWER = re.compile(r"(?s)</summary>(.*?)</details>")


def _sentences(text: str) -> list[str]:
    """Return what may claim something: sentences, or what answers say where they are folded."""
    text = NO_PROSE.sub("", text)
    if answers := ANSWER.findall(text):
        return [" ".join(one.split()) for one in answers]
    text = re.sub(r"<[^>]+>|\]\([^)]*\)|^#+ .*$|^\|.*$", "", text, flags=re.M)
    return [" ".join(one.split()) for one in re.split(r"(?<=[.?!:])\s+(?=[A-Z*`])|\n\n", text)]


def _basis(sentence: str, cell: str, near: str, is_chance: bool, is_tried: bool) -> str:
    if found := RECORD.search(sentence) or (None if is_tried else RECORD.search(cell)):
        return f"recorded in {found[0]}"
    if SEVERAL.search(sentence):
        return "says its seeds"
    if is_tried:  # no cell shows what comes of it
        return ""
    if not is_chance:
        return "nothing random so far"
    if numbers := NUMBER.findall(re.sub("`[^`]*`", "", sentence)):
        is_asserted = any(number.rstrip(" %") in near for number in numbers)
    else:
        is_asserted = re.search(r"^\s*(?:assert |torch\.testing)", near, re.M) is not None
    return "asserted next to it" if is_asserted else ""


def stated_bases() -> dict[str, dict[str, str]]:
    """Return what claims rest on, by chapter and by a piece of their sentence."""
    return tomllib.loads(BASES.read_text(encoding="utf-8"))


def is_sound(basis: str, sentence: str, root: Path) -> bool:
    """Tell whether a basis holds: its record exists, or its sums give the numbers said.

    A sum is written `0.45 = (1 - 0.9) / sqrt(1 - 0.95)`; several are separated by semicolons, and
    follow a record where some numbers are made from it. What is neither a record nor a sum is a
    reason, for people to judge.
    """
    first, _, more = basis.partition("; ")
    if found := RECORD.search(first):
        return (root / found[0]).exists() and (not more or is_sound(more, sentence, root))
    sums = [one.split(" = ") for one in basis.split("; ")]
    if not all(re.fullmatch(r"[\d.,]+", one[0]) for one in sums):
        return len(basis.split()) > 2
    return all(said in sentence and _rounds_to(formula, said) for said, formula in sums)


def numbers_without_record(claim: Claim, root: Path) -> list[str]:
    """Return the numbers of a claim that rests on a record which are neither there nor sums.

    Answers of "Try it" were tried (`chapter_seeds`), and what they then said is not kept.
    """
    record, _, sums = claim.basis.partition("; ")
    if not (found := RECORD.search(record)) or record.endswith(": Try it"):
        return []
    kept = _numbers_in(root / found[0])
    said = NUMBER.findall(re.sub("`[^`]*`", "", claim.sentence))
    made = {one.partition(" = ")[0] for one in sums.split("; ")}
    return [n for n in said if n not in made and not any(_is_rounded(x, n) for x in kept)]


@cache
def _numbers_in(record: Path) -> frozenset[float]:
    # A file is named without its ending.
    found = record.rglob("*") if record.is_dir() else record.parent.glob(f"{record.name}*")
    files = [path for path in found if path.is_file()]
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files)
    return frozenset(float(x) for text in texts for x in re.findall(r"\d*\.?\d+", text))


def _is_rounded(x: float, said: str) -> bool:
    number = said.rstrip(" %")
    off = 0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-12
    return any(abs(own - float(number)) <= off for own in ((x, 100 * x) if "%" in said else (x,)))


def _rounds_to(formula: str, said: str) -> bool:
    decimals = len(said.partition(".")[2])
    return round(eval(formula, vars(math).copy()), decimals) == float(said.replace(",", ""))


def main(root: Path, chapters: list[str], every: bool) -> None:
    """Print the claims of some chapters."""
    stated = stated_bases()
    for chapter in read_chapters(root):
        if chapters and not any(chapter.path.stem.startswith(one) for one in chapters):
            continue
        for claim in claims_of(chapter, stated.get(chapter.path.stem, {})):
            unknown = ", ".join(numbers_without_record(claim, root))
            if every or unknown or not claim.basis:
                why = claim.basis + f", but {unknown} is not there" * bool(unknown)
                print(f"{claim.place}: {claim.sentence}" + f"  [{why}]" * bool(why))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="List what the chapters claim.")
    parser.add_argument("chapters", nargs="*", help="their numbers, such as 06")
    parser.add_argument("--all", action="store_true", help="also what is backed, with its basis")
    asked = parser.parse_args()
    main(Path(__file__).resolve().parents[2], asked.chapters, asked.all)
