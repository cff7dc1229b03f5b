"""A folder is whole: `transformers` opens what we write, with the same ids, text and logits."""

import json

import pytest
import torch
from sampled import mostly_slow
from transformers import AutoModelForCausalLM, AutoTokenizer

from slp_transformer import TransformerConfig, TransformerLM, generate
from slp_transformer.data.text_tokenizer import train_tokenizer
from slp_transformer.modern import ModernConfig, ModernLM, from_pretrained, save_pretrained
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer, load_tokenizer

TEXT = "Le café est très chaud.\n\n  It's the quick brown fox's — naïve, isn't it?\t42 ☕ "
END = "<|end|>"
TOKENIZERS = {"characters": None, "words": 40, "bpe": 290}
MODELS = {
    "the book's": (TransformerLM, TransformerConfig, {}),
    "of 2017, but pre-norm": (
        TransformerLM,
        TransformerConfig,
        {"positions": "sinusoidal", "scaled_embeddings": True, "initialization": "xavier"},
    ),
    "today's": (ModernLM, ModernConfig, {"num_kv_heads": 1, "qk_norm": True}),
}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    size = TOKENIZERS[request.param]
    return train_tokenizer([TEXT, TEXT.upper()], request.param, size, end_token=True)


@pytest.mark.parametrize("name", mostly_slow(MODELS, list(MODELS)[0]))
def test_ids_text_and_logits_are_the_same_there_and_here(name, tokenizer, tmp_path):
    kind, config, choices = MODELS[name]
    torch.manual_seed(3)
    model = kind(config(tokenizer.vocab_size, 97, 18, 3 if kind is TransformerLM else 1, **choices))
    with torch.no_grad():
        for W in model.parameters():
            W.add_(torch.randn_like(W) * 0.2)
    folder = save_pretrained(model.eval(), tmp_path / "whole", tokenizer)
    theirs, words = (
        AutoModelForCausalLM.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    ours = from_pretrained(folder)
    again = load_tokenizer(folder, ours.config)
    for text in (TEXT, " the", "the fox", "\n\n", f"a {END} b" if END[0] in TEXT else "fox's"):
        ids = tokenizer.encode(text)
        assert words(text).input_ids == ids == again.encode(text)
        assert words.decode(ids) == tokenizer.decode(ids) == again.decode(ids)
    ids = [*tokenizer.encode("the"), tokenizer.end_id, *tokenizer.encode(" fox")]
    said = words.decode(ids, skip_special_tokens=True)
    assert said == tokenizer.decode(ids) == again.decode(ids) and END not in said
    assert words.eos_token_id == tokenizer.end_id == theirs.config.eos_token_id
    assert ours.config.end_ids == (tokenizer.end_id,) and len(words) == tokenizer.vocab_size
    row = torch.tensor([tokenizer.encode(TEXT)[:60]])
    with torch.no_grad():
        expected = model(row)
        torch.testing.assert_close(theirs(row).logits, expected, rtol=0, atol=1e-4)
        torch.testing.assert_close(ours(row), expected, rtol=0, atol=1e-4)
    prompt = row[:, :7]
    written = theirs.generate(prompt, max_new_tokens=9, do_sample=False, pad_token_id=0)[0]
    (here,) = generate(model, prompt, max_new_tokens=9, temperature=0, stop=tokenizer.end_id)
    assert here.ids == written.tolist()


def test_the_end_in_a_text_is_text_as_here(tmp_path):
    tokenizer = train_tokenizer([TEXT, "<|end|>"], "bpe", 270, end_token=True)
    model = ModernLM(ModernConfig(tokenizer.vocab_size, 20, 8, 2, 1))
    folder = save_pretrained(model, tmp_path / "whole", tokenizer)
    ids = tokenizer.encode(f"a{END}b")
    assert tokenizer.end_id not in ids
    assert AutoTokenizer.from_pretrained(folder)(f"a{END}b").input_ids == ids
    assert load_tokenizer(folder, model.config).encode(f"a{END}b") == ids


def test_an_unknown_character_is_refused_and_an_unknown_word_is_unknown(tmp_path):
    words = train_tokenizer(TEXT, "words", 30)
    published = save_pretrained(
        ModernLM(ModernConfig(words.vocab_size, 9, 8, 2, 1)), tmp_path / "words", words
    )
    text = "the zebra"
    assert words.unknown_id in words.encode(text)
    assert AutoTokenizer.from_pretrained(published)(text).input_ids == words.encode(text)
    letters = train_tokenizer("abc")
    published = save_pretrained(ModernLM(ModernConfig(3, 9, 8, 2, 1)), tmp_path / "abc", letters)
    with pytest.raises(ValueError, match="cannot encode"):
        load_tokenizer(published, ModernConfig(3)).encode("abd")
    with pytest.raises(Exception, match=r"(?i)unk"):
        AutoTokenizer.from_pretrained(published)("abd")


def test_a_published_tokenizer_is_handed_on_with_what_is_beside_it(tmp_path):
    source = save_pretrained(
        ModernLM(ModernConfig(3, 9, 8, 2, 1)), tmp_path / "a", train_tokenizer("abc")
    )
    (source / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    tokenizer = load_tokenizer(source, ModernConfig(3))
    kept = PretrainedTokenizer.from_json(json.loads(json.dumps(tokenizer.to_json())))
    assert kept.encode("cab") == tokenizer.encode("cab") == [2, 0, 1]
    copy = save_pretrained(from_pretrained(source), tmp_path / "b", kept)
    assert AutoTokenizer.from_pretrained(copy).chat_template == "{{ messages }}"
    names = {path.name for path in source.iterdir()}
    assert names == {path.name for path in copy.iterdir()} and len(names) == 5
    with pytest.raises(ValueError, match="evil.py is none of"):
        PretrainedTokenizer.from_json(kept.to_json() | {"side_files": {"evil.py": ""}})
