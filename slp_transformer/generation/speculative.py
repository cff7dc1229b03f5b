"""Speculative decoding: a small model proposes words, a large one reads them all at once."""

from collections.abc import Callable, Collection

import torch

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.generation.session import DecoderSession, OnToken, model_device
from slp_transformer.sampling import sample


def speculative_loop(
    session: DecoderSession,
    draft: DecoderSession,
    probabilities: Callable[[Tensor, Tensor], Tensor],
    prompt: list[int],
    max_length: int,
    num_draft_tokens: int = 4,
    generator: torch.Generator | None = None,
    stop_ids: Collection[int] = (),
    on_token: OnToken | None = None,
) -> tuple[list[int], bool]:
    """Write on after a prompt, with words distributed exactly as by the large model alone.

    Source: Leviathan et al. 2023 (arXiv 2211.17192), algorithm 1. A word x is accepted with
    probability min(1, p(x)/q(x)), where p is the large model's distribution and q the draft's. The
    first that is not is replaced by one drawn from max(0, p − q), which makes up the difference.

    Args:
        session: the large model.
        draft: the small one.
        probabilities: called with logits [1 × V] and the ids so far [1 × T]; gives a distribution.
        prompt: the beginning of the text.
        max_length: how long the text may become.
        num_draft_tokens: how many words are proposed at a time.
        generator: where random numbers come from.
        stop_ids: ids after which the text ends.
        on_token: called with 0 and the id of each new word; if it returns True, the text ends.

    Returns:
        The ids of the text, and whether a stop token or `on_token` ended it.
    """
    device = model_device(session.model)
    ids = torch.tensor([prompt], device=device)
    while (T := ids.shape[1]) < max_length:
        proposed: list[Tensor] = []
        for _ in range(min(num_draft_tokens, max_length - T - 1)):
            proposed.append(probabilities(draft(ids), ids))
            ids = torch.cat([ids, sample(proposed[-1].log(), generator)[:, None]], dim=1)
        for i, u in enumerate(session.last_logits(ids, len(proposed) + 1).unbind(1)):
            p = probabilities(u, ids[:, : T + i])
            if i < len(proposed):
                q, x = proposed[i], ids[0, T + i]
                if torch.rand((), generator=generator, device=device) * q[0, x] < p[0, x]:
                    continue
                # What the draft proposes too rarely; nothing, where both agree but for rounding.
                rest = (p - q).clamp(min=0)
                p = rest if rest.any() else p
            ids = torch.cat([ids[:, : T + i], sample(p.log(), generator)[:, None]], dim=1)
            break
        for length, word in enumerate(ids[0, T:].tolist(), T + 1):
            ended = on_token is not None and on_token(0, word)
            if ended or word in stop_ids:
                return ids[0, :length].tolist(), True
        # Guesses that were refused are forgotten, and the last word has been read by nobody yet.
        session.truncate(ids.shape[1] - 1)
        draft.truncate(ids.shape[1] - 1)
    return ids[0].tolist(), False
