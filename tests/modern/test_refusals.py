"""Models of others that are refused: by name, whole, and without a pickle being opened."""

import base64
import contextlib
import json
import os
import re
import socket
import struct
from dataclasses import replace
from pathlib import Path

import published_tokenizers
import pytest
import torch
from foreign import MODELS, foreign
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING

from slp_transformer import add_lora
from slp_transformer.modern import (
    ModernConfig,
    ModernLM,
    from_pretrained,
    load_adapter,
    save_adapter,
    save_pretrained,
)
from slp_transformer.modern.families import HF_FAMILIES, MISSING_PARTS
from slp_transformer.modern.hf_config import WITHOUT_EFFECT, HFConfigReader
from slp_transformer.modern.hf_tokenizer import (
    load_tokenizer,
    make_tokenizer,
    translate_library_errors,
)
from slp_transformer.modern.pretrained import read_config
from slp_transformer.training import load_model
from slp_transformer.training.lora_base import weights_sha256


def change(folder, **settings):
    path = folder / "config.json"
    content = json.loads(path.read_text("utf-8")) | settings
    path.write_text(json.dumps(content), encoding="utf-8")


NOT_OURS = [
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
    ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
    ("gpt2", {"activation_function": "swish"}, "activation_function"),
    (
        "gpt2",
        {"model_type": "mamba"},
        "model_type.*gpt2, llama, .*, bert",
    ),
    ("gpt2", {"model_type": "gpt_neo"}, "nothing here has scores that are not divided"),
    ("llama", {"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
    ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "original_max_position"),
    ("llama", {"rope_parameters": {"rope_type": "yarn", "mscale": 1.0}}, "mscale"),
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0}}, "dynamic"),
    (
        "llama",
        {"rope_parameters": None, "rope_scaling": {"type": "longrope", "factor": 2.0}},
        "longrope",
    ),
    ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "keep one of the two"),
    # All that the older says stands in the newer, which says more; transformers reads the older.
    ("llama", {"rope_scaling": {"rope_type": "default"}}, "keep one of the two"),
    ("mistral", {"sliding_window": 3, "layer_types": ["full_attention"] * 2}, "layer_types"),
    ("phi3", {"sliding_window": 3, "layer_types": ["full_attention"] * 2}, "layer_types"),
    ("smollm3", {"sliding_window": 3, "layer_types": ["sliding_attention"] * 4}, "layer_types"),
    ("qwen2", {"sliding_window": 3, "layer_types": ["sliding_attention"] * 2}, "layer_types"),
    ("mistral", {"sliding_window": "wide"}, "sliding_window"),
    ("mistral", {"layer_types": ["sliding_attention"]}, "layer_types"),
    ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers"),
    ("smollm3", {"no_rope_layers": [1, 2]}, "no_rope_layers"),
    ("gpt_neox", {"rope_parameters": {"partial_rotary_factor": 0.4}}, "rotary_share must be even"),
    ("gpt_neox", {"rotary_pct": "some"}, "rotary_pct must be a number"),
    ("olmo2", {"sliding_window": 3}, "sliding_window"),
    ("phi3", {"partial_rotary_factor": 0.75}, "partial_rotary_factor"),
    ("phi3", {"rope_parameters": {"rope_type": "longrope", "factor": 2.0}}, "longrope"),
    ("llama", {"rope_parameters": {"rope_type": "default", "beta_fast": 1}}, "beta_fast"),
    ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
    ("llama", {"rope_interleaved": True}, "rope_interleaved"),
    ("llama", {"sliding_window": 7}, "sliding_window"),
    ("llama", {"hidden_act": "gelu"}, "hidden_act"),
    ("llama", {"pretraining_tp": 2}, "pretraining_tp"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ("qwen3", {"layer_types": ["full_attention", "chunked_attention"]}, "layer_types"),
    ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
    ("bert", {"is_decoder": True}, "is_decoder"),
    ("bert", {"hidden_act": "silu"}, "hidden_act"),
    # Sizes that no model can be made from, or not this one.
    ("llama", {"num_attention_heads": 5}, "num_kv_heads = 3"),
    ("llama", {"head_dim": 7}, "even"),
    ("llama", {"hidden_size": "large"}, "hidden_size must be a whole number"),
    ("llama", {"hidden_size": 10**12}, "hidden_size must be from 1"),
    ("llama", {"num_hidden_layers": 10**7}, "no tensor model.layers.2"),
    ("llama", {"rms_norm_eps": "small"}, "rms_norm_eps"),
    ("llama", {"rms_norm_eps": -1.0}, "eps"),
    ("llama", {"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false"),
    ("llama", {"bos_token_id": "begin"}, "bos_token_id"),
    ("llama", {"rope_parameters": [1]}, "rope_parameters"),
    ("llama", {"layer_types": 3}, "layer_types"),
    ("llama", {"vocab_size": 51}, r"weight is \[53×18\].*\[51×18\]"),
    ("llama", {"num_key_value_heads": 2}, r"k_proj.weight is \[30×18\].*\[20×18\]"),
    ("llama", {"num_hidden_layers": 1}, "no such part here as model.layers.1"),
    ("llama", {"attention_bias": True}, "no tensor model.layers.0.self_attn.q_proj.bias"),
    ("llama 3, tied", {"tie_word_embeddings": False}, "no tensor lm_head.weight"),
    ("llama", {"tie_word_embeddings": True}, "lm_head.weight is not model.embed_tokens.weight"),
    ("gpt2", {"n_head": 4}, "model_dim = 15 cannot be shared"),
]


def test_families_without_a_record_are_known_elsewhere_by_their_name():
    known = set(CONFIG_MAPPING.keys())
    assert MISSING_PARTS.keys() <= known and MISSING_PARTS.keys().isdisjoint(HF_FAMILIES)


@pytest.mark.parametrize(("name", "settings", "why"), NOT_OURS)
def test_a_part_that_is_not_here_is_refused_by_name(name, settings, why, tmp_path):
    foreign(name, tmp_path)
    change(tmp_path, **settings)
    with pytest.raises(ValueError, match=why) as refusal:
        from_pretrained(tmp_path)
    assert str(tmp_path) in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("config.json", 2**24),
        ("generation_config.json", 2**24),
        ("adapter_config.json", 2**24),
        ("model.safetensors.index.json", 2**24),
        ("tokenizer_config.json", 2**24),
        ("tokenizer.json", 2**26),
    ],
)
def test_json_that_would_take_gigabytes_of_memory_is_not_parsed(name, most, tmp_path):
    foreign("llama", tmp_path)
    for other in ("config.json", "tokenizer.json", "adapter_config.json"):
        if not (tmp_path / other).exists():
            (tmp_path / other).write_text("{}", encoding="utf-8")
    if "index" in name:
        (tmp_path / "model.safetensors").unlink()
    with (tmp_path / name).open("wb") as file:
        file.truncate(most + 1)
    config = ModernConfig(53)
    with pytest.raises(ValueError, match=f"{re.escape(name)} is too large: .* {most:,} bytes"):
        if "tokenizer" in name:
            load_tokenizer(tmp_path, config)
        elif "adapter" in name:
            load_adapter(ModernLM(config), tmp_path)
        else:
            from_pretrained(tmp_path)


