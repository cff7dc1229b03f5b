"""Models of today's parts on the command line, from training to LoRA."""

from commands import SMALL, fine, result

from slp_transformer.modern import ModernConfig, ModernLM
from slp_transformer.training.checkpoints import load_model

PARTS = ["--positions", "rotary", "--normalization", "rms", "--qk-norm", "--activation", "relu2"]
PARTS += ["--zero-init", "--no-tied", "--no-ffn-bias", "--num-kv-heads", "1"]
TRAIN = ["train", "text", "fox.txt", *SMALL, *PARTS, "--optimizer", "muon", "--schedule", "wsd"]


def test_the_flags_make_the_model_that_the_run_holds(at, capsys):
    fine(*TRAIN, "--out-dir", "a")
    model = load_model("a")
    assert type(model) is ModernLM
    sizes = {"context_length": 13, "model_dim": 8, "num_heads": 2, "num_blocks": 1, "dropout": 0.1}
    parts = {"qk_norm": True, "activation": "relu2", "zero_init": True, "tied": False}
    expected = ModernConfig(model.config.vocab_size, **sizes, **parts, num_kv_heads=1, eps=1e-5)
    assert model.config == expected
    about = result(capsys, "info", "a")
    assert about["parameters"]["total"] == sum(W.numel() for W in model.parameters())
    assert about["model"]["kind"] == "ModernLM" and about["settings"]["optimizer"] == "muon"
