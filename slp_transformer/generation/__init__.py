"""Writing with a model: one word after the other, whole batches, beams, single tokens.

`generate` writes; the equations by which it chooses are in `slp_transformer.sampling`.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.generation.decoding import GenerationResult, decode_loop, generate

__all__ = ["GenerationResult", "generate", "decode_loop"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
