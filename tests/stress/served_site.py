"""Serve the site for an hour while its files are edited, broken, renamed and deleted.

    python tests/stress/served_site.py --minutes 60 --seed 0

A copy of the project is served. Every few seconds a sentence is added to a chapter or a page, an
error is put into a chapter's code, or a chapter or a page is renamed or deleted; the server has ten
minutes to show what follows from that, then the change is taken back. At the end each page must be
what it was at the beginning. Memory and open files are sampled (Linux).
"""

import argparse
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0
CHAPTERS = [path.stem for path in sorted((ROOT / "chapters").glob("*.py"))]
PAGES = ["notation", "pytorch", "teachers", "decisions", "command-line"]


class Server:
    """The served copy in a folder."""

    def __init__(self, root: Path) -> None:
        """Start it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.root, self.log = root, root.parent / "log.txt"
        command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", self.address]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, cwd=root, stdout=log, stderr=log)

    def page(self, name: str) -> str:
        """A page's text, without what differs from one build to the next."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/{name}/", timeout=60) as answer:
                text = answer.read().decode("utf-8")
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            return f"HTTP {getattr(error, 'code', None)}"
        # The plugin's own links to the reference have these; those to its kept pages do not.
        text = re.sub(r' class="autorefs[^"]*"( title="[^"]*")?', "", text)
        return re.sub(r"livereload\(\d+, \d+\)", "", text)

    def wait(self, name: str, is_right, what: str) -> float:
        """The seconds until a page is right; raises if it never is."""
        start = time.monotonic()
        while not is_right(shown := self.page(name)):
            if self.process.poll() is not None or time.monotonic() - start > PATIENCE:
                tail = self.log.read_text("utf-8")[-1500:]
                raise SystemExit(f"{what}: {name} stayed wrong: {shown[:200]}\n{tail}")
            time.sleep(0.2)
        return time.monotonic() - start

    def size(self) -> tuple[int, int]:
        """Its memory in KiB and its open files, with those of the processes that it started."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        memory = int(status.partition("VmRSS:")[2].split()[0])
        return memory, len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def disturb(server: Server, chance: random.Random, count: int) -> tuple[str, float]:
    """Make one change, wait until it is shown, and take it back."""
    kind = chance.choice(["edit"] * 4 + ["page", "page", "error", "syntax", "rename", "delete"])
    stem = chance.choice(PAGES if kind == "page" else CHAPTERS)
    file = server.root / (f"docs/{stem}.md" if kind == "page" else f"chapters/{stem}.py")
    name = stem if kind == "page" else f"chapters/{stem}"
    text, before, mark = file.read_text("utf-8"), server.page(name), f"mark{count}"
    if kind == "page":
        file.write_text(f"{text}\n{mark}\n", "utf-8")
    elif kind == "edit":
        file.write_text(f"{text}\n# %% [markdown]\n# {mark}\n", "utf-8")
    elif kind in ("error", "syntax"):
        code = f"raise ValueError('{mark}')" if kind == "error" else f"{mark} = ("
        first = re.search(r"^# %%$", text, flags=re.MULTILINE)
        file.write_text(f"{text[: first.end()]}\n{code}\n{text[first.end() :]}", "utf-8")
    elif kind == "rename":
        file.rename(file.with_stem(f"{stem}x"))
    else:
        file.unlink()
    if kind == "rename":
        seconds = server.wait(f"{name}x", lambda shown: not shown.startswith("HTTP"), kind)
        file.with_stem(f"{stem}x").rename(file)
    elif kind == "delete":
        seconds = server.wait(name, lambda shown: shown.startswith("HTTP 404"), kind)
        file.write_text(text, "utf-8")
    else:
        seconds = server.wait(name, lambda shown: mark in shown, kind)
        file.write_text(text, "utf-8")
    server.wait(name, lambda shown: shown == before, f"after {kind}")
    return kind, seconds


def main() -> None:
    """Run the soak and print what was done."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance, done, sizes, slowest = random.Random(asked.seed), Counter(), [], Counter()
    with TemporaryDirectory() as temporary:
        root = Path(temporary) / "project"
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        for name in listed.splitlines():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        with suppress(FileNotFoundError):
            shutil.copytree(ROOT / ".cache", root / ".cache")
        server = Server(root)
        try:
            global PATIENCE
            patience, PATIENCE = PATIENCE, 1200.0
            for name in [f"chapters/{stem}" for stem in CHAPTERS] + PAGES:
                server.wait(name, lambda s: not s.startswith("HTTP"), "start")
                server.wait(name, lambda s: "slp-running" not in s, "start")
            PATIENCE = patience
            names = [f"chapters/{stem}" for stem in CHAPTERS] + PAGES
            first, end = [server.page(name) for name in names], time.time() + 60 * asked.minutes
            while time.time() < end:
                kind, seconds = disturb(server, chance, sum(done.values()))
                done[kind] += 1
                slowest[kind] = max(slowest[kind], round(seconds, 1))
                sizes.append(server.size())
                time.sleep(chance.uniform(0, 5))
            wrong = [n for n, was in zip(names, first, strict=True) if server.page(n) != was]
        finally:
            server.process.terminate()
            server.process.wait()
    quarter = len(sizes) // 4
    parts = (sizes[quarter : 2 * quarter], sizes[3 * quarter :])
    grown = [[int(median(column)) for column in zip(*part, strict=True)] for part in parts]
    print(f"{dict(done)}, slowest {dict(slowest)} s; pages not as they were: {wrong}")
    print(f"memory in KiB and open files: second quarter {grown[0]}, last {grown[1]}")


if __name__ == "__main__":
    main()
