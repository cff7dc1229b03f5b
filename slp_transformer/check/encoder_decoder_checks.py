"""Checks for the encoder-decoder: cross-attention, the decoder's block (chapter 10)."""

from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.attention_checks import SCALES, attention
from slp_transformer.check.block_checks import Layer, identity, normalize_rows, running_mean_rows
from slp_transformer.check.diagnosing import Case, Mistakes, check, choose_option
from slp_transformer.check.mask_checks import INF
from slp_transformer.check.random_inputs import matrix, seeded_randn, vector


def _cross_cases() -> list[Case]:
    draw = seeded_randn(61)

    def made(N: int, M: int, d: int, d_k: int, d_v: int) -> Case:
        streams = {"X": draw(N, d), "H_enc": draw(M, d)}
        return streams | {"W_Q": draw(d, d_k), "W_K": draw(d, d_k), "W_V": draw(d, d_v)}

    eye = torch.eye(2)
    hand = {"X": matrix((1, 0)), "H_enc": matrix((2, 0), (0, 1)), "W_Q": 2 * eye, "W_K": eye}
    hand |= {"W_V": 4 * eye}
    large = hand | {"X": matrix((200, 0))}
    return [hand, made(2, 5, 3, 2, 7), made(5, 3, 3, 7, 2), made(3, 3, 2, 2, 2), large]


@check(
    "`cross-QKV` and `cross-attn`",
    _cross_cases,
    (
        SCALES,
        """
    K from the decoder: The keys come from the decoder's X; they should come from H_enc.
    V from the decoder: The values come from the decoder's X; they should come from H_enc.
    X for H_enc: Keys and values come from X, as in self-attention.
    H_enc for X: The queries come from H_enc; they should come from the decoder's X.
    X and H_enc swapped: X and H_enc are swapped: the queries should come from X.
    causal: A causal mask hides part of the source; the decoder sees all of it.
    other axis: The softmax runs over the queries; it should run over the source's tokens.
    no W_V: The values are the rows of H_enc themselves; multiply them by W_V.
    scaled by √d: The scores are divided by √d; divide by √d_k.
    scaled by √d_v: The scores are divided by √d_v; divide by √d_k.
    weights: These are the attention weights; multiply them by the values.
    residual: The values of X are added; the block adds the stream, the head does not.
        = X @ W_V + right
    no softmax: The softmax is missing.
        = X @ W_Q @ (H_enc @ W_K).mT / W_Q.shape[1] ** 0.5 @ H_enc @ W_V
    both read: Keys and values come from both streams; cross-attention reads H_enc alone.
    """,
    ),
)
def cross_attention(
    X: Tensor, H_enc: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, mistakes: Mistakes
) -> Tensor:
    """Check `cross_attention(X, H_enc, W_Q, W_K, W_V)`: one head [N×d_v] that reads the source."""
    if "both read" in mistakes:
        H_enc = torch.cat([H_enc, X])
    Q = X @ W_Q
    K = (X if "K from the decoder" in mistakes else H_enc) @ W_K
    source = X if "V from the decoder" in mistakes else H_enc
    V = source if "no W_V" in mistakes else source @ W_V
    V = torch.eye(len(K)).to(K) if "weights" in mistakes else V
    sizes = {"scaled by √d": X.shape[-1], "scaled by √d_v": W_V.shape[-1]}
    Q = Q * (K.shape[-1] / choose_option(mistakes, sizes, K.shape[-1])) ** 0.5
    mask = torch.zeros(len(Q), len(K))
    mask = torch.full_like(mask, -INF).triu(1) if "causal" in mistakes else mask
    return attention.solve(Q, K, V, mask, mistakes & {"other axis", *SCALES})


def _decoder_cases() -> list[Case]:
    draw = seeded_randn(62)
    layers = {
        "attention": Layer("1.5 times the mean so far", lambda X: running_mean_rows(X) * 1.5),
        "cross_attention": Layer(
            "x · mean of H_enc", lambda X, H_enc: X * H_enc.mean(-2, keepdim=True) + 1
        ),
        "ffn": Layer("x² + 1", lambda X: X * X + 1),
        "norm": Layer("layer norm", normalize_rows),
    }
    given = [(matrix((2, 4)), matrix((1, 2))), (draw(5, 3), draw(2, 3)), (draw(2, 7), draw(3, 7))]
    return [{"X": X, "H_enc": H_enc, **layers} for X, H_enc in given]


