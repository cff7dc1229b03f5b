"""Models of others: the same logits as theirs, the same words, and files that they load again."""

import json
import sys
from dataclasses import replace

import pytest
import torch
from comparing import B, N
from foreign import CAUSAL, FAMILIES, MODELS, WINDOW, V, foreign, load_again, logits
from own_process import printed
from safetensors.torch import load_file, save_file
from sampled import mostly_slow

from slp_transformer import KVCache, TransformerConfig, TransformerLM, generate
from slp_transformer.cli.info import collect_published_info
from slp_transformer.generation import score_continuations
from slp_transformer.modern import ModernConfig, ModernLM, from_pretrained, save_pretrained
from slp_transformer.modern.families import HF_FAMILIES
from slp_transformer.modern.families.family import with_default_sizes

IDS = torch.randint(V, (B, N), generator=torch.Generator().manual_seed(1))
ROTARY = [name for name in CAUSAL if "gpt2" not in name]
CLOSE = {"rtol": 0.0, "atol": 1e-4}


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    """A model of theirs, its folder, and ours."""
    folder = tmp_path_factory.mktemp("theirs")
    theirs = foreign(request.param, folder)
    return request.param, theirs, folder, from_pretrained(folder)


def say(model, ids=IDS, **how):
    with torch.no_grad():
        return model(ids, **how)


def test_every_family_is_compared_with_theirs():
    assert HF_FAMILIES.keys() == FAMILIES.keys()


def test_logits_are_theirs(pair):
    _, theirs, _, ours = pair
    expected = logits(theirs, IDS)
    assert expected.abs().max() > 1, "logits of nothing would compare nothing"
    torch.testing.assert_close(say(ours), expected, **CLOSE)
    assert not ours.training


@pytest.mark.parametrize("pair", mostly_slow(MODELS, "gpt2", "llama"), indirect=True)
def test_what_is_saved_they_load_to_the_same_logits(pair, tmp_path):
    name, theirs, _, ours = pair
    folder = save_pretrained(ours, tmp_path / "ours")
    again, expected = from_pretrained(folder), logits(theirs, IDS)
    if name.startswith("phi3"):  # as a Llama or Mistral, whose products are smaller
        torch.testing.assert_close(logits(load_again(name, folder), IDS), expected, **CLOSE)
    else:
        assert torch.equal(logits(load_again(name, folder), IDS), expected)
    assert with_default_sizes(again.config) == with_default_sizes(ours.config)
    assert torch.equal(say(again), say(ours))
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("pair", mostly_slow(CAUSAL, "gpt2", "llama"), indirect=True)
def test_greedy_words_are_theirs_token_by_token(pair):
    """To the end of the window, with the cache and without."""
    _, theirs, _, ours = pair
    end = {"max_new_tokens": WINDOW - 5, "do_sample": False, "eos_token_id": None}
    for cached in (True, False):
        expected = theirs.generate(IDS[:, :5], **end, pad_token_id=0, use_cache=cached).tolist()
        assert len({tuple(row) for row in expected}) == B and len(expected[0]) == WINDOW
        written = generate(ours, IDS[:, :5], temperature=0, cached=cached)
        assert [one.ids for one in written] == expected


@pytest.mark.parametrize("pair", mostly_slow(CAUSAL, *CAUSAL[::2]), indirect=True)
def test_with_the_cache_each_token_has_the_logits_it_has_without(pair):
    ours = from_pretrained(pair[2], dtype=torch.float64)
    cache, whole = KVCache(), say(ours)
    pieces = [say(ours, IDS[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, N))]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pair", mostly_slow(ROTARY, *ROTARY[::2]), indirect=True)
