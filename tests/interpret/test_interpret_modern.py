"""The same tools on models of today: other norms, turned positions, shared heads, a head apart."""

import torch

from slp_transformer.interpret import (
    find_hook_points,
    logit_lens,
    patch_activations,
    residual_stream,
    zero_ablate,
)
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.language_model import ModernLM


@torch.no_grad()
def test_points_and_the_lens_work_on_a_model_of_today():
    torch.manual_seed(0)
    config = ModernConfig(23, 11, 24, 6, 2, num_kv_heads=3, tied=False)
    model, ids = ModernLM(config).eval(), torch.randint(23, (2, 11))
    with patch_activations(model) as seen:
        U = model(ids)
    assert set(seen) == set(find_hook_points(model))
    torch.testing.assert_close(seen["1.T2"] + seen["1.X"], seen["1.T3"])
    stream = residual_stream(model, ids)
    torch.testing.assert_close(logit_lens(model, stream["1.H"]), U)
    with patch_activations(model, patches={"0.head": zero_ablate(5)}):
        assert not torch.equal(model(ids), U)
    torch.testing.assert_close(model(ids), U)
