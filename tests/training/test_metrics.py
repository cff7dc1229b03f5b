"""Metrics: by hand, shown wherever an evaluation is, and none of them by a second forward pass."""

import json
import math
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path

import choice_tables
import pytest
import torch
from checkpoint_folders import checkpoint_folder
from tiny_training import STREAM, encoder_decoder, language_model, pairs, run, with_dropout
from whole import whole

from slp_transformer.data.batches import Batch
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.tasks.evaluation import format_rows
from slp_transformer.training import Callback, Trainer, train
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.evaluation import mean_loss, mean_metrics, summed_token_loss
from slp_transformer.training.metrics import (
    METRICS,
    STEP_NUMBERS,
    Metric,
    StepNumber,
    count_correct,
)
from slp_transformer.training.run_folder import load_trainer_state
from slp_transformer.training.train_config import TrainConfig

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


@pytest.fixture
def dummy() -> Iterator[str]:
    """Add a metric from outside: the share of targets that are word 3."""
    threes = Metric("how often it is a 3", lambda U, targets: (targets == 3).sum(), "{:.3f}".format)
    METRICS.add("threes", threes)
    yield "threes"
    METRICS.remove("threes")


# Of three rows of logits the last has no target; the targets have 9, the highest of six, and 1, the
# fifth: e⁹ of e⁰ + e⁹ + e¹ + e² + e³ + e⁴, and e¹ of e⁵ + e⁴ + e³ + e² + e¹ + e⁰.
UP_TO_4 = sum(math.e**n for n in range(5))
BY_HAND = {
    "accuracy": 1.0,
    "loss": math.log(UP_TO_4 + math.e**9) - 9 + math.log(UP_TO_4 + math.e**5) - 1,
}


def test_metrics_by_hand():
    """A metric without a sum by hand is red, too."""
    U = torch.tensor([[[0.0, 9, 1, 2, 3, 4], [5, 4, 3, 2, 1, 0], [0, 0, 9, 0, 0, 0]]])
    targets = torch.tensor([[1, 4, IGNORE_INDEX]])
    found = {name: metric.total(U, targets).item() for name, metric in METRICS.items()}
    assert found == pytest.approx(BY_HAND)


def test_the_first_of_equal_logits_is_the_one_that_counts():
    U = torch.zeros(2, 5, 7).index_fill(2, torch.tensor([3, 5]), 1.0)
    targets = torch.tensor([[3, 5, 0, 3, IGNORE_INDEX], [5, 5, 3, 6, 3]])
    assert count_correct(U, targets) == 4
    assert count_correct(torch.zeros(3, 7), torch.tensor([0, 1, IGNORE_INDEX])) == 1
    U, targets = torch.randn(3, 11, 5).round(decimals=1), torch.randint(5, (3, 11))
    assert count_correct(U, targets) == (U.argmax(-1) == targets).sum()


def test_every_metric_measures_something_of_its_own():
    means = mean_metrics(language_model(), STREAM, 5)
    assert list(means) == list(METRICS) and len(set(means.values())) == len(means)


def test_no_metric_counts_what_is_no_target():
    draw = torch.Generator().manual_seed(7)
    U, targets = torch.randn(3, 11, 5, generator=draw), torch.randint(5, (3, 11), generator=draw)
    padded = torch.cat([U, torch.randn(3, 2, 5, generator=draw)], dim=1)
    more = torch.cat([targets, torch.full((3, 2), IGNORE_INDEX)], dim=1)
    for name, metric in METRICS.items():
        torch.testing.assert_close(metric.total(padded, more), metric.total(U, targets), msg=name)


def test_means_count_each_target_once_whatever_the_batches():
    model, source = language_model().eval(), STREAM.flip(0)
    hits = [model(source[i : i + 5]).argmax(-1) == source[i + 1 : i + 6] for i in range(0, 30, 5)]
    expected = torch.stack(hits).double().mean().item()
    assert 0 < expected < 1
    for batch_size in (1, 4):
        means = mean_metrics(model, source, 5, batch_size)
        assert means["accuracy"] == pytest.approx(expected)
        assert means["loss"] == mean_loss(model, source, 5, batch_size)


def test_the_logits_are_computed_once():
    model, calls = language_model(), []
    model.register_forward_hook(lambda *_: calls.append(1))
    mean_metrics(model, STREAM, 5, batch_size=2)
    assert len(calls) == 3  # six windows


