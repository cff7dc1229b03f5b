"""What a wrong function does: it takes its part's place in chapter 5's model, beside the right one.

Both models begin with the same random weights and read the same eight sentences.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from slp_transformer.check.diagnosing.calling import UnsupportedCall
from slp_transformer.check.diagnosing.diagnosis import CHECKS
from slp_transformer.check.diagnosing.timed_run import RaisedError, TimedOut, run_with_timeout
from slp_transformer.check.own.own_model import (
    NEEDED,
    SENTENCES,
    Parts,
    compute_lowest_loss,
    draw_weights,
    fit,
    load_words_and_ids,
    make_random_model,
)
from slp_transformer.check.own.own_writing import NUM_SHOWN, count_known, write_sentences
from slp_transformer.multi_head import join_heads, split_heads

TRAINING_STEPS, NUM_WRITTEN = 200, 12  # by then the right model has learned its sentences
TIMEOUT_S = 120.0
CHOICES: dict[str, Any] = {"temperature": 0.5, "top_k": 2, "top_p": 0.9}  # while it writes
PLACES = {*NEEDED, *CHOICES, "softmax", "head", "one_hot_lookup", "next_token_loss", "draw"}


class OnePart(Parts):
    """The right parts of chapter 5's model, of a batch at once, but for one that a reader has."""

    def __init__(self, name: str, function: Callable[..., Any] | None):
        """Take the reader's function for the part of this name; None for the right one."""
        super().__init__({} if function is None else {name: function})
        self.name = name
        self.has_loss: bool = "next_token_loss" in self.functions
        if function is not None:
            Parts.__getattr__(self, name)

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        """Return the check's own solution."""
        return CHECKS[name].solve

    split_heads = staticmethod(split_heads)
    join_heads = staticmethod(join_heads)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return positive weights that sum to 1."""
        return scores.softmax(-1)

    def attention(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Return the heads [A×N×d_v]."""
        return self.softmax(Q @ K.mT / Q.shape[-1] ** 0.5 + mask) @ V

    def multi_head_attention(self, X: Tensor, *weights: Any) -> Tensor:
        """Return all heads, joined and brought back to [N×d]."""
        *W_QKV, W_O, A = weights
        if self.name == "head":  # joined and times W_O is the sum of the heads times their rows
            parts = [*(W.chunk(A, 1) for W in W_QKV), W_O.chunk(A)]
            return torch.stack([self.head(X, *one) for one in zip(*parts, strict=True)]).sum(0)
        Q, K, V = (self.split_heads(X @ W, A) for W in W_QKV)
        mask = self.causal_mask(X.shape[-2]).to(X)
        return self.join_heads(self.attention(Q, K, V, mask)) @ W_O

    def input_encoding(self, ids: Tensor, E: Tensor, P: Tensor, start: int) -> Tensor:
        """Return X: the rows of E and those of P, added."""
        rows = E[ids]
        if self.name == "one_hot_lookup":
            flat = [self.one_hot_lookup(word, E) for word in ids.flatten().tolist()]
            rows = torch.stack(flat).view(*ids.shape, -1)
        return rows + P[start : start + ids.shape[-1]]

    def choices(self, u: Tensor) -> Tensor:
        """Return the probabilities from which a word is drawn, given its logits."""
        if self.name in CHOICES:
            return getattr(self, self.name)(u, CHOICES[self.name])
        return super().choices(u)


