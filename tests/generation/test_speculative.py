"""Speculative decoding: the words, and how often they come, are those of the model alone."""

import itertools

import pytest
import torch
from writers import SOURCES, WINDOW, V, make, seeded

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM, generate


@pytest.mark.parametrize(
    ("kind", "cached", "count"),
    [
        *((TransformerLM, True, 1), (TransformerLM, False, 3), (TransformerLM, True, 40)),
        *((EncoderDecoder, False, 1), (EncoderDecoder, True, 3)),
    ],
)
def test_greedy_words_are_those_of_greedy(kind, cached, count):
    model, draft = make(kind).double(), make(kind, seed=1, num_blocks=1).double()
    options = {"temperature": 0, "cached": cached, "repetition_penalty": 1.2}
    if kind is EncoderDecoder:
        options["sources"] = SOURCES[:1]
    for prompt, stop in itertools.product(([3, 1, 4], [5]), ((), 8)):
        alone = generate(model, [prompt], stop=stop, **options)
        for small in (draft, model):  # whose words are all accepted
            how = {"draft_model": small, "num_draft_tokens": count, **options}
            assert generate(model, [prompt], stop=stop, **how) == alone


@pytest.mark.slow
def test_texts_come_as_often_as_from_the_model_alone(unchecked):
    """Three words of a vocabulary of four: 64 texts, whose probabilities are known."""
    torch.manual_seed(0)
    config = TransformerConfig(4, 8, model_dim=6, num_heads=2, num_blocks=1)
    model, draft = TransformerLM(config).double(), TransformerLM(config).double()
    with torch.no_grad():
        for weights in (*model.parameters(), *draft.parameters()):
            weights.mul_(5)
    count, generator, counts = 800, seeded(), torch.zeros(4, 4, 4)
    options = {"draft_model": draft, "num_draft_tokens": 2, "top_k": 3, "temperature": 1.5}
    for _ in range(count):
        (text,) = generate(model, [[1]], 3, generator=generator, **options)
        counts[tuple(text.new_ids)] += 1
    exact = torch.zeros(4, 4, 4)
    for words in itertools.product(range(4), repeat=3):
        u = model(torch.tensor([[1, *words]]))[0, :3].detach() / 1.5
        u[u < u.topk(3, dim=-1).values[:, -1:]] = -torch.inf
        exact[words] = torch.softmax(u, dim=-1)[range(3), words].prod()
    spread = 4 * (exact * (1 - exact) / count).sqrt() + 1e-9
    assert ((counts / count - exact).abs() <= spread).all()
    assert (exact > 0.02).sum() > 8  # not one answer to everything


def test_a_good_draft_saves_calls_of_the_model(monkeypatch):
    model, calls = make(), []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda *a, **k: calls.append(1) or forward(*a, **k))
    draft, heard = make(), []  # the same weights
    options = {"draft_model": draft, "on_token": lambda row, word: heard.append(word)}
    (text,) = generate(model, [[3, 1]], 10, generator=seeded(), **options)
    assert text.new_ids == heard and len(heard) == 10 and len(calls) == 2  # five words a call


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draft_model": make(context_length=WINDOW - 1)}, "no smaller window: it has 11 tokens"),
        ({"draft_model": make(EncoderDecoder)}, "of the model's kind"),
        ({"draft_model": make(), "num_draft_tokens": 0}, "num_draft_tokens must be"),
        ({"draft_model": make(), "num_beams": 2}, "no beam search"),
        ({"draft_model": make(), "prompts": [[1], [2]]}, "one prompt"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        generate(make(), **{"prompts": [[V - 1]], **options})
