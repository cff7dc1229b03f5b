"""Checks of readers' submissions: right ones pass, planted mistakes are named, nothing escapes."""

import ast
import io
import math
import random
import re
import runpy
import sys
import threading
import time
import tokenize
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import planted_2017  # noqa: F401  each plants its attempts
import planted_book  # noqa: F401
import planted_edges  # noqa: F401
import planted_fingering  # noqa: F401
import planted_interpret  # noqa: F401
import planted_modern  # noqa: F401
import planted_review  # noqa: F401
import pytest
import torch
import torch.nn.functional as F
from planted import ALL, ODD, verdict
from sampled import mostly_slow

import slp_transformer as slp
from slp_transformer import check, interpret, modern, sampling
from slp_transformer.attention import attention
from slp_transformer.check.diagnosing.code_changes import _iter_operation_changes, iter_other_orders
from slp_transformer.check.diagnosing.comparing import (
    HAS_NAN,
    MAX_SHOWN_IN_ALL,
    describe_relation,
    describe_shape,
    format_difference,
    format_inputs,
    format_value,
)
from slp_transformer.check.diagnosing.diagnosis import (
    CHECKS,
    FLOATS_FOR_INTEGERS,
    OVERFLOW,
    BrokenCheck,
    Check,
    Mistakes,
    parse_mistake_table,
)
from slp_transformer.check.diagnosing.diagnosis import check as make_check
from slp_transformer.check.diagnosing.edges import _find_relations, draw_edges
from slp_transformer.check.diagnosing.timed_run import RaisedError
from slp_transformer.check.verdict import Verdict, print_verdict
from slp_transformer.embedding import one_hot_lookup
from slp_transformer.loss import next_token_loss, perplexity
from slp_transformer.model_sizes import PublishedModel
from slp_transformer.multi_head import join_heads, split_heads
from slp_transformer.scaling_laws import approximate_parameters
from slp_transformer.training.train_config import TrainConfig

RIGHT = [one for one in ALL if one.mistake is None]
WRONG = [one for one in ALL if one.mistake is not None]


def label(one):
    return f"{one.check}: {one.what}"


# --- Planted submissions -----------------------------------------------------------------------


@pytest.mark.parametrize("one", mostly_slow(RIGHT, *RIGHT[::3]), ids=label)
def test_right_solution_passes_however_it_is_written(one):
    found = verdict(one)
    assert found, str(found)


@pytest.mark.parametrize("one", mostly_slow(WRONG, *WRONG[::3]), ids=label)
def test_planted_mistake_is_never_right_and_is_named(one):
    found = verdict(one)
    assert not found
    assert found.mistakes == (one.mistake.partition(" (")[0],), str(found)
    assert found.text and found.example, "it says what is wrong and where it shows"


@pytest.mark.parametrize("one", mostly_slow(ODD, *ODD[::3]), ids=label)
def test_odd_mistake_is_never_right(one):
    found = verdict(one)
    assert not found
    assert found.text.endswith((".", "?")) and found.example


def test_every_check_is_tried():
    checked = {one.check for one in ALL}
    assert checked == set(check.CHECKS)
    assert {one.check for one in RIGHT} == {one.check for one in WRONG} == checked


def test_a_draw_that_returns_nothing_is_told_of_the_rounded_sum():
    def draw(y, dart):
        return next((w for w, end in enumerate(y.cumsum(0)) if dart < end), None)

    found = check.draw(draw)
    assert found.text.endswith("the last word is hit then.")
    assert found.example[0].endswith("dart = 0.99999999")


# --- The table itself ---------------------------------------------------------------------------


def submission_of(one: check.Check, *mistakes: str):
    """A reader's function that makes these mistakes."""
    arguments = ", ".join(one.arguments)
    scope = {"solve": one.solve, "mistakes": frozenset(mistakes)}
    given = ", ".join((*one.arguments, "mistakes=mistakes"))
    exec(f"def submission({arguments}):\n    return solve({given})", scope)
    return scope["submission"]


every_check = pytest.mark.parametrize("name", check.CHECKS)


@pytest.mark.slow
@every_check
def test_every_known_mistake_differs_from_every_other(name):
    one = check.CHECKS[name]
    assert one(submission_of(one))
    for mistake in one.accepted:
        assert one(submission_of(one, mistake)), mistake
    for mistake in one.mistakes:
        assert one(submission_of(one, mistake)).mistakes == (mistake.partition(" (")[0],), mistake
    answers = [one.expected_answer(case, name) for case in one.cases() for name in one.formulas]
    errors = {answer.kind for answer in answers if isinstance(answer, RaisedError)}
    assert errors <= {"RuntimeError", "IndexError", "ValueError"}, "each formula is code that runs"


@every_check
def test_check_is_offered_and_explained(name):
    one = check.CHECKS[name]
    assert getattr(check, name) is one and name in check.__all__
    assert f"`{one.signature_text}" in one.__doc__.replace("\n    ", " ")
    assert all(sentence.endswith(".") for sentence in one.mistakes.values())
    assert one.signature_text in repr(one)


def test_every_check_tries_edges_but_where_its_inputs_have_none():
    without = {name for name, one in CHECKS.items() if not one.edges}
    no_tensors = {"perplexity_of_loss", "limits_of_temperature", "scaling_loss", "span"}
    assert without <= {*no_tensors, "induction_score"}  # whose period is 2 or more


