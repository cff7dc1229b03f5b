"""A run becomes a folder that transformers opens; a published model is tuned and handed on."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from checkpoint_folders import checkpoint_folder
from commands import SMALL, fine, output, refused, result
from foreign import MODELS, foreign
from peft import AutoPeftModelForCausalLM, LoraConfig, get_peft_model
from published_tokenizers import TEXT, V, make_tokenizer
from safetensors import SafetensorError
from safetensors.torch import load_file
from sampled import mostly_slow
from transformers import AutoModelForCausalLM, AutoTokenizer

from slp_transformer.cli import main
from slp_transformer.tasks.saved_runs import load_run, open_run
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.run_folder import load_lora_base

FULL = "No space left on device"
GREEDY = ["--prompt", "The quick", "--max-new-tokens", "9", "--temperature", "0"]
TUNE = ["train", "text", "fox.txt", "--init-from", "model", "--sequence-length", "13"]
TUNE += ["--learning-rate", "0.05", *SMALL[8:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text, a run of it, a published model, and runs that were tuned from it."""
    folder = tmp_path_factory.mktemp("export")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("fox.txt").write_text(TEXT * 9, encoding="utf-8")
        fine("train", "text", "fox.txt", "--out-dir", "mine", "--tokenizer", "bpe", *SMALL)
        kind, config, sizes = MODELS["llama"]
        patch.setitem(MODELS, "llama", (kind, config, sizes | {"vocab_size": V}))
        foreign("llama", folder / "model", max_shard_size="20KB")
        assert len(list((folder / "model").glob("*.safetensors"))) > 1
        (folder / "model" / "generation_config.json").unlink()
        make_tokenizer(begin=True).save(str(folder / "model" / "tokenizer.json"))
        fine(*TUNE, "--lora-rank", "2", "--out-dir", "tuned")
        fine(*TUNE, "--out-dir", "all")
    return folder


@pytest.fixture
def at(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compare(run, exported, capsys):
    """Ids, text and logits of a run and of what was exported."""
    theirs = AutoModelForCausalLM.from_pretrained(exported)
    words, ours = AutoTokenizer.from_pretrained(exported), load_run(open_run(run)).tokenizer
    ids = ours.encode("The quick brown fox")
    begin = words("The quick brown fox").input_ids
    assert begin[len(begin) - len(ids) :] == ids and words.decode(ids) == ours.decode(ids)
    with torch.no_grad():
        U = theirs(torch.tensor([ids])).logits
        torch.testing.assert_close(U, load_model(run)(torch.tensor([ids])), rtol=0, atol=1e-4)
    assert output(capsys, "generate", exported, *GREEDY) == output(capsys, "generate", run, *GREEDY)
    loss = [result(capsys, "evaluate", each, "fox.txt")["loss"] for each in (run, exported)]
    assert abs(loss[0] - loss[1]) < 0.5, "windows of another length"


@pytest.mark.parametrize("run", mostly_slow(["mine", "tuned", "all"], "tuned"))
def test_a_run_becomes_a_folder_that_transformers_opens(run, at, capsys):
    said = output(capsys, "export", run, "exported")
    assert "generate exported" in said
    compare(run, "exported", capsys)
    assert {"config.json", "tokenizer.json", "tokenizer_config.json"} - {
        path.name for path in Path("exported").iterdir()
    } <= ({"tokenizer_config.json"} if run != "mine" else set())
    assert "already" in refused(capsys, "export", run, "exported")


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_the_bytes_are_rounded_once_after_merging(dtype, capsys):
    """As by transformers, which opens the folder in its type."""
    said = output(capsys, "export", "tuned", "whole")
    assert "its weights in float32" in said
    said = output(capsys, "export", "tuned", "half", "--dtype", dtype)
    assert f"its weights in {dtype}" in said
    theirs = AutoModelForCausalLM.from_pretrained("half", dtype="auto")
    assert str(theirs.dtype) == f"torch.{dtype}"
    for (name, W), V_ in zip(
        load_file("half/model.safetensors").items(),
        load_file("whole/model.safetensors").values(),
        strict=True,
    ):
        assert torch.equal(W, V_.to(getattr(torch, dtype))), name
    output(capsys, "export", "tuned", "pair", "--adapter", "--dtype", dtype)
    pair = load_file("pair/adapter_model.safetensors").values()
    assert {W.dtype for W in pair} == {getattr(torch, dtype)}


@pytest.mark.usefixtures("at")
def test_weights_beyond_a_type_are_named_and_nothing_is_written(monkeypatch, capsys):
    model = load_model("mine")
    with torch.no_grad():
        model.embedding.tokens.E[0, 0] = 1e6
    monkeypatch.setattr(
        "slp_transformer.training.checkpoints.load_checkpoint_model", lambda _: model
    )
    said = refused(capsys, "export", "mine", "exported", "--dtype", "float16")
    assert "embedding.tokens.E has NaN or infinite numbers as float16" in said
    assert not Path("exported").exists()


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("words", [["mine"], ["tuned", "--adapter"]])
def test_a_full_disk_is_one_sentence_and_no_folder(words, monkeypatch, capsys):
    def fill_disk(tensors, path, metadata=None):
        raise SafetensorError(f"Error while serializing: I/O error: {FULL} (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", fill_disk)
    before = sorted(Path().iterdir())
    run, *flags = words
    said = refused(capsys, "export", run, "exported", *flags)
    assert said.endswith(f"exported could not be read or written: {FULL}.")
    assert sorted(Path().iterdir()) == before


@pytest.mark.usefixtures("at")
def test_a_place_where_nothing_can_be_made_is_named_as_it_was_given(monkeypatch, capsys):
    def refuse(parent):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(parent / ".random"))

    monkeypatch.setattr("slp_transformer.modern.pretrained.make_locked_folder", refuse)
    said = refused(capsys, "export", "mine", "exported")
    assert said.endswith("exported could not be read or written: Permission denied.")


