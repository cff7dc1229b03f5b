"""A Transformer of the reader's own functions: put together, trained, and compared.

`Parts` are the functions of one file, `mine.py`, by the names of their checks. Once those that a
language model needs are right, `OwnModel` computes with them and nothing else; the package holds
only the weights. So what it learns, or says with the weights of a published GPT-2, comes out of the
reader's own lines.
"""

import dis
import math
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, cat
from torch.nn.functional import cross_entropy, gelu

from slp_transformer.check.diagnosing.calling import make_caller
from slp_transformer.check.diagnosing.diagnosis import CHECKS
from slp_transformer.config import TransformerConfig
from slp_transformer.embedding import InputEncoding
from slp_transformer.language_model import TransformerLM
from slp_transformer.layer_norm import LayerNorm

CHAPTERS = {
    "1": ("softmax", "weighted_sum", "scaled_score", "simple_attention", "head"),
    "2": ("ffn", "layer_norm", "swiglu", "block"),
    "3": ("causal_mask", "attention", "split_heads", "join_heads", "multi_head_attention"),
    "4": ("one_hot_lookup", "input_encoding", "sinusoid"),
    "5": ("stack", "lm_head"),
    "6": ("temperature", "top_k", "top_p", "draw", "beam_step"),
    "6b": ("mask_after", "cached_step"),
    "7": ("next_token_loss",),
}
NEEDED = (
    *("ffn", "layer_norm", "block", "causal_mask", "attention", "split_heads", "join_heads"),
    *("multi_head_attention", "input_encoding", "stack", "lm_head"),
)
OTHER_USES = {"draw": "with it the model writes", "next_token_loss": "the model trains with it"}


def describe_need(name: str) -> str:
    """Return what a part is for, in a few words; empty for one that the model needs."""
    return "" if name in NEEDED else OTHER_USES.get(name, "not needed for the model")


# The sentences of chapter 5.
SENTENCES = [
    f"the {who} {verb} the {what} because it was {how} .".split()
    for who, what, down, up in (
        ("guitarist", "string", "flat", "sharp"),
        ("drummer", "drum", "low", "high"),
    )
    for verb, how in (("tightened", down), ("loosened", up), ("tuned", down), ("tuned", up))
]
STEPS, TARGET = 350, 0.24  # nats a word
SHADES, THRESHOLDS = "·░▒▓█", (0.1, 0.25, 0.5, 0.75)


class Parts:
    """The reader's functions, each called with the arguments of its check in their order.

    Of a tensor with more axes than the check's, each part is one call's: a sentence of a batch.
    """

    def __init__(self, functions: dict[str, Callable[..., Any]]):
        """Take the functions by the names of their checks."""
        self.functions = functions

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        """Return a function that calls the reader's, whatever its arguments are named there."""
        check = CHECKS[name]
        call = make_caller(self.functions[name], check.arguments, check.signature_text)
        cases = check.cases()
        dims = [max(_count_axes(case[argument]) for case in cases) for argument in check.arguments]

        def apply(*values: Any) -> Tensor:
            is_batch = [_count_axes(value) > dim for value, dim in zip(values, dims, strict=True)]
            if not any(is_batch):
                return _as_tensor(call(dict(zip(check.arguments, values, strict=True))))
            (size,) = {len(value) for value, many in zip(values, is_batch, strict=True) if many}
            pairs = [*zip(values, is_batch, strict=True)]
            each = ([value[i] if many else value for value, many in pairs] for i in range(size))
            return torch.stack([apply(*one) for one in each])

        self.__dict__[name] = apply
        return apply

    def choices(self, u: Tensor) -> Tensor:
        """Return the probabilities from which a word is drawn, given its logits."""
        return u.softmax(-1)

    def checks_called_by(self, name: str) -> list[str]:
        """Return the names of the checks whose functions another one calls."""
        code = getattr(self.functions[name], "__code__", None)
        names = dis.get_instructions(code) if code else ()
        called = {one.argval for one in names if one.opname == "LOAD_GLOBAL"}  # not torch.stack
        return [n for n, f in self.functions.items() if getattr(f, "__name__", "") in called]


def _count_axes(value: Any) -> int:
    return value.dim() if isinstance(value, Tensor) else 0


def _as_tensor(answer: Any) -> Tensor:
    """Return an answer in one of the forms that checks accept, with its gradient."""
    if isinstance(answer, tuple):  # with the weights, say
        answer = answer[0]
    if isinstance(answer, list):
        return torch.stack([_as_tensor(row) for row in answer])
    return answer if isinstance(answer, Tensor) else torch.tensor(answer)


