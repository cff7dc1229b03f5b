# %% [markdown]
# ## Exercises
#
# Write what is missing, from the equation alone; the check names the mistake if there is one.

# %% [markdown]
# ### Exercise 1 · RMSNorm
#
# For a row or for rows. Add `eps` to the mean square, under the root.

# %% tags=["exercise"]
import torch

from slp_transformer import check


def my_rms_norm(x, gamma, eps):
    # solution
    mean_square = (x * x).mean(dim=-1, keepdim=True)
    return gamma * x / (mean_square + eps) ** 0.5
    # end


check.rms_norm(my_rms_norm)

# %% [markdown]
# ### Exercise 2 · Turning
#
# `X` [N × d_k] are queries or keys; its first row stands at position `start`. Column i and column i + d_k/2 are
# a pair, and turn by $pos\cdot\theta_i$ with $\theta_i=base^{-2i/d_k}$.

# %% tags=["exercise"]


def my_rotary(X, start, base):
    # solution
    (N, d_k), half = X.shape, X.shape[1] // 2
    theta = base ** (-2 * torch.arange(half) / d_k)
    angles = torch.arange(start, start + N)[:, None] * theta
    cos, sin = angles.cos(), angles.sin()
    a, b = X[:, :half], X[:, half:]
    turned = a * cos - b * sin, a * sin + b * cos
    return torch.cat(turned, dim=1)
    # end


check.rotary(my_rotary)

# %% [markdown]
# ### Exercise 3 · A word more
#
# (`kv-attn`, with rotations) The cache `K` [n × d_k] holds the keys of positions 0 to n − 1, turned when they
# were written. A new token comes, with `q` and `k` [d_k] not turned yet; `rotate(x, pos)` turns a row. Return
# its n + 1 scaled scores.

# %% tags=["exercise"]


def my_rotary_step(q, k, K, rotate):
    # solution
    n = len(K)
    K = torch.cat([K, rotate(k, n)[None]])
    return K @ rotate(q, n) / len(q) ** 0.5
    # end


check.rotary_step(my_rotary_step)

# %% [markdown]
# ### Exercise 4 · Shared keys
#
# `K` [G × M × d_k] are the keys of G groups. Return [A × M × d_k]: for head c those of group
# $g=\lfloor c\,G/A\rfloor$.

# %% tags=["exercise"]


def my_shared_keys(K, A):
    # solution
    G = len(K)
    return torch.stack([K[c * G // A] for c in range(A)])
    # end


check.shared_keys(my_shared_keys)

# %% [markdown]
# ### Exercise 5 · The gate, from a file
#
# (`swish` and `swiglu`) Llama's files keep matrices as [out × in]: `gate_proj` and `up_proj` are [d_ff × d], `down_proj`
# is [d × d_ff]. There are no biases, and the gate is what Swish bends.

# %% tags=["exercise"]


def my_published_ffn(x, gate_proj, up_proj, down_proj):
    # solution
    gate, up = x @ gate_proj.T, x @ up_proj.T
    return (gate * torch.sigmoid(gate) * up) @ down_proj.T
    # end


check.published_ffn(my_published_ffn)

# %% [markdown]
# ### Exercise 6 · How many?
#
# (`param-count`, for today's block) How many numbers are in the matrices of L blocks: A heads ask and G answer, with
# keys and values of size `d_k`, and the feedforward layer is gated?

# %% tags=["exercise"]


def my_modern_block_parameters(L, d, A, G, d_k, d_ff):
    # solution
    attention = 2 * (A + G) * d * d_k
    return L * (attention + 3 * d * d_ff)
    # end


check.modern_block_parameters(my_modern_block_parameters)

# %% [markdown]
# ### Exercise 7 · Newton-Schulz
#
# What Muon does to a matrix `G` [m × n]: all its singular values go to about 1, its directions stay. Begin with
# $\mathbf X=\mathbf G/\lVert\mathbf G\rVert$, the length being the root of the sum of all squares. Then `steps` times:
#
# $$
# \mathbf A=\mathbf X\mathbf X^\top,\qquad\mathbf X\leftarrow a\mathbf X+(b\mathbf A+c\mathbf A^2)\mathbf X,\qquad
# (a,b,c)=(3.4445,\,-4.775,\,2.0315)
# $$

# %% tags=["exercise"]


def my_newton_schulz(G, steps):
    # solution
    a, b, c = 3.4445, -4.775, 2.0315
    X = G / G.norm()
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X
    # end


check.newton_schulz(my_newton_schulz)
