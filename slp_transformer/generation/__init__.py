"""Writing with a model: one word after the other, whole batches, beams, single tokens.

`generate` writes; the equations by which it chooses are in `slp_transformer.sampling`.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import offered

if TYPE_CHECKING:
    from slp_transformer.generation.decoding import Generated, generate, write

__all__ = ["Generated", "generate", "write"]

__getattr__, __dir__ = offered(__name__)
