"""What the search knows of a page: prose, formulas as characters, and names; no code, no outputs,
no exercises.

Who searches wants the chapter first, then the equation, then the reference: so they are boosted in
this order. A page of the reference counts with its names and their first sentences alone, which
halves the index that every first visit loads.
"""

import re

import maths
import weaving

# The theme counts a word in a title a thousandfold, and the reference is all titles.
BOOST = {"chapter": 8.0, "page": 1.0, "equations": 0.1, "reference": 0.002}
EXERCISES = re.compile(r'<h([23]) id="exercise.*?(?=<h[1-3]\b(?! id="exercise)|$)', re.DOTALL)


def known(content: str, kind: str) -> str:
    """What the search is given of a page's content."""
    content = weaving.without_outputs(content)
    content = re.sub(r"<(pre|figure)\b.*?</\1>", "", content, flags=re.DOTALL)
    content = re.sub(r"<td data-search-exclude>.*?</td>", "", content, flags=re.DOTALL)
    content = maths.as_text(content)
    if kind == "chapter":
        content = EXERCISES.sub("", content)  # who looks for a thing wants it explained
    return _names(content) if kind == "reference" else content


def _names(content: str) -> str:
    """Each function and class on a page of the reference, with the first sentence about it."""
    parts = re.split(r"(<h[1-6]\b.*?</h[1-6]>)", content, flags=re.DOTALL)
    found = []
    for heading, below in zip(parts[1::2], parts[2::2], strict=True):
        if re.search(r'id="slp_transformer[^"]*\.[A-Z]\w*\.\w+"', heading):
            continue  # a method or an attribute: its class is found
        below = re.sub(r'<p class="slp-explained".*?</p>', "", below, flags=re.DOTALL)
        first = re.search(r"<p>(.*?(?:[.:](?=\s)|(?=</p>)))", below, flags=re.DOTALL)
        words = re.sub(r"<[^>]+>", "", first[1]) if first else ""
        found.append(f"{heading}<p>{words}</p>")
    return "".join(found)
