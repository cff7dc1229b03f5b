"""Training any of the models: the trainer, its settings and callbacks, and checkpoints.

`train` trains; `Trainer` does so with a loss or callbacks of one's own.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.training.callbacks import Callback
    from slp_transformer.training.checkpoints import load_model
    from slp_transformer.training.evaluation import mean_loss
    from slp_transformer.training.lora_base import make_lora_base
    from slp_transformer.training.step import training_step
    from slp_transformer.training.train_config import TrainConfig
    from slp_transformer.training.trainer import Trainer, train

__all__ = [
    "Callback",
    "TrainConfig",
    "Trainer",
    "load_model",
    "make_lora_base",
    "mean_loss",
    "train",
    "training_step",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
