"""A model of a reader's own functions: trained, tried for causality and a cache, compared."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu

from slp_transformer._internal.atomic_write import read_json
from slp_transformer._internal.progress_bar import progress_bar
from slp_transformer.check.mine import FOR_THE_CACHE, BrokenPart, call_part
from slp_transformer.config import TransformerConfig
from slp_transformer.language_model import TransformerLM
from slp_transformer.modern import ModernConfig, from_pretrained
from slp_transformer.plotting import AttentionFigure, AttentionMaps, attention_figure
from slp_transformer.training import load_model

# Chapter 5's eight sentences: who, what, and how it was.
PLAYERS = (("guitarist", "string", "flat", "sharp"), ("drummer", "drum", "low", "high"))
SENTENCES = [
    f"the {who} {verb} the {what} because it was {how} .".split()
    for who, what, down, up in PLAYERS
    for verb, how in (("tightened", down), ("loosened", up), ("tuned", down), ("tuned", up))
]
WORDS = sorted({word for sentence in SENTENCES for word in sentence})
BEST_LOSS = (math.log(2) + 1.5 * math.log(2) + 0.5 * math.log(2)) / 9  # who, what was done, how
GOOD_LOSS, MAX_STEPS = 0.24, 350
SHADES = " ·░▒▓█"
TOLERANCE = 1e-3  # of a probability; the reader's layer norm has no ε


class OwnModel:
    """A reader's functions with the weights of one of the package's models.

    Attributes:
        model: holds the weights.
        normed: what each block's attention read last.
    """

    def __init__(self, functions: dict[str, Any], model: TransformerLM):
        """Assemble the parts around the weights of a model."""
        self.functions, self.model = functions, model
        self.normed: dict[int, Tensor] = {}

    def part(self, name: str) -> Callable[..., Any]:
        """Return a part by its name."""
        return call_part(self.functions, name)

    def __call__(
        self, ids: Tensor, start: int = 0, caches: list[list[Any]] | None = None
    ) -> Tensor:
        """Compute the logits [N×|V|] of one sequence, with the reader's functions alone."""
        E = self.model.embedding.tokens.E
        X = self.part("my_input")(ids, E, self.model.embedding.positions.P, start)
        blocks = [self._block(l, None if caches is None else caches[l]) for l in range(self.depth)]
        H = self.part("my_stack")(X, blocks, self._norm(self.model.stack.final_norm))
        return self.part("my_lm_head")(H, E)

    @property
    def depth(self) -> int:
        """Return how many blocks there are."""
        return len(self.model.stack.blocks)

    def _norm(self, norm: Any) -> Callable[[Tensor], Tensor]:
        return lambda X: self.part("my_layer_norm")(X, norm.gamma, norm.beta)

    def _block(self, l: int, cache: list[Any] | None) -> Callable[[Tensor], Tensor]:
        block: Any = self.model.stack.blocks[l]

        def attention(X: Tensor) -> Tensor:
            self.normed[l] = X
            if cache is not None:
                return self._cached_attention(block.attention, X, cache)
            X, *matrices = _with_biases(block.attention, X)
            out = self.part("my_multi_head_attention")(X, *matrices, block.attention.num_heads)
            bias = getattr(block.attention, "b_O", None)
            return out if bias is None else out + bias

        def ffn(X: Tensor) -> Tensor:
            own = block.ffn
            if isinstance(self.model.config, ModernConfig):  # GPT-2's GELU is not in the exercise
                return gelu(X @ own.W_1 + own.b_1, approximate="tanh") @ own.W_2 + own.b_2
            return self.part("my_ffn")(X, own.W_1, own.b_1, own.W_2, own.b_2)

        norms = self._norm(block.norm_1), self._norm(block.norm_2)
        return lambda X: self.part("my_block")(X, attention, ffn, *norms)

    def _cached_attention(self, mha: Any, X: Tensor, cache: list[Any]) -> Tensor:
        heads = []
        for c, head in enumerate(mha.heads):
            if len(cache) == c:
                cache.append((X.new_zeros(0, mha.key_dim), X.new_zeros(0, mha.value_dim)))
            step = self.part("my_cached_step")
            gathered, *cache[c] = step(X[0], head.W_Q, head.W_K, head.W_V, *cache[c])
            heads.append(gathered.reshape(1, -1))
        joined: Tensor = self.part("my_join_heads")(torch.stack(heads)) @ mha.W_O
        return joined

    @torch.no_grad()
    def attention_weights(self, ids: Tensor) -> Tensor:
        """Return each head's weights [L×A×N×N]: what the attention gathers from one-hot values."""
        self(ids)
        N = len(ids)
        mask, eye = self.part("my_causal_mask")(N), torch.eye(N)
        layers = []
        split, attend = self.part("my_split_heads"), self.part("my_attention")
        for l in range(self.depth):
            mha: Any = self.model.stack.blocks[l].attention
            X, W_Q, W_K, _, _ = _with_biases(mha, self.normed[l])
            Q, K = (split(X @ W, mha.num_heads) for W in (W_Q, W_K))
            layers.append(torch.stack([attend(q, k, eye, mask) for q, k in zip(Q, K, strict=True)]))
        return torch.stack(layers)