def test_an_edge_keeps_what_all_cases_keep_and_has_an_answer_that_rounding_leaves():
    given = ((3, 0, 4), (7, 5, 41), (9, 9, 2))  # k is at most how many numbers X has
    cases = [{"X": torch.arange(-float(n), 0), "k": k, "far": far} for n, k, far in given]
    never_none = draw_edges([cases[1], cases[2]], ["X"], lambda X, k, far: X[:k] * far)
    assert all(one["k"] * one["far"] > 0 for one in never_none), "as in the cases"
    edges = draw_edges(cases, ["X"], lambda X, k, far: X[:k] * far)
    assert [(len(one["X"]), one["k"], one["far"]) for one in edges] == [
        (1, 1, 1),
        (1, 1, 1),
        (0, 0, 1),
        (67, 5, 41),
        (7, 5, 41),
        (7, 1, 41),
        (7, 5, 1),
        (7, 5, 1031),
        (3, 0, 1),
        (7, 5, 41),
    ]
    assert len(edges[3]["X"].unique()) == 67, "none are equal"
    assert edges[4]["X"].min().item() == pytest.approx(-60)
    assert edges[9]["X"][3] == 0
    numbers = [-2.0, 3, 5, -7], [11.0, -13, 17], [-19.0, 1, 2, 3, 4]
    mixed = [{"X": torch.tensor(X), "k": k} for X, k in zip(numbers, (2, 3, 5), strict=True)]
    found = [
        one["X"].tolist() for one in draw_edges(mixed, [], lambda X, k: X[:k]) if one["k"] == 1
    ]
    assert [19, -1, -2, -3, -4] in found, "all signs are turned, so that another number is first"
    rough = draw_edges(cases, [], lambda X, k, far: (1e8 * X[:k]).sin() * far)
    assert all(one["k"] * one["far"] == 0 for one in rough)  # all else rests on rounding


@pytest.mark.parametrize(
    ("cases", "kept", "broken"),
    [
        ([{"X": 3, "Y": 5}, {"X": 5, "Y": 5}], {"X": 7, "Y": 5}, {"X": 2, "Y": 1}),  # broadcast
        ([{"k": 3, "m": 3}, {"k": 2, "m": 5}], {"k": 5, "m": 5}, {"k": 7, "m": 5}),
        ([{"k": 3, "m": 5}, {"k": 2, "m": 7}], {"k": 4, "m": 5}, {"k": 5, "m": 5}),
        ([{"X": 6, "k": 3}, {"X": 10, "k": 5}], {"X": 8, "k": 4}, {"X": 8, "k": 3}),
        ([{"X": 4}, {"X": 10}], {"X": 6}, {"X": 5}),
        ([{"k": 1}, {"k": 4}], {"k": 2}, {"k": 0}),
        (
            [{"X": 7, "k": 3, "m": 4}, {"X": 9, "k": 5, "m": 4}],
            {"X": 11, "k": 5, "m": 6},
            {"X": 9, "k": 5, "m": 6},
        ),
    ],
)
def test_each_relation_of_sizes_and_numbers_is_found_and_kept(cases, kept, broken):
    """Sizes are capitals."""
    measures = [
        {(name, 0 if name.isupper() else ""): value for name, value in one.items()}
        for one in (*cases, kept, broken)
    ]
    keeps = _find_relations(measures[:2])
    assert [keeps(one) for one in measures] == [True, True, True, False]


def test_what_all_wrong_cases_share_is_told_and_nothing_that_is_not_there():
    first = check.simple_attention(
        lambda X, i: 0 * X[0] if i == 0 else check.simple_attention.solve(X, i)
    )
    assert first.mistakes == ("edge",) and "It is wrong where i = 0." in first.text
    no_exp = check.softmax(
        lambda scores: (left := scores - scores.amax(-1, True)) / left.sum(-1, True)
    )
    assert no_exp.text == "`exp` is missing."
    rounded = check.parameters(lambda L, d: int(torch.tensor(12.0) * L * float(d) ** 2))
    assert rounded.mistakes == ("edge",) and "right but for rounding" in rounded.text
    by_number = check.top_p(lambda u, p: check.top_k.solve(u, max(1, round(p * len(u)))))
    assert not by_number and "u = [0 0]" not in by_number.example[0]


