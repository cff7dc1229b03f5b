"""The logit lens: what the model would say if the stream ended at this layer."""

import torch

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.interpret.activations import patch_activations
from slp_transformer.language_model import TransformerLM, lm_head


@torch.no_grad()
def residual_stream(
    model: TransformerLM, ids: Int[Tensor, "*batch N"]
) -> dict[str, Float[Tensor, "*batch N d"]]:
    """The stream before the first block and after each sublayer, lowest first.

    Of a pre-norm model, in which the stream is what sublayers add to: "0.X", then "0.T3" after the
    attention of block 0 and "0.H" after its feedforward layer, and so on.

    Raises:
        ValueError: if the model is post-norm: its stream is normalized anew after each sublayer.
    """
    if model.stack.final_norm is None:
        raise ValueError(
            "A post-norm model has no stream that sublayers add to: the lens needs a pre-norm one."
        )
    names = ["0.X"]
    for l in range(len(model.stack.blocks)):
        names += [f"{l}.T3", f"{l}.H"]
    with patch_activations(model, names) as seen:
        model(ids)
    return {name: seen[name] for name in names}


def logit_lens(
    model: TransformerLM, H: Float[Tensor, "*batch N d"], *, final_norm: bool = True
) -> Float[Tensor, "*batch N V"]:
    r"""Read the stream as if it were the last layer's: $\mathbf u=\mathbf h^\ell\mathbf E^\top$.

    Source: `logit-lens`. The book does not mention the final layer
    norm; most who use the lens apply it, since that is how the last layer's stream is read.

    Args:
        model: whose head reads.
        H: the stream at some place, as from `residual_stream`.
        final_norm: whether to apply the final layer norm first.

    Returns:
        Logits. With the final norm, those of the topmost stream are the model's own.
    """
    if final_norm and model.stack.final_norm is not None:
        H = model.stack.final_norm(H)
    return lm_head(H, model.unembedding)
