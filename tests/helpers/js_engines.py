"""The page's engine in the two places that run JavaScript: V8 alone, and a browser."""

import json
import re
import sys
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "assets" / "model"
sys.path.insert(0, str(DOCS / "site_build"))
import constants  # noqa: E402

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


ENGINE = ("refusals.js", "engine.js", "sampling.js", "tokenizer.js", "checkpoint.js")
"""The scripts that compute with a model and read it, each after those that it imports."""


@cache
def script(name):
    """Return a script of the site; the one of constants is made, as a build makes it."""
    made = name == Path(constants.FILE).name
    return constants.as_module() if made else (FOLDER / name).read_text("utf-8")


def as_module(*names):
    """Return scripts, each after those that it imports, as an expression: their exports."""
    code = "\n".join(map(script, names))
    code = re.sub(r'^import \{[^}]*\} from "\./\w+\.js";', "", code, flags=re.MULTILINE)
    return as_expression(code, script("constants.js") if names != ("constants.js",) else "")


def as_expression(code, before=""):
    """Return a script without imports as an expression: an object of its exports."""
    exported = re.findall(r"^export (?:class|const|function\*?) (\w+)", code, flags=re.MULTILINE)
    code = re.sub(r"^export ", "", before + code, flags=re.MULTILINE)
    return f"(() => {{ {code}\nreturn {{{','.join(exported)}}}; }})()"


class Racer:
    """V8 without a browser."""

    def __init__(self, *names):
        from py_mini_racer import MiniRacer

        self.engine = MiniRacer()
        self.engine.eval(f"{SHIM} const M = {as_module(*(names or ENGINE))};")

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
        self.page.evaluate(
            "async (names) => { const all = names.map((name) => import(`/${name}`));"
            " window.M = Object.assign({}, ...await Promise.all(all)); }",
            ENGINE,
        )

    def _answer(self, route):
        if (name := route.request.url.rpartition("/")[2]).endswith(".js"):
            route.fulfill(body=script(name), content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><title>engine</title>", content_type="text/html")

    def run(self, function, given=None):
        """Return what a JavaScript function of the module M and JSON returns."""
        call = f"given => JSON.stringify(({function})(M, given) ?? null)"
        return json.loads(self.page.evaluate(call, given))

    def close(self):
        self.context.close()
