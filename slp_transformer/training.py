"""Training: teacher forcing on windows of a token stream, one loss, one optimiser, one loop."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer.attention import check_size
from slp_transformer.shapes import Float, Int, Tensor, shape_of


def next_token_loss(
    U: Float[Tensor, "*batch N V"], targets: Int[Tensor, "*batch N"]
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy of the words that came next, in nats.

    $$L=\frac1T\sum_{t=1}^T-\log\hat{\mathbf y}_t[w_{t+1}]$$

    Source: `ce` and `ce-mean` (7.54 and 7.55 in the Aug 2026 draft; section 8.7 of the 2025 one).

    Args:
        U: logits for the word after each position.
        targets: the word that did come after each position.

    Raises:
        ValueError: if there is not one target for each position.
    """
    if U.shape[:-1] != targets.shape:
        raise ValueError(
            f"Each position needs one target, but the logits are {shape_of(U)} and the targets "
            f"{shape_of(targets)}."
        )
    return F.cross_entropy(U.flatten(0, -2), targets.flatten())


def random_windows(
    stream: Int[Tensor, "tokens"], N: int, batch_size: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch N"], Int[Tensor, "batch N"]]:
    """Windows of a token stream, and the same windows one token later.

    Args:
        stream: the corpus, as one row of ids.
        N: tokens in a window.
        batch_size: how many windows.
        generator: where the random places come from.

    Returns:
        What the model reads and what it should say, both [batch × N].

    Raises:
        ValueError: if the stream is too short for one window.
    """
    check_stream(stream, N)
    starts = torch.randint(len(stream) - N, (batch_size, 1), generator=generator)
    windows = stream[starts + torch.arange(N + 1)]
    return windows[:, :-1], windows[:, 1:]


def check_stream(stream: Tensor, N: int) -> None:
    """Refuse a corpus that does not fill one window.

    Raises:
        ValueError: saying how many tokens there are and how many are needed.
    """
    if len(stream) <= N:
        raise ValueError(
            f"The corpus has {len(stream)} tokens, but one window of {N} and its next token need "
            f"{N + 1}: give more text, or choose a shorter context."
        )


@torch.no_grad()
def mean_loss(
    model: nn.Module, stream: Int[Tensor, "tokens"], N: int, batch_size: int = 32
) -> float:
    """The loss over a whole stream, cut into windows that do not overlap.

    Args:
        model: a language model; it is put in evaluation mode, and back as it was.
        stream: held-out tokens; what is left over after the last full window is not counted.
        N: tokens in a window.
        batch_size: windows scored at once.

    Returns:
        Nats per token.

    Raises:
        ValueError: if the stream is too short for one window.
    """
    check_stream(stream, N)
    was_training = model.training
    model.eval()
    count = (len(stream) - 1) // N
    inputs = stream[: count * N].view(count, N)
    targets = stream[1 : count * N + 1].view(count, N)
    losses = [
        next_token_loss(model(x), y).item() * len(x)
        for x, y in zip(inputs.split(batch_size), targets.split(batch_size), strict=True)
    ]
    model.train(was_training)
    return sum(losses) / count


def make_optimiser(
    model: nn.Module, learning_rate: float, weight_decay: float = 0.1
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) that lets matrices decay, but not biases or norms."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))


def cosine_schedule(step: int, steps: int, warmup: int) -> float:
    """Share of the full learning rate at a step: a straight warm-up, then a cosine down to 0.1."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class Record:
    """One measurement along a training run.

    Attributes:
        step: steps made so far.
        train_loss: mean loss of the steps since the last record, in nats per token.
        valid_loss: loss on the whole held-out stream, in nats per token.
    """

    step: int
    train_loss: float
    valid_loss: float


def train(
    model: nn.Module,
    stream: Int[Tensor, "tokens"],
    held_out: Int[Tensor, "held_out"],
    *,
    steps: int,
    context_length: int,
    batch_size: int = 32,
    learning_rate: float = 3e-3,
    seed: int = 0,
    every: int = 100,
    report: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Train a language model on random windows of a token stream.

    Args:
        model: the language model, trained in place and left in evaluation mode.
        stream: the corpus, as one row of ids.
        held_out: tokens that the model does not learn from.
        steps: how many batches to learn from.
        context_length: N, tokens in a window.
        batch_size: windows in a batch.
        learning_rate: the highest rate, after the warm-up.
        seed: seed of the windows, and of dropout.
        every: steps between measurements.
        report: called with each record as it is made.

    Returns:
        The records, the last one after the last step.

    Raises:
        ValueError: if either stream is too short for one window, or a setting is not above 0.
    """
    check_size(steps=steps, context_length=context_length, batch_size=batch_size, every=every)
    if not learning_rate > 0:
        raise ValueError(f"learning_rate must be above 0, not {learning_rate!r}.")
    check_stream(stream, context_length)
    check_stream(held_out, context_length)
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    optimiser = make_optimiser(model, learning_rate)
    records, losses = [], []
    model.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate * cosine_schedule(step, steps, warmup=steps // 20)
        inputs, targets = random_windows(stream, context_length, batch_size, generator)
        loss = next_token_loss(model(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
        if (step + 1) % every == 0 or step + 1 == steps:
            valid_loss = mean_loss(model, held_out, context_length)
            records.append(Record(step + 1, sum(losses) / len(losses), valid_loss))
            losses = []
            if report is not None:
                report(records[-1])
    model.eval()
    return records
