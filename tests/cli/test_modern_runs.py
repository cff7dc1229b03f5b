"""Models of today's parts on the command line, from training to LoRA."""

from pathlib import Path

import pytest
from commands import SENTENCE, SMALL, TRAIN_PAIRS, fine, refused, result, write_pairs

from slp_transformer.modern import ModernConfig, ModernLM
from slp_transformer.training.checkpoints import load_model

PARTS = ["--positions", "rotary", "--normalization", "rms", "--qk-norm", "--activation", "relu2"]
PARTS += ["--zero-init", "--no-tied", "--no-ffn-bias", "--num-kv-heads", "1"]
TRAIN = ["train", "text", "fox.txt", *SMALL, *PARTS, "--optimizer", "muon", "--schedule", "wsd"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a run of today's parts."""
    folder = tmp_path_factory.mktemp("modern")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
        fine(*TRAIN, "--out-dir", "a")
        yield folder


def test_the_flags_make_the_model_that_the_run_holds(here, capsys):
    model = load_model("a")
    assert type(model) is ModernLM
    sizes = {"context_length": 13, "model_dim": 8, "num_heads": 2, "num_blocks": 1, "dropout": 0.1}
    parts = {"qk_norm": True, "activation": "relu2", "zero_init": True, "tied": False}
    expected = ModernConfig(model.config.vocab_size, **sizes, **parts, num_kv_heads=1, eps=1e-5)
    assert model.config == expected
    about = result(capsys, "info", "a")
    assert about["parameters"]["total"] == sum(W.numel() for W in model.parameters())
    assert about["model"]["kind"] == "ModernLM" and about["settings"]["optimizer"] == "muon"


def test_lora_learns_on_it_and_is_merged(here, capsys):
    more = [*SMALL[-9:], "--optimizer", "muon", "--init-from", "a", "--lora-rank", "2"]
    fine("train", "text", "fox.txt", *more, "--out-dir", "c")
    fine("merge", "c", "--out-dir", "d")
    losses = [result(capsys, "evaluate", run)["loss"] for run in ("c", "d")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert type(load_model("d")) is ModernLM


def test_translation_has_no_such_parts(here, capsys):
    write_pairs()
    words = [*TRAIN_PAIRS, "--qk-norm", "--positions", "rotary", "--out-dir", "e"]
    assert "or leave out the parts of today's block." in refused(capsys, *words)
    told = refused(capsys, *words, "--no-scaled-embeddings", "--initialization", "gpt2")
    assert "qk_norm and positions are for language models, not for translation." in told
    assert not Path("e").exists()
