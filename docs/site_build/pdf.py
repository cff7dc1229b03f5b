"""Prints the chapters: a PDF of each, and one of all.

    python -m mkdocs build && python docs/site_build/pdf.py FOLDER

SLP_CHROMIUM names the browser, if it is not Playwright's own.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).resolve().parents[2] / "site"
SIDE = "18mm"
PAPER = {"format": "A4", "margin": dict.fromkeys(("top", "bottom", "left", "right"), SIDE)}

# Also the fonts and pictures of what no screen has shown yet.
LOADED = """Promise.all([
    ...[...document.fonts].map((one) => one.load().catch(() => {})),
    ...[...document.images].map((one) => one.decode().catch(() => {})),
])"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing about it."""

    def log_message(self, format, *args) -> None:
        """Print nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine for as long as a block runs; the address is given."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def print_chapters(page: Page, address: str, names: list[str], folder: Path) -> None:
    """Print the chapters of a site that is served at an address."""
    articles = []
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        page.goto(f"{address}chapters/{name}/")
        page.evaluate(LOADED)
        articles.append(page.evaluate("document.querySelector('article').innerHTML"))
        page.pdf(path=folder / f"{name}.pdf", **PAPER)
    # All chapters lie at the same depth, so that their pictures are found from any of them.
    page.evaluate("all => { document.querySelector('article').innerHTML = all.join('') }", articles)
    page.evaluate(LOADED)
    page.pdf(path=folder / "all.pdf", **PAPER)


def main(folder: Path) -> None:
    """Serve the site that was built, and print its chapters."""
    names = sorted(path.parent.name for path in SITE.glob("chapters/[0-9]*/index.html"))
    if not names:
        sys.exit("There is no site yet: run python -m mkdocs build first.")
    with serving(SITE) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("SLP_CHROMIUM"))
        print_chapters(browser.new_page(), address, names, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pdf"))
