"""The mean loss: each target once, whatever the batches, and the model is left as it was."""

import inspect

import pytest
import torch
from tiny_training import STREAM, encoder_decoder, language_model, pairs, with_dropout

from slp_transformer._internal.settings import settings_of
from slp_transformer.data.batches import TokenWindowSource
from slp_transformer.loss import next_token_loss
from slp_transformer.training.evaluation import (
    check_one_sequence,
    mean_loss,
    mean_metrics,
    summed_token_loss,
)
from slp_transformer.training.strategy import Strategy
from slp_transformer.training.train_config import TrainConfig


def test_mean_loss_counts_every_full_window_once():
    model = language_model(context_length=11).eval()
    stream = torch.randint(7, (3 * 11 + 5,), generator=torch.Generator().manual_seed(1))
    by_hand = torch.stack(
        [next_token_loss(model(stream[i : i + 11]), stream[i + 1 : i + 12]) for i in (0, 11, 22)]
    ).mean()
    assert mean_loss(model, stream, 11, batch_size=2) == pytest.approx(by_hand.item(), rel=1e-5)
    sums = iter([2.0**24, 1.0, 0.0])  # in float32 they would add up to the first

    def measure(*_):
        return {"loss": torch.tensor(next(sums))}

    assert mean_metrics(model, stream, 11, 1, measure=measure)["loss"] == (2**24 + 1) / 33


def test_padding_changes_no_loss():
    """Pairs scored together, padded, come to what each alone comes to."""
    model, source = encoder_decoder().eval(), pairs((3, 5), (2, 1), (7, 2))
    alone = [next(iter([source.collate(torch.tensor([i]))])) for i in range(3)]
    total = sum(next_token_loss(model(*b.inputs), b.targets, reduction="sum").item() for b in alone)
    mean = total / sum(b.num_targets for b in alone)
    assert mean_loss(model, source, batch_size=3) == pytest.approx(mean, rel=1e-5)
    assert mean_loss(model, source, batch_size=2) == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("name", [*inspect.signature(summed_token_loss).parameters][2:])
def test_padding_adds_to_no_term_of_the_loss(name):
    """Also to none that a setting adds, for each argument that a loss is given."""
    model, source = encoder_decoder().eval(), pairs((3, 5), (2, 1), (7, 2))
    given = {name: settings_of(TrainConfig)[name].example}
    parts = [torch.tensor(rows) for rows in ([0], [1], [2], [0, 1, 2])]
    *alone, padded = (summed_token_loss(model, source.collate(rows), **given) for rows in parts)
    torch.testing.assert_close(padded, sum(alone))


def test_before_training_each_process_measures_one_sequence_of_its_own():
    data, measured = TokenWindowSource(torch.arange(17), 5), []

    def measure(model, batch):
        measured.extend(batch.inputs[0].tolist())

    for rank in range(3):
        strategy = Strategy(torch.device("cpu"), rank, 3)
        check_one_sequence(language_model(), data, measure, TrainConfig(steps=1), strategy)
    assert measured == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14]]


def test_measuring_leaves_frozen_parts_alone_even_when_it_fails():
    model = with_dropout(num_blocks=2)
    model.stack.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    assert True in modes and False in modes
    mean_loss(model, STREAM, 5)
    assert [module.training for module in model.modules()] == modes

    def fail(count):
        assert not any(module.training for module in model.modules())
        raise OSError

    with pytest.raises(OSError):
        mean_metrics(model, STREAM, 5, on_batch=fail)
    assert [module.training for module in model.modules()] == modes
