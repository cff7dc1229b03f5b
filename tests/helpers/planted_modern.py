"""Attempts at the exercises on the modern block, as readers write them."""

import math

import torch
from planted import add_table, right


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
  right: lambda x, weight, eps=1e-6: weight * x.double() * torch.rsqrt(x.double().pow(2).mean(-1,
      keepdim=True) + eps)
  d − 1, eps outside: ms = (x**2).sum(-1, keepdim=True) / (x.shape[-1] - 1); x * gamma / (ms**0.5 +
      eps)
rotary
  right: emb = torch.cat([angles(X, start, base)] * 2, dim=-1); x1, x2 = X.chunk(2, dim=-1); X *
      emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
  added (sines first): h = X.shape[1] // 2; a = (start + torch.arange(len(X)))[:, None] * base **
      (-torch.arange(h) / h); X + torch.cat([a.sin(), a.cos()], 1)
  right: a, b = X.double().chunk(2, dim=-1); turned = torch.complex(a, b) * torch.exp(1j * angles(X,
      start, base).double()); torch.cat([turned.real, turned.imag], dim=-1)
  odd: angles(X, start, base) => torch.deg2rad(angles(X, start, base))
  odd: torch.cat([angles(X, start, base)] * 2, dim=-1) => angles(X, start,
      base).repeat_interleave(2, dim=-1)
  root of base: angles(X, start, base) => angles(X, start, base**0.5)
  turned twice: cos, sin = angles(X, start, base).cos(), angles(X, start, base).sin(); X, half =
      X.clone(), X.shape[1] // 2; X[:, :half] = X[:, :half] * cos - X[:, half:] * sin; X[:, half:] =
      X[:, :half] * sin + X[:, half:] * cos; X
rotary_step
  right: q, k = rotate(q, len(K)), rotate(k, len(K)); torch.cat([K @ q, (k @ q)[None]]) /
      math.sqrt(len(q))
  scaled by the length: math.sqrt(len(q)) => math.sqrt(len(K) + 1)
  no rotate: keys = torch.vstack([K, k]); keys = torch.stack([rotate(key, len(K)) for key in keys]);
      keys @ rotate(q, len(K)) / len(q) ** 0.5
  turned again by place: keys = torch.stack([rotate(key, j) for j, key in enumerate([*K, k])]); keys
      @ rotate(q, len(K)) / len(q) ** 0.5
shared_keys
  c over G: torch.stack([K[min(c // len(K), len(K) - 1)] for c in range(A)])
  right: G, M, d_k = K.shape; K[:, None].expand(G, A // G, M, d_k).reshape(A, M, d_k)
  in turn: torch.stack([K[c % len(K)] for c in range(A)])
  along tokens: K.repeat_interleave(A // len(K), 1)
  odd: K.repeat_interleave(A // len(K)).reshape(A, *K.shape[1:])
  right: torch.stack([K[c // (A // len(K))] for c in range(A)])
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
  right: X = G.T / G.norm(); [X := 3.4445 * X - 4.775 * X @ X.T @ X + 2.0315 * X @ X.T @ X @ X.T @ X
      for _ in range(steps)]; X.T
  right: U, S, V = torch.linalg.svd(G, full_matrices=False); S = S / S.square().sum().sqrt(); [S :=
      3.4445 * S - 4.775 * S**3 + 2.0315 * S**5 for _ in range(steps)]; U @ torch.diag(S) @ V
  not divided: G.T / G.norm() => G.T
  largest: G.norm() => torch.linalg.svdvals(G)[0]
  odd: U, S, V = torch.linalg.svd(G, full_matrices=False); U @ V
""",
)
