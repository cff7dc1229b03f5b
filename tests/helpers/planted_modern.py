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


@wrong("rotary", "half the exponent", "i for 2i")
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
  eps outside: gamma * x / (x.square().mean(-1, keepdim=True).sqrt() + eps)
  length: gamma * x / torch.sqrt((x**2).sum(-1, keepdim=True) + eps)
  no root: gamma * x / (x.pow(2).mean(-1, keepdim=True) + eps)
  gain from 0: F.rms_norm(x, gamma.shape, 1 + gamma, eps)
  all rows together: gamma * x / (x.pow(2).mean() + eps).sqrt()
  odd: F.rms_norm(gamma * x, gamma.shape, None, eps)
  odd: gamma * x / (x.mean(-1, keepdim=True).abs() + eps).sqrt()
rotary
  right: emb = torch.cat([angles(X, start, base)] * 2, dim=-1); x1, x2 = X.chunk(2, dim=-1); X *
      emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
  right: a, b = X.double().chunk(2, dim=-1); turned = torch.complex(a, b) * torch.exp(1j * angles(X,
      start, base).double()); torch.cat([turned.real, turned.imag], dim=-1)
  backwards: cos, sin = angles(X, start, base).cos(), angles(X, start, base).sin(); a, b =
      X.chunk(2, dim=-1); torch.cat([a * cos + b * sin, b * cos - a * sin], dim=-1)
  neighbors: pairs = torch.view_as_complex(X.unflatten(-1, (-1, 2)).contiguous()); turned = pairs *
      torch.exp(1j * angles(X, start, base)); torch.view_as_real(turned).flatten(-2)
  start left out: emb = torch.cat([angles(X, 0, base)] * 2, dim=-1); x1, x2 = X.chunk(2, dim=-1); X
      * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
  one position: emb = torch.cat([angles(X, start, base)[:1]] * 2, dim=-1); x1, x2 = X.chunk(2,
      dim=-1); X * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
  no minus: emb = torch.cat([angles(X, start, base)] * 2, dim=-1); X * emb.cos() + X.roll(X.shape[1]
      // 2, -1) * emb.sin()
  odd: turned = torch.deg2rad(angles(X, start, base)).repeat(1, 2); x1, x2 = X.chunk(2, dim=-1); X *
      turned.cos() + torch.cat((-x2, x1), dim=-1) * turned.sin()
  odd: emb = angles(X, start, base).repeat_interleave(2, dim=-1); x1, x2 = X.chunk(2, dim=-1); X *
      emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
rotary_step
  right: q, k = rotate(q, len(K)), rotate(k, len(K)); torch.cat([K @ q, (k @ q)[None]]) /
      math.sqrt(len(q))
  turned again: keys = torch.vstack([K, k]); keys = torch.stack([rotate(key, len(K)) for key in
      keys]); keys @ rotate(q, len(K)) / len(q) ** 0.5
  turned again by place: keys = torch.stack([rotate(key, j) for j, key in enumerate([*K, k])]); keys
      @ rotate(q, len(K)) / len(q) ** 0.5
  turned again: torch.vstack([K, k]) @ q / len(q) ** 0.5
  query as it is: torch.vstack([K, rotate(k, len(K))]) @ q / len(q) ** 0.5
  one too far: n = len(K) + 1; torch.vstack([K, rotate(k, n)]) @ rotate(q, n) / len(q) ** 0.5
  new key left out: K @ rotate(q, len(K)) / len(q) ** 0.5
shared_keys
  right: G, M, d_k = K.shape; K[:, None].expand(G, A // G, M, d_k).reshape(A, M, d_k)
  in turn: torch.stack([K[c % len(K)] for c in range(A)])
  in turn: K.repeat(A // len(K), 1, 1)
  along tokens: K.repeat_interleave(A // len(K), 1)
  A times: K.repeat_interleave(A, 0)
  first for all: torch.stack([K[0]] * A)
  odd: K.repeat_interleave(A // len(K)).reshape(A, *K.shape[1:])
published_ffn
  right: F.linear(F.silu(F.linear(x, gate_proj)) * F.linear(x, up_proj), down_proj)
  gate and up swapped: F.linear(F.silu(F.linear(x, up_proj)) * F.linear(x, gate_proj), down_proj)
  not turned: (F.silu(x @ gate_proj) * (x @ up_proj)) @ down_proj
  GELU: (F.gelu(x @ gate_proj.T) * (x @ up_proj.T)) @ down_proj.T
  sigmoid: (torch.sigmoid(x @ gate_proj.T) * (x @ up_proj.T)) @ down_proj.T
  bent late: F.silu((x @ gate_proj.T) * (x @ up_proj.T)) @ down_proj.T
  odd: gate = x @ gate_proj.T; (F.silu(gate) * gate) @ down_proj.T
modern_block_parameters
  right: W_Q, W_K, W_V, W_O = d * A * d_k, d * G * d_k, d * G * d_k, A * d_k * d; L * sum([W_Q, W_K,
      W_V, W_O, d * d_ff, d * d_ff, d_ff * d])
  keys for every head: L * (4 * d * A * d_k + 3 * d * d_ff)
  two matrices: L * (2 * d * A * d_k + 2 * d * G * d_k + 2 * d * d_ff)
  square: L * (2 * d * d + 2 * d * G * d_k + 3 * d * d_ff)
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
  row by row: X = F.normalize(G); [X := 3.4445 * X - 4.775 * X @ X.T @ X + 2.0315 * X @ X.T @ X @
      X.T @ X for _ in range(steps)]; X
  cubic: X = G / G.norm(); [X := 1.5 * X - 0.5 * X @ X.T @ X for _ in range(steps)]; X
  no A²: X = G / G.norm(); [X := 3.4445 * X - 4.775 * X @ X.T @ X for _ in range(steps)]; X
  odd: U, S, V = torch.linalg.svd(G, full_matrices=False); U @ V
""",
)
