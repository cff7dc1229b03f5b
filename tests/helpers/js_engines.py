"""The scripts of the site's pages in V8, without a browser."""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "model"
# V8 alone has no decoder of UTF-8.
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


class Racer:
    """V8 with what a script without imports exports, as the module M."""

    def __init__(self, name="engine.js"):
        from py_mini_racer import MiniRacer

        code = (FOLDER / name).read_text("utf-8")
        pattern = r"^export (?:class|const|function\*?) (\w+)"
        names = ",".join(re.findall(pattern, code, flags=re.MULTILINE))
        code = re.sub(r"^export ", "", code, flags=re.MULTILINE)
        self.engine = MiniRacer()
        self.engine.eval(f"{SHIM} const M = (() => {{ {code}\nreturn {{{names}}} }})();")

    def run(self, function, given=None):
        """Return what a JavaScript function of the module M and JSON returns."""
        call = f"JSON.stringify(({function})(M, {json.dumps(given)}) ?? null)"
        return json.loads(self.engine.eval(call))

    def close(self):
        self.engine.close()
