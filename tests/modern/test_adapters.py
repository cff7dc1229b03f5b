"""LoRA adapters of peft load here, and ours there, to the same logits."""

import json
import re
import shutil
from dataclasses import fields

import pytest
import torch
from foreign import MODELS, V, foreign, load_again, logits
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from sampled import mostly_slow

from slp_transformer import TransformerConfig, TransformerLM, add_lora, merge_lora
from slp_transformer.lora import iter_lora
from slp_transformer.modern import from_pretrained, load_adapter, save_adapter, save_pretrained
from slp_transformer.modern.adapters import WITHOUT_EFFECT

IDS = torch.randint(V, (3, 11), generator=torch.Generator().manual_seed(1))
CLOSE = {"rtol": 0.0, "atol": 1e-4}
TARGETS = {
    "llama": ["q_proj", "v_proj", "down_proj"],
    "gpt2": ["c_attn", "attn.c_proj", "c_fc"],
    "qwen3": "all-linear",
    "phi3": ["qkv_proj", "gate_up_proj"],
    "gpt_neox": ["query_key_value", "dense_h_to_4h"],
}


def say(model):
    with torch.no_grad():
        return model(IDS)


def theirs_with_adapter(name, folder, **changes):
    """A model of peft's with random A and B, its adapter and its base in folders."""
    base = foreign(name, folder / "base")
    settings = {"r": 3, "lora_alpha": 6, "target_modules": TARGETS[name]} | changes
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    with torch.no_grad():
        for key, W in model.named_parameters():
            if "lora_" in key:
                W.normal_(0.0, 0.3)
    model.save_pretrained(folder / "adapter")
    return model


@pytest.mark.parametrize("name", TARGETS)
def test_an_adapter_of_peft_computes_the_same_here(name, tmp_path):
    theirs = theirs_with_adapter(name, tmp_path)
    ours = from_pretrained(tmp_path / "base")
    without = say(ours)
    load_adapter(ours, tmp_path / "adapter")
    expected = logits(theirs, IDS)
    assert (expected - without).abs().max() > 0.1
    torch.testing.assert_close(say(ours), expected, **CLOSE)
    assert {W.requires_grad for name, W in ours.named_parameters() if "original" in name} == {False}
    merge_lora(ours)
    torch.testing.assert_close(say(ours), expected, **CLOSE)


@pytest.mark.parametrize("targets", [["W_Q", "W_V"], ["W_Q", "W_K", "W_V", "W_O", "W_2"]])
@pytest.mark.parametrize("name", mostly_slow(TARGETS, *[*TARGETS][::2]))
def test_an_adapter_of_ours_computes_the_same_there_and_comes_back(name, targets, tmp_path):
    foreign(name, tmp_path / "base")
    ours = from_pretrained(tmp_path / "base")
    add_lora(ours, 2, targets)
    with torch.no_grad():
        for _, pair in iter_lora(ours):
            pair.A.normal_(0.0, 0.3), pair.B.normal_(0.0, 0.3)
    folder = save_adapter(ours, tmp_path / "adapter", str(tmp_path / "base"))
    base = MODELS[name][0].from_pretrained(tmp_path / "base")
    theirs = PeftModel.from_pretrained(base, folder).eval()
    torch.testing.assert_close(logits(theirs, IDS), say(ours), **CLOSE)
    again = from_pretrained(tmp_path / "base")
    load_adapter(again, folder)
    torch.testing.assert_close(say(again), say(ours), **CLOSE)


def test_an_adapter_of_the_books_model_is_one_of_its_gpt2(tmp_path):
    torch.manual_seed(0)
    book = TransformerLM(TransformerConfig(V, 13, 18, 3, 2)).eval()
    save_pretrained(book, tmp_path / "base")
    add_lora(book, 2, ["W_Q", "W_O"])
    with torch.no_grad():
        for _, pair in iter_lora(book):
            pair.B.normal_()
    folder = save_adapter(book, tmp_path / "adapter")
    theirs = PeftModel.from_pretrained(load_again("gpt2", tmp_path / "base"), folder).eval()
    torch.testing.assert_close(logits(theirs, IDS), say(book), **CLOSE)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"use_rslora": True}, "use_rslora"),
        ({"use_dora": True}, "use_dora"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "bias"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"alpha_pattern": {"q_proj": 2}}, "alpha_pattern"),
        ({"target_modules": ["q_proj", "lm_head"]}, "lm_head"),
        ({"target_modules": ["q_proj"], "layers_to_transform": [1]}, "has no A and B for model.l"),
        ({"target_modules": ["embed_tokens"]}, "no such part of LoRA here"),
        ({"alora_invocation_tokens": [5, 7]}, "alora_invocation_tokens is \\[5, 7\\]"),
        ({"use_qalora": True, "qalora_group_size": 2}, "use_qalora is True"),
        ({"trainable_token_indices": [3]}, "trainable_token_indices"),
        ({"layer_replication": [(0, 2), (1, 2)]}, "layer_replication"),
    ],
)
def test_what_is_not_here_is_refused_by_name(changes, why, tmp_path):
    theirs_with_adapter("llama", tmp_path, **changes)
    model = from_pretrained(tmp_path / "base")
    with pytest.raises(ValueError, match=why) as error:
        load_adapter(model, tmp_path / "adapter")
    assert str(tmp_path / "adapter") in str(error.value) and "\n" not in str(error.value)
    assert not list(iter_lora(model)) and all(W.requires_grad for W in model.parameters())


