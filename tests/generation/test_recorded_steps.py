"""Steps that an NVIDIA GPU records once and replays: the same words, whatever is written.

Without a GPU, the tensor operations of a step are written down once and carried out again on the
same places, and no Python runs: all of it but the GPU's own part. `--device cuda` has
test_second_device record in earnest.
"""

import contextlib
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from sampled import mostly_slow
from tiny_training import language_model
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from slp_transformer import generate
from slp_transformer.cache import KVCache
from slp_transformer.generation import recorded_steps, session
from slp_transformer.generation.recorded_steps import (
    FixedRows,
    RecordedStep,
    can_be_recorded,
    record_if_faster,
)
from slp_transformer.hooks import record_activations
from slp_transformer.modern import ModernConfig, ModernLM


class Tape(TorchDispatchMode):
    """Writes tensor operations down; `replay` carries them out again, onto the same tensors."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, found))
        return found

    def replay(self):
        for func, args, kwargs, found in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(found), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


@pytest.fixture
def recordings(monkeypatch):
    """Steps are recorded here too, from the first rows on; counts how often."""
    counted = []

    def record(compute, device):
        counted.append(device)
        compute()  # as in warming up: what it writes must not matter
        with Tape() as tape:
            compute()
        return tape.replay

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
PROMPTS = [[[1]], [[1, 2], [3], [4, 5, 6]]]
MODES = [
    {"temperature": 0},
    {"temperature": 0.9, "top_k": 4},
    {"temperature": 1.0, "stop": {2, 3, 5}},
    {"repetition_penalty": 1.3, "temperature": 0},
    {"num_beams": 3},
    {"num_beams": 3, "stop": {2, 3}},
]


@pytest.mark.parametrize("name", mostly_slow(MODELS, *[*MODELS][::2]))
@pytest.mark.parametrize("how", MODES, ids=lambda how: "-".join(how))
@pytest.mark.parametrize("prompts", mostly_slow(PROMPTS, PROMPTS[1]), ids=["one", "three"])
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


def test_what_python_computed_in_a_step_is_never_computed_again(recordings, monkeypatch):
    """Else these tests would see nothing: a number that Python looked up stays what it was."""

    def compute(self):
        mask = torch.zeros(1, self._rows).masked_fill(self._columns > self.cache.length, -torch.inf)
        layers = [block.self_attention for block in self._blocks]
        for block, layer in zip(self._blocks, layers, strict=True):
            block.self_attention = FixedRows(layer, self._position, self._rows)
        self._U = self.model(self._ids, mask, cache=self.cache, position_ids=self._position)
        for block, layer in zip(self._blocks, layers, strict=True):
            block.self_attention = layer

    model = language_model(context_length=43)
    with torch.no_grad():
        for W in model.parameters():
            W.mul_(7)
    whole = generate(model, [[1, 2]], 31, temperature=0, cached=False)[0].ids
    assert generate(model, [[1, 2]], 31, temperature=0)[0].ids == whole
    monkeypatch.setattr(RecordedStep, "_compute", compute)
    assert generate(model, [[1, 2]], 31, temperature=0)[0].ids != whole


def replace_forward(model):
    plain, part = model.stack.blocks[0].forward, model.stack.blocks[0]
    part.forward = lambda *args, **kwargs: plain(*args, **kwargs)
    return lambda: vars(part).pop("forward")


def replace_forward_of_a_class(model):
    kind = type(model.stack.blocks[0].ffn)
    plain = kind.forward
    kind.forward = lambda self, *args, **kwargs: plain(self, *args, **kwargs)
    return lambda: setattr(kind, "forward", plain)


def add_global_hook(_):
    return nn.modules.module.register_module_forward_hook(lambda *_: None).remove


def add_global_hook_before(_):
    return nn.modules.module.register_module_forward_pre_hook(lambda *_: None).remove


@pytest.mark.parametrize(
    "change",
    [replace_forward, replace_forward_of_a_class, add_global_hook, add_global_hook_before],
)
def test_python_of_others_in_a_pass_is_not_recorded_over(change):
    model = language_model()
    undo = change(model)
    try:
        assert not can_be_recorded(model)
    finally:
        undo()
    assert can_be_recorded(model)


class FakeCuda:
    """As much of `torch.cuda` as records on two GPUs; each thread has a device and a stream."""

    def __init__(self, monkeypatch):
        self.here, self.captured, self.inside, self.most = threading.local(), [], 0, 0
        self.states = {0: "free", 1: "free"}  # of the generators
        self.fails = False
        for name in ("Stream", "current_stream", "set_stream", "device", "stream", "CUDAGraph"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        generators = [SimpleNamespace(clone_state=lambda: "free") for _ in range(2)]
        for d, one in enumerate(generators):
            one.graphsafe_set_state = lambda state, d=d: self.states.update({d: state})
        monkeypatch.setattr(torch.cuda, "default_generators", generators)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: self.at[0])
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        monkeypatch.setattr(torch._C, "_host_emptyCache", lambda: None, raising=False)
        monkeypatch.setattr(torch.cuda.graph, "default_capture_stream", None)

    @property
    def at(self):
        return getattr(self.here, "at", (0, "default"))

    def Stream(self):
        return SimpleNamespace(place=(self.at[0], "side"), wait_stream=lambda _: None)

    def current_stream(self):
        return SimpleNamespace(place=self.at, wait_stream=lambda _: None)

    def set_stream(self, stream):
        self.here.at = stream.place

    @contextlib.contextmanager
    def device(self, device):
        before, self.here.at = self.at, (torch.device(device).index, "default")
        yield
        self.here.at = before

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.here.at = self.at, stream.place
        yield
        self.here.at = before

    def CUDAGraph(self):
        def begin(*_, **__):
            self.captured.append(self.at[0])
            self.states[self.at[0]] = "captures"
            self.inside += 1
            self.most = max(self.most, self.inside)

        def end():
            self.inside -= 1
            if self.fails:
                raise RuntimeError("operation failed due to a previous error during capture")
            self.states[self.at[0]] = "free"

        return SimpleNamespace(capture_begin=begin, capture_end=end, replay=lambda: None)


def test_two_gpus_of_one_process_each_record_on_their_own(monkeypatch):
    cuda, computed = FakeCuda(monkeypatch), []
    for d in ("cuda:0", "cuda:1"):
        recorded_steps.record(lambda: computed.append(cuda.at), torch.device(d))
    assert cuda.captured == [0, 1] and computed == [(0, "side")] * 3 + [(1, "side")] * 3


def test_threads_record_one_after_the_other(monkeypatch):
    cuda = FakeCuda(monkeypatch)
    give = torch.device("cuda:0")
    threads = [
        threading.Thread(target=recorded_steps.record, args=(lambda: time.sleep(0.02), give))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cuda.captured) == 3 and cuda.most == 1


def test_a_capture_that_fails_leaves_generator_and_stream_as_they_were(monkeypatch):
    cuda = FakeCuda(monkeypatch)
    cuda.fails = True
    with torch.cuda.device("cuda:1"):
        with pytest.raises(RuntimeError, match="previous error"):
            recorded_steps._record_here(lambda: None)
        assert cuda.at == (1, "default") and cuda.states == {0: "free", 1: "free"}
    cuda.fails = False
    recorded_steps.record(lambda: None, torch.device("cuda:1"))  # and the lock is free
