# %% [markdown]
# ## Exercises
#
# Fill in what is missing. If it is wrong, the check says so, and names the mistake where it
# recognizes it.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · A step with a cache
#
# (`kv-attn`) `x` [d] is a new token's row; the rows of `K` and `V` are the keys and values of all tokens
# before it. Return three things: the head's output for the new token, K with the new key, and V with the
# new value.


# %% tags=["exercise"]
def my_cached_step(x, W_Q, W_K, W_V, K, V):
    # solution
    q = x @ W_Q
    K = torch.cat([K, (x @ W_K)[None]])
    V = torch.cat([V, (x @ W_V)[None]])
    alpha = torch.softmax(K @ q / len(q) ** 0.5, dim=-1)
    return alpha @ V, K, V
    # end


check.cached_step(my_cached_step)

# %% [markdown]
# ### Exercise 2 · The mask for several new tokens
#
# A cache holds `held` tokens, and N more come at once. Return their mask, [N × (held + N)]: 0 where a new
# token may look, −∞ where it may not.

# %% tags=["exercise"]


def my_mask_after(N, held):
    # solution
    M = torch.zeros(N, held + N)
    for i in range(N):
        M[i, held + i + 1 :] = float("-inf")
    return M
    # end


check.mask_after(my_mask_after)
