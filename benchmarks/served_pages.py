"""A reader's visit to what `mkdocs serve` shows, in Chromium: what they see, moment by moment.

    python benchmarks/served_pages.py first-start cells edits --out benchmarks/results/served_pages

`first-start` opens chapter 1 ten seconds after the first start of a fresh copy, opens three folds,
types a number, scrolls to an equation, and looks each half second until all chapters have run.
`cells` solves the exercises of chapter 1 in the page, by keyboard and buttons, makes mistakes,
changes a figure of chapter 3, and comes back after a restart. `edits` changes a sentence and waits
until the open page has it. Later parts use the copy of the first.
"""

import argparse
import http.client
import io
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

from slp_transformer._internal.json_files import write_json

ROOT = Path(__file__).resolve().parents[1]
FIRST, THIRD, LONGEST = "01_attention", "03_one_matrix", "13_pitch_to_tab"
EQUATION = "eq-head"
LOOK_S = 0.5
OPEN_AFTER_S = 10
QUIET_S = 20  # after everything, to see that nothing comes any more
LONGEST_S = 1200
BLANK = 0.004  # share of pixels that are not background, below which a screen counts as blank


class Served:
    """`mkdocs serve` in a folder, and what it logs."""

    def __init__(self, folder: Path, port: int) -> None:
        """Start it."""
        self.started = time.monotonic()
        self.lines: list[tuple[float, str]] = []
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append((self.seconds, line.rstrip()))

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def found(self, pattern: str) -> list[tuple[float, re.Match[str]]]:
        """Return the lines that match, with their times."""
        found = [(at, re.search(pattern, line)) for at, line in list(self.lines)]
        return [(at, match) for at, match in found if match]

    @property
    def link(self) -> str:
        """The link that the terminal shows, as soon as it does."""
        while not (shown := self.found(r"Serving on (\S+)")):
            if self.process.poll() is not None:
                raise SystemExit("\n".join(line for _, line in self.lines))
            time.sleep(0.05)
        return shown[0][1][1]

    def page(self, stem: str) -> str:
        """Return a chapter's address with the token."""
        address, _, token = self.link.partition("#")
        return f"{address}chapters/{stem}/#{token}"

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used so far, where the system says so: on Linux."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Stop it."""
        self.process.terminate()  # Ctrl-C is ignored by what a shell runs in the background
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


@contextmanager
def serving(folder: Path, port: int) -> Iterator[Served]:
    """A server that ends with the block."""
    served = Served(folder, port)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.stop()


def fresh_copy(folder: Path) -> None:
    """Write the files of the last commit, without anything that was built."""
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


# --- The first start -----------------------------------------------------------------------------

PROBE = """equation => {
  const article = document.querySelector("article");
  const inView = (one) => {
    const { top, bottom, height } = one.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < innerHeight;
  };
  const seen = [...(article?.querySelectorAll("h1, h2, h3, p, li, pre, svg, figure") ?? [])];
  const number = document.querySelector(".slp-touch input[type=number]");
  return {
    visit: performance.timeOrigin,
    blocks_in_view: seen.filter(inView).length,
    folds: [...document.querySelectorAll("article details[open]")].map(
      (one) => one.querySelector("summary").textContent.slice(0, 60)),
    cell: document.querySelector(".cm-content")?.textContent.includes("0.7, 0.3") ?? false,
    number: number?.value ?? null,
    outputs: document.querySelectorAll(
      "article .slp-output:not(.slp-cell-output)").length,
    top: document.getElementById(equation)?.getBoundingClientRect().top ?? null,
    updates: Number(document.documentElement.dataset.updates ?? 0),
  };
}"""


def ink(shot: bytes) -> float:
    """Return the share of pixels that are not of the commonest color, below the header."""
    with Image.open(io.BytesIO(shot)) as image:
        body = image.convert("L").crop((0, 100, *image.size))
        counts = body.histogram()
    return 1 - max(counts) / sum(counts)