def test_overflow_is_told_by_where_it_shows():
    def exp_first(u, k):
        kept = u.topk(k)
        powers = torch.zeros_like(u).scatter(0, kept.indices, kept.values.exp())
        return powers / powers.sum()

    found = check.top_k(exp_first)
    assert not found and found.text == OVERFLOW and "1000" in found.example[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("least", [0, 2])
def test_ids_must_be_integers_that_can_be_an_index(dtype, least):
    """Also where only some of the answers are not."""

    def begin_and_end(target, begin, end):
        ids = target.tolist()
        right = torch.tensor([[begin, *ids], [*ids, end]])
        return right if len(ids) < least else right.to(dtype)

    found = check.teacher_forced(begin_and_end)
    assert not found and found.text == FLOATS_FOR_INTEGERS


def test_ids_of_one_text_or_of_several_may_be_taken_as_lists_and_nothing_else_may():
    def pairs(U, ids, end):
        return zip(U, ids[1:] + [end], strict=True)

    def each(U, ids, pad_id):
        rows = [pairs(*both, pad_id) for both in zip(U, ids, strict=True)]
        found = [u.log_softmax(-1)[i] for row in rows for u, i in row if i != pad_id]
        return -torch.stack(found).mean()

    def one(U, ids):
        return -torch.stack([u.log_softmax(-1)[i] for u, i in pairs(U, ids, 0)][:-1]).mean()

    assert check.padded_loss(each) and check.next_token_loss(one)
    assert not check.softmax(lambda scores: (torch.tensor(scores + [])).softmax(-1))


def test_two_mistakes_at_once_are_both_named():
    def two(Q, K, V, mask):
        return torch.softmax(Q @ K.T + mask, dim=0) @ V

    found = check.attention(two)
    assert found.mistakes == ("no scaling", "other axis")


# --- Right is what the package computes ---------------------------------------------------------


def causal_mha(X, W_Q, W_K, W_V, W_O, A):
    mha = slp.MultiHeadAttention(len(W_Q), A, W_Q.shape[1] // A, W_V.shape[1] // A)
    with torch.no_grad():
        for name, W in dict(W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O).items():
            getattr(mha, name).copy_(W)
    return mha(X, causal=True)


def one_head(X, W_Q, W_K, W_V, W_O):
    head = slp.AttentionHead(W_Q.shape[0], W_Q.shape[1], W_V.shape[1])
    for name, W in dict(W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O).items():
        getattr(head, name).data = W
    return head(X, slp.causal_mask(len(X)))[0]


def cross(X, H_enc, W_Q, W_K, W_V):
    return attention(X @ W_Q, H_enc @ W_K, H_enc @ W_V)[0]


def norm(x, gamma, beta):
    layer = slp.LayerNorm(len(gamma))
    layer.gamma.data, layer.beta.data = gamma, beta
    return layer(x)


def encoding(ids, E, P, start, scaled=False):
    layer = slp.InputEncoding(len(E), len(P), E.shape[1], scaled_embeddings=scaled)
    layer.tokens.E.data, layer.positions.P.data = E, P
    return layer(ids, start)


def feedforward(kind):
    def layer(x, W_1, *others):
        made = kind(W_1.shape[0], W_1.shape[1])
        for parameter, value in zip(made.parameters(), (W_1, *others), strict=True):
            parameter.data = value
        return made(x)

    return layer


def lens(H, gamma, beta, E):
    config = slp.TransformerConfig(len(E), 8, H.shape[1], 1, 1)
    model = slp.TransformerLM(config)
    model.stack.final_norm.gamma.data, model.stack.final_norm.beta.data = gamma, beta
    model.embedding.tokens.E.data = E
    return interpret.logit_lens(model, H)


def circuit(W_Q, W_K):
    mha = slp.MultiHeadAttention(len(W_Q), 1, W_Q.shape[1])
    with torch.no_grad():
        mha.W_Q.copy_(W_Q), mha.W_K.copy_(W_K)
    return interpret.qk_circuit(mha, 0)


def rms_norm(x, gamma, eps):
    layer = modern.RMSNorm(len(gamma), eps)
    layer.gamma.data = gamma
    return layer(x)


def modern_block_parameters(L, d, A, G, d_k, d_ff):
    sizes = PublishedModel(L, d, d_ff, A, G, d_k, True, 1, True, 0, 0, "")
    return sizes.matrices


def probabilities(f):
    return lambda u, size: slp.next_word_probabilities(f(u, size))


def smoothed(u, word, share):
    return next_token_loss(u[None], torch.tensor([word]), label_smoothing=share)


PACKAGE = {
    "attention": lambda Q, K, V, mask: attention(Q, K, V, mask)[0],
    "causal_mask": lambda N: slp.causal_mask(N),
    "padding_mask": lambda ids, pad_id: slp.padding_mask(ids, pad_id),
    "head": one_head,
    "multi_head_attention": causal_mha,
    "split_heads": lambda X, A: split_heads(X, A),
    "join_heads": lambda heads: join_heads(heads),
    "layer_norm": norm,
    "ffn": feedforward(slp.FeedForward),
    "swiglu": feedforward(slp.SwiGLU),
    "one_hot_lookup": lambda w, E: one_hot_lookup(torch.tensor(w), E),
    "input_encoding": encoding,
    "sinusoid": lambda N, d: slp.sinusoidal_positions(N, d),
    "lm_head": lambda H, E: slp.lm_head(H, E),
    "parameters": lambda L, d: approximate_parameters(L, d),
    "temperature": probabilities(sampling.temperature),
    "top_k": probabilities(sampling.top_k),
    "top_p": probabilities(sampling.top_p),
    "next_token_loss": lambda U, ids: next_token_loss(U[:-1], ids[1:]),
    "perplexity": lambda p: perplexity(-p.log().mean().item()),
    "cross_attention": cross,
    "induction_score": lambda alpha, period: interpret.induction_score(alpha[None], period),
    "logit_lens": lens,
    "qk_circuit": circuit,
    "rms_norm": rms_norm,
    "rotary": lambda X, start, base: modern.RotaryPositions(X.shape[1], base)(X, start),
    "shared_keys": lambda K, A: modern.repeat_kv(K, A),
    "modern_block_parameters": modern_block_parameters,
    "smoothed_loss": smoothed,
    "rate_of_2017": lambda step, d, warmup: TrainConfig.of_2017(d, 1, warmup).learning_rate_at(
        step - 1
    ),
    "scaled_input": lambda ids, E, P: encoding(ids, E, P, 0, scaled=True),
}


@pytest.mark.parametrize("name", PACKAGE)
def test_what_the_package_computes_is_right(name):
    found = check.CHECKS[name](PACKAGE[name])
    assert found, str(found)


# --- Modules, arguments -------------------------------------------------------------------------


def test_the_packages_own_modules_pass_with_their_own_parameters():
    class Causal(slp.MultiHeadAttention):
        def forward(self, X):
            return super().forward(X, causal=True)

    layers = {"layer_norm": slp.LayerNorm(5), "ffn": slp.FeedForward(3, 5)}
    layers |= {"multi_head_attention": Causal(6, 2, 5, 7)}
    for name, layer in layers.items():
        before = {key: value.clone() for key, value in layer.state_dict().items()}
        assert check.CHECKS[name](layer)
        for key, value in layer.state_dict().items():
            assert torch.equal(value, before[key]), f"{name} keeps its {key}"


def test_a_wrong_module_has_its_mistake_named():
    class MyNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.bias = torch.nn.Parameter(torch.zeros(3))

        def forward(self, x):
            return (
                self.weight * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) + self.bias
            )

    assert check.layer_norm(MyNorm()).mistakes == ("unbiased",)


def test_arguments_by_name_by_order_and_with_more_of_their_own():
    def other_order(mask, *, value, key, query, eps=0.0):
        return attention(query, key, value, mask)[0]

    assert check.attention(other_order)
    assert check.attention(lambda a, b, c, d: attention(a, b, c, d)[0])
    assert check.attention(lambda *rows: attention(*rows)[0])
    assert check.softmax(lambda z, dim=-1: F.softmax(z, dim))


def last_row_doubled(*given):
    out = attention(*given)[0]
    return torch.cat([out[..., :-1, :], 2 * out[..., -1:, :]], dim=-2)


@pytest.mark.parametrize(
    "submission, words",
    [
        (
            lambda Q, K: Q,
            "It is called as attention(Q, K, V, mask), but yours takes (Q, K).",
        ),
        (
            lambda a, b, c, d, e: a,
            "It is called as attention(Q, K, V, mask), but yours takes (a, b, c, d, e).",
        ),
        (
            torch.nn.Linear,
            "Linear is a class: make one first, and pass that (as Linear(…)).",
        ),
        (
            torch.zeros(3),
            "Pass the function itself, without calling it; this is of type Tensor.",
        ),
        (lambda Q, K, V, mask: None, "It returns nothing yet: return a value on every path."),
        (lambda Q, K, V, mask: ..., "It returns nothing yet: return a value on every path."),
        (
            lambda Q, K, V, mask: [Q[0, 0], None],
            "There is still a None in it: fill it in.",
        ),
        (
            lambda Q, K, V, mask: "text",
            "It should return a tensor of numbers; yours is of type str.",
        ),
        (lambda Q, K, V, mask: Q + 1j, "It should return a tensor of plain real numbers."),
        (
            lambda Q, K, V, mask: [Q, [1]],
            "It should return a tensor of numbers; yours is a list of 2.",
        ),
        (
            lambda Q, K, V, mask: torch.zeros(3, device="meta"),
            "It should return a tensor of numbers; yours is of type Tensor.",
        ),
        (lambda Q, K, V, mask: V[:0], "It returns [0×1]; it should return [2×1]."),
        (
            lambda Q, K, V, mask: torch.rand_like(Q @ K.T @ V),
            "It gives different answers to the same inputs: is something in it random?",
        ),
        (lambda *given: 1.25 * attention(*given)[0], "every number is 1.25 times the right one."),
        (lambda *given: attention(*given)[0] - 2, "every number is 2 too small."),
        (
            lambda *given: attention(*given)[0] * torch.nan,
            "it has NaN, from 0/0, ∞ − ∞, 0 · ∞, or a log or root of a negative number.",
        ),
        (lambda *given: last_row_doubled(*given), "only the last row is wrong."),
        (lambda *given: attention(*given)[0] ** 3, "It differs from head-par (8.33 · 7.34)."),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(submission, words):
    found = check.attention(submission)
    assert not found and not found.mistakes
    start = "" if words[0].isupper() else "It differs from head-par (8.33 · 7.34): "
    assert found.text == start + words


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("span", lambda frets: min(filter(None, frets), default=0), "It differs from the span"),
        ("weighted_sum", lambda alpha_i, rows: rows.amax(0), "It differs"),
        ("takes_turns", lambda n, p: [0, *torch.stack([n, p], 1).flatten()[1:-1]], "first number"),
        ("softmax", lambda scores: scores.softmax(-1).flip(0), "The order is reversed"),
        ("causal_mask", lambda N: torch.eye(N), "It differs"),
        ("causal_mask", lambda N: torch.zeros(2, N), "It returns"),
        (
            "takes_turns",
            lambda notes, places: notes[0],
            "It returns a single number; it should return",
        ),
        ("is_playable_grip", lambda grip, span: grip[0] == (3, 5), "It differs"),
    ],
)
def test_a_simple_relation_to_the_right_answer_is_said(name, wrong, words):
    found = getattr(check, name)(wrong)
    assert not found and words in found.text, found.text


def test_the_case_that_is_shown_has_the_nan_that_is_told_of():
    def large_scores_overflow(scores):
        e = scores.exp()
        return 2 * e / e.sum()  # wrong anywhere, NaN for large scores alone

    found = check.softmax(large_scores_overflow)
    assert "it has NaN" in found.text
    assert any("NaN" in line for line in found.example if "yours" in line), found.example


# --- Nothing escapes ----------------------------------------------------------------------------


def test_an_error_is_shown_with_the_readers_line():
    def broken(Q, K, V, mask):
        scores = Q @ K.T
        return scores @ undefined  # noqa: F821

    def calls(*given):
        return broken(*given)

    at = broken.__code__.co_firstlineno + 2
    for attempt in (broken, calls):
        found = check.attention(attempt)
        assert f"in line {at}, “return scores @ undefined" in found.text, found.text
        assert "NameError" in found.text
        assert found.example[0].startswith("for       Q: shape [")


def test_leaving_and_recursion_are_reported():
    def leaves(scores):
        sys.exit(3)

    def recursive(scores):
        return recursive(scores)

    at = leaves.__code__.co_firstlineno + 1
    told = f"It stopped in line {at}, “sys.exit(3)”: SystemExit, 3."
    assert check.softmax(leaves).text == told
    assert ": RecursionError, maximum recursion depth exceeded" in check.softmax(recursive).text


def hangs(scores):
    while True:
        scores = scores + 1


# Set, or a loop that swallows what should end it would slow all later tests.
ENOUGH = threading.Event()


def hangs_and_swallows(scores):
    while not ENOUGH.is_set():
        try:
            while not ENOUGH.is_set():
                pass
        except:  # noqa: E722
            pass


@pytest.mark.parametrize("submission", [hangs, hangs_and_swallows])
def test_a_loop_without_end_is_ended(submission):
    ENOUGH.clear()
    start = time.monotonic()
    found = check.softmax(submission, timeout_s=0.2)
    ENOUGH.set()
    told = r"It did not come back within 0\.2 seconds\. .*line \d+, “.*”.*\."
    assert re.fullmatch(told, found.text), found.text
    assert time.monotonic() - start < 300  # against hanging, not a measure


def test_inputs_and_random_generators_stay_as_they_are(unchecked):
    def draws(scores):
        torch.rand(5), random.random()
        return torch.softmax(scores, -1)

    torch.manual_seed(3)
    random.seed(3)
    before = torch.get_rng_state(), random.getstate()
    assert check.softmax(draws)
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]