class OwnModel:
    """A language model whose every step is the reader's, with the weights of one of the package's.

    Attributes:
        model: what holds the weights: a `TransformerLM`, or a GPT-2 of `modern`.
        additions: what the reader's functions do not have and this class adds, in words.
    """

    def __init__(self, model: TransformerLM, parts: Parts):
        """Put the parts together.

        Raises:
            ValueError: if the model has parts that neither the book's has nor a GPT-2.
        """
        self.model: Any = model
        self.parts: Parts = parts
        self.A = model.config.num_heads
        block = self.model.stack.blocks[0]
        self.biases: bool = getattr(block.attention, "b_QKV", None) is not None
        self.activation = model.config.activation
        if (
            not isinstance(block.norm_1, LayerNorm)
            or not isinstance(self.model.embedding, InputEncoding)
            or (model.config.norm, model.config.positions) != ("pre", "learned")
            or getattr(model, "E_out", None) is not None
            or self.activation not in ("relu", "gelu_tanh")
        ):
            raise ValueError("This model has other parts than the book's and GPT-2's.")
        added = {"biases of attention": self.biases, "GELU": self.activation != "relu"}
        self.additions: list[str] = [name for name, is_added in added.items() if is_added]

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the logits [N×|V|] of a row of ids [N], or of several [B×N]."""
        E, P = self.model.embedding.tokens.E, self.model.embedding.positions.P
        X = self.parts.input_encoding(ids, E, P, 0)
        stack = self.model.stack
        blocks = [self._make_block(block) for block in stack.blocks]
        H = self.parts.stack(X, blocks, self._make_norm(stack.final_norm))
        return self.parts.lm_head(H, E)

    def _make_block(self, block: Any) -> Callable[[Tensor], Tensor]:
        sublayers = (self._make_attention(block.attention), self._make_ffn(block.ffn))
        norms = (self._make_norm(block.norm_1), self._make_norm(block.norm_2))
        return lambda X: self.parts.block(X, *sublayers, *norms)

    def _make_norm(self, norm: Any) -> Callable[[Tensor], Tensor]:
        return lambda X: self.parts.layer_norm(X, norm.gamma, norm.beta)

    def _make_ffn(self, ffn: Any) -> Callable[[Tensor], Tensor]:
        if self.activation == "relu":
            return lambda X: self.parts.ffn(X, ffn.W_1, ffn.b_1, ffn.W_2, ffn.b_2)
        return lambda X: gelu(X @ ffn.W_1 + ffn.b_1, approximate="tanh") @ ffn.W_2 + ffn.b_2

    def _make_attention(self, layer: Any) -> Callable[[Tensor], Tensor]:
        if not self.biases:
            W = (layer.W_Q, layer.W_K, layer.W_V, layer.W_O)
            return lambda X: self.parts.multi_head_attention(X, *W, self.A)

        def attend(X: Tensor) -> Tensor:
            joined = self.parts.join_heads(self.heads(layer, X))
            return joined @ layer.W_O + layer.b_O

        return attend

    def heads(self, layer: Any, X: Tensor) -> Tensor:
        """Return each head's values [A×N×d_v]."""
        QKV = X @ layer.W_QKV + (layer.b_QKV if self.biases else 0)
        Q, K, V = (self.parts.split_heads(Z, self.A) for Z in QKV.split(layer.widths, dim=-1))
        mask = self.parts.causal_mask(len(X)).to(X)
        return torch.stack([self.parts.attention(*QKV, mask) for QKV in zip(Q, K, V, strict=True)])

    def attention_weights(self, sentence: Tensor) -> Tensor:
        """Return the weights [A×N×N] of the first block's heads, for ids [N]."""
        encoding, block = self.model.embedding, self.model.stack.blocks[0]
        with torch.no_grad():
            X = self.parts.input_encoding(sentence, encoding.tokens.E, encoding.positions.P, 0)
            X = self._make_norm(block.norm_1)(X)
            # One head's values are I, and W_O chooses it, so that the output is α I = α.
            layer, eye, weights = block.attention, torch.eye(len(X)), []
            # Below W_Q and W_K, whose rows meet I, stands the bias that every token gets.
            W_QK = torch.stack([layer.W_Q, layer.W_K])
            b_QK = layer.b_QKV[: W_QK[:, 0].numel()] if self.biases else torch.zeros(len(W_QK))
            W_Q, W_K = cat([W_QK, b_QK.view(2, 1, -1).expand(-1, len(X), W_QK.shape[2])], dim=1)
            for head in torch.eye(self.A):
                W_O = torch.kron(head[:, None], eye)
                W_V = cat([torch.zeros(X.shape[1], len(W_O)), W_O.mT])
                X_and_eye = cat([X, eye], 1)
                weights.append(
                    self.parts.multi_head_attention(X_and_eye, W_Q, W_K, W_V, W_O, self.A)
                )
        return torch.stack(weights)


