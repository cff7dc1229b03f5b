"""Training: teacher forcing, one loss, one optimiser, one loop, for every model and source of data.

    records = train(model, stream, held_out, steps=1000, context_length=64)

trains and returns what was measured on the way. With `folder="runs/mine"` the run is kept as it
goes, and the same call with `resume=True` goes on from where it stopped, to the last bit as if it
had never stopped.
"""

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.progress_bar import Progress
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer._internal.signals import Stopped, StopSignals
from slp_transformer.data.batches import Batch, BatchSource, as_source, part_of
from slp_transformer.data.token_file import TokenStore
from slp_transformer.loss import next_token_loss
from slp_transformer.training.checkpoint_files import Base
from slp_transformer.training.checkpoints import describe, save_checkpoint
from slp_transformer.training.device_monitor import Gauge, float32_products
from slp_transformer.training.evaluation import mean_loss
from slp_transformer.training.fsdp import form_team
from slp_transformer.training.metrics import Metrics
from slp_transformer.training.optimizer import make_optimiser
from slp_transformer.training.precision import SLOW_BF16, autocast, has_bfloat16
from slp_transformer.training.run_lock import sole_owner
from slp_transformer.training.strategy import ALONE, Team
from slp_transformer.training.train_config import EPOCH, NO_EPOCHS, TrainConfig
from slp_transformer.training.trainer_state import (
    Record,
    RunState,
    own_randomness,
    random_state,
    set_random_state,
)

CURVES = "tensorboard"  # the folder of its curves, in that of the run

# --- One step ----------------------------------------------------------------------------------


def training_step(
    model: nn.Module,
    batch: Batch,
    optimiser: torch.optim.Optimizer,
    step: int,
    settings: TrainConfig,
    device: torch.device,
    team: Team = ALONE,
) -> Float[Tensor, ""]:
    """Change the weights once.

    Each part of the batch adds its share to the gradient, so that the parts together give the
    gradient of the mean over all targets, however padding is spread among them. Several processes
    each compute some of the parts.

    Returns:
        The mean loss of the batch, before the change.
    """
    count, total = batch.count, torch.zeros((), device=device)
    optimiser.zero_grad()
    for part in team.parts(batch, part_size(batch, settings)):
        part = part.to(device)
        with autocast(settings, device):
            U = model(*part.inputs)
        smoothing = settings.label_smoothing
        summed = next_token_loss(U, part.targets, label_smoothing=smoothing, reduction="sum")
        loss = summed / count
        team.backward(loss)
        total += loss.detach()
    if settings.max_grad_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
    make_step(optimiser, settings.learning_rate_at(step))
    return team.sum(total)


