"""Published stacks without a head, and with one for classes: loaded as what they are."""

import json

import pytest
import torch
import transformers as hf
from commands import output, refused, result
from foreign import BERT, GPT2, GROUPED, QWEN2, V

from slp_transformer import add_lora, padding_mask
from slp_transformer.modern import (
    BertClassifier,
    BertEncoder,
    ModernClassifier,
    ModernConfig,
    ModernEncoder,
    from_pretrained,
    save_adapter,
    save_pretrained,
)

IDS = torch.randint(1, V, (3, 11), generator=torch.Generator().manual_seed(1))
CLOSE = {"rtol": 0.0, "atol": 1e-4}
FORMS = {
    "bare Llama": (hf.LlamaModel, hf.LlamaConfig, GROUPED, ModernEncoder),
    "bare GPT-2": (hf.GPT2Model, hf.GPT2Config, GPT2, ModernEncoder),
    "bare Qwen2": (hf.Qwen2Model, hf.Qwen2Config, QWEN2, ModernEncoder),
    "bare BERT": (hf.BertModel, hf.BertConfig, BERT, BertEncoder),
    "BERT of classes": (hf.BertForSequenceClassification, hf.BertConfig, BERT, BertClassifier),
    "GPT-2 of classes": (hf.GPT2ForSequenceClassification, hf.GPT2Config, GPT2, ModernClassifier),
    "Llama of classes": (
        hf.LlamaForSequenceClassification,
        hf.LlamaConfig,
        GROUPED,
        ModernClassifier,
    ),
}


def published(name, folder, **settings):
    kind, config, sizes, ours = FORMS[name]
    torch.manual_seed(0)
    settings |= {"pad_token_id": 0} if "classes" in name else {}
    settings |= {"num_labels": 5} if "classes" in name and "id2label" not in settings else {}
    model = kind(config(**sizes | settings)).eval()
    with torch.no_grad():
        for W in model.parameters():
            W.normal_(0.0, 0.4)
    model.save_pretrained(folder)
    return model, ours


def said(model, **how):
    with torch.no_grad():
        found = model(IDS, **how)
    return found.logits if hasattr(found, "logits") else found[0]


@pytest.mark.parametrize("name", FORMS)
def test_they_compute_what_theirs_do(name, tmp_path, capsys):
    moods = {"id2label": dict(enumerate(("sad", "glad", "odd", "shy", "wry")))}
    theirs, kind = published(name, tmp_path / "model", **moods if "classes" in name else {})
    ours = from_pretrained(tmp_path / "model")
    assert type(ours) is kind and not ours.training
    with torch.no_grad():
        found = ours(IDS)
    assert found.shape[-1] == (5 if "classes" in name else theirs.config.hidden_size)
    torch.testing.assert_close(found, said(theirs), **CLOSE)
    pooler = sum(W.numel() for n, W in theirs.named_parameters() if "pooler" in n)
    total = sum(W.numel() for W in theirs.parameters()) - ("bare" in name) * pooler
    told = result(capsys, "info", str(tmp_path / "model"))
    assert told["parameters"]["total"] == total and told["model"]["kind"] == kind.__name__
    saved = save_pretrained(ours, tmp_path / "again")
    opens = hf.AutoModelForSequenceClassification if "classes" in name else hf.AutoModel
    again, notes = opens.from_pretrained(saved, output_loading_info=True)
    assert type(again) is type(theirs)
    torch.testing.assert_close(said(again.eval()), said(theirs), **CLOSE)
    missing = {"pooler.dense.weight", "pooler.dense.bias"} if "bare" in name and pooler else set()
    assert set(notes["missing_keys"]) == missing and not notes["unexpected_keys"]
    assert again.config.id2label == theirs.config.id2label
    assert again.config.pad_token_id == theirs.config.pad_token_id
    assert from_pretrained(saved).config == ours.config


def test_a_classifier_of_ones_own_is_one_there(tmp_path):
    torch.manual_seed(2)
    config = ModernConfig(V, 13, 12, 3, num_blocks=2, pad_id=0)
    ours = ModernClassifier(config, 3).eval()
    theirs = hf.AutoModelForSequenceClassification.from_pretrained(
        save_pretrained(ours, tmp_path / "ours")
    )
    torch.testing.assert_close(said(theirs.eval()), ours(IDS), **CLOSE)
    assert theirs.config.id2label[2] == "LABEL_2"


def test_names_of_classes_that_are_none_are_refused(tmp_path):
    published("BERT of classes", tmp_path)
    path = tmp_path / "config.json"
    for wrong in ({"1": "a", "2": "b"}, {"0": 7}):
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"id2label": wrong}))
        numbers = f"0 to {len(wrong) - 1}"
        with pytest.raises(ValueError, match=f"id2label .* must have names for {numbers}"):
            from_pretrained(tmp_path)


def test_an_encoder_has_no_adapter(tmp_path):
    published("bare Llama", tmp_path / "model")
    ours = from_pretrained(tmp_path / "model")
    add_lora(ours, rank=2)
    with pytest.raises(ValueError, match="models of words, not for class ModernEncoder"):
        save_adapter(ours, tmp_path / "adapter")
    with pytest.raises(ValueError, match="merge_lora"):
        save_pretrained(ours, tmp_path / "ours")


@pytest.mark.parametrize("name", [name for name in FORMS if "classes" in name])
def test_padded_texts_have_the_classes_they_have_alone(name, tmp_path):
    theirs, _ = published(name, tmp_path)
    ours, lengths = from_pretrained(tmp_path), torch.tensor([11, 7, 4])
    ids = IDS.masked_fill(torch.arange(11) >= lengths[:, None], 0)
    with torch.no_grad():
        alone = [ours(row[:length]) for row, length in zip(IDS, lengths, strict=True)]
        together = ours(ids, padding_mask(ids, 0))
        expected = theirs(ids, attention_mask=(ids != 0).long()).logits
    torch.testing.assert_close(together, torch.stack(alone), **CLOSE)
    torch.testing.assert_close(together, expected, **CLOSE)


