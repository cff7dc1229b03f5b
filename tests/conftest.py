"""Shapes in the package's signatures are checked while the tests run."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from jaxtyping import config, install_import_hook

install_import_hook("slp_transformer", "typechecking.checker")

# The tests' tensors are tiny: a second thread would only be waited for.
torch.set_num_threads(1)


@pytest.fixture
def unchecked():
    """Turn the shape checks off, for tests of what the package itself says to bad input."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def kernel(monkeypatch):
    """Records what PyTorch's kernel is asked for, and lets it answer."""
    calls, real = [], F.scaled_dot_product_attention

    def spy(Q, K, V, attn_mask=None, dropout_p=0.0, is_causal=False, **rest):
        calls.append({"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal})
        return real(Q, K, V, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, **rest)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    return calls


@pytest.fixture
def at(tmp_path, monkeypatch):
    """A folder to work in, with a text in it."""
    from commands import SENTENCE  # not above: the package has to be imported after the hook

    monkeypatch.chdir(tmp_path)
    Path("fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
    return tmp_path
