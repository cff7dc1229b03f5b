"""Training: the loss by hand, windows shifted by one, and a run that learns and repeats."""

import pytest
import torch

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.data.batches import random_windows
from slp_transformer.loss import next_token_loss
from slp_transformer.training.evaluation import mean_loss
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.train_config import TrainConfig, cosine_schedule
from slp_transformer.training.trainer import train


def small_model(vocab_size: int = 7, seed: int = 0) -> TransformerLM:
    torch.manual_seed(seed)
    return TransformerLM(
        TransformerConfig(vocab_size, context_length=11, model_dim=10, num_heads=2, num_blocks=1)
    )


def test_windows_are_shifted_by_one_and_cover_every_start():
    stream = torch.arange(13)
    x, y = random_windows(stream, 5, 400, torch.Generator().manual_seed(0))
    assert torch.equal(x + 1, y)
    assert torch.equal(x, x[:, :1] + torch.arange(5))
    assert set(x[:, 0].tolist()) == set(range(8))


@pytest.mark.parametrize("length", [0, 5])
def test_too_short_a_corpus_says_how_much_is_needed(length):
    with pytest.raises(ValueError, match=f"{length} tokens.*need 6"):
        random_windows(torch.arange(length), 5, 2, torch.Generator())


def test_mean_loss_counts_every_full_window_once():
    model = small_model().eval()
    stream = torch.randint(7, (3 * 11 + 5,), generator=torch.Generator().manual_seed(1))
    by_hand = torch.stack(
        [next_token_loss(model(stream[i : i + 11]), stream[i + 1 : i + 12]) for i in (0, 11, 22)]
    ).mean()
    assert mean_loss(model, stream, 11, batch_size=2) == pytest.approx(by_hand.item(), rel=1e-5)


def test_only_matrices_decay():
    model = small_model()
    decayed, spared = make_optimizer(model, TrainConfig(steps=1)).param_groups
    assert decayed["weight_decay"] > 0 and spared["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in spared["params"])
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


def test_schedule_warms_up_then_falls_to_a_tenth():
    shares = [cosine_schedule(step, 100, 10) for step in range(101)]
    assert shares[0] == pytest.approx(0.1) and shares[9] == pytest.approx(1.0)
    assert shares[10] == pytest.approx(1.0) and shares[100] == pytest.approx(0.1)
    assert all(a >= b for a, b in zip(shares[10:], shares[11:], strict=False))


def test_training_learns_a_pattern_and_repeats_bit_for_bit():
    stream = torch.arange(7).repeat(40)
    runs = []
    for _ in range(2):
        model = small_model()
        seen = []
        records = train(
            model,
            stream,
            stream,
            steps=110,
            sequence_length=11,
            learning_rate=0.02,
            eval_interval=50,
            report=seen.append,
        )
        assert seen == records and [r.step for r in records] == [50, 100, 110]
        assert not model.training
        runs.append((records, [p.clone() for p in model.parameters()]))
    records = runs[0][0]
    assert records[-1].val_loss < 0.1 < records[0].train_loss
    assert records == runs[1][0]
    assert all(torch.equal(a, b) for a, b in zip(runs[0][1], runs[1][1], strict=True))


def test_data_of_another_kind_are_refused_by_name(unchecked):
    import numpy as np

    for data, kind in ((np.arange(99), "ndarray"), (list(range(99)), "list")):
        with pytest.raises(TypeError, match=f"not {kind}: of an array, make torch.from_numpy"):
            train(small_model(), data, data, steps=1, sequence_length=5)
