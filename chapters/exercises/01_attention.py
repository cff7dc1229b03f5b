# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. Each function is then tested on small, large and
# extreme inputs; if it is wrong, the check says so, and names the mistake where it recognizes it.
# Rows are tokens, i counts from 0, and you may use loops, matrix products or another library. This is
# what a check says when something is missing:

# %%
import torch

from slp_transformer import check


def forgetful_score(q_i, k_j):
    return (q_i * k_j).sum()


check.scaled_score(forgetful_score)

# %% [markdown]
# ### Exercise 1 · Softmax
#
# (`simple-softmax`) `scores` is a vector of numbers. Return one weight for each: positive, with sum 1. Scores
# may be as large as 1000.

# %% tags=["exercise"]


def my_softmax(scores):
    # solution
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum()
    # end


check.softmax(my_softmax, one_row=True)

# %% [markdown]
# ### Exercise 2 · A weighted sum
#
# (`simple-sum`) `alpha_i` holds the weights $\alpha_{i1},\dots,\alpha_{ii}$ of one token. `rows` is a
# matrix with one row for each token; it may go on after token i. Return $\mathbf a_i$.

# %% tags=["exercise"]


def my_weighted_sum(alpha_i, rows):
    # solution
    total = torch.zeros(rows.shape[1])
    for j in range(len(alpha_i)):
        total = total + alpha_i[j] * rows[j]
    return total
    # end


check.weighted_sum(my_weighted_sum)

# %% [markdown]
# ### Exercise 3 · The scaled score
#
# (`scaled-score`) Given a query and a key, both vectors of size $d_k$, return their score, a single number.

# %% tags=["exercise"]


def my_scaled_score(q_i, k_j):
    # solution
    d_k = len(k_j)
    return (q_i * k_j).sum() / d_k**0.5
    # end


check.scaled_score(my_scaled_score)

# %% [markdown]
# ### Exercise 4 · The simplest attention
#
# (`simple-sum` to `simple-softmax`) `X` is [N × d], one row per token. Return $\mathbf a_i$ [d]: token i reads itself
# and all earlier tokens. There are no weight matrices and no scaling.

# %% tags=["exercise"]


def my_simple_attention(X, i):
    # solution
    past = X[: i + 1]
    alpha_i = my_softmax(past @ X[i])
    return my_weighted_sum(alpha_i, past)
    # end


check.simple_attention(my_simple_attention)

# %% [markdown]
# ### Exercise 5 · A head, for all tokens
#
# (`qkv-final` to `head-out`) `W_Q` and `W_K` are [d × d_k], `W_V` is [d × d_v], `W_O` is [d_v × d]. Return
# $\mathbf a_i$ for every token, as a matrix [N × d]. Token i reads the tokens up to itself.

# %% tags=["exercise"]


def my_head(X, W_Q, W_K, W_V, W_O):
    # solution
    rows = []
    for i in range(len(X)):
        q_i, keys = X[i] @ W_Q, X[: i + 1] @ W_K
        scores = [my_scaled_score(q_i, k_j) for k_j in keys]
        alpha_i = my_softmax(torch.stack(scores))
        rows.append(my_weighted_sum(alpha_i, X @ W_V) @ W_O)
    return torch.stack(rows)
    # end


check.head(my_head)