def test_texts_padded_on_the_left_go_on_as_alone(pair):
    _, theirs, _, ours = pair
    lengths, N = torch.tensor([11, 6, 3]), 11
    kept = torch.arange(N) >= N - lengths[:, None]
    ids = torch.randint(V, (3, N), generator=torch.Generator().manual_seed(2))
    ids = ids.masked_fill(~kept, 0)
    mask = torch.zeros(3, 1, N).masked_fill(~kept[:, None], -torch.inf)
    with torch.no_grad():
        expected = theirs(ids, attention_mask=kept.long()).logits[:, -1]
    torch.testing.assert_close(say(ours, ids, mask=mask)[:, -1], expected, **CLOSE)
    cache = KVCache()
    say(ours, ids[:, :5], mask=mask[..., :5], cache=cache)
    rest = [say(ours, ids[:, i : i + 1], mask=mask[..., : i + 1], cache=cache) for i in range(5, N)]
    torch.testing.assert_close(rest[-1][:, -1], expected, **CLOSE)
    window = ours.config.window
    if window is None:  # a window counts padding, too
        for row, length, U in zip(ids, lengths, expected, strict=True):
            torch.testing.assert_close(say(ours, row[N - length :])[-1], U, **CLOSE)


@pytest.mark.parametrize("name", ["gpt2", "llama 3, tied", "qwen3", "bert"])
def test_several_files_with_an_index(name, tmp_path, monkeypatch):
    monkeypatch.setattr("slp_transformer.modern.weight_files.MAX_SHARD_BYTES", 4000)
    theirs = foreign(name, tmp_path / "theirs", max_shard_size="4KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 2
    ours = from_pretrained(tmp_path / "theirs")
    torch.testing.assert_close(say(ours), logits(theirs, IDS), **CLOSE)
    folder = save_pretrained(ours, tmp_path / "ours")
    assert len(list(folder.glob("model-*-of-*.safetensors"))) > 2
    assert torch.equal(logits(load_again(name, folder), IDS), logits(theirs, IDS))
    assert torch.equal(say(from_pretrained(folder)), say(ours))


def test_types_are_as_asked_for(tmp_path):
    theirs = foreign("llama", tmp_path)
    theirs.bfloat16().save_pretrained(tmp_path)
    kept = from_pretrained(tmp_path, dtype=None)
    assert {p.dtype for p in kept.parameters()} == {torch.bfloat16}
    exact = from_pretrained(tmp_path)
    assert {p.dtype for p in exact.parameters()} == {torch.float32}
    torch.testing.assert_close(
        say(exact), logits(load_again("llama", tmp_path).float(), IDS), **CLOSE
    )
    folder = save_pretrained(kept, tmp_path / "again")
    assert json.loads((folder / "config.json").read_text("utf-8"))["dtype"] == "bfloat16"
    assert torch.equal(say(from_pretrained(folder)), say(exact))


def renamed(folder, change):
    """The folder's weights under other names, as older files have them."""
    path = folder / "model.safetensors"
    save_file({change(name): W for name, W in load_file(path).items()}, path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gpt2", lambda name: name.removeprefix("transformer.")),
        ("llama 3, tied", lambda name: name.removeprefix("model.")),
        (
            "bert",
            lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ),
        ),
    ],
)
def test_older_names(name, change, tmp_path):
    theirs = foreign(name, tmp_path)
    renamed(tmp_path, change)
    torch.testing.assert_close(say(from_pretrained(tmp_path)), logits(theirs, IDS), **CLOSE)


@pytest.mark.parametrize(
    ("name", "more", "again"),
    [
        ("gpt2", "transformer.h.0.attn.bias", None),  # a mask that older files keep
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq", None),
        ("llama 3, tied", "lm_head.weight", "model.embed_tokens.weight"),
        ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
        ("bert", "bert.pooler.dense.weight", None),
        ("bert", "cls.seq_relationship.bias", None),
    ],
)
def test_what_older_files_keep_beside_the_weights(name, more, again, tmp_path):
    theirs = foreign(name, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    save_file(weights | {more: weights[again].clone() if again else torch.ones(3)}, path)
    torch.testing.assert_close(say(from_pretrained(tmp_path)), logits(theirs, IDS), **CLOSE)


def test_older_settings_of_rotations(tmp_path):
    """Before version 5 of transformers they stood in two places."""
    theirs = foreign("llama 3, tied", tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text("utf-8"))
    rope = content.pop("rope_parameters")
    content |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope}
    path.write_text(json.dumps(content), encoding="utf-8")
    torch.testing.assert_close(say(from_pretrained(tmp_path)), logits(theirs, IDS), **CLOSE)