class Requests(threading.Thread):
    """Asks for a page over and over, and keeps the longest wait."""

    def __init__(self, address: str) -> None:
        """Begin."""
        super().__init__(daemon=True)
        self.host, self.stopped = address.removeprefix("http://").strip("/"), threading.Event()
        self.waits: list[float] = []
        self.start()

    def run(self) -> None:
        """Ask until it is stopped."""
        while not self.stopped.wait(0.25):
            start = time.monotonic()
            connection = http.client.HTTPConnection(self.host, timeout=120)
            with suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/equations/")
                connection.getresponse().read()
                self.waits.append(time.monotonic() - start)
            connection.close()


def first_start(folder: Path, port: int, browser: Browser, shots: Path | None) -> dict[str, Any]:
    """Watch chapter 1 from the first start on until all chapters have run that had not."""
    stems = {path.stem for path in (folder / "chapters").glob("[0-9]*.py")}
    to_run = stems - {path.stem for path in (folder / ".cache" / "chapters").glob("*.json")}
    with serving(folder, port) as served:
        time.sleep(OPEN_AFTER_S)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(served.page(FIRST))
        opened = served.seconds
        requests = Requests(served.link.partition("#")[0])
        cell = page.locator(".slp-cell").nth(2)
        cell.get_by_role("button", name="Edit").click()
        replace_line(page, cell, "alpha_it[STRING], alpha_it[IT] = 0.75", TYPED)
        for name in ("Each step for one token", "The package and PyTorch", "Why divide?"):
            page.locator("article details > summary", has_text=name).first.click()
        scroll_to_equation(page)
        looks: list[dict[str, Any]] = []
        done_at, touched_at = None, None
        while served.seconds < LONGEST_S:
            began = time.monotonic()
            look = page.evaluate(PROBE, EQUATION)
            shot = page.screenshot()
            looks.append({"s": round(served.seconds, 2), "ink": round(ink(shot), 4), **look})
            if shots and len(looks) % 20 == 1:
                (shots / f"first-start-{len(looks):04}.png").write_bytes(shot)
            if touched_at is None and look["number"] is not None:
                field = page.locator(".slp-touch input[type=number]").first
                field.fill("7")
                scroll_to_equation(page)
                touched_at = served.seconds
            ran = served.found(r"Ran (chapters\S+) in (\d+) s")
            if done_at is None and len({match[1] for _, match in ran}) >= len(to_run):
                done_at = ran[-1][0]
            if done_at and served.seconds - done_at > QUIET_S:
                whole = served.found("Documentation built in")
                if whole[-1][0] > done_at and served.seconds - whole[-1][0] > QUIET_S:
                    break
            time.sleep(max(0.0, LOOK_S - (time.monotonic() - began)))
        requests.stopped.set()
        other = browser.new_page()
        other.goto(f"{served.link.partition('#')[0]}chapters/{FIRST}/")
        fresh = other.evaluate(PROBE, EQUATION)
        runs = [match[1] for _, match in served.found(r"Running (chapters\S+) in")]
        builds = len(served.found("Documentation built in"))
        page.close()
        other.close()
    before = [look for look in looks if touched_at is None or look["s"] < touched_at]
    after = [look for look in looks if touched_at is not None and look["s"] >= touched_at]
    return {
        "chapters_to_run": len(to_run),
        "opened_s": round(opened, 1),
        "all_ran_s": round(done_at, 1) if done_at else None,
        "number_typed_s": round(touched_at, 1) if touched_at else None,
        "looks": len(looks),
        "longest_between_looks_s": round(
            max(b["s"] - a["s"] for a, b in zip(looks, looks[1:], strict=False)), 2
        ),
        "least_ink": min(look["ink"] for look in looks),
        "blank": sum(look["ink"] < BLANK or look["blocks_in_view"] == 0 for look in looks),
        "loads": len({look["visit"] for look in looks}),
        "updates_in_place": looks[-1]["updates"],
        "folds_always_open": all(look["folds"] == looks[0]["folds"] for look in looks),
        "folds": looks[0]["folds"],
        "cell_always_as_typed": all(look["cell"] for look in looks),
        "number_always_as_typed": bool(after) and all(look["number"] == "7" for look in after),
        "equation_moved_px": [
            round(max(look["top"] for look in part) - min(look["top"] for look in part), 1)
            for part in (before, after)
            if part
        ],
        "equation_moved_at_s": [
            b["s"]
            for part in (before, after)
            for a, b in zip(part, part[1:], strict=False)
            if abs(b["top"] - a["top"]) >= 1
        ],
        "outputs": [looks[0]["outputs"], looks[-1]["outputs"]],
        "outputs_of_a_new_visit": fresh["outputs"],
        "chapters_run": len(runs),
        "chapters_run_twice": sorted({name for name in runs if runs.count(name) > 1}),
        "builds_of_everything": builds,
        "requests": len(requests.waits),
        "longest_request_s": round(max(requests.waits), 2),
        "median_request_s": round(statistics.median(requests.waits), 3),
        "errors_in_the_page": errors,
    }


