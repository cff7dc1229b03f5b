"""Checks for the encoder-decoder: cross-attention, the decoder's block (chapter 10)."""

import math
from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.tables.attention_checks import OF_EVERY_HEAD, SCALES, attention
from slp_transformer.check.tables.block_checks import (
    LabeledFunction,
    normalize_rows,
    running_mean_rows,
)


def _cross_cases() -> list[Inputs]:
    draw = seeded_randn(61)

    def made(N: int, M: int, d: int, d_k: int, d_v: int) -> Inputs:
        return draw(N, d), draw(M, d), draw(d, d_k), draw(d, d_k), draw(d, d_v)

    eye, H_enc = torch.eye(2), matrix((2, 0), (0, 1))
    hand, large = ((matrix((x, 0)), H_enc, 2 * eye, eye, 4 * eye) for x in (1, 200))
    return [hand, made(2, 5, 3, 2, 7), made(5, 3, 3, 7, 2), made(3, 3, 2, 2, 2), large]


@check(
    "`cross-QKV` and `cross-attn`",
    _cross_cases,
    *SCALES,
    "K from the decoder [X in a place (2)]: The keys come from X; they should be from H_enc.",
    "V from the decoder [X in a place (4)]: The values come from X; they should be from H_enc.",
    "V from the decoder (cut): …",  # to the shorter of the two
    lambda X, H_enc, W_Q, W_K, W_V: (
        torch.softmax(X @ W_Q @ (H_enc @ W_K).T / W_K.shape[1] ** 0.5, -1)[:, : len(X)]
        @ (X @ W_V)[: len(H_enc)]
    ),
    "X for H_enc: Keys and values come from X, as in self-attention.",
    "H_enc for X: The queries come from H_enc; they should come from the decoder's X.",
    "X and H_enc swapped: X and H_enc are swapped: the queries should come from X.",
    "X and H_enc swapped (cut): …",
    lambda X, H_enc, solve: solve(X=H_enc, H_enc=X)[: len(X)],
    "causal [causal in any case]: A mask hides part of the source; the decoder sees it all.",
    "other axis: The softmax runs over the queries; it should run over the source's tokens.",
    "no W_V [no @ W_V]: The values are the rows of H_enc themselves; multiply them by W_V.",
    "scaled by √d: The scores are divided by √d; divide by √d_k.",
    lambda W_Q, solve: solve(W_Q=W_Q * (W_Q.shape[1] / len(W_Q)) ** 0.5),
    *OF_EVERY_HEAD,
    "all entries: The softmax is taken of the whole matrix; each row should sum to 1.",
    "weights [no @ V]: These are the attention weights; multiply them by the values.",
    "residual: The values of X are added; the block adds the stream, the head does not.",
    lambda X, W_V, right: X @ W_V + right,
    "equal weights [X = 0]: All tokens of the source get the same weight; the weights are the "
    "softmax of the scores.",
    "both read: Keys and values come from both streams; cross-attention reads H_enc alone.",
    lambda X, H_enc, solve: solve(H_enc=torch.cat([H_enc, X])),
    "scaled by √n: The scores are divided by the root of the number of the source's tokens; "
    "divide by √d_k.",
    lambda H_enc, W_K, solve: solve(W_K=W_K * (W_K.shape[1] / len(H_enc)) ** 0.5),
)
def cross_attention(
    X: Tensor, H_enc: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, mistakes: Mistakes
) -> Tensor:
    """Check `cross_attention(X, H_enc, W_Q, W_K, W_V)`: one head [N×d_v] that reads the source."""
    Q, K, V = X @ W_Q, H_enc @ W_K, H_enc @ W_V
    return attention.solve(Q, K, V, torch.zeros(len(Q), len(K)), mistakes=mistakes)


def _decoder_cases() -> list[Inputs]:
    draw = seeded_randn(62)
    layers = (
        LabeledFunction("1.5 times the mean so far", lambda X: running_mean_rows(X) * 1.5),
        LabeledFunction(
            "x · mean of H_enc + 1", lambda X, H_enc: X * H_enc.mean(-2, keepdim=True) + 1
        ),
        LabeledFunction("x² + 1", lambda X: X * X + 1),
        LabeledFunction("layer norm", normalize_rows),
    )
    given = [(matrix((2, 4)), matrix((1, 2))), (draw(5, 3), draw(2, 3)), (draw(2, 7), draw(3, 7))]
    return [(X, H_enc, *layers) for X, H_enc in given]