@pytest.mark.parametrize("wrong", [torch.nan, -torch.inf])
def test_weights_that_nobody_could_load_are_not_written(wrong, tmp_path):
    model = ModernLM(ModernConfig(53))
    with torch.no_grad():
        model.stack.final_norm.gamma[3] = wrong
    with pytest.raises(ValueError, match=r"stack\.final_norm\.gamma has NaN or infinite numbers"):
        save_pretrained(model, tmp_path / "new")
    add_lora(model, rank=2)
    with pytest.raises(ValueError, match=r"stack\.final_norm\.gamma has NaN or infinite numbers"):
        save_adapter(model, tmp_path / "new")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["[1]", '{"eos_token_id": 3', "", "[" * 100_000, None])
@pytest.mark.parametrize("name", ["generation_config.json", "tokenizer_config.json"])
def test_a_damaged_file_beside_a_model_is_not_passed_over(name, content, tmp_path):
    foreign("llama", tmp_path)
    published_tokenizers.make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=name) as refusal:
        load_tokenizer(tmp_path, replace(read_config(tmp_path), vocab_size=300))
    assert "\n" not in str(refusal.value)


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("name", "weight", "why"),
    [
        ("score.weight", torch.ones(2, 18), "no such part here as score.weight"),
        (NORM, torch.ones(18, dtype=torch.int8), f"{NORM} is of type I8"),
        (NORM, torch.tensor([1.0] * 17 + [torch.nan]), f"{NORM} has NaN or infinite numbers"),
        (NORM, torch.tensor([-torch.inf] + [1.0] * 17), f"{NORM} has NaN or infinite numbers"),
    ],
)
def test_a_tensor_that_cannot_be_used_is_named(name, weight, why, tmp_path):
    foreign("llama", tmp_path)
    path = tmp_path / "model.safetensors"
    save_file(load_file(path) | {name: weight}, path)
    with pytest.raises(ValueError, match=why):
        from_pretrained(tmp_path)