TYPED = "alpha_it[STRING], alpha_it[IT] = 0.7, 0.3"


def scroll_to_equation(page: Page) -> None:
    """Scroll until the equation stands in the middle of the screen."""
    page.evaluate(
        "id => document.getElementById(id).scrollIntoView({ block: 'center' })",
        EQUATION,
    )


# --- A reader's hands ----------------------------------------------------------------------------


def line_of_cursor(page: Page) -> str:
    """Return the line of an editor in which the cursor stands."""
    return page.evaluate(
        """() => {
        const at = getSelection().anchorNode;
        const one = at?.nodeType === Node.TEXT_NODE ? at.parentElement : at;
        return one?.closest(".cm-line")?.textContent ?? "";
        }"""
    )


def replace_line(page: Page, cell: Locator, old: str, new: str) -> int:
    """Click on a line of a cell's editor, select it and type others in its place.

    Returns:
        How many keys went into indentation that the editor had not made.
    """
    cell.locator(".cm-line", has_text=old).first.click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    keys = 0
    for number, line in enumerate(new.split("\n")):
        if number:
            page.keyboard.press("Enter")
        text = line.lstrip()
        made = line_of_cursor(page)
        have, want = len(made) - len(made.lstrip()), len(line) - len(text)
        while number and have != want and text:
            page.keyboard.press("Tab" if have < want else "Backspace")
            made = line_of_cursor(page)
            have, keys = len(made) - len(made.lstrip()), keys + 1
        page.keyboard.type(text)
    return keys


def run_cell(cell: Locator) -> dict[str, Any]:
    """Press Run and wait; returns what the page then says and shows."""
    start = time.monotonic()
    cell.get_by_role("button", name="Run", exact=True).click()
    status = cell.locator(".slp-cell-status")
    wait_for(lambda: re.search(DONE, status.inner_text()), 240)
    output = cell.locator(".slp-cell-output")
    shown = output.inner_text() if output.is_visible() else ""
    seconds = round(time.monotonic() - start, 1)
    return {"status": status.inner_text(), "shows": shown, "seconds": seconds}


DONE = r"Ran in|raised an error|was not run|has died|has stopped|Open the link"


