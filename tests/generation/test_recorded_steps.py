"""Steps that an NVIDIA GPU records once and replays: the same words, whatever is written.

Without a GPU, what would be replayed is computed anew on the same fixed places, which is all of it
but the GPU's own part; `--device cuda` has test_second_device record in earnest.
"""

import pytest
import torch
from tiny_training import language_model

from slp_transformer import generate
from slp_transformer.cache import KVCache
from slp_transformer.generation import recorded_steps, session
from slp_transformer.generation.recorded_steps import (
    RecordedStep,
    can_be_recorded,
    record_if_faster,
)
from slp_transformer.hooks import record_activations
from slp_transformer.modern import ModernConfig, ModernLM


@pytest.fixture
def recordings(monkeypatch):
    """Steps are recorded here too, from the first rows on; counts how often."""
    counted = []

    def record(compute, device):
        counted.append(device)
        compute()  # as in warming up: what it writes must not matter
        return compute

    def step(model, cache, new_tokens):
        return RecordedStep(model, cache) if can_be_recorded(model) else None

    monkeypatch.setattr(recorded_steps, "record", record)
    monkeypatch.setattr(recorded_steps, "MIN_ROWS", 4)
    monkeypatch.setattr(session, "record_if_faster", step)
    return counted


def modern(**changes):
    torch.manual_seed(0)
    sizes = {"model_dim": 12, "num_heads": 6, "num_kv_heads": 2, "num_blocks": 2}
    return ModernLM(ModernConfig(11, 43, **sizes | changes))


MODELS = {
    "the book's": lambda: language_model(context_length=43),
    "sinusoids": lambda: language_model(context_length=43, positions="sinusoidal"),
    "post-norm": lambda: language_model(context_length=43, norm="post"),
    "rotations": modern,
    "rotations of some columns": lambda: modern(rotary_share=0.5, model_dim=24, num_heads=6),
}
MODES = [
    {"temperature": 0},
    {"temperature": 0.9, "top_k": 4},
    {"temperature": 1.0, "stop": {2, 3, 5}},
    {"repetition_penalty": 1.3, "temperature": 0},
    {"num_beams": 3},
    {"num_beams": 3, "stop": {2, 3}},
]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", MODES, ids=lambda how: "-".join(how))
@pytest.mark.parametrize("prompts", [[[1]], [[1, 2], [3], [4, 5, 6]]], ids=["one", "three"])
def test_the_same_words_are_written(name, how, prompts, monkeypatch, request):
    model = MODELS[name]()

    def write():
        torch.manual_seed(1)
        return [(each.ids, each.score) for each in generate(model, prompts, 31, **how)]

    expected = write()
    recordings = request.getfixturevalue("recordings")
    found = write()
    assert [ids for ids, _ in found] == [ids for ids, _ in expected]
    for (_, mine), (_, yours) in zip(found, expected, strict=True):
        assert mine == pytest.approx(yours, rel=1e-5)
    assert recordings


def test_logits_are_those_of_the_model_and_rows_double(recordings):
    """4 rows, 8, 16, and then what there is room for; what memory held before does not matter."""
    model = language_model(context_length=43, num_blocks=2).eval()
    ids = torch.randint(7, (3, 20), generator=torch.Generator().manual_seed(2))
    cache = KVCache(19)
    with torch.inference_mode():
        expected = model(ids)
        model(ids[:, :2], cache=cache)
        for layer in (cache[0].self_attention, cache[1].self_attention):
            layer.K[..., 2:, :] = torch.nan
            layer.V[..., 2:, :] = torch.nan
        step = RecordedStep(model, cache)
        for T in range(2, 19):
            U = step(ids[:, T : T + 1], cache=cache)
            torch.testing.assert_close(U[:, 0], expected[:, T], rtol=1e-4, atol=1e-5)
            assert cache.length == T + 1
    assert len(recordings) == 4


def test_a_refused_guess_is_written_over(recordings):
    """With a draft model the text goes back, after which a step begins at an earlier row."""
    model, draft = (
        language_model(context_length=43),
        language_model(context_length=43, num_blocks=3),
    )
    torch.manual_seed(3)
    mine = generate(model, [[1, 2]], 31, draft_model=draft, temperature=0)[0].ids
    assert recordings
    assert mine == generate(model, [[1, 2]], 31, temperature=0, cached=False)[0].ids


def test_where_nothing_can_be_recorded_the_words_are_the_same_and_a_warning_says_so(
    recordings, monkeypatch
):
    def refuse(compute, device):
        compute()
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    model = language_model(context_length=43)
    expected = generate(model, [[1, 2], [3]], 31, temperature=0, cached=False)
    monkeypatch.setattr(recorded_steps, "record", refuse)
    with pytest.warns(UserWarning, match="slower: operation not permitted.*capturing$") as told:
        found = generate(model, [[1, 2], [3]], 31, temperature=0)
    assert [each.ids for each in found] == [each.ids for each in expected]
    assert len(told) == 1


def test_only_what_is_the_same_at_every_position_is_recorded():
    assert can_be_recorded(language_model()) and can_be_recorded(modern())
    assert not can_be_recorded(modern(window=5))
    hooked = language_model()
    with record_activations(hooked):
        assert not can_be_recorded(hooked)
    cache = KVCache(500)
    assert record_if_faster(language_model(), cache, 400) is None  # on a CPU


def test_a_full_cache_that_goes_back_is_gone_on_from(recordings):
    model, cache = language_model(context_length=19).eval(), KVCache(19)
    ids = torch.randint(7, (1, 19), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        expected = model(ids, cache=cache)
        cache.truncate(5)
        U = RecordedStep(model, cache)(ids[:, 5:6], cache=cache)
    torch.testing.assert_close(U[:, 0], expected[:, 5], rtol=1e-4, atol=1e-5)
    assert cache.length == 6
