"""Check what was built: files, metadata and version, and that the wheel works without the clone.

python .ci/check_wheel.py dist                            # files and metadata
python .ci/check_wheel.py dist --tag v0.3.0               # and the version
python .ci/check_wheel.py dist --install torch==2.13.0    # and use it in an empty environment
python .ci/check_wheel.py dist --within env               # or in one that is there
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.message import Message
from email.parser import BytesParser
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


RELATIVE_LINK = re.compile(r'(?:\]\(|src(?:set)?=")(?!https?:|#|mailto:)([^)"]+)')


def tracked_files(pattern: str) -> set[str]:
    """The files that git knows, of a folder or pattern."""
    command = ["git", "ls-files", pattern]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return set(listed.splitlines())


def check_files(wheel: Path) -> None:
    """Exit with a sentence if the wheel has more or fewer files than the package."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    packaged = tracked_files("slp_transformer") | tracked_files("slp_guitar")
    missing, extra = packaged - names, names - packaged
    if missing or extra:
        sys.exit(f"{wheel.name}: missing {sorted(missing)}, not in the package {sorted(extra)}")


def read_metadata(wheel: Path, sdist: Path) -> dict[str, Message]:
    """What the wheel and the sdist say of themselves, by their file names."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        of_wheel = archive.read(name)
    with tarfile.open(sdist) as archive:
        root = sdist.name.removesuffix(".tar.gz")
        of_sdist = archive.extractfile(f"{root}/PKG-INFO").read()
    parse = BytesParser().parsebytes
    return {wheel.name: parse(of_wheel), sdist.name: parse(of_sdist)}


def find_metadata_faults(metadata: Message) -> list[str]:
    """What is wrong with the licenses that an archive names."""
    table = (ROOT / "THIRD_PARTY.md").read_text("utf-8")
    ids = set(re.findall(r"\| ([\w.-]+-\d[\d.]*|BSD-3-Clause) \|", table)) | {"MIT"}
    named = set((metadata["License-Expression"] or "").split(" AND "))
    texts = {"LICENSE", "THIRD_PARTY.md"} | tracked_files("*LICENSE.txt")
    shipped = set(metadata.get_all("License-File", []))
    return [
        *(f"license {name} of THIRD_PARTY.md is not named" for name in sorted(ids - named)),
        *(f"license {name} is named, but not in THIRD_PARTY.md" for name in sorted(named - ids)),
        *(f"{name} is missing" for name in sorted(texts - shipped)),
    ]


def check_metadata(wheel: Path, sdist: Path, is_release: bool) -> None:
    """Exit with a sentence if a license or, of a release, a link's address is missing."""
    for name, metadata in read_metadata(wheel, sdist).items():
        if faults := find_metadata_faults(metadata):
            sys.exit(f"{name}: " + "; ".join(faults))
        text = str(metadata.get_payload())
        if relative := sorted(set(RELATIVE_LINK.findall(text))):
            said = (
                f"{name}: {len(relative)} links of the README are relative and lead nowhere on "
                f"PyPI ({relative[0]} ...). Build with the repository's address in REPO_URL."
            )
            if is_release:
                sys.exit(said)
            print(said)


def check_version(version: str, tag: str) -> None:
    """Exit with a sentence if the tag or the changelog has another version."""
    if tag != f"v{version}":
        sys.exit(f"The tag is {tag}, but the version is {version}.")
    if f"## [{version}] - " not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        sys.exit(f"CHANGELOG.md has no section and date for {version}.")


def use(wheel: Path, first: list[str], environment: Path | None) -> None:
    """Install the wheel in an empty environment and train, generate, check and finger with it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if environment is None:
            environment = folder / "env"
            venv.create(environment, with_pip=True)
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")

        def run(program: str, *arguments: str) -> None:
            subprocess.run([scripts / program, *arguments], cwd=folder, check=True)

        if first:
            run("python", "-m", "pip", "install", "--quiet", "--no-compile", *first)
        run("python", "-m", "pip", "install", "--quiet", "--no-compile", f"{wheel}[guitar,text]")
        run("python", "-c", PROGRAM)
        (folder / "texts").mkdir()
        (folder / "texts" / "a.txt").write_text("It was the best of times. " * 400, "utf-8")
        tiny = ["--steps", "20", "--num-blocks", "1", "--model-dim", "16", "--num-heads", "2"]
        run("slp-transformer", "train", "text", "texts", "--out-dir", "mine", *tiny)
        run("slp-transformer", "generate", "mine", "--prompt", "It was", "--max-new-tokens", "20")
        run("slp-transformer", "train", "tabs", "--out-dir", "tabs", *tiny)
        short = ["--max-new-tokens", "40"]
        run("slp-transformer", "generate", "tabs", "--output", "piece.mid", *short)
        run("slp-transformer", "tab", "piece.mid", "-o", "piece.gp5")
        run("slp-transformer", "generate", "guitar", "--output", "song.gp5", *short)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag")
    parser.add_argument("--install", nargs="*", metavar="FIRST")
    parser.add_argument("--within", type=Path, metavar="ENVIRONMENT")
    options = parser.parse_args()
    (wheel,) = options.folder.glob("*.whl")
    (sdist,) = options.folder.glob("*.tar.gz")
    if options.tag:
        check_version(wheel.name.split("-")[1], options.tag)
    check_files(wheel)
    check_metadata(wheel, sdist, is_release=bool(options.tag))
    if options.install is not None or options.within:
        within = options.within and options.within.absolute()
        use(wheel.resolve(), options.install or [], within)