def wait_for(condition: Any, seconds: float) -> None:
    """Wait until something holds; a page's policy forbids the browser's own way."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


BLANK_LINE = "# your lines here"
ANSWERS = {
    "my_softmax": ("powers = torch.exp(scores - scores.max())\n    return powers / powers.sum()"),
    "my_weighted_sum": (
        "a_i = torch.zeros(rows.shape[1])\n"
        "    for alpha, row in zip(alpha_i, rows):\n"
        "        a_i = a_i + alpha * row\n"
        "    return a_i"
    ),
    "my_scaled_score": "return q_i @ k_j / len(k_j) ** 0.5",
    "my_simple_attention": (
        "scores = X[: i + 1] @ X[i]\n    return my_weighted_sum(my_softmax(scores), X[: i + 1])"
    ),
    "my_head": (
        "Q, K, V = X @ W_Q, X @ W_K, X @ W_V\n"
        "    out = []\n"
        "    for i in range(len(X)):\n"
        "        scores = []\n"
        "        for j in range(i + 1):\n"
        "            scores.append(my_scaled_score(Q[i], K[j]))\n"
        "        alpha = my_softmax(torch.stack(scores))\n"
        "        out.append(my_weighted_sum(alpha, V) @ W_O)\n"
        "    return torch.stack(out)"
    ),
}
MISTAKES = {  # the line of an answer, and the wrong one
    "my_softmax": (
        "powers = torch.exp(scores - scores.max())",
        "powers = torch.exp(scores)",
    ),
    "my_scaled_score": ("return q_i @ k_j / len(k_j) ** 0.5", "return q_i @ k_j / len(k_j)"),
    "my_head": ("for j in range(i + 1):", "for j in range(len(X)):"),
}


def exercise_of(page: Page, name: str) -> Locator:
    """Return the cell whose code, as the page shows it, begins an exercise."""
    number = page.evaluate(
        """name => [...document.querySelectorAll(".slp-cell")].find((mark) => {
        const code = mark.querySelector(".cm-content") ?? mark.nextElementSibling;
        return code.textContent.includes(`def ${name}(`);
        }).dataset.cell""",
        name,
    )
    return page.locator(f'.slp-cell[data-cell="{number}"]')


def cells(folder: Path, port: int, browser: Browser, shots: Path | None) -> dict[str, Any]:
    """Solve exercises, make mistakes, change a figure, come back after a restart."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found: dict[str, Any] = {"solved": {}, "mistakes": {}}

    def shoot(page: Page, name: str) -> None:
        if shots:
            page.screenshot(path=shots / f"cells-{name}.png")

    with serving(folder, port) as served:
        page = context.new_page()
        page.goto(served.page(FIRST))
        page.locator(".slp-cell-bar").first.wait_for()
        for name, answer in ANSWERS.items():
            cell = exercise_of(page, name)
            before = None
            if name == "my_softmax":
                before = run_cell(cell)  # the blank, as it is
            else:
                cell.get_by_role("button", name="Edit").click()
            right, wrong = MISTAKES.get(name, ("", ""))
            first = answer.replace(right, wrong) if right else answer
            keys = replace_line(page, cell, BLANK_LINE, first)
            if right:
                found["mistakes"][name] = run_cell(cell)
                shoot(page, f"wrong-{name}")
                replace_line(page, cell, wrong, right)
            cell.scroll_into_view_if_needed()
            found["solved"][name] = {**run_cell(cell), "keys_for_indentation": keys}
            if before:
                found["solved"][name]["blank"] = before["shows"]
            shoot(page, name)
        page.goto(f"{served.link.partition('#')[0]}chapters/{THIRD}/")
        figure = change_figure(page)
        shoot(page, "figure")
        found["figure"] = figure
        page.close()
        found["after_a_restart"] = {}
        served.stop()
        found["after_a_restart"] = again(folder, port, context, shoot)
    context.close()
    return found


def change_figure(page: Page) -> dict[str, Any]:
    """Change the mask of chapter 3 and run its cell: the figure is another."""
    page.locator(".slp-cell-bar").first.wait_for()
    number = page.evaluate(
        """() => [...document.querySelectorAll(".slp-cell")].find((mark) =>
        mark.nextElementSibling.textContent.includes("M[i, j] = -torch.inf")).dataset.cell"""
    )
    cell = page.locator(f'.slp-cell[data-cell="{number}"]')
    built = page.locator(f'.slp-cell[data-cell="{number}"] ~ figure svg').first.inner_html()
    cell.get_by_role("button", name="Edit").click()
    cell.locator(".cm-content").wait_for()
    replace_line(page, cell, "for j in range(i + 1, N)", "for j in range(i, N):")
    failed = run_cell(cell)  # the chapter's own assertion says that this is another mask
    replace_line(page, cell, "assert torch.equal(M, causal_mask(N))", "")
    changed = run_cell(cell)
    drawn = cell.locator(".slp-cell-output svg")
    svg = drawn.first.inner_html() if drawn.count() else ""
    return {
        "shows_a_figure": bool(svg),
        "with_its_assertion": failed["status"],
        "error": failed["shows"].strip().splitlines()[-1:],
        "without": changed["status"],
        "figure_is_another": svg != built,
        "reads": re.findall(r"−∞", changed["shows"])[:20],
    }


