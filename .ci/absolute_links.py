"""Make the README's relative links absolute, for a page outside the repository.

python .ci/absolute_links.py https://host/owner/name v0.2.0
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def absolute(text: str, repository: str, ref: str) -> str:
    """The text with each link or picture of the repository given by its full address."""

    def replace(match: re.Match[str]) -> str:
        kind = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}({repository}/{kind}/{ref}/{match[2]})"

    text = re.sub(r'(src(?:set)?=")(?!https?:)', rf"\g<1>{repository}/raw/{ref}/", text)
    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#|mailto:)([^)\s]+)\)", replace, text)


if __name__ == "__main__":
    repository, ref = sys.argv[1:]
    README.write_text(absolute(README.read_text("utf-8"), repository, ref), "utf-8")
