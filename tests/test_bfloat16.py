"""Products in bfloat16 by way of float32: the numbers of autocast, on every CPU."""

import platform
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from slp_transformer import MultiHeadAttention, TransformerConfig, TransformerLM
from slp_transformer import bfloat16 as module
from slp_transformer.attention import attention, causal_mask
from slp_transformer.bfloat16 import ThroughFloat32, bfloat16_products, has_bfloat16
from slp_transformer.blockwise import causal_in_blocks
from slp_transformer.loss import next_token_loss
from slp_transformer.training import train

COARSE = 2**-8  # half the distance of two neighbouring numbers, next to 1


@pytest.mark.parametrize(
    ("machine", "instructions", "expected"),
    [
        ("AMD64", {"avx512_bf16": False, "amx_tile": False, "mkldnn_bf16": True}, False),
        ("x86_64", {"avx512_bf16": True, "amx_tile": False, "mkldnn_bf16": False}, True),
        ("x86_64", {"avx512_bf16": False, "amx_tile": True, "mkldnn_bf16": False}, True),
        ("x86_64", {"avx512_bf16": False}, True),  # nobody knows of the other
        ("aarch64", {"avx512_bf16": True, "amx_tile": True, "mkldnn_bf16": False}, False),
        ("arm64", {"avx512_bf16": False, "amx_tile": False, "mkldnn_bf16": True}, True),
        ("arm64", {"avx512_bf16": False, "amx_tile": False}, True),
    ],
)
def test_bf16_instructions_are_asked_for_by_machine(machine, instructions, expected, monkeypatch):
    probes = {f"_is_{name}_supported": lambda yes=yes: yes for name, yes in instructions.items()}
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch, "cpu", SimpleNamespace(**probes))
    monkeypatch.setattr(torch, "ops", SimpleNamespace(mkldnn=SimpleNamespace(**probes)))
    assert has_bfloat16() is expected


@pytest.mark.skipif(platform.system() != "Linux", reason="/proc/cpuinfo is Linux's")
def test_bf16_instructions_of_this_machine_are_those_that_linux_lists():
    listed = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    assert has_bfloat16() is bool({"avx512_bf16", "amx_bf16", "bf16"} & set(listed))


@pytest.fixture
def lacks(monkeypatch):
    """A CPU without the instructions, or the belief to be one."""
    monkeypatch.setattr(module, "has_bfloat16", lambda: False)
    monkeypatch.setattr("slp_transformer.blockwise.has_bfloat16", lambda: False)


@pytest.fixture
def seen(monkeypatch):
    """Which of PyTorch's functions were computed here."""
    called = []
    for function, ours in module.INSTEAD.items():
        name = function.__name__

        def spy(*given, name=name, ours=ours, **options):
            called.append(name)
            return ours(*given, **options)

        monkeypatch.setitem(module.INSTEAD, function, spy)
    return called


def whole(*shape: int) -> torch.Tensor:
    """Whole numbers so small that their products and sums are exact even in bfloat16."""
    return torch.randint(-2, 3, shape).float().requires_grad_()


WAYS = {
    "a matrix": (lambda A, B: A @ B, (3, 5), (5, 2)),
    "rows of a batch": (lambda A, B: A.matmul(B), (7, 3, 5), (5, 2)),
    "two batches": (lambda A, B: torch.matmul(A, B), (7, 3, 5), (7, 5, 2)),
    "batches that must be spread": (lambda A, B: A @ B, (2, 1, 3, 5), (7, 5, 2)),
    "a matrix for a batch": (lambda A, B: A @ B, (3, 5), (7, 5, 2)),
    "linear": (F.linear, (7, 3, 5), (2, 5)),
    "linear with an offset": (F.linear, (7, 3, 5), (2, 5), (2,)),
    "no rows": (F.linear, (7, 0, 5), (2, 5), (2,)),
    "a row alone": (lambda A, B: A @ B, (5,), (5, 2)),
    "a row for a batch": (lambda A, B: A @ B, (5,), (7, 5, 2)),
    "a column alone": (lambda A, B: A @ B, (3, 5), (5,)),
}


@pytest.mark.parametrize("way", WAYS)
def test_products_and_their_first_and_second_gradients_are_exact_where_bfloat16_is(way, seen):
    function, *shapes = WAYS[way]
    given = [whole(*shape) for shape in shapes]
    expected = function(*(Z.double() for Z in given))
    along = whole(*expected.shape)
    with torch.autocast("cpu", torch.bfloat16), ThroughFloat32():
        Y = function(*given)
    assert len(seen) == 1 and Y.dtype == torch.bfloat16
    assert Y.shape == expected.shape and torch.equal(Y.double(), expected)
    found = torch.autograd.grad(Y, given, along.bfloat16(), create_graph=True)
    first = torch.autograd.grad(expected, given, along.double(), create_graph=True)
    assert all(d.dtype == torch.float32 for d in found)
    torch.testing.assert_close(found, first, rtol=0, atol=0)
    second = [
        torch.autograd.grad(sum(d.square().sum() for d in ds), along) for ds in (found, first)
    ]
    torch.testing.assert_close(*second, rtol=COARSE, atol=0)


def test_sums_are_rounded_once():
    A, B = torch.full((3, 4099), 1 + 2**-7), torch.full((4099, 2), 1 + 2**-7)
    with torch.autocast("cpu", torch.bfloat16), ThroughFloat32():
        Y = A @ B
    torch.testing.assert_close(Y.double(), A.double() @ B.double(), rtol=COARSE, atol=0)


