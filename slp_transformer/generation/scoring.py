"""Scoring: how probable a continuation is, as benchmarks of language models ask."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from slp_transformer._internal.argument_checks import check_ids
from slp_transformer._internal.shape_types import Int, Tensor, TokenIds
from slp_transformer.generation.generate_arguments import check_no_padding
from slp_transformer.generation.session import inference_context, model_device, pad_right
from slp_transformer.language_model import TransformerLM

MAX_LOGITS = 2**26  # of a batch at once: 256 MiB in float32


@dataclass(frozen=True)
class ContinuationScore:
    """How probable a continuation is.

    Attributes:
        token_log_probabilities: log P of each of its tokens after all before it, in nats.
        is_greedy: whether each of them is the most probable one, so that greedy decoding would
            write this continuation.
    """

    token_log_probabilities: tuple[float, ...]
    is_greedy: bool

    @property
    def log_probability(self) -> float:
        """The log probability of the whole continuation, in nats."""
        return sum(self.token_log_probabilities)


def score(model: TransformerLM, prompt: TokenIds, continuation: TokenIds) -> float:
    r"""Return the log probability of a continuation, $\sum_t\log P(w_t\mid\mathbf w_{<t})$ in nats.

    Args:
        model: a language model.
        prompt: the ids before it, at least one.
        continuation: its ids; of none the score is 0.

    Raises:
        ValueError: as `score_continuations`.
    """
    return score_continuations(model, [(prompt, continuation)])[0].log_probability


def score_continuations(
    model: TransformerLM, pairs: Sequence[tuple[TokenIds, TokenIds]]
) -> list[ContinuationScore]:
    """Score continuations of prompts, several at once.

    Args:
        model: a language model.
        pairs: the ids of each prompt, and of its continuation.

    Returns:
        The scores, in the order of the pairs.

    Raises:
        ValueError: if the model is no language model, a prompt is empty, an id is outside the
            vocabulary, or a pair has more tokens than the window, and one.
    """
    if not isinstance(model, TransformerLM):
        raise ValueError(f"A language model scores continuations; {type(model).__name__} is none.")
    texts = [parse_pair(model, prompt, rest) for prompt, rest in pairs]
    found: dict[int, ContinuationScore] = {}
    order = sorted(range(len(texts)), key=lambda i: sum(map(len, texts[i])), reverse=True)
    with inference_context(model):
        while order:
            width = sum(map(len, texts[order[0]]))
            count = max(1, MAX_LOGITS // (width * model.config.vocab_size))
            batch, order = order[:count], order[count:]
            found |= zip(batch, _score_batch(model, [texts[i] for i in batch]), strict=True)
    return [found[i] for i in range(len(texts))]


def parse_pair(
    model: TransformerLM, prompt: TokenIds, continuation: TokenIds
) -> tuple[Int[Tensor, "N"], Int[Tensor, "M"]]:
    """Return the ids of a prompt and of its continuation as tensors on the CPU.

    Raises:
        ValueError: if the prompt is empty, an id is outside the vocabulary, or there are more
            tokens than the window, and one.
    """
    first, rest = _parse_ids(model, prompt), _parse_ids(model, continuation)
    window = model.config.context_length
    if not len(first):
        raise ValueError(
            "The prompt is empty: give at least one token, such as the one that begins a text."
        )
    if len(first) + len(rest) > window + 1:  # the last one is read by nobody
        raise ValueError(
            f"The prompt has {len(first)} tokens and the continuation {len(rest)}, but the "
            f"model's window is {window}: give the end of the prompt only."
        )
    return first, rest


def _parse_ids(model: TransformerLM, ids: Any) -> Int[Tensor, "N"]:
    """Return ids as a tensor on the CPU.

    Raises:
        ValueError: if they are text, no sequence, outside the vocabulary, or padded.
    """
    if isinstance(ids, str):
        raise ValueError("Prompts and continuations are token ids: encode the text first.")
    found = torch.as_tensor(ids, device="cpu")
    if found.dim() != 1:
        raise ValueError("A prompt and a continuation are each one sequence of ids.")
    if len(found):
        check_ids(found, model.config.vocab_size)
        check_no_padding(found, model.config)
    return found.long()


def _score_batch(
    model: TransformerLM, texts: Sequence[tuple[Tensor, Tensor]]
) -> list[ContinuationScore]:
    """Score continuations of prompts in one pass, without their last tokens."""
    # Causal: padding on the right is seen by nothing that counts.
    ids, _ = pad_right([torch.cat(text)[:-1] for text in texts], model_device(model))
    U, scores = model(ids), []
    for u, (prompt, rest) in zip(U, texts, strict=True):
        u = u[len(prompt) - 1 : len(prompt) - 1 + len(rest)]
        log_y = torch.log_softmax(u.to(torch.promote_types(u.dtype, torch.float32)), dim=-1)
        targets = rest.to(log_y.device)
        of_tokens = log_y.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        is_greedy = bool((log_y.argmax(dim=-1) == targets).all())
        scores.append(ContinuationScore(tuple(of_tokens.tolist()), is_greedy))
    return scores
