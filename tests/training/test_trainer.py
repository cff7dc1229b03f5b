"""The loop's options, each against what it should amount to; and what it says and shows."""

import math
import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from own_process import python
from tiny_training import BEGIN, END, PAD, STREAM, encoder_decoder, language_model, pairs

from slp_transformer import (
    generate,
    padding_mask,
)
from slp_transformer.data.batches import IGNORE_INDEX, PaddedPairs, TokenWindows
from slp_transformer.loss import next_token_loss
from slp_transformer.training import callbacks
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.devices import pick_device
from slp_transformer.training.evaluation import mean_loss, summed_token_loss
from slp_transformer.training.run_folder import EvalRecord, TrainerState
from slp_transformer.training.train_config import TrainConfig
from slp_transformer.training.trainer import Trainer, train, training_step

CPU = torch.device("cpu")


def weights_after_a_step(settings: TrainConfig, model, batch, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters())
    loss = training_step(model, batch, optimizer, 1, settings, CPU)
    return loss.item(), [p.detach().clone() for p in model.parameters()]


def close(a, b) -> bool:
    return all(torch.allclose(x, y, atol=1e-6) for x, y in zip(a, b, strict=True))


# --- Settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"sequence_length": 0},
        {"batch_size": 0},
        {"gradient_accumulation_steps": 0},
        {"eval_interval": 0},
        {"early_stopping_patience": 0},
        {"warmup_steps": -1},
        {"seed": -1},
        {"learning_rate": 0.0},
        {"learning_rate": math.nan},
        {"max_grad_norm": -1.0},
        {"weight_decay": -0.1},
        {"label_smoothing": 1.0},
    ],
)
def test_a_wrong_setting_is_named_with_its_value(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=rf"^{name} .*not {value!r}\.$"):
        TrainConfig(**{"steps": 1} | wrong)


def test_settings_read_back():
    settings = TrainConfig(steps=9, max_grad_norm=None, early_stopping_patience=3)
    assert TrainConfig(**settings.to_dict()) == settings


def test_the_rate_warms_up_over_a_twentieth_unless_told():
    settings = TrainConfig(steps=100, learning_rate=2.0)
    assert [settings.learning_rate_at(s) for s in (0, 4, 5)] == pytest.approx([0.4, 2.0, 2.0])
    assert replace(settings, warmup_steps=0).learning_rate_at(0) == pytest.approx(2.0)
    assert replace(settings, warmup_steps=10).learning_rate_at(0) == pytest.approx(0.2)


def test_settings_may_come_as_one_or_by_name_with_the_model_s_own_context():
    settings = TrainConfig(steps=2, batch_size=3)
    one = train(language_model(), STREAM, STREAM, settings)
    assert one == train(language_model(), STREAM, STREAM, steps=2, batch_size=3, sequence_length=5)
    assert len(train(language_model(), STREAM, STREAM, settings, eval_interval=1)) == 2


def test_a_stream_without_a_length_of_window_is_refused():
    with pytest.raises(ValueError, match="give N, or sequence_length"):
        train(torch.nn.Embedding(7, 7), STREAM, STREAM, steps=1)


# --- One step ----------------------------------------------------------------------------------


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
    batch = TokenWindows(STREAM, 5).draw(4, torch.Generator().manual_seed(0))
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


def test_the_loss_does_not_see_what_is_ignored():
    U = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[1, 2, IGNORE_INDEX], [3, IGNORE_INDEX, IGNORE_INDEX]])
    kept = torch.stack([U[0, 0], U[0, 1], U[1, 0]])
    for smoothing in (0.0, 0.3):
        loss = next_token_loss(U, targets, label_smoothing=smoothing)
        expected = F.cross_entropy(kept, torch.tensor([1, 2, 3]), label_smoothing=smoothing)
        assert loss.item() == pytest.approx(expected.item())


def test_bf16_computes_the_logits_in_bf16_and_keeps_the_weights():
    model, seen = language_model(), set()
    model.register_forward_hook(lambda _, __, U: seen.add(U.dtype))
    records = train(model, STREAM, STREAM, steps=2, bf16=True)
    assert seen == {torch.bfloat16} and math.isfinite(records[-1].val_loss)
    assert all(p.dtype == torch.float32 for p in model.parameters())


# --- Pairs -------------------------------------------------------------------------------------


def test_pairs_are_padded_and_shifted_by_hand():
    rows = [(torch.tensor([5, 6, 7]), torch.tensor([8])), (torch.tensor([9]), torch.tensor([3, 4]))]
    source = PaddedPairs(rows, pad_id=PAD, begin_id=BEGIN, end_id=END)
    batch = next(source.iter_eval(2))
    sources, reads, mask = batch.inputs
    assert sources.tolist() == [[5, 6, 7], [9, PAD, PAD]]
    assert reads.tolist() == [[BEGIN, 8, PAD], [BEGIN, 3, 4]]
    assert batch.targets.tolist() == [[8, END, IGNORE_INDEX], [3, 4, END]]
    assert torch.equal(mask, padding_mask(sources, PAD)) and batch.num_targets == 5


def test_padding_changes_no_loss():
    """Pairs scored together, padded, come to what each alone comes to."""
    model, source = encoder_decoder().eval(), pairs((3, 5), (2, 1), (7, 2))
    alone = [next(iter([source.collate(torch.tensor([i]))])) for i in range(3)]
    total = sum(next_token_loss(model(*b.inputs), b.targets, reduction="sum").item() for b in alone)
    mean = total / sum(b.num_targets for b in alone)
    assert mean_loss(model, source, batch_size=3) == pytest.approx(mean, rel=1e-5)
    assert mean_loss(model, source, batch_size=2) == pytest.approx(mean, rel=1e-5)


