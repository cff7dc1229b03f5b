"""What PyTorch's tools do with a model: export, compile, transform, copy, fake and meta tensors."""

import copy
import io
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from slp_transformer import EncoderDecoder, KVCache, TransformerConfig, TransformerLM
from slp_transformer.lora import add_lora
from slp_transformer.modern import Bert, BertConfig, ModernConfig, ModernLM, save_pretrained

SIZES = {"model_dim": 12, "num_heads": 6, "num_blocks": 2}
V, M = 29, 31
KINDS = {
    "the book's": lambda: TransformerLM(TransformerConfig(V, M, **SIZES)),
    "sinusoids": lambda: TransformerLM(TransformerConfig(V, M, positions="sinusoidal", **SIZES)),
    "rotary": lambda: ModernLM(ModernConfig(V, M, num_kv_heads=3, qk_norm=True, **SIZES)),
    "BERT": lambda: Bert(BertConfig(V, M, **SIZES)),
    "encoder-decoder": lambda: EncoderDecoder(
        TransformerConfig(V, M, source_vocab_size=V, **SIZES)
    ),
}
LANGUAGE_MODELS = [name for name in KINDS if name not in ("BERT", "encoder-decoder")]


def make(kind):
    torch.manual_seed(5)
    return KINDS[kind]().eval()


def inputs(kind, batch, N):
    ids = torch.randint(V, (batch, N))
    return (torch.randint(V, (batch, N)), ids) if kind == "encoder-decoder" else (ids,)


