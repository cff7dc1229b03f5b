"""Take the README's pictures from the built site, light and dark: docs/assets/readme/*.webp.

python -m mkdocs build && python .ci/readme_pictures.py   (needs playwright's Chromium and Pillow)
"""

import functools
import http.server
import io
import shutil
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "assets" / "readme"
CHAPTER, PIECE = "chapters/01_attention/#eq-alpha", 'button[data-piece="1"]'
NO_CURSOR = ".at-cursors { visibility: hidden }"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that does not print its requests."""

    def log_message(self, format, *args) -> None:
        """Print nothing."""


def save(shot: bytes, name: str, height: int | None = None) -> None:
    """Write a screenshot, cut to a height, as WebP."""
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    picture = picture.crop((0, 0, picture.width, height or picture.height))
    PICTURES.mkdir(exist_ok=True)
    picture.save(PICTURES / f"{name}.webp", quality=80, method=6)


def take(page: Page, address: str, scheme: str) -> None:
    """Take both pictures in one color scheme."""
    page.goto(address + CHAPTER)
    page.wait_for_timeout(1000)
    save(page.screenshot(), f"chapter-{scheme}")
    page.goto(address + "hear/")
    page.click(PIECE)
    page.add_style_tag(content=NO_CURSOR)
    page.wait_for_timeout(6000)  # the score is drawn
    save(page.locator("#slp-hear-stage").screenshot(), f"tab-{scheme}", height=790)


def main() -> None:
    """Serve the site, and take the pictures."""
    handler = functools.partial(Quiet, directory=ROOT / "site")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for scheme in ("light", "dark"):
            how = {"viewport": {"width": 1100, "height": 660}, "device_scale_factor": 1.5}
            page = browser.new_context(color_scheme=scheme, **how).new_page()
            take(page, f"http://127.0.0.1:{server.server_port}/", scheme)
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