def test_what_autocast_leaves_alone_is_left_alone():
    A, B, out = torch.rand(3, 5).double(), torch.rand(5, 2).double(), torch.empty(3, 2)
    with torch.autocast("cpu", torch.bfloat16), ThroughFloat32():
        assert torch.equal(A @ B, torch.einsum("nd,dk->nk", A, B))
        assert torch.matmul(A.float(), B.float(), out=out) is out
        assert F.linear(A, B.T).dtype == torch.float64
        assert (A.long() @ B.long()).dtype == torch.int64
        assert F.scaled_dot_product_attention(A, A, A).dtype == torch.float64


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_rounded_at_its_ends_alone(masked, seen):
    Q, K, V = (torch.randn(2, 3, 7, 5).bfloat16().requires_grad_() for _ in range(3))
    mask = causal_mask(7)
    expected, _ = attention(Q.double(), K.double(), V.double(), mask.double())
    how = {"attn_mask": mask.bfloat16()} if masked else {"is_causal": True}
    with torch.autocast("cpu", torch.bfloat16), ThroughFloat32():
        values = F.scaled_dot_product_attention(Q, K, V, **how)
    assert seen == ["scaled_dot_product_attention"] and values.dtype == torch.bfloat16
    torch.testing.assert_close(values.double(), expected, rtol=COARSE, atol=1e-6)
    along = torch.randn_like(values)
    found = torch.autograd.grad(values, (Q, K, V), along)
    expected = torch.autograd.grad(expected, (Q, K, V), along.double())
    torch.testing.assert_close(found, expected, rtol=2 * COARSE, atol=1e-5)


def test_attention_in_blocks_is_too(lacks):
    Q, K, V = (torch.randn(2, 3, 131, 5).bfloat16().requires_grad_() for _ in range(3))
    expected, _ = attention(Q.double(), K.double(), V.double(), causal_mask(131).double())
    with torch.autocast("cpu", torch.bfloat16):
        values = causal_in_blocks(Q, K, V)
    assert values.dtype == torch.bfloat16
    torch.testing.assert_close(values.double(), expected, rtol=COARSE, atol=1e-6)
    along = torch.randn_like(values)
    found = torch.autograd.grad(values, (Q, K, V), along)
    expected = torch.autograd.grad(expected, (Q, K, V), along.double())
    torch.testing.assert_close(found, expected, rtol=2 * COARSE, atol=1e-5)


def test_a_model_learns_as_with_autocast_itself(lacks, seen):
    torch.manual_seed(0)
    config = TransformerConfig(11, 257, model_dim=12, num_heads=3, num_blocks=2, activation="gelu")
    model = TransformerLM(config)
    ids = torch.randint(11, (2, 258))

    def gradient(context):
        model.zero_grad()
        with context:
            U = model(ids[:, :-1])
        next_token_loss(U, ids[:, 1:]).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()]), U.dtype

    exact, _ = gradient(torch.autocast("cpu", enabled=False))
    theirs, their_type = gradient(torch.autocast("cpu", torch.bfloat16))
    assert not seen
    ours, our_type = gradient(bfloat16_products("cpu"))
    assert len(seen) == 2 * 6 + 1 and our_type == their_type == torch.bfloat16
    error, allowed = ((found - exact).norm() / exact.norm() for found in (ours, theirs))
    assert 0 < error < 1.2 * allowed < 0.1


def test_the_sides_of_a_product_are_kept_in_bfloat16(lacks):
    kept = []
    layer = MultiHeadAttention(12, 3)
    pack = torch.autograd.graph.saved_tensors_hooks(lambda Z: kept.append(Z) or Z, lambda Z: Z)
    with pack, bfloat16_products("cpu"):
        torch.rand(7, 12) @ layer.W_Q
    assert [(tuple(Z.shape), Z.dtype) for Z in kept] == [
        ((7, 12), torch.bfloat16),
        ((12, 12), torch.bfloat16),
    ]


def test_transforms_of_functions_go_through():
    A, B = whole(7, 3, 5).detach(), whole(5, 2).detach()

    def loss(B, A):
        return (A @ B).float().square().sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))
    with torch.autocast("cpu", torch.bfloat16), ThroughFloat32():
        found = each(B, A)
    torch.testing.assert_close(found, each(B, A), rtol=COARSE, atol=0)


@pytest.mark.parametrize("there", [False, True])
def test_a_cpu_that_has_the_instructions_uses_them(there, seen, monkeypatch):
    monkeypatch.setattr(module, "has_bfloat16", lambda: there)
    context = bfloat16_products(torch.device("cpu"))
    for times in range(1, 4):  # a context is made once, and entered as often as wanted
        with context:
            assert (whole(3, 5) @ whole(5, 2)).dtype == torch.bfloat16
        assert len(seen) == times * (not there)
        assert (whole(3, 5) @ whole(5, 2)).dtype == torch.float32
        assert len(seen) == times * (not there)


def test_an_error_ends_it_too(lacks, seen):
    with pytest.raises(RuntimeError), bfloat16_products("cpu"):
        torch.rand(3, 5) @ torch.rand(3, 5)
    assert (whole(3, 5) @ whole(5, 2)).dtype == torch.float32 and len(seen) == 1


def test_training_goes_this_way(lacks, seen):
    stream = torch.arange(50) % 7
    train(TransformerLM(TransformerConfig(7, 5, 4, 2, 1)), stream, stream, steps=1, bf16=True)
    assert seen
    seen.clear()
    train(TransformerLM(TransformerConfig(7, 5, 4, 2, 1)), stream, stream, steps=1)
    assert not seen
