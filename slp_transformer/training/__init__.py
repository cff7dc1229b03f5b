"""Training any of the models: the trainer, its settings and callbacks, and checkpoints.

`train` trains; `Trainer` does so with a loss or callbacks of one's own.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.training.callbacks import Callback as Callback
    from slp_transformer.training.checkpoints import load_model as load_model
    from slp_transformer.training.evaluation import mean_loss as mean_loss
    from slp_transformer.training.lora_base import make_lora_base as make_lora_base
    from slp_transformer.training.step import training_step as training_step
    from slp_transformer.training.train_config import TrainConfig as TrainConfig
    from slp_transformer.training.trainer import Trainer as Trainer
    from slp_transformer.training.trainer import train as train

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