def test_pickles_are_not_opened(tmp_path):
    foreign("gpt2", tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="pytorch_model.bin is a pickle"):
        from_pretrained(tmp_path)


def test_no_folder_no_config_no_json(tmp_path):
    with pytest.raises(ValueError, match="no folder"):
        from_pretrained(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="config.json"):
        from_pretrained(tmp_path)
    for content in ("[]", "{", '"gpt2"', "{}", '{"model_type": 7}', '{"model_type": ["gpt2"]}'):
        (tmp_path / "config.json").write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="config.json"):
            from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ([], "weight_map"),
        ({"weight_map": {}}, "weight_map"),
        ({"weight_map": {"model.norm.weight": "../elsewhere.safetensors"}}, "weight_map"),
        ({"weight_map": {"model.norm.weight": "..\\elsewhere.safetensors"}}, "weight_map"),
        ({"weight_map": {"model.norm.weight": "C:elsewhere.safetensors"}}, "weight_map"),
        ({"weight_map": {"model.norm.weight": 3}}, "weight_map"),
        ({"weight_map": {"model.norm.weight": "nowhere.safetensors"}}, "nowhere.safetensors"),
        ({"weight_map": {"a": "part.safetensors"}}, "lists a, but no file has it"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(index, why, tmp_path):
    foreign("llama", tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "part.safetensors")
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ValueError, match=why):
        from_pretrained(tmp_path)


TRIE = struct.pack("<I", 1024) + bytes(1024)  # of 256 numbers; it replaces no characters


@pytest.mark.parametrize(
    ("table", "sound"),
    [
        (TRIE, True),
        (b"", False),
        (TRIE[:-4], False),
        (TRIE + b"\xff", False),
        (struct.pack("<II", 4, 0), False),
    ],
)
def test_a_map_of_characters_that_was_cut_short_makes_no_panic(table, sound, tmp_path, capfd):
    config = ModernConfig(vocab_size=3, context_length=5, model_dim=4, num_heads=1, num_blocks=1)
    part = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}
    content = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, part]},
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "b"},
        # A prompt is neither cut nor filled up, whatever the file says.
        "truncation": {
            "direction": "Right",
            "max_length": 0,
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": {
            "strategy": {"Fixed": 7},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 1,
            "pad_type_id": 0,
            "pad_token": "b",
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    said = "charsmap|tokenizer cannot encode this text: its tokenizer.json is damaged \\(index out"
    with contextlib.nullcontext() if sound else pytest.raises(ValueError, match=said) as told:
        assert load_tokenizer(tmp_path, config).encode("a") == [0]
    assert sound or "\n" not in str(told.value)
    assert "panicked" not in capfd.readouterr().err


def test_a_template_with_a_token_that_has_no_ids_is_a_sentence_at_its_first_text():
    single = [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ]
    template = {"type": "TemplateProcessing", "single": single, "pair": single}
    content = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "b"},
        "post_processor": template | {"special_tokens": {}},
    }
    tokenizer = make_tokenizer(content, "a file", None, (), {})
    said = "The tokenizer cannot encode this text: its tokenizer.json is damaged \\(.*\\)\\.$"
    for _ in range(2):  # the process that panicked still answers
        with pytest.raises(ValueError, match=said):
            tokenizer.encode("a", whole=True)
        assert tokenizer.encode("a") == [0]