def test_nothing_of_a_batch_outlives_it():
    """A list of small tensors, each among a batch's logits in the heap, would pin them all."""
    alive: list[weakref.ref] = []

    def measure(model, batch):
        assert sum(ref() is not None for ref in alive) <= 1  # the last one, at the most
        total = model(*batch.inputs).sum()
        alive.append(weakref.ref(total))
        return {"loss": total}

    mean_metrics(language_model(), STREAM, 5, batch_size=1, measure=measure)
    assert len(alive) == 6


def test_losses_of_steps_are_kept_as_numbers_on_a_cpu():
    class Watch(Callback):
        def on_step(self, trainer, loss, num_targets):
            alive.append(weakref.ref(loss))
            assert sum(ref() is not None for ref in alive) <= 2

    alive: list[weakref.ref] = []
    config = TrainConfig(steps=5, batch_size=2, eval_interval=5)
    Trainer(language_model(), STREAM, STREAM, config, callbacks=[Watch()]).fit()
    assert len(alive) == 5


def test_a_metric_from_outside_is_shown_wherever_the_loss_is(dummy, tmp_path, capsys):
    how = {"steps": 4, "eval_interval": 2, "batch_size": 2, "max_eval_samples": 3}
    records = train(with_dropout(), STREAM, STREAM, **how, out_dir=tmp_path, progress=True)
    assert all(r.val_metrics.keys() == METRICS.keys() - {"loss"} for r in records)
    assert dummy in METRICS
    last = records[-1]
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"| val threes {last.val_metrics[dummy]:.3f} |" in line
    assert f"| full val threes {last.full_val_metrics[dummy]:.3f} |" in line
    assert f"| val accuracy {last.val_metrics['accuracy']:.1%} |" in line
    rows = json.loads((tmp_path / "metrics.json").read_text("utf-8"))["evaluations"]
    assert [row["val_threes"] for row in rows] == [r.val_metrics[dummy] for r in records]
    assert rows[-1]["full_val_threes"] == last.full_val_metrics[dummy]
    means = mean_metrics(load_model(tmp_path, "last"), STREAM, 5)
    assert format_rows(means | {"perplexity": 1.0})[dummy] == f"{means[dummy]:.3f}"
    assert "| `threes` | how often it is a 3 |" in choice_tables.fill(PAGE.read_text("utf-8"))


def test_each_number_of_a_step_is_in_log_file_and_curves(tmp_path, capsys):
    """Also one from outside: a row of the table is all that there is to write."""
    board = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    halves = StepNumber("half", lambda trainer: trainer.state.step / 2, "half {:.1f}".format, "½")
    STEP_NUMBERS.add("halves", halves)
    try:
        how = {"steps": 4, "eval_interval": 2, "batch_size": 2, "max_eval_samples": 3}
        train(with_dropout(), STREAM, STREAM, **how, out_dir=tmp_path, tensorboard=True)
        page = choice_tables.fill(PAGE.read_text("utf-8"))
    finally:
        STEP_NUMBERS.remove("halves")
    line = capsys.readouterr().err.splitlines()[-1]
    row = json.loads((tmp_path / "metrics.json").read_text("utf-8"))["evaluations"][-1]
    curves = board.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert "| half 2.0 |" in line and row["halves"] == 2.0 and "| `halves` | half |" in page
    assert [each.value for each in curves.Scalars("½")] == [1.0, 2.0]
    names = {"train_loss", "learning_rate", "tokens_per_second", "halves", "val_accuracy"}
    assert names <= row.keys() and f"train loss {row['train_loss']:.4f}" in line
    drawn = {"loss/train", "loss/val", "accuracy/val", "accuracy/full val", "learning rate"}
    assert drawn <= set(curves.Tags()["scalars"])


def test_a_number_of_a_step_is_the_same_however_gradients_are_clipped():
    """The norm of a gradient that is read when it is clipped tells how it was clipped."""
    timed = {"tokens_per_second", "mfu"}

    def numbers(**clipping):
        trainer = Trainer(language_model(), STREAM, STREAM, TrainConfig(steps=1, **clipping))
        trainer.fit()
        return {name: n.read(trainer) for name, n in STEP_NUMBERS.items() if name not in timed}

    assert numbers(max_grad_norm=1e-3) == numbers(max_grad_norm=None)


def test_what_a_task_measures_itself_is_a_row_of_its_report():
    values = {"loss": 2.0, "perplexity": math.e**2, "tokens": 1234, "rests": 0.25, "notes": []}
    rows = format_rows(values | {"bits": {"model": 1.5}, "well_formed": None})
    expected = {"loss": "2.0000 nats per token", "perplexity": "7.389", "tokens": "1,234"}
    assert rows == expected | {"rests": "0.2500", "bits, model": "1.5000", "well formed": "none"}