def test_ids_that_end_a_text_are_those_for_generating_if_told(tmp_path):
    foreign("llama", tmp_path)
    (tmp_path / "generation_config.json").unlink()
    assert from_pretrained(tmp_path).config.end_ids == (2, 3)
    assert from_pretrained(tmp_path).config.begin_id == 1
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [5, -1]}', encoding="utf-8")
    assert from_pretrained(tmp_path).config.end_ids == (5,)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux's /proc")
def test_loading_never_holds_the_weights_twice(tmp_path):
    sizes = {"context_length": 5, "model_dim": 512, "num_heads": 2, "num_blocks": 6}
    save_pretrained(ModernLM(ModernConfig(11, **sizes)), tmp_path / "model")
    weights = (tmp_path / "model" / "model.safetensors").stat().st_size
    script = """
import sys, torch, safetensors.torch
from own_process import peak
from slp_transformer.modern import ModernConfig, from_pretrained
from slp_transformer.modern.pretrained import build_on_meta
build_on_meta(ModernConfig(11))  # what PyTorch imports for shapes alone, whatever the model
before = peak()
model = from_pretrained(sys.argv[1])
print(peak() - before)
"""
    used = int(printed(script, tmp_path / "model"))
    assert weights > 70e6  # large beside what a process uses anyway
    assert weights < used < 1.2 * weights, f"{used} bytes for weights of {weights}"


@pytest.mark.parametrize("choices", [{}, {"activation": "gelu", "positions": "sinusoidal"}])
def test_the_books_model_becomes_a_gpt2(choices, tmp_path):
    book = TransformerLM(TransformerConfig(V, WINDOW, 15, 3, 2, **choices)).eval()
    with torch.no_grad():
        for parameter in book.parameters():
            parameter.normal_(0.0, 0.4)
    theirs = load_again("gpt2", save_pretrained(book, tmp_path / "gpt2"))
    torch.testing.assert_close(logits(theirs, IDS), say(book), **CLOSE)


