"""The loop's options, each against what it should amount to; and what it says and shows."""

import math
import re
import shutil
import signal
from dataclasses import MISSING, replace

import pytest
import torch
from tiny_training import STREAM, encoder_decoder, files, language_model, pairs, same, with_dropout
from whole import whole

from slp_transformer import generate
from slp_transformer._internal.settings import settings_of
from slp_transformer.data.batches import Batch, TokenWindowSource, eval_subset
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.training import Callback, Trainer, train, training_step
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.devices import format_speed, pick_device
from slp_transformer.training.evaluation import mean_loss, summed_token_loss
from slp_transformer.training.metrics import METRICS, STEP_NUMBERS
from slp_transformer.training.run_folder import EvalRecord, TrainerState
from slp_transformer.training.train_config import TrainConfig

CPU = torch.device("cpu")


def weights_after_a_step(settings: TrainConfig, model, batch, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters())
    loss = training_step(model, batch, optimizer, 1, settings, CPU)
    return loss.item(), [p.detach().clone() for p in model.parameters()]


def close(a, b) -> bool:
    return all(torch.allclose(x, y, atol=1e-6) for x, y in zip(a, b, strict=True))


def test_settings_may_come_as_one_or_by_name_with_the_model_s_own_context():
    settings = TrainConfig(steps=2, batch_size=3)
    one = train(language_model(), STREAM, STREAM, settings)
    assert one == train(language_model(), STREAM, STREAM, steps=2, batch_size=3, sequence_length=5)
    assert len(train(language_model(), STREAM, STREAM, settings, eval_interval=1)) == 2


STEP_SETTINGS = [
    pytest.param(name, about, id=name)
    for name, about in settings_of(TrainConfig).items()
    if about.example is not MISSING and name not in ("batch_tokens", "bf16")
]