def logits(output):
    return output if isinstance(output, torch.Tensor) else output[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_exported_it_reads_sequences_of_any_length(kind, unchecked):
    model, dim = make(kind), torch.export.Dim
    free = tuple({0: dim("batch"), 1: dim("N", max=M)} for _ in inputs(kind, 3, 7))
    exported = torch.export.export(model, inputs(kind, 3, 7), dynamic_shapes=free).module()
    for shape in ((3, 7), (2, 5), (1, M)):
        given = inputs(kind, *shape)
        torch.testing.assert_close(logits(exported(*given)), logits(model(*given)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_one_graph_serves_twelve_lengths(kind, unchecked):
    model, graphs = make(kind), []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, dynamic=True, fullgraph=True)
    for N in range(3, 15):
        given = inputs(kind, 2, N)
        torch.testing.assert_close(logits(compiled(*given)), logits(model(*given)))
    assert len(graphs) == 1
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rotary", "BERT", "encoder-decoder"])
def test_onnx_computes_the_same_for_any_length(kind, tmp_path, unchecked):
    """A decoder without a cache is in the encoder-decoder, too; below are all with a cache."""
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, dim, file = make(kind), torch.export.Dim, tmp_path / "model.onnx"
    free = tuple({0: dim("batch"), 1: dim("N", max=M)} for _ in inputs(kind, 3, 7))
    program = torch.onnx.export(model, inputs(kind, 3, 7), dynamic_shapes=free, dynamo=True)
    program.save(file)
    session = onnxruntime.InferenceSession(file)
    for shape in ((2, 5), (1, M)):
        given = inputs(kind, *shape)
        names = [each.name for each in session.get_inputs()]
        theirs = session.run(None, {n: x.numpy() for n, x in zip(names, given, strict=True)})[0]
        torch.testing.assert_close(torch.tensor(theirs), logits(model(*given)), atol=1e-4, rtol=0)


class WithCache(torch.nn.Module):
    """A model that is given the keys and values of earlier tokens, and returns those of all."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, past):
        cache = KVCache()
        layers = [cache[l].self_attention for l in range(len(past))]
        for layer, (keys, values) in zip(layers, past.unbind(), strict=True):
            layer.K, layer.V, layer.length = keys, values, past.shape[-2]
        U = self.model(ids, cache=cache)
        kept = [Z[..., : cache.length, :] for layer in layers for Z in (layer.K, layer.V)]
        return U, torch.stack(kept).unflatten(0, (-1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_onnx_reads_on_with_a_cache(kind, tmp_path, unchecked):
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, ids, file = make(kind), torch.randint(V, (2, 11)), tmp_path / "model.onnx"
    groups = model.stack.blocks[0].attention.num_kv_heads
    given = torch.randint(V, (3, 4)), torch.randn(2, 2, 3, groups, 5, 2)
    dim, half = torch.export.Dim, M // 2
    free = {0: dim("batch"), 1: dim("N", max=half)}, {2: dim("batch"), 4: dim("past", max=half)}
    with torch.no_grad():
        torch.onnx.export(WithCache(model), given, dynamic_shapes=free, dynamo=True).save(file)
        session, past = onnxruntime.InferenceSession(file), torch.zeros(2, 2, 2, groups, 0, 2)
        names, cache, ours = [each.name for each in session.get_inputs()], KVCache(), []
        for piece in (slice(0, 6), slice(6, 10), slice(10, 11)):
            ours.append(model(ids[:, piece], cache=cache))
            read = dict(zip(names, (ids[:, piece].numpy(), past.numpy()), strict=True))
            U, past = map(torch.tensor, session.run(None, read))
            torch.testing.assert_close(U, ours[-1], atol=1e-4, rtol=0)
        torch.testing.assert_close(torch.cat(ours, dim=1), model(ids))


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_gradients_of_each_text_by_vmap_and_then_it_can_be_copied_and_saved(kind, unchecked):
    model, ids = make(kind), torch.randint(V, (2, 7))
    weights = dict(model.named_parameters())

    def loss(weights, row):
        U = torch.func.functional_call(model, weights, (row[:-1],))
        return F.cross_entropy(U, row[1:])

    together = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, ids)
    for row, text in enumerate(ids):
        alone = torch.autograd.grad(loss(weights, text), list(weights.values()))
        for gradient, both in zip(alone, together.values(), strict=True):
            torch.testing.assert_close(both[row], gradient)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(again(ids), model(ids))
    torch.save(model, io.BytesIO())


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_derivatives_are_computed_forwards_too(kind, unchecked):
    model, ids = make(kind).double(), torch.randint(V, (2, 7))
    weights = {name: W.detach() for name, W in model.named_parameters()}
    ways = {name: torch.randn_like(W) for name, W in weights.items()}

    def loss(weights):
        U = torch.func.functional_call(model, weights, (ids[:, :-1],))
        return F.cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten())

    def along(gradients):
        return sum((gradients[name] * way).sum() for name, way in ways.items())

    slope = torch.func.jvp(loss, (weights,), (ways,))[1]
    torch.testing.assert_close(slope, along(torch.func.grad(loss)(weights)))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        backwards = torch.func.grad(lambda weights: along(torch.func.grad(loss)(weights)))(weights)
    forwards = torch.func.jvp(torch.func.grad(loss), (weights,), (ways,))[1]
    torch.testing.assert_close(forwards, backwards)


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_fake_tensors_have_the_shapes_and_leave_nothing_behind(kind, unchecked):
    with FakeTensorMode() as mode:
        model = KINDS[kind]()
        assert model(torch.randint(V, (3, 7))).shape == (3, 7, V)
        fakes = dict(model.named_parameters()) | dict(model.named_buffers())
    real = make(kind)
    with mode:
        torch.func.functional_call(real, fakes, (torch.randint(V, (3, 7)),))
    assert real(torch.randint(V, (2, 5))).isfinite().all()


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_a_model_without_memory_takes_the_tensors_that_it_is_given(kind):
    model = make(kind)
    with torch.device("meta"):
        empty = KINDS[kind]()
    empty.load_state_dict(model.state_dict(), assign=True)
    ids = torch.randint(V, (2, 7))
    torch.testing.assert_close(empty.eval()(ids), model(ids), atol=0, rtol=0)


def test_sizes_are_shown():
    assert "W_QKV [12×36], W_O [12×12]" in repr(make("the book's"))
    assert "b_QKV" not in repr(make("rotary")) and "W_QKV [12×24]" in repr(make("rotary"))


def test_a_model_with_lora_is_to_be_merged_before_it_is_published(tmp_path):
    model = make("rotary")
    add_lora(model, 2)
    with pytest.raises(ValueError, match="[Mm]erge"):
        save_pretrained(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