def test_changing_an_input_in_place_is_right_but_noted():
    def in_place(scores):
        scores -= scores.amax(-1, keepdim=True)
        return scores.exp() / scores.exp().sum(-1, keepdim=True)

    found = check.softmax(in_place)
    told = f"It agrees with {check.softmax.source}. (It changes scores in place.)"
    assert found and found.text == told


CASES = [{"X": torch.tensor([[2.0, 3.0], [5.0, 7.0]]), "a": 2, "b": 5}]


@make_check("a line", lambda: CASES)
def line(X: torch.Tensor, a: int, b: int, mistakes: Mistakes) -> torch.Tensor:
    """Check `line(X, a, b)`."""
    return a * X + b


del CHECKS["line"]  # it is nobody's exercise


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda X, a, b: b * X + a, "a and b are swapped."),
        (lambda X, a, b: a * X + a, "a is used where b should be."),
        (lambda X, a, b: a * X + b + 1, "This is the result for b + 1: something is off by one."),
        (lambda X, a, b: (a - 1) * X + b, "This is the result for a − 1: something is off by one."),
        (lambda X, a, b: a * X, "b is not used: this is the result if it is 0."),
        (lambda X, a, b: b - a * X, "X is negated."),
        (lambda X, a, b: a * X.T + b, "Rows and columns are exchanged."),
        (lambda X, a, b: -a * X - b, "The sign is wrong."),
        (lambda X, a, b: (a * X + b).softmax(-1), "There is a softmax too many at the end."),
        (lambda X, a, b: (a * X + b) / b, "A factor b is missing."),
        (lambda X, a, b: (a * X + b)[-1:], "Only the last row is left."),
        (lambda X, a, b: a * X - b, "There is a − where + should be."),
        (lambda X, a, b: a + X + b, "There is a + where · should be."),
        (lambda X, a, b: a * X.flip(0) + b, "The order is reversed."),
        (lambda X, a, b: a * X**3 + b, "The numbers in X are raised to the third power."),
        (
            lambda X, a, b: a * (X + b),
            "Brackets are wrong: the addition comes before the multiplication; it belongs after "
            "it.",
        ),
    ],
)
def test_every_check_knows_the_mistakes_that_any_function_can_make(attempt, sentence):
    assert line(lambda X, a, b: a * X + b)
    found = line(attempt)
    assert not found and found.text == sentence


