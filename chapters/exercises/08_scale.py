# %% [markdown]
# ## Exercises
#
# Complete each function from its equation. If your answer is wrong, the check tries to name the mistake.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · A scaling law
#
# (`L(N)`) Return the loss that the law predicts for a model with `N` parameters. Its constants are `N_c` and
# `alpha`.


# %% tags=["exercise"]
def my_scaling_loss(N, N_c, alpha):
    # solution
    return (N_c / N) ** alpha
    # end


check.scaling_loss(my_scaling_loss)

# %% [markdown]
# ### Exercise 2 · The size of a cache
#
# How many numbers are in the key-value cache after T tokens, with L blocks of A heads, keys of size `d_k`
# and values of size `d_v`?

# %% tags=["exercise"]


def my_cache_numbers(T, L, A, d_k, d_v):
    # solution
    return T * L * A * (d_k + d_v)
    # end


check.cache_numbers(my_cache_numbers)

# %% [markdown]
# ### Exercise 3 · LoRA
#
# (`lora`) $\mathbf h=\mathbf x\mathbf W+\frac{\alpha}{r}\mathbf x\mathbf A\mathbf B$, with the scale of
# the paper. `W` is [k × d], `A` [k × r], `B` [r × d].

# %% tags=["exercise"]


def my_lora(x, W, A, B, alpha):
    # solution
    r = A.shape[1]
    return x @ W + alpha / r * (x @ A @ B)
    # end


check.lora(my_lora)

# %% [markdown]
# ### Exercise 4 · One matrix again
#
# After training, the adapter can be merged into the matrix, so that it costs nothing. Return W with the
# adapter of exercise 3 merged into it.

# %% tags=["exercise"]


def my_merged(W, A, B, alpha):
    # solution
    return W + alpha / A.shape[1] * A @ B
    # end


check.merged(my_merged)
