"""Checks for what training lowers and how it is measured: cross-entropy, perplexity, LoRA (7)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Formula, Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector

SHIFTS = (
    "not shifted: The targets are not shifted: position t predicts the next word, w_{t+1}.",
    "shifted backwards: The targets are shifted backwards: position t predicts the word before.",
)
LOG_EPSILONS = {
    "ε in the logarithm" + f" ({eps:g})" * (eps != 1e-8): eps
    for eps in (1e-8, 1e-12, 1e-10, 1e-9, 1e-7, 2**-23, 1e-6, 1e-5)
}
LOG_MISTAKES = (
    "plain logarithm: The softmax rounds a small probability to 0, with log −∞: use log_softmax.",
    "ε in the logarithm: A small number is added to y before the logarithm (or y is cut there), "
    "which hides how improbable a word is: use the logarithm of softmax in one step, log_softmax, "
    "which needs none.",
    *(f"{name}: …" for name in LOG_EPSILONS if name.endswith(")")),
)
LOSS_MISTAKES: tuple[str | Formula, ...] = (
    "summed [sum for mean]: The losses are added up; the loss is their mean.",
    "softmax twice: The softmax is taken twice: cross_entropy expects logits, not probabilities.",
    "then minus: The sign is missing: the loss is minus the logarithm, 0 or more.",
    "base 2: The logarithm has base 2; the book's loss is in nats, base e.",
    lambda right: right / math.log(2),
    "base 10: The logarithm has base 10; the book's loss is in nats, base e.",
    lambda right: right / math.log(10),
    "probability: This is the mean probability; the loss is minus the mean of its logarithms.",
    "log of the mean: The mean is taken before the logarithm; take the logarithm first.",
    "logits [no log_softmax()]: The right word's logit is taken as it is, without log softmax.",
    "then exp: This is the perplexity, exp of the loss.",
    "label smoothing: A tenth of the loss is that of all words alike: leave out label_smoothing.",
    "no logarithm [softmax for log_softmax]: The logarithm is missing: these are probabilities; "
    "use log softmax.",
    "overflow: Large logits overflow: exp of them is ∞, and ∞/∞ is not a number. Use log_softmax, "
    "or subtract the largest first.",
    *LOG_MISTAKES,
)


def log_probabilities(U: Tensor, mistakes: Mistakes) -> Tensor:
    """The logarithms of the softmax, or what mistakes make of them."""
    if "plain logarithm" in mistakes:  # −∞ where float32 rounds a probability to 0
        return torch.softmax(U.float(), -1).log()
    if "overflow" in mistakes:
        return ((powers := U.float().exp()) / powers.sum(-1, keepdim=True)).log()
    if added := mistakes & LOG_EPSILONS.keys():
        return (torch.softmax(U, -1) + LOG_EPSILONS[min(added)]).log()
    log_y = torch.log_softmax(torch.softmax(U, -1) if "softmax twice" in mistakes else U, -1)
    smoothed = 0.9 * log_y + 0.1 * log_y.mean(-1, keepdim=True)
    return smoothed if "label smoothing" in mistakes else log_y


def _shifted_logits_and_targets(
    U: Tensor, ids: Tensor, mistakes: Mistakes
) -> tuple[Tensor, Tensor]:
    """The logits that predict, and the words that they should predict."""
    if "not shifted" in mistakes:
        return U, ids
    if "shifted backwards" in mistakes:
        return U[..., 1:, :], ids[..., :-1]
    return U[..., :-1, :], ids[..., 1:]


def _mean(each: Tensor, mistakes: Mistakes) -> Tensor:
    """The mean of minus the logarithms, or what a mistake makes of it."""
    if mistakes & {"probability", "log of the mean"}:
        mean = each.exp().mean()
        return mean if "probability" in mistakes else -mean.log()
    return -each.mean()


def _loss_cases() -> list[Inputs]:
    draw = seeded_randn(51)
    by_hand = matrix((0, math.log(3)), (math.log(4), 0), (0, 0))
    given = [(by_hand, [0, 1, 0]), (2 * draw(5, 7), [3, 1, 6, 0, 2])]
    given.append((4000 * draw(3, 5), [4, 1, 1]))
    return [(U, torch.tensor(ids)) for U, ids in given]


@check(
    "`ce-mean`",
    _loss_cases,
    *SHIFTS,
    *LOSS_MISTAKES,
    "other axis [log_softmax over axis 0]: The softmax runs over the positions; it should run "
    "over the words.",
    "other axis (last row too): …",
    lambda U, ids: -torch.log_softmax(U, 0)[:-1].gather(-1, ids[1:, None]).mean(),
    "two words on [begins late]: The targets are shifted by two: position t predicts the next "
    "word, w_{t+1}.",
    "first word next: The last position counts, with the first word as its target; leave it out.",
    lambda U, ids: -torch.log_softmax(U, -1).gather(-1, ids.roll(-1)[:, None]).mean(),
    "first left out [U moved up]: The first position is left out, but each word is still compared "
    "with its own logits: U[t] predicts ids[t + 1].",
    "last word again: The last position counts, with the last word as its target; leave it out.",
    lambda U, ids: (
        -torch.log_softmax(U, -1).gather(-1, torch.cat([ids[1:], ids[-1:]])[:, None]).mean()
    ),
    "mean over all words [log y / width]: The mean also runs over the words of the vocabulary; a "
    "position has one loss, that of the word that came next.",
    "last position counted [one more in mean]: The sum is divided by N; N − 1 have a next word.",
    "first word not predicted: The first loss is left out: U[0] predicts ids[1].",
    lambda U, ids, solve: solve(U=U[1:], ids=ids[1:]),
    "last alone [last row of the losses of the words]: Only the last word's loss is taken; take "
    "the mean over all that came next.",
    "returned too early [first row of the losses of the words]: Only the first word's loss is "
    "left: return after the loop, not in it.",
    "returned too early (divided): …",
    lambda U, ids, solve: solve(U=U[:2], ids=ids[:2]) / (len(ids) - 1),
    "mean of 1 − p: The mean of 1 − p is taken; the loss of a word is −log p.",
    lambda U, ids: 1 - U[:-1].softmax(-1).gather(-1, ids[1:, None]).mean(),
    "divided by |V|: The sum is divided by the size of the vocabulary; divide by the number of "
    "words that came next.",
    lambda U, ids, right: right * (len(ids) - 1) / U.shape[1],
)
def next_token_loss(U: Tensor, ids: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `next_token_loss(U, ids)`: the mean loss of a text [N] from its logits [N×|V|].

    U[t] are the logits after ids[t], so the last of them have no word to predict.
    """
    used, targets = _shifted_logits_and_targets(U, ids, mistakes)
    each = log_probabilities(used, mistakes).gather(-1, targets[:, None])
    return _mean(each, mistakes)


