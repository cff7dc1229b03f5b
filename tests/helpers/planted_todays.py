"""Attempts at the exercises on today's block, as readers write them: they join `planted`'s."""

import math

import torch
import torch.nn.functional as F
from planted_marks import odd, right, wrong

right("rms_norm", "PyTorch's own")(lambda x, gamma, eps: F.rms_norm(x, gamma.shape, gamma, eps))


@right("rms_norm", "rsqrt, in float64")
def _(x, weight, eps=1e-6):
    x = x.double()
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


wrong("rms_norm", "layer norm", "F.layer_norm")(
    lambda x, gamma, eps: F.layer_norm(x, gamma.shape, gamma, None, eps)
)


@wrong("rms_norm", "mean subtracted", "x − mean over the rms")
def _(x, gamma, eps):
    rms = (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return gamma * (x - x.mean(-1, keepdim=True)) / rms


wrong("rms_norm", "eps outside", "sqrt + eps")(
    lambda x, gamma, eps: gamma * x / (x.square().mean(-1, keepdim=True).sqrt() + eps)
)
wrong("rms_norm", "length", "F.normalize's norm")(
    lambda x, gamma, eps: gamma * x / torch.sqrt((x**2).sum(-1, keepdim=True) + eps)
)
wrong("rms_norm", "no root", "mean square")(
    lambda x, gamma, eps: gamma * x / (x.pow(2).mean(-1, keepdim=True) + eps)
)
wrong("rms_norm", "gain from 0", "1 + γ")(
    lambda x, gamma, eps: F.rms_norm(x, gamma.shape, 1 + gamma, eps)
)
wrong("rms_norm", "all rows together", "mean() of all")(
    lambda x, gamma, eps: gamma * x / (x.pow(2).mean() + eps).sqrt()
)
odd("rms_norm", "the gain before the mean")(
    lambda x, gamma, eps: F.rms_norm(gamma * x, gamma.shape, None, eps)
)
odd("rms_norm", "root of the mean")(
    lambda x, gamma, eps: gamma * x / (x.mean(-1, keepdim=True).abs() + eps).sqrt()
)


def angles(X, start, base):
    theta = base ** -(torch.arange(0, X.shape[1], 2) / X.shape[1])
    return torch.arange(start, start + len(X))[:, None] * theta


@right("rotary", "rotate_half, as in transformers")
def _(X, start, base):
    emb = torch.cat([angles(X, start, base)] * 2, dim=-1)
    x1, x2 = X.chunk(2, dim=-1)
    return X * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


@right("rotary", "complex numbers")
def _(X, start, base):
    a, b = X.double().chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.exp(1j * angles(X, start, base).double())
    return torch.cat([turned.real, turned.imag], dim=-1)


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


@wrong("rotary", "backwards", "the transposed matrix")
def _(X, start, base):
    cos, sin = angles(X, start, base).cos(), angles(X, start, base).sin()
    a, b = X.chunk(2, dim=-1)
    return torch.cat([a * cos + b * sin, b * cos - a * sin], dim=-1)


@wrong("rotary", "neighbors", "complex pairs, as in the paper")
def _(X, start, base):
    pairs = torch.view_as_complex(X.unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.exp(1j * angles(X, start, base))
    return torch.view_as_real(turned).flatten(-2)


@wrong("rotary", "start left out", "arange(N)")
def _(X, start, base):
    emb = torch.cat([angles(X, 0, base)] * 2, dim=-1)
    x1, x2 = X.chunk(2, dim=-1)
    return X * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


@wrong("rotary", "one position", "all rows at start")
def _(X, start, base):
    emb = torch.cat([angles(X, start, base)[:1]] * 2, dim=-1)
    x1, x2 = X.chunk(2, dim=-1)
    return X * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


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


@wrong("rotary", "no minus", "halves exchanged")
def _(X, start, base):
    emb = torch.cat([angles(X, start, base)] * 2, dim=-1)
    return X * emb.cos() + X.roll(X.shape[1] // 2, -1) * emb.sin()


@odd("rotary", "angles in degrees")
def _(X, start, base):
    turned = torch.deg2rad(angles(X, start, base)).repeat(1, 2)
    x1, x2 = X.chunk(2, dim=-1)
    return X * turned.cos() + torch.cat((-x2, x1), dim=-1) * turned.sin()


@odd("rotary", "angles interleaved, columns halved")
def _(X, start, base):
    emb = angles(X, start, base).repeat_interleave(2, dim=-1)
    x1, x2 = X.chunk(2, dim=-1)
    return X * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


@right("rotary_step", "two products")
def _(q, k, K, rotate):
    q, k = rotate(q, len(K)), rotate(k, len(K))
    return torch.cat([K @ q, (k @ q)[None]]) / math.sqrt(len(q))


@wrong("rotary_step", "turned again", "all keys at n")
def _(q, k, K, rotate):
    keys = torch.vstack([K, k])
    keys = torch.stack([rotate(key, len(K)) for key in keys])
    return keys @ rotate(q, len(K)) / len(q) ** 0.5


@wrong("rotary_step", "turned again by place", "enumerate")
def _(q, k, K, rotate):
    keys = torch.stack([rotate(key, j) for j, key in enumerate([*K, k])])
    return keys @ rotate(q, len(K)) / len(q) ** 0.5


wrong("rotary_step", "turned again", "nothing is turned")(
    lambda q, k, K, rotate: torch.vstack([K, k]) @ q / len(q) ** 0.5
)
wrong("rotary_step", "query as it is", "keys alone are turned")(
    lambda q, k, K, rotate: torch.vstack([K, rotate(k, len(K))]) @ q / len(q) ** 0.5
)


@wrong("rotary_step", "one too far", "len after the new key")
def _(q, k, K, rotate):
    n = len(K) + 1
    return torch.vstack([K, rotate(k, n)]) @ rotate(q, n) / len(q) ** 0.5


wrong("rotary_step", "new key left out", "the old ones")(
    lambda q, k, K, rotate: K @ rotate(q, len(K)) / len(q) ** 0.5
)


@right("shared_keys", "expand and flatten")
def _(K, A):
    G, M, d_k = K.shape
    return K[:, None].expand(G, A // G, M, d_k).reshape(A, M, d_k)


@right("shared_keys", "a list of groups")
def _(keys, num_heads):
    each = num_heads // len(keys)
    return torch.stack([keys[c // each] for c in range(num_heads)])


wrong("shared_keys", "in turn", "c % G")(
    lambda K, A: torch.stack([K[c % len(K)] for c in range(A)])
)
wrong("shared_keys", "in turn", "repeat")(lambda K, A: K.repeat(A // len(K), 1, 1))
wrong("shared_keys", "along tokens", "dim=1")(lambda K, A: K.repeat_interleave(A // len(K), 1))
wrong("shared_keys", "A times", "A for A/G")(lambda K, A: K.repeat_interleave(A, 0))
wrong("shared_keys", "first for all", "K[0]")(lambda K, A: torch.stack([K[0]] * A))
odd("shared_keys", "the flattened numbers repeated")(
    lambda K, A: K.repeat_interleave(A // len(K)).reshape(A, *K.shape[1:])
)
right("published_ffn", "F.linear")(
    lambda x, gate_proj, up_proj, down_proj: F.linear(
        F.silu(F.linear(x, gate_proj)) * F.linear(x, up_proj), down_proj
    )
)
wrong("published_ffn", "gate and up swapped", "silu on up")(
    lambda x, gate_proj, up_proj, down_proj: F.linear(
        F.silu(F.linear(x, up_proj)) * F.linear(x, gate_proj), down_proj
    )
)
wrong("published_ffn", "not turned", "x @ W")(
    lambda x, gate_proj, up_proj, down_proj: (F.silu(x @ gate_proj) * (x @ up_proj)) @ down_proj
)
wrong("published_ffn", "GELU", "GeGLU")(
    lambda x, gate_proj, up_proj, down_proj: (
        (F.gelu(x @ gate_proj.T) * (x @ up_proj.T)) @ down_proj.T
    )
)
wrong("published_ffn", "sigmoid", "GLU")(
    lambda x, gate_proj, up_proj, down_proj: (
        (torch.sigmoid(x @ gate_proj.T) * (x @ up_proj.T)) @ down_proj.T
    )
)
wrong("published_ffn", "bent late", "silu of the product")(
    lambda x, gate_proj, up_proj, down_proj: (
        F.silu((x @ gate_proj.T) * (x @ up_proj.T)) @ down_proj.T
    )
)


@odd("published_ffn", "gate alone twice")
def _(x, gate_proj, up_proj, down_proj):
    gate = x @ gate_proj.T
    return (F.silu(gate) * gate) @ down_proj.T


@right("modern_block_parameters", "matrix by matrix")
def _(L, d, A, G, d_k, d_ff):
    W_Q, W_K, W_V, W_O = d * A * d_k, d * G * d_k, d * G * d_k, A * d_k * d
    return L * sum([W_Q, W_K, W_V, W_O, d * d_ff, d * d_ff, d_ff * d])


wrong("modern_block_parameters", "keys for every head", "4 A d d_k")(
    lambda L, d, A, G, d_k, d_ff: L * (4 * d * A * d_k + 3 * d * d_ff)
)
wrong("modern_block_parameters", "two matrices", "the book's layer")(
    lambda L, d, A, G, d_k, d_ff: L * (2 * d * A * d_k + 2 * d * G * d_k + 2 * d * d_ff)
)
wrong("modern_block_parameters", "square", "d · d")(
    lambda L, d, A, G, d_k, d_ff: L * (2 * d * d + 2 * d * G * d_k + 3 * d * d_ff)
)
odd("modern_block_parameters", "W_O for G heads")(
    lambda L, d, A, G, d_k, d_ff: L * (d * A * d_k + 3 * d * G * d_k + 3 * d * d_ff)
)
