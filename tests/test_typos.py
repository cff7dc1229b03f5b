"""A type checker sees what somebody mistypes, and what a renamed function leaves behind."""

import ast
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import slp_transformer

PACKAGE = Path(slp_transformer.__file__).parent
ROOT = Path(__file__).parents[1]
LINES = """
from torch import Tensor
from slp_transformer import (
    BlockStack, EncoderDecoder, MultiHeadAttention, TransformerBlock, TransformerConfig,
    TransformerLM, TransformerStack, fused_attention, next_token_loss,
)
from slp_transformer.block import ResidualBlock
from slp_transformer.feedforward import FeedForward, make_feedforward
from slp_transformer.modern import ModernConfig, ModernLM, RopeScaling
from slp_transformer.modern.attention import GroupedQueryAttention

def typos(ids: Tensor, X: Tensor, config: TransformerConfig, today: ModernConfig) -> None:
"""
TYPOS = """
TransformerConfig(31, modle_dim=16)
TransformerConfig(31, activation="rleu")
TransformerConfig(31, initialization="gtp2")
TransformerConfig(31, positions="sinusiodal")
TransformerBlock(8, 2, norm="prost")
TransformerBlock(8, 2, norm="output")
TransformerBlock(8, 2, crossattention=True)
TransformerStack(2, 8, 2, dropuot=0.1)
TransformerStack(2, 8, 2, activation="sgelu")
TransformerStack(2, 8, 2, initialization="xaver")
TransformerBlock(8, 2)(X, causl=True)
TransformerBlock(8, 2)(X, H_ecn=X)
TransformerStack(2, 8, 2)(X, chace=None)
MultiHeadAttention(8, 2)(X, return_weight=True)
MultiHeadAttention(8, 2).forward(X, msak=None)
GroupedQueryAttention(8, 2)(X, positions_ids=ids)
GroupedQueryAttention(8, 2, bias="qvk")
TransformerLM(config)(ids, position_id=ids)
TransformerLM(config)(ids, attention_mask=X)
ModernLM(today)(ids, past_key_values=None)
EncoderDecoder(config)(ids, ids, source_msk=None)
ModernConfig(31, norm="paralel")
ModernConfig(31, rope_scalling=None)
RopeScaling("yran", 2.0)
FeedForward(8, activation="swiglu_")
make_feedforward(8, None, "geglu")
next_token_loss(X, ids, reduction="avg")
fused_attention(X, X, X, casual=True)
""".strip().splitlines()


def mypy(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The package beside nothing else, and what mypy knows already, above all of PyTorch."""
    pytest.importorskip("mypy", reason="pip install 'slp-transformer[dev]'")
    folder = tmp_path_factory.mktemp("typed")
    with suppress(FileNotFoundError, shutil.Error):  # it never ran, or runs at this moment
        shutil.copytree(ROOT / ".mypy_cache", folder / ".mypy_cache")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def checked(copied, monkeypatch):
    monkeypatch.chdir(copied)
    monkeypatch.delenv("MYPYPATH", raising=False)
    return copied


@pytest.mark.slow
def test_every_typo_is_seen(checked):
    written = LINES.strip() + "\n" + "".join(f"    {typo}\n" for typo in TYPOS)
    Path("typos.py").write_text(written, encoding="utf-8")
    first = written.splitlines().index(f"    {TYPOS[0]}") + 1
    seen = {int(error.split(":")[1]) - first for error in mypy("typos.py")}
    assert [TYPOS[n] for n in range(len(TYPOS)) if n not in seen] == []
    assert seen == {*range(len(TYPOS))}, "an error elsewhere"


CHOSEN = {
    "block.py": ["forward_post_norm"],
    "feedforward.py": ["squared_relu", "gelu_tanh", "SwiGLU"],
    "embedding.py": ["SinusoidalPositions"],
    "modern/rms_norm.py": ["RMSNorm"],
    "modern/rotary.py": ["stretch_by_yarn"],
    "modern/norm_orders.py": ["forward_parallel"],
}


@pytest.mark.slow
def test_parts_that_are_renamed_where_they_stand_are_missed(checked):
    """Names in strings would be missed by a reader alone, once somebody chose the part."""
    for file, names in CHOSEN.items():
        path = checked / PACKAGE.name / file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for node in ast.parse("".join(lines)).body:
            if (name := getattr(node, "name", None)) in names:
                line = node.lineno - 1
                lines[line] = lines[line].replace(name, f"{name}_renamed", 1)
        path.write_text("".join(lines), encoding="utf-8")
    errors = mypy("-p", PACKAGE.name)
    renamed = [name for names in CHOSEN.values() for name in names]
    assert [n for n in renamed if not any(f'"{n}"' in error for error in errors)] == []


def test_calls_of_modules_are_typed_as_their_forward_is():
    """`nn.Module.__call__` takes anything, so a typo in a call would be seen when it runs."""
    typed, found = set(), set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                own = [m for m in node.body if isinstance(m, ast.FunctionDef)]
                if any(m.name == "forward" and m.args.kwonlyargs for m in own):
                    found.add(node.name)
                if "__call__ = forward" in ast.unparse(node):
                    typed.add(node.name)
    assert len(found) > 5 and found - typed == {"ModernLM"}, "whose forward is TransformerLM's"


def test_no_forward_takes_arguments_that_it_does_not_name():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("forward"):
                assert node.args.kwarg is None, f"{path.name}, line {node.lineno}"
