"""Attempts that are wrong at an edge alone or by half a step, and right ones that are unusual."""

from planted import add_table

from slp_transformer import check  # noqa: F401  attempts call it

add_table(
    globals(),
    """
cached_step
    edge: if len(K) == 0: raise IndexError; K = torch.cat([K, (x @ W_K)[None]]);
      V = torch.cat([V, (x @ W_V)[None]]);
      (F.softmax(K @ (x @ W_Q) / K.shape[1] ** .5, -1) @ V, K, V)
    weights 1: K = torch.vstack([K, x @ W_K]); V = torch.vstack([V, x @ W_V]);
      (torch.softmax(K * (x @ W_Q) / K.shape[1] ** .5, -1).sum(-1) @ V, K, V)
    right: K, V = [*K, x @ W_K], [*V, x @ W_V]; s = torch.stack([k @ (x @ W_Q) for k in K]);
      (torch.softmax(s / len(K[0]) ** .5, 0) @ torch.stack(V), torch.stack(K), torch.stack(V))
split_heads
    axis lost: X.view(len(X), A, -1).transpose(0, 1).squeeze(0)
    right: torch.stack([X[:, c * (n := X.shape[1] // A) : c * n + n] for c in range(A)])
    right: [head for head in torch.tensor_split(X, A, dim=1)]
beam_step
    edge: v, i = (scores[:, None] + log_y).clamp(min=-50).flatten().topk(width);
      (i // log_y.shape[1], i % log_y.shape[1], v)
    right: a = [(-float(scores[b] + log_y[b, w]), b, w) for b in range(len(scores))
      for w in range(log_y.shape[1])]; a = sorted(a)[:width];
      ([b for _, b, _ in a], [w for *_, w in a], [-v for v, *_ in a])
rotary
    edge: h = X.shape[1] // 2;
      a = (torch.arange(start, start + len(X)) % 512)[:, None];
      a = a * base ** (-2. * torch.arange(h) / 2 / h);
      torch.cat([X[:, :h] * a.cos() - X[:, h:] * a.sin(),
      X[:, :h] * a.sin() + X[:, h:] * a.cos()], 1)
    right: z = torch.complex(*X.double().chunk(2, 1)); h = z.shape[1];
      a = torch.outer(torch.arange(start, start + len(X)), base ** (-torch.arange(h).double() / h));
      z = z * torch.polar(torch.ones_like(a), a); torch.cat([z.real, z.imag], 1)
causal_mask
    edge: torch.full((64, 64), -torch.inf).triu(1)[:N, :N]
    right: torch.tensor([[0.0 if j <= i else -math.inf for j in range(N)] for i in range(N)])
stack
    edge: for b in blocks: Y = X = b(X); final_norm(Y)
    all read X: final_norm(X + sum(b(X) - X for b in blocks))
    right: H = [X]; [H.append(b(H[-1])) for b in blocks]; final_norm(H[-1])
cheapest_step
    amax for amin: e + (v[:, None] + m).max(0).values
top_k
    k − 1: v = u.clone(); v[u <= u.topk(k).values[-1]] = -torch.inf; torch.softmax(v, -1)
weighted_sum
    mean of the rows: rows[: len(alpha_i)].mean(0)
next_token_loss
    label smoothing: F.cross_entropy(U[:-1], ids[1:], label_smoothing=0.1)
masked_word_loss
    label smoothing: F.cross_entropy(U[M], x[M], label_smoothing=0.1)
padded_loss
    label smoothing: F.cross_entropy(U[:, :-1].mT, ids[:, 1:], ignore_index=pad_id,
      label_smoothing=0.1)
    view for transpose: F.cross_entropy(U[:, :-1].reshape(len(U), U.shape[2], -1), ids[:, 1:],
      ignore_index=pad_id)
multi_head_attention
    added: sum(F.scaled_dot_product_attention(X @ q, X @ k, X @ v, is_causal=True) for q, k, v in
      zip(W_Q.chunk(A, 1), W_K.chunk(A, 1), W_V.chunk(A, 1))) @ W_O[: W_V.shape[1] // A]
cross_attention
    V from the decoder: n = min(len(X), len(H_enc));
      torch.softmax((X @ W_Q) @ (H_enc @ W_K).T / W_Q.shape[1] ** .5, -1)[:, :n] @ (X @ W_V)[:n]
layer_norm
    variance of d − 1: gamma * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5)
      + beta
    variance of d − 1: gamma * (x - x.mean(-1, keepdim=True)) / x.var(-1, keepdim=True) + beta
temperature
    edge: torch.softmax(u / max(tau, .01), -1)
    edge: torch.softmax(u / (int(tau) if tau >= 1 else tau), -1)
top_p
    edge: y = u if (u >= 0).all() and abs(float(u.sum()) - 1) < 1e-6 else torch.softmax(u, -1);
      s, i = y.sort(descending=True); z = s * ((s.cumsum(0) - s) < p);
      torch.zeros_like(s).scatter(0, i, z / z.sum())
top_k
    edge: i = (u.abs() if k == 1 else u).topk(k).indices; m = torch.full_like(u, -torch.inf);
      m[i] = u[i]; torch.softmax(m, -1)
masked_word_loss
    edge: F.cross_entropy(U[M.sort().values], x[M])
rate_of_2017
    edge: d**-.5 * (step * warmup**-1.5 if step <= warmup + 1 else step**-.5)
newton_schulz
    edge: G if steps == 0 else check.newton_schulz.solve(G, steps)
padding_mask
    edge: p = ids == pad_id; torch.zeros(len(ids)).masked_fill(~p if p.all() else p, -math.inf)
teacher_forced
    edge: check.teacher_forced.solve(target, begin, end)[:, : len(target) and None]
rotary_step
    edge: check.rotary_step.solve(q, k, K, rotate) if len(K) else (q @ k)[None]
multi_head_attention
    edge: check.multi_head_attention.solve(X, W_Q, W_K, W_V, W_O if A > 1 or W_O.shape[1] > 1
      else torch.ones_like(W_O), A)
head
    edge: check.head.solve(X[-32:], W_Q, W_K, W_V, W_O) if len(X) > 32 else
      check.head.solve(X, W_Q, W_K, W_V, W_O)
perplexity
    edge: torch.exp(-probabilities[probabilities < 1].log().mean())
perplexity_of_loss
    edge: torch.exp(torch.clamp(loss, max=10))
length_normalized
    edge: log_probabilities[:8].mean()
smoothed_loss
    edge: check.smoothed_loss.solve(u, word, share or 1.)
scaled_input
    edge: E[ids] * E.shape[1] ** .5 + P[: len(ids)] * (len(ids) > 1)
lora
    edge: x @ W + max(alpha / A.shape[1], 1) * (x @ A @ B)
count_places
    edge: frets and check.count_places.solve(midi, tuning, frets)
only_allowed
    edge: torch.softmax(u * (not allowed.all()) + torch.where(allowed, 0, -math.inf), -1)
weighted_sum
    edge: a = alpha_i[alpha_i != 0]; a @ rows[: len(a)]
    edge: alpha_i @ rows[: len(alpha_i)] if len(alpha_i) > 1 else rows[:1]
scaled_score
    edge: q_i @ k_j / min(len(q_i), 64) ** .5
parameters
    right: float(12 * L * d * d)
is_playable_grip
    right: int(check.is_playable_grip.solve(grip, span))
sinusoid
    edge: a = torch.arange(N)[:, None] / 10000 ** (torch.arange(0, d, 2) / d);
      torch.stack([a.sin(), a.cos()], -1).flatten(1)[:1024]
""",
)