@pytest.mark.parametrize(
    "config",
    [
        TransformerConfig(V, activation="swiglu"),
        TransformerConfig(V, norm="post"),
        TransformerConfig(V, model_dim=12, num_heads=3, key_dim=5),
        ModernConfig(V, norm="post"),
        ModernConfig(V, normalization="layer"),
        ModernConfig(V, activation="gelu"),
        ModernConfig(V, qk_norm=True, ffn_bias=True),
        ModernConfig(V, value_dim=6),
        ModernConfig(V, positions="learned"),
    ],
)
def test_what_none_of_them_has_is_not_written(config, tmp_path):
    kind = ModernLM if isinstance(config, ModernConfig) else TransformerLM
    with pytest.raises(ValueError, match="has no"):
        save_pretrained(kind(config), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    model = TransformerLM(TransformerConfig(V, model_dim=12))
    with pytest.raises(ValueError, match="already"):
        save_pretrained(model, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_berts_segments_and_padding_are_theirs(tmp_path):
    from slp_transformer import padding_mask

    theirs = foreign("bert", tmp_path)
    ours, segments = from_pretrained(tmp_path), (torch.arange(N) > 2).long().expand(B, N)
    ids = IDS.clone().clamp(min=1)
    ids[0, -2:] = 0
    with torch.no_grad():
        said = theirs(ids, attention_mask=(ids != 0).long(), token_type_ids=segments)
        words = ours(ids, padding_mask(ids, 0), segments)
    torch.testing.assert_close(words, said.logits, **CLOSE)


SMOLLM = {"hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152}
SMOLLM |= {"num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3}
SMOLLM |= {"rope_theta": 100000, "rope_scaling": None, "rope_interleaved": False}
SMOLLM |= {"is_llama_config": True, "pretraining_tp": 1, "tie_word_embeddings": True}
SMOLLM |= {"max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "hidden_act": "silu"}
OF_OTHERS = {
    # What the publishers' config.json say, without what is of no matter here.
    "SmolLM2-135M": (SMOLLM | {"model_type": "llama", "eos_token_id": 0}, 134_515_008),
    "GPT-2": (
        {"model_type": "gpt2", "activation_function": "gelu_new", "n_ctx": 1024, "n_embd": 768}
        | {"n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257}
        | {"summary_activation": None, "task_specific_params": {"text-generation": {}}},
        124_439_808,
    ),
    "BERT base, uncased": (
        {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_act": "gelu"}
        | {"position_embedding_type": "absolute", "gradient_checkpointing": False},
        109_514_298,
    ),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_published_settings_make_the_published_model(name, tmp_path):
    content, total = OF_OTHERS[name]
    (tmp_path / "config.json").write_text(json.dumps(content), encoding="utf-8")
    assert collect_published_info(tmp_path)["parameters"]["total"] == total


@pytest.mark.parametrize(
    "name", ["llama", "mistral", "qwen2", "qwen3", "smollm3", "olmo2", "phi3", "gpt_neox"]
)
def test_the_base_of_rotations_that_is_not_said_is_that_of_transformers(name, tmp_path):
    theirs = foreign(name, tmp_path).config
    path = tmp_path / "config.json"
    content = json.loads(path.read_text("utf-8"))
    for key in ("rope_parameters", "rope_theta", "rotary_emb_base"):
        content.pop(key, None)
    path.write_text(json.dumps(content), encoding="utf-8")
    expected = type(theirs).from_pretrained(tmp_path).rope_parameters["rope_theta"]
    assert from_pretrained(tmp_path).config.rope_base == expected


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_dropout_is_read_and_written_and_is_off_until_training(name, tmp_path):
    foreign(name, tmp_path / "a")
    model = from_pretrained(tmp_path / "a")
    assert model.config.dropout == 0.1 and not model.training
    save_pretrained(model, tmp_path / "b")
    theirs = json.loads((tmp_path / "b" / "config.json").read_text("utf-8"))
    shares = {key: value for key, value in theirs.items() if "drop" in key}
    assert set(shares.values()) == {0.1} and len(shares) == {"gpt2": 3, "bert": 2}[name]
    ids = torch.arange(12)[None]
    assert not torch.equal(model.train()(ids)[0], model(ids)[0])


def test_of_two_sets_of_weights_the_one_that_transformers_takes_is_loaded(tmp_path):
    theirs, other = foreign("llama", tmp_path), foreign("llama", tmp_path / "other")
    with torch.no_grad():
        other.model.norm.weight.mul_(2.0)
    other.save_pretrained(tmp_path / "other", max_shard_size="5kB")
    for path in (tmp_path / "other").glob("model*"):
        if path.name != "model.safetensors":
            path.rename(tmp_path / path.name)
    assert (tmp_path / "model.safetensors.index.json").exists()
    expected = logits(load_again("llama", tmp_path), IDS)
    torch.testing.assert_close(say(from_pretrained(tmp_path)), expected, **CLOSE)
    torch.testing.assert_close(expected, logits(theirs, IDS), **CLOSE)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_in_a_prompt_is_refused_where_the_model_has_a_token_for_it(side, tmp_path):
    foreign("smollm3", tmp_path)
    ours = from_pretrained(tmp_path)
    assert ours.config.pad_id == 0
    row = [0, 0, 5, 9] if side == "left" else [5, 9, 0, 0]
    for prompts in (torch.tensor([row, [4, 8, 6, 5]]), [[4, 8], row]):
        with pytest.raises(ValueError, match=r"filled up with padding \(id 0\), .* list of ids"):
            generate(ours, prompts, 3)
    with pytest.raises(ValueError, match="filled up with padding"):
        score_continuations(ours, [(row, [7])])
    assert generate(ours, [[5, 0, 9]], 3)  # inside it is a token like others
    text = ModernLM(replace(ours.config, begin_id=0)).eval()  # where it begins texts, too
    assert generate(text, torch.tensor([row]), 3)