def load_words_and_ids() -> tuple[list[str], Tensor]:
    """Return the vocabulary of the sentences, and their ids [8×10]."""
    words = sorted({word for sentence in SENTENCES for word in sentence})
    return words, torch.tensor([[words.index(w) for w in s] for s in SENTENCES])


def compute_lowest_loss() -> float:
    """Return what no model of the sentences can go below, in nats a word, by counting."""
    seen = Counter(tuple(s[:i]) for s in SENTENCES for i in range(len(s) + 1))
    pairs = [(tuple(s[:i]), tuple(s[: i + 1])) for s in SENTENCES for i in range(1, len(s))]
    return -sum(math.log(seen[longer] / seen[start]) for start, longer in pairs) / len(pairs)


def train(parts: Parts, say: Callable[[str], None], own_loss: bool = False) -> OwnModel:
    """Train chapter 5's model with the reader's functions, and test what came of it.

    Args:
        parts: the functions; all of `NEEDED` are right.
        say: prints a line.
        own_loss: whether the loss is the reader's `next_token_loss`; else it is PyTorch's.

    Raises:
        ValueError: if no gradient reaches a weight, or the loss is too high, or lower than any
            honest model's, or a word can see those after it.
    """
    words, ids = load_words_and_ids()
    own = make_random_model(parts, len(words), ids.shape[1])
    loss = fit(own, lambda step: ids, STEPS, say, "word", own_loss)
    verdict = describe_loss_problem(loss)
    if verdict:
        raise ValueError(verdict)
    return own


def make_random_model(
    parts: Parts, vocab_size: int, context_length: int, model_dim: int = 32
) -> OwnModel:
    """Return a model of random weights, of the size of chapter 5's unless its width is given."""
    torch.manual_seed(2)
    config = TransformerConfig(
        vocab_size, context_length, model_dim, num_heads=model_dim // 16, num_blocks=3
    )
    model = TransformerLM(config)
    encoding: Any = model.embedding
    with torch.no_grad():
        encoding.tokens.E.mul_(5)
        encoding.positions.P.mul_(5)
    return OwnModel(model, parts)


