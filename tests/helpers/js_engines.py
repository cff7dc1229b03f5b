"""The page's engine in the two places that run JavaScript: V8 alone, and a browser."""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "model"
SOURCE = FOLDER / "engine.js"
# V8 alone has no decoder of UTF-8; a browser's own is used there.
SHIM = """
class TextDecoder {
  decode(bytes) { return decodeURIComponent(escape(String.fromCharCode(...bytes))); }
}
class TextEncoder {
  encode(text) {
    return Uint8Array.from(unescape(encodeURIComponent(text)), (c) => c.charCodeAt(0));
  }
}
"""


def exported():
    """Return the names that the engine exports."""
    pattern = r"^export (?:class|const|function\*?) (\w+)"
    return re.findall(pattern, SOURCE.read_text("utf-8"), flags=re.MULTILINE)


class Racer:
    """V8 without a browser."""

    def __init__(self):
        from py_mini_racer import MiniRacer

        code = re.sub(r"^export ", "", SOURCE.read_text("utf-8"), flags=re.MULTILINE)
        self.engine = MiniRacer()
        self.engine.eval(
            f"{SHIM} const M = (() => {{ {code}\nreturn {{{','.join(exported())}}} }})();"
        )

    def run(self, function, given=None):
        """Return what a JavaScript function of the module M and JSON returns."""
        call = f"JSON.stringify(({function})(M, {json.dumps(given)}) ?? null)"
        return json.loads(self.engine.eval(call))

    def close(self):
        self.engine.close()


class Chromium:
    """A page that imports the engine as a module."""

    def __init__(self, browser):
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.page.route("**/*", self._answer)
        self.page.goto("http://engine.test/")
        self.page.evaluate("async () => { window.M = await import('/engine.js') }")

    def _answer(self, route):
        if route.request.url.endswith("/engine.js"):
            route.fulfill(body=SOURCE.read_text("utf-8"), content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><title>engine</title>", content_type="text/html")

    def run(self, function, given=None):
        """Return what a JavaScript function of the module M and JSON returns."""
        call = f"given => JSON.stringify(({function})(M, given) ?? null)"
        return json.loads(self.page.evaluate(call, given))

    def close(self):
        self.context.close()
