"""How the matrices of a stack begin, which the book leaves open."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.nn.init import normal_, xavier_uniform_

from slp_transformer._internal.choices import check_in_choices
from slp_transformer._internal.parts import INITIALIZATION_NAMES, Initialization

small_normal_ = partial(normal_, std=0.02)
INITIALIZATIONS: dict[str, Any] = {
    "gpt2": small_normal_,
    "xavier": xavier_uniform_,
    "bert": small_normal_,
}


@torch.no_grad()
def draw_matrices(sublayers: Sequence[Any], scheme: Initialization) -> None:
    """Draw every matrix anew.

    As GPT-2 does (Radford et al. 2019, section 2.3), from a normal distribution of deviation 0.02;
    the matrices that write to the residual stream from one narrower by the root of their number, so
    that the stream does not grow with depth. As BERT does (Devlin et al. 2019), all from the same
    distribution: after a post-norm the stream is of one size anyway. Or as Xavier Glorot does
    (Glorot and Bengio 2010), uniformly up to √(6/(rows + columns)), so that variances are kept on
    the way up and, as far as can be, on the way down.

    Args:
        sublayers: all that write to the stream, each by the last of its `matrices`.
        scheme: "gpt2", "xavier" or "bert".

    Raises:
        ValueError: if the scheme is none of these.
    """
    check_in_choices(INITIALIZATION_NAMES, initialization=scheme)
    draw = INITIALIZATIONS[scheme]
    for sublayer in sublayers:
        for W in (matrices := sublayer.matrices):
            # Not in place: W may be columns of a fused matrix, and numbers are drawn in the order
            # of memory, so a seed would give others than to a matrix by itself.
            W.copy_(draw(torch.empty(W.shape, dtype=W.dtype, device=W.device)))
        if scheme == "gpt2":
            matrices[-1].mul_(len(sublayers) ** -0.5)
