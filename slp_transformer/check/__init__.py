"""Checks for a reader's own submission at an exercise, which name the mistake.

    from slp_transformer import check
    check.attention(my_attention)

Each check tries a function on small, hand-sized, random and extreme inputs and returns a `Verdict`,
true where the function is right. Where it is wrong, the verdict says which known mistake gives the
very same answers, and shows the smallest case. `python -m slp_transformer.check` prints them all.
"""

from slp_transformer.check.attention_checks import (
    attention,
    scaled_score,
    simple_attention,
    softmax,
    weighted_sum,
)
from slp_transformer.check.block_checks import block, ffn, layer_norm, swiglu, unchanged
from slp_transformer.check.diagnosing import CHECKS, Check
from slp_transformer.check.encoder_decoder_checks import (
    cross_attention,
    decoder_block,
    length_normalized,
)
from slp_transformer.check.fingering_checks import (
    cheapest_step,
    is_playable_grip,
    path_back,
    takes_turns,
)
from slp_transformer.check.guitar_checks import count_places, only_allowed, pitch, span
from slp_transformer.check.interpret_checks import (
    copied,
    induced,
    induction_score,
    logit_lens,
    qk_circuit,
    without_head,
)
from slp_transformer.check.language_model_checks import (
    input_encoding,
    lm_head,
    one_hot_lookup,
    parameters,
    shift_position,
    sinusoid,
    stack,
)
from slp_transformer.check.loss_checks import (
    lora,
    next_token_loss,
    padded_loss,
    perplexity,
    perplexity_of_loss,
)
from slp_transformer.check.mask_checks import causal_mask, mask_after, padding_mask
from slp_transformer.check.modern_checks import (
    modern_block_parameters,
    published_ffn,
    rms_norm,
    rotary,
    rotary_step,
    shared_keys,
)
from slp_transformer.check.multi_head_checks import (
    cached_step,
    head,
    join_heads,
    multi_head_attention,
    split_heads,
)
from slp_transformer.check.sampling_checks import (
    leak,
    limits_of_temperature,
    temperature,
    top_k,
    top_p,
)
from slp_transformer.check.scaling_checks import cache_numbers, merged, scaling_loss
from slp_transformer.check.transformer_2017_checks import (
    rate_of_2017,
    scaled_input,
    smoothed_loss,
    teacher_forced,
)
from slp_transformer.check.verdict import Verdict, at_most

__all__ = [
    "CHECKS",
    "Check",
    "Verdict",
    "at_most",
    "attention",
    "block",
    "cache_numbers",
    "cached_step",
    "causal_mask",
    "cheapest_step",
    "copied",
    "count_places",
    "cross_attention",
    "decoder_block",
    "ffn",
    "head",
    "is_playable_grip",
    "induced",
    "induction_score",
    "input_encoding",
    "join_heads",
    "layer_norm",
    "leak",
    "length_normalized",
    "limits_of_temperature",
    "lm_head",
    "logit_lens",
    "lora",
    "mask_after",
    "merged",
    "multi_head_attention",
    "next_token_loss",
    "one_hot_lookup",
    "only_allowed",
    "padded_loss",
    "padding_mask",
    "parameters",
    "path_back",
    "perplexity",
    "perplexity_of_loss",
    "pitch",
    "published_ffn",
    "qk_circuit",
    "rate_of_2017",
    "rms_norm",
    "rotary",
    "rotary_step",
    "scaled_input",
    "scaled_score",
    "scaling_loss",
    "shared_keys",
    "shift_position",
    "simple_attention",
    "sinusoid",
    "smoothed_loss",
    "softmax",
    "span",
    "split_heads",
    "stack",
    "swiglu",
    "takes_turns",
    "teacher_forced",
    "temperature",
    "modern_block_parameters",
    "top_k",
    "top_p",
    "unchanged",
    "weighted_sum",
    "without_head",
]