def test_bad_pairs_are_refused():
    with pytest.raises(ValueError, match="no pairs"):
        pairs()
    with pytest.raises(ValueError, match="Pair 1 has an empty source"):
        pairs((2, 3), (0, 1))


# --- A loss and callbacks of one's own -----------------------------------------------------------


def test_a_loss_of_one_s_own_is_trained_and_evaluated():
    def doubled(model, batch, *, label_smoothing=0.0):
        return 2 * summed_token_loss(model, batch)

    config = TrainConfig(steps=1, batch_size=3, learning_rate=1e-9)
    plain = Trainer(language_model(), STREAM, STREAM, config).fit()
    (record,) = Trainer(language_model(), STREAM, STREAM, config, loss=doubled).fit()
    assert record.train_loss == pytest.approx(2 * plain[0].train_loss)
    assert record.val_loss == pytest.approx(2 * plain[0].val_loss)


def test_callbacks_see_each_step_and_evaluations_after_their_checkpoint(tmp_path):
    seen = []

    class Watch(callbacks.Callback):
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


# --- The end of a run --------------------------------------------------------------------------


def test_training_stops_when_patience_is_at_an_end():
    held_out = torch.tensor([3, 3, 3, 3, 3, 0, 3, 3])
    settings = {"steps": 200, "eval_interval": 5, "learning_rate": 0.05, "batch_size": 4}
    records = train(language_model(), STREAM, held_out, **settings, early_stopping_patience=3)
    losses = [record.val_loss for record in records]
    assert records[-1].step < 200
    assert losses.index(min(losses)) == len(losses) - 4


@pytest.mark.parametrize(
    ("losses", "since", "best"),
    [([], 0, None), ([3.0, 2.0], 0, 2), ([2.0, 3.0, 2.0], 2, 1), ([3.0, 2.0, 2.5], 1, 2)],
)
def test_the_best_of_equals_is_the_first(losses, since, best):
    history = [EvalRecord(i, 0.0, loss) for i, loss in enumerate(losses, 1)]
    state = TrainerState(len(losses), TrainConfig(steps=9), {}, history, [])
    assert (state.evals_since_best(), state.best_step()) == (since, best)


# --- What it says and shows --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cuda", "mps", "picked"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
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
        form = rf"step {step}/30 \| train loss {number} \| val loss {number} \| lr \d\.\de-\d \| "
        assert re.fullmatch(form + r"[\d.]+[kM]? tok/s \| eta \d+:\d\d", line), line


def test_tensorboard_has_the_curves(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = {"steps": 4, "eval_interval": 2, "progress": False}
    records = train(
        language_model(), STREAM, STREAM, **settings, out_dir=tmp_path, tensorboard=True
    )
    curves = {}
    for folder in {path.parent for path in (tmp_path / "tensorboard").rglob("events*")}:
        events = EventAccumulator(str(folder)).Reload()
        for tag in events.Tags()["scalars"]:
            curves[folder.name, tag] = [(e.step, e.value) for e in events.Scalars(tag)]
    valid = curves["loss_val", "loss"]
    assert valid == [(r.step, pytest.approx(r.val_loss, rel=1e-5)) for r in records]


def test_tensorboard_without_a_folder_is_refused():
    with pytest.raises(ValueError, match="give out_dir"):
        train(language_model(), STREAM, STREAM, steps=1, tensorboard=True)


PLAIN = """
import sys
for name in ("tqdm", "safetensors", "tensorboard", "numpy"):
    sys.modules[name] = None
import torch
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training.trainer import train
stream = torch.arange(7).repeat(5)
train(TransformerLM(TransformerConfig(7, 5, 6, 2, 1)), stream, stream, steps=1)
"""


def test_plain_training_needs_torch_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = python("-W", "ignore", "-c", PLAIN)
    assert result.returncode == 0, result.stderr
    assert result.stdout == result.stderr == "" and list(tmp_path.iterdir()) == []


def test_a_default_device_changes_nothing(tmp_path):
    """Meta tensors hold no numbers, so that any tensor that is made there would show."""
    settings = {"steps": 2, "batch_size": 2, "eval_interval": 1, "device": "cpu", "progress": False}
    source = pairs((3, 5), (2, 1), (7, 2))
    plain, model, translator = language_model(), language_model(), encoder_decoder()
    history = train(plain, STREAM, STREAM, **settings)
    expected = generate(plain, [[1, 2], [3]], 3, temperature=0)
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        assert train(model, STREAM, STREAM, **settings, out_dir=tmp_path) == history
        train(model, STREAM, STREAM, **settings | {"steps": 2}, out_dir=tmp_path, resume=True)
        train(translator, source, source, **settings)
        loss = mean_loss(plain, STREAM, 5)
        written = generate(plain, [[1, 2], [3]], 3, temperature=0)
        loaded = load_model(tmp_path, "last")
    finally:
        torch.set_default_device(None)
    assert before.type == "cpu" and loss == mean_loss(plain, STREAM, 5)
    assert [result.ids for result in written] == [result.ids for result in expected]
    assert close(loaded.parameters(), plain.parameters())
