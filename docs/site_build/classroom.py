"""Makes a folder that a class can use without a network: the site, the notebooks, the package.

    python docs/site_build/classroom.py classroom

Pages open from the file system, or with everything that pages can do (search, the model in the
page) by `python -m http.server --directory classroom/site`. Wheels of other packages are not in it.
"""

import re
import subprocess
import sys
from pathlib import Path

import exercises

ROOT = Path(__file__).resolve().parents[2]
READ_ME = """For a class without a network.

site/        the pages: open site/index.html. For search and the model in the page, run
             python -m http.server --directory site
             and open http://127.0.0.1:8000
notebooks/   the exercises, for JupyterLab
{wheel}
             the package: python -m pip install --no-index --no-deps {wheel}
             It needs PyTorch, which is not in this folder.
"""


def with_files(html: str) -> str:
    """Return a page whose relative links to folders lead to their index.html."""
    link = r'href="(?![a-z]+:|/|#)([^"#?]*?)/?([?#][^"]*|)"'

    def to_file(match: re.Match[str]) -> str:
        path, anchor = match.groups()
        if re.search(r"\.\w+$", path) and not path.endswith(".."):
            return match[0]
        return f'href="{path or "."}/index.html{anchor}"'

    return re.sub(link, to_file, html)


def main(folder: Path) -> None:
    """Write the folder, which must not be there yet."""
    if folder.exists():
        sys.exit(f"{folder} is there already: name another folder, or delete it.")
    site = folder / "site"
    run = [sys.executable, "-m"]
    subprocess.run(
        [*run, "mkdocs", "build", "--strict", "-d", site.resolve()], cwd=ROOT, check=True
    )
    for page in site.rglob("*.html"):
        page.write_text(with_files(page.read_text("utf-8")), "utf-8", newline="\n")
    exercises.write_all(ROOT, folder / "notebooks")
    wheel = [*run, "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(wheel, check=True)
    name = next(folder.glob("*.whl")).name
    (folder / "README.txt").write_text(READ_ME.format(wheel=name), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "classroom"))
