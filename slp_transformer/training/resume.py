"""What a run needs to go on from its last checkpoint, and the refusal of another run's."""

from pathlib import Path

from torch import nn

from slp_transformer._internal.json_files import load_validated
from slp_transformer._internal.shape_types import Tensor
from slp_transformer.training.checkpoints import (
    load_training_state,
    load_weights,
    make_model_spec,
)
from slp_transformer.training.optimizers import split_parameters
from slp_transformer.training.run_folder import (
    ModelSpec,
    TrainerState,
    check_settings_unchanged,
    checkpoint_folder,
    delete_old_checkpoints,
    find_checkpoints,
    load_trainer_state,
    verify_checkpoint_checksums,
)


def load_last_checkpoint(
    out_dir: Path, model: nn.Module, state: TrainerState, *, resume: bool
) -> dict[str, Tensor]:
    """Load the last checkpoint of a run into its model and state, if there is one.

    Args:
        out_dir: the run's folder.
        model: the run's model.
        state: the state of a run that begins, with its settings and its data's fingerprints.
        resume: whether a checkpoint is to be resumed; else it is in the way.

    Returns:
        The tensors of optimizer and random numbers; empty if there is no checkpoint.

    Raises:
        ValueError: if there is a checkpoint but no wish to resume, or if it is damaged or of
            another run. Model, state and folder are unchanged then.
    """
    if not find_checkpoints(out_dir):
        return {}
    folder = checkpoint_folder(out_dir)
    if not resume:
        raise ValueError(
            f"{out_dir} holds a run already ({folder.name}): pass resume=True to "
            "resume it, or choose another folder."
        )
    verify_checkpoint_checksums(folder)
    spec = load_validated(ModelSpec, folder / "config.json")
    mine, saved = make_model_spec(model), load_trainer_state(folder)
    if saved is None:
        raise ValueError(f"{folder} has no training run that can be resumed.")
    evaluated = saved.eval_history[-1].step if saved.eval_history else 0
    if len(saved.losses) != saved.step - evaluated:
        raise ValueError(
            f"{folder / 'training.json'} is damaged: step {saved.step} with "
            f"{len(saved.losses)} losses since the evaluation at step {evaluated}."
        )
    try:
        if spec.model != mine["model"]:
            raise ValueError(f"its model is a {spec.model}, not a {mine['model']}")
        before = spec.config
        if isinstance(before, dict):  # an older version may lack settings that there are now
            before = mine.get("defaults", {}) | before
        check_settings_unchanged("model.config", before, mine["config"])
        check_settings_unchanged("config", saved.config.to_dict(), state.config.to_dict())
        check_settings_unchanged("data", saved.data, state.data)
    except ValueError as error:
        raise ValueError(
            f"The run in {out_dir} is another one: {error}. Resume it as it was, or choose "
            "another folder."
        ) from None
    saved.check_steps(state.config.steps, out_dir)
    groups = split_parameters(model, state.config)
    tensors = load_training_state(folder, groups.in_checkpoint_order(), groups.state_names())
    load_weights(model, folder)
    delete_old_checkpoints(out_dir, state.config.keep_last)
    state.step, state.losses, state.eval_history = saved.step, saved.losses, saved.eval_history
    return tensors
