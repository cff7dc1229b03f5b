"""Checks for the block: layer norm, feedforward layers, the residual stream (chapters 2, 3, 10)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import (
    Formula,
    Inputs,
    Mistakes,
    check,
    option_for_mistake,
)
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.diagnosing.row_changes import center

EPSILONS = {"eps 1e-5": 1e-5, "eps 1e-6": 1e-6, "eps 1e-8": 1e-8, "eps 1e-12": 1e-12}


def _large_epsilons() -> list[str | Formula]:
    table: list[str | Formula] = []
    for eps in (0.1, 0.01, 1e-3):
        sentence = "ε is too large: the book has none, and PyTorch's is 1e-5, under the root."
        table += [f"large ε ({eps:g}): …" if table else f"large ε: {sentence}"]
        table += [_norm_with(eps), f"large ε ({eps:g}, outside): …", _norm_with(eps, outside=True)]
    return table


def _norm_with(eps: float, outside: bool = False) -> Formula:
    if outside:
        return lambda x, gamma, beta: gamma * center(x) / (_sigma(x) + eps) + beta
    return lambda x, gamma, beta: F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


def _sigma(x: Tensor) -> Tensor:
    return x.std(-1, correction=0, keepdim=True)


def _deviations(x: Tensor) -> Tensor:
    """x − μ in float32, as readers compute it: where only its rounding counts."""
    return center(x.float())


def _norm_cases(d: int = 0) -> list[Inputs]:
    draw = seeded_randn(21)
    d, own = d or 8, d > 0  # a module has a size of its own
    plain = torch.ones(d), torch.zeros(d)
    learned = torch.arange(1.0, d + 1), draw(d)
    row = vector(2, 4, 4, 4, 5, 5, 7, 9) if d == 8 else draw(d)
    cases: list[Inputs] = [
        (row, *plain),
        (row, *learned),
        (0.001 * draw(d), *plain),
        (torch.full((d,), 2.0), *learned),
        (10000 + torch.arange(float(d)), *plain),
        (draw(3, d) + 2, *plain),
        (5 * draw(3, d), *learned),
    ]
    small = matrix((0, 2), (4, 8)), torch.ones(2), torch.zeros(2)
    far = torch.eye(40)[3], torch.ones(40), torch.zeros(40)  # one that is far from all others
    return cases if own else [small, *cases, far]


@check(
    "`ln-mean` to `ln`",
    _norm_cases,
    "unbiased [1 for 0]: σ divides by d − 1, as Tensor.std() does by default; `ln-std` divides by "
    "d: write correction=0.",
    "eps outside: ε is added to the deviation, outside the root. The book has none; PyTorch adds "
    "it to the variance, under the root.",
    _norm_with(1e-5, outside=True),
    "eps outside (1e-6): …",
    _norm_with(1e-6, outside=True),
    "as in the Annotated Transformer: σ divides by d − 1, and ε is added outside the root, as in "
    "the Annotated Transformer. `ln-std` divides by d; PyTorch adds ε under the root.",
    lambda x, gamma, beta: gamma * center(x) / (x.std(-1, keepdim=True) + 1e-6) + beta,
    "as in the Annotated Transformer (1e-5): …",
    lambda x, gamma, beta: gamma * center(x) / (x.std(-1, keepdim=True) + 1e-5) + beta,
    "variance [no sqrt()]: The row is divided by its variance; the square root is missing.",
    "variance of d − 1: The row is divided by its variance, and that with d − 1: the square root "
    "is missing, and `ln-std` divides by d.",
    lambda x, gamma, beta: gamma * center(x) / x.var(-1, keepdim=True) + beta,
    "variance of d − 1 (and ε): …",
    lambda x, gamma, beta: gamma * center(x) / (x.var(-1, keepdim=True) + 1e-5) + beta,
    "mean kept [no − mu]: The mean is not subtracted.",
    "not divided [no / sigma]: The row is not divided by its standard deviation.",
    "all rows together: Mean and σ are those of the matrix; each row has its own.",
    lambda x, gamma, beta, solve: gamma * solve(x=x.flatten(), gamma=1, beta=0).view_as(x) + beta,
    "mean of all [mean over axis None]: The mean is the whole matrix's; each row has its own.",
    "σ of all [var over axis None]: σ is that of the whole matrix; each row has its own.",
    "over tokens: Mean and σ are taken over the tokens, not over the features of a row.",
    lambda x, gamma, beta, solve: gamma * solve(x=x.T, gamma=1, beta=0).T + beta,
    "gain on the offset [addition before multiplication]: γ multiplies β as well: multiply the "
    "row by γ first, then add β.",
    "root mean square: The mean is not subtracted: that is RMSNorm.",
    "divided by the length [gamma / √width]: The row is divided by its norm; σ is that over √d.",
    "mean deviation: The mean of |x − μ| is taken; σ is the root of the mean of squares.",
    lambda x, gamma, beta: gamma * (y := center(x)) / y.abs().mean(-1, keepdim=True) + beta,
    "to the range: The row is scaled to 0…1 by minimum and maximum; use mean and σ.",
    lambda x, gamma, beta: (
        gamma * (y := x - x.amin(-1, keepdim=True)) / y.amax(-1, keepdim=True) + beta
    ),
    "no brackets: Brackets are missing: subtract μ from the row, then divide by σ.",
    lambda x, gamma, beta: gamma * x - x.mean(-1, keepdim=True) / _sigma(x) + beta,
    "σ without the mean: σ is the root of the mean of x²; subtract μ first here, too.",
    lambda x, gamma, beta: gamma * center(x) / (x * x).mean(-1, keepdim=True).sqrt() + beta,
    "gain first: γ multiplies the row before it is normalized; multiply the result.",
    lambda x, gamma, solve: solve(x=gamma * x, gamma=1),
    "gain before the mean: γ multiplies the row before μ is subtracted; multiply the result.",
    lambda x, gamma, beta: (gamma * x - x.mean(-1, keepdim=True)) / _sigma(x) + beta,
    "gain + 1 [gamma and 1]: The gain is 1 + γ; here it is γ itself.",
    "gain summed: This is the dot product of γ and the row; γ multiplies elementwise.",
    lambda gamma, beta, solve: (solve(gamma=1, beta=0) @ gamma)[..., None] + beta,
    "gain summed (of a row): …",  # which stops for a matrix
    lambda gamma, beta, solve: solve(gamma=1, beta=0) @ gamma + beta,
    "gain summed (γ first): …",
    lambda gamma, beta, solve: gamma @ solve(gamma=1, beta=0) + beta,
    *_large_epsilons(),
    "multiplied by σ [1 by the variance]: The row is multiplied by σ; divide by it.",
    "one more in the variance [-1 for 0]: The variance divides by d + 1; it should divide by d.",
    "μ too late: μ is subtracted after the division by σ; subtract it before.",
    lambda x, gamma, beta: gamma * (x / _sigma(x) - x.mean(-1, keepdim=True)) + beta,
    "median: The median is subtracted; subtract the mean.",
    lambda x, gamma, beta: gamma * (x - x.median(-1, keepdim=True).values) / _sigma(x) + beta,
    "normalized twice: The row is normalized twice.",
    lambda right, solve: solve(x=right),
    "not squared: The square is missing: the mean of x − μ is 0, but for rounding; σ is the root "
    "of the mean of squares.",
    lambda x, gamma, beta: gamma * (y := _deviations(x)) / y.mean(-1, keepdim=True).sqrt() + beta,
    "not squared (divided by d): …",
    lambda x, gamma, beta: (
        gamma * (y := _deviations(x)) / (y.sum(-1, keepdim=True) / y.shape[-1]).sqrt() + beta
    ),
    "not squared (no root): …",
    lambda x, gamma, beta: gamma * (y := _deviations(x)) / y.mean(-1, keepdim=True) + beta,
    "mean not squared: The variance is the mean of squares minus μ; subtract the square of μ.",
    lambda x, gamma, beta: (
        gamma * center(x) / ((x * x).mean(-1, keepdim=True) - x.mean(-1, keepdim=True)).sqrt()
        + beta
    ),
    accepted=tuple(EPSILONS),
    sizes_from_module=lambda shapes, module: {"d": (shapes.get("gamma") or shapes["beta"])[0]},
)
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `layer_norm(x, gamma, beta)`: it takes a row x [d] or rows [N×d].

    Without ε, as in the book, or with a small one under the root, as in PyTorch.
    """
    mu = x.mean(-1, keepdim=True)
    variance = x.var(-1, correction=0, keepdim=True)
    if "root mean square" in mistakes:
        mu, variance = 0 * mu, (x * x).mean(-1, keepdim=True)
    sigma = (variance + option_for_mistake(mistakes, EPSILONS, 0.0)).sqrt()
    return gamma * ((x - mu) / sigma) + beta


