"""Single tokens by work that is always the same, as a CUDA graph needs it: the same words."""

import pytest
import standin
import torch
from test_trainer import language_model

from slp_transformer import KVCache, generate
from slp_transformer._internal.reference_mode import reference_mode
from slp_transformer.generation import cuda_graphs

VARIANTS = [{}, {"norm": "post"}, {"positions": "sinusoidal"}, {"activation": "swiglu"}]


@pytest.fixture
def everywhere(monkeypatch):
    """As if each device had CUDA's graphs, and each recording paid; counts the recordings."""
    made = []

    class Counted(cuda_graphs.CudaGraphStep):
        def __init__(self, *args):
            made.append(self)
            super().__init__(*args)

    monkeypatch.setattr(cuda_graphs, "on_cuda", lambda model: True)
    monkeypatch.setattr("slp_transformer.generation.decoding.CudaGraphStep", Counted)
    return made


def model_of(changes):
    return language_model(context_length=41, **changes)


@pytest.mark.parametrize("changes", VARIANTS)
def test_logits_are_those_of_the_model(changes):
    model, ids = model_of(changes).eval(), torch.arange(14).view(2, 7) % 7
    caches = KVCache(41), KVCache(41)
    with torch.no_grad():
        for cache in caches:
            model(ids[:, :4], cache=cache)
        recording = cuda_graphs.CudaGraphStep(model, caches[0], 2)
        for n in range(4, 7):
            expected = model(ids[:, n : n + 1], cache=caches[1])
            torch.testing.assert_close(recording(ids[:, n : n + 1]), expected)
        assert caches[0].length == caches[1].length == 7
        later = ids[:, :2]  # the cache goes on in the model's own way too
        torch.testing.assert_close(model(later, cache=caches[0]), model(later, cache=caches[1]))


@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize(
    "how",
    [{"temperature": 0}, {"top_k": 3}, {"num_beams": 3}, {"num_beams": 2, "stop": 3}],
    ids=str,
)
def test_written_by_it_the_words_are_the_same(changes, how, everywhere):
    model, prompts = model_of(changes), [[1, 2], [3, 4, 5, 6], [2]]

    def written():
        torch.manual_seed(1)
        return [each.ids for each in generate(model, prompts, **how)]

    ours = written()
    assert everywhere, "nothing was recorded"
    everywhere.clear()
    with reference_mode():
        assert ours == written()
    assert not everywhere


def test_rows_that_end_early_have_it_recorded_anew(everywhere):
    model = model_of({})
    alone = [generate(model, [[1] * n], 20, temperature=0)[0].ids for n in (20, 1)]
    everywhere.clear()
    both = generate(model, [[1] * 20, [1]], 20, temperature=0)
    assert [each.ids for each in both] == alone
    assert len(everywhere) == 2


def test_what_has_parts_of_another_kind_is_run_as_it_is(everywhere):
    model = model_of({})
    handle = model.stack.register_forward_hook(lambda *args: None)
    generate(model, [[1]], temperature=0)
    handle.remove()
    model.stack.blocks[0].hook = lambda name, X: X
    generate(model, [[1]], temperature=0)
    model.stack.blocks[0].hook = None
    generate(model, [[1]], 10, temperature=0)  # too few words
    assert not everywhere
    generate(model, [[1]], temperature=0)
    assert len(everywhere) == 1


def test_a_step_is_never_waited_for(everywhere):
    if standin.plug_in() is None:
        pytest.skip(f"PyTorch {torch.__version__} has no devices that are written in Python.")
    model = model_of({}).to(standin.plug_in()).eval()
    cache, ids = KVCache(41), torch.zeros(2, 1, dtype=torch.long, device=standin.NAME)
    with torch.no_grad():
        model(ids, cache=cache)
        recording = cuda_graphs.CudaGraphStep(model, cache, 2)
        standin.WAITS.clear()
        recording(ids), recording(ids)
    assert not standin.WAITS
