"""Writing with a model: one word after the other, whole batches, beams, single tokens.

`generate` writes; the equations by which it chooses are in `slp_transformer.sampling`.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.generation.decoding import GeneratedSequence, decode_loop, generate
    from slp_transformer.generation.harness import HarnessModel
    from slp_transformer.generation.scoring import (
        ContinuationScore,
        score,
        score_continuations,
    )
    from slp_transformer.generation.stop_text import StopText

__all__ = [
    "ContinuationScore",
    "GeneratedSequence",
    "HarnessModel",
    "StopText",
    "decode_loop",
    "generate",
    "score",
    "score_continuations",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