def _ffn_cases(d: int = 0, d_ff: int = 0) -> list[Inputs]:
    draw, own = seeded_randn(22), d > 0  # a module has sizes of its own
    d, d_ff = d or 3, d_ff or 7
    W_1, W_2, b_2 = matrix((1,), (-1,)), matrix((2, 3)), vector(10, 20)
    given = (((4, 2), 1), ((2, 4), 1), ((40, 2), 1), ((0, 0), 1000))
    hand = [(vector(*x), W_1, vector(b), W_2, b_2) for x, b in given]

    def made(*tokens: int) -> Inputs:
        weights = draw(d, d_ff), draw(d_ff), draw(d_ff, d), draw(d)
        return draw(*tokens, d), *weights

    return ([] if own else hand) + [made(), made(5)]


@check(
    "`ffn`",
    _ffn_cases,
    "no ReLU [no relu()]: The activation is missing: between the matrices is a ReLU.",
    "ReLU at the end: ReLU comes after W_2; it should come between the two matrices.",
    lambda x, W_1, b_1, W_2, b_2: torch.relu((x @ W_1 + b_1) @ W_2 + b_2),
    "ReLU before b_1 [relu first]: ReLU comes before b_1 is added.",
    "b_2 in the matrix [addition before product]: b_2 is added to W_2; add it to the product.",
    "GELU [gelu for relu]: This uses GELU, as in GPT-2; the equation has ReLU.",
    "Swish [silu for relu]: This uses Swish; the equation has ReLU.",
    "sigmoid [sigmoid for relu]: This uses a sigmoid; the equation has ReLU.",
    "tanh [tanh for relu]: This uses tanh; the equation has ReLU.",
    "absolute value [abs for relu]: This uses |x|; ReLU gives 0 below 0.",
    "ReLU6 [relu6 for relu]: This uses ReLU6, which ends at 6; the equation has ReLU.",
    "leaky [leaky_relu for relu]: This uses LeakyReLU; the equation has ReLU.",
    "then + x: The input is added at the end: that is the block's work, not the layer's.",
    "softplus [softplus for relu]: This uses softplus, log(1 + exp); the equation has ReLU.",
    "squared: The ReLU is squared; use it as it is.",
    lambda x, W_1, b_1, W_2, b_2: torch.relu(x @ W_1 + b_1) ** 2 @ W_2 + b_2,
    "ReLU of x: ReLU is applied to x; apply it to x W_1 + b_1.",
    lambda x, W_1, b_1, W_2, b_2: (torch.relu(x) @ W_1 + b_1) @ W_2 + b_2,
    "cut above: Numbers above 0 are cut; ReLU cuts those below 0.",
    lambda x, W_1, b_1, W_2, b_2: (x @ W_1 + b_1).clamp(max=0) @ W_2 + b_2,
    sizes_from_module=lambda shapes, module: dict(
        zip(("d", "d_ff"), shapes.get("W_1", (3, 7)), strict=True)
    ),
)
def ffn(x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    """Check `ffn(x, W_1, b_1, W_2, b_2)`: it takes a row x [d] or rows [N×d]."""
    return torch.relu(x @ W_1 + b_1) @ W_2 + b_2


@check(
    "`t4` to `h`",
    _ffn_cases,
    "as before: The layer's output is unchanged: both W_2 and b_2 must become 0.",
    lambda X, W_1, b_1, W_2, b_2: X + torch.relu(X @ W_1 + b_1) @ W_2 + b_2,
    "b_2 left: b_2 is still added to every row.",
    lambda X, b_2: X + b_2,
    "W_2 left: The product with W_2 is still added.",
    lambda X, W_1, b_1, W_2: X + torch.relu(X @ W_1 + b_1) @ W_2,
    "X = 0: The residual stream is lost: X itself has to stay.",
    "subtracted: −1 subtracts the layer's output; with 0, nothing is added.",
    lambda X, W_1, b_1, W_2, b_2: X - torch.relu(X @ W_1 + b_1) @ W_2 - b_2,
)
def unchanged(X: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    """Check `unchanged(X, W_1, b_1, W_2, b_2)`: a feedforward half that passes X through."""
    return X


def _gated_cases() -> list[Inputs]:
    draw = seeded_randn(23)

    def made(*tokens: int) -> Inputs:
        first, second = (draw(3, 7), draw(7)), (draw(3, 7), draw(7))
        return draw(*tokens, 3), *first, *second, draw(7, 3), draw(3)

    one, last = (matrix((1,)), vector(0), matrix((0,)), vector(2)), (matrix((1,)), vector(5))
    return [*((vector(x), *one, *last) for x in (1, 100)), made(), made(5)]


GATE_MISTAKES = (
    "both bent: Swish is applied to both products; it belongs only to the first.",
    "sigmoid [sigmoid for silu]: The gate is a sigmoid alone: Swish is x times its sigmoid.",
    "ReLU [relu for silu]: The gate is a ReLU; it should be Swish.",
    "GELU [gelu for silu]: The gate is a GELU; it should be Swish.",
    "no bend [no silu()]: There is no activation function: the gate should go through Swish.",
    "added [+ for ·]: The two products are added; they should be multiplied elementwise.",
    "tanh [tanh for silu]: The gate is a tanh; it should be Swish.",
    "minus in the sigmoid: The sign in the sigmoid is reversed: Swish is x σ(x), not x σ(−x).",
    "gate squared: The gate is multiplied once too often: Swish is x σ(x).",
    "sigmoid of the second: The second product goes through a sigmoid; it is used as it is.",
    "no gate [no · second]: The second product is not used; multiply it by the gate.",
)


@check(
    "`swiglu`",
    _gated_cases,
    *GATE_MISTAKES,
    "gate on the other side: Swish is applied to the second product, not the first.",
    lambda W_1, b_1, W_2, b_2, solve: solve(W_1=W_2, b_1=b_2, W_2=W_1, b_2=b_1),
    "W_1 twice: Both factors come from W_1 and b_1; the second is x W_2 + b_2.",
    lambda x, W_1, b_1, W_3, b_3: F.silu(x @ W_1 + b_1) * (x @ W_1 + b_1) @ W_3 + b_3,
    "no biases: The biases are not added.",
    lambda b_1, b_2, b_3, solve: solve(b_1=0 * b_1, b_2=0 * b_2, b_3=0 * b_3),
    "bent late [silu last]: Swish comes after the product; it belongs to the first alone.",
    "bent early: Swish is applied to x; apply it to the first product.",
    lambda x, W_1, b_1, W_2, b_2, W_3, b_3: (F.silu(x) @ W_1 + b_1) * (x @ W_2 + b_2) @ W_3 + b_3,
    "b_1 once: b_1 is added in one of the two factors of Swish alone; both are of x W_1 + b_1.",
    lambda x, W_1, b_1, W_2, b_2, W_3, b_3: (
        (x @ W_1 + b_1) * torch.sigmoid(x @ W_1) * (x @ W_2 + b_2) @ W_3 + b_3
    ),
    "b_2 too late: b_2 is added to the product of the two: put x W_2 + b_2 in brackets.",
    lambda x, W_1, b_1, W_2, b_2, W_3, b_3: (F.silu(x @ W_1 + b_1) * (x @ W_2) + b_2) @ W_3 + b_3,
)
def swiglu(
    x: Tensor,
    W_1: Tensor,
    b_1: Tensor,
    W_2: Tensor,
    b_2: Tensor,
    W_3: Tensor,
    b_3: Tensor,
    mistakes: Mistakes,
) -> Tensor:
    """Check `swiglu(x, W_1, b_1, W_2, b_2, W_3, b_3)`: it takes a row or rows, with β = 1."""
    first, second = x @ W_1 + b_1, x @ W_2 + b_2
    second = F.silu(second) if "both bent" in mistakes else second
    second = torch.sigmoid(second) if "sigmoid of the second" in mistakes else second
    second = first * second if "gate squared" in mistakes else second
    if "minus in the sigmoid" in mistakes:
        return first * torch.sigmoid(-first) * second @ W_3 + b_3
    return F.silu(first) * second @ W_3 + b_3


@dataclass(frozen=True)
class LabeledFunction:
    """A sublayer that is given to a submission: a function that messages call `label`."""

    label: str
    f: Callable[..., Tensor]

    def __call__(self, *inputs: Any) -> Tensor:
        """Apply the function."""
        return self.f(*inputs)

    def __str__(self) -> str:
        return self.label


def running_mean_rows(X: Tensor) -> Tensor:
    """Average all rows so far, as attention with equal weights would."""
    return X.cumsum(-2) / torch.arange(1, X.shape[-2] + 1, dtype=X.dtype)[:, None]


def normalize_rows(X: Tensor) -> Tensor:
    """Give each row mean 0 and deviation 1."""
    return F.layer_norm(X, X.shape[-1:])


def _block_cases() -> list[Inputs]:
    draw = seeded_randn(24)
    layers = (
        LabeledFunction("1.5 times the mean so far", lambda X: running_mean_rows(X) * 1.5),
        LabeledFunction("x² + 1", lambda X: X * X + 1),
        LabeledFunction("layer norm", normalize_rows),
        LabeledFunction("layer norm, times 3", lambda X: 3 * normalize_rows(X)),
    )
    gain = torch.tensor((1.0, 2, 4))
    uneven = LabeledFunction(
        "layer norm, times (1, 2, 4)", lambda X: gain.to(X) * normalize_rows(X)
    )
    given = [(X, *layers) for X in (matrix((2, 4), (6, 0)), draw(5, 3), 9 * draw(2, 7))]
    return [*given, (draw(3, 3), *layers[:2], uneven, layers[3])]


@check(
    "`t1` to `h`",
    _block_cases,
    "post-norm: This is post-norm, the order of 2017: LayerNorm(X + sublayer(X)). The book's "
    "block normalizes the input of a sublayer, not the residual stream.",
    lambda X, attention, ffn, norm_1, norm_2: norm_2((O := norm_1(X + attention(X))) + ffn(O)),
    "no first residual [no + X]: The attention's output replaces the stream; add it.",
    "no first residual (X at the end): …",
    lambda X, attention, ffn, norm_1, norm_2: X + ffn(norm_2(attention(norm_1(X)))),
    "no second residual [no + O]: The feedforward layer's output replaces the stream; add it.",
    "norm on the residual: The normalized rows T¹ are added back; add the stream X itself.",
    lambda X, norm_1, solve: solve(X=norm_1(X), norm_1=lambda T: T),
    "second norm on the residual: The normalized rows are added back; add the stream T³ (O).",
    lambda X, attention, ffn, norm_1, norm_2: (T := norm_2(X + attention(norm_1(X)))) + ffn(T),
    "both norms on the residual: The normalized rows are added back twice; add X, and then T³ (O).",
    lambda solve: solve("norm on the residual", "second norm on the residual"),
    "no residuals: The sublayers' outputs replace the stream; add them to it.",
    lambda X, attention, ffn, norm_1, norm_2: ffn(norm_2(attention(norm_1(X)))),
    "X instead of O: The last step adds X, not T³ (O), so attention's output is lost.",
    lambda X, attention, ffn, norm_1, norm_2: X + ffn(norm_2(X + attention(norm_1(X)))),
    "no norm_1: Attention reads the stream itself; it should read its layer norm.",
    "no norm_2: The feedforward layer reads T³ (O); it should read its norm, T⁴.",
    "norm_1 for norm_2: Both halves use the first norm; each has its own gain and offset.",
    "parallel: The feedforward layer reads X, not T³ (O), which has attention's output.",
    lambda X, attention, ffn, norm_1, norm_2: X + attention(norm_1(X)) + ffn(norm_2(X)),
    "attention and ffn swapped: The feedforward layer comes before attention.",
    "no feedforward [no + ffn(norm_2(O))]: The feedforward half is missing.",
    "then + X: X is added twice: T³ (O) contains it already.",
    "halves swapped: The feedforward half comes before attention's.",
    lambda X, attention, ffn, norm_1, norm_2: (O := (X + ffn(norm_2(X)))) + attention(norm_1(O)),
    "ffn on attention alone: The feedforward layer reads attention's output alone; it should read "
    "T³ (O), which has X as well.",
    lambda X, attention, ffn, norm_1, norm_2: X + (T := attention(norm_1(X))) + ffn(norm_2(T)),
    "norm after the sublayer: The norm comes after the sublayer; it belongs before.",
    lambda X, attention, ffn, norm_1, norm_2: (O := X + norm_1(attention(X))) + norm_2(ffn(O)),
)
def block(X: Tensor, attention: Any, ffn: Any, norm_1: Any, norm_2: Any) -> Tensor:
    """Check `block(X, attention, ffn, norm_1, norm_2)`: its sublayers are given as functions."""
    O = X + attention(norm_1(X))
    return O + ffn(norm_2(O))
