"""Lists what the chapters claim: sentences with numbers or superlatives, and what each rests on.

    python docs/site_build/claims.py [--all] [CHAPTER ...]

A claim about a model that was trained, or about random numbers, has to be recorded in
`benchmarks/results/`, asserted by a cell of its section, or say of how many seeds it speaks. Those
that do none of this are listed; with --all also the others, with their reason.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import short_path
from chapter_source import Chapter, read_chapters

CLAIM = re.compile(
    r"\b(?:best|worst|fewest|least|most|largest|smallest|highest|lowest|nearly all|always|"
    r"never|hardly|half|thirds?|quarters?|times as|than the)\b|"
    r"\d+(?:\.\d+)? ?%|\b0?\.\d+|\b\d+\.\d{1,3}\b"
)
CHANCE = re.compile(r"manual_seed|randn|\btrain\(|optimizer\.step|\.sample|generate\(")
RECORD = re.compile(r"benchmarks/results/[\w/]+")
SEVERAL = re.compile(r"\bseeds?\b|\bruns?\b|\bof (?:\d+|three|four|five) (?:models|pairs)", re.I)


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


def claims_of(chapter: Chapter) -> Iterator[Claim]:
    """Find the claims of a chapter, section by section."""
    line, is_chance, heading = 1, False, 0
    cells = short_path.cells_of(chapter)
    for place, cell in enumerate(cells):
        line = chapter.script.count("\n", 0, chapter.script.find(_first_line(cell), 0)) + 1
        if cell.cell_type == "code":
            is_chance = is_chance or CHANCE.search(cell.source) is not None
            continue
        if re.match("## ", cell.source):
            heading = place
        end = next((k for k in range(place + 1, len(cells)) if _is_section(cells[k])), len(cells))
        section = "\n".join(one.source for one in cells[heading:end])
        for sentence in _sentences(cell.source):
            if CLAIM.search(sentence):
                basis = _basis(sentence, cell.source, section, is_chance)
                yield Claim(f"{chapter.path.name}:{line}", sentence, basis)


def _is_section(cell) -> bool:
    return cell.cell_type == "markdown" and re.match("## ", cell.source) is not None


def _first_line(cell) -> str:
    return cell.source.partition("\n")[0]


NO_PROSE = re.compile(
    r"(?s)\$\$.*?\$\$|```.*?```|<span class=\"eq\".*?</span>|<a href=\"[^\"]*#eq.*?</a>|"
    r"\[\([\d., ]+\)\]\([^)]*\)|\((?:\d+\.\d+(?: to |, | · |-)?)+\)|\bFigs?\. [\d., ·()]+"
)  # formulas, samples, and the numbers of equations and figures


def _sentences(text: str) -> list[str]:
    text = NO_PROSE.sub("", text)
    text = re.sub(r"<[^>]+>|\]\([^)]*\)|^#+ .*$|^\|.*$", "", text, flags=re.M)
    return [" ".join(one.split()) for one in re.split(r"(?<=[.?!:])\s+(?=[A-Z*`])|\n\n", text)]


def _basis(sentence: str, cell: str, section: str, is_chance: bool) -> str:
    if found := RECORD.search(sentence) or RECORD.search(cell) or RECORD.search(section):
        return f"recorded in {found[0]}"
    if SEVERAL.search(sentence):
        return "says its seeds"
    if not is_chance:
        return "nothing random so far"
    return "asserted in its section" if re.search(r"^assert ", section, re.M) else ""


def main(root: Path, chapters: list[str], every: bool) -> None:
    """Print the claims of some chapters."""
    for chapter in read_chapters(root):
        if chapters and not any(chapter.path.stem.startswith(one) for one in chapters):
            continue
        for claim in claims_of(chapter):
            if every or not claim.basis:
                print(f"{claim.place}: {claim.sentence}" + f"  [{claim.basis}]" * bool(claim.basis))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="List what the chapters claim.")
    parser.add_argument("chapters", nargs="*", help="their numbers, such as 06")
    parser.add_argument("--all", action="store_true", help="also what is backed, with its basis")
    asked = parser.parse_args()
    main(Path(__file__).resolve().parents[2], asked.chapters, asked.all)
