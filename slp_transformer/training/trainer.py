"""The trainer: one loop with teacher forcing for every model and source of data.

    eval_history = train(model, train_data, val_data, steps=1000, sequence_length=64)

trains and returns the evaluations. With `out_dir="runs/mine"` the run is saved as it goes, and the
same call with `resume=True` continues it from where it stopped, with the same bits as if it had
never stopped. `Trainer` does so with a loss, metrics or callbacks of one's own.

Lightning, Accelerate and Hugging Face's Trainer train well. Here the loop is also what is taught,
and it makes a promise that their documentation does not: after a kill at any moment, a resumed run
has the same bits on a CPU as one that was left alone. If a library promised this, the loop should
go. Optimizers, distributed training and mixed precision are PyTorch's.
"""

import contextlib
import json
import logging
import math
import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer._internal.signals import SignalHandler, StoppedBySignal
from slp_transformer.data.batches import Batch, DataSource, TokenData, as_data_source, eval_subset
from slp_transformer.training.callbacks import (
    TENSORBOARD_FOLDER,
    Callback,
    CallOnEval,
    MetricsFileWriter,
    ProgressBar,
    TensorBoardWriter,
)
from slp_transformer.training.checkpoints import (
    make_model_spec,
    resume_last_checkpoint,
    save_checkpoint,
)
from slp_transformer.training.devices import (
    DeviceMonitor,
    autocast,
    cpu_default_device,
    describe_arithmetic,
    float32_matmul_precision,
    format_duration,
)
from slp_transformer.training.evaluation import (
    Loss,
    Measure,
    check_one_sequence,
    has_idle_parameters,
    mean_metrics,
    summed_metrics,
    summed_token_loss,
)
from slp_transformer.training.metrics import collect_numbers
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.rng_state import get_rng_state, preserve_rng_state, restore_rng_state
from slp_transformer.training.run_folder import (
    EvalRecord,
    LoraBase,
    TrainerState,
    delete_old_checkpoints,
)
from slp_transformer.training.run_lock import check_same_folder, folder_identity, run_lock
from slp_transformer.training.step import training_step
from slp_transformer.training.strategy import SINGLE_PROCESS, Strategy, make_strategy
from slp_transformer.training.train_config import EPOCH, NO_EPOCHS, TrainConfig

LOG = logging.getLogger("slp_transformer")