def test_truth_values_are_told_to_be_exchanged_and_numbers_are_not():
    @make_check("`logits`", lambda: [(torch.tensor([2.0, -3.0, 5.0, 7.0]),)])
    def positive(X: torch.Tensor) -> torch.Tensor:
        """What is above 0."""
        return X > 0

    @make_check("`logits`", lambda: [(torch.tensor([2.0, -3.0, 5.0, 7.0]),)])
    def total(X: torch.Tensor) -> torch.Tensor:
        """The sum."""
        return X.sum()

    del CHECKS["positive"], CHECKS["total"]
    assert positive(lambda X: X <= 0).text == "True and False are exchanged."
    assert "True" not in total(lambda X: 0 * X.sum()).text


def test_a_transpose_beside_a_vector_is_told_by_its_argument():
    @make_check("`onehot`", lambda: [(1, torch.rand(2, 2)), (1, torch.rand(3, 2))])
    def row(w: int, E: torch.Tensor) -> torch.Tensor:
        """A one-hot row times a matrix."""
        return torch.eye(len(E)).to(E)[w] @ E

    del CHECKS["row"]
    found = row(lambda w, E: torch.eye(len(E))[w] @ E.T)
    assert found.text == "`E` is transposed, or on the other side of @."
    found = check.one_hot_lookup(lambda w, E: torch.eye(len(E))[w] @ E.T)
    assert found.text == "This is a column of E; a word is a row."