def again(folder: Path, port: int, context: BrowserContext, shoot: Any) -> dict[str, Any]:
    """Start the server again, with a new token, and look for everything."""
    with serving(folder, port) as served:
        page = context.new_page()
        page.goto(served.page(FIRST))
        page.locator(".slp-cell-bar").first.wait_for()
        kept = {}
        for name, answer in ANSWERS.items():
            cell = exercise_of(page, name)
            cell.locator(".cm-content").wait_for()
            lines = [" ".join(line.split()) for line in answer.split("\n")]
            text = [" ".join(line.split()) for line in cell.locator(".cm-line").all_inner_texts()]
            kept[name] = all(line in text for line in lines)
        last = run_cell(exercise_of(page, "my_head"))  # needs the answers above it
        shoot(page, "again")
        page.goto(f"{served.link.partition('#')[0]}chapters/{THIRD}/")
        page.locator(".cm-content", has_text="for j in range(i, N):").wait_for()
        page.close()
    return {"answers_kept": kept, "last_exercise_at_once": last, "chapter_3_kept": True}


# --- An edited sentence --------------------------------------------------------------------------

LOADS = ("as it is", "one core busy")


def edits(folder: Path, port: int, browser: Browser, shots: Path | None) -> dict[str, Any]:
    """Change a sentence of a chapter, several times, and time until the open page shows it."""
    result: dict[str, Any] = {}
    with serving(folder, port) as served:
        address = served.link.partition("#")[0]
        for load in LOADS:
            busy = None
            if load == LOADS[1]:
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for stem in (FIRST, LONGEST):
                path = next((folder / "chapters").glob(f"{stem}*.py"))
                page = browser.new_page()
                page.goto(f"{address}chapters/{path.stem}/")
                page.wait_for_timeout(3000)
                took = [edited(served, page, path, number) for number in range(3)]
                seconds, cpu = (list(one) for one in zip(*took, strict=True))
                result.setdefault(path.stem, {})[load] = {
                    "seconds": seconds,
                    "median_s": statistics.median(seconds),
                    "cpu_of_the_server_s": cpu,
                    "load": [round(one, 1) for one in os.getloadavg()],
                }
                page.close()
            if busy:
                busy.kill()
                busy.wait()
    return result


def edited(served: Served, page: Page, path: Path, number: int) -> tuple[float, float]:
    """Change a sentence, and return after how many seconds the page shows it, and those of CPU."""
    text = path.read_text(encoding="utf-8")
    paragraph = re.search(r"^# ([A-Z][a-z]+ .*)$", text.partition("\n# ## ")[2], re.MULTILINE)
    assert paragraph
    mark = f"Edit {number} of the sentence."
    path.write_text(text.replace(paragraph[0], f"# {mark} {paragraph[1]}", 1), encoding="utf-8")
    start, cpu = time.monotonic(), served.cpu
    try:
        shown = f"() => document.querySelector('article').textContent.includes({mark!r})"
        wait_for(lambda: page.evaluate(shown), 120)
        return round(time.monotonic() - start, 2), round(served.cpu - cpu, 2)
    finally:
        path.write_text(text, encoding="utf-8")
        gone = f"() => !document.querySelector('article').textContent.includes({mark!r})"
        wait_for(lambda: page.evaluate(gone), 120)
        time.sleep(1)


# -------------------------------------------------------------------------------------------------

PARTS = {"first-start": first_start, "cells": cells, "edits": edits}


def main() -> None:
    """Do the parts that are asked for, print and write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--out", type=Path, help="a folder for the results")
    parser.add_argument("--shots", type=Path, help="a folder for some of the pictures")
    parser.add_argument("--copy", type=Path, help="a folder for the copy, which then stays")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as started:
        folder = options.copy or Path(place)
        if not (folder / "mkdocs.yml").is_file():
            fresh_copy(folder)
        browser = started.chromium.launch(
            executable_path=os.environ.get("SLP_CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        for name in options.parts:
            result = {
                "date": datetime.now(UTC).date().isoformat(),
                "chromium": browser.version,
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "load_before": [round(one, 1) for one in os.getloadavg()],
                **PARTS[name](folder, port, browser, options.shots),
                "load_after": [round(one, 1) for one in os.getloadavg()],
            }
            print(name, json.dumps(result, indent=1, ensure_ascii=False))
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                write_json(options.out / f"{name.replace('-', '_')}.json", result)
        browser.close()


if __name__ == "__main__":
    main()