def part_size(batch: Batch, settings: TrainConfig) -> int:
    """How many sequences of a batch go through the model at once."""
    if settings.batch_tokens is None:
        return settings.batch_size
    return -(-len(batch.targets) // settings.gradient_accumulation_steps)


def make_step(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    """Go against the gradients, with this step's learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate
    optimiser.step()


# --- The run -----------------------------------------------------------------------------------


def train(
    model: nn.Module,
    learned: Int[Tensor, "tokens"] | TokenStore | BatchSource,
    held_out: Int[Tensor, "held_out"] | TokenStore | BatchSource,
    settings: TrainConfig | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    tokenizer: Any = None,
    progress: bool | None = None,
    tensorboard: bool = False,
    report: Callable[[Record], None] | None = None,
    base: Base | None = None,
    **changes: Any,
) -> list[Record]:
    """Train a model.

    In a script that torchrun started, its processes train the model together: each takes its share
    of every batch, and the first one shows, keeps and reports.

    Args:
        model: a language model for a token stream, an encoder-decoder for `PaddedPairs`; trained
            in place and left in evaluation mode.
        learned: the corpus as one row of ids, as a file of them, or as another source of batches.
        held_out: what the model does not learn from, in the same form.
        settings: how to train, if not given by `changes`.
        folder: where the run is kept, to be resumed or to load its model from; None to keep none.
        resume: go on with the run that the folder holds, if it holds one.
        tokenizer: what the ids mean, as JSON, to be kept with the model.
        progress: show a bar with loss, tokens per second and time left; if None, when the run is
            kept.
        tensorboard: write curves for TensorBoard to the folder.
        report: called with each record as it is made.
        base: where the frozen weights of a model that `add_lora` has changed are kept: the folder
            is then given A and B alone.
        changes: settings by name, as in `train(model, stream, held_out, steps=100)`.

    Returns:
        The records, those before an interruption included, the last one after the last step.

    Raises:
        ValueError: if a setting is wrong, a stream is too short for one window, the loss is no
            longer a number, another process trains in the folder, or a checkpoint cannot be
            written, cannot be read, or is of another run.
        ConnectionError: if another process of the run has died.
        KeyboardInterrupt: on Ctrl-C.
        Stopped: in its place, on SIGTERM and SIGHUP too, if there is a folder: the run is saved
            before, and the message says how to go on.
        ImportError: if a folder, a bar or TensorBoard is asked for and its library is missing.
    """
    settings = TrainConfig(**(settings.to_dict() if settings else {}) | changes)
    N = settings.sequence_length or getattr(getattr(model, "config", None), "context_length", None)
    learned, held_out = as_source(learned, N), as_source(held_out, N)
    if tensorboard and folder is None:
        raise ValueError("TensorBoard's curves are kept with the run: give a folder.")
    home, keep = next(model.parameters()).device, None if folder is None else Path(folder)
    generator = torch.Generator().manual_seed(settings.seed)
    data = {"learned": learned.describe(), "held_out": held_out.describe()}
    run = RunState(settings, data, steps_between(settings, learned))
    part, signals = part_of(held_out, settings.max_eval_samples), StopSignals(wait=True)
    with contextlib.ExitStack() as stack:
        team = stack.enter_context(form_team(settings, keep))
        stack.enter_context(float32_products(settings, team.device))
        stack.enter_context(own_randomness(settings.seed, team.device))
        if keep is not None:
            team.alone(stack.enter_context, sole_owner(keep))
            stack.enter_context(signals)
        team.check_same(model=describe(model), settings=settings.to_dict(), data=run.data)
        trained, optimiser = take_up(model, run, generator, team, keep, resume)
        gauge = Gauge(model, settings, team.device, team.size)
        metrics = Metrics(None if team.rank else keep, run.step, team, gauge)
        shown = Progress(
            run.step,
            settings.steps,
            bar=keep is not None if progress is None else progress,
            tensorboard=keep / CURVES if tensorboard else None,
            silent=team.rank > 0,
            gauge=gauge,
            compiles=settings.compile,
        )

        def save() -> None:
            team.collect(model)
            if keep is not None:
                team.alone(run.check_weights, model)
                state = {
                    "optimiser": team.whole(optimiser.state_dict()),
                    "random": random_state(generator, team.device),
                }
                memory = {"training": run.to_dict(), "state": state, "tokenizer": tokenizer}
                memory["base"] = base
                memory |= {"best": run.is_best(), "keep": settings.keep_last}
                team.alone(save_checkpoint, keep, run.step, model, **memory)

        def heed() -> None:
            if team.stops(signals.pressed):
                raise Stopped

        def loss_on(source: BatchSource) -> float:
            with autocast(settings, team.device), shown.measuring(source) as tell:

                def after_batch(count: int) -> None:
                    tell(count)
                    heed()

                return mean_loss(trained, source, None, settings.batch_size, team, after_batch)

        def measure() -> None:
            run.settle()  # waits for the device, so that its speed can be told
            metrics.stop()
            run.measure(loss_on(part))
            if run.finished() and part is not held_out:
                run.measure_whole(loss_on(held_out))
            record, rate = asdict(run.records[-1]), settings.learning_rate_at(run.step - 1)
            shown.measured(**record, rate=rate)
            metrics.add(**record, learning_rate=rate)
            save()
            metrics.start()
            if report is not None:
                team.alone(report, run.records[-1])

        try:
            shown.say(f"Training on {team}, from step {run.step} of {settings.steps}.")
            if part is not held_out:
                shown.say(
                    f"Measured on {len(part):,} of {len(held_out):,} held-out sequences, and on "
                    "all of them at the end."
                )
            if settings.bf16 and team.device.type == "cpu" and not has_bfloat16():
                shown.say(SLOW_BF16)
            if run.step == 0:
                save()  # a folder that cannot be written to is better known now than in an hour
            trained.train()
            if hasattr(learned, "go_to"):
                learned.go_to(run.step)
            while True:
                if run.is_due():
                    measure()
                if run.finished():
                    break
                team.stir(settings.seed, run.step)
                batch = learned.draw(
                    settings.batch_size * settings.gradient_accumulation_steps, generator
                )
                loss = training_step(
                    trained, batch, optimiser, run.step, settings, team.device, team
                )
                run.losses.append(loss)
                run.step += 1
                shown.step(loss, batch.count)
                metrics.tokens += batch.count
                heed()
        except Stopped:
            save()
            raise Stopped(
                f"Stopped after step {run.step} of {settings.steps}, which is saved in {keep}: to "
                "go on, train again with resume=True.",
                signals.number,
            ) from None
        finally:
            shown.close()
            model.to(home).eval()
    return run.records


def steps_between(settings: TrainConfig, learned: BatchSource) -> int:
    """After how many steps to measure.

    Raises:
        ValueError: if it is an epoch, and there are none.
    """
    if settings.eval_interval != EPOCH:
        return settings.eval_interval
    if not hasattr(learned, "steps_an_epoch"):
        raise ValueError(NO_EPOCHS)
    return learned.steps_an_epoch(
        settings.batch_size * settings.gradient_accumulation_steps, settings.seed
    )


def go_on_with(
    random: dict[str, Tensor], generator: torch.Generator, device: torch.device, run: Path
) -> None:
    """Go on with the random numbers that were kept.

    Raises:
        ValueError: if PyTorch can make nothing of them.
    """
    try:
        set_random_state(random, generator, device)
    except (RuntimeError, TypeError, ValueError):
        raise ValueError(
            f"The state of random numbers that {run} keeps is damaged: nothing can go on from it."
        ) from None


def take_up(
    model: nn.Module,
    run: RunState,
    generator: torch.Generator,
    team: Team,
    keep: Path | None,
    resume: bool,
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Make ready for the first step, or for the one after the last checkpoint.

    Returns:
        The model as it is to be trained, and its optimiser.

    Raises:
        ValueError: if the folder holds what cannot be gone on with.
    """
    settings = run.settings
    saved = {} if keep is None else team.alone(run.restore, model, keep, resume)
    told = (run.step, run.records, run.losses, saved.get("random") if saved else None)
    run.step, run.records, run.losses, random = team.tell(told)
    trained = team.wrap(model)
    how = (settings.learning_rate, settings.weight_decay, settings.adam_beta2)
    optimiser = make_optimiser(trained, *how)
    if random is not None:
        # What the settings say of a step is said by them, not by what was kept.
        fresh = {"param_groups": optimiser.state_dict()["param_groups"]}
        team.load(optimiser, saved["optimiser"] | fresh if saved else None)
        for group in optimiser.param_groups if run.step else ():
            group["lr"] = settings.learning_rate_at(run.step - 1)  # as the step before has left it
        go_on_with(random, generator, team.device, keep)
    return torch.compile(trained) if settings.compile else trained, optimiser