class Trainer:
    """Trains a model, and saves and evaluates it on the way.

    In a script that torchrun started, its processes train the model together: each takes its share
    of every batch, and rank 0 saves and calls the callbacks.

    Attributes:
        model: the model, with the current weights whenever `Callback.on_eval` is called.
        state: how far the run has come.
        strategy: the processes and their device.
        train_seconds: what the steps since the last evaluation took.
        tokens_per_second: their speed.
    """

    def __init__(
        self,
        model: nn.Module,
        train_data: TokenData,
        val_data: TokenData,
        config: TrainConfig,
        *,
        loss: Loss = summed_token_loss,
        measure: Measure | None = None,
        out_dir: str | Path | None = None,
        tokenizer: Any = None,
        lora_base: LoraBase | None = None,
        callbacks: Sequence[Callback] = (),
    ):
        """Prepare a run; `fit` starts or resumes it.

        Args:
            model: trained in place and left in evaluation mode.
            train_data: training data: one row of ids, a file of them, or another source of batches.
            val_data: validation data, in the same form.
            config: settings.
            loss: sums the loss over a batch's targets.
            measure: sums what evaluations measure over a batch's targets, by name, "loss" among it;
                if None, all of `METRICS`, but for a loss of one's own it alone.
            out_dir: the run's folder; None to save nothing.
            tokenizer: the tokenizer as JSON, to be saved with the model.
            lora_base: the checkpoint that a model with LoRA starts from, to save A and B alone.
            callbacks: called on the way, in rank 0 only.

        Raises:
            ValueError: if a stream is too short for one window, or there are no epochs to count.
        """
        window = getattr(getattr(model, "config", None), "context_length", None)
        window = config.sequence_length or window
        self.model: nn.Module = model
        self.config: TrainConfig = config
        self.loss: Loss = loss
        if measure is None:
            measure = summed_metrics if loss is summed_token_loss else self.measure_loss
        self.measure: Measure = measure
        with cpu_default_device():
            self.train_data: DataSource = as_data_source(train_data, window)
            self.val_data: DataSource = as_data_source(val_data, window)
            self.val_subset: DataSource = eval_subset(self.val_data, config.max_eval_samples)
            data = {"train": self.train_data.fingerprint(), "val": self.val_data.fingerprint()}
        self.rows_per_step: int = config.batch_size * config.gradient_accumulation_steps
        steps_per_epoch = getattr(self.train_data, "steps_per_epoch", None)
        self.epoch_steps: int | None = None  # of the first epoch; others differ by a few
        if steps_per_epoch is not None:
            self.epoch_steps = steps_per_epoch(self.rows_per_step, config.seed)
        interval = self.epoch_steps if config.eval_interval == EPOCH else config.eval_interval
        if interval is None:
            raise ValueError(NO_EPOCHS)
        self.eval_interval: int = int(interval)
        self.out_dir: Path | None = None if out_dir is None else Path(out_dir)
        self.tokenizer: Any = tokenizer
        self.lora_base: LoraBase | None = lora_base
        self.callbacks: tuple[Callback, ...] = tuple(callbacks)
        # Of batches alone: which ones are drawn does not depend on how often dropout draws.
        self.generator: torch.Generator = torch.Generator().manual_seed(config.seed)
        self.state: TrainerState = TrainerState(
            0, config, json.loads(json.dumps(data)), [], [], describe_arithmetic()
        )
        self.pending_losses: list[Tensor] = []  # of steps, still on the device
        self.folder_id: tuple[int, int] | None = None  # of the run's folder when it was locked
        self.signals: SignalHandler = SignalHandler(defer=True)
        self.strategy: Strategy = SINGLE_PROCESS
        self.train_seconds: float = 0.0
        self.tokens_per_second: float = 0.0
        self.since: float = 0.0  # when the clock was started, at `since_step`
        self.since_step: int = 0
        self.tokens: int = 0  # since then
        # Made by `fit`, once the device is known: the model as it is trained (wrapped, compiled).
        self.module: nn.Module
        self.optimizer: torch.optim.Optimizer
        self.monitor: DeviceMonitor

    @property
    def learning_rate(self) -> float:
        """Return the learning rate of the last step."""
        return self.config.learning_rate_at(self.state.step - 1)

    # The loop.

    def fit(self, *, resume: bool = False) -> list[EvalRecord]:
        """Train to the end.

        Args:
            resume: continue the run in `out_dir`, if there is one.

        Returns:
            The evaluations, those before an interruption included, the last one after the last
            step.

        Raises:
            ValueError: if the loss becomes NaN, another process trains in the folder, or a
                checkpoint cannot be written, cannot be read, or is of another run.
            ConnectionError: if another process of the run has died.
            KeyboardInterrupt: on Ctrl-C.
            StoppedBySignal: in its place, on SIGTERM and SIGHUP too, if there is a folder: the run
                is saved before, and the message says how to resume.
            ImportError: if a library for a folder or a callback is missing.
        """
        home = next(self.model.parameters()).device
        with contextlib.ExitStack() as stack:
            self.strategy = stack.enter_context(make_strategy(self.config, self.out_dir))
            device = self.strategy.device
            self.state.environment["devices"] = str(self.strategy)
            stack.enter_context(float32_matmul_precision(self.config, device))
            stack.enter_context(preserve_rng_state(self.config.seed, device))
            if self.out_dir is not None:
                self.strategy.run_on_rank_zero(stack.enter_context, run_lock(self.out_dir))
                self.folder_id = folder_identity(self.out_dir)
                # Deferred to the end of a step, to save it. Without a folder Ctrl-C ends at once.
                stack.enter_context(self.signals)
            # Processes of different models or data would wait for each other for ever, or go wrong.
            spec, settings = make_model_spec(self.model), self.config.to_dict()
            self.strategy.check_equal_in_all_processes(
                model=spec, config=settings, data=self.state.data
            )
            self.restore(resume)
            self.monitor = DeviceMonitor(self.model, self.config, device, self.strategy.world_size)
            try:
                # Behind `restore`: callbacks go on from the evaluations that there were.
                self.strategy.run_on_rank_zero(self.notify, "on_fit_start")
                self.log_start()
                if self.state.step == 0:
                    self.save()  # a folder that cannot be written to is known now, not in an hour
                self.run_steps()
                self.delete_old_checkpoints()
            except StoppedBySignal:
                self.save()
                self.delete_old_checkpoints()
                raise StoppedBySignal(
                    f"Stopped after step {self.state.step} of {self.config.steps}, which is saved "
                    f"in {self.out_dir}: to resume, train again with resume=True.",
                    self.signals.signal_number,
                ) from None
            finally:
                self.notify("on_fit_end")  # not through the strategy: the others may be gone
                self.model.to(home).eval()
        return self.state.eval_history

    def run_steps(self) -> None:
        """Train and evaluate until the run is finished."""
        self.module.train()
        if hasattr(self.train_data, "seek"):  # its place follows from the step, not the generator
            self.train_data.seek(self.state.step)
        self.start_clock()
        while True:
            # Before a step, not after it: a run that was stopped between the two makes up for it.
            if self.state.is_eval_due(self.eval_interval):
                self.evaluate_and_save()
            if self.state.is_finished():
                return
            self.strategy.seed_dropout(self.config.seed, self.state.step)
            # Every process draws the whole batch and takes its share of it: their generators stay
            # alike without a word, and the batch is that of a single process.
            with cpu_default_device():
                batch = self.train_data.draw(self.rows_per_step, self.generator)
            loss = training_step(
                self.module,
                batch,
                self.optimizer,
                self.state.step,
                self.config,
                self.strategy.device,
                self.strategy,
                self.loss,
            )
            if loss.device.type == "cpu":  # the number: a tensor would lie among logits in the heap
                self.state.losses.append(loss.item())
            else:
                self.pending_losses.append(loss)
            self.state.step += 1
            self.tokens += batch.num_targets
            # Not by `run_on_rank_zero`: processes would wait for each other in each step.
            self.notify("on_step", loss, batch.num_targets)
            self.raise_if_interrupted()

    def measure_loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of a batch alone, summed over its targets."""
        return {"loss": self.loss(model, batch)}

    def evaluate(self, data: DataSource) -> dict[str, float]:
        """Return the means of all metrics over validation data, the loss among them.

        Raises:
            ValueError: if the loss is NaN or infinite.
            StoppedBySignal: if any process was asked to stop.
        """
        with autocast(self.config, self.strategy.device):
            means = mean_metrics(
                self.module,
                data,
                batch_size=self.config.batch_size,
                strategy=self.strategy,
                on_batch=lambda _: self.raise_if_interrupted(),
                measure=self.measure,
            )
        self.check_finite("The validation loss", math.isfinite(means["loss"]))
        return means

    def evaluate_and_save(self) -> None:
        """Evaluate, save a checkpoint, and then call the callbacks."""
        self.sync_losses()  # waits for the device, so that the clock is right
        self.train_seconds = time.perf_counter() - self.since
        self.tokens_per_second = self.tokens / self.train_seconds if self.train_seconds else 0.0
        train_loss = sum(self.state.losses) / len(self.state.losses)
        means = self.evaluate(self.val_subset)
        record = EvalRecord(self.state.step, train_loss, means.pop("loss"), val_metrics=means)
        history = [*self.state.eval_history, record]
        # In place of the old state only when all is measured: what is stopped meanwhile is saved
        # as before this evaluation, and a resumed run begins with it.
        state = replace(self.state, eval_history=history, losses=[])
        if state.is_finished() and self.val_subset is not self.val_data:
            # All of the data may take long. Should the process be killed meanwhile, no step is
            # lost: it resumes here, where the evaluation is still to come.
            self.save()
            means = self.evaluate(self.val_data)
            loss = means.pop("loss")
            history[-1] = record = replace(record, full_val_loss=loss, full_val_metrics=means)
        self.state = state
        self.save()
        self.log_eval(record)
        # Behind the checkpoint, which an exception of a callback cannot take away.
        self.strategy.run_on_rank_zero(self.notify, "on_eval", record)
        self.start_clock()  # anew: neither evaluations nor callbacks count as training

    def start_clock(self) -> None:
        """Measure time and tokens of the steps from now on."""
        self.since, self.since_step, self.tokens = time.perf_counter(), self.state.step, 0

    def sync_losses(self) -> None:
        """Turn the steps' losses into numbers, for which an accelerator has to wait.

        Raises:
            ValueError: if one is NaN or infinite.
        """
        if self.pending_losses:
            self.state.losses += torch.stack(self.pending_losses).tolist()
            self.pending_losses = []
        self.check_finite("The loss", all(map(math.isfinite, self.state.losses)))

    def raise_if_interrupted(self) -> None:
        """Stop if any process was asked to.

        Raises:
            StoppedBySignal: if so.
        """
        if self.strategy.should_stop(self.signals.triggered):
            raise StoppedBySignal

    def check_finite(self, name: str, finite: bool) -> None:
        """Refuse to go on, or to save, when training has diverged.

        Raises:
            ValueError: naming the number that is not finite.
        """
        if not finite:
            raise ValueError(
                f"{name} is NaN or infinite, at step {self.state.step} at the latest: resume, or "
                "train anew, with a lower learning_rate or more warmup_steps. Earlier checkpoints "
                "were kept."
            )

    # Checkpoints.

    def save(self) -> None:
        """Gather the weights into the model, and save a checkpoint if there is a folder.

        Raises:
            ValueError: if a weight or a loss is NaN or infinite, or the checkpoint cannot be
                written. Earlier checkpoints are kept.
        """
        self.strategy.copy_weights_into(self.model)
        if self.out_dir is None:
            return
        # Before it is written: a checkpoint of NaN could push out the last sound one.
        finite = torch.stack([torch.isfinite(W).all() for W in self.model.parameters()]).all()
        self.check_finite("A weight", self.strategy.broadcast_object(bool(finite)))
        self.sync_losses()
        random = get_rng_state(self.generator, self.strategy.device)
        self.strategy.run_on_rank_zero(check_same_folder, self.out_dir, self.folder_id)
        self.strategy.run_on_rank_zero(
            save_checkpoint,
            self.out_dir,
            self.state.step,
            self.model,
            training=asdict(self.state),
            # Gathered by all processes, as arguments of what rank 0 alone then does: write.
            state=self.strategy.optimizer_state(self.optimizer) | random,
            tokenizer=self.tokenizer,
            lora_base=self.lora_base,
            keep_last=self.config.keep_last + 1,  # who reads the last one has time for it
        )

    def delete_old_checkpoints(self) -> None:
        """Delete the checkpoints that are not to be kept, once no other comes."""
        if self.out_dir is not None:
            keep_last = self.config.keep_last
            self.strategy.run_on_rank_zero(delete_old_checkpoints, self.out_dir, keep_last)

    def restore(self, resume: bool) -> None:
        """Build the optimizer, and load the last checkpoint if there is one.

        Raises:
            ValueError: if the folder's run cannot be resumed, or a new one has settings that its
                model cannot compute with. The model and the folder are unchanged then.
        """
        state, config = self.state, self.config
        saved: dict[str, Tensor] = {}
        if self.out_dir is not None:
            there = self.strategy.run_on_rank_zero(
                resume_last_checkpoint, self.out_dir, self.model, state, resume=resume
            )
            saved = there or {}  # None but in rank 0, which alone looks into the folder
        random = {name: saved.pop(name) for name in list(saved) if name.startswith("random.")}
        progress = state.step, state.eval_history, state.losses, random
        progress = self.strategy.broadcast_object(progress)
        state.step, state.eval_history, state.losses, random = progress
        # Wrapped once the weights are loaded, which rank 0 hands to the others; the optimizer comes
        # after that, for FSDP has replaced the parameters by its shards.
        module = self.strategy.wrap(
            self.model, lambda model: has_idle_parameters(model, self.val_data, self.loss)
        )
        self.optimizer = make_optimizer(module, config)
        if random:
            self.strategy.load_optimizer(self.optimizer, saved)
            restore_rng_state(random, self.generator, self.strategy.device, self.out_dir)
        if not state.step:  # refused now, it leaves no checkpoint that no settings can resume
            check_one_sequence(module, self.val_data, self.measure, config, self.strategy)
        compiled = torch.compile(module) if config.compile else module
        assert isinstance(compiled, nn.Module)
        self.module = compiled

    # Callbacks and log.

    def notify(self, event: str, *args: Any) -> None:
        """Call a method of all callbacks, in rank 0 only."""
        for callback in self.callbacks if self.strategy.rank == 0 else ():
            getattr(callback, event)(self, *args)

    def log(self, text: str) -> None:
        """Log a line, in rank 0 only."""
        if self.strategy.rank == 0:
            LOG.info(text)
            self.notify("on_log", text)

    def log_start(self) -> None:
        """Log what is about to happen."""
        self.log(
            f"Training on {self.strategy}, from step {self.state.step} of {self.config.steps}."
        )
        if self.epoch_steps is not None:
            self.log(f"Steps in an epoch: about {self.epoch_steps:,}.")
        if self.val_subset is not self.val_data and isinstance(self.val_data, Sized):
            self.log(
                f"Evaluating on {self.config.max_eval_samples:,} of {len(self.val_data):,} "
                "validation sequences; on all of them at the end."
            )
        if self.config.compile:
            self.log("Compiling: the first steps may take minutes.")

    def log_eval(self, record: EvalRecord) -> None:
        """Log an evaluation, and the speed of the steps since the one before."""
        parts = [f"step {record.step}/{self.config.steps}"]
        parts += [number.text for number in collect_numbers(self, record).values()]
        if steps := record.step - self.since_step:  # none if it was resumed here
            left = (self.config.steps - record.step) * self.train_seconds / steps
            parts.append(f"eta {format_duration(left)}")
        self.log(" | ".join(parts))


def train(
    model: nn.Module,
    train_data: TokenData,
    val_data: TokenData,
    config: TrainConfig | None = None,
    *,
    out_dir: str | Path | None = None,
    resume: bool = False,
    tokenizer: Any = None,
    progress: bool | None = None,
    tensorboard: bool = False,
    report: Callable[[EvalRecord], Any] | None = None,
    lora_base: LoraBase | None = None,
    **changes: Any,
) -> list[EvalRecord]:
    """Train a model: `Trainer.fit` with the usual callbacks.

    Args:
        model: a language model for a token stream, an encoder-decoder for `PaddedPairSource`;
            trained in place and left in evaluation mode.
        train_data: training data: one row of ids, a file of them, or another source of batches.
        val_data: validation data, in the same form.
        config: settings, if they are not in `changes`.
        out_dir: the run's folder, to resume it or to load its model; None to save nothing.
        resume: continue the run in the folder, if there is one.
        tokenizer: the tokenizer as JSON, to be saved with the model.
        progress: show a bar with loss, speed and time left; if None, when the run is saved.
        tensorboard: write curves for TensorBoard to the folder; a resumed run goes on with those
            that it has, if TensorBoard is installed.
        report: called with each evaluation's record.
        lora_base: the checkpoint that a model with LoRA starts from, to save A and B alone.
        changes: settings by name, as in `train(model, train_data, val_data, steps=100)`.

    Returns:
        The evaluations, those before an interruption included, the last one after the last step.

    Raises:
        ValueError: as `Trainer.fit`; or if TensorBoard's curves have no folder.
        ConnectionError, KeyboardInterrupt, StoppedBySignal, ImportError: as `Trainer.fit`.
    """
    if tensorboard and out_dir is None:
        raise ValueError("TensorBoard's curves are saved with the run: give out_dir.")
    saved = out_dir is not None
    if resume and out_dir is not None and find_spec("tensorboard"):
        tensorboard |= (Path(out_dir) / TENSORBOARD_FOLDER).is_dir()
    callbacks: list[Callback] = [ProgressBar()] if (saved if progress is None else progress) else []
    callbacks += [MetricsFileWriter()] if saved else []
    callbacks += [TensorBoardWriter()] if tensorboard else []
    callbacks += [CallOnEval(report)] if report else []
    trainer = Trainer(
        model,
        train_data,
        val_data,
        replace(config, **changes) if config and changes else config or TrainConfig(**changes),
        out_dir=out_dir,
        tokenizer=tokenizer,
        lora_base=lora_base,
        callbacks=callbacks,
    )
    return trainer.fit(resume=resume)