def test_a_loss_of_one_s_own_is_measured_alone_or_with_what_is_given():
    def loss(model, batch, *, label_smoothing=0.0):
        return summed_token_loss(model, batch)

    def measure(model, batch):
        return {"loss": loss(model, batch), "words": torch.tensor(batch.targets.numel())}

    config = TrainConfig(steps=1, batch_size=3)
    (alone,) = Trainer(language_model(), STREAM, STREAM, config, loss=loss).fit()
    (given,) = Trainer(language_model(), STREAM, STREAM, config, loss=loss, measure=measure).fit()
    assert alone.val_metrics == {} and given.val_metrics == {"words": 1.0}
    assert alone.val_loss == given.val_loss


def test_runs_of_version_0_2_load_and_resume(tmp_path):
    """Their evaluations have no metrics beside the loss, in training.json and metrics.json."""
    how = {"steps": 4, "eval_interval": 2, "keep_last": 9}
    _, whole = run(tmp_path / "new", **how)
    shutil.copytree(tmp_path / "new" / "step-00000002", tmp_path / "old" / "step-00000002")
    folder = tmp_path / "old" / "step-00000002"
    state = json.loads((folder / "training.json").read_text("utf-8"))
    for record in state["eval_history"]:
        assert record.pop("val_metrics") and record.pop("full_val_metrics") == {}
    manifest = json.loads((folder / "checkpoint.json").read_text("utf-8"))
    (folder / "training.json").write_text(json.dumps(state), encoding="utf-8")
    manifest["files"]["training.json"] = (folder / "training.json").stat().st_size
    del manifest["crc32"]
    (folder / "checkpoint.json").write_text(json.dumps(manifest), encoding="utf-8")
    _, resumed = run(tmp_path / "old", **how, resume=True)
    assert resumed[0].val_metrics == {} and resumed[0].val_loss == whole[0].val_loss
    assert resumed[1] == whole[1]


def test_a_kill_in_the_evaluation_of_all_data_loses_no_step(tmp_path, monkeypatch):
    how = {"steps": 4, "eval_interval": 3, "max_eval_samples": 3}
    expected, history = run(tmp_path / "whole", **how)
    assert history[-1].full_val_loss is not None
    calls = iter(range(99))

    def killed(*arguments, **options):
        if next(calls) == 2:  # after steps 3 and 4 a part of the data, and then all of them
            raise OSError("the plug is pulled")
        return mean_metrics(*arguments, **options)

    monkeypatch.setattr("slp_transformer.training.trainer.mean_metrics", killed)
    with pytest.raises(OSError, match="plug"):
        run(tmp_path / "killed", **how)
    kept = load_trainer_state(checkpoint_folder(tmp_path / "killed"))
    assert kept is not None and (kept.step, len(kept.losses)) == (4, 1) and not kept.is_finished()
    model, resumed = run(tmp_path / "killed", **how, resume=True)
    assert resumed == history
    weights = zip(model.parameters(), expected.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)
    assert load_trainer_state(checkpoint_folder(tmp_path / "killed")) == load_trainer_state(
        checkpoint_folder(tmp_path / "whole")
    )


class Masked:
    """Batches of which a share of the targets count."""

    def __init__(self, share: float):
        self.share = share

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        ids = torch.randint(7, (batch_size, 5), generator=generator)
        masked = torch.rand(ids.shape, generator=generator) < self.share
        return Batch((ids,), ids.masked_fill(~masked, IGNORE_INDEX))

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        yield self.draw(4, torch.Generator().manual_seed(1))

    def fingerprint(self) -> dict:
        return {}


def test_nothing_to_predict_is_said():
    how = {"steps": 2, "batch_size": 2}
    with pytest.raises(
        ValueError,
        match=whole(
            "The batch of step 0 has nothing to predict: all its targets are -100, and "
            "are not counted. Draw larger batches, or leave fewer out."
        ),
    ):
        train(language_model(), Masked(0.0), Masked(0.5), **how)
    with pytest.raises(
        ValueError,
        match=whole(
            "There is nothing to predict: every target of the data is -100, and is not counted."
        ),
    ):
        train(language_model(), Masked(0.9), Masked(0.0), **how)


def test_padded_pairs_have_an_accuracy_of_their_targets():
    model, source = encoder_decoder().eval(), pairs((3, 5), (2, 1), (7, 2))
    batches = list(source.iter_eval(3))
    hits = sum(int((model(*b.inputs).argmax(-1) == b.targets).sum()) for b in batches)
    total = sum(b.num_targets for b in batches)
    assert mean_metrics(model, source, batch_size=2)["accuracy"] == pytest.approx(hits / total)
