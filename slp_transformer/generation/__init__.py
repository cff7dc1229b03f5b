"""Writing with a model: one word after the other, whole batches, beams, single tokens.

`generate` writes; the equations by which it chooses are in `slp_transformer.sampling`.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.generation.decoding import GeneratedSequence as GeneratedSequence
    from slp_transformer.generation.decoding import decode_loop as decode_loop
    from slp_transformer.generation.decoding import generate as generate
    from slp_transformer.generation.harness import HarnessModel as HarnessModel
    from slp_transformer.generation.scoring import ContinuationScore as ContinuationScore
    from slp_transformer.generation.scoring import score as score
    from slp_transformer.generation.scoring import score_continuations as score_continuations
    from slp_transformer.generation.stop_text import StopText as StopText

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