def _with_biases(mha: Any, X: Tensor) -> tuple[Tensor, ...]:
    """Return what attention is given: biases, if any, as a row of W, and a column of ones in X."""
    matrices = [mha.W_Q, mha.W_K, mha.W_V]
    if getattr(mha, "b_QKV", None) is not None:
        X = torch.cat([X, torch.ones(len(X), 1)], dim=1)
        biases = mha.b_QKV.split(list(mha.widths))
        matrices = [torch.cat([W, b[None]]) for W, b in zip(matrices, biases, strict=True)]
    return X, *matrices, mha.W_O


def run_own_model(functions: dict[str, Any], has_cache: bool, page: Path | None) -> Iterator[str]:
    """Train chapter 5's model with the reader's functions, and try it; yield what to print.

    Raises:
        BrokenPart: if a part cannot be used in it, or the model is wrong as a whole.
    """
    torch.manual_seed(2)
    config = TransformerConfig(len(WORDS), 10, model_dim=32, num_heads=2, num_blocks=3)
    own = OwnModel(functions, TransformerLM(config))
    for W in (own.model.embedding.tokens.E, own.model.embedding.positions.P):
        W.data *= 5
    yield from train(own)
    own.model.requires_grad_(False)
    ids = torch.tensor([WORDS.index(w) for w in SENTENCES[0][:-1]])
    yield check_causality(own, ids)
    yield (
        check_cache(own, ids)
        if has_cache
        else (f"With {' and '.join(FOR_THE_CACHE)} (chapter 6) it would be tried with a cache.")
    )
    weights = own.attention_weights(ids)
    yield format_attention(weights, SENTENCES[0][:-1])
    if page is not None:
        draw_attention(weights, SENTENCES[0][:-1]).save(page)
        yield f"Its attention is drawn in {page}."


def train(own: OwnModel) -> Iterator[str]:
    """Train on the eight sentences until the loss is good; yield what to print.

    Raises:
        BrokenPart: if the loss is not reached, or is lower than any model's can be.
    """
    ids = torch.tensor([[WORDS.index(w) for w in sentence] for sentence in SENTENCES])
    optimizer = torch.optim.AdamW(own.model.parameters(), lr=3e-3)
    with progress_bar("your model learns", MAX_STEPS, unit=" steps") as advance:
        for step in range(MAX_STEPS + 1):
            begun = time.perf_counter()
            U = torch.stack([own(sentence[:-1]) for sentence in ids])
            loss = cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten())
            if loss <= GOOD_LOSS or step == MAX_STEPS:
                break
            optimizer.zero_grad()
            try:
                loss.backward()
            except RuntimeError as error:
                raise BrokenPart(f"No gradient comes back: {str(error).splitlines()[0]}") from None
            optimizer.step()
            advance(1)
            if step == 1:
                minutes, seconds = divmod(round((time.perf_counter() - begun) * MAX_STEPS), 60)
                yield (
                    f"All parts are right. Your model learns chapter 5's eight sentences, in at "
                    f"most {minutes} min {seconds} s."
                )
    if loss < BEST_LOSS - 1e-3:
        raise BrokenPart(
            f"The loss fell to {loss:.3f}, and no model can go below {BEST_LOSS:.3f}: something "
            "reads the word that it should predict."
        )
    if loss > GOOD_LOSS:
        raise BrokenPart(
            f"After {step} steps the loss is {loss:.3f}; it should be at most {GOOD_LOSS}. A part "
            "that is right on small inputs may still learn badly: a copied or detached tensor?"
        )
    yield f"It learned: loss {loss:.3f} after {step} steps; the least possible is {BEST_LOSS:.3f}."