def fit(
    own: OwnModel,
    batch_at: Callable[[int], Tensor],
    steps: int,
    say: Callable[[str], None],
    unit: str,
    own_loss: bool = False,
    needs_all: bool = True,
) -> float:
    """Train a model of the reader's functions, and return its last loss.

    Args:
        own: the model.
        batch_at: returns the rows of ids [B×N] of a step, from 1.
        steps: how many there are.
        say: prints a line.
        unit: what an id stands for: "word".
        own_loss: whether the loss is the reader's `next_token_loss`; else it is PyTorch's.
        needs_all: whether a gradient is to reach every weight.

    Raises:
        ValueError: if no gradient reaches a weight, or the loss is no number.
    """
    model = own.model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    begun, loss = time.monotonic(), torch.tensor(math.nan)
    for step in range(1, steps + 1):
        rows = batch_at(step)
        if own_loss:
            loss = own.parts.next_token_loss(own(rows), rows).mean()
        else:
            loss = cross_entropy(own(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        if not loss.isfinite():
            raise ValueError(f"The loss is {loss.item()} at step {step}.")
        optimizer.zero_grad()
        if loss.requires_grad:
            loss.backward()
        for name, W in model.named_parameters():
            if W.grad is None and (needs_all or not loss.requires_grad):
                raise ValueError(
                    f"No gradient reaches {name}: a function on its way uses .item(), .detach(), "
                    ".data, NumPy, or a new tensor made of numbers."
                )
        optimizer.step()
        if step in (1, 10, 50) or step % 100 == 0 or step == steps:
            seconds = (time.monotonic() - begun) / step * (steps - step)
            left = f", about {seconds:.0f} s to go" if 1 < step < steps else ""
            say(f"  step {step:3}: {loss.item():.3f} nats a {unit}{left}")
    return loss.item()


def describe_loss_problem(loss: float) -> str:
    """Return what is wrong with a last loss, nothing if it is right."""
    floor = compute_lowest_loss()
    if loss < floor - 1e-3:
        return (
            f"The loss {loss:.3f} is below {floor:.3f}, which no model of these sentences can "
            "reach: it sees the word that it predicts."
        )
    return "" if loss <= TARGET else f"The loss {loss:.3f} should be {TARGET} at the most."


def check_causality(own: OwnModel, ids: Tensor) -> None:
    """Change each word in turn, and see that no logit before it moves.

    Raises:
        ValueError: naming the first place that moved.
    """
    with torch.no_grad():
        before = own(ids)
        for j in range(1, len(ids)):
            changed = ids.clone()
            changed[j] = (ids[j] + 1) % before.shape[-1]
            if not torch.allclose(own(changed)[:j], before[:j], atol=1e-5):
                raise ValueError(f"A word before place {j} changes when the word there does.")


def check_cache(own: OwnModel, X: Tensor) -> None:
    """Read rows one by one with the reader's `cached_step`, as attention does at once.

    Raises:
        ValueError: if a head's output differs.
    """
    layer = own.model.stack.blocks[0].attention
    W_Q, W_K, W_V = (W[:, : W.shape[1] // own.A] for W in (layer.W_Q, layer.W_K, layer.W_V))
    step = own.parts.functions["cached_step"]
    check = CHECKS["cached_step"]
    call = make_caller(step, check.arguments, check.signature_text)
    K, V = X[:1] @ W_K, X[:1] @ W_V
    with torch.no_grad():
        expected = own.heads(layer, X)[0]
        for i in range(1, len(X)):
            values = (X[i], W_Q, W_K, W_V, K, V)
            head, K, V = call(dict(zip(check.arguments, values, strict=True)))
            if not torch.allclose(head.flatten(), expected[i], atol=1e-4):
                raise ValueError(f"With the cache, the output of head 1 differs at row {i}.")


def attention_as_text(own: OwnModel, sentence: list[str], words: list[str]) -> list[str]:
    """Draw the attention of the first block's heads as lines of text, darker for more weight."""
    alpha = own.attention_weights(torch.tensor([words.index(word) for word in sentence]))
    return draw_weights(alpha, [f"head {c + 1}" for c in range(own.A)], sentence)


def draw_weights(alpha: Tensor, titles: list[str], sentence: list[str]) -> list[str]:
    """Draw attention weights [A×N×N] side by side; those of later words if one is read."""
    width = 2 * len(sentence)
    columns = "".join(f"{j + 1:<2}" for j in range(len(sentence)))
    shown = "   ".join(title.ljust(width) for title in titles)
    lines = [" " * 17 + shown, " " * 17 + "   ".join([columns] * len(titles))]
    reads_on = [bool((one.triu(1) >= THRESHOLDS[0]).any()) for one in alpha]
    alpha = alpha.round(decimals=4)  # 1/2 is 1/2
    for i, word in enumerate(sentence):
        rows = (
            one[i] if more else one[i, : i + 1] for one, more in zip(alpha, reads_on, strict=True)
        )
        cells = ("".join(2 * SHADES[bisect(THRESHOLDS, a)] for a in row.tolist()) for row in rows)
        padded = (one.ljust(width) for one in cells)
        lines.append(f"  {i + 1:2} {word:>10}  " + "   ".join(padded))
    legend = (f"{shade} from {least}" for shade, least in zip(SHADES[1:], THRESHOLDS, strict=True))
    return [*lines, f"  {SHADES[0]} below {THRESHOLDS[0]}, {', '.join(legend)}"]


def compare(parts: Parts, model: TransformerLM) -> tuple[OwnModel, int, float]:
    """Give a trained model's weights to the reader's functions.

    Returns:
        The reader's model, of how many places the most probable next word was compared, and how
        far any logit lies from the package's.

    Raises:
        ValueError: if a next word differs, or the model has other parts.
    """
    own = OwnModel(model, parts)
    length = min(24, model.config.context_length)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(model.config.vocab_size, (length,), generator=draw)
    with torch.no_grad():
        mine, theirs = own(ids), model(ids)
    same = mine.argmax(-1) == theirs.argmax(-1)
    if not same.all():
        raise ValueError(f"The next word differs after {int(same.int().argmin()) + 1} words.")
    return own, length, (mine - theirs).abs().max().item()
