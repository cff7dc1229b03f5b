"""The pages in which models run, without the site around them."""

import json
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import model_pages
import pytest
from js_engines import constants

from slp_transformer import TransformerConfig, TransformerLM

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "http://page.test/"
KINDS = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}


@cache
def model_of(name):
    """Return a model that a page has, from its folder, in float32."""
    from safetensors.torch import load_file

    folder = model_pages.model_folder(DOCS.parent, name)
    config = json.loads((folder / "config.json").read_text("utf-8"))["config"]
    model = TransformerLM(TransformerConfig(**config)).eval().requires_grad_(False)
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({key: W.float() for key, W in weights.items()})
    return model


def answering(title, name, body):
    """Return what answers a page's requests: the files of the site, and the page itself."""
    html = (
        f"<!doctype html><html lang=en style='font-size: 125%'><title>{title}</title>"
        "<style>body { margin: 0 16px; background: var(--md-default-bg-color); "
        "color: var(--md-default-fg-color) } a { color: var(--md-typeset-a-color) }</style>"
        '<link rel=stylesheet href="/assets/site.css">'
        f'<link rel=stylesheet href="/assets/model/{name}.css">'
        '<script src="/assets/alphatab/hear.js" defer></script>'
        f'<body data-md-color-scheme=default><main class="md-typeset"><h1>{title}</h1>'
        f'{body}</main><script type=module src="/assets/model/{name}.js"></script>'
    )

    def answer(route):
        name = route.request.url.removeprefix(ADDRESS).partition("?")[0]
        path = DOCS / name
        if name.startswith("assets/model/tab/"):  # as the hook adds them
            path = model_pages.model_folder(DOCS.parent, "tab") / path.name
        if name == constants.FILE:
            route.fulfill(body=constants.as_module(), content_type=KINDS[".js"])
        elif path.is_file():
            kind = KINDS.get(path.suffix, "application/octet-stream")
            route.fulfill(body=path.read_bytes(), content_type=kind)
        else:
            route.fulfill(body=html, content_type="text/html; charset=utf-8")

    return answer


# Some of a page waits until a pointer moves. A real one is lost if nothing has been painted yet.
DEED = "dispatchEvent(new PointerEvent('pointermove', {movementX: 1}))"


@contextmanager
def on_a_phone(browser, answer, selector):
    """Open the page, wait for an element, and at the end see that nothing went wrong."""
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        opened, wrong = context.new_page(), []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        context.route("**/*", answer)
        opened.goto(ADDRESS)
        opened.evaluate(DEED)
        opened.wait_for_selector(selector)
        yield opened
        assert wrong == []


def assert_accessible(page):
    """Assert that axe finds nothing, colors in both schemes, and nothing scrolls sideways."""
    page.evaluate(pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT)
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    for scheme, how in (
        ("slate", {"runOnly": {"type": "rule", "values": ["color-contrast"]}}),
        (
            "default",
            {
                "runOnly": {"type": "tag", "values": rules},
                "rules": {"label-content-name-mismatch": {"enabled": True}},
            },
        ),
    ):
        page.evaluate(f"document.body.dataset.mdColorScheme = '{scheme}'")
        found = page.evaluate("how => axe.run(how)", how | {"resultTypes": ["violations"]})
        wrong = [(each["id"], each["nodes"][0]["target"]) for each in found["violations"]]
        assert wrong == [], scheme
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@contextmanager
def without_scripts(browser, answer):
    """Open the page where no script runs."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.route("**/*", answer)
        page.goto(ADDRESS)
        yield page