@torch.no_grad()
def check_causality(own: OwnModel, ids: Tensor) -> str:
    """Change each word in turn: no prediction before it may move.

    Raises:
        BrokenPart: if one does.
    """
    before = own(ids)
    for j in range(1, len(ids)):
        changed = ids.clone()
        changed[j] = (ids[j] + 1) % len(own.model.embedding.tokens.E)
        if not torch.equal(own(changed)[:j], before[:j]):
            raise BrokenPart(
                f"Predictions before word {j} move when that word changes: it looks ahead."
            )
    return "It cannot see ahead: a changed word moves no prediction before it."


@torch.no_grad()
def check_cache(own: OwnModel, ids: Tensor) -> str:
    """Compare word by word, with a cache, with all words at once.

    Raises:
        BrokenPart: if they differ.
    """
    caches: list[list[Any]] = [[] for _ in range(own.depth)]
    rows = [own(ids[i : i + 1], i, caches)[0] for i in range(len(ids))]
    gap = (torch.stack(rows) - own(ids)).abs().amax(dim=1)
    if gap.max() > TOLERANCE:
        i = int((gap > TOLERANCE).nonzero()[0])
        raise BrokenPart(f"With the cache the logits after word {i} differ by {gap[i]:.3g}.")
    return "Word by word with its cache it says what it says all at once."


def format_attention(weights: Tensor, words: list[str]) -> str:
    """Draw each head's weights in a terminal, the darker the more."""
    lines = ["Where its heads look (rows look, columns are looked at):"]
    for l, heads in enumerate(weights, start=1):
        lines.append(f"\nblock {l}")
        for i, word in enumerate(words):
            shades = [
                "".join(SHADES[round(w.item() * (len(SHADES) - 1))] * 2 for w in head[i])
                for head in heads
            ]
            lines.append(f"{word:>12} │" + "│ │".join(shades) + "│")
    return "\n".join(lines)


def draw_attention(weights: Tensor, words: list[str]) -> AttentionFigure:
    """Draw each head's weights as a figure."""
    return attention_figure(AttentionMaps("Each head", weights, words, words), title="My attention")


@torch.no_grad()
def compare_with_weights(functions: dict[str, Any], folder: Path, N: int = 24) -> Iterator[str]:
    """Load a run's weights, or GPT-2's, and compare every next word with the package's.

    Raises:
        BrokenPart: if the model is not of the book's form, or a next word differs.
        ValueError: if the folder holds no model.
    """
    is_hugging_face = (folder / "config.json").is_file() and "model_type" in read_json(
        folder / "config.json"
    )
    model: Any = from_pretrained(folder) if is_hugging_face else load_model(folder)
    config, kind = model.config, type(model).__name__
    wanted: dict[str, Any] = {"norm": "pre", "positions": "learned"}
    if is_hugging_face:
        wanted |= {"activation": "gelu_tanh", "normalization": "layer", "tied": True}
        wanted["attention_bias"] = True
    else:
        wanted |= {"activation": "relu", "scaled_embeddings": False}
    for name, value in wanted.items():
        if not isinstance(model, TransformerLM) or getattr(config, name, None) != value:
            raise BrokenPart(
                f"{folder} holds a {kind} with {name} = {getattr(config, name, None)!r}; the "
                f"book's model, or GPT-2, has {value!r}."
            )
    if is_hugging_face:
        yield (
            "GPT-2 adds to the book: biases of attention, which are handed to your "
            "my_multi_head_attention as one more row of each matrix, and GELU for ReLU, for which "
            "the feedforward layers are not yours."
        )
    own = OwnModel(functions, model)
    torch.manual_seed(0)
    ids = torch.randint(config.vocab_size, (1,))
    for _ in range(min(N, config.context_length) - 1):  # words that the model itself would write
        ids = torch.cat([ids, torch.softmax(model(ids)[-1], -1).multinomial(1)])
    theirs, mine = torch.softmax(model(ids), -1), torch.softmax(own(ids), -1)
    gap = (theirs - mine).abs().amax(dim=1)
    if gap.max() > TOLERANCE or not torch.equal(mine.argmax(-1), theirs.argmax(-1)):
        i = int(gap.argmax())
        raise BrokenPart(
            f"After word {i} a probability differs by {gap[i]:.3g} from the package's."
        )
    yield (
        f"With the weights of {folder}, your model and the package's say the same next word at all "
        f"{len(ids)} places; no probability differs by more than {gap.max():.1e}."
    )