def test_exchanged_sides_are_told_and_only_of_a_product_that_it_may_be_a_transpose():
    X = torch.tensor([[1.0, 2.0], [3.0, 5.0]])

    @make_check("`logits`", lambda: [(X, X + torch.eye(2))])
    def product(X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        """A product."""
        return X @ W.exp()

    @make_check("`logits`", lambda: [(X, X + torch.eye(2))])
    def difference(X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        """A difference."""
        return X - W.exp() + 2

    del CHECKS["product"], CHECKS["difference"]
    found = product(lambda X, W: W.exp() @ X).text
    assert found == "The two sides of @ are exchanged, or one of them is transposed."
    found = difference(lambda X, W: W.exp() - X + 2).text
    assert found == "The two sides of − are exchanged."


def test_arguments_that_answers_cannot_tell_apart_are_all_named():
    X, W = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[2.0, 1.0], [1.0, 1.0]])

    @make_check("`logits`", lambda: [(X, W)])
    def weights(X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        """The softmax of a product."""
        return torch.softmax(X @ W, -1)

    del CHECKS["weights"]
    found = weights(lambda X, W: torch.softmax(X @ W / 2, -1))
    assert found.text == "There is a factor 1/2 on X (or W: the answers would be the same)."


def test_a_number_that_no_tensor_holds_is_compared_as_infinite():
    assert check.parameters(lambda L, d: (12 * d * d) ** L).mistakes == ("power of L",)


def test_what_became_of_a_step_is_named():
    def one_more(scores):
        powers = (scores - scores.max(-1, keepdim=True).values).exp()
        return powers / (1 + powers.sum(-1, keepdim=True))

    assert check.softmax(one_more).text == "1 is added to the sum of the exponentials."


@pytest.mark.parametrize(
    ("right", "others"),
    [
        ("relu(a + b)", {"relu first": "relu(a) + b", "relu of one side": "a + relu(b)"}),
        ("c / sqrt(a)", {"sqrt last": "sqrt(c / a)"}),
        ("c - a * b", {"subtraction before multiplication": "(c - a) * b"}),
        ("f(a) + b", {}),
    ],
)
def test_two_steps_are_exchanged(right, others):
    changes = iter_other_orders(ast.parse(right, mode="eval").body, {"relu", "sqrt"})
    assert {one.name: ast.unparse(one.new) for one in changes} == others


@pytest.mark.parametrize(
    ("right", "changes"),
    [
        ("f(a) + b", "f(a) - b; f(a) * b; f(a); b; f(a) + b + b; f(a) + b + f(a)"),
        ("f(a) - b", "f(a) + b; f(a); -b; b - f(a)"),
        ("f(a) * b", "f(a) / b; f(a) + b; f(a); b; f(a) * b * b; f(a) * b * f(a)"),
        ("f(a) / b", "f(a) * b; f(a) // b; f(a); f(a) / b / b; b / f(a)"),
        ("f(a) ** b", "f(a); int(f(a) ** b); b ** f(a)"),
        ("f(a) @ b", "f(a) * b; f(a); b; f(a) @ b.mT; b @ f(a)"),
        ("f(a) // b", "f(a) % b; f(a) / b; f(a); b // f(a)"),
    ],
)
def test_what_may_go_wrong_at_an_operation(right, changes):
    """Beside twice or half of it, which stands at the end of some."""
    node = ast.parse(right, mode="eval").body
    found = _iter_operation_changes(node, {"a": torch.Tensor, "b": torch.Tensor})
    made = [ast.unparse(one.new) for one in found if one.name[-3:] not in ("led", "ved")]
    assert made == changes.split("; ")


# --- How a verdict looks ------------------------------------------------------------------------


def test_a_verdict_shows_mistake_and_example_in_text_and_in_html():
    found = check.attention(lambda Q, K, V, mask: torch.softmax(Q @ K.T + mask, -1) @ V)
    text = str(found)
    assert text == repr(found)
    assert text.startswith(
        "Not yet. The scores are not divided by √d_k.\n    for       Q = [[2 0 0 0]]"
    )
    expected = 1 / (1 + math.exp(-1))  # of the values 9 and 1, with scores 1 and 0
    assert f"expected  [[{1 + 8 * expected:.3g}]]" in text
    assert f"yours     [[{1 + 8 / (1 + math.exp(-2)):.3g}]]" in text
    shown = found._repr_html_()
    assert "<strong" in shown and "√d_k" in shown and "expected" in shown


def test_the_example_is_small_and_shows_the_mistake_rather_than_what_is_allowed():
    def over_tokens(x, gamma, beta):
        axis = 0 if x.dim() == 2 else -1
        mu = x.mean(axis, keepdim=True)
        return gamma * (x - mu) / x.std(axis, keepdim=True, correction=0) + beta

    assert "x = [[0 2] [4 8]]" in check.layer_norm(over_tokens).example[0]

    def largest_of_all(Q, K, V, mask):
        scores = Q @ K.T / Q.shape[1] ** 0.5 + mask
        powers = torch.exp(scores - scores.max())
        return powers / powers.sum(-1, keepdim=True) @ V  # NaN where nothing is seen: allowed

    def five_keys(Q, K, V, mask):
        head = torch.softmax(Q @ K.T / Q.shape[1] ** 0.5 + mask, -1) @ V
        return head + (len(K) == 5)

    assert "K = [[" in (shown := check.attention(five_keys).example[0]), shown
    assert shown.split("K = ")[1].split("  V")[0].count("]") == 5 + 1
    found = check.attention(largest_of_all)
    assert found.mistakes == ("largest of all",) and "Q = [[1000] [1]]" in found.example[0]


def test_an_error_about_shapes_comes_with_a_hint():
    def flat(x, gamma, beta):
        return gamma * (x - x.mean(-1)) / x.std(-1, correction=0) + beta

    assert "keepdim=True" in check.layer_norm(flat).text


def test_other_errors_come_with_a_hint():
    by_product = check.perplexity(lambda p: math.prod(p.tolist()) ** (-1 / len(p)))
    assert "add logarithms" in by_product.text
    both = check.cheapest_step(lambda v, e, m: e + (v[:, None] + m).min(dim=0))
    assert "take `.values`" in both.text


def test_a_script_prints_the_verdict_and_a_prompt_shows_it_by_itself(monkeypatch):
    out = io.StringIO()
    with redirect_stdout(out):
        check.causal_mask(lambda N: slp.causal_mask(N))
    assert out.getvalue().startswith("Right. It agrees with mask")
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    out = io.StringIO()
    with redirect_stdout(out):
        check.causal_mask(lambda N: slp.causal_mask(N))
    assert out.getvalue() == ""


def test_a_terminal_without_the_letters_gets_the_rest(monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    print_verdict(Verdict(False, "no √d_k"))
    narrow.flush()
    assert narrow.buffer.getvalue().decode() == f"Not yet. no ?d_k{chr(10)}"


def test_a_counterexample_is_written_with_the_digits_that_differ():
    found = check.layer_norm(
        lambda x, gamma, beta: 1.0002 * F.layer_norm(x, x.shape[-1:], gamma, beta, 0.0)
    )
    right, wrong = (line.split()[1:] for line in found.example if not line.startswith(("f", "s")))
    assert right != wrong


@pytest.mark.usefixtures("unchecked")
def test_a_loss_below_what_is_possible_is_no_success(recwarn):
    assert check.at_most(0.28, 0.29, floor=0.276)
    assert check.at_most(torch.tensor(0.28, requires_grad=True), 0.29) and not recwarn.list
    assert check.at_most(0.29, 0.29, floor=0.29).text == "0.290 is at most 0.29."
    said = {
        0.2912: "0.291 is above 0.29.",
        math.nan: "It is NaN: training diverged, and a lower learning rate may help.",
        torch.tensor(
            0.01
        ): "0.010 is below 0.276, and no model can be: the loop sees what it should "
        "predict, or measures something else.",
        "x": "Expected a number, got one of type str.",
        None: "Expected a number, got one of type NoneType.",
        torch.ones(2): "Expected a number, got one of type Tensor.",
    }
    for value, text in said.items():
        found = check.at_most(value, 0.29, floor=0.276)
        assert not found and found.text == text and found.example == found.mistakes == ()


def test_html_is_escaped_and_code_is_code():
    shown = Verdict(False, "take `a[<b>]` or `c`", ("<i>", "j"))._repr_html_()
    border = '<div class="slp-verdict" style="border-left:.25em solid {};padding:.3em .8em">'
    assert shown == (
        border.format("#c62828")
        + "<strong>Not yet.</strong> take <code>a[&lt;b&gt;]</code> or <code>c</code>"
        + '<pre style="margin:.4em 0 0;white-space:pre-wrap">&lt;i&gt;\nj</pre></div>'
    )
    right = Verdict(True, "It agrees.")._repr_html_()
    assert right == border.format("#2e7d32") + "<strong>Right.</strong> It agrees.</div>"


def test_the_table_is_one_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["check"])
    monkeypatch.delitem(sys.modules, "slp_transformer.check.__main__", raising=False)
    # What runpy compiles here checks shapes: kept, it would be found by whoever runs it next.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("slp_transformer.check", run_name="__main__")
    assert ended.value.code == 0
    known = sum(len(one.mistakes) for one in check.CHECKS.values())
    assert f"{len(check.CHECKS)} checks know {known} mistakes." in capsys.readouterr().out


def test_a_table_of_mistakes_is_lines_with_functions():
    def double(rows):
        return 2 * rows

    formulas, synonyms = {}, {}
    table = (
        "all rows: All rows are added up, which is one too many: rows[1:].",
        double,
        "all rows (twice): …",
        "sign [no · -1 (2)]: The sign is missing: it is −1.",
    )
    words = "All rows are added up, which is one too many: rows[1:]."
    named = {"all rows": words, "all rows (twice)": words, "sign": "The sign is missing: it is −1."}
    assert parse_mistake_table(table, formulas, synonyms) == named
    assert formulas == {"all rows": double}
    assert synonyms == {"sign": "no · -1 (2)"}


def test_no_table_has_two_mistakes_of_one_name():
    with pytest.raises(ValueError, match=r"Two mistakes are called 'all'\."):
        parse_mistake_table(["all: All.", "all: Each."], {}, {})


def test_a_function_in_a_table_takes_what_there_is():
    with pytest.raises(ValueError, match=r"double, 'all': nothing is called row\."):
        make_check("`ln`", lambda: [], "all: All.", lambda row, right: right)(double)
    assert "double" not in check.CHECKS


def double(rows):
    return 2 * rows


@pytest.mark.parametrize("module", sorted({one._solve.__module__ for one in check.CHECKS.values()}))
def test_each_line_of_a_table_ends_in_a_comma(module):
    """Without one, Python joins it with the next, and a mistake is gone."""
    source = Path(sys.modules[module].__file__).read_text("utf-8")
    words = [one for one in tokenize.generate_tokens(io.StringIO(source).readline)]
    words = [one for one in words if one.type != tokenize.NL]
    for one, following in pairwise(words):
        if one.type == following.type == tokenize.STRING:
            assert one.string.endswith((' "', " '")), f"line {one.start[0]}: {one.line}"


def test_the_size_is_said_by_which_every_number_is_too_large():
    found = check.qk_circuit(lambda W_Q, W_K: W_Q @ W_K.T / len(W_Q) ** 0.5)
    assert "every number is 1/√W_Q.shape[0] times the right one." in found.text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0), ("2", 2), ("−1.5", -1.5), ("0.333", 1 / 3), ("123", 123.4), ("1234.6", 1234.6),
        ("1.23e+06", 1.23e6), ("∞", math.inf), ("−∞", -math.inf), ("NaN", math.nan), ("1", 1.0),
        ("True", True), ("0.99999999", 0.99999999), ("0.999", 0.999), ("a", "a"),
        ("(2, [1 0.25])", (2, torch.tensor([1, 0.25]))), ("((1, 2), (3, 4))", [[1, 2], [3, 4]]),
        ("[[1 2] [3 4]]", torch.tensor([[1, 2], [3, 4]])), ("[]", torch.zeros(0)),
        (f"[{' '.join('0' * 30)}]", torch.zeros(30)), ("[31]", torch.zeros(31)),
    ],
)  # fmt: skip
def test_a_value_is_written_in_a_line(text, value):
    assert format_value(value) == text


