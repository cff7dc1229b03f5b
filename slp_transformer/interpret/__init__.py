"""Looking inside a Transformer: what passes where, what a head does, and what breaks without it.

One way to look and to touch (`patch_activations`), and what is read with it: the logit lens, scores
of attention patterns, and each head's two circuits.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.interpret.activations import (
        find_hook_points,
        patch_activations,
        zero_ablate,
    )
    from slp_transformer.interpret.circuits import circuit_in_vocabulary, ov_circuit, qk_circuit
    from slp_transformer.interpret.head_scores import (
        induction_score,
        previous_token_score,
        repeated_tokens,
    )
    from slp_transformer.interpret.lens import logit_lens, residual_stream
    from slp_transformer.interpret.translation_attention import translation_attention_weights

__all__ = [
    "translation_attention_weights",
    "circuit_in_vocabulary",
    "induction_score",
    "logit_lens",
    "ov_circuit",
    "find_hook_points",
    "previous_token_score",
    "qk_circuit",
    "repeated_tokens",
    "residual_stream",
    "patch_activations",
    "zero_ablate",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