def _padded_cases() -> list[Inputs]:
    draw = seeded_randn(52)
    by_hand = vector(0, 0, 0, math.log(3), 0, 0, 0, 0, 0, 0, 9, 0).view(2, 3, 2)
    given = [
        (by_hand, [[1, 1, 1], [1, 1, 0]], 0),
        (2 * draw(2, 5, 7), [[3, 1, 6, 2, 2], [5, 3, 0, 0, 0]], 0),
        (draw(1, 3, 5), [[1, 0, 3]], 4),
        (draw(1, 5, 5), [[3, 0, 1, 4, 2]], 0),
        (draw(1, 4, 5), [[2, 2, 3, 1]], 2),
        (4000 * draw(1, 3, 5), [[4, 1, 1]], 0),
    ]
    return [(U, torch.tensor(ids), pad_id) for U, ids, pad_id in given]


@check(
    "`ce-mean`",
    _padded_cases,
    *SHIFTS,
    *LOSS_MISTAKES,
    "padding counted: Padding counts as a target; it should not.",
    lambda solve: solve(pad_id=-1),
    "padding dropped first: Padding is taken out before the shift, so that words that do not "
    "follow each other become neighbors: shift first, and then leave padding out.",
    lambda U, ids, pad_id: next_token_loss.solve(U[ids != pad_id], ids[ids != pad_id]),
    "padding dropped first (in each text): …",
    lambda U, ids, pad_id: F.cross_entropy(
        torch.cat([u[row != pad_id][:-1] for u, row in zip(U, ids, strict=True)]),
        torch.cat([row[row != pad_id][1:] for row in ids]),
    ),
    "padding in the mean: Padding adds nothing to the sum, but the mean still divides by it.",
    lambda U, ids, pad_id, right: right * (ids[:, 1:] != pad_id).to(U).mean(),
    "divided by all words: The sum is divided by all words; a text's first is not predicted.",
    lambda ids, pad_id, right: right * (ids[:, 1:] != pad_id).sum() / (ids != pad_id).sum(),
    "divided by the texts: The losses are added up and divided by the number of texts; divide by "
    "the number of words that count.",
    lambda ids, pad_id, right: right * (ids[:, 1:] != pad_id).sum() / len(ids),
    "divided by the positions: The losses are added up and divided by the number of all positions; "
    "divide by the number of words that count.",
    lambda ids, pad_id, right: right * (ids[:, 1:] != pad_id).sum() / ids.numel(),
    "across texts: A text's last position predicts the first word of the next; shift each.",
    lambda U, ids, solve: solve(U=U.reshape(1, -1, U.shape[-1]), ids=ids.reshape(1, -1)),
    "padding alone: The loss is taken where the target is padding; take it where it is not.",
    lambda U, ids, pad_id: F.cross_entropy(
        U[:, :-1].flatten(0, 1), ids[:, 1:].where(ids[:, 1:] == pad_id, -100).flatten()
    ),
    "mean of means: Each text's mean is taken first; average over all tokens alike.",
    lambda U, ids, solve: torch.stack(
        [solve(U=U[b : b + 1], ids=ids[b : b + 1]) for b in range(len(U))]
    ).mean(),
    "0 as padding [pad_id = 0]: Tokens with id 0 are left out; padding has the id `pad_id`.",
    "padding judged by the input: Padding is left out by the inputs; go by the targets.",
    lambda U, ids, pad_id: F.cross_entropy(
        U[:, :-1].flatten(0, 1), ids[:, 1:].where(ids[:, :-1] != pad_id, -100).flatten()
    ),
    "words on both sides: A position counts only if its input is no padding; go by the target.",
    lambda ids, pad_id, solve: solve(
        ids=torch.cat([ids[:, :1], ids[:, 1:].where(ids[:, :-1] != pad_id, pad_id)], 1)
    ),
    "logits 0 at padding: The logits at padding are set to 0, which costs log |V|; leave these "
    "positions out.",
    lambda U, ids, pad_id: F.cross_entropy(
        (U[:, :-1] * (ids[:, 1:] != pad_id)[..., None]).flatten(0, 1), ids[:, 1:].flatten()
    ),
    "after the first: All words after a text's first padding are left out; it may be anywhere.",
    lambda ids, pad_id, solve: solve(
        ids=torch.cat(
            [ids[:, :1], (t := ids[:, 1:]).where((t == pad_id).cumsum(1) == 0, pad_id)], dim=1
        )
    ),
    "padding impossible: The logit of padding is −∞; leave the logits as they are.",
    lambda U, pad_id, solve: solve(U=U.index_fill(-1, torch.tensor(pad_id), -math.inf)),
    "view for transpose: A view or reshape moves the words' axis, so that logits of different "
    "positions mix: transpose, or flatten batch and positions.",
    lambda U, ids, pad_id: F.cross_entropy(
        U[:, :-1].reshape(len(U), U.shape[2], -1), ids[:, 1:], ignore_index=pad_id
    ),
    "batch for time: The logits are read position by position, the targets text by text: keep the "
    "order of their axes alike.",
    lambda U, ids, pad_id: F.cross_entropy(
        U[:, :-1].transpose(0, 1).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad_id
    ),
)
def padded_loss(U: Tensor, ids: Tensor, pad_id: int, mistakes: Mistakes) -> Tensor:
    """Check `padded_loss(U, ids, pad_id)`: the mean loss of a batch [B×N] with padding in it."""
    used, targets = _shifted_logits_and_targets(U, ids, mistakes)
    each = log_probabilities(used, mistakes).gather(-1, targets[..., None])[..., 0]
    return _mean(each[targets != pad_id], mistakes)