@check(
    "the decoder block",
    _decoder_cases,
    "cross-attention first: Cross-attention comes before self-attention; it belongs after it.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (X := (X := X + cross_attention(norm(X), H_enc)) + attention(norm(X))) + ffn(norm(X))
    ),
    "cross-attention last: Cross-attention comes after the feedforward layer, not before.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (X := (X := X + attention(norm(X))) + ffn(norm(X))) + cross_attention(norm(X), H_enc)
    ),
    "no residual at cross-attention [no + Y]: Cross-attention replaces the stream; add it.",
    "no residual at self-attention [no + X]: Self-attention's output replaces the stream; add it.",
    "no residual at the feedforward layer [no + Z]: The feedforward output replaces the stream.",
    "norm kept: The stream itself is normalized; only what a sublayer reads should be.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (X := norm((X := norm((X := norm(X)) + attention(X))) + cross_attention(X, H_enc))) + ffn(X)
    ),
    "residual twice from the first: The feedforward layer is added to the result of "
    "self-attention; add it to that of cross-attention.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (X := X + attention(norm(X))) + ffn(norm(X + cross_attention(norm(X), H_enc)))
    ),
    "feedforward layer added to X: The feedforward layer is added to X; add it to the result of "
    "cross-attention.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        X + ffn(norm((Y := X + attention(norm(X))) + cross_attention(norm(Y), H_enc)))
    ),
    "no feedforward layer [no + ffn(norm(Z))]: The feedforward layer is left out.",
    "ffn on the norm [the stream after cross-attention standardized]: The feedforward layer is "
    "added to its own input, the norm; add it to the stream.",
    "norm once: All sublayers read the norm of X; each should read that of its stream.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        X + attention(norm(X)) + cross_attention(norm(X), H_enc) + ffn(norm(X))
    ),
    "source not read: Cross-attention reads the stream twice; it also needs H_enc.",
    lambda cross_attention, solve: solve(cross_attention=lambda Y, _: cross_attention(Y, Y)),
    "residual from X: Cross-attention is added to X; add it to the result of self-attention.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (Y := X + cross_attention(norm(X + attention(norm(X))), H_enc)) + ffn(norm(Y))
    ),
    "query from X: The queries of cross-attention come from X; use the result of self-attention.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (Y := X + attention(norm(X)) + cross_attention(norm(X), H_enc)) + ffn(norm(Y))
    ),
    "no norm at cross-attention [no norm() (2)]: The norm before cross-attention is missing.",
    "no norm at the feedforward layer [no norm() (3)]: The feedforward layer's norm is missing.",
    "no norm at self-attention [no norm()]: The norm before self-attention is missing.",
    "source normalized [H_enc standardized]: H_enc is normalized again; the encoder already ends "
    "in a norm.",
    "post-norm: This is post-norm, as in 2017; normalize the input of each sublayer.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: norm(
        (X := norm((X := norm(X + attention(X))) + cross_attention(X, H_enc))) + ffn(X)
    ),
    "no cross-attention [no + cross_attention(norm(Y), H_enc)]: Cross-attention is left out.",
    "sides swapped: X and H_enc are swapped in cross-attention: the queries come from X.",
    lambda cross_attention, solve: solve(cross_attention=lambda Y, H: cross_attention(H, Y)),
    "sides swapped (cut): …",
    lambda cross_attention, solve: solve(
        cross_attention=lambda Y, H: cross_attention(H, Y)[: len(Y)]
    ),
    "sides swapped (cut, no norm): …",
    lambda solve: solve("sides swapped (cut)", "no norm at cross-attention"),
    "sides swapped (no norm): …",
    lambda solve: solve("sides swapped", "no norm at cross-attention"),
    "ffn reads T³: The feedforward layer reads the result of self-attention; it should read that "
    "of cross-attention.",
    lambda X, H_enc, attention, cross_attention, ffn, norm: (
        (Y := X + attention(norm(X))) + cross_attention(norm(Y), H_enc) + ffn(norm(Y))
    ),
)
def decoder_block(
    X: Tensor, H_enc: Tensor, attention: Any, cross_attention: Any, ffn: Any, norm: Any
) -> Tensor:
    """Check `decoder_block(X, H_enc, attention, cross_attention, ffn, norm)`: pre-norm.

    `cross_attention(X, H_enc)` asks from its first argument; one norm serves all three sublayers.
    """
    Y = X + attention(norm(X))
    Z = Y + cross_attention(norm(Y), H_enc)
    return Z + ffn(norm(Z))