@dataclass
class Learned:
    """What a model has come to, as far as it came.

    Attributes:
        at: what it did last: a step, or what came after.
        loss: of the next words, in nats.
        written: the texts that it writes.
        alpha: the attention weights of the first head [N×N].
    """

    at: str = ""
    loss: float | None = None
    written: list[str] = field(default_factory=list)
    alpha: Tensor | None = None

    def learn(self, parts: OnePart) -> None:
        """Train a model of these parts, and look at it."""
        words, ids = load_words_and_ids()

        def batch_at(step: int) -> Tensor:
            self.at = f"at step {step}"
            return ids

        own = make_random_model(parts, len(words), ids.shape[1])
        fit(own, batch_at, TRAINING_STEPS, lambda _: None, "word", parts.has_loss, needs_all=False)
        self.at = "when it reads the sentences again"
        with torch.no_grad():
            self.loss = cross_entropy(own(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item()
        self.at = "when its attention is looked at"
        self.alpha = own.attention_weights(ids[0, :-1])[0]
        self.at = "when it writes"
        self.written = write_sentences(own, NUM_WRITTEN)


class Effect:
    """What a function does in its part's place, in a terminal and on a page."""

    def __init__(self, lines: list[str]):
        """Take the lines to show."""
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f'<pre class="slp-effect">{escape(str(self))}</pre>'


def follow(name: str, function: Callable[..., Any]) -> Effect:
    """Train chapter 5's model with a reader's function, beside the right one.

    Args:
        name: the check of the function.
        function: the reader's, which may be wrong in any way.

    Returns:
        Losses, texts and attention of both; or at which step it stops, and why.
    """
    if name not in PLACES:
        return Effect([f"Chapter 5's model has no {name}: nothing can be seen there."])
    try:
        parts = OnePart(name, function)
    except UnsupportedCall as error:
        return Effect([f"It cannot take its part's place. {error}"])
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # which is faster for a model of this size
    try:
        right, yours = _learn_right(name if name in CHOICES else ""), Learned()
        found, _ = run_with_timeout(lambda _: yours.learn(parts), [{}], function, TIMEOUT_S)
    finally:
        torch.set_num_threads(num_threads)
    lines = [
        f"Chapter 5's model after {TRAINING_STEPS} steps on its eight sentences, from the same "
        f"weights, with the right {name} and with yours:"
    ]
    return Effect(lines + _compare(right, yours) + _describe_end(found[0], yours.at))


@lru_cache
def _learn_right(choice: str) -> Learned:
    """Return what the right model has come to, with this way to choose words."""
    learned = Learned()
    learned.learn(OnePart(choice, None))
    return learned


def _compare(right: Learned, yours: Learned) -> list[str]:
    """Return what both have, one beside or below the other."""
    if yours.loss is None or right.loss is None:
        return []
    lines = [f"  loss, nats a word     right {right.loss:.3f}   yours {yours.loss:.3f}"]
    floor = compute_lowest_loss()
    if yours.loss < floor - 1e-3:
        lines.append(
            f"    No honest model is below {floor:.3f}: it sees the word that it predicts."
        )
    if yours.alpha is not None and right.alpha is not None:
        lines.append("  where its first head looks, darker for more:")
        pair = torch.stack([right.alpha, yours.alpha])
        lines += draw_weights(pair, ["right", "yours"], SENTENCES[0][:-1])
    for whose, one in (("right", right), ("yours", yours)):
        if one.written:
            known = count_known(one.written)
            lines.append(f"  {whose}: of {NUM_WRITTEN} texts {known} are of the eight. The first:")
            lines += [f"    {text}" for text in one.written[:NUM_SHOWN]]
    if yours.written == right.written and abs(yours.loss - right.loss) < 5e-3:
        lines.append("  No difference to speak of: training makes up for it, or it lies elsewhere.")
    return lines


def _describe_end(end: Any, at: str) -> list[str]:
    """Return why a model came no further; nothing if it did."""
    if isinstance(end, TimedOut):
        where = f", {end.source_line}" if end.source_line else ""
        return [f"  Yours has not ended after {TIMEOUT_S:.0f} seconds: it was {at}{where}."]
    if not isinstance(end, RaisedError):
        return []
    if end.kind == "ValueError" and not end.source_line:  # of our own
        return [f"  Yours goes no further. {end.message}."]
    where = f", in {end.source_line}" if end.source_line else ""
    return [f"  Yours stops {at}{where}: {end.kind}: {end.message}."]