CLASSIFIERS = [name for name in FORMS if "of classes" in name and "BERT" not in name]


def padded(side):
    """Texts of 11, 7, 4 and 1 tokens, filled up on one side; where there are some; positions."""
    lengths, places = torch.tensor([11, 7, 4, 1]), torch.arange(11)
    ids = torch.randint(1, V, (4, 11), generator=torch.Generator().manual_seed(5))
    kept = places < lengths[:, None] if side == "right" else places >= 11 - lengths[:, None]
    return ids * kept, kept, (kept.cumsum(-1) - 1).clamp(min=0)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", CLASSIFIERS)
@torch.no_grad()
def test_a_classifier_reads_the_last_token_that_is_no_padding(name, side, tmp_path):
    theirs, _ = published(name, tmp_path)
    ours, (ids, kept, positions) = from_pretrained(tmp_path), padded(side)
    how = {} if side == "right" else {"position_ids": positions}
    expected = theirs(ids, attention_mask=kept.long(), **how).logits
    alone = torch.stack([ours(row[text]) for row, text in zip(ids, kept, strict=True)])
    mask = padding_mask(ids, 0)
    heads = ours.config.num_heads
    looks = [mask, mask.expand(-1, 11, -1), mask[:, None].expand(-1, heads, 11, -1)]
    for each in looks:
        torch.testing.assert_close(ours(ids, each, **how), expected, **CLOSE)
    torch.testing.assert_close(expected, alone, **CLOSE)
    if side == "right":  # by the padding that config.json names, as theirs
        torch.testing.assert_close(ours(ids), theirs(ids).logits, **CLOSE)
        torch.testing.assert_close(ours(ids[2], mask[2, 0].expand(11, 11)), alone[2], **CLOSE)
        lengths = kept.sum(-1) - 1
        others = ours(ids[:3], lengths=lengths[:3])
        assert (others - alone[:3]).abs().max() > 0.1  # what is said has the last word
        torch.testing.assert_close(ours(ids, mask, lengths + 1), expected, **CLOSE)
    with pytest.raises(ValueError, match="The mask ends texts elsewhere than lengths"):
        ours(ids, mask, torch.tensor([11, 6, 4, 1]), **how)  # of the second it is 7


@torch.no_grad()
def test_a_text_that_ends_in_the_token_that_fills_up_is_not_cut_in_silence(tmp_path):
    theirs, _ = published(CLASSIFIERS[0], tmp_path)
    ours, ids = from_pretrained(tmp_path), torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]])
    kept = torch.tensor([4, 3])  # the first 0 of each is the end of its text
    mask = torch.zeros(2, 1, 4).masked_fill(torch.arange(4) >= kept[:, None, None], -torch.inf)
    with pytest.raises(ValueError, match=r"The mask ends texts elsewhere than padding \(id 0\)"):
        ours(ids, mask)
    expected = theirs(ids, attention_mask=(mask[:, 0] == 0).long()).logits
    torch.testing.assert_close(ours(ids, padding_mask(ids, 0)), expected, **CLOSE)
    alone = torch.stack([ours(row[:n], lengths=n) for row, n in zip(ids, kept, strict=True)])
    torch.testing.assert_close(ours(ids, mask, kept), alone, **CLOSE)
    assert (alone - expected).abs().max() > 0.1


@pytest.mark.parametrize("name", ["bare GPT-2", "GPT-2 of classes", "bare Llama"])
@torch.no_grad()
def test_padding_on_the_left_needs_positions_where_they_are_counted_from_the_left(name, tmp_path):
    theirs, _ = published(name, tmp_path)
    ours, (ids, kept, positions) = from_pretrained(tmp_path), padded("left")
    found = ours(ids, mask := padding_mask(ids, 0), position_ids=positions)
    expected = theirs(ids, attention_mask=kept.long(), position_ids=positions)
    expected = expected.logits if "classes" in name else expected[0][kept]
    torch.testing.assert_close(found if "classes" in name else found[kept], expected, **CLOSE)
    if "GPT-2" in name:
        with pytest.raises(ValueError, match="pass position_ids="):
            ours(ids, mask)
    else:
        torch.testing.assert_close(ours(ids, mask)[kept], found[kept], **CLOSE)


def test_a_file_of_a_bare_model_without_its_class_is_a_model_of_words_as_before(tmp_path):
    theirs, _ = published("bare GPT-2", tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text("utf-8"))
    del content["architectures"]
    path.write_text(json.dumps(content), encoding="utf-8")
    torch.testing.assert_close(
        from_pretrained(tmp_path)(IDS), said(theirs) @ theirs.wte.weight.T, **CLOSE
    )


def test_what_writes_no_text_is_refused_by_the_commands(tmp_path, monkeypatch, capsys):
    from published_tokenizers import make_tokenizer

    monkeypatch.chdir(tmp_path)
    published("Llama of classes", "model", vocab_size=300)
    make_tokenizer().save("model/tokenizer.json")
    (tmp_path / "text.txt").write_text("The quick brown fox. " * 40, encoding="utf-8")
    assert "ModernClassifier" in output(capsys, "info", "model")
    train = ["train", "text", "text.txt", "--init-from", "model", "--out-dir", "run"]
    for words in (["generate", "model"], ["evaluate", "model", "text.txt"], train):
        assert "class ModernClassifier, which cannot continue a text" in refused(capsys, *words)