def _beam_cases() -> list[Inputs]:
    given = [vector(0.5, 0.25), vector(0.5), vector(0.9, 0.1, 0.5, 0.3)]
    given += [vector(0.7, 0.2, 0.05, 0.4, 0.9), vector(0.1, 0.3, 0.8)]
    given.append(torch.full((60,), -2.0).exp())  # whose product underflows
    return [(p.log(),) for p in given]


@check(
    "`beam-norm`",
    _beam_cases,
    "not normalized [no / len(log_probabilities)]: The sum is not divided by the length: longer "
    "sentences always lose.",
    "probability: This is the probability; return the mean of the logarithms.",
    lambda log_probabilities: math.e ** log_probabilities.sum(),
    "then minus: The sign is wrong: a better sentence should score higher.",
    "length minus one (guarded): The sum is divided by one less than the number of words.",
    lambda log_probabilities: log_probabilities.sum() / max(len(log_probabilities) - 1, 1),
    "times the length [· for /]: The sum is multiplied by the length; divide it.",
    "mean probability: This is the log of the mean probability; average the logs.",
    lambda log_probabilities: log_probabilities.exp().mean().log(),
    "mean of probabilities [exp of log_probabilities]: This is the mean probability; return the "
    "mean of the logarithms.",
    "then exp: This is exp of the mean logarithm; return the mean itself.",
    "probability by length: The probability is divided by the length; divide the sum of logs.",
    lambda log_probabilities: log_probabilities.sum().exp() / len(log_probabilities),
    "root of the length [log_probabilities · √width]: The sum is divided by the root of the "
    "length; divide by the length.",
    "penalty of 2016: The length goes through a penalty, ((5 + T)/6)^α; divide by the length.",
    lambda log_probabilities: log_probabilities.sum() / ((5 + len(log_probabilities)) / 6) ** 0.6,
    "penalty of 2016 (0.65): …",
    lambda log_probabilities: log_probabilities.sum() / ((5 + len(log_probabilities)) / 6) ** 0.65,
    "penalty of 2016 (0.7): …",
    lambda log_probabilities: log_probabilities.sum() / ((5 + len(log_probabilities)) / 6) ** 0.7,
    "penalty of 2016 (1): …",
    lambda log_probabilities: log_probabilities.sum() / ((5 + len(log_probabilities)) / 6),
    "power of the length: A power of the length is taken; divide by the length itself.",
    lambda log_probabilities: log_probabilities.sum() / len(log_probabilities) ** 0.6,
    "power of the length (0.7): …",
    lambda log_probabilities: log_probabilities.sum() / len(log_probabilities) ** 0.7,
    "smallest of all: This is the log probability of the least probable word; take their mean.",
    lambda log_probabilities: log_probabilities.min(),
    "last alone: This is the last word's log probability; take the mean of all.",
    lambda log_probabilities: log_probabilities[-1],
    "largest: This is the log probability of the most probable word; take their mean.",
    lambda log_probabilities: log_probabilities.max(),
    "length squared [log_probabilities / width]: The sum is divided by the square of the length; "
    "divide by the length.",
    "median: This is the median; take the mean.",
    lambda log_probabilities: log_probabilities.median(),
    "perplexity: This is the perplexity, exp of minus the mean; return the mean itself.",
    lambda right: torch.exp(-right),
)
def length_normalized(log_probabilities: Tensor) -> Tensor:
    """Check `length_normalized(log_probabilities)`: a sentence's score in beam search."""
    return log_probabilities.sum() / len(log_probabilities)
