"""The progress page: a drawing of the Transformer whose parts show which functions are right.

`progress_page.html` has the site's own drawing; `python docs/site_build/diagrams.py` puts it there.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from slp_transformer._internal.atomic_write import write_file
from slp_transformer.check.own.own_model import CHAPTERS, NEEDED, describe_need
from slp_transformer.check.verdict import Verdict

TEMPLATE = Path(__file__).with_suffix(".html")
# The functions that each part of the drawing needs, by the equation that the part leads to.
PART_FUNCTIONS = {
    "onehot": ("one_hot_lookup",),
    "X": ("input_encoding",),
    "ln": ("layer_norm",),
    "mh-par-out": ("multi_head_attention", "causal_mask", "attention", "split_heads", "join_heads"),
    "O": ("block",),
    "ffn": ("ffn",),
    "H": ("block",),
    "final-ln": ("stack",),
    "logits": ("lm_head",),
    "probs": ("softmax",),
    "top-p": ("temperature", "top_k", "top_p", "draw"),
    "kv-attn": ("cached_step",),
}
STATES = {"right": "right", "wrong": "not right yet", "empty": "not there yet"}

Verdicts = Mapping[str, Verdict | None]


def summarize_part(functions: tuple[str, ...], verdicts: Verdicts) -> str:
    """Return `wrong` if a function of a part is, `right` if all are, and otherwise `empty`."""
    found = [verdicts[name] for name in functions]
    if any(verdict is not None and not verdict for verdict in found):
        return "wrong"
    return "right" if all(found) else "empty"


def write_progress_page(path: Path, title: str, verdicts: Verdicts) -> None:
    """Write a page with the drawing and every verdict.

    Args:
        path: the page, which needs no other file.
        title: the name of the reader's file.
        verdicts: of each function of `CHAPTERS`; None for one that is not there.

    Raises:
        ValueError: if it cannot be written.
    """
    count = sum(bool(verdicts[name]) for name in NEEDED)
    page = TEMPLATE.read_text(encoding="utf-8")
    for slug, functions in PART_FUNCTIONS.items():
        state = summarize_part(functions, verdicts)
        link, label = f'<a href="#{slug}" ', 'aria-label="'
        marked = f'{link}data-state="{state}" {label}{STATES[state]}: '
        page = page.replace(link + label, marked)
    for key, value in {
        "title": escape(title),
        "count": f"{count} of the {len(NEEDED)}",
        "functions": "\n".join(_format_chapter(chapter, verdicts) for chapter in CHAPTERS),
    }.items():
        page = page.replace(f"<!-- {key} -->", value)
    try:
        write_file(path, page)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from None


def _format_chapter(chapter: str, verdicts: Verdicts) -> str:
    rows = "\n".join(_format_function(name, verdicts[name]) for name in CHAPTERS[chapter])
    return f"<h2>Chapter {chapter}</h2>\n<ul>\n{rows}\n</ul>"


def _format_function(name: str, verdict: Verdict | None) -> str:
    state = "empty" if verdict is None else "right" if verdict else "wrong"
    anchors = "".join(
        f'<span id="{slug}"></span>' for slug, names in PART_FUNCTIONS.items() if names[0] == name
    )
    need = describe_need(name)
    needed = f' <span class="quiet">({need})</span>' if need else ""
    line = f'{anchors}<strong class="{state}">{STATES[state]}</strong> <code>{name}</code>{needed}'
    if state != "wrong" or verdict is None:
        return f"<li>{line}</li>"
    example = escape("\n".join(verdict.example))
    shown = f'<pre tabindex="0">{example}</pre>' if example else ""
    return f"<li>{line}<br>{escape(verdict.text)}{shown}</li>"
