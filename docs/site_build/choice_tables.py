"""Tables of choices in pages: `<!-- choices module:NAME -->` becomes the package's own table."""

import re
from pkgutil import resolve_name

MARKER = re.compile(r"<!-- choices (\S+) -->")


def fill(markdown: str) -> str:
    """Return a page with each table in its place."""
    return MARKER.sub(lambda match: resolve_name(match[1]).to_markdown(), markdown)