def test_a_tensor_is_described_by_its_shape():
    assert format_value(torch.tensor([[1 / 3, 2.0]]), 5) == "[[0.33333 2]]"
    texts = [describe_shape(torch.zeros(shape)) for shape in ((), (0,), (1,), (3,), (2, 3))]
    assert texts == ["a single number", "0 numbers", "1 number", "3 numbers", "[2×3]"]


@pytest.mark.parametrize(
    ("expected", "actual", "lines"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), ["[1 2]", "[1 3]"]),
        (torch.tensor(1.0001), torch.tensor(1.0004), ["1.0001", "1.0004"]),
        (torch.zeros(5, 7), torch.eye(7)[:5] * -3, ["0 at [0, 0]", "−3"]),
        (torch.zeros(5, 7), torch.zeros(7, 5), ["[5×7]", "[7×5]"]),
        ((torch.ones(2), torch.ones(1)), (torch.ones(2), torch.zeros(1)), ["[1]", "[0]"]),
        (torch.zeros(5, 7), RaisedError("E"), ["[5×7]"]),
        (torch.tensor(3.0), RaisedError("E"), ["3"]),
    ],
)
def test_what_was_expected_and_what_came_stand_below_each_other(expected, actual, lines):
    heads = ("expected  ", "yours     ")
    found = format_difference(expected, actual)
    assert found == [head + line for head, line in zip(heads, lines, strict=False)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x + 0.5, "every number is 0.5 too large"),
        (lambda x: -3 * x, "every number is −3 times the right one"),
        (lambda x: x * len(x), "every number is x.shape[0] times the right one"),
        (lambda x: x / len(x) ** 2, "every number is 1/x.shape[0]² times the right one"),
        (lambda x: 2 * x * len(x) ** 0.5, "every number is 2 · √x.shape[0] times the right one"),
        (lambda x: torch.cat([x[:1] + 1, x[1:]]), "only the first number is wrong"),
        (lambda x: torch.cat([x[:-1], x[-1:] + 1]), "only the last number is wrong"),
        (lambda x: x**2, None),
        (lambda x: x[1:], None),
        (lambda x: x + 1e-9, "it is right but for rounding, which whole numbers don't have"),
        (lambda x: x.double() * torch.nan, HAS_NAN),
    ],
)
def test_a_relation_to_the_right_answers_is_found(change, words):
    right = [torch.arange(1, n).double() ** 2 / 3 for n in (3, 5, 8)]
    cases = [{"x": one} for one in right]
    assert describe_relation(right, [change(one) for one in right], cases) == words


