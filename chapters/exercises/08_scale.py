# %% [markdown]
# ## Exercises
#
# Write what is missing, from the equation alone; the check names the mistake if there is one.

# %% [markdown]
# ### Exercise 1 · A law
#
# (`L(N)`) Return the loss that the law gives a model of `N` parameters, with its constants `N_c` and
# `alpha`.

# %% tags=["exercise"]
from slp_transformer import check


def my_scaling_loss(N, N_c, alpha):
    # solution
    return (N_c / N) ** alpha
    # end


check.scaling_loss(my_scaling_loss)

# %% [markdown]
# ### Exercise 2 · What a cache holds
#
# How many numbers does a key-value cache hold after T tokens, in L blocks of A heads with keys of size
# `d_k` and values of size `d_v`?

# %% tags=["exercise"]


def my_cache_numbers(T, L, A, d_k, d_v):
    # solution
    return T * L * A * (d_k + d_v)
    # end


check.cache_numbers(my_cache_numbers)

# %% [markdown]
# ### Exercise 3 · LoRA
#
# (`lora`) $\mathbf h=\mathbf x\mathbf W+\frac{\alpha}{r}\mathbf x\mathbf A\mathbf B$, the scale being
# the paper's. `W` is [k × d], `A` [k × r], `B` [r × d].

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
# After training, the adapter can go into the matrix, and costs nothing any more. Return that matrix.

# %% tags=["exercise"]


def my_merged(W, A, B, alpha):
    # solution
    return W + alpha / A.shape[1] * A @ B
    # end


check.merged(my_merged)
