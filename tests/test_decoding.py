"""Decoding: draws follow the distribution, stop where told, and never take what is forbidden."""

import pytest
import torch

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.decoding import sample


def small_model() -> TransformerLM:
    torch.manual_seed(0)
    config = TransformerConfig(7, context_length=5, model_dim=10, num_heads=2, num_blocks=1)
    model = TransformerLM(config)
    with torch.no_grad():  # far enough from uniform for a frequency to tell
        model.embedding.tokens.E.mul_(30)
    return model.eval()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_same_seed_same_words_past_the_window_too():
    model, prompt = small_model(), torch.tensor([3, 1])
    first, again = (sample(model, prompt, 13, generator=seeded()) for _ in range(2))
    assert torch.equal(first, again)
    assert len(first) == 15 and torch.equal(first[:2], prompt)
    assert not torch.equal(first, sample(model, prompt, 13, generator=seeded(1)))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_7_50_draws_from_softmax_of_u_over_tau(temperature):
    model, prompt = small_model(), torch.tensor([3, 1])
    generator = seeded()
    draws = [
        int(sample(model, prompt, 1, generator=generator, temperature=temperature)[-1])
        for _ in range(1500)
    ]
    expected = torch.softmax(model(prompt)[-1] / temperature, dim=-1)
    shares = torch.bincount(torch.tensor(draws), minlength=7) / 1500
    torch.testing.assert_close(shares, expected, atol=0.04, rtol=0)
    assert expected.max() > 0.2


def test_stops_after_the_stop_token():
    ids = sample(small_model(), torch.tensor([3]), 200, generator=seeded(), stop=4).tolist()
    assert ids[-1] == 4 and 4 not in ids[1:-1] and len(ids) < 201


def test_never_takes_what_is_not_allowed():
    ids = sample(
        small_model(),
        torch.tensor([3]),
        50,
        generator=seeded(),
        allowed=lambda ids: {2, 5} if ids[-1] == 3 or ids[-1] == 5 else {3},
    ).tolist()
    assert all(b == 3 if a == 2 else b in (2, 5) for a, b in zip(ids, ids[1:], strict=False))


def test_bad_input_is_named(unchecked):
    model, prompt = small_model(), torch.tensor([3])
    with pytest.raises(ValueError, match="prompt is empty"):
        sample(model, prompt[:0], 3, generator=seeded())
    with pytest.raises(ValueError, match="temperature must be above 0, not 0"):
        sample(model, prompt, 3, generator=seeded(), temperature=0)
    with pytest.raises(ValueError, match="allows no token"):
        sample(model, prompt, 3, generator=seeded(), allowed=lambda ids: set())
