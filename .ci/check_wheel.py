"""Check what was built: the files of the wheel, its version, and that it works without the clone.

python .ci/check_wheel.py dist                            # the files alone
python .ci/check_wheel.py dist --tag v0.2.0               # and the version
python .ci/check_wheel.py dist --install torch==2.13.0    # and use it in an empty environment
"""

import argparse
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import torch
from slp_transformer import TransformerBlock, check
from slp_transformer.attention import attention

block = TransformerBlock(model_dim=8, num_heads=2)
assert block(torch.randn(3, 5, 8), causal=True).shape == (3, 5, 8)
assert check.attention(attention)
"""


def packaged_files() -> set[str]:
    """The files of the package that git knows."""
    command = ["git", "ls-files", "slp_transformer"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return set(listed.splitlines())


def check_files(wheel: Path) -> None:
    """Exit with a sentence if the wheel has more or fewer files than the package."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    missing, extra = packaged_files() - names, names - packaged_files()
    if missing or extra:
        sys.exit(f"{wheel.name}: missing {sorted(missing)}, not in the package {sorted(extra)}")


def use(wheel: Path, first: list[str]) -> None:
    """Install the wheel in an empty environment and train, generate, check and finger with it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")

        def run(program: str, *arguments: str) -> None:
            subprocess.run([scripts / program, *arguments], cwd=folder, check=True)

        if first:
            run("python", "-m", "pip", "install", "--quiet", *first)
        run("python", "-m", "pip", "install", "--quiet", f"{wheel}[guitar,text]")
        run("python", "-c", PROGRAM)
        (folder / "texts").mkdir()
        (folder / "texts" / "a.txt").write_text("It was the best of times. " * 400, "utf-8")
        tiny = ["--steps", "20", "--num-blocks", "1", "--model-dim", "16", "--num-heads", "2"]
        run("slp-transformer", "train", "text", "texts", "--out-dir", "mine", *tiny)
        run("slp-transformer", "generate", "mine", "--prompt", "It was", "--max-new-tokens", "20")
        run("slp-transformer", "train", "tabs", "--out-dir", "tabs", *tiny)
        run(
            "slp-transformer", "generate", "tabs", "--output", "piece.mid", "--max-new-tokens", "40"
        )
        run("slp-transformer", "tab", "piece.mid", "-o", "piece.gp5")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag")
    parser.add_argument("--install", nargs="*", metavar="FIRST")
    options = parser.parse_args()
    (wheel,) = options.folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    if options.tag not in (None, f"v{version}"):
        sys.exit(f"The tag is {options.tag}, but the version is {version}.")
    check_files(wheel)
    if options.install is not None:
        use(wheel.resolve(), options.install)
