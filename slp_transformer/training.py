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

from slp_transformer.batches import Batch, BatchSource, as_source
from slp_transformer.bfloat16 import bfloat16_products, has_bfloat16
from slp_transformer.checkpoint import describe, save_checkpoint
from slp_transformer.distributed import form_team
from slp_transformer.loss import mean_loss, next_token_loss
from slp_transformer.progress import Progress, StopKey
from slp_transformer.run_state import Record, RunState, random_state, set_random_state
from slp_transformer.shapes import Float, Int, Tensor
from slp_transformer.team import ALONE, Team
from slp_transformer.token_store import TokenStore
from slp_transformer.training_settings import TrainingSettings, make_optimiser

SLOW_BF16 = (
    "This CPU has no bfloat16 instructions: bf16 gives what it gives elsewhere, but takes longer "
    "than float32, so leave bf16 out."
)

# --- One step ----------------------------------------------------------------------------------


def training_step(
    model: nn.Module,
    batch: Batch,
    optimiser: torch.optim.Optimizer,
    step: int,
    settings: TrainingSettings,
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
    for part in team.parts(batch, settings.batch_size):
        part = part.to(device)
        with autocast(settings, device):
            U = model(*part.inputs)
        smoothing = settings.label_smoothing
        summed = next_token_loss(U, part.targets, label_smoothing=smoothing, reduction="sum")
        loss = summed / count
        team.backward(loss)
        total += loss.detach()
    if settings.clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
    for group in optimiser.param_groups:
        group["lr"] = settings.rate(step)
    optimiser.step()
    return team.sum(total)


def autocast(settings: TrainingSettings, device: torch.device) -> contextlib.AbstractContextManager:
    """Matrix products in bfloat16, if the settings say so."""
    return bfloat16_products(device) if settings.bf16 else contextlib.nullcontext()


# --- The run -----------------------------------------------------------------------------------


def train(
    model: nn.Module,
    learned: Int[Tensor, "tokens"] | TokenStore | BatchSource,
    held_out: Int[Tensor, "held_out"] | TokenStore | BatchSource,
    settings: TrainingSettings | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    tokenizer: Any = None,
    progress: bool | None = None,
    tensorboard: bool = False,
    report: Callable[[Record], None] | None = None,
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
        changes: settings by name, as in `train(model, stream, held_out, steps=100)`.

    Returns:
        The records, those before an interruption included, the last one after the last step.

    Raises:
        ValueError: if a setting is wrong, a stream is too short for one window, the loss is no
            longer a number, or a checkpoint cannot be written, cannot be read, or is of another
            run.
        ConnectionError: if another process of the run has died.
        KeyboardInterrupt: on Ctrl-C; with a folder the run is saved before, and the message says
            how to go on.
        ImportError: if a folder, a bar or TensorBoard is asked for and its library is missing.
    """
    settings = TrainingSettings(**(settings.to_dict() if settings else {}) | changes)
    N = settings.context_length or getattr(getattr(model, "config", None), "context_length", None)
    learned, held_out = as_source(learned, N), as_source(held_out, N)
    if tensorboard and folder is None:
        raise ValueError("TensorBoard's curves are kept with the run: give a folder.")
    home, keep = next(model.parameters()).device, None if folder is None else Path(folder)
    generator = torch.Generator().manual_seed(settings.seed)
    torch.manual_seed(settings.seed)
    run = RunState(settings, {"learned": learned.describe(), "held_out": held_out.describe()})
    listening = contextlib.nullcontext() if keep is None else StopKey()
    with form_team(settings, keep) as team, listening as key:
        team.check_same(model=describe(model), settings=settings.to_dict(), data=run.data)
        trained, optimiser = take_up(model, run, generator, team, keep, resume)
        shown = Progress(
            run.step,
            settings.steps,
            bar=keep is not None if progress is None else progress,
            tensorboard=keep / "tensorboard" if tensorboard else None,
            silent=team.rank > 0,
        )

        def save() -> None:
            team.collect(model)
            if keep is not None:
                state = {
                    "optimiser": team.whole(optimiser.state_dict()),
                    "random": random_state(generator, team.device),
                }
                memory = {"training": run.to_dict(), "state": state, "tokenizer": tokenizer}
                team.alone(save_checkpoint, keep, run.step, model, **memory, best=run.is_best())

        def measure() -> None:
            with autocast(settings, team.device):
                valid_loss = mean_loss(trained, held_out, None, settings.batch_size, team)
            record = run.measure(valid_loss)
            shown.measured(**asdict(record), rate=settings.rate(run.step - 1))
            save()
            if report is not None:
                team.alone(report, record)

        try:
            shown.say(f"Training on {team}, from step {run.step} of {settings.steps}.")
            if settings.bf16 and team.device.type == "cpu" and not has_bfloat16():
                shown.say(SLOW_BF16)
            if run.step == 0:
                save()  # a folder that cannot be written to is better known now than in an hour
            trained.train()
            while not run.finished():
                team.stir(settings.seed, run.step)
                batch = learned.draw(settings.batch_size * settings.accumulation, generator)
                loss = training_step(
                    trained, batch, optimiser, run.step, settings, team.device, team
                )
                run.losses.append(loss)
                run.step += 1
                shown.step(loss, batch.count)
                if run.step % settings.every == 0 or run.step == settings.steps:
                    measure()
                if team.stops(key is not None and key.pressed):
                    save()
                    raise KeyboardInterrupt(
                        f"Stopped after step {run.step} of {settings.steps}, which is saved in "
                        f"{keep}: to go on, train again with resume=True."
                    )
        finally:
            shown.close()
            model.to(home).eval()
    return run.records


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
    optimiser = make_optimiser(trained, settings.learning_rate, settings.weight_decay)
    if random is not None:
        team.load(optimiser, saved["optimiser"] if saved else None)
        set_random_state(random, generator, team.device)
    return torch.compile(trained) if settings.compile else trained, optimiser
