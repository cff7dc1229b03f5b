"""Attempts at the exercises on the modern block, as readers write them."""

import math

import torch
from planted import add_table, right, wrong


@right("rms_norm", "rsqrt, in float64")
def _(x, weight, eps=1e-6):
    x = x.double()
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def angles(X, start, base):
    theta = base ** -(torch.arange(0, X.shape[1], 2) / X.shape[1])
    return torch.arange(start, start + len(X))[:, None] * theta


@right("rotary", "loops")
def _(X, start, base):
    out, half = X.clone(), X.shape[1] // 2
    for n in range(len(X)):
        for i in range(half):
            angle = (start + n) * base ** (-2 * i / X.shape[1])
            a, b = X[n, i].item(), X[n, i + half].item()
            out[n, i] = a * math.cos(angle) - b * math.sin(angle)
            out[n, i + half] = a * math.sin(angle) + b * math.cos(angle)
    return out


@wrong("rotary", "root of base", "i for 2i")
def _(X, start, base):
    half = X.shape[1] // 2
    theta = torch.tensor([base ** (-i / X.shape[1]) for i in range(half)])
    emb = torch.outer(torch.arange(start, start + len(X)).float(), theta).repeat(1, 2)
    return X * emb.cos() + torch.cat((-X[:, half:], X[:, :half]), dim=-1) * emb.sin()


@wrong("rotary", "turned twice", "in place")
def _(X, start, base):
    cos, sin = angles(X, start, base).cos(), angles(X, start, base).sin()
    X, half = X.clone(), X.shape[1] // 2
    X[:, :half] = X[:, :half] * cos - X[:, half:] * sin
    X[:, half:] = X[:, :half] * sin + X[:, half:] * cos
    return X


@right("shared_keys", "a list of groups")
def _(keys, num_heads):
    each = num_heads // len(keys)
    return torch.stack([keys[c // each] for c in range(num_heads)])


add_table(
    globals(),
    r"""
rms_norm
  right: F.rms_norm(x, gamma.shape, gamma, eps)
  layer norm: F.layer_norm(x, gamma.shape, gamma, None, eps)
  mean subtracted: rms = (x.square().mean(-1, keepdim=True) + eps).sqrt(); gamma * (x - x.mean(-1,
      keepdim=True)) / rms
  odd: F.rms_norm(gamma * x, gamma.shape, None, eps)
  odd: gamma * x / (x.mean(-1, keepdim=True).abs() + eps).sqrt()
rotary
  added (sines first): h = X.shape[1] // 2; a = (start + torch.arange(len(X)))[:, None] * base
      ** (-torch.arange(h) / h); X + torch.cat([a.sin(), a.cos()], 1)
  right: emb = torch.cat([angles(X, start, base)] * 2, dim=-1); x1, x2 = X.chunk(2, dim=-1); X *
      emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
  right: a, b = X.double().chunk(2, dim=-1); turned = torch.complex(a, b) * torch.exp(1j * angles(X,
      start, base).double()); torch.cat([turned.real, turned.imag], dim=-1)
  odd: turned = torch.deg2rad(angles(X, start, base)).repeat(1, 2); x1, x2 = X.chunk(2, dim=-1); X *
      turned.cos() + torch.cat((-x2, x1), dim=-1) * turned.sin()
  odd: emb = angles(X, start, base).repeat_interleave(2, dim=-1); x1, x2 = X.chunk(2, dim=-1); X *
      emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
rotary_step
  scaled by the length: K = torch.cat([K, rotate(k, len(K))[None]]); K @ rotate(q, len(K) - 1) /
      len(K) ** 0.5
  right: q, k = rotate(q, len(K)), rotate(k, len(K)); torch.cat([K @ q, (k @ q)[None]]) /
      math.sqrt(len(q))
  no rotate: keys = torch.vstack([K, k]); keys = torch.stack([rotate(key, len(K)) for key in
      keys]); keys @ rotate(q, len(K)) / len(q) ** 0.5
  turned again by place: keys = torch.stack([rotate(key, j) for j, key in enumerate([*K, k])]); keys
      @ rotate(q, len(K)) / len(q) ** 0.5
shared_keys
  c over G: torch.stack([K[min(c // len(K), len(K) - 1)] for c in range(A)])
  right: G, M, d_k = K.shape; K[:, None].expand(G, A // G, M, d_k).reshape(A, M, d_k)
  in turn: torch.stack([K[c % len(K)] for c in range(A)])
  along tokens: K.repeat_interleave(A // len(K), 1)
  odd: K.repeat_interleave(A // len(K)).reshape(A, *K.shape[1:])
published_ffn
  odd: h = x @ gate_proj.T; (h * h.exp() / (1 + h.exp()) * (x @ up_proj.T)) @ down_proj.T
  up alone: x @ up_proj.T @ down_proj.T
  right: F.linear(F.silu(F.linear(x, gate_proj)) * F.linear(x, up_proj), down_proj)
  gate_proj and up_proj swapped: F.linear(F.silu(x @ up_proj.T) * (x @ gate_proj.T), down_proj)
  not turned: (F.silu(x @ gate_proj) * (x @ up_proj)) @ down_proj
  odd: gate = x @ gate_proj.T; (F.silu(gate) * gate) @ down_proj.T
modern_block_parameters
  one head: L * (4 * d * d_k + 3 * d * d_ff)
  right: W_Q, W_K, W_V, W_O = d * A * d_k, d * G * d_k, d * G * d_k, A * d_k * d; L * sum([W_Q, W_K,
      W_V, W_O, d * d_ff, d * d_ff, d_ff * d])
  A for G: L * (4 * d * A * d_k + 3 * d * d_ff)
  two matrices: L * (2 * d * A * d_k + 2 * d * G * d_k + 2 * d * d_ff)
  odd: L * (d * A * d_k + 3 * d * G * d_k + 3 * d * d_ff)
newton_schulz
  right: U, S, V = torch.linalg.svd(G, full_matrices=False); S = S / S.square().sum().sqrt(); [S :=
      3.4445 * S - 4.775 * S**3 + 2.0315 * S**5 for _ in range(steps)]; U @ torch.diag(S) @ V
  right: X = G.T / G.norm(); [X := 3.4445 * X - 4.775 * X @ X.T @ X + 2.0315 * X @ X.T @ X @ X.T @ X
      for _ in range(steps)]; X.T
  not divided: X = G; [X := 3.4445 * X - 4.775 * X @ X.T @ X + 2.0315 * X @ X.T @ X @ X.T @ X for _
      in range(steps)]; X
  largest: X = G / torch.linalg.svdvals(G)[0]; [X := 3.4445 * X - 4.775 * X @ X.T @ X + 2.0315 * X @
      X.T @ X @ X.T @ X for _ in range(steps)]; X
  odd: U, S, V = torch.linalg.svd(G, full_matrices=False); U @ V
""",
)
