"""Muon beside AdamW as one optimizer, and schedules that end in a cooldown."""

import shutil
from copy import deepcopy

import pytest
import torch
from checkpoint_folders import checkpoint_folder
from sampled import mostly_slow
from tiny_training import same
from whole import whole

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.lora import add_lora
from slp_transformer.loss import next_token_loss
from slp_transformer.modern import ModernConfig, ModernLM
from slp_transformer.training import train
from slp_transformer.training.optimizers import OPTIMIZERS, make_optimizer
from slp_transformer.training.train_config import TrainConfig

STREAM = torch.randint(7, (83,), generator=torch.Generator().manual_seed(0))
TINY = {"steps": 6, "eval_interval": 2, "batch_size": 3, "progress": False}
SIZES = {"context_length": 5, "model_dim": 6, "num_heads": 3, "num_blocks": 2, "dropout": 0.2}


def book() -> TransformerLM:
    torch.manual_seed(0)
    return TransformerLM(TransformerConfig(7, **SIZES))


def modern() -> ModernLM:
    torch.manual_seed(0)
    return ModernLM(ModernConfig(7, **SIZES, qk_norm=True, zero_init=True, tied=False))


def test_only_matrices_decay():
    model = book()
    decayed, spared = make_optimizer(model, TrainConfig(steps=1)).param_groups
    assert decayed["weight_decay"] > 0 and spared["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in spared["params"])
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


def adamw(matrices, vectors):
    how = {"lr": 0.01, "betas": (0.9, 0.95), "fused": True}
    spared = torch.optim.AdamW(vectors, weight_decay=0.0, **how)
    return [torch.optim.AdamW(matrices, weight_decay=0.3, **how), spared]


def muon(inside, outside, vectors):
    own = torch.optim.Muon(inside, lr=0.01, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")
    return [own, *adamw(outside, vectors)]


# What PyTorch has, or an update by hand: of matrices in blocks, other matrices, and vectors.
REFERENCES = {
    "adamw": lambda inside, outside, vectors: adamw(inside + outside, vectors),
    "muon": muon,
}


@pytest.mark.parametrize("make", [book, modern])
@pytest.mark.parametrize("name", REFERENCES)
def test_an_optimizer_is_its_reference_to_the_last_bit(name, make):
    model = make().eval()
    twin = deepcopy(model)
    config = TrainConfig(steps=3, optimizer=name, learning_rate=0.01, weight_decay=0.3)
    ours = make_optimizer(model, config)
    inside, outside, vectors = [], [], []
    for place, p in twin.named_parameters():
        kind = vectors if p.dim() == 1 else inside if place.startswith("stack.") else outside
        kind.append(p)
    theirs = REFERENCES[name](inside, outside, vectors)
    for i in range(3):
        ids = STREAM[6 * i : 6 * i + 6]
        next_token_loss(model(ids[:-1]), ids[1:]).backward()
        for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
            other.grad = mine.grad.clone()
        for optimizer in (ours, *theirs):
            optimizer.step()
        ours.zero_grad()
        assert same(model, twin)


def test_every_optimizer_has_a_reference():
    assert REFERENCES.keys() == {*OPTIMIZERS}


def test_what_muon_cannot_do_is_refused(tmp_path):
    with pytest.raises(
        ValueError,
        match=whole(
            'optimizer = "muon" needs whole matrices, and parallel = "fsdp" gives each '
            'process a part of them: choose "ddp", or the optimizer "adamw".'
        ),
    ):
        TrainConfig(steps=1, optimizer="muon", parallel="fsdp")
    lonely = torch.nn.Sequential(torch.nn.Embedding(7, 7))
    with pytest.raises(
        ValueError,
        match=whole(
            'optimizer = "muon" is for the matrices inside blocks, and this model has '
            'none: choose "adamw".'
        ),
    ):
        train(
            lonely,
            STREAM,
            STREAM,
            **TINY,
            sequence_length=5,
            optimizer="muon",
            out_dir=tmp_path / "run",
        )
    assert not list(tmp_path.iterdir())


def test_frozen_matrices_stay_under_muon():
    model = modern()
    before = deepcopy(model)
    add_lora(model, 2)
    train(model, STREAM, STREAM, **TINY, optimizer="muon")
    factors = [p for p in model.parameters() if p.requires_grad]
    assert factors and all(p.any() for p in factors)
    assert torch.equal(model.stack.blocks[1].ffn.W_1, before.stack.blocks[1].ffn.W_1)
    assert torch.equal(model.embedding.tokens.E, before.embedding.tokens.E)


@pytest.mark.parametrize("optimizer", mostly_slow(["adamw", "muon"], "muon"))
def test_a_long_run_is_cooled_down_from_any_checkpoint(tmp_path, optimizer):
    """A copy of its checkpoint, resumed with fewer steps: as if these had been planned."""
    how = {"schedule": "wsd", "warmup_steps": 1, "batch_size": 3, "progress": False}
    how |= {"eval_interval": 2, "keep_last": 9, "optimizer": optimizer}
    train(book(), STREAM, STREAM, steps=20, out_dir=tmp_path / "long", **how)
    begun = tmp_path / "long" / "step-00000006"
    shutil.copytree(begun, tmp_path / "cooled" / begun.name)
    short = how | {"steps": 9, "cooldown_steps": 3}
    cooled, planned = book(), book()
    records = train(cooled, STREAM, STREAM, **short, out_dir=tmp_path / "cooled", resume=True)
    assert records == train(planned, STREAM, STREAM, **short)
    assert same(cooled, planned)
    assert checkpoint_folder(tmp_path / "long").name == "step-00000020"