def test_settings_that_are_not_known_are_refused_unless_they_are_empty(tmp_path):
    theirs = theirs_with_adapter("llama", tmp_path)
    path = tmp_path / "adapter" / "adapter_config.json"
    content = json.loads(path.read_text("utf-8"))
    for value in (0.5, "often", True, [1], {"a": None}):
        path.write_text(json.dumps(content | {"scale_by_layer": value}), encoding="utf-8")
        with pytest.raises(ValueError, match=f"scale_by_layer is {re.escape(repr(value))}"):
            load_adapter(from_pretrained(tmp_path / "base"), tmp_path / "adapter")
    for value in (None, False, [], {}, ""):
        path.write_text(json.dumps(content | {"scale_by_layer": value}), encoding="utf-8")
        ours = from_pretrained(tmp_path / "base")
        load_adapter(ours, tmp_path / "adapter")
        torch.testing.assert_close(say(ours), logits(theirs, IDS), **CLOSE)


def test_all_of_pefts_own_settings_are_known_by_what_they_do(tmp_path):
    """What a later peft adds is in neither list; until it is, no more than empty is loaded."""
    kinds = {"r", "lora_alpha", "init_lora_weights", "bias", "peft_type"} | WITHOUT_EFFECT
    empty = {f.name for f in fields(LoraConfig) if f.default in (None, False)} | {
        f.name for f in fields(LoraConfig) if f.default_factory is dict
    }
    assert {f.name for f in fields(LoraConfig)} <= kinds | empty


def test_a_damaged_adapter_or_one_of_another_model_is_refused(tmp_path):
    theirs_with_adapter("llama", tmp_path)
    foreign("qwen2", tmp_path / "other")
    with pytest.raises(ValueError, match=r"lora_[AB] of .* is \["):
        load_adapter(from_pretrained(tmp_path / "other"), tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    weights, model = load_file(path), from_pretrained(tmp_path / "base")
    first = next(iter(weights))
    for changed, why in (
        (weights | {first: weights[first] * torch.nan}, "NaN"),
        ({name: W for name, W in weights.items() if name != first}, "lacks A or B"),
    ):
        save_file(changed, path)
        with pytest.raises(ValueError, match=why):
            load_adapter(model, tmp_path / "adapter")
    save_file(weights, path)
    config = tmp_path / "adapter" / "adapter_config.json"
    known = json.loads(config.read_text("utf-8"))
    for scale in (torch.inf, torch.nan, 1e300):
        config.write_text(json.dumps(known | {"lora_alpha": scale}), encoding="utf-8")
        with pytest.raises(ValueError, match="has NaN or infinite numbers, or by lora_alpha"):
            load_adapter(model, tmp_path / "adapter")
    for content in ("[]", "{}", json.dumps({"r": 0}), json.dumps({"r": 2, "peft_type": "IA3"})):
        config.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"adapter_config.json"):
            load_adapter(model, tmp_path / "adapter")
    shutil.rmtree(tmp_path / "adapter")
    with pytest.raises(ValueError, match=r"adapter_config.json"):
        load_adapter(model, tmp_path / "adapter")


def test_without_lora_there_is_no_adapter(tmp_path):
    foreign("llama", tmp_path / "base")
    add_lora(model := from_pretrained(tmp_path / "base"), 2)
    with pytest.raises(ValueError, match=r"by merge_lora, or write them alone by save_adapter"):
        save_pretrained(model, tmp_path / "adapter")
    save_adapter(model, tmp_path / "alone")
    with pytest.raises(ValueError, match="holds a LoRA adapter and no model"):
        from_pretrained(tmp_path / "alone")
    with pytest.raises(ValueError, match="no LoRA"):
        save_adapter(from_pretrained(tmp_path / "base"), tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()
