"""Training any of the models: one loop, its data, its measures, and runs that outlive the process.

`train` trains. With a folder, the run is kept there, to go on with it or to load its model.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.training.checkpoints import load_model
    from slp_transformer.training.evaluation import mean_loss
    from slp_transformer.training.train_config import TrainConfig
    from slp_transformer.training.trainer import train, training_step

__all__ = ["TrainConfig", "load_model", "mean_loss", "train", "training_step"]

__getattr__, __dir__ = attach(__name__)