def _masked_cases() -> list[Inputs]:
    draw, large = seeded_randn(53), matrix((1000, 0), (0, 1))
    by_hand = matrix((0, math.log(3)), (2, 0), (math.log(7), 0))
    given = [(by_hand, [1, 0, 0], [0, 2]), (2 * draw(5, 7), [3, 1, 6, 0, 2], [1, 3])]
    given += [(2 * draw(7, 5), [4, 1, 1, 0, 2, 3, 0], [5])]
    given += [(large, [0, 1], [0]), (large, [1, 1], [0])]
    return [(U, torch.tensor(x), torch.tensor(M)) for U, x, M in given]


@check(
    "`mlm-loss`",
    _masked_cases,
    *LOSS_MISTAKES,
    "all positions [mean row of the losses of the words]: All positions count; only the masked "
    "ones should.",
    "the others: The positions that are not masked count; the masked ones should.",
    lambda x, M, solve: solve(M=torch.tensor([i for i in range(len(x)) if i not in M])),
    "next word: Position i is compared with the next word; the masked word is its own.",
    lambda x, solve: solve(x=x.roll(-1)),
    "next word (or the last): …",
    lambda x, solve: solve(x=torch.cat([x[1:], x[-1:]])),
    "divided by N: The sum is divided by N; divide it by the number of masked positions.",
    lambda x, M, right: right * len(M) / len(x),
    "other axis [log_softmax over axis 0]: The softmax runs over the positions; it should run "
    "over the words.",
    "words counted from M: The first words are used; the word of a masked position i is x[i].",
    lambda U, x, M: -torch.log_softmax(U, -1)[M, x[: len(M)]].mean(),
    "logits before [U moved down]: The logits of position i − 1 are used; the masked word's own "
    "are at position i.",
    "logits before (or the first): …",
    lambda U, x, M: -torch.log_softmax(U, -1)[(M - 1).clamp(min=0), x[M]].mean(),
    "all pairs: Each masked position is compared with all masked words; each has one of its own: "
    "log_y[M, x[M]].",
    lambda U, x, M: -U.log_softmax(-1)[M][:, x[M]].mean(),
    "own guess: The most probable word is taken; take the word of the text, x[i].",
    lambda U, M: -U.log_softmax(-1)[M].amax(-1).mean(),
    "divided by |V|: The sum is divided by |V|; divide it by the number of masked positions.",
    lambda U, M, right: right * len(M) / U.shape[1],
)
def masked_word_loss(U: Tensor, x: Tensor, M: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `masked_word_loss(U, x, M)`: the mean loss of the words x [N] at the positions in M.

    U [N×|V|] are the logits of a bidirectional encoder that has read [MASK] at these positions.
    """
    each = log_probabilities(U, mistakes).gather(-1, x[:, None])
    return _mean(each[M], mistakes)


def _perplexity_cases() -> list[Inputs]:
    given = [(0.5, 0.5), (0.25, 0.5, 0.5), (1e-4, 2e-4, 5e-6, 1e-7), (1e-30,) * 20]
    return [(torch.tensor(one, dtype=torch.float64),) for one in given]


@check(
    "`perplexity`",
    _perplexity_cases,
    "no root [sum for mean]: The T-th root is missing: 1/P(text) grows with its length.",
    "square root: The square root is taken; it should be the T-th root.",
    lambda probabilities: (1 / probabilities).prod() ** 0.5,
    "then inverse: This is the mean probability, P to the 1/T; perplexity is one over it.",
    "then log: This is the cross-entropy; perplexity is exp of it.",
    "T − 1 [one less in mean]: The sum is divided by T − 1; all T words have a probability here.",
    "mean of inverses: The mean of 1/p is taken; take exp of the mean of −log p.",
    lambda probabilities: (1 / probabilities).mean(),
    "inverse of the mean [mean of probabilities]: One over the mean of p is taken; take exp of "
    "the mean of −log p.",
    "bases mixed [log2 for log]: The logarithm has base 2, but exp undoes base e.",
    "precedence: The power binds before the division: write ** (-1 / T).",
    lambda probabilities: probabilities.prod() ** (-1) / len(probabilities),
    "base 10 undone: The logarithm has base e, but the power has base 10.",
    lambda probabilities: 10 ** (-probabilities.log().mean()),
    "entropy: The logarithms are weighted by p, as in an entropy; take their plain mean.",
    lambda probabilities: (-(probabilities * probabilities.log()).sum()).exp(),
    "base 2 undone [exp2 for exp]: The logarithm has base e, but the power has base 2.",
    "ε in the logarithm: A small number is added to the probabilities, which hides how improbable "
    "a word is; take their logarithms as they are.",
    lambda probabilities: (-(probabilities + 1e-8).log().mean()).exp(),
    "ε in the logarithm (1e-10): …",
    lambda probabilities: (-(probabilities + 1e-10).log().mean()).exp(),
    "ε in the logarithm (1e-12): …",
    lambda probabilities: (-(probabilities + 1e-12).log().mean()).exp(),
    "underflow: Small probabilities, or their product, are rounded to 0: add the logarithms of "
    "the probabilities as they are.",
    lambda probabilities: probabilities.prod() ** (-1 / len(probabilities)),
    "no logarithm [exp of probabilities]: The logarithm is missing: average −log p.",
    "harmonic mean: This is the probabilities' harmonic mean; take exp of the mean of −log p.",
    lambda probabilities: 1 / (1 / probabilities).mean(),
    "least probable: This is 1 over the smallest probability; take exp of the mean −log p.",
    lambda probabilities: 1 / probabilities.min(),
    "first left out: The first word is left out; all of them have a probability here.",
    lambda probabilities, solve: solve(probabilities=probabilities[1:]),
    "fourth root: The root is always the 4th; it is the T-th, of as many words as there are.",
    lambda probabilities: (-probabilities.log().sum() / 4).exp(),
)
def perplexity(probabilities: Tensor) -> Tensor:
    """Check `perplexity(probabilities)` of a text, from the probability of each of its words."""
    return (-probabilities.log().mean()).exp()


@check(
    "`perplexity`",
    lambda: [(torch.tensor(loss),) for loss in (0.0, math.log(8), 1.25, 4.0)],
    "base 2 [exp2 for exp]: The base is 2; the loss is in nats, so the base is e.",
    "then inverse: The sign is reversed: perplexity is exp of the loss, 1 or more.",
    "logarithm: The logarithm is taken; perplexity undoes it with exp.",
    lambda loss: loss.log(),
    "base 10: The base is 10; the loss is in nats, so the base is e.",
    lambda loss: 10**loss,
    "then log: The loss is returned as it is.",
    "1 by the loss: This is 1 divided by the loss; perplexity is exp of the loss.",
    lambda loss: 1 / loss,
)
def perplexity_of_loss(loss: Tensor) -> Tensor:
    """Check `perplexity_of_loss(loss)`: the perplexity of a text with this mean loss, in nats."""
    return loss.exp()


ADAPTER_MISTAKES = (
    "no scale [no · scale]: The scale α/r is missing.",
    "scaled by α [no / A.shape[1]]: What the adapter adds is multiplied by α; it should be by α/r.",
    "scaled by the root [A · √width]: What the adapter adds is multiplied by α/√r, not α/r.",
    "−A: The adapter is subtracted; add it.",
    "r is d [W in a place]: The scale divides by B's number of columns, d; r is A's.",
)


def _lora_cases() -> list[Inputs]:
    draw = seeded_randn(53)

    def made(k: int, d: int, r: int, alpha: float) -> Inputs:
        return draw(k), draw(k, d), draw(k, r), draw(r, d), alpha

    hand = vector(1), matrix((1,)), matrix((2,)), matrix((3,))
    others = [made(5, 3, 2, 2.0), made(5, 7, 2, 8.0), made(2, 2, 2, 3.0)]
    return [(*hand, 1.0), (*hand, 4.0), *others]


@check(
    "`lora`, scaled as in Hu et al. 2022",
    _lora_cases,
    *ADAPTER_MISTAKES,
    "A and B swapped: A and B are swapped: multiply x by A [k×r] first, then by B [r×d].",
    "all scaled: xW is scaled, too; the scale belongs to the adapter alone.",
    lambda W, A, alpha, solve: solve(W=alpha / A.shape[1] * W),
    "r of the wrong axis [0 for 1]: The scale divides by x's size; r is A's number of columns.",
    "divided [sides of /]: The scale is upside down: it should be α/r.",
)
def lora(x: Tensor, W: Tensor, A: Tensor, B: Tensor, alpha: float) -> Tensor:
    """Check `lora(x, W, A, B, alpha)`: xW + (α/r) xAB, r being the columns of A.

    The book writes xW + xAB; the scale is that of the paper, and 1 for α = r.
    """
    scale = alpha / A.shape[1]
    return x @ W + scale * (x @ A @ B)
