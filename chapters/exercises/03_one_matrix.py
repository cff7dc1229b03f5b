# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. If it is wrong, the check says so, and names the
# mistake where it recognizes it. Masks
# are additive, as in the book: 0 where attention is allowed, −∞ (`float("-inf")`) where it is not.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · The causal mask
#
# Return M [N × N], with $M_{ij}=-\infty$ for j > i and 0 elsewhere.


# %% tags=["exercise"]
def my_causal_mask(N):
    # solution
    M = torch.zeros(N, N)
    for i in range(N):
        M[i, i + 1 :] = float("-inf")
    return M
    # end


check.causal_mask(my_causal_mask)

# %% [markdown]
# ### Exercise 2 · Why −∞, and not 0 (exercise 7.2 in the Aug 2026 draft)
#
# `scores` is the vector of one token's scores; the token may see `scores[:seen]`. Suppose that the hidden ones were
# set to 0 instead of −∞ before the softmax. Return the total weight that they would get.

# %% tags=["exercise"]


def my_leak(scores, seen):
    # solution
    instead = scores.clone()
    instead[seen:] = 0
    return torch.softmax(instead, dim=-1)[seen:].sum()
    # end


check.leak(my_leak)

# %% [markdown]
# ### Exercise 3 · Attention
#
# (`head-par`) `Q` [N × d_k], `K` [n × d_k], `V` [n × d_v], `mask` [N × n], for n keys. Return the head [N × d_v].
# (`K.T` is the transpose; `torch.softmax(scores, dim=-1)` is the softmax of each row.)

# %% tags=["exercise"]


def my_attention(Q, K, V, mask):
    # solution
    d_k = K.shape[-1]
    scores = Q @ K.T / d_k**0.5
    return torch.softmax(scores + mask, dim=-1) @ V
    # end


check.attention(my_attention)

# %% [markdown]
# ### Exercise 4 · Splitting heads
#
# (`mh-par-qkv`) All heads were computed in one product: `X` is [N × A·d_k], and the columns of head c go from
# c·d_k to (c + 1)·d_k − 1, with c counted from 0. Return the heads as [A × N × d_k].

# %% tags=["exercise"]


def my_split_heads(X, A):
    # solution
    N, columns = X.shape
    return X.reshape(N, A, columns // A).transpose(0, 1)
    # end


check.split_heads(my_split_heads)

# %% [markdown]
# ### Exercise 5 · Joining heads
#
# (`mh-par-out`, the ⊕) `heads` is [A × N × d_v]. Return [N × A·d_v], head 1 in the first columns.

# %% tags=["exercise"]


def my_join_heads(heads):
    # solution
    A, N, d_v = heads.shape
    return heads.transpose(0, 1).reshape(N, A * d_v)
    # end


check.join_heads(my_join_heads)

# %% [markdown]
# ### Exercise 6 · Multi-head attention
#
# (`mh-par-qkv` to `mh-par-out`) Write causal multi-head attention. The heads' matrices are side by side: `W_Q` and
# `W_K` are [d × A·d_k], `W_V` is [d × A·d_v], `W_O` is [A·d_v × d]. Use your functions from
# above; `my_attention` takes one head, so call it for each, or transpose only the last two axes
# (`K.transpose(-2, -1)`).

# %% tags=["exercise"]


def my_multi_head_attention(X, W_Q, W_K, W_V, W_O, A):
    # solution
    Q, K, V = (my_split_heads(X @ W, A) for W in (W_Q, W_K, W_V))
    M = my_causal_mask(len(X))
    heads = [my_attention(Q[c], K[c], V[c], M) for c in range(A)]
    return my_join_heads(torch.stack(heads)) @ W_O
    # end


check.multi_head_attention(my_multi_head_attention)
