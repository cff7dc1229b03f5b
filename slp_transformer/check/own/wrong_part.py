"""What a wrong function does: it takes its part's place in chapter 5's model, beside the right one.

Both models begin with the same random weights and read the same eight sentences.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from slp_transformer._internal.bounds import WAITS
from slp_transformer.check.diagnosing.calling import UnsupportedCall
from slp_transformer.check.diagnosing.diagnosis import CHECKS
from slp_transformer.check.diagnosing.timed_run import RaisedError, TimedOut, run_with_timeout
from slp_transformer.check.own import own_model
from slp_transformer.check.own.own_model import Parts
from slp_transformer.check.own.own_writing import NUM_SHOWN, count_known, write_sentences
from slp_transformer.multi_head import join_heads, split_heads

TRAINING_STEPS, NUM_WRITTEN = 200, 12  # by then the right model has learned its sentences
TIMEOUT_S = WAITS["a wrong part of a model"].seconds
CHOICES: dict[str, Any] = {"temperature": 0.5, "top_k": 2, "top_p": 0.9}  # while it writes
PLACES = {"softmax", "head", "one_hot_lookup", "next_token_loss", "draw"}
PLACES |= {*own_model.NEEDED, *CHOICES}


class OnePart(Parts):
    """The right parts of chapter 5's model, of a batch at once, but for one that a reader has."""

    def __init__(self, name: str, function: Callable[..., Any] | None):
        """Take the reader's function for the part of this name; None for the right one."""
        super().__init__({} if function is None else {name: function})
        self.name = name
        if function is not None:
            Parts.__getattr__(self, name)  # which stands before the methods below

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
            parts = zip(*(W.chunk(A, 1) for W in W_QKV), W_O.chunk(A), strict=True)
            return torch.stack([self.head(X, *one) for one in parts]).sum(0)
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
        choose = getattr(self, self.name) if self.name in CHOICES else None
        return choose(u, CHOICES[self.name]) if choose else super().choices(u)


def learn(parts: OnePart, seen: dict[str, Any]) -> None:
    """Train a model of these parts, and note what comes of it, and where it is."""
    words, ids = own_model.load_words_and_ids()

    def batch_at(step: int) -> Tensor:
        seen["at"] = f"at step {step}"
        return ids

    own = own_model.make_random_model(parts, len(words), ids.shape[1])
    own_loss = "next_token_loss" in parts.functions
    own_model.fit(own, batch_at, TRAINING_STEPS, lambda _: None, "word", own_loss, needs_all=False)
    seen["at"] = "when it has learned"
    with torch.no_grad():
        U = own(ids[:, :-1])
    seen["loss"] = cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten()).item()
    seen["alpha"] = own.attention_weights(ids[0, :-1])[:1]
    seen["at"] = "when it writes"
    seen["written"] = write_sentences(own, NUM_WRITTEN)


@lru_cache
def learn_right(choice: str) -> dict[str, Any]:
    """Return what the right model has come to, with this way to choose words."""
    seen: dict[str, Any] = {}
    learn(OnePart(choice, None), seen)
    return seen


def follow(name: str, function: Callable[..., Any]) -> str:
    """Train chapter 5's model with a reader's function, beside the right one.

    Args:
        name: the check of the function.
        function: the reader's, which may be wrong in any way.

    Returns:
        Losses, texts and attention of both; or at which step it stops, and why.
    """
    if name not in PLACES:
        return f"Chapter 5's model has no {name}: nothing can be seen there."
    num_threads, yours = torch.get_num_threads(), dict[str, Any]()
    try:
        torch.set_num_threads(1)  # which is faster for a model of this size
        parts, right = OnePart(name, function), learn_right(name if name in CHOICES else "")
        (end, *_), _ = run_with_timeout(lambda _: learn(parts, yours), [{}], function, TIMEOUT_S)
    except UnsupportedCall as error:
        return f"It cannot take its part's place. {error}"
    finally:
        torch.set_num_threads(num_threads)
    lines = [
        f"Chapter 5's model after {TRAINING_STEPS} steps, from the same weights,",
        f"with the right {name} and with yours:",
    ]
    return "\n".join(
        [*lines, *_compare(name, right, yours), *_describe_end(end, yours.get("at", ""))]
    )


def _compare(name: str, right: dict[str, Any], yours: dict[str, Any]) -> list[str]:
    """Return what both have, one beside or below the other, of what the part has a say in."""
    lines, both = [], [*right.keys() & yours.keys()]
    learns = name not in ("draw", *CHOICES)  # which only write
    right_loss, loss = right["loss"], yours.get("loss", 0.0)
    if learns and "loss" in both:
        lines.append(f"  loss, nats a word     right {right_loss:.3f}   yours {loss:.3f}")
        if loss < (floor := own_model.compute_lowest_loss()) - 1e-3:
            lines.append(
                f"    No honest model is below {floor:.3f}: it sees the word that it predicts."
            )
    if learns and "alpha" in both:
        lines.append("  where its first head looks, darker for more:")
        pair = torch.cat([right["alpha"], yours["alpha"]])
        lines += own_model.draw_weights(pair, ["right", "yours"], own_model.SENTENCES[0][:-1])
    for whose, one in (("right", right), ("yours", yours)) if "written" in both else ():
        known = count_known(one["written"])
        lines.append(f"  {whose}: of {NUM_WRITTEN} texts {known} are of the eight. The first:")
        lines += [f"    {text}" for text in one["written"][:NUM_SHOWN]]
    if "written" in both and right["written"] == yours["written"] and abs(loss - right_loss) < 5e-3:
        lines.append("  No difference to speak of: training makes up for it, or it lies elsewhere.")
    return lines


def _describe_end(end: Any, at: str) -> list[str]:
    """Return why a model came no further; nothing if it did."""
    if not isinstance(end, RaisedError | TimedOut):
        return []
    where = f", in {end.source_line}" if end.source_line else ""
    if isinstance(end, TimedOut):
        ended = WAITS["a wrong part of a model"].says.format(TIMEOUT_S)
        return [f"  {ended} It was {at}{where}."]
    if end.kind == "ValueError" and not where:  # of our own
        return [f"  Yours goes no further. {end.message}."]
    return [f"  Yours stops {at}{where}: {end.kind}: {end.message}."]