@pytest.mark.parametrize(("name", "about"), STEP_SETTINGS)
def test_padding_counts_in_no_step_whatever_the_setting(name, about):
    """Neither rows of it nor columns, in a loss or another term that a setting adds."""
    settings = TrainConfig(**{"steps": 9, "batch_size": 2, name: about.example} | about.given)
    if name == "batch_size":
        settings = replace(settings, gradient_accumulation_steps=2)
    ids = torch.arange(12).view(4, 3) % 7
    padded = torch.nn.functional.pad(ids, (0, 2, 0, 2))
    ignored = torch.nn.functional.pad(ids + 1 - ids // 6, (0, 2, 0, 2), value=IGNORE_INDEX)
    _, plain = weights_after_a_step(settings, language_model(), Batch((ids,), ignored[:4, :3]))
    _, other = weights_after_a_step(settings, language_model(), Batch((padded,), ignored))
    assert close(plain, other)


def test_a_stream_may_be_an_array_or_have_small_numbers():
    import numpy as np

    how = {"steps": 2, "batch_size": 3, "eval_interval": 1}
    expected = train(language_model(), STREAM, STREAM, **how)
    for dtype in (torch.int32, torch.int16, torch.uint8, torch.uint16):
        stream = STREAM.to(dtype)
        assert train(language_model(), stream, stream.numpy(), **how) == expected
    array = np.asarray(STREAM.tolist(), dtype=">u2")  # as another machine may have written it
    assert mean_loss(language_model(), array, 5) == mean_loss(language_model(), STREAM, 5)


def test_data_of_another_kind_are_refused_by_name(unchecked):
    with pytest.raises(
        TypeError,
        match=whole(
            "Data to train on is one row of ids as a torch tensor or a NumPy array, a "
            "TokenStore, or a source of batches, not list."
        ),
    ):
        train(language_model(), list(range(99)), STREAM, steps=1)
    for data in (STREAM.view(5, 7), STREAM.float(), STREAM > 3, STREAM.view(5, 7).numpy()):
        with pytest.raises(ValueError, match=r"one row of ids, not \S+ of shape \[(5×7|35)\]\."):
            train(language_model(), data, data, steps=1)


def test_a_stream_without_a_length_of_window_is_refused():
    with pytest.raises(
        ValueError,
        match=whole(
            "Windows of a token stream need a length: give N, or sequence_length to train."
        ),
    ):
        train(torch.nn.Embedding(7, 7), STREAM, STREAM, steps=1)


def test_accumulated_parts_give_the_gradient_of_the_whole():
    """Also where padding is spread unevenly: each target counts the same."""
    batch = next(pairs((3, 5), (2, 1), (7, 2), (1, 6)).iter_eval(4))
    whole, parts = TrainConfig(steps=9, batch_size=4), TrainConfig(steps=9, batch_size=1)
    loss, weights = weights_after_a_step(whole, encoder_decoder(), batch)
    loss_of_parts, weights_of_parts = weights_after_a_step(parts, encoder_decoder(), batch)
    assert loss == pytest.approx(loss_of_parts, rel=1e-5)
    assert close(weights, weights_of_parts)
    assert not close(weights, encoder_decoder().parameters())


def test_accumulation_draws_as_many_batches_for_a_step():
    one = train(language_model(), STREAM, STREAM, steps=3, batch_size=6, eval_interval=1)
    parts = {"batch_size": 2, "gradient_accumulation_steps": 3}
    two = train(language_model(), STREAM, STREAM, steps=3, **parts, eval_interval=1)
    for a, b in zip(one, two, strict=True):
        assert (a.train_loss, a.val_loss) == pytest.approx((b.train_loss, b.val_loss), rel=1e-4)


def test_a_long_gradient_is_shortened_to_clip():
    batch = TokenWindowSource(STREAM, 5).draw(4, torch.Generator().manual_seed(0))
    moved = {}
    for clip in (0.01, 1e9, None):
        settings = TrainConfig(steps=9, max_grad_norm=clip, learning_rate=1.0, warmup_steps=0)
        before = language_model()
        _, after = weights_after_a_step(settings, language_model(), batch)
        steps = [a - b for a, b in zip(after, before.parameters(), strict=True)]
        moved[clip] = torch.cat([step.flatten() for step in steps]).norm().item()
    assert moved[0.01] == pytest.approx(0.01 * settings.learning_rate_at(1), rel=1e-3)
    assert moved[None] == pytest.approx(moved[1e9]) and moved[None] > 2 * moved[0.01]


def test_label_smoothing_is_for_training_and_not_for_measuring():
    plain = train(language_model(), STREAM, STREAM, steps=1, learning_rate=1e-9)
    smooth = train(
        language_model(), STREAM, STREAM, steps=1, learning_rate=1e-9, label_smoothing=0.4
    )
    assert smooth[0].val_loss == pytest.approx(plain[0].val_loss, rel=1e-5)
    assert abs(smooth[0].train_loss - plain[0].train_loss) > 1e-5


def test_bf16_computes_the_logits_in_bf16_and_keeps_the_weights():
    model, seen = language_model(), set()
    model.register_forward_hook(lambda _, __, U: seen.add(U.dtype))
    records = train(model, STREAM, STREAM, steps=2, bf16=True)
    assert seen == {torch.bfloat16} and math.isfinite(records[-1].val_loss)
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_a_loss_of_one_s_own_is_trained_and_evaluated():
    def doubled(model, batch, *, label_smoothing=0.0):
        return 2 * summed_token_loss(model, batch)

    config = TrainConfig(steps=1, batch_size=3, learning_rate=1e-9)
    plain = Trainer(language_model(), STREAM, STREAM, config).fit()
    (record,) = Trainer(language_model(), STREAM, STREAM, config, loss=doubled).fit()
    assert record.train_loss == pytest.approx(2 * plain[0].train_loss)
    assert record.val_loss == pytest.approx(2 * plain[0].val_loss)


def test_speeds_are_told_in_a_few_characters():
    speeds = [format_speed(speed) for speed in (999, 1000, 999_949, 2.5e6)]
    assert speeds == ["999 tok/s", "1.0k tok/s", "999.9k tok/s", "2.5M tok/s"]


def test_callbacks_see_each_step_and_evaluations_after_their_checkpoint(tmp_path):
    seen = []

    class Watch(Callback):
        def on_step(self, trainer, loss, num_targets):
            seen.append((trainer.state.step, num_targets))

        def on_eval(self, trainer, record):
            saved = load_model(tmp_path, "last").state_dict()
            weights = trainer.model.state_dict()
            seen.append(
                (record.step, all(torch.equal(saved[name], weights[name]) for name in saved))
            )

        def on_fit_end(self, trainer):
            seen.append("end")

    config = TrainConfig(steps=3, batch_size=4, eval_interval=2)
    trainer = Trainer(
        language_model(), STREAM, STREAM, config, out_dir=tmp_path, callbacks=[Watch()]
    )
    history = trainer.fit()
    assert seen == [(1, 20), (2, 20), (2, True), (3, 20), (3, True), "end"]
    assert history == trainer.state.eval_history and trainer.fit(resume=True) == history


def test_training_learns_a_pattern_and_reports_each_evaluation():
    model, seen = language_model(), []
    settings = {"steps": 110, "eval_interval": 50, "learning_rate": 0.02, "report": seen.append}
    records = train(model, STREAM, STREAM, **settings)
    assert seen == records and [record.step for record in records] == [50, 100, 110]
    assert records[-1].val_loss < 0.1 < records[0].train_loss and not model.training


def test_while_training_a_part_is_measured_and_all_at_the_end():
    """The measure of each moment is the one that `mean_loss` gives afterwards."""
    model, held_out = with_dropout(), STREAM.flip(0)
    how = {"steps": 4, "eval_interval": 2, "batch_size": 2}
    records = train(model, STREAM, held_out, **how, max_eval_samples=3)
    windows = TokenWindowSource(held_out, 5)
    assert [record.full_val_loss for record in records[:-1]] == [None]
    assert records[-1].val_loss == pytest.approx(mean_loss(model, eval_subset(windows, 3)))
    assert records[-1].full_val_loss == pytest.approx(mean_loss(model, windows))
    assert records[-1].full_val_loss != pytest.approx(records[-1].val_loss, abs=1e-6)
    everything = train(with_dropout(), STREAM, held_out, **how, max_eval_samples=None)
    assert everything[-1].full_val_loss is None
    assert everything[-1].val_loss == pytest.approx(records[-1].full_val_loss)


def test_dropout_draws_by_the_run_s_seed_and_leaves_the_caller_s_random_numbers_alone():
    trained = []
    for seed in (5, 7):
        torch.manual_seed(seed)
        expected = torch.rand(3)
        model = with_dropout()
        torch.manual_seed(seed)
        train(model, STREAM, STREAM, steps=2, batch_size=2, seed=3)
        assert torch.equal(torch.rand(3), expected)
        trained.append(model)
    assert same(*trained)


def test_a_model_that_comes_in_evaluation_mode_is_trained_with_its_dropout():
    """As one does that was loaded, or trained before."""
    loaded, new, plain = with_dropout().eval(), with_dropout().train(), with_dropout(dropout=0.0)
    for model in (loaded, new, plain):
        train(model, STREAM, STREAM, steps=2, batch_size=2, eval_interval=1)
    assert same(loaded, new) and not same(loaded, plain) and not loaded.training


def test_training_stops_when_patience_is_at_an_end():
    held_out = torch.tensor([3, 3, 3, 3, 3, 0, 3, 3])
    settings = {"steps": 200, "eval_interval": 5, "learning_rate": 0.05, "batch_size": 4}
    records = train(language_model(), STREAM, held_out, **settings, early_stopping_patience=3)
    losses = [record.val_loss for record in records]
    assert records[-1].step < 200
    assert losses.index(min(losses)) == len(losses) - 4


OTHERS = (".lock", "metrics.json")  # the latter is for people and plots


@pytest.mark.parametrize(
    ("moment", "update"), [("way", 4), ("Ctrl-C", 4), ("end", 5), ("held out alone", None)]
)
def test_a_run_that_diverges_keeps_its_last_good_checkpoint(tmp_path, monkeypatch, moment, update):
    how = {"steps": 8, "eval_interval": 2, "batch_size": 2, "out_dir": tmp_path, "progress": False}
    kept = {}

    def remember(record):
        kept.update(files(tmp_path, OTHERS)) if record.step == 4 else None

    step, count = torch.optim.AdamW.step, iter(range(99))

    def ruin(self, *arguments):
        result = step(self, *arguments)
        if next(count) == update:
            self.param_groups[0]["params"][0].data.fill_(math.nan)
            if moment == "Ctrl-C":
                signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(torch.optim.AdamW, "step", ruin)
    if update is None:
        losses = iter([1.0, 1.0, math.inf])
        measure = "slp_transformer.training.trainer.mean_metrics"
        monkeypatch.setattr(measure, lambda *_, **__: {"loss": next(losses)})
    where = r"is NaN or infinite, at step [56] .*learning_rate"
    with pytest.raises(ValueError, match=where) as told:
        train(with_dropout(), STREAM, STREAM, report=remember, **how)
    assert "\n" not in str(told.value)
    assert kept and files(tmp_path, OTHERS) == kept
    assert all(p.isfinite().all() for p in load_model(tmp_path, "last").parameters())


@pytest.mark.parametrize(
    ("losses", "since", "best"),
    [([], 0, None), ([3.0, 2.0], 0, 2), ([2.0, 3.0, 2.0], 2, 1), ([3.0, 2.0, 2.5], 1, 2)],
)
def test_the_best_of_equals_is_the_first(losses, since, best):
    history = [EvalRecord(i, 0.0, loss) for i, loss in enumerate(losses, 1)]
    state = TrainerState(len(losses), TrainConfig(steps=9), {}, history, [])
    assert (state.evals_since_best(), state.best_step()) == (since, best)


@pytest.mark.parametrize(
    ("cuda", "mps", "picked"), [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_it_picks_cuda_then_mps_then_cpu(monkeypatch, cuda, mps, picked):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device().type == picked and pick_device("cpu").type == "cpu"
    if not cuda:
        with pytest.raises(ValueError, match='cpu on this machine, not "cuda"'):
            pick_device("cuda")


def test_a_log_has_a_line_for_each_evaluation_and_no_bar(capsys):
    train(language_model(), STREAM, STREAM, steps=30, batch_size=2, eval_interval=10, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Training on") and len(lines) == 4
    for line, step in zip(lines[1:], (10, 20, 30), strict=True):
        number = r"\d+\.\d{4}"
        form = rf"step {step}/30 \| train loss {number} \| val loss {number} \| "
        for name in [*METRICS][1:]:
            value = r"\d+\.\d%" if name == "accuracy" else r"\S+"
            form += rf"val {name.replace('_', ' ')} {value} \| "
        own = {"learning_rate": r"lr \d\.\de-\d \| ", "tokens_per_second": r"[\d.]+[kM]? tok/s \| "}
        for name in [*STEP_NUMBERS][1:]:
            form += own.get(name, r"([^|]+ \| )?")
        assert re.fullmatch(form + r"eta \d+:\d\d", line), line


def test_tensorboard_has_the_curves(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = {"steps": 4, "eval_interval": 2, "progress": False}
    records = train(
        language_model(), STREAM, STREAM, **settings, out_dir=tmp_path, tensorboard=True
    )
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    curves = {t: [(e.step, e.value) for e in events.Scalars(t)] for t in events.Tags()["scalars"]}
    expected = {"loss/train": [r.train_loss for r in records]}
    expected |= {"loss/val": [r.val_loss for r in records]}
    expected |= {"accuracy/val": [r.val_metrics["accuracy"] for r in records]}
    for name, values in expected.items():
        assert [step for step, _ in curves[name]] == [r.step for r in records]
        assert [value for _, value in curves[name]] == pytest.approx(values, rel=1e-5)


def test_tensorboard_has_each_step_once_after_going_back_and_goes_on_by_itself(
    tmp_path, monkeypatch
):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.summary.writer import event_file_writer as writing

    # Files are read in the order of their names. Those of one process and one second differ in a
    # count alone, by which the tenth would be read before the ninth.
    monkeypatch.setattr(writing, "_global_uid", writing.AtomicCounter(0))
    how = {"eval_interval": 2, "progress": False, "out_dir": tmp_path, "keep_last": 9}
    train(language_model(), STREAM, STREAM, **how, steps=8, tensorboard=True)
    for step in (6, 8):  # as a restored backup would not have them
        shutil.rmtree(tmp_path / f"step-{step:08d}")
    records = train(
        language_model(), STREAM, STREAM, **how, steps=10, resume=True, learning_rate=1e-4
    )
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    for name in ("loss/val", "loss/train", "accuracy/val", "learning rate"):
        assert [e.step for e in events.Scalars(name)] == [2, 4, 6, 8, 10]
    drawn = [e.value for e in events.Scalars("loss/val")]
    assert drawn == pytest.approx([r.val_loss for r in records], rel=1e-5)


def test_tensorboard_without_a_folder_is_refused():
    with pytest.raises(
        ValueError, match=whole("TensorBoard's curves are saved with the run: give out_dir.")
    ):
        train(language_model(), STREAM, STREAM, steps=1, tensorboard=True)


def test_a_default_device_changes_nothing(tmp_path):
    """Meta tensors hold no numbers, so that any tensor that is made there would show."""
    settings = {"steps": 2, "batch_size": 2, "eval_interval": 1, "device": "cpu", "progress": False}
    source = pairs((3, 5), (2, 1), (7, 2))
    plain, model, translator = language_model(), language_model(), encoder_decoder()
    history = train(plain, STREAM, STREAM, **settings)
    expected = generate(plain, [[1, 2], [3]], 3, temperature=0)
    with torch.device("meta"):
        assert train(model, STREAM, STREAM, **settings, out_dir=tmp_path) == history
        train(model, STREAM, STREAM, **settings | {"steps": 2}, out_dir=tmp_path, resume=True)
        train(translator, source, source, **settings)
        loss = mean_loss(plain, STREAM, 5)
        written = generate(plain, [[1, 2], [3]], 3, temperature=0)
        loaded = load_model(tmp_path, "last")
    assert loss == mean_loss(plain, STREAM, 5)
    assert [result.ids for result in written] == [result.ids for result in expected]
    assert close(loaded.parameters(), plain.parameters())


@pytest.mark.slow
def test_settings_that_no_step_can_work_with_leave_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="there are positions for 5"):
        train(language_model(), STREAM, STREAM, steps=2, sequence_length=6, out_dir=tmp_path / "a")
    frozen = language_model().requires_grad_(False)
    with pytest.raises(ValueError, match="none can be trained"):
        train(frozen, STREAM, STREAM, steps=2, out_dir=tmp_path / "a")
    assert not (tmp_path / "a").exists()
