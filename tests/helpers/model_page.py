"""A page with a model in it, without the site around it, in a browser."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
KINDS = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}


def html_of(title: str, name: str, body: str, head: str = "") -> str:
    """Return a page around a body, with the style sheet and the script of that name."""
    return (
        f"<!doctype html><html lang=en style='font-size: 125%'><title>{title}</title>"
        "<style>body { margin: 0 16px; background: var(--md-default-bg-color); "
        "color: var(--md-default-fg-color) } a { color: var(--md-typeset-a-color) }</style>"
        '<link rel=stylesheet href="/assets/site.css">'
        f'<link rel=stylesheet href="/assets/model/{name}.css">{head}'
        f'<body data-md-color-scheme=default><main class="md-typeset"><h1>{title}</h1>'
        f'{body}</main><script type=module src="/assets/model/{name}.js"></script>'
    )


def answering(html: Callable[[], str]) -> Callable:
    """Return what answers a browser: the files below docs, and the page for any other address."""

    def answer(route):
        path = DOCS / route.request.url.partition("test/")[2].partition("?")[0]
        if path.is_file():
            kind = KINDS.get(path.suffix, "application/octet-stream")
            route.fulfill(body=path.read_bytes(), content_type=kind)
        else:
            route.fulfill(body=html(), content_type="text/html; charset=utf-8")

    return answer


@contextmanager
def on_a_phone(browser, answer, alive: str) -> Iterator:
    """Open the page, once it shows what `alive` selects; no error may be thrown in it."""
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        opened, wrong = context.new_page(), []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        context.route("**/*", answer)
        opened.goto("http://page.test/")
        opened.wait_for_selector(alive)
        yield opened
        assert wrong == []


def assert_accessible(page) -> None:
    """Assert that axe finds nothing, and that nothing is wider than the page."""
    axe = pytest.importorskip("axe_playwright_python.base")
    page.evaluate(axe.AXE_SCRIPT)
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    found = page.evaluate(
        "rules => axe.run({runOnly: rules, resultTypes: ['violations']})",
        {"type": "tag", "values": rules},
    )["violations"]
    assert [(f["id"], f["nodes"][0]["target"], f["nodes"][0]["any"][:1]) for f in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
