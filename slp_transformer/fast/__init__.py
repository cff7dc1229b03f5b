"""Other ways to compute the same, each equal to the plain one by test.

The ground floor asks for them in one line, and works without them: with the environment variable
`SLP_TRANSFORMER_PLAIN=1`, or in the context of `plainly`, everything goes by its equation alone.
"""

from slp_transformer.fast.dropping import drop_bits
from slp_transformer.fast.entropy import summed_entropy
from slp_transformer.fast.fused import fused_attention
from slp_transformer.fast.switch import plainly, switched_on

__all__ = ["drop_bits", "fused_attention", "plainly", "summed_entropy", "switched_on"]