@pytest.mark.slow
def test_a_lora_run_keeps_a_and_b_alone_with_the_hash_of_all_files_of_its_base(at, capsys):
    last, base = checkpoint_folder("tuned"), load_lora_base(checkpoint_folder("tuned"))
    assert base.published and base.rank == 2 and not (last / "model.safetensors").exists()
    told = result(capsys, "info", "tuned")
    assert told["lora"]["rank"] == 2 and told["model"]["num_kv_heads"] == 3
    said = output(capsys, "generate", "tuned", *GREEDY)
    fine("merge", "tuned", "--out-dir", "merged")
    assert output(capsys, "generate", "merged", *GREEDY) == said
    fine(*[*TUNE[:4], "merged", *TUNE[5:]], "--out-dir", "further")
    assert load_model("further").config == load_model("merged").config
    elsewhere = Path(base.checkpoint).rename(at / "away")  # it is found beside the run
    try:
        assert output(capsys, "generate", "tuned", *GREEDY) == said
        for shard in Path("model").glob("*.safetensors"):
            kept = shard.read_bytes()
            shard.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
            assert "has changed since" in refused(capsys, "generate", "tuned", *GREEDY)
            shard.write_bytes(kept)
        shutil.rmtree("model")
        assert "its base model" in refused(capsys, "generate", "tuned", *GREEDY)
    finally:
        elsewhere.rename(base.checkpoint)


@pytest.mark.parametrize("lora", [pytest.param([], marks=pytest.mark.slow), ["--lora-rank", "2"]])
def test_it_resumes_to_the_same_bits(lora, at, monkeypatch):
    made = torch.optim.AdamW.step
    fine(*TUNE, *lora, "--out-dir", "whole")
    with monkeypatch.context() as patch:
        steps = iter([made] * 3)
        patch.setattr(torch.optim.AdamW, "step", lambda *args: next(steps)(*args))
        with pytest.raises(StopIteration):
            main([*TUNE, *lora, "--out-dir", "cut"])
    assert checkpoint_folder("cut").name == "step-00000002"
    fine("train", "--out-dir", "cut", "--resume", "--quiet")
    kept = [load_model(run, "last").state_dict() for run in ("whole", "cut")]
    assert all(torch.equal(W, kept[1][name]) for name, W in kept[0].items())


@pytest.mark.slow
def test_adapters_go_to_peft_and_come_from_there(at, capsys):
    said = output(capsys, "export", "tuned", "adapter", "--adapter")
    assert "peft.AutoPeftModelForCausalLM.from_pretrained('adapter')" in said
    assert {path.name for path in Path("adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    theirs = AutoPeftModelForCausalLM.from_pretrained("adapter")
    ids = torch.tensor([load_run(open_run("tuned")).tokenizer.encode("The quick")])
    with torch.no_grad():
        expected = theirs.eval()(ids).logits
        torch.testing.assert_close(load_model("tuned")(ids), expected, rtol=0, atol=1e-4)
    with_adapter = output(capsys, "generate", "model", "--adapter", "adapter", *GREEDY)
    assert with_adapter == output(capsys, "generate", "tuned", *GREEDY)
    scored = ["--prompt", "The quick", "--continuation", " brown"]
    with_adapter = output(capsys, "score", "model", "--adapter", "adapter", *scored)
    assert with_adapter == output(capsys, "score", "tuned", *scored)
    assert with_adapter != output(capsys, "score", "model", *scored)
    loss = {
        adapter: result(capsys, "evaluate", "model", "fox.txt", *adapter)["loss"]
        for adapter in ((), ("--adapter", "adapter"))
    }
    assert loss[("--adapter", "adapter")] < loss[()]
    base = AutoModelForCausalLM.from_pretrained("model")
    settings = LoraConfig(r=2, target_modules=["q_proj"], use_dora=True)
    get_peft_model(base, settings).save_pretrained("dora")
    said = refused(capsys, "generate", "model", "--adapter", "dora", *GREEDY)
    assert "use_dora" in said


def test_what_cannot_be_exported_or_begun_with_is_refused_in_a_sentence(at, capsys):
    assert "published model already" in refused(capsys, "export", "model", "copy")
    assert "not a LoRA run" in refused(capsys, "export", "mine", "copy", "--adapter")
    fine("train", "text", "fox.txt", "--out-dir", "post", "--norm", "post", *SMALL)
    assert "has no norm = 'post'" in refused(capsys, "export", "post", "copy")
    assert "fox.txt/copy could not be" in refused(capsys, "export", "mine", "fox.txt/copy")
    assert not Path("copy").exists()
    fine("export", "mine", "begun")
    drawing = ["evaluate", "begun", "fox.txt", "--samples", "1"]
    assert "give `generate` a --prompt, and `evaluate` no" in refused(capsys, *drawing)
    words = [*TUNE, "--out-dir", "new"]
    assert "model_dim" in refused(capsys, *words, "--model-dim", "16")
    assert "tokenizer" in refused(capsys, *words, "--tokenizer", "words")
    path = Path("model/config.json")
    settings = json.loads(path.read_text("utf-8")) | {"model_type": "mamba"}
    path.write_text(json.dumps(settings), encoding="utf-8")
    assert "mamba" in refused(capsys, *words) and not Path("new").exists()
