"""The loss that training lowers, and what is measured by it: cross-entropy and perplexity."""

import math
import sys
from typing import Literal

from slp_transformer._internal.argument_checks import check_loss_arguments
from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.fast import fast_cross_entropy

IGNORE_INDEX = -100  # a target that no loss looks at; PyTorch's choice


def next_token_loss(
    U: Float[Tensor, "*batch N V"],
    targets: Int[Tensor, "*batch N"],
    *,
    label_smoothing: float = 0.0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy of the words that came next, in nats.

    $$L=\frac1T\sum_{t=1}^T-\log\hat{\mathbf y}_t[w_{t+1}]$$

    Source: `ce-full` to `ce-mean`; where only the masked words have targets, `mlm-loss`.

    With label smoothing ε, not in the book (Szegedy et al. 2016), every word of the vocabulary gets
    a share of what the right one should have:

    $$L_t=-(1-\varepsilon)\log\hat{\mathbf y}_t[w_{t+1}]
    -\frac{\varepsilon}{|V|}\sum_{v\in V}\log\hat{\mathbf y}_t[v]$$

    Args:
        U: logits for the word after each position.
        targets: the word that did come after each position; positions with `IGNORE_INDEX` (padding)
            do not count.
        label_smoothing: ε, the share of each target's probability that is spread over the
            vocabulary; padding has none.
        reduction: "mean", or "sum" to divide later.

    Raises:
        ValueError: if there is not one target for each position, targets are no ids of the
            vocabulary, the smoothing is no share or the reduction is another one.
    """
    check_loss_arguments(U, targets, IGNORE_INDEX, label_smoothing, reduction)
    rows, words = U.flatten(0, -2), targets.flatten().long()
    rows = rows.float() if rows.dtype.itemsize < 4 else rows  # too coarse to sum
    if fast_paths_enabled():
        return fast_cross_entropy(rows, words, label_smoothing, IGNORE_INDEX, reduction)
    counts = words != IGNORE_INDEX
    log_y = rows.log_softmax(dim=-1)
    losses = -log_y.gather(-1, words.where(counts, 0).unsqueeze(-1)).squeeze(-1)
    losses = (1 - label_smoothing) * losses - label_smoothing * log_y.mean(dim=-1)
    total = losses.where(counts, 0.0).sum()
    return total if reduction == "sum" else total / counts.sum()


def perplexity(loss: float) -> float:
    r"""Return the number of equally probable words that would be as hard to predict as a text's.

    $$\mathrm{PPL}(w_{1:T})=P(w_{1:T})^{-1/T}=\exp(L)$$

    Perplexities compare only where the tokens are the same: a word is harder to predict than a
    character.

    Source: `likelihood` and `perplexity`.

    Args:
        loss: mean cross-entropy in nats per token, as from `mean_loss`.

    Returns:
        The perplexity per token, 1 at best; infinite for a loss beyond what a float can hold.

    Raises:
        ValueError: if the loss is negative.
    """
    if loss < 0:
        raise ValueError(f"A cross-entropy is 0 or more, but the loss is {loss!r}.")
    return math.inf if loss > math.log(sys.float_info.max) else math.exp(loss)
