"""Which way is chosen, where the ways themselves cannot show it."""

import torch

from slp_transformer.choices import better_in_blocks, better_recomputed


def test_compiled_models_are_left_to_pytorch(monkeypatch):
    Q = torch.rand(2, 3, 257, 5, requires_grad=True)
    assert better_in_blocks(Q, Q, Q, 0.0) and better_recomputed(Q)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not better_in_blocks(Q, Q, Q, 0.0) and not better_recomputed(Q)


def test_devices_that_were_not_measured_are_too():
    Q = torch.rand(2, 3, 257, 5, requires_grad=True)
    there = torch.empty_like(Q, device="meta")
    assert not better_in_blocks(Q, there, Q, 0.0) and not better_recomputed(Q, there)
