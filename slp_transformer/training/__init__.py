"""Training any of the models: one loop, its data, its measures, and runs that outlive the process.

`train` trains. With a folder, the run is kept there, to go on with it or to load its model.
"""

from typing import TYPE_CHECKING

from slp_transformer.offers import offered

if TYPE_CHECKING:
    from slp_transformer.training.checkpoints import load_model
    from slp_transformer.training.loop import train, training_step
    from slp_transformer.training.measuring import mean_loss
    from slp_transformer.training.settings import TrainingSettings

__all__ = ["TrainingSettings", "load_model", "mean_loss", "train", "training_step"]

__getattr__, __dir__ = offered(__name__)
