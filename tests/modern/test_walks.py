"""Whole walks: a published model tuned and published again, and a run that is killed."""

import pytest
import torch
from foreign import V, foreign, load_again
from tiny_training import stop_at

from slp_transformer.lora import add_lora, merge_lora
from slp_transformer.modern import from_pretrained, save_pretrained
from slp_transformer.training import load_model, make_lora_base, train


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("name", ["llama", "qwen3, tied, biases"])
def test_a_published_model_is_tuned_saved_resumed_and_published_again(name, rank, tmp_path):
    foreign(name, tmp_path / "theirs")
    text = torch.arange(700) % V

    def begin(_=None):
        model = from_pretrained(tmp_path / "theirs")
        if rank is not None:
            torch.manual_seed(0)
            add_lora(model, rank)
        return model

    def tune(model, run, **more):
        settings = {"steps": 8, "sequence_length": 13, "batch_size": 5, "eval_interval": 4}
        records = train(model, text[:600], text[600:], out_dir=tmp_path / run, **settings, **more)
        return records[-1].val_loss

    whole = begin()
    val_loss = tune(whole, "whole")
    with pytest.raises(OSError, match="plug"):
        tune(begin(), "cut", report=stop_at(4))
    assert tune(begin(), "cut", resume=True) == val_loss
    if rank is not None:
        with pytest.raises(ValueError, match="LoRA matrices.*add_lora"):
            load_model(tmp_path / "cut", "last")
    tuned = load_model(tmp_path / "cut", "last", model=None if rank is None else begin)
    if rank is not None:
        merge_lora(tuned)
        merge_lora(whole)
    ids = torch.randint(V, (3, 7))
    assert torch.equal(tuned(ids), whole(ids))
    theirs = load_again(name, save_pretrained(tuned, tmp_path / "ours"))
    torch.testing.assert_close(theirs(ids).logits, tuned(ids))
    assert not torch.allclose(tuned(ids), from_pretrained(tmp_path / "theirs")(ids), atol=1e-2)


def test_an_adapter_of_other_matrices_is_loaded_with_its_base(tmp_path):
    foreign("llama", tmp_path / "theirs")
    text = torch.arange(700) % V
    data, settings = (text[:600], text[600:]), {"steps": 4, "sequence_length": 13, "batch_size": 5}
    train(from_pretrained(tmp_path / "theirs"), *data, out_dir=tmp_path / "base", **settings)
    model, base = load_model(tmp_path / "base"), make_lora_base(tmp_path / "base", 2)
    add_lora(model, 2, ["W_V", "W_3"])
    train(model, *data, out_dir=tmp_path / "adapter", lora_base=base, **settings)
    assert torch.equal(load_model(tmp_path / "adapter", "last")(text[:7]), model(text[:7]))