@check(
    "the decoder block",
    _decoder_cases,
    """
    cross-attention first: Cross-attention comes before self-attention; it comes after it.
    cross-attention last: Cross-attention comes after the feedforward layer, not before.
    no residual at cross-attention: Cross-attention's output replaces the stream; add it.
    no residual at self-attention: Self-attention's output replaces the stream; add it.
    no residual at the feedforward layer: The feedforward output replaces the stream; add it.
    norm kept: The stream itself is normalized; only what a sublayer reads should be.
        = (Z := norm((Y := norm((x := norm(X)) + attention(x))) + cross_attention(Y, H_enc))) +
          ffn(Z)
    residual twice from the first: The feedforward layer is added to the result of self-attention;
        add it to that of cross-attention.
        = (Y := (X + attention(norm(X)))) + ffn(norm(Y + cross_attention(norm(Y), H_enc)))
    feedforward layer added to X: The feedforward layer is added to X; add it to the result of
        cross-attention.
        = X + ffn(norm((Y := (X + attention(norm(X)))) + cross_attention(norm(Y), H_enc)))
    no feedforward layer: The feedforward layer is left out.
        = (Y := (X + attention(norm(X)))) + cross_attention(norm(Y), H_enc)
    ffn on the norm: The feedforward layer is added to its own input, the norm; add it to the
        stream.
        = (Z := norm((Y := (X + attention(norm(X)))) + cross_attention(norm(Y), H_enc))) + ffn(Z)
    norm once: All three sublayers read the norm of X; each should read that of the current
        stream.
        = X + attention(norm(X)) + cross_attention(norm(X), H_enc) + ffn(norm(X))
    norm at the end: The result is normalized as well; the next block does that.
    source not read: Cross-attention reads the decoder's stream twice; its second argument is
        H_enc.
    residual from X: Cross-attention is added to X; add it to the result of self-attention.
    query from X: The queries of cross-attention come from X; use the result of self-attention.
    no norm at cross-attention: The norm before cross-attention is missing.
    no norm at the feedforward layer: The norm before the feedforward layer is missing.
    no norm at self-attention: The norm before self-attention is missing.
    source normalized: H_enc is normalized again; the encoder already ends in a norm.
    post-norm: This is post-norm, as in 2017; normalize the input of each sublayer.
    no cross-attention: Cross-attention is left out.
    sides swapped: X and H_enc are swapped in cross-attention: the queries come from X.
    """,
)
def decoder_block(
    X: Tensor,
    H_enc: Tensor,
    attention: Any,
    cross_attention: Any,
    ffn: Any,
    norm: Any,
    mistakes: Mistakes,
) -> Tensor:
    """Check `decoder_block(X, H_enc, attention, cross_attention, ffn, norm)`: pre-norm.

    `cross_attention(X, H_enc)` asks from its first argument; one norm serves all three sublayers.
    """
    given, asked = X, norm(X)

    def cross(stream: Tensor) -> Tensor:
        reads = stream if "no norm at cross-attention" in mistakes else norm(stream)
        reads = asked if "query from X" in mistakes else reads
        enc = norm(H_enc) if "source normalized" in mistakes else H_enc
        enc = reads if "source not read" in mistakes else enc
        pair = (enc, reads) if "sides swapped" in mistakes else (reads, enc)
        return cross_attention(*pair)

    first = identity if "no norm at self-attention" in mistakes else norm
    last = identity if "no norm at the feedforward layer" in mistakes else norm
    places = ("self-attention", "cross-attention", "the feedforward layer")
    kept = [0 if f"no residual at {place}" in mistakes else 1 for place in places]
    steps = [
        lambda Z: attention(first(Z)) + kept[0] * Z,
        lambda Z: cross(Z) + kept[1] * (given if "residual from X" in mistakes else Z),
        lambda Z: ffn(last(Z)) + kept[2] * Z,
    ]
    if "post-norm" in mistakes:
        O = norm(X + attention(X))
        C = norm(O + cross_attention(O, H_enc))
        return norm(C + ffn(C))
    order = [1, 0, 2] if "cross-attention first" in mistakes else [0, 1, 2]
    order = [0, 2, 1] if "cross-attention last" in mistakes else order
    order = [0, 2] if "no cross-attention" in mistakes else order
    for step in order:
        X = steps[step](X)
    return norm(X) if "norm at the end" in mistakes else X


def _beam_cases() -> list[Case]:
    given = [vector(0.5, 0.25), vector(0.5), vector(0.9, 0.1, 0.5, 0.3)]
    given.append(torch.full((60,), -2.0).exp())  # whose product underflows
    return [{"log_probabilities": p.log()} for p in given]


@check(
    "`beam-norm`",
    _beam_cases,
    """
    not normalized: The sum is not divided by the length: longer sentences always lose.
    probability: This is the probability; return the mean of the logarithms.
        = math.e ** log_probabilities.sum()
    multiplied: The logarithms are multiplied; they should be added.
        = log_probabilities.prod() / len(log_probabilities)
    then minus: The sign is wrong: a better sentence should score higher.
    length plus one: The sum is divided by one more than the number of words.
    length minus one: The sum is divided by one less than the number of words.
        = log_probabilities.sum() / (len(log_probabilities) - 1)
    length minus one (guarded): The sum is divided by one less than the number of words.
        = log_probabilities.sum() / max(len(log_probabilities) - 1, 1)
    times the length: The sum is multiplied by the length; divide it.
        = log_probabilities.sum() * len(log_probabilities)
    mean probability: This is the log of the mean probability; average the logs.
        = log_probabilities.exp().mean().log()
    mean of probabilities: This is the mean probability; return the mean of the logarithms.
        = log_probabilities.exp().mean()
    then exp: This is exp of the mean logarithm; return the mean itself.
    probability by length: The probability is divided by the length; divide the sum of the
        logarithms.
        = log_probabilities.sum().exp() / len(log_probabilities)
    root of the length: The sum is divided by the root of the length; divide by the length.
        = log_probabilities.sum() / len(log_probabilities) ** 0.5
    """,
)
def length_normalized(log_probabilities: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `length_normalized(log_probabilities)`: a sentence's score in beam search."""
    logs = log_probabilities
    total = logs.sum()
    words = len(logs) + ("length plus one" in mistakes)
    return total if "not normalized" in mistakes else total / words
