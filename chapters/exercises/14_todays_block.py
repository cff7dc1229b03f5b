# %% [markdown]
# ## Exercises
#
# Complete each function from its equation. If your answer is wrong, the check tries to name the mistake.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · RMSNorm
#
# Write it for a row [d] and for rows [N × d]. Add `eps` to the mean square, under the root.


# %% tags=["exercise"]
def my_rms_norm(x, gamma, eps):
    # solution
    mean_square = (x * x).mean(dim=-1, keepdim=True)
    return gamma * x / (mean_square + eps) ** 0.5
    # end


check.rms_norm(my_rms_norm)

# %% [markdown]
# ### Exercise 2 · Rotary positions
#
# (`rope`) `X` [N × d_k] are queries or keys; its first row is at position `start`. Column i and column i + d_k/2 form
# a pair, which is rotated by $pos\cdot\theta_i$ with $\theta_i=base^{-2i/d_k}$.

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
# ### Exercise 3 · One more token
#
# (`kv-attn`, with rotations) The cache `K` [n × d_k] holds the keys of positions 0 to n − 1, already rotated.
# `q` and `k` [d_k] are the query and key of a new token, not rotated yet; `rotate(x, pos)` rotates a row. Return
# the n + 1 scaled scores of the new token.

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
# `K` [G × M × d_k] are the keys of M tokens in G groups, and A is a multiple of G. Return [A × M × d_k], with
# the keys of group $g=\lfloor c\,G/A\rfloor$ for head c.

# %% tags=["exercise"]


def my_shared_keys(K, A):
    # solution
    G = len(K)
    return torch.stack([K[c * G // A] for c in range(A)])
    # end


check.shared_keys(my_shared_keys)

# %% [markdown]
# ### Exercise 5 · SwiGLU with Llama's matrices
#
# (`swish` and `swiglu`) Llama's files store matrices as [out × in]: `gate_proj` and `up_proj` are [d_ff × d],
# `down_proj` is [d × d_ff]. There are no biases, and Swish is applied to the gate.

# %% tags=["exercise"]


def my_published_ffn(x, gate_proj, up_proj, down_proj):
    # solution
    gate, up = x @ gate_proj.T, x @ up_proj.T
    return (gate * torch.sigmoid(gate) * up) @ down_proj.T
    # end


check.published_ffn(my_published_ffn)

# %% [markdown]
# ### Exercise 6 · How many parameters?
#
# (`param-count`, for today's block) How many numbers are in the matrices of L blocks with A query heads, G
# key-value heads, keys and values of size `d_k`, and a gated feedforward layer?

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
# This is what Muon does to a matrix `G` [m × n]: its singular values come near 1, and its singular vectors stay.
# Begin with $\mathbf X=\mathbf G/\lVert\mathbf G\rVert$, where the norm is the root of the sum of all squares. Then
# repeat `steps` times:
#
# $$
# \begin{aligned}
# \mathbf A&=\mathbf X\mathbf X^\top,\qquad\mathbf X\leftarrow a\mathbf X+(b\mathbf A+c\mathbf A^2)\mathbf X\\
# (a,b,c)&=(3.4445,\,-4.775,\,2.0315)
# \end{aligned}
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
