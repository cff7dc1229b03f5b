"""The faster ways: switched off, every number is the same to rounding."""

import importlib.util
from contextlib import nullcontext

import pytest
import torch
from comparing import assert_same

from slp_transformer import (
    EncoderDecoder,
    LayerNorm,
    TransformerConfig,
    TransformerLM,
    padding_mask,
)
from slp_transformer._internal.reference_mode import fast_paths_enabled, reference_mode
from slp_transformer.loss import next_token_loss
from slp_transformer.modern import RMSNorm

CONFIG = TransformerConfig(23, 17, 15, 3, 2, source_vocab_size=19)


def logits(kind: type) -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = kind(CONFIG).double()
    for W in model.parameters():
        torch.nn.init.normal_(W, std=0.3)
    ids = torch.randint(1, 19, (3, 11))
    ids[0, 7:] = 0
    mask = padding_mask(ids, 0, dtype=torch.float64)
    given = (ids, mask) if kind is TransformerLM else (ids, torch.randint(23, (3, 11)), mask)
    return model, model(*given)


@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
def test_switched_off_logits_and_gradients_are_the_same(kind, kernel):
    targets = torch.randint(23, (3, 11), generator=torch.Generator().manual_seed(1))
    model, U = logits(kind)
    fast = torch.autograd.grad(next_token_loss(U, targets), list(model.parameters()))
    assert kernel
    kernel.clear()
    with reference_mode():
        model, U_plain = logits(kind)
        plain = torch.autograd.grad(next_token_loss(U_plain, targets), list(model.parameters()))
    assert not kernel and fast_paths_enabled()
    assert_same(U_plain, U)
    for one, other in zip(plain, fast, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)  # the loss is in float32


@pytest.mark.parametrize(("value", "enabled"), [("1", False), ("0", True), ("", True)])
def test_an_environment_variable_switches_them_off(value, enabled, monkeypatch):
    monkeypatch.setenv("SLP_TRANSFORMER_PLAIN", value)
    spec = importlib.util.find_spec("slp_transformer._internal.reference_mode")
    another = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(another)
    assert another.fast_paths_enabled() is enabled


@pytest.mark.parametrize("norm", [LayerNorm(24), RMSNorm(24)])
def test_a_norm_s_equation_is_what_its_kernel_computes(norm):
    X = torch.randn(5, 24)
    kernel = norm(X)
    with reference_mode():
        torch.testing.assert_close(norm(X), kernel)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("norm", [LayerNorm(24), RMSNorm(24)])
@pytest.mark.parametrize("plain", [False, True])
def test_rows_of_one_number_are_refused_and_not_broadcast(norm, plain):
    said = r"X has shape .*must be \[... × 24\]" if plain else "24"  # as PyTorch's kernel says it
    with reference_mode() if plain else nullcontext():
        for shape in ((5, 1), (5, 23), (1,)):
            with pytest.raises(ValueError if plain else RuntimeError, match=said):
                norm(torch.randn(shape))