@pytest.mark.parametrize(
    "parts",
    [
        {"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}] * 1000}},
        {"normalizer": {"normalizers": [{"a": [[{"b": {}}] * 500]}]}},
    ],
)
def test_more_parts_than_any_tokenizer_has_are_refused_before_they_are_loaded(parts):
    """A hundred thousand nested ones took the library four seconds."""
    with pytest.raises(ValueError, match="a file has more than 1,000 parts beside its vocabulary"):
        make_tokenizer({"version": "1.0", "model": {}} | parts, "a file", None, (), {})


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_error_of_the_library_goes_through(error):
    with pytest.raises(error), translate_library_errors("It cannot be read"):
        raise error


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_a_cut_file_is_refused(kept, tmp_path):
    foreign("llama", tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="model.safetensors cannot be read: "):
        from_pretrained(tmp_path)


WRONG = [None, True, -1, 0, 1e309, "x" * 3, [], {}, [[1]], {"a": 1}, 2**70, 0.5, float("nan")]


def wrong_settings(name, folder):
    """Every setting of a model, with each wrong value in its place."""
    foreign(name, folder)
    path = folder / "config.json"
    said = json.loads(path.read_text("utf-8"))
    for setting in said:
        for wrong in WRONG:
            path.write_text(json.dumps(said | {setting: wrong}), encoding="utf-8")
            yield setting, wrong


def ends_in_a_sentence(read, folder, wrong):
    """Whether it was refused, in one sentence."""
    try:
        read(folder)
        return False
    except ValueError as error:
        assert "\n" not in str(error) and str(folder) in str(error), wrong
        return True


FAMILIES = ["gpt2", "llama 3, tied", "qwen3", "bert"]


@pytest.mark.parametrize("name", FAMILIES)
def test_no_setting_however_wrong_ends_in_anything_but_a_sentence(name, tmp_path):
    told = [ends_in_a_sentence(read_config, tmp_path, w) for w in wrong_settings(name, tmp_path)]
    assert 0 < sum(told) < len(told)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_nor_does_loading_the_weights(name, tmp_path):
    told = [
        ends_in_a_sentence(from_pretrained, tmp_path, w) for w in wrong_settings(name, tmp_path)
    ]
    assert 0 < sum(told) < len(told)


def test_a_published_model_is_no_run_and_the_sentence_says_what_loads_it(tmp_path):
    foreign("llama", tmp_path)
    with pytest.raises(ValueError, match="no checkpoint .* published model, which from_pretrained"):
        load_model(tmp_path)


NAMED = ("model.safetensors", "config.json", "tokenizer.json", "generation_config.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder"])
@pytest.mark.parametrize("name", NAMED)
def test_a_published_folder_with_something_else_than_a_file_is_not_waited_for(
    name, kind, tmp_path, monkeypatch
):
    foreign("llama", tmp_path)
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    Path(name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(name)
    elif kind == "device":
        Path(name).symlink_to("/dev/zero")
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(name)
    else:
        Path(name).mkdir()
    with pytest.raises(ValueError, match=f"{name} |tokenizer"):
        load_tokenizer(Path(), from_pretrained(".").config)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_a_base_or_an_adapter_that_is_a_pipe_is_not_waited_for(tmp_path):
    foreign("llama", tmp_path)
    adapted = from_pretrained(tmp_path)
    add_lora(adapted, 2)
    save_adapter(adapted, tmp_path / "adapter")
    for path in (tmp_path / "model.safetensors", tmp_path / "adapter/adapter_model.safetensors"):
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(ValueError, match="model.safetensors cannot be read: it is no file"):
        weights_sha256(tmp_path, published=True)
    with pytest.raises(ValueError, match="adapter_model.safetensors cannot be read: it is no file"):
        load_adapter(adapted, tmp_path / "adapter")


def test_a_setting_that_nobody_here_knows_is_named(tmp_path, recwarn):
    """Whatever a later version of theirs reads; what says nothing, or is of training, is silent."""
    foreign("llama", tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text("utf-8"))
    known = {"attention_dropout": 0.3, "use_cache": True, "task_specific_params": {"a": 1}}
    empty = {"logit_softcapping": None, "scales": [], "quantization_config": {}, "mixture": False}
    path.write_text(json.dumps(content | known | empty), encoding="utf-8")
    from_pretrained(tmp_path)
    assert not [each for each in recwarn if each.category is UserWarning]
    path.write_text(json.dumps(content | {"scales": [2], "logit_softcapping": 30.0}), "utf-8")
    with pytest.warns(UserWarning, match=r"json: there is no such .* as logit_softcapping, scales"):
        from_pretrained(tmp_path)


def test_no_setting_is_both_read_and_known_to_have_no_effect(tmp_path):
    """But for two that some families read and others write where windows are off."""
    for name in MODELS:
        foreign(name, tmp_path / name)
        content = json.loads((tmp_path / name / "config.json").read_text("utf-8"))
        settings = HFConfigReader(content, name)
        HF_FAMILIES[content["model_type"]].read_config(settings)
        assert not settings.unknown_settings(), name
        assert settings.asked & WITHOUT_EFFECT <= {"sliding_window", "max_window_layers"}, name
