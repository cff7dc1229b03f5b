"""Looking inside a Transformer: what passes where, what a head does, and what breaks without it.

One way to look and to touch (`patch_activations`), and what is read with it: the logit lens, scores
of attention patterns, and each head's two circuits.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.interpret.activations import find_hook_points as find_hook_points
    from slp_transformer.interpret.activations import patch_activations as patch_activations
    from slp_transformer.interpret.activations import zero_ablate as zero_ablate
    from slp_transformer.interpret.circuits import circuit_in_vocabulary as circuit_in_vocabulary
    from slp_transformer.interpret.circuits import ov_circuit as ov_circuit
    from slp_transformer.interpret.circuits import qk_circuit as qk_circuit
    from slp_transformer.interpret.head_scores import induction_score as induction_score
    from slp_transformer.interpret.head_scores import previous_token_score as previous_token_score
    from slp_transformer.interpret.head_scores import repeated_tokens as repeated_tokens
    from slp_transformer.interpret.lens import logit_lens as logit_lens
    from slp_transformer.interpret.lens import residual_stream as residual_stream
    from slp_transformer.interpret.translation_attention import (
        translation_attention_weights as translation_attention_weights,
    )

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
