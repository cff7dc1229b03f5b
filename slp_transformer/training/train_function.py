"""Training in one call: `Trainer` with the usual callbacks.

    eval_history = train(model, train_data, val_data, steps=1000, sequence_length=64)

trains and returns the evaluations. With `out_dir="runs/mine"` the run is saved as it goes, and the
same call with `resume=True` continues it from where it stopped, with the same bits as if it had
never stopped.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import nn

from slp_transformer.data.batches import TokenData
from slp_transformer.training.callbacks import (
    TENSORBOARD_FOLDER,
    CallOnEval,
    MetricsFileWriter,
    ProgressBar,
    TensorBoardWriter,
)
from slp_transformer.training.run_folder import EvalRecord, LoraBase
from slp_transformer.training.train_config import TrainConfig
from slp_transformer.training.trainer import Callback, Trainer


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
        ConnectionError, KeyboardInterrupt, Stopped, ImportError: as `Trainer.fit`.
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
        TrainConfig(**(config.to_dict() if config else {}) | changes),
        out_dir=out_dir,
        tokenizer=tokenizer,
        lora_base=lora_base,
        callbacks=callbacks,
    )
    return trainer.fit(resume=resume)
