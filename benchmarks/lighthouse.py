"""Lighthouse's marks for pages of a built site, and what it finds fault with.

    python -m mkdocs build --strict
    python benchmarks/lighthouse.py --out benchmarks/results/lighthouse/result.json

Pages are sent gzipped, as any host does. It needs Node.js; `npx` fetches Lighthouse. Marks for
performance mean something on a quiet machine only, so the load is recorded with them.
"""

import argparse
import functools
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import threading
from datetime import UTC, datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from slp_transformer._internal.json_files import write_json

LIGHTHOUSE = "lighthouse@13"
CHAPTERS = ("01_attention", "07_training", "13_pitch_to_tab")
PAGES = (
    "",
    *(f"chapters/{stem}/" for stem in CHAPTERS),
    *(f"{name}/" for name in "equations fingering write model hear break-it teachers".split()),
)
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
TEXT = {".html", ".css", ".js", ".json", ".svg", ".mjs", ""}


class Gzipped(SimpleHTTPRequestHandler):
    """Sends text packed."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a file of the site."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.send_error(404)
        content = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", f"{self.guess_type(path)}; charset=utf-8")
        if path.suffix in TEXT:
            content = gzip.compress(content)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def measure(url: str, command: list[str], place: Path) -> dict[str, Any]:
    """Return the marks of one page, and the names of what they were lowered for."""
    report = place / "report.json"
    flags = "--headless=new --no-sandbox --disable-gpu"
    options = [url, "--quiet", "--output=json", f"--output-path={report}"]
    options += [f"--chrome-flags={flags}", f"--only-categories={','.join(CATEGORIES)}"]
    subprocess.run([*command, *options], check=True, cwd=place)
    read = json.loads(report.read_text(encoding="utf-8"))
    audits = read["audits"]
    faults = {}
    for name in CATEGORIES[1:]:
        for ref in read["categories"][name]["auditRefs"]:
            audit = audits[ref["id"]]
            if ref["weight"] and audit["score"] is not None and audit["score"] < 1:
                items = audit.get("details", {}).get("items", [])
                faults[ref["id"]] = [str(item.get("node", item))[:300] for item in items[:5]]
    marks = {name: round(100 * (read["categories"][name]["score"] or 0)) for name in CATEGORIES}
    return {
        **marks,
        "layout_shift": round(audits["cumulative-layout-shift"]["numericValue"], 4),
        "largest_paint_s": round(audits["largest-contentful-paint"]["numericValue"] / 1000, 2),
        "blocked_ms": round(audits["total-blocking-time"]["numericValue"]),
        "bytes": round(audits["total-byte-weight"]["numericValue"]),
        "faults": faults,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, default=Path("site"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pages", nargs="+", default=PAGES, help="as write/; '' is home")
    parser.add_argument("--lighthouse", help="its command, where it is installed already")
    options = parser.parse_args()
    os.environ.setdefault(
        "CHROME_PATH", os.environ.get("SLP_CHROMIUM") or shutil.which("chromium") or ""
    )
    command = [options.lighthouse] if options.lighthouse else ["npx", "--yes", LIGHTHOUSE]
    handler = functools.partial(Gzipped, directory=str(options.site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for page in options.pages:
            url = f"http://127.0.0.1:{server.server_port}/{page}"
            found[page or "home"] = measure(url, command, Path(place))
            print(page or "home", json.dumps(found[page or "home"]), flush=True)
    server.shutdown()
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        date = datetime.now(UTC).date().isoformat()
        write_json(options.out, {"date": date, "lighthouse": LIGHTHOUSE, "pages": found})


if __name__ == "__main__":
    main()