def test_the_largest_tensors_of_a_case_are_shown_by_their_shapes():
    given = {"W": torch.zeros(MAX_SHOWN_IN_ALL), "x": torch.tensor([1.0, 2.0])}
    for case in (given, dict(reversed(given.items()))):
        said = format_inputs(case)
        assert f"W: shape [{MAX_SHOWN_IN_ALL}]" in said and "x = [1 2]" in said

    def wrong_for_three_features(x, W_1, b_1, W_2, b_2, W_3, b_3):
        return (F.silu(x @ W_1 + b_1) * (x @ W_2 + b_2)) @ W_3 + b_3 + (x.shape[-1] == 3)

    given = check.swiglu(wrong_for_three_features).example[0]
    assert "W_1 = [[" in given and given.count("shape [") == 2 and "W_3: shape [7×3]" in given


@pytest.mark.parametrize(
    ("name", "attempt", "words"),
    [
        (
            "draw",
            lambda y, dart: next((w for w in range(7) if dart < y[: w + 1].sum()), None),
            "It returns nothing for this input",
        ),
        (
            "cheapest_step",
            lambda v, e, m: (e + v[:, None] + m).min(0),
            "take `.values`, or use amin",
        ),
        (
            "takes_turns",
            lambda notes, places: notes[1:2],
            "It returns 1 number; it should return 3 numbers.",
        ),
        ("padded_loss", lambda U, ids, pad_id: joined(U, ids, pad_id), "before the shift"),
    ],
)
def test_what_is_wrong_in_rare_cases_or_in_form_is_told(name, attempt, words):
    found = getattr(check, name)(attempt)
    assert not found and words in found.text, found.text


def joined(U, ids, pad_id):
    """The loss after the padding was taken out, which joins the words on its two sides."""
    kept = [(logits[row != pad_id], row[row != pad_id]) for logits, row in zip(U, ids, strict=True)]
    return F.cross_entropy(
        torch.cat([u[:-1] for u, _ in kept]), torch.cat([row[1:] for _, row in kept])
    )


def test_a_check_that_fails_itself_blames_nobody():
    def broken(x, mistakes):
        return x - False

    made = Check(broken, "`ln`", lambda: [{"x": torch.ones(2)}], [])
    del check.CHECKS["broken"]
    with pytest.raises(BrokenCheck, match=r"The check of broken\(x\) fails itself"):
        made(lambda x: x)
